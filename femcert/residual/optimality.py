"""Stationarity of a reconstruction for a Tikhonov objective: reduced to the parameter, or with state and adjoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array, number, real_vector
from ..errors import InputError, UncertifiedError
from ..linalg import Factorization
from ..linalg.bounded import bounded_step
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.data import Data
from ..problem.space import ParameterSpace
from ..problem.states import StateEquation
from .energy import StateNorm, same_matrix, state_equation, state_norm

Limits = tuple[Array, Array]

# Relative distance from the sphere of a ball below which a parameter is on it.
ON_SPHERE = 1e-9


def reduced_gradient(
    problem: Problem, data: Data, coefficients: Array, *, weight: float = 0.0, gram: Any = None
) -> Array:
    """``F' (F c + y0 - y) + weight G c`` (or J' instead of F'), the derivative of the objective in the coordinates.

    The objective is ``½ ‖H u - y‖_Y² + ½ weight ‖q‖_Q²``, or with the matrix `gram` of another squared norm.
    """
    c = np.asarray(coefficients)
    gradient = problem.misfit_gradient(problem.parameters.field(c), data, coordinates=c)
    return np.asarray(gradient + weight * ((problem.parameters.gram if gram is None else gram) @ c))


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
    return gradient_norm(problem, problem.check_data(data), c, weight=weight, bounds=bounds)


def gradient_norm(
    problem: Problem,
    data: Data,
    coefficients: Array,
    *,
    weight: float = 0.0,
    bounds: tuple[Any, Any] | None = None,
    gram: Any = None,
) -> float:
    """`reduced_gradient_norm` at coordinates in the class; `gram` as for `reduced_gradient`, without bounds."""
    g = reduced_gradient(problem, data, coefficients, weight=weight, gram=gram)
    return _gradient_norm(problem, data, coefficients, g, weight, bounds)


def curvature(problem: Problem, data: Data, coefficients: Array, *, weight: float = 0.0) -> float:
    """``trace(G^-1 (J' J + weight G))``, a bound of the Gauss-Newton Hessian of the objective in the norm of Q.

    J is the whitened derivative of the data in the coordinates.
    """
    space = problem.parameters
    J = data.whiten(problem.linearize(space.field(coefficients)).matrix)
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
    return projected_norm(problem.parameters, c, g, limits, curvature=curvature(problem, data, c, weight=weight) or 1.0)


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
    if not space.ball_norm(q) >= (1.0 - ON_SPHERE) * space.ball.radius:
        return None
    pull = space.ball_form @ (q if space.ball.centre is None else q - space.ball.centre)
    return np.asarray(space.matrix.T @ pull)


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
    equation = state_equation(problem, "kkt_residual")
    if equation.time is not None:
        kind = type(problem).__name__
        raise UncertifiedError(f"a {kind} has no state equation of this form; use reduced_gradient_norm")
    number(weight, "weight", least=0.0)
    check_candidate(problem, candidate)
    problem.check_data(data)
    c = _coordinates(problem, candidate.parameter)
    return _kkt(problem, data, np.asarray(candidate.state, dtype=float), c, weight, adjoint, bounds, norm)


def _kkt(problem: Problem, data: Data, u: Array, c: Array, weight: float, adjoint: Any, bounds: Any, norm: str) -> KKT:
    equation, q = problem.states[0], problem.parameters.field(c)
    free = equation.free
    space = state_norm(problem, norm, state=u, parameter=q)
    operator, coupling = equation.derivatives(u, q)
    A_u, A_q = operator[free][:, free], coupling[free]
    misfit = data.whiten_transposed(data.whiten(problem.predict(u, q) - data.values))
    pull = np.asarray(equation.sensors.matrix.T @ misfit)[free]
    if adjoint is None:
        z = -np.asarray(_factor(equation, operator, u, q).solve_transposed(pull))
    else:
        z = _given_adjoint(equation, adjoint)
    g = weight * (problem.parameters.gram @ c) + problem.parameters.matrix.T @ (A_q.T @ z)
    state = _state_residual(equation, space, u, q)
    dual = Bound(_dual(space, pull + A_u.T @ z), "lower", f"adjoint residual in the dual {space.name} on the mesh")
    slope = _gradient_norm(problem, data, c, np.asarray(g), weight, bounds)
    parameter = Bound(slope, "lower", "derivative in the parameter, exact in the class")
    total = float(np.linalg.norm([state.value, dual.value, parameter.value]))
    return KKT(state, dual, parameter, Bound(total, state.side, "root of the sum of squares"))


def _factor(equation: StateEquation, operator: Any, u: Array, q: Array) -> Factorization:
    """Of A_u on the free dofs: that of the energy norm, where this is the norm of A_u."""
    energy = equation.energy(q, u)
    definite = energy is not None and same_matrix(energy.matrix, operator)
    if energy is not None and definite and energy.factor is not None:
        return energy.factor
    block = operator[equation.free][:, equation.free]
    return Factorization(block, definite=definite, name="derivative of the state equation")


def _given_adjoint(equation: StateEquation, adjoint: Any) -> Array:
    z = real_vector(adjoint, int(equation.basis.N), "adjoint")
    if z[equation.boundary.prescribed].any():
        raise InputError("adjoint is not zero at the prescribed dofs; expected a function that vanishes there")
    return z[equation.free]


def _dual(space: StateNorm, functional: Array) -> float:
    return float(np.sqrt(max(float(functional @ space.factor.solve(functional)), 0.0)))


def _state_residual(equation: StateEquation, space: StateNorm, u: Array, q: Array) -> Bound:
    value = _dual(space, equation.residual(u, q)[equation.free])
    defect = u - equation.boundary.values
    defect[equation.free] = 0.0
    if not defect.any():
        return Bound(value, "lower", f"state residual in the dual {space.name} on the mesh")
    lift = space.lift(defect, equation.free)
    value = float(np.hypot(value, np.sqrt(max(float(lift @ (space.matrix @ lift)), 0.0))))
    return Bound(value, "estimate", f"state residual and boundary defect in the {space.name} on the mesh")


def projected_norm(
    space: ParameterSpace, coordinates: Array, gradient: Array, limits: Limits, *, curvature: float
) -> float:
    """``L ‖c - P(c - G^-1 g / L)‖_Q``, P the projection on the box ``low <= c <= high`` in the norm of Q.

    It is zero exactly where the first-order conditions hold: c in the box, and ``g' (e - c) >= 0`` for all e in the box
    (coordinate by coordinate: ``g_i = 0`` inside, ``g_i >= 0`` at the low bound, ``g_i <= 0`` at the high one). For
    the projection p of ``c - G^-1 g / L`` is the point of the box with ``(p - c + G^-1 g / L)' G (e - p) >= 0`` for
    all e in it; if p = c this is ``g' (e - c) >= 0``, and if that holds then p = c satisfies it, and p is unique.

    Clipping each coordinate is that projection only where the Gram matrix G is diagonal. Where the step meets no bound
    the number is ``(g' G^-1 g)^(1/2)``, the dual norm of the gradient; it is never more than that for c in the box.

    Parameters
    ----------
    curvature
        L > 0, the size of the second derivative of the objective in the norm of Q: with it the step has the units of
        c, so that the bounds mean the same in any units of the data.
    """
    low, high = limits
    step = bounded_step(space.gram, gradient / curvature, low - coordinates, high - coordinates)
    return curvature * float(np.sqrt(max(step @ (space.gram @ step), 0.0)))


def check_bounds(bounds: Any) -> Any:
    """`bounds` if it is None or a pair (low, high) of numbers or vectors, else an `InputError`."""
    if bounds is None:
        return None
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise InputError(f"bounds is {bounds!r}; expected a pair (low, high)")
    if not all(_is_numeric(limit) for limit in bounds):
        raise InputError(f"bounds is {bounds!r}; expected numbers or vectors of numbers")
    return bounds


def coordinate_limits(bounds: Any, k: int) -> Limits:
    """``(low, high)`` as vectors of length `k`, infinite where there is no bound."""
    low, high = (-np.inf, np.inf) if bounds is None else check_bounds(bounds)
    limits = []
    for name, value in (("low", low), ("high", high)):
        array = np.asarray(value, dtype=float)
        if np.any(np.isnan(array)) or array.shape not in ((), (k,)):
            raise InputError(f"bounds: {name} has shape {array.shape}; expected a number or ({k},), no NaN")
        limits.append(np.array(np.broadcast_to(array, (k,))))
    if not np.all(limits[0] < limits[1]):
        raise InputError("bounds: expected low < high for every coordinate")
    return limits[0], limits[1]


def _is_numeric(limit: Any) -> bool:
    try:
        return np.asarray(limit).dtype.kind in "iuf" and not np.ma.is_masked(limit)
    except ValueError:
        return False
