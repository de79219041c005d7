"""The dominance rule: a learned candidate that is no farther from any consistent truth than the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import Array, frozen
from ..errors import InputError, UncertifiedError
from ..evidence import Feasible
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.data import Data
from .comparison import Comparison
from .confidence import check_zeta
from .exact import ExactJudge, ExactRadius


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
        None: sure, for noise within its level. Else for Gaussian noise whose covariance the data give: E is the
        confidence ellipsoid ``‖F (x - x_LS)‖² <= chi2_k(1 - zeta)`` of the k coordinates, so the half width is
        ``chi2_k(1 - zeta)^(1/2) ‖F^{+T} d‖`` (Scheffé). The probability that the learned candidate is accepted *and*
        worse is zeta at most; that is a share of all measurements, not of the accepted ones. Only the noise is random;
        the truth, a member of the class, and the sensors are fixed before. The candidates may depend on the data in any
        way, as all reconstructions do. For linear problems whose data determine the class; a ball does not count.
    guarantee
        As in `ExactRadius`, whose radii the certificates show.

    Notes
    -----
    What it compares: the distances of the two candidates from one and the same truth, for every truth that explains the
    data. The other rules compare radii, each of which belongs to another truth. Where the data leave open which of the
    candidates is nearer, it keeps the baseline.
    """

    zeta: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.zeta is not None:
            object.__setattr__(self, "zeta", check_zeta(self.zeta))
            if self.guarantee == "continuous":
                raise InputError("zeta is for guarantee='discrete'; the mesh's error is no Gaussian noise")

    def prepare(self, problem: Problem, data: Data, solvers: Mapping[str, Any] | None = None) -> DominanceJudge:
        """The judge, with the consistent set."""
        if self.zeta is not None and data.covariance is None:
            raise InputError("zeta is for Gaussian noise of known covariance; expected Data(..., covariance=...)")
        if self.zeta is not None and problem.forward is None:
            raise UncertifiedError("zeta is for linear problems; the error of a linearization is no Gaussian noise")
        judge = DominanceJudge(self, problem, data)
        if judge.evidence is None and self.guarantee == "discrete" and problem.forward is not None:
            count = problem.parameters.dimension
            raise UncertifiedError(f"dominance needs the consistent set, which is not made for {count} coordinates")
        return judge

    def to_dict(self) -> dict[str, Any]:
        """Name and options, for the record."""
        return {**super().to_dict(), "zeta": self.zeta}


class DominanceJudge(ExactJudge):
    """Distances from one and the same truth, for every consistent one."""

    rule: Dominance

    def compare(self, baseline: Candidate, learned: Candidate) -> Comparison:
        """The margin and the truth that speaks most against the learned candidate."""
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
        eps = self.problem.rounding + 64.0 * np.sqrt(len(d)) * float(np.finfo(float).eps)
        zeta = self.rule.zeta
        margin += eps * (float(np.linalg.norm(d)) * sizes + abs(outside))
        return Comparison(margin, frozen(evidence.field(point)), None if zeta is None else 1.0 - zeta)

    def _least(self, evidence: Feasible, d: Array) -> tuple[float, Array]:
        """Lower bound of ``d . x`` at the truth, and a point where it is (nearly) reached."""
        consistent, rows, zeta = evidence.consistent, -d[None], self.rule.zeta
        found = consistent.support(rows) if zeta is None else consistent.confidence_support(rows, zeta)
        return -float(found[0][0]), found[1][0]
