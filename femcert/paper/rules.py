"""The rules of the library, evaluated on many trials at once; same radii, same decisions.

`GuaranteedRadius` is not among them: it is about the truth of the equation itself, while the truth of the sweep is one
of the discretized problem. Nor is `StochasticRadius`, whose physics residual is sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from ..checks import Array
from ..errors import InputError
from ..linalg.accuracy import EPS
from .setup import POISSON
from .trials import Batch, Candidates

OPERATIONAL, RESIDUAL, EXACT = "operational", "residual", "exact"
DOMINANCE, GAUSSIAN = "dominance", "dominance, zeta = 0.05"
ZETA = 0.05


@dataclass(frozen=True)
class BatchDecision:
    """What a rule says of each trial.

    Attributes
    ----------
    accepted
        Whether the learned candidate replaces the baseline.
    baseline, learned
        Radii; None for a rule that compares the candidates without them. Infinite where there is no certificate.
    margin
        Of a rule without radii: the learned candidate is accepted where this is not above zero.
    decided
        Of a rule without radii: where it could be applied; None: everywhere.
    """

    accepted: NDArray[np.bool_]
    baseline: Array | None = None
    learned: Array | None = None
    margin: Array | None = None
    decided: NDArray[np.bool_] | None = None

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """Where nothing could be decided: the rule does not apply, or the baseline has no certificate."""
        if self.baseline is not None:
            return np.asarray(~np.isfinite(self.baseline))
        return np.zeros(self.accepted.shape, dtype=bool) if self.decided is None else ~self.decided

    @property
    def ratio(self) -> Array:
        """``R_learn / R_base``, infinite where the baseline has no certificate; NaN for a rule without radii."""
        if self.baseline is None or self.learned is None:
            return np.full(self.accepted.shape, np.nan)
        certified = np.isfinite(self.baseline)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(certified, self.learned / self.baseline, np.inf)


BatchRule = Callable[[Batch], BatchDecision]


def weighted(trials: Batch, *, pde: float = 1.0, bc: float = 1.0, optimality: float = 0.0) -> BatchDecision:
    """``R = C (data + a_pde pde + a_bc bc + delta + a_opt optimality)``, the paper's R_op; by default its R_delta."""
    return _smaller(*(_weighted(trials, c, pde, bc, optimality) for c in (trials.baseline, trials.learned)))


def exact(trials: Batch) -> BatchDecision:
    """``R = max { ‖x - x'‖ : ‖A x' - y‖ <= delta }``, the smallest radius that the data allow."""
    return _smaller(*(_exact(trials, c) for c in (trials.baseline, trials.learned)))


def dominance(trials: Batch, *, zeta: float | None = None) -> BatchDecision:
    """Accepts where no consistent truth x' has ``‖x_l - x'‖ > ‖x_b - x'‖``: with ``d = x_l - x_b``, where

        ``‖x_l‖² - ‖x_b‖² - 2 d . x_LS + 2 w ‖A^{+T} d‖ <= 0``.

    The half width w is ``(delta² - ‖y_perp‖²)^(1/2)`` (sure, for noise within its level delta), or, with `zeta`, the
    standard deviation of the noise times ``chi2_k(1 - zeta)^(1/2)`` for k coordinates, which holds for candidates that
    depend on the noise: it is Gaussian with covariance ``deviation² I``, and this is taken as known. Without noise both
    are the sure test.
    """
    xl, xb, found = trials.learned.x, trials.baseline.x, trials.fit
    d = xl - xb
    value, point = found.support(-d)
    if zeta is not None:
        level = trials.deviation * np.sqrt(chdtri(d.shape[-1], zeta))
        likely, other = found.about_least_squares(level).support(-d)
        noisy = trials.deviation > 0.0
        value, point = np.where(noisy, likely, value), np.where(noisy[:, None], other, point)
    margin = np.sum(d * (xl + xb), axis=-1) + 2.0 * value
    sizes = sum(np.linalg.norm(x, axis=-1) for x in (xl, xb, point))
    eps = trials.rounding + 64.0 * np.sqrt(d.shape[-1]) * EPS
    margin = margin + eps * np.linalg.norm(d, axis=-1) * sizes
    decided = _determined(trials)
    return BatchDecision(decided & (margin <= 0.0), margin=margin, decided=decided)


