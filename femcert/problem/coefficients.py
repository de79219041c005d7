"""Coefficients given as numbers, functions, per-element arrays or per-subdomain tables, at quadrature points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skfem import Basis

from ..errors import InputError
from .checks import Array, number, real_array
from .mesh import region_elements

Coefficient = float | NDArray[Any] | Callable[[Array], Any] | Mapping[str, float]


def at_quadrature(value: Coefficient, basis: Basis, name: str, *, sign: str = "any") -> Array:
    """Values of a coefficient at the quadrature points of `basis`, shape ``(elements, points)``; see `sampled_at`."""
    return sampled_at(value, basis.mesh, np.asarray(basis.global_coordinates()), name, sign=sign)


def sampled_at(value: Coefficient, mesh: Any, x: Array, name: str, *, sign: str = "any") -> Array:
    """Values of a coefficient at points in all elements, shape ``(elements, points)``.

    Parameters
    ----------
    value
        A number, a function of ``x`` (scikit-fem coordinates, ``x[0]``, ``x[1]``), an array with one value per
        element, or a mapping from subdomain names to numbers that covers the mesh.
    x
        Coordinates, ``(dimension, elements, points)``.
    sign
        ``"positive"``, ``"nonnegative"`` or ``"any"``: which values are accepted.
    """
    shape = x.shape[1:]
    if isinstance(value, Mapping):
        value = _by_region(value, mesh, name)
    if callable(value):
        values = real_array(value(x), name)
        if values.shape not in ((), shape):
            raise InputError(f"{name} returned shape {values.shape} for x of shape {x.shape}; expected {shape}")
    else:
        values = real_array(value, name)
        if values.ndim == 1 and values.size == shape[0]:
            values = values[:, None]
        elif values.ndim != 0:
            raise InputError(f"{name} has shape {values.shape}; expected a number or ({shape[0]},), one per element")
    check_sign(values, name, sign)
    return np.array(np.broadcast_to(values, shape))


def check_sign(values: Array, name: str, sign: str) -> None:
    """Refuse infinite values, and values that are not ``"positive"``, or not ``"nonnegative"``."""
    least, most = float(np.min(values)), float(np.max(values))
    if not most < np.inf:
        raise InputError(f"{name} takes the value {most:.4g}; expected finite values everywhere")
    if sign == "positive" and not least > 0.0:
        raise InputError(f"{name} takes the value {least:.4g}; expected positive values everywhere")
    if sign == "nonnegative" and not least >= 0.0:
        raise InputError(f"{name} takes the value {least:.4g}; expected values of at least 0 everywhere")


def _by_region(table: Mapping[str, float], mesh: Any, name: str) -> Array:
    values = np.full(mesh.nelements, np.nan)
    for region, value in table.items():
        elements = region_elements(mesh, region)
        if not np.all(np.isnan(values[elements])):
            raise InputError(f"{name}: subdomain {region!r} overlaps another one of the table")
        values[elements] = number(value, f"{name} on {region!r}")
    missing = int(np.isnan(values).sum())
    if missing:
        raise InputError(f"{name} is not given on {missing} of {mesh.nelements} elements; expected all subdomains")
    return values
