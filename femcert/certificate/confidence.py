"""Upper confidence bounds for the mean of samples in ``[0, B]``: Hoeffding, empirical Bernstein, betting.

Each takes M independent samples with the same mean along the last axis (rows are repetitions), the sure bound B and the
probability zeta of a failure, and returns a number (for each row) that is below the mean with probability zeta at most.
M is fixed beforehand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import Array, number, real_array
from ..errors import InputError

# Of the wealth that one bet may lose (Waudby-Smith and Ramdas, section 4.1).
STAKE = 0.75
# Halvings of the interval that holds the betting bound: of its length 8e-9 is left, on the safe side.
HALVINGS = 27
# Samples that are worked on at a time, so that they stay in the processor's cache.
BLOCK = 250_000
# Samples above the bound by less than this share are rounding.
ROUNDING = 1e-9


def check_zeta(zeta: float) -> float:
    """`zeta` if it lies strictly between 0 and 1."""
    value = number(zeta, "zeta")
    if not 0.0 < value < 1.0:
        raise InputError(f"zeta is {value}; expected a probability strictly between 0 and 1")
    return value


def hoeffding(samples: Any, envelope: float, zeta: float) -> Any:
    """``mean + B (log(1/zeta) / 2M)^(1/2)`` (high-prob-residual).

    Parameters
    ----------
    samples
        M independent samples in ``[0, envelope]``, or rows of them.
    envelope
        B, a sure upper bound of the samples.
    zeta
        Probability that the bound fails.

    Returns
    -------
    float or array
        An upper bound of the mean with probability ``1 - zeta``, one per row.

    Raises
    ------
    InputError
        A sample is negative or above the envelope, so that nothing would hold.
    """
    x, B, zeta = _checked(samples, envelope, zeta)
    return _plain(x.mean(axis=-1) + B * np.sqrt(np.log(1.0 / zeta) / (2.0 * x.shape[-1])))


def bernstein(samples: Any, envelope: float, zeta: float) -> Any:
    """``mean + (2 V L / M)^(1/2) + 7 B L / 3(M - 1)``, ``L = log(2/zeta)``, V the sample variance; at most B.

    The empirical Bernstein bound of Maurer and Pontil (2009, Theorem 4): small where the samples vary little. Arguments
    as for `hoeffding`.
    """
    x, B, zeta = _checked(samples, envelope, zeta)
    M = x.shape[-1]
    if M == 1 or B == 0.0:
        return _plain(np.full(x.shape[:-1], B))
    # In parts of B, so that squares of samples in tiny units are not lost.
    x, L = x / B, np.log(2.0 / zeta)
    spread = np.sqrt(2.0 * x.var(axis=-1, ddof=1) * L / M)
    return _plain(B * np.minimum(x.mean(axis=-1) + spread + 7.0 * L / (3.0 * (M - 1)), 1.0))


def betting(samples: Any, envelope: float, zeta: float) -> Any:
    """The smallest mean m for which the capital of a sequence of bets exceeds ``1 / zeta``; at most B.

    With ``B = 1`` the capital ``K_t(m) = prod_{i <= t} (1 + b_i(m) (m - X_i))`` is a nonnegative martingale if m is the
    mean and each bet ``0 <= b_i(m) <= 1 / (1 - m)`` depends on earlier samples only. Ville's inequality: it ever
    reaches ``1/zeta`` with probability zeta at most. Every factor increases with m, so the means that survive form an
    interval, whose upper end is returned. The bets are those of Waudby-Smith and Ramdas (2024, section 4) for a fixed
    M, one-sided:

        ``b_i(m) = min((2 log(1/zeta) / (M s²_{i-1}))^(1/2), 3/4 / (1 - m))``,

    ``s²_t = (1/4 + sum (X_j - m_j)²)/(t + 1)`` and ``m_t = (1/2 + sum X_j)/(t + 1)``, sums over ``j <= t``. Arguments
    as for `hoeffding`; the order of the samples matters, so it must not have been chosen.
    """
    x, B, zeta = _checked(samples, envelope, zeta)
    if B == 0.0:
        return _plain(np.zeros(x.shape[:-1]))
    rows = (x / B).reshape(-1, x.shape[-1])
    step = max(1, BLOCK // rows.shape[1])
    tops = [_betting_rows(rows[i : i + step], zeta) for i in range(0, len(rows), step)]
    return _plain(B * np.concatenate(tops).reshape(x.shape[:-1]))


def _betting_rows(x: Array, zeta: float) -> Array:
    bets = _bets(x, zeta)
    low, high = np.zeros(len(x)), np.ones(len(x))
    for _ in range(HALVINGS):
        m = 0.5 * (low + high)
        b = np.minimum(bets, (STAKE / (1.0 - m))[:, None])
        # Factors are positive and finite: capital that overflows exceeds 1 / zeta, capital that underflows does not.
        with np.errstate(over="ignore", under="ignore"):
            rich = np.cumprod(1.0 + b * (m[:, None] - x), axis=1).max(axis=1) >= 1.0 / zeta
        high = np.where(rich, m, high)
        low = np.where(rich, low, m)
    return high


def _bets(x: Array, zeta: float) -> Array:
    """The predictable bets before they are cut to what may be lost."""
    M = x.shape[1]
    t = np.arange(1, M + 1)
    mean = (0.5 + np.cumsum(x, axis=1)) / (t + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2, axis=1)) / (t + 1)
    before = np.concatenate([np.full((len(x), 1), 0.25), variance[:, :-1]], axis=1)
    return np.asarray(np.sqrt(2.0 * np.log(1.0 / zeta) / (M * before)))


def _checked(samples: Any, envelope: float, zeta: float) -> tuple[Array, float, float]:
    x, B = real_array(samples, "samples"), number(envelope, "envelope", least=0.0)
    if x.ndim == 0 or x.shape[-1] == 0:
        raise InputError(f"samples has shape {x.shape}; expected one sample at least")
    least, most = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
    if least < 0.0 or most > B * (1.0 + ROUNDING):
        raise InputError(f"the samples lie between {least:.4g} and {most:.4g}; expected between 0 and {B:.4g}")
    return np.minimum(x, B), B, check_zeta(zeta)


def _plain(values: Any) -> Any:
    return float(values) if np.ndim(values) == 0 else np.asarray(values)


BOUNDS = {"hoeffding": hoeffding, "bernstein": bernstein, "betting": betting}