# The weights of the paper's sweep are those of its Poisson experiment; the boundary residual counts fully.
RULES: Mapping[str, BatchRule] = MappingProxyType(
    {
        OPERATIONAL: partial(weighted, pde=POISSON.pde, bc=1.0, optimality=POISSON.optimality),
        RESIDUAL: weighted,
        EXACT: exact,
        DOMINANCE: dominance,
        GAUSSIAN: partial(dominance, zeta=ZETA),
    }
)


def checked(name: str, said: Any, trials: int) -> BatchDecision:
    """What a rule said, if it is one answer for each trial: anything else must not pass for an acceptance.

    Raises
    ------
    InputError
        It is not; the message names the rule.
    """
    if not isinstance(said, BatchDecision):
        raise InputError(f"the rule {name!r} returned a {type(said).__name__}; expected a BatchDecision")
    for part in ("accepted", "baseline", "learned", "decided"):
        values, flags = getattr(said, part), part in ("accepted", "decided")
        if values is None and part != "accepted":
            continue
        if type(values) is not np.ndarray or values.shape != (trials,):
            raise InputError(f"the rule {name!r} returned {part} of the wrong shape; expected an array ({trials},)")
        if values.dtype.kind not in ("b" if flags else "fiu"):
            came = f"values of type {values.dtype} as {part}"
            raise InputError(f"the rule {name!r} returned {came}; expected {'True and False' if flags else 'numbers'}")
        if not flags and not np.all(values >= 0):
            raise InputError(f"the rule {name!r} returned {values.min():g} as {part}; expected radii of at least 0")
    # Of a subclass, too, the ratio is that of the radii.
    found = BatchDecision(said.accepted, said.baseline, said.learned, decided=said.decided)
    if np.any(found.accepted & found.undecided):
        raise InputError(f"the rule {name!r} accepts where it decides nothing; expected a baseline with a radius there")
    return found


def _weighted(trials: Batch, c: Candidates, pde: float, bc: float, optimality: float) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        total = c.data + pde * c.pde + bc * c.bc + optimality * c.optimality
        radius = trials.constant * (total + trials.level)
        proven, allowance = _proven(trials, c)
        # The library reports the larger one where the radius is a bound.
        holds = proven <= radius * (1.0 + 1e-8) + trials.rounding * np.linalg.norm(c.x, axis=-1)
        certified = np.isfinite(trials.constant) & _explained(trials)
        return np.where(certified, np.where(holds, np.maximum(radius, proven + allowance), radius), np.inf)


def _exact(trials: Batch, c: Candidates) -> Array:
    distance, _ = trials.fit.farthest(c.x)
    distance = (distance + 2.0 * trials.rounding * np.linalg.norm(c.x, axis=-1)) / trials.kept
    with np.errstate(invalid="ignore", over="ignore"):
        least = np.minimum(distance, sum(_proven(trials, c)))
    return np.where(_determined(trials), np.where(np.isfinite(trials.constant), least, distance), np.inf)


def _proven(trials: Batch, c: Candidates) -> tuple[Array, Array]:
    """``C (‖A x - y‖ + delta)``, which needs no state, and what rounding may add to it."""
    C, size = trials.constant, np.linalg.norm(c.x, axis=-1)
    shown = trials.fit.singular[..., 0] * size + c.response + np.linalg.norm(trials.values, axis=-1)
    allowance = C * (trials.rounding * shown + trials.error * size) + trials.rounding * size
    return C * (c.misfit + trials.level), allowance


def _determined(trials: Batch) -> NDArray[np.bool_]:
    """Whether some parameter explains the data within the noise level, and not arbitrarily large ones do."""
    return _explained(trials) & np.isfinite(trials.fit.slack)


def _explained(trials: Batch) -> NDArray[np.bool_]:
    return np.asarray(trials.level >= trials.fit.least)


def _smaller(baseline: Array, learned: Array) -> BatchDecision:
    """The paper's decision ``R_learn <= R_base``; no baseline without a certificate is replaced."""
    return BatchDecision(np.isfinite(baseline) & (learned <= baseline), baseline=baseline, learned=learned)
