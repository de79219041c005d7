"""Stationarity of a reconstruction for a Tikhonov objective: reduced to the parameter, or with state and adjoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array, number, real_vector
from ..errors import InputError, UncertifiedError
from ..linalg import Factorization
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.data import Data
from ..problem.heat import HeatInitial
from ..problem.linear import LinearProblem
from ..problem.nonlinear import NonlinearProblem
from .norms import StateNorm, state_norm
from .projected import coordinate_limits, projected_norm

# Relative distance from the sphere of a ball below which a parameter is on it.
ON_SPHERE = 1e-9


def reduced_gradient(problem: Problem, data: Data, coefficients: Array, *, weight: float = 0.0) -> Array:
    """``F' (F c + y0 - y) + weight G c`` (or J' instead of F'), the derivative of the objective in the coordinates.

    The objective is ``½ ‖H u - y‖_Y² + ½ weight ‖q‖_Q²``.
    """
    c = np.asarray(coefficients)
    gradient = _differentiable(problem).misfit_gradient(problem.parameters.field(c), data)
    return np.asarray(gradient + weight * (problem.parameters.gram @ c))


def reduced_gradient_norm(
    problem: Problem, data: Data, parameter: Any, *, weight: float = 0.0, bounds: tuple[Any, Any] | None = None
) -> float:
    """Dual norm ``(g' G^-1 g)^(1/2)`` of the reduced gradient at a parameter's projection on the class.

    With an orthonormal basis this is the paper's r_opt, the Euclidean gradient norm of the ridge objective. On the
    sphere of a class with a ball ``‖q‖_L <= rho`` it is the least norm of ``g + mu L c`` over ``mu >= 0``, the distance
    of -g from the normal cone of the ball: zero exactly where the first-order conditions hold.

    Parameters
    ----------
    bounds
        ``(low, high)`` for the coordinates, numbers or vectors. The number is then ``L ‖c - P(c - G^-1 g / L)‖_Q`` with
        the projection P on the box in the norm of Q and the `curvature` L; it is zero exactly where the first-order
        conditions of the bounded problem hold (the proof is in `projected_norm`), and the dual norm where no bound is
        near.
    """
    number(weight, "weight", least=0.0)
    c = _coordinates(problem, problem.check_parameter(parameter))
    g = reduced_gradient(problem, problem.check_data(data), c, weight=weight)
    return _gradient_norm(problem, data, c, g, weight, bounds)


def curvature(problem: Problem, data: Data, coefficients: Array, *, weight: float = 0.0) -> float:
    """``trace(G^-1 (J' J + weight G))``, a bound of the Gauss-Newton Hessian of the objective in the norm of Q.

    J is the whitened derivative of the data in the coordinates.
    """
    space = _differentiable(problem).parameters
    linear = problem.linear
    J = problem.forward_matrix() if linear else problem.jacobian(space.field(coefficients))  # type: ignore[attr-defined]
    J = data.whiten(J)
    return float(np.sum(J.T * space.solve_gram(np.ascontiguousarray(J.T)))) + weight * space.dimension


def _gradient_norm(problem: Problem, data: Data, c: Array, g: Array, weight: float, bounds: Any) -> float:
    normal = _ball_normal(problem, c)
    if normal is not None and bounds is not None:
        raise InputError("bounds are given, and the parameter is on the sphere of its class; expected one of the two")
    if normal is not None:
        dual = problem.parameters.solve_gram(normal)
        g = g + max(-float(g @ dual) / float(normal @ dual), 0.0) * normal
    if bounds is None:
        return float(np.sqrt(max(float(g @ problem.parameters.solve_gram(g)), 0.0)))
    limits = coordinate_limits(bounds, problem.parameters.dimension)
    # Without any curvature (data that do not depend on the parameter) the gradient is zero too, and L only a unit.
    return projected_norm(
        problem.parameters, c, g, limits, curvature=curvature(problem, data, c, weight=weight) or 1.0
    )


def _coordinates(problem: Problem, parameter: Array) -> Array:
    """Of the projection of a parameter on the class, the ball included."""
    space = problem.parameters
    c, _ = space.project(parameter)
    return c * space.shrinkage(space.field(c))


def _ball_normal(problem: Problem, c: Array) -> Array | None:
    """``L c``, the normal of the ball at a point of its sphere; None inside, and without a ball."""
    space = problem.parameters
    if space.ball is None:
        return None
    q = space.field(c)
    pull = space.form(space.ball.norm) @ q
    if not np.sqrt(max(float(q @ pull), 0.0)) >= (1.0 - ON_SPHERE) * space.ball.radius:
        return None
    return np.asarray(space.matrix.T @ pull)


def _differentiable(problem: Any) -> LinearProblem | NonlinearProblem:
    return problem


@dataclass(frozen=True)
class KKT:
    """Residuals of the first-order conditions in state, adjoint and parameter; see `kkt_residual`.

    Attributes
    ----------
    state
        How far the state is from solving its equation, ``‖A(u, q)‖`` in the dual norm over the finite-element space.
    adjoint
        ``‖H' W (H u - y) + A_u' z‖`` in the same norm.
    parameter
        ``‖weight G c + B' A_q' z‖`` in the dual norm of the class, with bounds the projected one.
    total
        Root of the sum of the squares.
    """

    state: Bound
    adjoint: Bound
    parameter: Bound
    total: Bound


def kkt_residual(
    problem: Problem,
    data: Data,
    candidate: Candidate,
    *,
    weight: float,
    adjoint: Any = None,
    bounds: tuple[Any, Any] | None = None,
    norm: str = "energy",
) -> KKT:
    """First-order conditions of ``min ½ ‖H u - y‖_Y² + ½ weight ‖q‖_Q²`` subject to the state equation.

    With ``<A(u, q), v>`` the equation as left minus right side (``a(u, v) - l(q, v) - f(v)``, or ``R(u, q; v)``; minus
    `problem.residual`) the Lagrangian is ``½ ‖H u - y‖_Y² + ½ weight ‖q‖_Q² + <A(u, q), z>``. Its derivatives are

    - in z: ``A(u, q)``,
    - in u: ``H' W (H u - y) + A_u(u, q)' z`` with the weight W of Y,
    - in the coordinates c of q = B c: ``weight G c + B' A_q(u, q)' z`` (``A_q = -l`` for a linear problem).

    They are taken at the candidate's own state, which need not solve the equation, and at the projection of its
    parameter on the class (`Residuals.admissibility` says how far that is). u varies by, and z is one of, the functions
    that vanish on the Dirichlet part. If the state solves its equation and the adjoint its own, the parameter's part
    is `reduced_gradient_norm`.

    Parameters
    ----------
    adjoint
        Dof values of z, zero at the prescribed dofs. None: one solve makes the derivative in u vanish.
    bounds
        ``(low, high)`` for the coordinates; the derivative in c is then measured as in `reduced_gradient_norm`, and so
        it is on the sphere of a class with a ball.
    norm
        Of the states, ``"energy"`` or ``"h1"``.

    Returns
    -------
    KKT
        About the discretized problem, with its quadrature. State and adjoint are ``"lower"`` (to rounding) for all test
        functions too: any finite space gives a lower bound of the dual norm of the assembled functional. Only where the
        state misses its Dirichlet values is the state's an ``"estimate"``: ``(‖A(u, q)‖² + ‖v‖²)^(1/2)`` with the
        discrete lift v of ``u - g``, which in the energy norm is the distance from the discrete solution.

    Raises
    ------
    UncertifiedError
        The state equation is no equation of this form (the heat equation, tomography), or it has no energy norm.
    """
    _differentiable(problem)
    if isinstance(problem, HeatInitial) or not problem.has_state:
        kind = type(problem).__name__
        raise UncertifiedError(f"a {kind} has no state equation of this form; use reduced_gradient_norm")
    number(weight, "weight", least=0.0)
    check_candidate(problem, candidate)
    problem.check_data(data)
    c = _coordinates(problem, candidate.parameter)
    return _kkt(problem, data, np.asarray(candidate.state, dtype=float), c, weight, adjoint, bounds, norm)


def _kkt(
    problem: Problem, data: Data, u: Array, c: Array, weight: float, adjoint: Any, bounds: Any, norm: str
) -> KKT:
    q = problem.parameters.field(c)
    space = state_norm(problem, norm, state=u, parameter=q)
    A_u, A_q = _derivatives(problem, u, q)
    misfit = data.whiten_transposed(data.whiten(problem.observe(u) - data.values))
    pull = np.asarray(problem.sensors.matrix.T @ misfit)[problem.free]
    z = _solved_adjoint(problem, A_u, q, pull) if adjoint is None else _given_adjoint(problem, adjoint)
    g = weight * (problem.parameters.gram @ c) + problem.parameters.matrix.T @ (A_q.T @ z)
    state = _state_residual(problem, space, u, q)
    dual = Bound(_dual(space, pull + A_u.T @ z), "lower", f"adjoint residual in the dual {space.name} on the mesh")
    slope = _gradient_norm(problem, data, c, np.asarray(g), weight, bounds)
    parameter = Bound(slope, "lower", "derivative in the parameter, exact in the class")
    total = float(np.linalg.norm([state.value, dual.value, parameter.value]))
    return KKT(state, dual, parameter, Bound(total, state.side, "root of the sum of squares"))


def _derivatives(problem: Problem, u: Array, q: Array) -> tuple[Any, Any]:
    """``A_u`` and ``A_q`` at any pair, on the free dofs."""
    free = problem.free
    if problem.linear:
        return problem.operator[free][:, free], -problem.load[free]
    A_u, A_q = problem.derivatives(u, q)  # type: ignore[attr-defined]
    return A_u[free][:, free], A_q[free]


def _solved_adjoint(problem: Any, A_u: Any, q: Array, pull: Array) -> Array:
    """The z with ``A_u' z = -pull``, by the factorization of the state where that is the one of A_u."""
    if problem.linear:
        factor = problem.factor
    elif problem.linear_in_state:
        factor = problem.linearize(q).factor
    else:
        factor = Factorization(A_u, definite=problem.definite, name="derivative of the state equation")
    return -np.asarray(factor.solve_transposed(pull))


def _given_adjoint(problem: Problem, adjoint: Any) -> Array:
    z = real_vector(adjoint, int(problem.basis.N), "adjoint")
    if z[problem.boundary.prescribed].any():
        raise InputError("adjoint is not zero at the prescribed dofs; expected a function that vanishes there")
    return z[problem.free]


def _dual(space: StateNorm, functional: Array) -> float:
    return float(np.sqrt(max(float(functional @ space.factor.solve(functional)), 0.0)))


def _state_residual(problem: Problem, space: StateNorm, u: Array, q: Array) -> Bound:
    value = _dual(space, problem.residual(u, q)[problem.free])
    defect = u - problem.boundary.values
    defect[problem.free] = 0.0
    if not defect.any():
        return Bound(value, "lower", f"state residual in the dual {space.name} on the mesh")
    lift = space.lift(defect, problem.free)
    value = float(np.hypot(value, np.sqrt(max(float(lift @ (space.matrix @ lift)), 0.0))))
    return Bound(value, "estimate", f"state residual and boundary defect in the {space.name} on the mesh")
