"""Coefficients given as numbers, functions, per-element arrays or per-subdomain tables, at quadrature points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skfem import Basis

from ..checks import Array, real_array
from ..errors import InputError
from ..mesh.geometry import region_elements
from ..mesh.sample import Points, values_at
from .polynomial import declared_error, known_degree, unknown

Part = float | Callable[[Array], Any]
Coefficient = Part | NDArray[Any] | Mapping[str, Part]


def varies(value: Coefficient) -> bool:
    """Whether a coefficient may vary within an element: a function, or a table with one."""
    return any(callable(part) for part in _parts(value, "").values())


def polynomial_degree(value: Coefficient) -> int | None:
    """The degree on the elements, None where it is not known."""
    degrees = [known_degree(part) for part in _parts(value, "").values()]
    return None if None in degrees else max(d for d in degrees if d is not None)


def largest_error(value: Coefficient) -> float:
    """The largest declared distance from polynomials."""
    return max(declared_error(part) for part in _parts(value, "").values())


def unknown_parts(value: Coefficient, name: str) -> str:
    """About the functions of which nothing is known but samples; empty if there are none."""
    names = [part for part, given in _parts(value, name).items() if known_degree(given) is None]
    return unknown(" and the ".join(names)) if names else ""


def _parts(value: Coefficient, name: str) -> dict[str, Any]:
    return {f"{name} on {key!r}": v for key, v in value.items()} if isinstance(value, Mapping) else {name: value}


def at_quadrature(value: Coefficient, basis: Basis, name: str, *, sign: str = "any") -> Array:
    """Values of a coefficient at the quadrature points of `basis`, shape ``(elements, points)``; see `sampled_at`."""
    # Where nothing depends on the points, their number is enough.
    x = np.asarray(basis.global_coordinates()) if varies(value) else np.broadcast_to(0.0, (1, *basis.dx.shape))
    return sampled_at(value, basis.mesh, x, name, sign=sign)


def sampled_at(value: Coefficient, mesh: Any, x: Array, name: str, *, sign: str = "any") -> Array:
    """Values of a coefficient at points in all elements, shape ``(elements, points)``.

    Parameters
    ----------
    value
        A number, a function of ``x`` (scikit-fem coordinates, ``x[0]``, ``x[1]``), an array with one value per
        element, or a mapping from subdomain names to numbers or functions that covers the mesh.
    x
        Coordinates, ``(dimension, elements, points)``.
    sign
        ``"positive"``, ``"nonnegative"`` or ``"any"``: which values are accepted.
    """
    shape = x.shape[1:]
    if isinstance(value, Mapping):
        values = _by_region(value, mesh, x, name)
    elif callable(value):
        values = values_at(value, x, name)
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


def at_points(value: Coefficient, points: Points, name: str) -> Array:
    """Values of a coefficient at points, ``(points,)``."""
    if callable(value):
        return values_at(value, points.x, name)
    mesh = points.mesh
    if not varies(value):
        return sampled_at(value, mesh, np.zeros((1, mesh.nelements, 1)), name)[points.cells, 0]
    assert isinstance(value, Mapping)
    values = np.full(len(points.cells), np.nan)
    for region, part in value.items():
        here = np.isin(points.cells, region_elements(mesh, region))
        values[here] = values_at(part, points.x[:, here], f"{name} on {region!r}")
    return values


def _by_region(table: Mapping[str, Part], mesh: Any, x: Array, name: str) -> Array:
    values, given = np.zeros(x.shape[1:]), np.zeros(mesh.nelements, dtype=bool)
    for region, part in table.items():
        elements = region_elements(mesh, region)
        if given[elements].any():
            raise InputError(f"{name}: subdomain {region!r} overlaps another one of the table")
        values[elements] = values_at(part, x[:, elements], f"{name} on {region!r}")
        given[elements] = True
    missing = int(np.count_nonzero(~given))
    if missing:
        raise InputError(f"{name} is not given on {missing} of {mesh.nelements} elements; expected all subdomains")
    return values
