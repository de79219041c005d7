"""A threshold of a score with a bound of the harm it does: found in trials, for truths like their samples.

Half of the trials choose the score. On the other half thresholds are tried from the strictest on, until the bound of
the harm rate of one exceeds what is allowed (Learn then Test by a fixed sequence: Angelopoulos, Bates, Candès, Jordan,
Lei 2021). The sequence is fixed by the first half, and the bound of each is exact (Clopper and Pearson), so that the
harm rate of the threshold that is found is at most the allowed one with the stated confidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from ..checks import Array
from ..errors import UncertifiedError
from ..problem.base import Problem
from ..problem.constraints import conformal_quantile, fewest_samples
from ..problem.data import Data
from ..problem.samples import Samples, whitened
from .scores import Comparer, Pairs, Prior, scores
from .trials import ROLES, Solver, answers, norms

# Parts of the first half: each is scored with the truths of the others, as further data are with those of the half.
FOLDS = 5
# The entropy of the order in which samples are taken.
ORDER = 3


def harm_bound(harmed: Any, trials: int, confidence: float) -> Any:
    """The upper bound of Clopper and Pearson of the rate of an event that `trials` have shown `harmed` times."""
    found = betaincinv(np.add(harmed, 1.0), np.maximum(np.subtract(trials, harmed), 1.0), confidence)
    return np.where(np.less(harmed, trials), found, 1.0)


def fewest_trials(harm: float, confidence: float) -> int:
    """With fewer, not even trials without any harm prove its rate: 59 for 5 % and the confidence 95 %."""
    return ceil(log(1.0 - confidence) / log(1.0 - harm) - 1e-9)


def lowest_threshold(
    scores: Array, worse: NDArray[np.bool_], sequence: Array, harm: float, confidence: float
) -> float | None:
    """The last threshold of a descending sequence before the first one whose bound exceeds `harm`; None: the first.

    Parameters
    ----------
    scores, worse
        Of the trials: those with a score at a threshold or above are accepted, which is harm for the worse ones.
    sequence
        Fixed without these trials.
    """
    harmed, descending = np.sort(scores[worse]), np.sort(sequence[np.isfinite(sequence)])[::-1]
    counts = harmed.size - np.searchsorted(harmed, descending, side="left")
    passed = np.logical_and.accumulate(harm_bound(counts, len(scores), confidence) <= harm)
    return float(descending[passed][-1]) if passed.any() else None


@dataclass(frozen=True)
class Calibration:
    """What trials say of a score.

    Attributes
    ----------
    score, threshold
        The learned candidate is accepted if its score is at least the threshold; None: no threshold is safe enough.
    harm, confidence
        The harm rate ``P(accepted and worse)`` is at most `harm` with the confidence.
    bound
        The Clopper-Pearson bound of the harm rate at the threshold.
    samples, trials
        How many there were, and how many of them were for the threshold.
    accepted, harmed, better, gained
        Counts among these: accepted, accepted and worse, better, accepted and better.
    seed
        Of the noise and the order.
    radii
        Conformal quantiles of ``‖q_solver - q‖_Q`` at the confidence of the data, by role.
    """

    score: str
    threshold: float | None
    harm: float
    confidence: float
    bound: float
    samples: int
    trials: int
    accepted: int
    harmed: int
    better: int
    gained: int
    seed: int
    radii: Mapping[str, float]
    prior: Prior = field(repr=False, compare=False)
    comparer: Comparer = field(repr=False, compare=False)
    surprises: Array = field(repr=False, compare=False)
    solvers: Mapping[str, Solver] = field(repr=False, compare=False)

    @property
    def power(self) -> float:
        """The share of the better ones that is accepted."""
        return self.gained / self.better if self.better else 0.0

    @property
    def harm_rate(self) -> float:
        """Of all trials."""
        return self.harmed / self.trials

    @property
    def worse_share(self) -> float:
        """The share of the accepted ones that is worse."""
        return self.harmed / self.accepted if self.accepted else 0.0

    def p_value(self, values: Array) -> float:
        """Conformal p-value of whitened data: how unusual they are beside those of the trials for the threshold."""
        surprise = float(self.prior.surprise(values[None])[0])
        return float(1 + np.sum(self.surprises >= surprise)) / (1 + len(self.surprises))

    def of(self, pairs: Pairs) -> float:
        """The chosen score of one pair."""
        return float(scores(pairs, self.prior)[self.score][0])

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON."""
        names = (
            "score",
            "threshold",
            "harm",
            "confidence",
            "bound",
            "samples",
            "trials",
            "accepted",
            "harmed",
            "better",
        )
        rates = {name: getattr(self, name) for name in ("power", "harm_rate", "worse_share", "seed")}
        return {**{name: getattr(self, name) for name in names}, **rates, "radii": dict(self.radii)}


