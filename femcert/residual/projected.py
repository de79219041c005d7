"""Stationarity with bounds on the coordinates of a parameter."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import Array
from ..errors import InputError
from ..linalg.bounded import bounded_step
from ..problem.space import ParameterSpace

Limits = tuple[Array, Array]


def projected_norm(
    space: ParameterSpace, coordinates: Array, gradient: Array, limits: Limits, *, curvature: float
) -> float:
    """``L ‖c - P(c - G^-1 g / L)‖_Q``, P the projection on the box ``low <= c <= high`` in the norm of Q.

    It is zero exactly where the first-order conditions hold: c in the box, and ``g' (e - c) >= 0`` for all e in the box
    (coordinate by coordinate: ``g_i = 0`` inside, ``g_i >= 0`` at the low bound, ``g_i <= 0`` at the high one). For
    the projection p of ``c - G^-1 g / L`` is the point of the box with ``(p - c + G^-1 g / L)' G (e - p) >= 0`` for
    all e in it; if p = c this is ``g' (e - c) >= 0``, and if that holds then p = c satisfies it, and p is unique.

    Clipping each coordinate is that projection only where the Gram matrix G is diagonal. Where the step meets no bound
    the number is ``(g' G^-1 g)^(1/2)``, the dual norm of the gradient; it is never more than that for c in the box.

    Parameters
    ----------
    curvature
        L > 0, the size of the second derivative of the objective in the norm of Q: with it the step has the units of
        c, so that the bounds mean the same in any units of the data.
    """
    low, high = limits
    step = bounded_step(space.gram, gradient / curvature, low - coordinates, high - coordinates)
    return curvature * float(np.sqrt(max(step @ (space.gram @ step), 0.0)))


def check_bounds(bounds: Any) -> Any:
    """`bounds` if it is None or a pair (low, high) of numbers or vectors, else an `InputError`."""
    if bounds is None:
        return None
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise InputError(f"bounds is {bounds!r}; expected a pair (low, high)")
    if not all(_is_numeric(limit) for limit in bounds):
        raise InputError(f"bounds is {bounds!r}; expected numbers or vectors of numbers")
    return bounds


def coordinate_limits(bounds: Any, k: int) -> Limits:
    """``(low, high)`` as vectors of length `k`, infinite where there is no bound."""
    low, high = (-np.inf, np.inf) if bounds is None else check_bounds(bounds)
    limits = []
    for name, value in (("low", low), ("high", high)):
        array = np.asarray(value, dtype=float)
        if np.any(np.isnan(array)) or array.shape not in ((), (k,)):
            raise InputError(f"bounds: {name} has shape {array.shape}; expected a number or ({k},), no NaN")
        limits.append(np.array(np.broadcast_to(array, (k,))))
    if not np.all(limits[0] < limits[1]):
        raise InputError("bounds: expected low < high for every coordinate")
    return limits[0], limits[1]


def _is_numeric(limit: Any) -> bool:
    try:
        return np.asarray(limit).dtype.kind in "iuf" and not np.ma.is_masked(limit)
    except ValueError:
        return False
