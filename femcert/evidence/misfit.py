"""How well bounded sets explain whitened data, from below: weak duality.

For whitened data ``b = sum_j T_j x_j + A z + e`` with ``‖x_j‖ <= r_j``, every direction d with ``A' d = 0`` bounds what
is needed: ``d . b <= sum_j r_j ‖T_j' d‖ + ‖d‖ ‖e‖``. Directions are sought among the residuals of ridge regressions,
where the best one lies; the bound holds for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..checks import Array
from ..linalg.accuracy import EPS
from .affine import Sight, ratios

# Decimal logarithms of the multiplier over 1 / r², and how often the grid is made finer.
LOW, HIGH, POINTS, ROUNDS = -18.0, 18.0, 73, 4


def least_misfit(sights: Sequence[Sight], values: Array) -> float:
    """``min ‖b - sum_j T_j x_j‖`` over ``‖x_j‖ <= r_j``, from below.

    Parameters
    ----------
    sights
        In the part of the data that free directions do not reach.
    values
        b, there.
    """
    size = float(np.linalg.norm(values))
    if not sights or not values.size:
        return size
    found, _ = _most_misfit(sights, values)
    return max(found, 0.0) * (1.0 - 64.0 * EPS * np.sqrt(values.size))


def misfit_direction(sights: Sequence[Sight], values: Array) -> Array:
    """The d of `least_misfit`; zero where the sets explain the values."""
    return _most_misfit(sights, values)[1] if sights else values


def _most_misfit(sights: Sequence[Sight], values: Array) -> tuple[float, Array]:
    return _best(sights, values, lambda d, norm, reaches: (d @ values - reaches.sum(axis=0)) / norm)


def least_size(sights: Sequence[Sight], values: Array, level: float) -> float:
    """The least r_1 with which some ``‖b - sum_j T_j x_j‖ <= level``, from below; parameters as for `least_misfit`."""
    if not values.size:
        return 0.0
    return max(_most_size(sights, values, level)[0], 0.0) * (1.0 - 64.0 * EPS * np.sqrt(values.size))


def size_direction(sights: Sequence[Sight], values: Array, level: float) -> Array:
    """The d of `least_size`; zero where no size is needed."""
    return _most_size(sights, values, level)[1]


def _most_size(sights: Sequence[Sight], values: Array, level: float) -> tuple[float, Array]:
    first = sights[0].radius

    def bound(d: Array, norm: Array, reaches: Array) -> Array:
        left = d @ values - level * norm - reaches[1:].sum(axis=0)
        return np.where(left > 0.0, left, 0.0) / (reaches[0] / first + 1e-300)

    return _best(sights, values, bound)


def _best(
    sights: Sequence[Sight], values: Array, bound: Callable[[Array, Array, Array], Array]
) -> tuple[float, Array]:
    """The largest bound over all directions that are tried; it takes rows d, their norms, and ``r_j ‖T_j' d‖``."""
    radii = np.array([sight.radius for sight in sights])
    best, direction = 0.0, np.zeros_like(values)
    for theta in ratios(radii):
        lam, V = np.linalg.eigh(sum(t * sight.gram for t, sight in zip(theta, sights, strict=True)))
        turned, scale = V.T @ values, radii[0] ** 2 * np.maximum(lam, 0.0)
        grid = np.linspace(LOW, HIGH, POINTS)
        for _ in range(ROUNDS):
            d = (turned / (1.0 + 10.0 ** grid[:, None] * scale)) @ V.T
            norm = np.linalg.norm(d, axis=1)
            grid, d, norm = grid[norm > 0.0], d[norm > 0.0], norm[norm > 0.0]
            if not len(d):
                break
            reaches = np.stack([_reach(sight, d) for sight in sights])
            found = bound(d, norm, reaches)
            i = int(np.argmax(found))
            if found[i] > best:
                best, direction = float(found[i]), d[i]
            step = np.ptp(grid) / max(len(grid) - 1, 1)
            grid = np.linspace(grid[i] - step, grid[i] + step, 17)
    return best, direction


def _reach(sight: Sight, d: Array) -> Array:
    """``r ‖T' d‖`` for rows d, from above."""
    seen = np.sum(d * (d @ sight.gram), axis=1)
    lost = 4.0 * (sight.rounding + 16.0 * d.shape[1] * EPS) * np.linalg.norm(sight.gram, 2)
    return sight.radius * np.sqrt(np.maximum(seen, 0.0) + lost * np.sum(d**2, axis=1))
