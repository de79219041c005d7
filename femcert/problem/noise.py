"""What is known of the noise in whitened data, and what that says of weighted sums of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, ndtr, ndtri

from ..checks import Array, number
from ..errors import InputError

# Newton's method on a convex function, from above; it takes 3 to 6 steps.
MOST_STEPS = 50
# Quantiles of the special functions are good to this part.
ROUNDING = 1e-12


def check_confidence(value: object) -> float:
    """A probability strictly between 0 and 1."""
    level = number(value, "confidence", above=0.0)
    if not level < 1.0:
        raise InputError(f"confidence is {level:g}; expected a probability below 1, such as 0.95")
    return level


def gaussian_radius(size: int, confidence: float) -> float:
    """``chi2_m(confidence)^1/2``: m independent standard normal numbers have at most this norm, with `confidence`."""
    return float(np.sqrt(chdtri(size, 1.0 - check_confidence(confidence))))


def folded_quantile(shift: Array, zeta: Array | float) -> Array:
    """``cv(t)``, the ``1 - zeta`` quantile of ``|N(t, 1)|``, from above; entries broadcast.

    It lies between ``t + z_{1-zeta}``, which it approaches for large t, and ``z_{1-zeta/2}`` more than t. On the right
    of t the function ``P(|N(t, 1)| > c)`` is convex in c, so that Newton's method from the left does not overshoot.
    """
    t, level = np.broadcast_arrays(np.abs(np.asarray(shift, dtype=float)), np.asarray(zeta, dtype=float))
    c = np.maximum(t - ndtri(level), -ndtri(level / 2.0))
    for _ in range(MOST_STEPS):
        beyond = ndtr(t - c) + ndtr(-t - c) - level
        slope = np.exp(-0.5 * (c - t) ** 2) + np.exp(-0.5 * (c + t) ** 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(beyond > 0.0, np.sqrt(2.0 * np.pi) * beyond / slope, 0.0)
        c = c + step
        if not np.any(step > 1e-15 * c):
            break
    return np.asarray(c * (1.0 + ROUNDING))


class Noise(ABC):
    """What is known of the noise e in whitened data ``y = A x + e``.

    Attributes
    ----------
    zeta
        The probability with which statements about the noise may fail; 0 where nothing is random.
    proven
        Whether they hold; if not, whatever follows from them is an estimate.
    largest
        The largest standard deviation in whitened data.
    fixed
        Whether nothing of this depends on the values of the data.
    """

    zeta: float = 0.0
    proven: bool = True
    largest: float = 1.0
    fixed: bool = True

    def deviation(self, weights: Array) -> Array:
        """How far the noise moves ``a . y``, for columns a: their norms, for noise of deviation one."""
        return np.asarray(np.linalg.norm(weights, axis=0))

    @abstractmethod
    def half_length(self, bias: Array, deviation: Array, zeta: float) -> Array:
        """Half the length of an interval ``a . y ± h`` for ``a . A x``, from above, with the `deviation` of a."""

    @abstractmethod
    def size(self, count: int, zeta: float) -> float:
        """What ``‖P e‖`` is at most, for a projection P of rank `count` that is fixed before."""

    @abstractmethod
    def apart(self, zeta: float) -> float | None:
        """Two truths whose data differ by less than twice this cannot be told apart, see `Affine.limit`; or None."""


@dataclass(frozen=True)
class Bounded(Noise):
    """``‖e‖ <= level`` for sure.

    Attributes
    ----------
    level
        In the norm of Y.
    """

    level: float

    def half_length(self, bias: Array, deviation: Array, zeta: float) -> Array:
        """``bias + level ‖a‖``."""
        return np.asarray(bias + self.level * deviation)

    def size(self, count: int, zeta: float) -> float:
        """The level."""
        return self.level

    def apart(self, zeta: float) -> float:
        """The level."""
        return self.level


@dataclass(frozen=True)
class Gaussian(Noise):
    """Independent normal numbers with mean zero: noise of known covariance, whitened.

    Statements about it fail with probability `zeta` at most.

    Attributes
    ----------
    deviations
        Their standard deviations, from above; None: all one. They may depend on the data.
    spent
        The part of zeta with which the deviations may be too small.
    proven
        Whether the deviations that whiten were fixed before the data; if not, whatever follows is an estimate.
    """

    zeta: float
    deviations: Array | None = None
    spent: float = 0.0
    proven: bool = True

    def deviation(self, weights: Array) -> Array:
        """See `Noise.deviation`."""
        scale = 1.0 if self.deviations is None else self.deviations[:, None]
        return np.asarray(np.linalg.norm(scale * weights, axis=0))

    def half_length(self, bias: Array, deviation: Array, zeta: float) -> Array:
        """``cv(bias / ‖a‖) ‖a‖``: bias and deviation balanced."""
        left = zeta * (1.0 - self.spent / self.zeta)
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where(deviation > 0.0, bias / deviation, 0.0)
        far = ~np.isfinite(shift)
        found = folded_quantile(np.where(far, 0.0, shift), left) * deviation
        return np.where(far | (deviation == 0.0), bias, found)

    def size(self, count: int, zeta: float) -> float:
        """``chi2_count(1 - zeta)^1/2``, times the largest deviation."""
        left = zeta * (1.0 - self.spent / self.zeta)
        return float(np.sqrt(chdtri(count, left))) * self.largest * (1.0 + ROUNDING) if count else 0.0

    @property
    def fixed(self) -> bool:  # type: ignore[override]
        """See `Noise`."""
        return self.deviations is None

    @property
    def largest(self) -> float:  # type: ignore[override]
        """Of the deviations."""
        return 1.0 if self.deviations is None else float(self.deviations.max())

    def apart(self, zeta: float) -> float | None:
        """``z_{1-zeta}``; None where the deviations are not known."""
        return float(-ndtri(zeta)) * (1.0 - ROUNDING) if self.deviations is None else None
