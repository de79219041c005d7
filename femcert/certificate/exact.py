"""The exact radius: how far the farthest parameter that agrees with the evidence is from a candidate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..bound import Bound
from ..errors import CandidateError, InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.data import Data
from ..residual import Residuals, evaluate
from ..residual.components import parameter_misfit
from ..stability import Stability, stability
from ..stability.stability import GUARANTEES
from .certificate import Certificate
from .evidence import (
    MOST_COORDINATES,
    Evidence,
    check_explained,
    check_explained_continuously,
    continuous_evidence,
    discrete_evidence,
    is_large_ball,
    linearized_evidence,
)
from .guaranteed import belongs, continuous_constant
from .proof import proven_radius
from .rule import Rule

# A dual that is farther than this above a point that it knows may have a gap.
GAP = 1e-6


@dataclass(frozen=True, kw_only=True)
class ExactRadius(Rule):
    """The smallest radius that data, noise level and class allow: ``max { ‖q - q'‖_Q : q' consistent }``.

    A parameter ``q' = B c'`` of the class is consistent if ``‖F c' + y0 - y‖_Y <= delta`` and it lies in the ball, if
    there is one. With ``q = Pi q + q_perp`` the radius is ``(max ‖Pi q - q'‖² + ‖q_perp‖²)^(1/2)``: the secular
    equation of a trust region, exact to rounding; with a ball the dual of two multipliers, from above. No state enters.

    Parameters
    ----------
    guarantee
        ``"discrete"``: consistent with the discretized problem. ``"continuous"``: with the equation itself; the noise
        level is then enlarged by what the forward map of the mesh may be off between candidate and truth.

    Notes
    -----
    On a ball with more than 1,500 coordinates the radius is the modulus of continuity at misfit plus noise level, which
    is larger. A nonlinear problem needs a class with a ball that lies in the
    ball on which its linearization at the candidate is validated.

    What it compares: how far the two candidates are from that parameter of the consistent set which is farthest from
    each. The nearer to the centre of the set, the smaller. Without a ball that centre is the least-squares solution,
    which therefore has the smallest radius of all, whether it is nearer to the truth or not.
    """

    guarantee: str = "discrete"
    evidence: Evidence | None = field(default=None, repr=False, compare=False)
    computed: Stability | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.guarantee not in GUARANTEES:
            raise InputError(f"guarantee is {self.guarantee!r}; expected one of {', '.join(map(repr, GUARANTEES))}")

    @property
    def judges_state(self) -> bool:
        """No state enters."""
        return False

    @property
    def decides(self) -> tuple[str, ...]:
        """The misfit of the parameter and its distance from the class."""
        return ("data", "admissibility")

    def resolved(self, problem: Problem, data: Data) -> ExactRadius:
        """The rule with what is the same for all candidates: the consistent set, or the continuous constant."""
        if self.is_resolved(problem, data):
            return self
        return replace(self, checked=(problem, data), **self._computed(problem, data))

    def _computed(self, problem: Problem, data: Data) -> dict[str, Any]:
        space, m = problem.parameters, problem.observation_count
        if self.guarantee == "continuous":
            if not problem.linear or space.ball is not None:
                raise UncertifiedError("guarantee='continuous' is not known for nonlinear problems, nor on a ball")
            known = self.computed if belongs(self.computed, problem, data) else self.stability
            constant = continuous_constant(problem, data, known)[0]
            check_explained_continuously(problem, data, constant)
            return {"evidence": None, "computed": constant}
        if not problem.linear:
            return {"evidence": None, "computed": None}
        if _by_modulus(problem):
            try:
                constant = stability(problem, data=data)
            except InputError as error:
                raise UncertifiedError(f"a class of {space.dimension} coordinates has no radius: {error}") from None
            check_explained(problem, data, constant)
            return {"evidence": None, "computed": constant}
        if space.ball is None and space.dimension > min(m, MOST_COORDINATES):
            raise UncertifiedError(
                f"the class has {space.dimension} coordinates and there are {m} observations, so the consistent set is "
                f"not bounded, or too large; expected at most {min(m, MOST_COORDINATES)} coordinates, or a ball"
            )
        evidence = discrete_evidence(problem, data)
        return {"evidence": evidence, "computed": evidence.constant if space.dimension <= m else None}

    def certify(self, problem: Problem, data: Data, candidate: Candidate) -> Certificate:
        """See `Rule.certify`."""
        check_candidate(problem, candidate)
        q, norm = candidate.parameter, problem.parameters.norm
        value, scope = self._radius(problem, data, candidate)
        residuals = evaluate(problem, data, candidate)
        distance = Bound(problem.parameters.distance(q), "upper", "distance from the admissible class")
        misfit = parameter_misfit(problem, data, candidate)
        parts = {**dict(residuals.items()), "data": misfit, "admissibility": distance}
        return Certificate(
            radius=Bound(value, "upper", type(self).__name__),
            residuals=Residuals(**parts, reported=residuals.reported),
            total=misfit.value,
            stability=self.stability or self.computed,
            scope=scope,
            noise_level=data.noise_level,
            name=candidate.name,
            _distance=lambda truth: norm(problem.check_parameter(truth) - q),
        )

    def _radius(self, problem: Problem, data: Data, candidate: Candidate) -> tuple[float, str]:
        if _by_modulus(problem):
            value, scope = sum(proven_radius(problem, data, candidate, self.computed)), "discrete"
        else:
            evidence = self.evidence_at(problem, data, candidate)
            (value, witness), scope = evidence.farthest(candidate.parameter), evidence.scope
            constant = self.computed
            if constant is None and value > (1.0 + GAP) * problem.parameters.norm(candidate.parameter - witness):
                # The dual on a ball has a gap here; the radius from misfit and stability then may be smaller.
                constant = evidence.constant
            if self.guarantee == "discrete" and constant is not None:
                value = min(value, sum(proven_radius(problem, data, candidate, constant)))
        if not np.isfinite(value):
            raise CandidateError(f"the exact radius of {candidate.name!r} is {value}")
        return value, scope

    def evidence_at(self, problem: Problem, data: Data, candidate: Candidate) -> Evidence:
        """The consistent parameters, about a candidate where an error of the forward map depends on it."""
        if self.evidence is not None:
            return self.evidence
        if self.guarantee == "continuous" and self.computed is not None:
            return continuous_evidence(problem, data, self.computed, candidate.parameter)
        return linearized_evidence(problem, data, candidate.parameter)

    def to_dict(self) -> dict[str, Any]:
        """Name and options, for the record."""
        return {**super().to_dict(), "guarantee": self.guarantee}


def _by_modulus(problem: Problem) -> bool:
    return problem.linear and is_large_ball(problem)
