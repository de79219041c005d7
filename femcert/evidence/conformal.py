"""Intervals for truths like samples: a Gaussian posterior, with a length that simulated measurements calibrate.

With the prior ``q ~ N(q0, mu L^-1)`` whitened data are ``b ~ N(0, I + mu T L^-1 T')``. The posterior of a functional
psi has the mean ``a . b`` and the variance ``‖a‖² + mu ‖T' a - psi‖²_{L^-1}``, with the weights a that minimize it:
those of `affine`, at the multiplier mu. For each measurement mu is chosen anew, where its data are most likely. The
prior need not be right: mean ± deviation, times the ``1 - zeta`` quantile of ``|mean - psi(q_i)| / deviation`` over
simulated measurements of the samples q_i, is an interval of that confidence, whatever the law of the samples is. If
the samples come with measured values of their own, whatever the law of noise, instruments and errors of the model is.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array
from ..errors import UncertifiedError
from ..problem.base import Problem
from ..problem.constraints import conformal_quantile
from ..problem.data import Data
from ..problem.samples import Samples, as_samples, whitened
from .affine import Affine, golden_sections
from .functionals import Functional
from .interval import Interval, IntervalTable
from .sights import Observed

# Decimal logarithms of the scale mu over its least value; golden sections follow.
SCALES = np.linspace(0.0, 16.0, 33)
# Posteriors that are kept for further data.
MOST_KEPT = 64


class Posterior:
    """Means and deviations of functionals given whitened data, for many data at once.

    Several sets of the class (a ball and a remainder) have variances in the ratio of their squared radii. A model error
    is noise here, of the covariance ``r² E E' / rank E``. Directions that nothing bounds have a flat prior.

    Attributes
    ----------
    known
        What the sensors see of the class.
    least
        The least scale mu: with it a truth moves the best combination of the data as much as noise does. Weak data are
        most likely without any truth, and a deviation of zero calibrates nothing.
    """

    def __init__(self, known: Observed, functionals: Any) -> None:
        m = len(known.free)
        covariance = np.eye(m)
        for part in (part for part in known.parts if part.systematic):
            rank = max(int(np.linalg.matrix_rank(part.sight.gram, hermitian=True)), 1)
            covariance += part.sight.radius**2 / rank * part.sight.gram
        turn = np.linalg.inv(np.linalg.cholesky(covariance))
        parts = tuple(part for part in known.parts if not part.systematic)
        self.known = replace(known, parts=parts).restricted(turn)
        targets, free = self.known.targets(functionals)
        affine = Affine(self.known.sights, m, self.known.free)
        self._start, self._lost = affine.start(free, functionals.shape[1])
        cross, square = np.zeros(self._start.shape), np.zeros(functionals.shape[1])
        gram = np.zeros((m, m))
        for sight, target in zip(self.known.sights, targets, strict=True):
            theta = (sight.radius / self.known.sights[0].radius) ** 2
            moved = sight.gram @ self._start
            gram += theta * sight.gram
            cross += theta * (target.cross - moved)
            square += theta * (target.square - np.sum(self._start * (2.0 * target.cross - moved), axis=0))
        values, V = np.linalg.eigh(affine.projected(gram))
        self._lam, self._basis = np.maximum(values, 0.0), affine.rest @ V
        self._cross, self._square = self._basis.T @ cross, np.maximum(square, 0.0)
        top = float(self._lam.max(initial=0.0))
        self.least = 1.0 / top if top > 0.0 else 1.0

    def __call__(self, values: Array) -> tuple[Array, Array]:
        """Means and standard deviations, a row for each row of whitened data."""
        b = self.known.turned(values.T).T
        seen = b @ self._basis
        mu = self.scale(seen)[:, None]
        gain = mu / (1.0 + mu * self._lam)
        mean = b @ self._start + (gain * seen) @ self._cross
        noise = np.sum(self._start**2, axis=0) + gain**2 @ self._cross**2
        variance = np.sum(self._start**2, axis=0) + mu * self._square - (mu * gain) @ self._cross**2
        return mean, np.where(self._lost, np.inf, np.sqrt(np.maximum(variance, noise)))

    def scale(self, seen: Array) -> Array:
        """Where rows of data ``b ~ N(0, 1 + mu lam)`` are most likely: on a grid, and by golden sections about it."""
        squares = seen**2

        def cost(t: Array) -> Array:
            spread = 1.0 + self.least * 10.0 ** t[:, None] * self._lam
            return np.asarray(np.sum(np.log(spread) + squares / spread, axis=1))

        n, step = len(seen), SCALES[1] - SCALES[0]
        nearest = SCALES[np.argmin([cost(np.full(n, t)) for t in SCALES], axis=0)]
        found, _ = golden_sections(cost, np.maximum(nearest - step, SCALES[0]), nearest + step)
        return np.asarray(self.least * 10.0**found)


def conformal_table(
    problem: Problem,
    known: Observed,
    data: Data,
    asked: Sequence[Functional],
    psi: Any,
    given: Any,
    kept: MutableMapping[Any, Any],
) -> IntervalTable:
    """Intervals that hold together in ``1 - zeta`` of the measurements of truths like the samples.

    Parameters
    ----------
    problem, known, data
        What was measured, what the sensors see of the class, and the data.
    asked, psi
        The functionals, fixed before, and their sparse columns on the dofs.
    given
        `Samples`, or their fields.
    kept
        Where posterior and quantile of the same functionals and samples are, for further data.
    """
    samples, std = as_samples(given), np.array([each.std for each in asked])
    posterior, quantile = _kept(problem, known, data, psi, std, samples, kept)
    mean, deviation = (row[0] for row in posterior(known.values(data)[None]))
    mean, deviation = mean + _centre(known, psi), np.hypot(deviation, std)
    half = np.where(np.isfinite(deviation), quantile * deviation, np.inf)
    confidence = 1.0 - data.law.zeta
    share = f"{100.0 * confidence:.4g} %"
    how = "" if samples.values is None else ", measured as they are"
    claim = f"in {share} of measurements of truths like the {len(samples)} samples{how} (discrete)"
    source = f"conformal, {len(samples)} samples, seed {samples.seed}"
    return IntervalTable(
        tuple(
            Interval(
                name=each.name,
                lower=Bound(float(mean[i] - half[i]), "lower", source, confidence, signed=True),
                upper=Bound(float(mean[i] + half[i]), "upper", source, confidence, signed=True),
                estimate=float(mean[i]),
                half_length=float(half[i]),
                limit=None,
                bias=0.0,
                model=0.0,
                deviation=float(deviation[i]),
                confidence=confidence,
                claim=claim,
            )
            for i, each in enumerate(asked)
        )
    )


def _kept(
    problem: Problem, known: Observed, data: Data, psi: Any, std: Array, samples: Samples, kept: Any
) -> tuple[Posterior, float]:
    """Posterior and quantile, made once for all data of the same law."""
    trials, found = kept.setdefault("trials", {}), kept.setdefault("conformal", {})
    if samples.digest not in trials:
        measured = samples.measurements(problem, data)
        trials.clear()
        trials[samples.digest] = whitened(data, measured - known.origin)
    key = (samples.digest, psi.data.tobytes(), psi.indices.tobytes(), psi.indptr.tobytes(), std.tobytes())
    if key not in found:
        if len(found) >= MOST_KEPT:
            found.pop(next(iter(found)))
        found[key] = _calibrated(known, trials[samples.digest], psi, std, samples, 1.0 - data.law.zeta)
    return found[key]


def _calibrated(
    known: Observed, values: Array, psi: Any, std: Array, samples: Samples, confidence: float
) -> tuple[Posterior, float]:
    """The posterior, and the quantile of the largest score of all functionals over the trials of samples."""
    posterior = Posterior(known, psi)
    mean, deviation = posterior(values)
    # With the noise of readings that were not made.
    truth = np.asarray(samples.fields @ psi)
    truth = truth + std * np.random.default_rng([samples.seed, 2]).standard_normal(truth.shape)
    missed, deviation = np.abs(mean + _centre(known, psi) - truth), np.hypot(deviation, std)
    if np.any((deviation == 0.0) & (missed > 0.0)):
        raise UncertifiedError("a functional has no deviation under the norm of the class: there is no scale for it")
    scores = np.divide(missed, deviation, out=np.zeros(missed.shape), where=missed > 0.0)
    return posterior, conformal_quantile(np.max(scores, axis=1), confidence)


def _centre(known: Observed, psi: Any) -> Any:
    """What the functionals are at the centre of the class."""
    ball = known.forward.parameters.ball
    return 0.0 if ball is None or ball.centre is None else psi.T @ ball.centre
