"""The eigenproblems behind the modulus: ``M x = nu (F' F + kappa L) x`` for every multiplier kappa, bounded from above.

All multipliers share one small dense problem. With the lifted sensors ``Z = L^-1 F'`` and the first eigenvectors V of
``M v = theta L v``, let U be a basis of their span, orthonormal in L, and W what is orthogonal to it in L. There
``F W = 0`` and ``W' M W <= theta_W W' L W`` with the next eigenvalue theta_W, which a count of pivots proves. So
``T(kappa) = F' F + kappa L`` has no part that couples U and W, M has a small one, ``C = W' M U``, and the largest
eigenvalue nu of both is at most ``max(t, nu_t)`` for every ``t > theta_W / kappa``, where nu_t is that of

    M_UU + C' C / (t kappa - theta_W)    in    T_UU(kappa).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix, issparse

from ..errors import InputError, SolveError
from ..linalg import (
    Factorization,
    dense_largest_eigenpair,
    dense_least_eigenpair,
    separated_eigenpairs,
)
from ..problem.checks import Array
from ..problem.data import Data
from ..problem.linear import BATCH, LinearProblem, dense

# Up to this many coordinates the eigenproblems are dense themselves.
MOST_DENSE = 300
# More observations than this make the dense parts too large.
MOST_OBSERVATIONS = 4000
# How many eigenvectors of the ball are taken at first, and at most; so many combinations of the data at most.
FIRST_MODES, MOST_MODES = 60, 640
# Combinations of the data are left out whose singular values are below this part of the largest one, or less than so
# many times the errors of the solves.
LEAST_SINGULAR, CLEAR = 1e-6, 30.0
# Rows of a tall matrix that are multiplied at a time.
ROWS = 4096
# Directions of V that lie in the span of Z to this part; squares of lengths.
DEPENDENT = 1e-20
# How far from theta_W / kappa a trial value stays.
MARGIN = 5e-4


class Family(Protocol):
    """``T(kappa) = F' F + kappa L`` in the inner product of Q."""

    adjoint: Array
    form: Any
    gram: Any
    balance: float

    def least(self, kappa: float) -> tuple[float, Array]:
        """Lower bound of the least eigenvalue of ``T(kappa)`` in Q, and a vector close to its eigenvector."""

    def grow(self) -> bool:
        """Make the bounds closer; False if they are as close as they get."""


def family(problem: LinearProblem, data: Data | None) -> Family:
    """The eigenproblems of a problem whose class has a ball."""
    space = problem.parameters
    assert space.ball is not None
    B = space.matrix
    L = B.T @ (space.form(space.ball.norm) @ B)
    kind = DenseFamily if space.dimension <= MOST_DENSE else ReducedFamily
    return kind(adjoint_matrix(problem, data), L, space.gram, seminorm=space.ball.norm == "h1-seminorm")


def adjoint_matrix(problem: LinearProblem, data: Data | None) -> Array:
    """``F'`` in whitened data, ``(dimension, observations)``, by one adjoint solve for each observation."""
    m, B = problem.observation_count, problem.parameters.matrix
    if m > MOST_OBSERVATIONS:
        raise InputError(f"the modulus takes at most {MOST_OBSERVATIONS} observations; there are {m}")
    weights = np.eye(m) if data is None else data.whiten(np.eye(m)).T
    result = np.empty((problem.parameters.dimension, m))
    for columns in _batches(m):
        result[:, columns] = dense(B.T @ problem.adjoint_response(weights[:, columns]))
    result.flags.writeable = False
    return result


class DenseFamily:
    """Few coordinates: the pencil itself."""

    def __init__(self, adjoint: Array, form: Any, gram: Any, *, seminorm: bool) -> None:
        self.adjoint, self.form, self.gram = adjoint, dense(form), dense(gram)
        self._observed = adjoint @ adjoint.T
        self.balance = float(np.trace(self._observed) / np.trace(self.form))

    def least(self, kappa: float) -> tuple[float, Array]:
        """See `Family.least`."""
        return dense_least_eigenpair(self._observed + kappa * self.form, self.gram)

    def grow(self) -> bool:
        """The bounds are exact to rounding."""
        return False


