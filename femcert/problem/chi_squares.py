"""Weighted sums of squares of independent normal numbers: their quantiles, by inversion of the Laplace transform.

``Q = sum l_i g_i²`` has ``E exp(s Q) = prod (1 - 2 s l_i)^(-1/2)``, so that for any path from below to above that
crosses the real axis between 0 and ``1 / (2 max l)``

    ``P(Q > x) = 1 / (2 pi i) ∫ exp(-s x) prod (1 - 2 s l_i)^(-1/2) ds / s``.

On a parabola through the saddle point, open to the right, the integrand falls like a Gaussian, and the trapezoidal rule
has all digits (Rice, Distribution of quadratic forms in normal random variables, 1980).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, chndtr, chndtrix

from ..checks import Array

# Step of the trapezoidal rule, in widths of the saddle; it ends where exp(-t² / 2) and exp(-s x) are exp(-FALLEN).
STEP, FALLEN, MOST_POINTS = 0.15, 42.0, 4000
# How high a path may climb over the saddle, how low it ends at least, and how many of them are tried.
HIGHER, LOW, BENDS = 1.0, 25.0, 12
# Relative rounding errors of probabilities, and of quantiles.
ROUNDING = 1e-9


def exceeds(weights: Array, x: float) -> float:
    """``P(sum l_i g_i² > x)`` for positive weights and ``x > 0``; 1 where it cannot be computed."""
    largest = float(weights.max())
    lam, x = weights / largest, x / largest

    def slope(s: float) -> float:
        return float(np.sum(lam / (1.0 - 2.0 * lam * s))) - x - 1.0 / s

    # The slope grows from minus to plus infinity.
    low, high = 1.0 / (4.0 * (x + len(lam) + 2.0)), 0.5 - 1.0 / (8.0 * (x + len(lam) + 8.0))
    while slope(low) > 0.0:
        low /= 4.0
    while slope(high) < 0.0:
        high = 0.5 - (0.5 - high) / 4.0
    s0 = float(brentq(slope, low, high, rtol=1e-8))
    poles = lam / (1.0 - 2.0 * lam * s0)
    second = 2.0 * float(np.sum(poles**2)) + 1.0 / s0**2
    third = 8.0 * float(np.sum(poles**3)) - 2.0 / s0**3
    width = 1.0 / np.sqrt(second)
    bend = max(third / (6.0 * second), 0.03 / width) * width**2
    height = -0.5 * float(np.sum(np.log1p(-2.0 * lam * s0))) - s0 * x
    # A path that is bent too much leaves the saddle for higher ground: any other one serves, if the integrand falls.
    for _ in range(BENDS):
        reach = np.sqrt(2.0 * FALLEN) + np.sqrt(FALLEN / (x * bend))
        t = np.linspace(0.0, min(reach, STEP * MOST_POINTS), min(int(np.ceil(reach / STEP)) + 1, MOST_POINTS))
        s = s0 + 1j * width * t + bend * t**2
        # Relative to the saddle, whose height comes last.
        logs = -0.5 * np.sum(np.log((1.0 - 2.0 * lam * s[:, None]) / (1.0 - 2.0 * lam * s0)), axis=1) - (s - s0) * x
        if logs.real.max() < HIGHER and logs.real[-1] < -LOW:
            values = np.real(np.exp(logs) / s * (width - 2j * bend * t))
            integral = (t[1] - t[0]) * (values.sum() - 0.5 * values[0]) / np.pi
            return float(min(np.exp(height) * max(integral, 0.0), 1.0))
        bend /= 4.0
    return 1.0


def weighted_quantile(weights: Array, zeta: float) -> float:
    """The x with ``P(sum l_i g_i² > x) = zeta``, from above but for `ROUNDING`; weights of rounding may be negative.

    Between the quantile of the largest term alone and the bounds of Laurent and Massart (2000, lemma 1),
    ``sum l_i - 2 (u sum l_i²)^1/2`` with ``u = -log(1 - zeta)`` and `upper_quantile`.
    """
    # Far below the mean the path of the inversion is no descent: the median is more.
    zeta, lam = min(zeta, 0.5), weights[weights > 0.0]
    if not lam.size:
        return 0.0
    largest = float(lam.max())
    # What is smaller than rounding of the largest one counts as its size.
    lam = np.maximum(lam / largest, 1e-14)
    alone = float(chdtri(1, zeta))
    if lam.size == 1:
        return largest * alone * (1.0 + ROUNDING)
    spread = 2.0 * float(np.sqrt(-np.log1p(-zeta) * np.sum(lam**2)))
    low, high = max(alone, float(lam.sum()) - spread) * (1.0 - 1e-6), upper_quantile(lam, zeta)
    if exceeds(lam, low) <= zeta:
        return largest * low * (1.0 + 2e-6)
    if exceeds(lam, high) > zeta:
        return largest * high
    found = float(brentq(lambda x: np.log(max(exceeds(lam, x), 1e-300) / zeta), low, high, rtol=1e-10))
    proven = exceeds(lam, found * (1.0 + ROUNDING)) <= zeta * (1.0 + 1e-6)
    return largest * (min(found * (1.0 + ROUNDING), high) if proven else high)


def matched_quantile(weights: Array, zeta: float) -> float:
    """About the same from three moments (Hall, Buckley, Eagleson), to choose by and not to claim."""
    first, second, third = (float(np.sum(np.maximum(weights, 0.0) ** power)) for power in (1, 2, 3))
    if not third > 0.0:
        return 0.0
    degrees = second**3 / third**2
    return max(first + float(chdtri(degrees, zeta) - degrees) * np.sqrt(second / degrees), 0.0)


def upper_quantile(weights: Array, zeta: float) -> float:
    """The bound of Laurent and Massart, ``sum l_i + 2 (t sum l_i²)^1/2 + 2 t max l_i`` with ``t = log(1 / zeta)``."""
    t = float(np.log(1.0 / zeta))
    return float(weights.sum() + 2.0 * np.sqrt(t * np.sum(weights**2)) + 2.0 * t * weights.max())


def shifted_quantile(count: int, shift: float, zeta: float) -> float:
    """What ``‖g + v‖`` exceeds with probability zeta at most, for `count` normal numbers g and ``‖v‖ <= shift``.

    The root of the noncentral chi-square quantile, which grows with the shift; at most ``chi + shift``.
    """
    most = float(np.sqrt(chdtri(count, zeta))) + shift
    if shift == 0.0:
        return most
    square = float(chndtrix(1.0 - zeta, count, shift**2)) * (1.0 + ROUNDING)
    proven = np.isfinite(square) and square > 0.0 and 1.0 - float(chndtr(square, count, shift**2)) <= zeta
    return min(most, float(np.sqrt(square))) if proven else most
