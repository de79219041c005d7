"""Rigorous weights: what a unit of physics or boundary residual can do to the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array
from ..errors import InputError, UncertifiedError
from ..linalg import Factorization, solve_mass
from ..mesh.elements import mass_matrix
from ..problem.base import Problem
from ..problem.data import Data
from ..problem.forward import BATCH, dense
from ..problem.states import StateEquation
from ..residual.energy import state_norm

# Rounding of the Gram matrices, relative to their largest eigenvalue.
ROUNDING = 1e-10


@dataclass(frozen=True)
class Weights:
    """Operator norms: ``‖H u - H S q‖_Y <= pde ‖r‖_V' + bc ‖u - g‖_1/2`` for every state of the discrete problem.

    Attributes
    ----------
    pde
        ``‖H S‖`` from the dual of V_h (energy norm) to Y; for heat, from the space-time norm.
    bc
        ``‖H E‖`` from H^1/2 (the least H1 norm of a lift) to Y, E the extension that the equation makes.
    """

    pde: Bound
    bc: Bound


def certified_weights(problem: Problem, *, data: Data | None = None) -> Weights:
    """The weights of a linear problem with a symmetric definite operator.

    ``‖H S‖² = lambda_max(H A^-1 H')``, since ``S r`` has the energy norm ``‖r‖_V'``. For the boundary, with the
    rows ``y_i = h_i - A_bf A_ff^-1 h_i`` on the Dirichlet dofs, ``‖H E‖² = lambda_max(y_i' (K^-1)_bb y_j)``, K the
    matrix of the H1 norm on all dofs: the inverse of its Schur complement is the block of its inverse.

    Raises
    ------
    UncertifiedError
        The operator has no energy norm, so no certified weight is known.
    """
    equation = problem.states[0] if len(problem.states) == 1 else None
    whiten = (lambda y: y) if data is None else problem.check_data(data).whiten
    spread = 1.0 if data is None else data.spread
    if equation is not None and equation.time is not None:
        return _of_heat(equation, len(equation.time.times), whiten)
    system = None if equation is None else equation.system()
    if equation is None or system is None:
        name = type(problem).__name__
        raise UncertifiedError(f"certified weights are for linear problems with a state, not for a {name}")
    if equation.energy() is None:
        raise UncertifiedError("the operator is not said to be symmetric definite; give weights as numbers")
    H = equation.sensors.matrix
    factor = state_norm(problem, "energy").factor
    free, fixed = equation.free, equation.boundary.prescribed
    z = _solved(factor, dense(H[:, free].T))
    pde = _largest(whiten(whiten(factor.gram_from_above(np.asarray(H[:, free] @ z))).T), factor.rounding * spread**2)
    operator = equation.derivatives(equation.boundary.values, np.zeros(problem.parameters.basis.N))[0]
    coupling = operator[fixed][:, free]
    y = dense(H[:, fixed].T) - coupling @ z
    return Weights(
        pde=Bound(pde, "upper", "norm of H S on the discrete problem"),
        bc=Bound(_boundary_norm(problem, equation, y, whiten, spread), "upper", "norm of H E on the discrete problem"),
    )


def _of_heat(equation: StateEquation, n: int, whiten: Callable[[Array], Array]) -> Weights:
    """``‖e(t)‖_L2 <= ‖e‖_Y`` at each of n times, so that ``(sum_i ‖H e(t_i)‖²)^1/2 <= n^1/2 ‖H‖ ‖e‖_Y``."""
    H, M = equation.sensors.matrix, mass_matrix(equation.basis)
    gram = np.asarray(H @ solve_mass(M, dense(H.T)))
    pde = np.sqrt(n) * _largest(whiten(whiten(np.kron(np.eye(n), gram)).T))
    if len(equation.boundary.prescribed):
        source = "norm of H in L2; boundary values of a heat state must be right"
    else:
        source = "norm of H in L2"
    weight = Bound(pde, "upper", source)
    return Weights(pde=weight, bc=weight)


def _solved(factor: Factorization, right: Array) -> Array:
    parts = [factor.solve(right[:, i : i + BATCH]) for i in range(0, right.shape[1], BATCH)]
    return np.hstack(parts)


def _boundary_norm(
    problem: Problem, equation: StateEquation, y: Array, whiten: Callable[[Array], Array], spread: float
) -> float:
    fixed = equation.boundary.prescribed
    if not len(fixed):
        return 0.0
    K: Any = state_norm(problem, "h1").matrix
    inner = state_norm(problem, "energy").factor.exact("a certified weight of boundary values")
    whole = Factorization(K, definite=True, name="H1 norm on all dofs")
    right = np.zeros((equation.basis.N, y.shape[1]))
    right[fixed] = y
    gram = whole.gram_from_above(np.asarray(y.T @ _solved(whole, right)[fixed]))
    # Errors of y count twice in the Gram matrix.
    return _largest(whiten(whiten(gram).T), (whole.loss + 2.0 * inner.loss) * spread**2)


def _largest(gram: Array, loss: float = 0.0) -> float:
    """Root of the largest eigenvalue of a Gram matrix, from above; `loss` is what its solves may have cost it."""
    if not np.all(np.isfinite(gram)):
        raise InputError("the sensors or the covariance are not finite")
    value = float(np.linalg.eigvalsh((gram + gram.T) / 2.0)[-1])
    return float(np.sqrt(max(value, 0.0) * (1.0 + ROUNDING + loss)))