class ReducedFamily:
    """Many coordinates: the dense problem on U, and what W can add to it.

    A seminorm as ball has no inverse; ``L + shift M`` takes its place, which moves all eigenvalues by ``kappa shift``.
    """

    _lifted: Array

    def __init__(self, adjoint: Array, form: Any, gram: Any, *, seminorm: bool) -> None:
        self.adjoint, self.form = adjoint, form
        self.gram = gram if issparse(gram) else csc_matrix(gram)
        L = csc_matrix(form)
        # Against the smallest eigenvalue that is not zero, which for a domain of size d is about (pi / d)².
        self.shift = 1e-5 * float(L.diagonal().sum() / self.gram.diagonal().sum() / L.shape[0]) if seminorm else 0.0
        L = L + self.shift * self.gram
        self._L = csr_matrix((L + L.T) / 2.0)
        self._factor = Factorization(self._L, definite=True, name="form of the ball")
        self._lift()
        self._count = FIRST_MODES
        self._reduce(*separated_eigenpairs(self._L, self.gram, self._count, factor=self._factor))

    def grow(self) -> bool:
        """Twice as many eigenvectors of the ball, if they bound the rest better: rounding may hide them."""
        most = min(MOST_MODES, self._L.shape[0] // 3)
        if self._count >= most:
            return False
        self._count = min(2 * self._count, most)
        theta, V, rest = separated_eigenpairs(self._L, self.gram, self._count, factor=self._factor)
        if not rest < self._rest:
            return False
        self._reduce(theta, V, rest)
        return True

    def _reduce(self, theta: Array, V: Array, rest: float) -> None:
        """The basis U, and M, F and L in it."""
        p = self._lifted.shape[1]
        X, missed = self._complement(self._lifted, V)
        U = np.empty((len(X), p + X.shape[1]))
        U[:, :p], U[:, p:] = self._lifted, X
        # From here on the same memory.
        self._basis, self._lifted = U, U[:, :p]
        self._rest = rest + float(theta[0]) * missed
        self._form, self._mass = _in_basis(self._L, U), _in_basis(self.gram, U)
        seen = self._combine.T @ (self.adjoint.T @ U)
        self._observed = seen.T @ seen
        # D = (I - U U' L) L^-1 M U spans what M takes U to in W; C' C = D' L D.
        D = np.empty_like(U)
        inner = np.linalg.solve(self._form, self._mass)
        for columns in _batches(U.shape[1]):
            D[:, columns] = self._factor.solve(self.gram @ U[:, columns]) - U @ inner[:, columns]
        self._coupling = _in_basis(self._L, D)

    def _lift(self) -> None:
        """Orthonormal combinations of ``Z = L^-1 F'``, and those of the data that they belong to.

        Combinations with tiny singular values are left out: that is less data, and a larger modulus.
        """
        Z = np.empty_like(self.adjoint)
        missed = 0.0
        for columns in _batches(Z.shape[1]):
            Z[:, columns] = self._factor.solve(self.adjoint[:, columns])
            residual = self.adjoint[:, columns] - self._L @ Z[:, columns]
            missed += max(float(np.sum(residual * self._factor.solve(residual))), 0.0)
        middle = self.adjoint.T @ Z
        squares, vectors = np.linalg.eigh((middle + middle.T) / 2.0)
        if not squares[-1] > CLEAR**2 * missed:
            raise SolveError("the sensors see no parameter of the class to rounding")
        # |F w| <= leak ‖w‖_L on W, from the residuals of Z.
        self._leak = float(np.sqrt(missed))
        kept = squares > max(LEAST_SINGULAR**2 * squares[-1], CLEAR**2 * missed)
        kept[: max(len(kept) - MOST_MODES, 0)] = False
        self.balance = float(squares[-1])
        self._combine = vectors[:, kept]
        change = self._combine / np.sqrt(squares[kept])
        for rows in _batches(len(Z), ROWS):
            Z[rows, : change.shape[1]] = Z[rows] @ change
        self._lifted = Z[:, : change.shape[1]]

    def _complement(self, U: Array, V: Array) -> tuple[Array, float]:
        """An orthonormal basis of V beyond U, and the squares of the lengths that were left out."""
        X, missed = V, 0.0
        for _ in range(3):
            X = X - U @ (U.T @ (self._L @ X))
            squares, vectors = np.linalg.eigh(X.T @ (self._L @ X))
            kept = squares > DEPENDENT
            missed += float(np.sum(np.maximum(squares[~kept], 0.0))) + DEPENDENT * int(np.sum(~kept))
            X = X @ (vectors[:, kept] / np.sqrt(squares[kept]))
        return X, missed

    def least(self, kappa: float) -> tuple[float, Array]:
        """See `Family.least`; zero where rounding hides it."""
        kept = 1.0 - self._leak / np.sqrt(kappa)
        if not kept > 0.5:
            return 0.0, self._basis[:, 0]
        T = self._observed + kappa * self._form
        scale = 1.0 / np.sqrt(np.diag(T))
        outer = np.outer(scale, scale)
        inner, y = dense_largest_eigenpair(self._mass * outer, T * outer)
        trial = max(inner, (1.0 + MARGIN) * self._rest / kappa)
        coupled = self._mass + self._coupling / (trial * kappa - self._rest)
        nu = max(trial, dense_largest_eigenpair(coupled * outer, T * outer)[0])
        return kept / nu - kappa * self.shift, self._basis @ (scale * y)


def _batches(count: int, size: int = BATCH) -> list[slice]:
    return [slice(i, i + size) for i in range(0, count, size)]


def _in_basis(matrix: Any, U: Array) -> Array:
    """``U' A U`` without another array of this size."""
    return np.hstack([U.T @ (matrix @ U[:, columns]) for columns in _batches(U.shape[1])])
