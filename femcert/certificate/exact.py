"""The exact radius: how far the farthest parameter that agrees with the evidence is from a candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..bound import Bound
from ..errors import CandidateError, InputError, UncertifiedError
from ..evidence import (
    MOST_COORDINATES,
    Evidence,
    Feasible,
    check_explained,
    check_explained_continuously,
    continuous_set,
    discrete_set,
    is_large_ball,
    linearized_set,
)
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.data import Data
from ..residual import evaluate
from ..residual.residuals import parameter_misfit
from ..stability import Stability, stability
from ..stability.stability import GUARANTEES
from .certificate import Certificate
from .guaranteed import continuous_constant
from .rule import Judge, Rule, explaining
from .weighted import state_free_radius

# A dual that is farther than this above a feasible point may have a gap.
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
    For Gaussian data, and for a class with a remainder, the radius is that of the evidence, `Evidence.radius`: on a
    span the ellipsoid about the least-squares solution, on a ball the distance from a centre plus a length that is
    fixed before the data, so that bad data make no radius smaller. Whether the class explains the data is tested apart:
    with a p-value below the level of the noise nothing is certified.

    For a noise level on a ball with more than 1,500 coordinates the radius is the modulus of continuity at misfit plus
    noise level, which is larger. A nonlinear problem needs a class with a ball that lies in the
    ball on which its linearization at the candidate is validated.

    What it compares: how far the two candidates are from that parameter of the consistent set which is farthest from
    each. The nearer to the centre of the set, the smaller. Without a ball that centre is the least-squares solution,
    which therefore has the smallest radius of all, whether it is nearer to the truth or not.
    """

    guarantee: str = "discrete"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.guarantee not in GUARANTEES:
            raise InputError(f"guarantee is {self.guarantee!r}; expected one of {', '.join(map(repr, GUARANTEES))}")

    @property
    def uses_state(self) -> bool:
        """No state enters."""
        return False

    @property
    def decides(self) -> tuple[str, ...]:
        """The misfit of the parameter and its distance from the class."""
        return ("data", "admissibility")

    @property
    def counts_remainder(self) -> bool:
        """For the discretized problem."""
        return self.guarantee == "discrete"

    def prepare(self, problem: Problem, data: Data, solvers: Mapping[str, Any] | None = None) -> ExactJudge:
        """The judge, with the consistent set, or the continuous constant."""
        return ExactJudge(self, problem, data)

    def to_dict(self) -> dict[str, Any]:
        """Name and options, for the record."""
        return {**self._named(), "guarantee": self.guarantee}


class ExactJudge(Judge):
    """The farthest consistent parameter.

    Attributes
    ----------
    evidence
        The consistent set, where it is the same for all candidates; else None.
    asked
        The evidence, where it answers instead: for noise of known law, and with a remainder; else None.
    constant
        The stability constant, where there is one for all candidates; else None.
    """

    rule: ExactRadius

    def __init__(self, rule: ExactRadius, problem: Problem, data: Data) -> None:
        super().__init__(rule, problem, data)
        self.evidence: Feasible | None = None
        self.asked: Evidence | None = None
        self.constant: Stability | None = None
        random = data.law.zeta > 0.0 or problem.parameters.remainder is not None
        if random and rule.guarantee == "discrete" and problem.forward is not None:
            self.asked = explaining(problem, data)
        elif rule.guarantee == "continuous":
            if problem.forward is None or problem.parameters.ball is not None:
                raise UncertifiedError("guarantee='continuous' is not known for nonlinear problems, nor on a ball")
            self.constant = continuous_constant(problem, data, rule.stability)[0]
            check_explained_continuously(problem, data, self.constant)
        elif self._by_modulus:
            self.constant = self._conditional()
            check_explained(problem, data, self.constant)
        elif problem.forward is not None:
            self.evidence = self._discrete()
            few = problem.parameters.dimension <= problem.observation_count
            self.constant = self.evidence.constant if few else None

    @property
    def noise_level(self) -> float:
        """That of the data, or as the evidence estimates it."""
        return self.data.noise_level if self.asked is None else self.asked.noise_level

    @property
    def _by_modulus(self) -> bool:
        return self.problem.forward is not None and is_large_ball(self.problem)

    def _conditional(self) -> Stability:
        try:
            return stability(self.problem, data=self.data)
        except InputError as error:
            k = self.problem.parameters.dimension
            raise UncertifiedError(f"a class of {k} coordinates has no radius: {error}") from None

    def _discrete(self) -> Feasible:
        space, m = self.problem.parameters, self.problem.observation_count
        if space.ball is None and space.dimension > min(m, MOST_COORDINATES):
            raise UncertifiedError(
                f"the class has {space.dimension} coordinates and there are {m} observations, so the consistent set is "
                f"not bounded, or too large; expected at most {min(m, MOST_COORDINATES)} coordinates, or a ball"
            )
        return discrete_set(self.problem, self.data)

    def certify(self, candidate: Candidate) -> Certificate:
        """See `Judge.certify`."""
        problem, data, split = self.problem, self.data, self.split(candidate)
        value, scope = self._radius(candidate)
        residuals = evaluate(problem, data, candidate, split=split)
        misfit = parameter_misfit(problem, data, candidate, split)
        bound, constant = Bound(value, "upper", type(self.rule).__name__), self.rule.stability or self.constant
        residuals = replace(residuals, data=misfit)
        return self.certificate(candidate, bound, residuals=residuals, scope=scope, stability=constant)

    def _radius(self, candidate: Candidate) -> tuple[float, str]:
        problem, data, split = self.problem, self.data, self.split(candidate)
        if self.asked is not None:
            value = self.asked.radius(candidate.parameter).value
            scope = "discrete" if data.law.proven else "estimate"
        elif self._by_modulus:
            value, scope = sum(state_free_radius(problem, data, split, self.constant)), "discrete"
        else:
            evidence = self.evidence_at(candidate)
            (value, witness), scope = evidence.farthest(candidate.parameter, split), evidence.scope
            constant = self.constant
            if constant is None and value > (1.0 + GAP) * problem.parameters.norm(candidate.parameter - witness):
                # The dual on a ball has a gap here; the radius from misfit and stability then may be smaller.
                constant = evidence.constant
            if self.rule.guarantee == "discrete" and constant is not None:
                value = min(value, sum(state_free_radius(problem, data, split, constant)))
        if not np.isfinite(value):
            raise CandidateError(f"the exact radius of {candidate.name!r} is {value}")
        return value, scope

    def evidence_at(self, candidate: Candidate) -> Feasible:
        """The consistent parameters, about a candidate where an error of the forward map depends on it."""
        if self.evidence is not None:
            return self.evidence
        if self.rule.guarantee == "continuous" and self.constant is not None:
            return continuous_set(self.problem, self.data, self.constant, self.split(candidate).coordinates)
        return linearized_set(self.problem, self.data, candidate.parameter)
