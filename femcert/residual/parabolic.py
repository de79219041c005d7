"""The residual of a heat trajectory in the space-time norm, between two bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from skfem.mesh import MeshLine1

from ..bound import Bound
from ..checks import Array, frozen
from ..errors import InputError, UncertifiedError
from ..mesh.elements import degree
from ..mesh.sample import Sampler
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.heat import HeatInitial
from ..problem.strong import Field, StrongForm
from ..shown import Shown
from .interval import line_bound
from .norms import state_norm
from .static import ROUNDING, static_bound, static_lower
from .workspace import Workspace, workspace_of

# Gauss points in each time step that integrate the square of the residual exactly: it is linear in time for the
# piecewise linear reconstruction, quadratic for the piecewise quadratic one.
POINTS = {"backward-euler": 2, "crank-nicolson": 3}


@dataclass(frozen=True, repr=False)
class SpaceTimeNorm(Shown):
    """Bounds of ``‖e‖_Y = (int ‖r(t)‖²_V' dt + ‖e(0)‖²)^1/2``, the error of a trajectory.

    ``‖e‖_Y² = int ‖e‖_V² + ‖e_t‖²_V' dt + ‖e(T)‖²`` with the energy norm of V: an identity for every trajectory with
    the right boundary values.

    Attributes
    ----------
    upper, lower
        Of the whole.
    residual
        Upper bound of ``(int ‖r(t)‖²_V' dt)^1/2`` alone.
    initial
        ``‖u(0) - q‖`` in L2.
    steps
        Upper bounds of the residual in each time step.
    """

    upper: Bound
    lower: Bound | None
    residual: Bound
    initial: Bound
    steps: Array

    def summary(self) -> dict[str, str]:
        """Both bounds and their parts."""
        below = {} if self.lower is None else {"lower": str(self.lower)}
        parts = {"residual": str(self.residual), "initial": str(self.initial), "steps": str(len(self.steps))}
        return {"upper": str(self.upper), **below, **parts}


def space_time_norm(problem: HeatInitial, candidate: Candidate, *, below: bool = True) -> SpaceTimeNorm:
    """The space-time residual of a heat candidate whose state is a trajectory, ``problem.trajectory(q)`` or any other.

    Between the time levels the trajectory is continued linearly for backward Euler, and for Crank-Nicolson by the
    parabola through the last three levels (a linear one would lose its second order). The residual of that function,
    ``<r(t), v> = -(u_t, v) - (kappa grad u, grad v) - <alpha u, v>``, is a polynomial in time, so that Gauss points in
    each step integrate its squared dual norm exactly; at each of them it is bounded as that of an elliptic equation.

    Parameters
    ----------
    below
        Whether the lower bound is wanted too.

    Raises
    ------
    UncertifiedError
        The candidate has states at the observation times only, the exact exponential is used, or the whole boundary is
        insulated.
    """
    if not isinstance(problem, HeatInitial):
        raise InputError(f"problem is a {type(problem).__name__}; expected HeatInitial")
    check_candidate(problem, candidate)
    u = problem.check_state(candidate.state)
    if not has_trajectory(problem, candidate):
        wanted = int(problem.basis.N), problem.steps + 1
        raise UncertifiedError(
            f"the state has shape {u.shape}, no trajectory; give one of shape {wanted}, "
            "such as problem.trajectory(parameter) with scheme 'crank-nicolson' or 'backward-euler'"
        )
    if not problem.boundary.dirichlet and problem.boundary.operator is None:
        raise UncertifiedError("the whole boundary is insulated: the energy is no norm; give a Dirichlet or Robin part")
    workspace, factor = workspace_of(problem), state_norm(problem, "energy").factor
    points, weights = np.polynomial.legendre.leggauss(POINTS[problem.scheme])
    k, still = problem.time_step, problem.time.strong(np.zeros(problem.basis.N))
    upper, lower, doubt = np.zeros(problem.steps), np.zeros(problem.steps), _not_zero(problem)
    for step in range(problem.steps):
        for s, weight in zip((points + 1.0) / 2.0, weights / 2.0 * k, strict=True):
            value, rate = _reconstructed(u, step, s, k, quadratic=problem.scheme == "crank-nicolson")
            # With the same coefficients at all times, so that what is known of them is found once.
            equation = replace(still, source=Field(problem.basis, -rate))
            high, low, more = _at_time(workspace, equation, factor, value, below)
            doubt = doubt or more
            upper[step] += weight * high**2
            lower[step] += weight * low**2
    start = _initial_error(problem, u[:, 0], candidate.parameter)
    words, but = "space-time dual norm, equilibrated flux at Gauss times", f"; {doubt}" if doubt else ""
    total = float(upper.sum())
    side = "estimate" if doubt else "upper"
    least = start * (1.0 - 2.0 * ROUNDING)
    below_bound = Bound(float(np.sqrt(lower.sum() + least**2)), "estimate" if doubt else "lower", words + but)
    return SpaceTimeNorm(
        upper=Bound(float(np.sqrt(total + start**2)), side, f"{words}, and the initial error{but}"),
        lower=below_bound if below else None,
        residual=Bound(float(np.sqrt(total)), side, words + but),
        initial=Bound(start, "upper", "L2 norm of the initial error"),
        steps=frozen(np.sqrt(upper)),
    )


def _not_zero(problem: HeatInitial) -> str:
    """Why the boundary values of the problem may not be zero between the dofs, as those of its trajectories are."""
    given = [part.name for part in problem.boundary.dirichlet if callable(part.value)]
    if problem.basis.mesh.dim() == 1 or not given:
        return ""
    return f"the Dirichlet value on {given[0]!r} is a function, known to vanish at the dofs only; give the number 0"


def has_trajectory(problem: Problem, candidate: Candidate) -> bool:
    """Whether a candidate of a heat problem carries all time levels from t = 0."""
    if not isinstance(problem, HeatInitial) or problem.scheme == "exact" or candidate.state is None:
        return False
    return candidate.state.shape == (problem.basis.N, problem.steps + 1)


def _reconstructed(u: Array, step: int, s: float, k: float, *, quadratic: bool) -> tuple[Array, Array]:
    """The continued trajectory and its time derivative at the fraction s of a step."""
    before, after = u[:, step], u[:, step + 1]
    value, rate = (1.0 - s) * before + s * after, (after - before) / k
    if not quadratic or u.shape[1] < 3:
        return value, rate
    middle = max(step, 1)
    bend = u[:, middle + 1] - 2.0 * u[:, middle] + u[:, middle - 1]
    return value - 0.5 * s * (1.0 - s) * bend, rate + (s - 0.5) * bend / k


def _at_time(
    workspace: Workspace, equation: StrongForm, factor: Any, value: Array, below: bool
) -> tuple[float, float, str]:
    """Upper and lower bound of the dual norm at one time, and why they are none: coefficients are the same at all."""
    if isinstance(workspace.basis.mesh, MeshLine1):
        line = line_bound(workspace, equation, value, "energy")
        return line.upper, line.lower, "" if line.exact else line.words
    static = static_bound(workspace, equation, value, "energy", factor)
    low = static_lower(workspace, equation, value, "energy", factor) if below else 0.0
    return static.upper, low, "" if static.exact else static.words


def _initial_error(problem: HeatInitial, start: Array, parameter: Array) -> float:
    """``‖u(0) - q‖`` in L2, exactly: both are finite-element functions on the same mesh."""
    sampler = Sampler(problem.basis.mesh, 2 * max(degree(problem.basis), degree(problem.parameters.basis)) + 2)
    gap = sampler.values(problem.basis, start) - sampler.values(problem.parameters.basis, parameter)
    return float(np.sqrt(sampler.integral(gap**2).sum())) * (1.0 + ROUNDING)
