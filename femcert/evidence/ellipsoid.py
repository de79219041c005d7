"""The farthest point of an ellipsoid and its extent in a direction, for many ellipsoids at once."""

from __future__ import annotations

import numpy as np

from ..checks import Array
from ..linalg.accuracy import EPS

# Newton's method doubles the digits; from the starting value that is used here it takes 4 to 10 steps.
MOST_STEPS = 100


def farthest(singular: Array, offset: Array, slack: Array | float) -> tuple[Array, Array]:
    """Upper bound of ``max { ‖z - b‖ : sum s_i² z_i² <= e² }`` and the point that reaches it, see `farthest_axes`.

    Parameters
    ----------
    singular
        ``s``, ``(..., k)``, none of them negative, in any order. Leading axes of all arguments broadcast.
    offset
        ``b``, ``(..., k)``.
    slack
        ``e >= 0``, ``(...)``.

    Returns
    -------
    upper, point
        ``(...)`` and ``(..., k)``. Infinite where some ``s_i`` is zero: the set is a cylinder, also with ``e = 0``; the
        point is then its centre.
    """
    return farthest_axes(_half_axes(singular, slack), offset)


def farthest_axes(axes: Array, offset: Array) -> tuple[Array, Array]:
    """Upper bound of ``max { ‖a w - b‖ : ‖w‖ <= 1 }``, the product entry by entry, and the point ``z = a w``.

    The multiplier ``lam >= max a²`` of the constraint gives, for every such lam, the upper bound (weak duality)

        ``g(lam) = lam + sum b_i² + sum a_i² b_i² / (lam - a_i²)``,

    least where the secular equation ``‖w‖ = 1`` holds, ``w_i = -a_i b_i / (lam - a_i²)``. Newton's method for
    ``1 / ‖w‖ = 1``, a concave function of lam, climbs to the solution from the left without overshooting. In the hard
    case ``‖w‖ < 1`` already at ``lam = max a²``: then the rest of w goes along the longest axis, where b vanishes.

    Parameters
    ----------
    axes
        Half axes ``a >= 0``, ``(..., k)``; infinite ones give an infinite result.
    offset
        ``b``, ``(..., k)``.

    Returns
    -------
    upper, point
        ``g(lam)^(1/2)``, rounded upwards, and a point of the ellipsoid.
    """
    a, b = np.broadcast_arrays(np.asarray(axes, float), np.asarray(offset, float))
    if a.shape[-1] == 0:
        return np.zeros(a.shape[:-1]), np.zeros(a.shape)
    longest = a.max(axis=-1, keepdims=True)
    endless = ~np.isfinite(longest)
    scale = np.maximum(longest, np.abs(b).max(axis=-1, keepdims=True))
    scale = np.where((scale > 0.0) & ~endless, scale, 1.0)
    a, b, longest = (np.where(endless, 0.0, part) / scale for part in (a, b, longest))
    d = a * np.abs(b)
    # Then a_i or |b_i| is below 1e-75, and without it nothing changes to rounding.
    d = np.where(d < 1e-150, 0.0, d)
    # lam = max a² + mu, so that nothing cancels in lam - a_i² = mu + gap_i.
    gap = (longest - a) * (longest + a)
    mu = _multiplier(d, gap)
    w = _quotient(d, mu[..., None] + gap)
    square = longest[..., 0] ** 2 + mu + np.sum(b**2, axis=-1) + np.sum(d * w, axis=-1)
    upper = scale[..., 0] * np.sqrt(square) * (1.0 + (a.shape[-1] + 16.0) * EPS)
    point = scale * a * _completed(w, gap) * np.where(b > 0.0, -1.0, 1.0)
    return np.where(endless[..., 0], np.inf, upper), point


def support(singular: Array, direction: Array, slack: Array | float) -> tuple[Array, Array]:
    """``max { d . z : sum s_i² z_i² <= e² } = e ‖d / s‖``, rounded upwards, and the point that reaches it.

    Arguments broadcast as in `farthest`. Infinite where d has a component along a zero singular value; the point is
    then the centre.
    """
    return support_axes(_half_axes(singular, slack), direction)


def support_axes(axes: Array, direction: Array) -> tuple[Array, Array]:
    """``max { d . (a w) : ‖w‖ <= 1 } = ‖a d‖``, the product entry by entry, and the point ``z = a w``."""
    a, d = np.broadcast_arrays(np.asarray(axes, float), np.asarray(direction, float))
    endless = np.any(np.isinf(a) & (d != 0.0), axis=-1)
    a = np.where(np.isinf(a), 0.0, a)
    large = np.abs(d).max(axis=-1, initial=0.0, keepdims=True)
    long = a.max(axis=-1, initial=0.0, keepdims=True)
    w = _quotient(a, long) * _quotient(d, large)
    length = np.sqrt(np.sum(w**2, axis=-1))
    value = long[..., 0] * (large[..., 0] * length) * (1.0 + (a.shape[-1] + 16.0) * EPS)
    unit = w / np.where(length > 0.0, length, 1.0)[..., None]
    return np.where(endless, np.inf, value), np.where(endless[..., None], 0.0, a * unit)


def _multiplier(d: Array, gap: Array) -> Array:
    """The least ``mu >= 0`` with ``‖d / (mu + gap)‖ <= 1``, from the left to rounding."""
    # Each component alone is a lower bound, and makes ‖w‖ at most k^(1/2) there.
    mu = np.maximum(np.max(d - gap, axis=-1), 0.0)
    flat, D, G = mu.reshape(-1), d.reshape(-1, d.shape[-1]), gap.reshape(-1, d.shape[-1])
    active = np.arange(flat.size)
    for _ in range(MOST_STEPS):
        below = flat[active, None] + G[active]
        w = _quotient(D[active], below)
        square = np.sum(w**2, axis=-1)
        norm = np.sqrt(square)
        slope = np.sum(w * _quotient(w, below), axis=-1)
        step = _quotient((norm - 1.0) * square, slope)
        # A step from the left is positive until rounding, or from the start in the hard case.
        go = (norm > 1.0 + 4.0 * EPS) & (step > EPS * flat[active]) & np.isfinite(step)
        active = active[go]
        if not active.size:
            break
        flat[active] += step[go]
    return flat.reshape(mu.shape)


def _completed(w: Array, gap: Array) -> Array:
    """``w >= 0`` with norm 1: scaled down, or prolonged along the longest axis."""
    norm = np.sqrt(np.sum(w**2, axis=-1, keepdims=True))
    w = w / np.maximum(norm, 1.0)
    index = np.argmin(gap, axis=-1)[..., None]
    first = np.take_along_axis(w, index, axis=-1)
    rest = np.maximum(1.0 - np.sum(w**2, axis=-1, keepdims=True), 0.0)
    np.put_along_axis(w, index, np.sqrt(first**2 + rest), axis=-1)
    return np.asarray(w)


def _half_axes(singular: Array, slack: Array | float) -> Array:
    """``e / s``, infinite for ``s = 0`` whatever the slack."""
    return _quotient(np.asarray(slack, float)[..., None], np.asarray(singular, float), otherwise=np.inf)


def _quotient(top: Array, bottom: Array, otherwise: float = 0.0) -> Array:
    """``top / bottom``, and `otherwise` where the denominator is zero."""
    top, bottom = np.broadcast_arrays(top, bottom)
    with np.errstate(over="ignore"):
        return np.divide(top, bottom, out=np.full(top.shape, otherwise), where=bottom > 0.0)
