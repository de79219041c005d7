"""The dominance rule: a learned candidate that is no farther from any consistent truth than the baseline."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..checks import Array, count, frozen, number
from ..errors import InputError, UncertifiedError
from ..evidence import Evidence, Feasible, evidence
from ..linalg.accuracy import EPS
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.data import Data
from ..problem.splitting import at_level, thinned
from .comparison import Comparison
from .confidence import check_zeta
from .exact import ExactJudge, ExactRadius

# Of a fresh seed: a whole number in JSON wherever it is read.
SEED_BITS = 53
FROM_ONE_PART = "over the noise, for candidates made from one part of the data and judged by the other"


@dataclass(frozen=True, kw_only=True)
class Dominance(ExactRadius):
    """Accepts only if the learned candidate is no farther than the baseline from every consistent truth.

    A smaller radius does not prove a smaller error; this does. In coordinates orthonormal in Q, with ``d = x_l - x_b``
    and the consistent set E, the largest value over E of ``‖q_l - q'‖² - ‖q_b - q'‖²`` is

        ``‖x_l‖² - ‖x_b‖² + ‖q_perp,l‖² - ‖q_perp,b‖² - 2 min_{x in E} d . x``,

    so that only the stability in the direction d matters: without a ball the minimum is
    ``d . x_LS - (delta² - ‖y_perp‖²)^(1/2) ‖F^{+T} d‖``, with a ball it is bounded by its convex dual.

    Parameters
    ----------
    zeta
        None: the level of the data, ``Data.gaussian(..., confidence=1 - zeta)``; sure for noise within its level. The
        probability that the learned candidate is accepted *and* worse is zeta at most; that is a share of all
        measurements, not of the accepted ones. Only the noise is random; the truth, a member of the class, and the
        sensors are fixed before. The candidates may depend on the data in any way, as all reconstructions do.

        On a span E is the confidence ellipsoid ``‖F (x - x_LS)‖² <= chi2_k(1 - zeta)`` of the k coordinates, so the
        half width is ``chi2_k(1 - zeta)^(1/2) ‖F^{+T} d‖`` (Scheffé), larger with a remainder or model error. On a ball
        ``d . x`` is at least the lower end of its simultaneous interval, `Evidence.interval`. With ``Data(values,
        noise_level, covariance)`` and a number here, for data that determine the class; a ball does not count.
    thinning
        g: the data are split into ``y + g w`` and ``y - w / g`` with ``w ~ N(0, C)`` drawn here, C the covariance of
        the noise. Both candidates are made from the first part, by solvers, and judged by the second one, for which d
        is fixed: so the one-sided bound with the best weights takes the place of the simultaneous one,
        ``bias + z_{1-zeta} (1 + 1 / g²)^(1/2) ‖a‖``. For linear problems, Gaussian data of known deviations, and
        candidates that come as callables. What is handed out was made from the first part, too.
    seed
        Of that one draw. None takes a fresh one from the operating system, which the record of a selection shows.
        Repeating the draw until the result is favourable makes the level void.
    guarantee
        As in `ExactRadius`, whose radii the certificates show.

    Notes
    -----
    What it compares: the distances of the two candidates from one and the same truth, for every truth that explains the
    data. The other rules compare radii, each of which belongs to another truth. Where the data leave open which of the
    candidates is nearer, it keeps the baseline.
    """

    zeta: float | None = None
    thinning: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thinning is not None:
            object.__setattr__(self, "thinning", number(self.thinning, "thinning", above=0.0))
            if self.guarantee == "continuous":
                raise InputError("thinning is for guarantee='discrete'; the mesh's error is no Gaussian noise")
        if self.seed is not None:
            object.__setattr__(self, "seed", count(self.seed, "seed", least=0))
        if self.zeta is not None:
            object.__setattr__(self, "zeta", check_zeta(self.zeta))
            if self.guarantee == "continuous":
                raise InputError("zeta is for guarantee='discrete'; the mesh's error is no Gaussian noise")

    def prepare(self, problem: Problem, data: Data, solvers: Mapping[str, Any] | None = None) -> DominanceJudge:
        """The judge, with the consistent set, the evidence, or the data in two parts."""
        random = data.law.zeta > 0.0
        if self.zeta is not None and data.covariance is None:
            raise InputError("zeta is for Gaussian noise of known covariance; expected Data(..., covariance=...)")
        if (self.zeta is not None or self.thinning is not None) and problem.forward is None:
            raise UncertifiedError("zeta is for linear problems; the error of a linearization is no Gaussian noise")
        if self.zeta is not None and random:
            data = at_level(data, self.zeta)
        if self.thinning is not None:
            return ThinnedJudge(self, problem, data, solvers)
        judge = DominanceJudge(self, problem, data)
        known = judge.evidence is not None or judge.asked is not None
        if not known and self.guarantee == "discrete" and problem.forward is not None:
            k = problem.parameters.dimension
            raise UncertifiedError(f"dominance needs the consistent set, which is not made for {k} coordinates")
        return judge

    def to_dict(self) -> dict[str, Any]:
        """Name and options, for the record."""
        split = {} if self.thinning is None else {"thinning": self.thinning, "seed": self.seed}
        return {**super().to_dict(), "zeta": self.zeta, **split}


class DominanceJudge(ExactJudge):
    """Distances from one and the same truth, for every consistent one."""

    rule: Dominance

    def compare(self, baseline: Candidate, learned: Candidate) -> Comparison:
        """The margin, and the truth at which the learned candidate compares worst."""
        if self.asked is not None:
            return self.by_evidence(self.asked, baseline, learned)
        evidence = self.evidence_at(baseline)
        (xl, outside_l), (xb, outside_b) = (
            evidence.coordinates(c.parameter, self.split(c).coordinates) for c in (learned, baseline)
        )
        d = xl - xb
        towards, point = self._least(evidence, d)
        if np.array_equal(learned.parameter, baseline.parameter):
            outside = 0.0
        elif evidence.scope == "discrete":
            outside = outside_l**2 - outside_b**2
        else:
            # What lies outside of a class of functions is not quite orthogonal to it.
            far_l, far_b = evidence.consistent.farthest(np.stack([xl, xb]))[0]
            outside = outside_l**2 + 2.0 * outside_l * float(far_l) + 2.0 * outside_b * float(far_b)
        margin = float(d @ (xl + xb)) + outside - 2.0 * towards
        sizes = float(np.linalg.norm(xl) + np.linalg.norm(xb) + np.linalg.norm(point))
        eps = self.problem.rounding + 64.0 * np.sqrt(len(d)) * EPS
        zeta = self.rule.zeta
        margin += eps * (float(np.linalg.norm(d)) * sizes + abs(outside))
        return Comparison(margin, frozen(evidence.field(point)), None if zeta is None else 1.0 - zeta)

    def _least(self, evidence: Feasible, d: Array) -> tuple[float, Array]:
        """Lower bound of ``d . x`` at the truth, and a point where it is (nearly) reached."""
        consistent, rows, zeta = evidence.consistent, -d[None], self.rule.zeta
        found = consistent.support(rows) if zeta is None else consistent.confidence_support(rows, zeta)
        return -float(found[0][0]), found[1][0]

    def by_evidence(
        self, asked: Evidence, baseline: Candidate, learned: Candidate, *, zeta: float | None = None, **more: Any
    ) -> Comparison:
        """``‖q_l‖² - ‖q_b‖² - 2 <d, q>`` with ``d = q_l - q_b`` and the least ``<d, q>`` that the evidence allows."""
        d = learned.parameter - baseline.parameter
        sizes = [self.problem.parameters.norm(candidate.parameter) for candidate in (learned, baseline)]
        level = asked.data.law.zeta if zeta is None else zeta
        sampled = asked.data.alpha + self.problem.parameters.alpha
        chance = 1.0 - level - sampled
        probability = None if chance == 1.0 else chance
        if not d.any():
            return Comparison(0.0, frozen(np.asarray(asked.centre)), probability, **more)
        least, truth = asked.least_along(d, zeta=zeta)
        margin = (sizes[0] - sizes[1]) * (sizes[0] + sizes[1]) - 2.0 * least
        eps = self.problem.rounding + 64.0 * np.sqrt(len(d)) * EPS
        margin += eps * (sum(sizes) ** 2 + 2.0 * abs(least))
        return Comparison(float(margin), frozen(truth), probability, **more)


class ThinnedJudge(DominanceJudge):
    """Candidates from one part of the data, judged by the other one."""

    def __init__(self, rule: Dominance, problem: Problem, data: Data, solvers: Mapping[str, Any] | None) -> None:
        if data.law.zeta == 0.0:
            raise UncertifiedError("thinning needs the law of the noise; expected Data.gaussian(values, std=...)")
        given = dict(solvers or {})
        learned = given.pop("learned", None)
        several = list(learned.values()) if isinstance(learned, Mapping) else [learned]
        if not all(callable(solver) for solver in (*given.values(), *several)):
            raise UncertifiedError(
                "thinning makes the candidates anew, from a part of the data: it needs solvers, callables "
                "(problem, data) -> Candidate, for baseline and learned; a finished candidate came"
            )
        assert rule.thinning is not None
        seed = secrets.randbits(SEED_BITS) if rule.seed is None else rule.seed
        self.first, second = thinned(data, rule.thinning, seed)
        super().__init__(replace(rule, seed=seed), problem, data)
        self.second = evidence(problem, second)
        # Each of several learned candidates has its share of the level.
        self.share = data.law.zeta / len(several)

    @property
    def made_from(self) -> Data:
        """The first part."""
        return self.first

    def compare(self, baseline: Candidate, learned: Candidate) -> Comparison:
        """By the second part, for which both are fixed."""
        return self.by_evidence(self.second, baseline, learned, zeta=self.share, how=FROM_ONE_PART)
