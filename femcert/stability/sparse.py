"""Extreme singular values of a large forward map by sparse, matrix-free work: no matrix of size m x k."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import bmat, csr_matrix, diags, issparse

from ..checks import Array
from ..errors import InputError, SolveError, UncertifiedError
from ..linalg import Factorization, inverse_eigenpair, largest_eigenvalue
from ..problem.base import Problem
from ..problem.data import Data
from ..problem.forward import dense
from ..problem.space import ParameterSpace
from ..problem.states import SparseSystem


class SparseForward:
    """``F = H S l B`` by solves, and ``(F' F)^-1`` by one factorization of the optimality system.

    With the state u and the adjoint z, ``F' F x = y`` reads ``A u = l B x``, ``A' z = H' C^-1 H u``, ``B' l' z = y``:
    three sparse equations, factorized together.
    """

    def __init__(self, system: SparseSystem, space: ParameterSpace, data: Data | None) -> None:
        self.system = system
        self.load = csr_matrix(system.load @ space.matrix)
        H = system.sensors
        self._seen = csr_matrix(H.T @ _precision(data, H.shape[0]) @ H)
        A = csr_matrix(system.operator)
        optimality = bmat([[A, None, -self.load], [-self._seen, A.T, None], [None, self.load.T, None]], format="csc")
        self._sizes = A.shape[0], self.load.shape[1]
        try:
            self.factor = Factorization(optimality, definite=False, name="optimality system of the forward map")
        except SolveError as error:
            raise UncertifiedError(f"the sensors do not see some parameter of the class to rounding: {error}") from None

    def normal(self, x: Array) -> Array:
        """``F' F x``."""
        factor = self.system.factor
        u = factor.solve(self.load @ x)
        return np.asarray(self.load.T @ factor.solve_transposed(self._seen @ u))

    def inverse(self, y: Array) -> Array:
        """``(F' F)^-1 y``."""
        n, k = self._sizes
        return self.factor.solve(np.concatenate([np.zeros(2 * n), y]))[2 * n :].reshape(k)


def sparse_extremes(problem: Problem, data: Data | None) -> tuple[float, float, float, Array]:
    """The largest and the smallest singular value, what rounding may have moved them by, and the weakest direction.

    The smallest one is that nearest to the pair that Lanczos found, from below but for that rounding: an estimate. The
    direction is in coordinates, of unit norm.

    Raises
    ------
    InputError
        The problem has no sparse optimality system: heat, forms without a matrix, or a full covariance.
    UncertifiedError
        The smallest singular value is zero to rounding.
    SolveError
        An eigensolver did not converge; the message says what was reached.
    """
    system = problem.states[0].system() if len(problem.states) == 1 else None
    if system is None:
        name = type(problem).__name__
        raise InputError(f"the sparse route is for stationary linear problems, not for a {name}; use method='dense'")
    if not issparse(problem.parameters.matrix):
        raise InputError(
            "the sparse route is for local classes (Full-, Region- or CoarseSpace), not for global modes; "
            f"use method='dense', an SVD of {problem.observation_count} x {problem.parameters.dimension} numbers"
        )
    forward = SparseForward(system, problem.parameters, data)
    gram = problem.parameters.gram
    largest = float(np.sqrt(largest_eigenvalue(forward.normal, gram, problem.parameters.solve_gram)))
    square, direction = inverse_eigenpair(forward.inverse, forward.normal, gram)
    lost = problem.linearize().rounding_of(data) + system.factor.loss * (1.0 if data is None else data.spread)
    rounding = lost * largest
    if not square > 0.0 or not np.sqrt(square) > rounding:
        raise UncertifiedError(
            f"sigma_min = {np.sqrt(max(square, 0.0)):.2g} is zero to rounding (sigma_max = {largest:.2g}): the sensors "
            "do not see some parameter of the class, C_stab is infinite"
        )
    # The residual of the eigenpair is in `square`; what is left are the solves of the state equation.
    return largest, float(np.sqrt(square)), rounding, direction


def _precision(data: Data | None, m: int) -> Any:
    """Inverse covariance of the data, diagonal."""
    if data is None or data.covariance is None:
        return diags(np.ones(m))
    covariance = dense(data.covariance)
    if covariance.ndim == 2:
        off = covariance - np.diag(np.diag(covariance))
        if off.any():
            raise InputError("the sparse route takes independent noise; expected variances, not a full covariance")
        covariance = np.diag(covariance)
    return diags(1.0 / covariance)
