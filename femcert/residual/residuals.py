"""The residual components of a candidate, each with its side: data, physics, boundary, optimality, admissibility."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array
from ..errors import InputError, UncertifiedError
from ..linalg import solve_mass
from ..mesh.elements import mass_matrix
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.data import Data
from ..problem.space import Split
from ..problem.states import TimeStepping
from ..shown import Shown
from .boundary import boundary_norm
from .dual import METHODS, DualNorm, dual_norm
from .energy import state_equation
from .heat import has_trajectory, space_time_norm
from .optimality import gradient_norm

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
    physics
        The dual norm behind `pde` with the shares of the elements, where it was measured by one; in memory only.
    """

    data: Bound
    pde: Bound
    bc: Bound
    optimality: Bound
    admissibility: Bound
    reported: bool = True
    physics: DualNorm | None = field(default=None, repr=False, compare=False)

    def summary(self) -> dict[str, str]:
        """All five."""
        return {name: str(bound) for name, bound in self.items()}

    def items(self) -> list[tuple[str, Bound]]:
        """Names and components, in the order of the paper."""
        return [(name, getattr(self, name)) for name in COMPONENTS]


def evaluate(
    problem: Problem,
    data: Data,
    candidate: Candidate,
    *,
    pde_norm: str = "rms",
    norm: str = "energy",
    split: Split | None = None,
) -> Residuals:
    """Residual components of `candidate`: physics and boundary as `physics_residuals` says, by default the paper's.

    `split` is that of its parameter, where it is known already.
    """
    check_candidate(problem, candidate)
    problem.check_data(data)
    split = split or problem.parameters.split(candidate.parameter)
    q = candidate.parameter
    given = candidate.state is not None
    u = candidate.state if given else problem.solve(q)
    pde, bc, physics = physics_residuals(problem, candidate, u, pde_norm=pde_norm, norm=norm)
    return Residuals(
        data=Bound(_misfit(problem, data, u, q, solved=not given), "upper", "norm of H u - y"),
        pde=pde,
        bc=bc,
        optimality=optimality_residual(problem, data, candidate, split),
        admissibility=Bound(split.distance, "upper", "distance from the admissible class"),
        reported=candidate.optimality is not None,
        physics=physics,
    )


def parameter_misfit(problem: Problem, data: Data, candidate: Candidate, split: Split) -> Bound:
    """``‖H S p - y‖_Y``, for rules that do not look at states.

    For a linear problem p is the part of the parameter in the class; else the whole of it, since the part may be none
    that the equation allows.
    """
    p = candidate.parameter
    if problem.linearize(p).everywhere:
        p = problem.parameters.field(split.coordinates)
    source = "norm of H u - y, state recomputed" if problem.states else "norm of H q - y"
    return Bound(_misfit(problem, data, problem.solve(p), p, solved=True), "upper", source)


def _misfit(problem: Problem, data: Data, state: Any, parameter: Array, *, solved: bool) -> float:
    """Rounding included, and what the solve has left where the state is that of the parameter."""
    misfit = data.norm(problem.predict(state, parameter) - data.values)
    lost = problem.solved_error(data, state, parameter) if solved else 0.0
    return misfit + problem.lost_to_rounding(data, state, parameter) + lost


def optimality_residual(problem: Problem, data: Data, candidate: Candidate, split: Split) -> Bound:
    """What the candidate reports, or else the gradient of its data misfit."""
    if candidate.optimality is not None:
        return Bound(candidate.optimality, "estimate", "reported by the candidate")
    gradient = gradient_norm(problem, data, split.coordinates * split.shrinkage)
    return Bound(gradient, "estimate", "gradient of the data misfit; none was reported")


PDE_NORMS = ("rms", *METHODS)


def check_pde_norm(pde_norm: str) -> str:
    """`pde_norm` if it is one of those known."""
    if pde_norm not in PDE_NORMS:
        raise InputError(f"pde_norm is {pde_norm!r}; expected one of {', '.join(map(repr, PDE_NORMS))}")
    return pde_norm


