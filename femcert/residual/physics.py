"""Physics and boundary residual of a candidate in the norm that a rule asks for."""

from __future__ import annotations

import numpy as np

from ..bound import Bound
from ..checks import Array
from ..errors import InputError, UncertifiedError
from ..mesh.elements import mass_matrix
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.heat import HeatInitial
from .boundary import boundary_norm
from .dual import METHODS, dual_norm
from .parabolic import has_trajectory, space_time_norm
from .strong import strong_rms

PDE_NORMS = ("rms", *METHODS)


def check_pde_norm(pde_norm: str) -> str:
    """`pde_norm` if it is one of those known."""
    if pde_norm not in PDE_NORMS:
        raise InputError(f"pde_norm is {pde_norm!r}; expected one of {', '.join(map(repr, PDE_NORMS))}")
    return pde_norm


def physics_residuals(
    problem: Problem, candidate: Candidate, state: Array, *, pde_norm: str, norm: str
) -> tuple[Bound, Bound]:
    """The components ``pde`` and ``bc``.

    ``"rms"``: the paper's root mean square of the strong residual, and the L2 norm of the boundary defect. Else a
    method of `dual_norm` (for a heat trajectory the space-time norm), and the H^1/2 norm of the boundary defect (the
    least H1 norm of a lift), to which a heat problem adds the L2 norm of its initial error.
    """
    check_pde_norm(pde_norm)
    q = candidate.parameter
    if not problem.states:
        none = Bound(0.0, "upper", "there is no state equation")
        return none, none
    if pde_norm == "rms":
        pde = Bound(strong_rms(problem, state, q), "estimate", "RMS of the strong residual")
        return pde, Bound(problem.boundary_defect(state, q), "estimate", "L2 norm of the boundary defect")
    if isinstance(problem, HeatInitial):
        if pde_norm != "equilibrated":
            raise InputError(f"pde_norm is {pde_norm!r}; a heat problem has 'rms' and 'equilibrated'")
        if norm != "energy":
            raise InputError(f"norm is {norm!r}; the space-time norm of a heat problem is that of its energy")
        return _of_heat(problem, candidate, state)
    return dual_norm(problem, candidate, pde_norm, norm=norm).best, _on_boundary(problem, state)


def _on_boundary(problem: Problem, state: Array) -> Bound:
    """The H^1/2 norm of the boundary defect.

    From the H1 norm: a constant defect has no energy where there is no reaction, but the sensors see it.
    """
    part = problem.boundary
    given = any(callable(condition.value) for condition in part.dirichlet)
    if not given and np.array_equal(state[part.prescribed], _like(part.values[part.prescribed], state)):
        return Bound(0.0, "upper", "the boundary values are those prescribed")
    return boundary_norm(problem, state, norm="h1")


def _like(values: Array, state: Array) -> Array:
    return values if state.ndim == 1 else np.broadcast_to(values[:, None], (len(values), state.shape[1]))


def _of_heat(problem: HeatInitial, candidate: Candidate, state: Array) -> tuple[Bound, Bound]:
    """The space-time residual and the initial error of a trajectory.

    Where only states at the observation times are given, those of the problem's own trajectory, whose norm bounds its
    error at any time, plus the largest L2 distance of the given states from it.
    """
    gap = 0.0
    if not has_trajectory(problem, candidate):
        if problem.scheme == "exact":
            raise UncertifiedError("the exact exponential has no trajectory; use 'crank-nicolson', or pde_norm='rms'")
        own = problem.trajectory(candidate.parameter)
        distance = state.reshape(problem.basis.N, -1) - own[:, problem.observed]
        mass = mass_matrix(problem.basis)
        gap = float(np.sqrt(max(np.einsum("ij,ij->j", distance, mass @ distance).max(), 0.0)))
        candidate = Candidate(own, candidate.parameter, name=candidate.name)
    whole = space_time_norm(problem, candidate, below=False)
    edge = _on_boundary(problem, state)
    pde = Bound(whole.residual.value + gap, whole.residual.side, whole.residual.source)
    return pde, Bound(edge.value + whole.initial.value, edge.side, f"initial error; {edge.source}")
