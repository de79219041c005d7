"""All residual components of a candidate, each with its side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..bound import Bound
from ..checks import Array
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.data import Data
from ..shown import Shown
from .optimality import reduced_gradient_norm
from .physics import physics_residuals

# In the order of the paper.
COMPONENTS = ("data", "pde", "bc", "optimality", "admissibility")


@dataclass(frozen=True, repr=False)
class Residuals(Shown):
    """The paper's residual components of one candidate.

    Attributes
    ----------
    data
        ``‖H u - y‖_Y`` (r_data).
    pde
        Physics residual (r_pde).
    bc
        Violation of boundary or initial values (r_bc).
    optimality
        Stationarity measure of the solver (r_opt).
    admissibility
        Distance of the parameter from the admissible class.
    reported
        Whether `optimality` was reported by the candidate; if not, it is the gradient of the data misfit here.
    """

    data: Bound
    pde: Bound
    bc: Bound
    optimality: Bound
    admissibility: Bound
    reported: bool = True

    def summary(self) -> dict[str, str]:
        """All five."""
        return {name: str(bound) for name, bound in self.items()}

    def items(self) -> list[tuple[str, Bound]]:
        """Names and components, in the order of the paper."""
        return [(name, getattr(self, name)) for name in COMPONENTS]


def evaluate(
    problem: Problem, data: Data, candidate: Candidate, *, pde_norm: str = "rms", norm: str = "energy"
) -> Residuals:
    """Residual components of `candidate`: physics and boundary as `physics_residuals` says, by default the paper's."""
    check_candidate(problem, candidate)
    problem.check_data(data)
    q = candidate.parameter
    u = problem.solve(q) if candidate.state is None else candidate.state
    pde, bc = physics_residuals(problem, candidate, u, pde_norm=pde_norm, norm=norm)
    return Residuals(
        data=Bound(_misfit(problem, data, u, q), "upper", "norm of H u - y"),
        pde=pde,
        bc=bc,
        optimality=optimality_residual(problem, data, candidate),
        admissibility=Bound(problem.parameters.distance(q), "upper", "distance from the admissible class"),
        reported=candidate.optimality is not None,
    )


def parameter_misfit(problem: Problem, data: Data, candidate: Candidate) -> Bound:
    """``‖H S p - y‖_Y``, for rules that do not look at states.

    For a linear problem p is the part of the parameter in the class; else the whole of it, since the part may be none
    that the equation allows.
    """
    space, p = problem.parameters, candidate.parameter
    if problem.linear:
        p = space.field(space.project(p)[0])
    source = "norm of H u - y, state recomputed" if problem.has_state else "norm of H q - y"
    return Bound(_misfit(problem, data, problem.solve(p), p), "upper", source)


def _misfit(problem: Problem, data: Data, state: Any, parameter: Array) -> float:
    """Rounding included."""
    misfit = data.norm(problem.predict(state, parameter) - data.values)
    return misfit + problem.lost_to_rounding(data, state, parameter)


def optimality_residual(problem: Problem, data: Data, candidate: Candidate) -> Bound:
    """What the candidate reports, or else the gradient of its data misfit."""
    if candidate.optimality is not None:
        return Bound(candidate.optimality, "estimate", "reported by the candidate")
    gradient = reduced_gradient_norm(problem, data, candidate.parameter)
    return Bound(gradient, "estimate", "gradient of the data misfit; none was reported")
