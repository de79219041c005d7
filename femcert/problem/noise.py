"""What is known of the noise in whitened data, and what that says of weighted sums of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, chdtri, fdtrc, fdtri, ndtr, ndtri, stdtrit

from ..checks import Array, number
from ..errors import InputError, UncertifiedError
from .chi_squares import matched_quantile, shifted_quantile, weighted_quantile

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

    zeta: float
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
    def factor(self, count: int, zeta: float) -> float:
        """What ``|a . e|`` over the deviation of a is at most, for all a of a space of this dimension at once."""

    def size(self, count: int, zeta: float) -> float:
        """What ``‖P e‖`` is at most, for a projection P of rank `count` that is fixed before."""
        return self.factor(count, zeta) * self.largest

    def shifted_size(self, count: int, shift: float, zeta: float) -> float:
        """What ``‖P e + v‖`` is at most, for a fixed vector v with ``‖v‖ <= shift``."""
        return self.size(count, zeta) + shift

    def length(self, gram: Array, count: int, zeta: float, *, rough: bool = False) -> float:
        """What ``‖W e‖`` is at most, for a matrix W of rank `count` with ``gram = W' W`` that is fixed before.

        Where it is `rough` it is no bound, but quick to compute.
        """
        return self.size(count, zeta) * float(np.sqrt(max(np.linalg.eigvalsh(gram)[-1], 0.0)))

    @abstractmethod
    def tail(self, misfit: float, count: int) -> float | None:
        """``P(‖P e‖ >= misfit)`` for such a projection, from above; None where it is not known."""

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
    zeta = 0.0

    def half_length(self, bias: Array, deviation: Array, zeta: float) -> Array:
        """``bias + level ‖a‖``."""
        return np.asarray(bias + self.level * deviation)

    def factor(self, count: int, zeta: float) -> float:
        """The level."""
        return self.level

    def tail(self, misfit: float, count: int) -> float:
        """1 up to the level, 0 beyond it."""
        return float(misfit <= self.level)

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

    def factor(self, count: int, zeta: float) -> float:
        """``chi2_count(1 - zeta)^1/2``."""
        left = zeta * (1.0 - self.spent / self.zeta)
        return float(np.sqrt(chdtri(count, left))) * (1.0 + ROUNDING) if count else 0.0

    def shifted_size(self, count: int, shift: float, zeta: float) -> float:
        """The root of a noncentral chi-square quantile where the deviations are known."""
        if self.deviations is not None:
            return super().shifted_size(count, shift, zeta)
        return shifted_quantile(count, shift, zeta) * (1.0 + ROUNDING) if count else shift

    def length(self, gram: Array, count: int, zeta: float, *, rough: bool = False) -> float:
        """The root of a quantile of weighted chi-squares; larger deviations make it larger (Anderson)."""
        scale = np.ones(len(gram)) if self.deviations is None else self.deviations
        left = zeta * (1.0 - self.spent / self.zeta)
        weights = np.asarray(np.linalg.eigvalsh(scale[:, None] * gram * scale))
        return float(np.sqrt(matched_quantile(weights, left) if rough else weighted_quantile(weights, left)))

    def tail(self, misfit: float, count: int) -> float:
        """Of the chi-square distribution."""
        return float(chdtrc(count, (misfit / self.largest) ** 2)) if count else 1.0

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


@dataclass(frozen=True)
class Student(Noise):
    """Independent normal numbers over an estimate of their deviation that is independent of them.

    Weights may depend on that estimate: given it, ``a . e / ‖a‖`` has the same law for every a.

    Attributes
    ----------
    degrees
        nu: ``nu s² / sigma²`` is chi-square with nu degrees of freedom, or larger.
    exact
        Whether the estimate has no part in the data themselves, so that a misfit can be tested against it.
    """

    zeta: float
    degrees: int
    exact: bool = True

    def half_length(self, bias: Array, deviation: Array, zeta: float) -> Array:
        """``bias + t_{nu, 1 - zeta / 2} ‖a‖``."""
        return np.asarray(bias + float(stdtrit(self.degrees, 1.0 - zeta / 2.0)) * (1.0 + ROUNDING) * deviation)

    def factor(self, count: int, zeta: float) -> float:
        """``(k F_{k, nu}(1 - zeta))^1/2``."""
        return float(np.sqrt(count * fdtri(count, self.degrees, 1.0 - zeta))) * (1.0 + ROUNDING) if count else 0.0

    def tail(self, misfit: float, count: int) -> float | None:
        """Of the F distribution."""
        if not self.exact:
            return None
        return float(fdtrc(count, self.degrees, misfit**2 / count)) if count else 1.0

    @property
    def fixed(self) -> bool:  # type: ignore[override]
        """No: it rests on an estimate."""
        return False

    def apart(self, zeta: float) -> None:
        """The deviation is not known."""
        return None


@dataclass(frozen=True)
class Repeats(Noise):
    """The mean of n repeated measurements with any covariance, in units of what the weights were made for.

    For fixed a the numbers ``a . y_j`` are independent with one deviation, which they show themselves.

    Attributes
    ----------
    about
        The repeats without their mean, whitened, ``(n, m)``.
    proven
        Whether the weights were made without the repeats.
    """

    zeta: float
    about: Array
    proven: bool = True

    @property
    def fixed(self) -> bool:  # type: ignore[override]
        """No: the repeats are data."""
        return False

    def deviation(self, weights: Array) -> Array:
        """Of the mean of ``a . y_j``, estimated."""
        n = len(self.about)
        return np.asarray(np.linalg.norm(self.about @ weights, axis=0) / np.sqrt(n * (n - 1.0)))

    def half_length(self, bias: Array, deviation: Array, zeta: float) -> Array:
        """``bias + t_{n - 1, 1 - zeta / 2}`` deviations."""
        return np.asarray(bias + float(stdtrit(len(self.about) - 1, 1.0 - zeta / 2.0)) * (1.0 + ROUNDING) * deviation)

    def factor(self, count: int, zeta: float) -> float:
        """Hotelling: ``(m (n - 1) / (n - m) F_{m, n - m}(1 - zeta))^1/2``, in all data."""
        n, m = self.about.shape
        if not n > m:
            raise UncertifiedError(f"{n} repeats of {m} readings do not bound all weights at once; {m + 1} are needed")
        return float(np.sqrt(m * (n - 1.0) / (n - m) * fdtri(m, n - m, 1.0 - zeta))) * (1.0 + ROUNDING)

    @property
    def largest(self) -> float:  # type: ignore[override]
        """Of the estimated deviations."""
        n = len(self.about)
        return float(np.linalg.norm(self.about, 2)) / float(np.sqrt(n * (n - 1.0)))

    def tail(self, misfit: float, count: int) -> None:
        """Not known: the covariance is not."""
        return None

    def apart(self, zeta: float) -> None:
        """The covariance is not known."""
        return None


@dataclass(frozen=True)
class Unknown(Noise):
    """Independent normal numbers of one unknown deviation, which only the evidence of a problem can estimate."""

    zeta: float

    @property
    def fixed(self) -> bool:  # type: ignore[override]
        """No: what is estimated is."""
        return False

    def half_length(self, bias: Array, deviation: Array, zeta: float) -> Array:
        """Refused."""
        raise self._refusal()

    def factor(self, count: int, zeta: float) -> float:
        """Refused."""
        raise self._refusal()

    def tail(self, misfit: float, count: int) -> None:
        """Not known."""
        return None

    def apart(self, zeta: float) -> None:
        """Not known."""
        return None

    def _refusal(self) -> UncertifiedError:
        return UncertifiedError("the standard deviation is unknown, which this does not estimate; ask the evidence")
