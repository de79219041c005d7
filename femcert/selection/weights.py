"""Choices of the regularization weight: discrepancy principle, generalized cross validation, L-curve."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from ..errors import InputError
from .ridge import Ridge

CHOICES = ("discrepancy", "gcv", "lcurve")
# Candidates per curve; each costs a few vector operations only.
GRID = 400


def choose_weight(ridge: Ridge, method: str, *, noise_level: float, observations: int) -> float:
    """The regularization weight by `method`.

    ``"discrepancy"``: ``‖F c - y‖ = noise_level``. ``"gcv"``: minimizes ``‖F c - y‖² / trace(I - A)²``.
    ``"lcurve"``: the corner (largest curvature) of ``(log ‖F c - y‖, log ‖c‖)``.
    """
    if not ridge.sigma.size:
        raise InputError("the sensors see no parameter of the class, so no weight can be chosen; give weight=...")
    if not np.any(ridge.beta):
        raise InputError("the data are zero, or the class cannot change them; no weight can be chosen")
    if method == "discrepancy":
        return _discrepancy(ridge, noise_level)
    logs = np.linspace(2.0 * np.log(ridge.sigma[-1]) - 5.0, 2.0 * np.log(ridge.sigma[0]) + 2.0, GRID)
    if method == "gcv":
        return _gcv(ridge, logs, observations)
    if method == "lcurve":
        return _lcurve(ridge, logs)
    raise InputError(f"choose is {method!r}; expected one of {', '.join(CHOICES)}")


def _discrepancy(ridge: Ridge, noise_level: float) -> float:
    least = float(np.sqrt(ridge.outside))
    most = float(np.sqrt(ridge.outside + ridge.beta @ ridge.beta))
    if not noise_level > least:
        raise InputError(
            f"the discrepancy principle needs a noise level above {least:.4g}, the misfit of the best fit; "
            f"{noise_level:.4g} came"
        )
    if not noise_level < most:
        raise InputError(
            f"the noise level {noise_level:.4g} is not below the norm {most:.4g} of the data, so a zero parameter "
            "fits them; the discrepancy principle has no answer"
        )
    low, high = 2.0 * np.log(ridge.sigma[-1]), 2.0 * np.log(ridge.sigma[0])
    while ridge.misfit(float(np.exp(low))) > noise_level and low > -600.0:
        low -= 10.0
    while ridge.misfit(float(np.exp(high))) < noise_level and high < 600.0:
        high += 10.0
    return float(np.exp(brentq(lambda t: ridge.misfit(np.exp(t)) - noise_level, low, high, xtol=1e-12)))


def _gcv(ridge: Ridge, logs: np.ndarray, observations: int) -> float:
    def score(t: float) -> float:
        weight = np.exp(t)
        trace = observations - np.sum(ridge.sigma**2 / (ridge.sigma**2 + weight))
        return float(ridge.misfit(weight) ** 2 / trace**2)

    best = int(np.argmin([score(t) for t in logs]))
    around = (logs[max(best - 1, 0)], logs[min(best + 1, len(logs) - 1)])
    return float(np.exp(minimize_scalar(score, bounds=around, method="bounded", options={"xatol": 1e-10}).x))


def _lcurve(ridge: Ridge, logs: np.ndarray) -> float:
    x = np.log([max(ridge.misfit(np.exp(t)), 1e-300) for t in logs])
    y = np.log([max(ridge.size(np.exp(t)), 1e-300) for t in logs])
    dx, dy = np.gradient(x, logs), np.gradient(y, logs)
    ddx, ddy = np.gradient(dx, logs), np.gradient(dy, logs)
    speed = np.maximum(dx**2 + dy**2, 1e-300)
    curvature = (dx * ddy - dy * ddx) / speed**1.5
    # The ends of the range are flat and their differences one-sided.
    inner = slice(2, -2)
    return float(np.exp(logs[inner][np.argmax(curvature[inner])]))
