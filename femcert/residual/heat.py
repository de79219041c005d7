"""The residual of a heat trajectory in the space-time norm, between two bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from skfem import Basis

from ..bound import Bound
from ..checks import Array, frozen, required
from ..errors import UncertifiedError
from ..mesh.elements import degree
from ..mesh.sample import Sampler
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.states import StateEquation
from ..problem.strong import Interpolant, StrongForm
from ..shown import Shown
from .elliptic import bounded
from .energy import state_equation, state_norm
from .remainders import finished_lower, finished_upper
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


def space_time_norm(problem: Problem, candidate: Candidate, *, below: bool = True) -> SpaceTimeNorm:
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
        The state does not depend on time, or is given at the observation times only; the exact exponential is used; or
        the whole boundary is insulated.
    """
    equation = state_equation(problem, "space_time_norm")
    time = required(equation.time, "space_time_norm", "a state that depends on time", problem)
    check_candidate(problem, candidate)
    u = problem.check_state(candidate.state)
    if not has_trajectory(problem, candidate):
        wanted = int(equation.basis.N), time.steps + 1
        raise UncertifiedError(
            f"the state has shape {u.shape}, no trajectory; give one of shape {wanted}, "
            "such as problem.trajectory(parameter) with scheme 'crank-nicolson' or 'backward-euler'"
        )
    if not equation.boundary.dirichlet and equation.boundary.operator is None:
        raise UncertifiedError("the whole boundary is insulated: the energy is no norm; give a Dirichlet or Robin part")
    workspace, factor = workspace_of(equation), state_norm(problem, "energy").factor
    points, weights = np.polynomial.legendre.leggauss(POINTS[time.scheme])
    k, still = time.step, time.strong(np.zeros(equation.basis.N))
    upper, lower, doubt = np.zeros(time.steps), np.zeros(time.steps), _not_zero(equation)
    for step in range(time.steps):
        for s, weight in zip((points + 1.0) / 2.0, weights / 2.0 * k, strict=True):
            value, rate = _reconstructed(u, step, s, k, quadratic=time.scheme == "crank-nicolson")
            # With the same coefficients at all times, so that what is known of them is found once.
            form = replace(still, source=Interpolant(equation.basis, -rate))
            high, low, more = _at_time(workspace, form, factor, value, below)
            doubt = doubt or more
            upper[step] += weight * high**2
            lower[step] += weight * low**2
    distance = _distance(equation.basis, u[:, 0], problem.parameters.basis, candidate.parameter)
    start, least = finished_upper(distance), finished_lower(distance)
    words, but = "space-time dual norm, equilibrated flux at Gauss times", f"; {doubt}" if doubt else ""
    total = float(upper.sum())
    side = "estimate" if doubt else "upper"
    below_bound = Bound(float(np.sqrt(lower.sum() + least**2)), "estimate" if doubt else "lower", words + but)
    return SpaceTimeNorm(
        upper=Bound(float(np.sqrt(total + start**2)), side, f"{words}, and the initial error{but}"),
        lower=below_bound if below else None,
        residual=Bound(float(np.sqrt(total)), side, words + but),
        initial=Bound(start, "upper", "L2 norm of the initial error"),
        steps=frozen(np.sqrt(upper)),
    )


def _not_zero(equation: StateEquation) -> str:
    """Why boundary values may not be zero between the dofs, as those of the trajectories are."""
    given = [part.name for part in equation.boundary.dirichlet if callable(part.value)]
    if equation.basis.mesh.dim() == 1 or not given:
        return ""
    return f"the Dirichlet value on {given[0]!r} is a function, known to vanish at the dofs only; give the number 0"


def has_trajectory(problem: Problem, candidate: Candidate) -> bool:
    """Whether a candidate carries all time levels from t = 0."""
    equation = state_equation(problem, "a trajectory")
    if equation.time is None or not equation.time.stepped or candidate.state is None:
        return False
    return candidate.state.shape == (equation.basis.N, equation.time.steps + 1)


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
    workspace: Workspace, form: StrongForm, factor: Any, value: Array, below: bool
) -> tuple[float, float, str]:
    """Upper and lower bound of the dual norm at one time, and why they are none: coefficients are the same at all."""
    bound = bounded(workspace, form, value, "energy", lambda: factor)
    return bound.upper, bound.lower if below else 0.0, "" if bound.exact else bound.words


def _distance(first: Basis, u: Array, second: Basis, q: Array) -> float:
    """``‖u - q‖`` in L2, to rounding, of finite-element functions on the same mesh."""
    sampler = Sampler(first.mesh, 2 * max(degree(first), degree(second)) + 2)
    gap = sampler.values(first, u) - sampler.values(second, q)
    return float(np.sqrt(sampler.integral(gap**2).sum()))