def physics_residuals(
    problem: Problem, candidate: Candidate, state: Any, *, pde_norm: str, norm: str
) -> tuple[Bound, Bound, DualNorm | None]:
    """The components ``pde`` and ``bc``, and the dual norm behind the first where there is one.

    ``"rms"``: the paper's root mean square of the strong residual, and the L2 norm of the boundary defect. Else a
    method of `dual_norm` (for a heat trajectory the space-time norm), and the H^1/2 norm of the boundary defect (the
    least H1 norm of a lift), to which a heat problem adds the L2 norm of its initial error.
    """
    check_pde_norm(pde_norm)
    q = candidate.parameter
    if not problem.states:
        none = Bound(0.0, "upper", "there is no state equation")
        return none, none, None
    equation = state_equation(problem, "the physics residual")
    if pde_norm == "rms":
        pde = Bound(strong_rms(problem, state, q), "estimate", "RMS of the strong residual")
        return pde, Bound(equation.boundary_defect(state, q), "estimate", "L2 norm of the boundary defect"), None
    if equation.time is None:
        found = dual_norm(problem, candidate, pde_norm, norm=norm)
        return found.best, _on_boundary(problem, state), found
    if pde_norm != "equilibrated":
        raise InputError(f"pde_norm is {pde_norm!r}; a state that depends on time has 'rms' and 'equilibrated'")
    if norm != "energy":
        raise InputError(f"norm is {norm!r}; the space-time norm is that of the energy")
    return *_in_time(problem, equation.time, candidate, state), None


def _on_boundary(problem: Problem, state: Array) -> Bound:
    """The H^1/2 norm of the boundary defect.

    From the H1 norm: a constant defect has no energy where there is no reaction, but the sensors see it.
    """
    part = state_equation(problem, "the boundary residual").boundary
    given = any(callable(condition.value) for condition in part.dirichlet)
    if not given and np.array_equal(state[part.prescribed], _like(part.values[part.prescribed], state)):
        return Bound(0.0, "upper", "the boundary values are those prescribed")
    return boundary_norm(problem, state, norm="h1")


def _like(values: Array, state: Array) -> Array:
    return values if state.ndim == 1 else np.broadcast_to(values[:, None], (len(values), state.shape[1]))


def _in_time(problem: Problem, time: TimeStepping, candidate: Candidate, state: Array) -> tuple[Bound, Bound]:
    """The space-time residual and the initial error of a trajectory.

    Where only states at the observation times are given, those of the problem's own trajectory, whose norm bounds its
    error at any time, plus the largest L2 distance of the given states from it.
    """
    gap = Bound(0.0, "upper", "no distance from the trajectory")
    if not has_trajectory(problem, candidate):
        if not time.stepped:
            raise UncertifiedError("the exact exponential has no trajectory; use 'crank-nicolson', or pde_norm='rms'")
        own = time.trajectory(candidate.parameter)
        distance = state.reshape(len(own), -1) - own[:, time.observed]
        mass = mass_matrix(problem.basis)
        farthest = float(np.sqrt(max(np.einsum("ij,ij->j", distance, mass @ distance).max(), 0.0)))
        gap = Bound(farthest, "upper", "L2 distance of the states from the problem's own trajectory")
        candidate = Candidate(own, candidate.parameter, name=candidate.name)
    whole = space_time_norm(problem, candidate, below=False)
    return whole.residual + gap, whole.initial + _on_boundary(problem, state)


def strong_field(problem: Problem, state: Array, parameter: Array) -> Array:
    """L2 representative ``M^-1 r`` of the weak residual, on the free dofs (columns for several times).

    On a uniform line with P1 and lumped mass this is the finite-difference residual ``q - K u`` at the grid points.
    """
    equation = state_equation(problem, "the strong residual")
    r = equation.residual(state, parameter)
    return solve_mass(equation.residual_mass, r[equation.free])


def strong_rms(problem: Problem, state: Array, parameter: Array) -> float:
    """``(r' M^-1 r / 1' M 1)^(1/2)`` over the free dofs, and the mean square over times.

    The mean is weighted by the mass, so that it approximates ``‖N(u, q)‖_L2 / |Omega|^(1/2)`` on any mesh; on a uniform
    grid with lumped mass it is the plain RMS over the grid points that the paper uses. The measure ``1' M 1`` is that
    of the free dofs, smaller than ``|Omega|`` on a coarse mesh, so this may be larger than the mean over all of Omega.
    """
    equation = state_equation(problem, "the strong residual")
    r = equation.residual(state, parameter)[equation.free].reshape(len(equation.free), -1)
    field = solve_mass(equation.residual_mass, r)
    measure = float(equation.residual_mass.sum())
    return float(np.sqrt(max(np.einsum("ij,ij->", r, field), 0.0) / (measure * r.shape[1])))