def calibrate(
    problem: Problem, data: Data, samples: Samples, solvers: Mapping[str, Solver], harm: float, confidence: float
) -> Calibration:
    """Run the solvers on a simulated measurement of each sample, choose the score, and find its threshold.

    Raises
    ------
    UncertifiedError
        There are too few samples, or the data have no law from which measurements could be simulated.
    """
    n, least = len(samples), fewest_trials(harm, confidence)
    half = n // 2
    if n - half < least:
        raise UncertifiedError(
            f"{n} samples leave {n - half} trials for the threshold; at least {least} are needed to prove a harm rate "
            f"of {100.0 * harm:g} % with the confidence {100.0 * confidence:g} %: expected {2 * least - 1} samples"
        )
    order = np.random.default_rng([samples.seed, ORDER]).permutation(n)
    readings = samples.readings(problem, data)
    measured = samples.measured(data, readings)[order]
    truths, seen = samples.fields[order], whitened(data, readings)[order]
    comparer = Comparer(problem, data, truths[:half])
    pairs, errors = _run(problem, data, comparer, truths, measured, solvers)
    usable = np.all(np.isfinite(errors), axis=1)
    # Equal up to rounding is neither.
    better, worse = errors[:, 1] < errors[:, 0], ~(errors[:, 1] <= (1.0 + 1e-12) * errors[:, 0])
    prior, first, second = Prior(seen[:half], np.arange(half)), np.arange(half), np.arange(half, n)
    found = {name: np.where(usable[:half], s, -np.inf) for name, s in _across(pairs[first], seen[:half]).items()}

    def gained(name: str) -> int:
        t = lowest_threshold(found[name], worse[:half], found[name], harm, confidence)
        return 0 if t is None else int(np.sum((found[name] >= t) & better[:half]))

    chosen = max(found, key=gained)
    final = np.where(usable[half:], scores(pairs[second], prior)[chosen], -np.inf)
    t = lowest_threshold(final, worse[half:], found[chosen], harm, confidence)
    accepted = np.zeros(n - half, dtype=bool) if t is None else final >= t
    harmed, gain = int(np.sum(accepted & worse[half:])), int(np.sum(accepted & better[half:]))
    return Calibration(
        score=chosen,
        threshold=t,
        harm=harm,
        confidence=confidence,
        bound=float(harm_bound(harmed, n - half, confidence)),
        samples=n,
        trials=n - half,
        accepted=int(np.sum(accepted)),
        harmed=harmed,
        better=int(np.sum(better[half:])),
        gained=gain,
        seed=samples.seed,
        radii=_radii(errors, 1.0 - data.law.zeta),
        prior=prior,
        comparer=comparer,
        surprises=prior.surprise(pairs.values[half:]),
        solvers=solvers,
    )


def _run(
    problem: Problem, data: Data, comparer: Comparer, truths: Array, measured: Array, solvers: Mapping[str, Solver]
) -> tuple[Pairs, Array]:
    """Pairs of all trials, and the errors of both candidates; NaN where one failed."""
    values = whitened(data, measured)
    parts, errors = [], []
    for rows, found in answers(problem, data, measured, solvers):
        errors.append(np.stack([norms(problem, found[role] - truths[rows]) for role in ROLES], axis=1))
        # Whatever stands for a failed one: its trial is never accepted.
        parts.append(comparer(values[rows], *(np.nan_to_num(found[role]) for role in ROLES)))
    return Pairs.joined(parts), np.concatenate(errors)


def _radii(errors: Array, level: float) -> dict[str, float]:
    """Quantiles of the errors; none where a solver failed, or where there are too few trials for the level."""
    if not np.all(np.isfinite(errors)) or len(errors) < fewest_samples(level):
        return {}
    return {role: conformal_quantile(errors[:, i], level) for i, role in enumerate(ROLES)}


def _across(pairs: Pairs, readings: Array) -> dict[str, Array]:
    """Scores of the trials of the first half, each with the truths of the other folds."""
    n = len(readings)
    found: dict[str, Array] = {}
    for fold in range(FOLDS):
        own, others = np.arange(fold, n, FOLDS), np.flatnonzero(np.arange(n) % FOLDS != fold)
        for name, values in scores(pairs[own], Prior(readings[others], others)).items():
            found.setdefault(name, np.zeros(n))[own] = values
    return found
