"""Scores that say how likely a learned candidate is nearer to the truth than the baseline, for many pairs at once.

The learned candidate is nearer if ``g = 2 (d, q)_Q - (‖q_l‖² - ‖q_b‖²) > 0`` with ``d = q_l - q_b``. That is linear in
the truth q, so that interval and posterior of g are those of a linear functional. A score orders measurements; which
one orders them best, and from where on the learned candidate is taken, is found in trials (`calibration`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import Array
from ..errors import InputError, UncertifiedError
from ..evidence.affine import Affine
from ..evidence.sights import observed
from ..problem.base import Problem
from ..problem.data import Data
from ..problem.noise import Gaussian
from ..problem.samples import predictions

# Of the likelihood that weights samples: the exponent is this over the number of data. The whole likelihood would leave
# the weight to one or two samples.
TEMPER = 6.0
# How many samples near the data make the moments of a prior, in effect: one over the sum of squares of their weights.
NEAR, BISECTIONS = 50.0, 40
# Numbers per batch of pairs.
MOST_NUMBERS = 4_000_000
# A deviation is at least this part of the prior's.
LEAST_DEVIATION = 1e-3


@dataclass(frozen=True)
class Pairs:
    """Pairs of candidates, one for each of t measurements.

    Attributes
    ----------
    values
        The whitened data b, ``(t, m)``.
    inner
        ``(q_j, d)_Q`` with n truths that stand for others, ``(t, n)``.
    sizes
        ``‖q_l‖² - ‖q_b‖²``.
    misfits
        ``‖T q_b - b‖ - ‖T q_l - b‖``.
    margins
        The estimate of ``g / 2`` over the half length of its simultaneous interval, whatever the truth; zeros where the
        class has none.
    """

    values: Array
    inner: Array
    sizes: Array
    misfits: Array
    margins: Array

    def __getitem__(self, rows: NDArray[Any]) -> Pairs:
        return Pairs(*(getattr(self, part.name)[rows] for part in fields(self)))

    @classmethod
    def joined(cls, parts: list[Pairs]) -> Pairs:
        """All in one."""
        return cls(*(np.concatenate([getattr(each, part.name) for each in parts]) for part in fields(cls)))


class Comparer:
    """Makes `Pairs` of candidates of one problem and one law of noise.

    Parameters
    ----------
    problem, data
        Of the data, the law and the weights count.
    truths
        Rows of dof vectors that stand for other truths.
    """

    def __init__(self, problem: Problem, data: Data, truths: Array) -> None:
        self.problem, self.data, self.truths = problem, data, truths
        self._known = None
        if problem.forward is not None:
            try:
                self._known = observed(problem.forward, data)
            except UncertifiedError:
                # The class has no simultaneous intervals.
                return
            self._affine = Affine(self._known.sights, len(self._known.free), self._known.free)
            # The weights must not depend on the values of the data, as deviations of relative noise do.
            self._law = Gaussian(data.law.zeta)

    def check(self, problem: Problem, data: Data) -> None:
        """Refuse another problem, or data of another law."""
        same = problem is self.problem and data.weighs_like(self.data) and data.model is self.data.model
        if not (same and (data is self.data or (data.law.fixed and data.law == self.data.law))):
            raise InputError("the rule was calibrated for another problem or noise; expected data.with_values(...)")

    def __call__(self, values: Array, baseline: Array, learned: Array) -> Pairs:
        """Of rows of whitened data and of the dof vectors of both candidates."""
        problem, data = self.problem, self.data
        d = learned - baseline
        weighted = (problem.parameters.weight @ d.T).T
        sizes = np.sum(weighted * (learned + baseline), axis=1)
        misfits = [np.linalg.norm(_white(data, predictions(problem, q)) - values, axis=1) for q in (baseline, learned)]
        margins = self._margins(values, weighted, sizes)
        return Pairs(values, weighted @ self.truths.T, sizes, misfits[0] - misfits[1], margins)

    def _margins(self, values: Array, functionals: Array, sizes: Array) -> Array:
        known = self._known
        if known is None:
            return np.zeros(len(values))
        affine, law = self._affine, self._law
        targets, free = known.targets(functionals.T)
        factor = law.factor(affine.count if known.parts else affine.rank, law.zeta)
        found = affine.estimates(targets, free, law, law.zeta, simultaneous=factor)
        centred = values - _white(self.data, known.origin[None])
        ball = self.problem.parameters.ball
        about = 0.0 if ball is None or ball.centre is None else functionals @ ball.centre
        estimate = np.sum(found.weights.T * centred, axis=1) + about
        return _ratio(estimate - sizes / 2.0, found.half_length)


def _white(data: Data, readings: Array) -> Array:
    """Rows, whitened; what is subtracted of measurements for their model error is not in them."""
    return np.asarray(data.whiten(readings.T).T)


@dataclass(frozen=True)
class Prior:
    """Truths that stand for others, by what is read of them.

    Attributes
    ----------
    readings
        Whitened, without noise, ``(n, m)``.
    rows
        Which of the truths of `Pairs.inner` they are.
    """

    readings: Array
    rows: NDArray[Any]

    def surprise(self, values: Array) -> Array:
        """``(b - mean)' (I + T Sigma T')^-1 (b - mean)``: how far data are from those of the samples."""
        middle = self.readings.mean(axis=0)
        R, away = self.readings - middle, (values - middle).T
        covariance = np.eye(len(away)) + R.T @ R / max(len(R) - 1, 1)
        return np.asarray(np.sum(away * np.linalg.solve(covariance, away), axis=0))

    def gaussian(self, pairs: Pairs) -> Array:
        """Mean over deviation of g, with the mean and the covariance Sigma of the truths as a Gaussian prior."""
        even = np.full((1, len(self.readings)), 1.0 / len(self.readings))
        return self._gaussian(pairs, np.broadcast_to(even, (len(pairs.values), even.size)))

    def weighted(self, pairs: Pairs) -> Array:
        """Mean over deviation of g, over the truths weighted by a power of their likelihood."""
        w, inner = self._weights(pairs.values, np.array(TEMPER / self.readings.shape[1])), pairs.inner[:, self.rows]
        mean = np.sum(w * inner, axis=1)
        variance = np.sum(w * (inner - mean[:, None]) ** 2, axis=1)
        return _scored(mean - pairs.sizes / 2.0, variance, np.var(inner, axis=1))

    def near(self, pairs: Pairs) -> Array:
        """As `gaussian`, with the moments of the truths that explain the data best, `NEAR` in effect."""
        effective = min(NEAR, len(self.readings) / 3.0)
        low, high = np.full(len(pairs.values), -12.0), np.full(len(pairs.values), 2.0)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2.0
            w = self._weights(pairs.values, 10.0 ** middle[:, None])
            many = effective * np.sum(w**2, axis=1) < 1.0
            low, high = np.where(many, middle, low), np.where(many, high, middle)
        return self._gaussian(pairs, self._weights(pairs.values, 10.0 ** low[:, None]))

    def _weights(self, values: Array, exponent: Array) -> Array:
        """Powers of the likelihoods of the truths, with the sum one in each row."""
        squares = np.sum(self.readings**2, axis=1) - 2.0 * values @ self.readings.T
        w = np.exp(-0.5 * exponent * (squares - squares.min(axis=1, keepdims=True)))
        return np.asarray(w / w.sum(axis=1, keepdims=True))

    def _gaussian(self, pairs: Pairs, weights: Array) -> Array:
        """The posterior of g with the moments of the truths by these weights, a row for each pair; in batches."""
        inner, m, found = pairs.inner[:, self.rows], self.readings.shape[1], []
        batch = max(MOST_NUMBERS // self.readings.size, 1)
        for i in range(0, len(weights), batch):
            rows = slice(i, i + batch)
            w, root = weights[rows], np.sqrt(weights[rows])
            mean, expected = w @ self.readings, np.sum(w * inner[rows], axis=1)
            R = root[:, :, None] * (self.readings - mean[:, None, :])
            D = root * (inner[rows] - expected[:, None])
            seen = np.einsum("tnm,tn->tm", R, D)
            gain = np.linalg.solve(np.eye(m) + R.transpose(0, 2, 1) @ R, seen[:, :, None])[:, :, 0]
            expected = expected + np.sum(gain * (pairs.values[rows] - mean), axis=1) - pairs.sizes[rows] / 2.0
            prior = np.sum(D**2, axis=1)
            found.append(_scored(expected, prior - np.sum(gain * seen, axis=1), prior))
        return np.concatenate(found)


def scores(pairs: Pairs, prior: Prior) -> dict[str, Array]:
    """Every score of all pairs by name; the larger, the more is said for the learned candidate."""
    return {
        "interval of the difference": pairs.margins,
        "misfits": pairs.misfits,
        "posterior, Gaussian prior": prior.gaussian(pairs),
        "posterior, weighted samples": prior.weighted(pairs),
        "posterior, Gaussian prior of samples near the data": prior.near(pairs),
    }


def _scored(mean: Array, variance: Array, prior: Array) -> Array:
    least = LEAST_DEVIATION**2 * prior
    return _ratio(mean, np.sqrt(np.maximum(variance, least)))


def _ratio(above: Array, below: Array) -> Array:
    """Zero where there is nothing to compare."""
    return np.divide(above, below, out=np.zeros(len(above)), where=(below > 0.0) & np.isfinite(below))
