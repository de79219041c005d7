"""The eigenproblems behind the modulus: ``M x = nu (F' F + kappa L) x`` for every multiplier kappa, bounded from above.

All multipliers share one small dense problem. With the lifted sensors ``Z = L^-1 F'`` and the first eigenvectors V of
``M v = theta L v``, let U be a basis of their span, orthonormal in L, and W what is orthogonal to it in L. There
``F W = 0`` and ``W' M W <= theta_W W' L W`` with the next eigenvalue theta_W, which a count of pivots proves. So
``T(kappa) = F' F + kappa L`` has no part that couples U and W, M has a small one, ``C = W' M U``, and the largest
eigenvalue nu of both is at most ``max(t, nu_t)`` for every ``t > theta_W / kappa``, where nu_t is that of

    M_UU + C' C / (t kappa - theta_W)    in    T_UU(kappa).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix, issparse

from ..errors import InputError, SolveError
from ..linalg import (
    Factorization,
    dense_eigenpairs,
    dense_largest_eigenpair,
    diagonal_part,
    is_definite,
    separated_eigenpairs,
)
from ..problem.checks import Array
from ..problem.data import Data
from ..problem.linear import BATCH, LinearProblem, dense
from ..problem.mesh import measures

# Up to this many coordinates all eigenvectors of the ball are taken.
MOST_DENSE = 300
# More observations than this make the dense parts too large.
MOST_OBSERVATIONS = 4000
# How many eigenvectors of the ball are taken at first, and at most; so many combinations of the data at most.
FIRST_MODES, MOST_MODES = 60, 640
# Directions that are found at once, in parts of the largest singular value; singular values below so many times the
# errors of the solves are left out.
STRONG, CLEAR = 1e-5, 30.0
# Rows of a tall matrix that are multiplied at a time.
ROWS = 4096
# Directions of V that lie in the span of Z to this part; squares of lengths.
DEPENDENT = 1e-20
# How far above the eigenvalue on U, and above theta_W / kappa, a trial value is.
CLOSE, APART = 1e-4, 5e-4
# The shift of a ball, in parts of its scale.
SHIFT = 1e-3
# Of entries of the assembled forms and of their products, in parts of the absolute values.
ROUNDING = 16.0 * float(np.finfo(float).eps)


def _shift(norm: str, mesh: Any) -> float:
    """Small against the first eigenvalue that is not that of a constant, about ``(pi / d)²`` on a domain of size d."""
    size = float(np.sum(measures(mesh))) ** (1.0 / mesh.dim())
    return {"l2": 0.0, "h2": SHIFT / size**4}.get(norm, SHIFT / size**2)


def _adjoint(problem: LinearProblem, data: Data | None) -> Array:
    """``F'`` in whitened data, ``(dimension, observations)``, by one adjoint solve for each observation."""
    m, B = problem.observation_count, problem.parameters.matrix
    if m > MOST_OBSERVATIONS:
        raise InputError(f"the modulus takes at most {MOST_OBSERVATIONS} observations; there are {m}")
    problem.factor.exact("a modulus")
    weights = np.eye(m) if data is None else data.whiten(np.eye(m)).T
    result = np.empty((problem.parameters.dimension, m))
    for columns in _batches(m):
        result[:, columns] = dense(B.T @ problem.adjoint_response(weights[:, columns]))
    result.flags.writeable = False
    return result


class Family:
    """``T(kappa) = F' F + kappa L`` in the inner product of Q, for every kappa.

    A seminorm as ball has no inverse, nor has a norm on a tiny domain to rounding; ``L + shift M`` takes its place,
    which moves all eigenvalues by ``kappa shift``. Rounding may make L larger by up to ``rounding M``, which is
    subtracted likewise.

    Attributes
    ----------
    adjoint, form, gram
        ``F'``, L and M.
    balance
        The multiplier at which ``F' F`` and L weigh the same where the data see most.
    """

    _lifted: Array

    def __init__(self, problem: LinearProblem, data: Data | None) -> None:
        space = problem.parameters
        assert space.ball is not None
        B = space.matrix
        self.form = B.T @ (space.form(space.ball.norm) @ B)
        self.gram = space.gram if issparse(space.gram) else csc_matrix(space.gram)
        self.shift = _shift(space.ball.norm, space.basis.mesh)
        L = csc_matrix(self.form) + self.shift * self.gram
        self._L = csr_matrix((L + L.T) / 2.0)
        self.rounding = ROUNDING * float(np.max(abs(self._L) @ np.ones(L.shape[0]) / diagonal_part(self.gram)))
        self._factor = Factorization(self._L, definite=True, name="form of the ball").exact("a modulus")
        self._count = FIRST_MODES
        # The eigenvectors first: their work space is gone before the tall arrays of the sensors are there.
        pairs = self._eigenpairs()
        self.adjoint = _adjoint(problem, data)
        self._lift()
        self._reduce(*pairs)

    def _eigenpairs(self) -> tuple[Array, Array, float]:
        """The first eigenpairs of the ball, and what bounds the others; all of them for few coordinates."""
        if self._L.shape[0] > MOST_DENSE:
            return separated_eigenpairs(self._L, self.gram, self._count, factor=self._factor)
        values, vectors = dense_eigenpairs(self._L, self.gram, shift=0.0)
        # What the eigensolver left out is infinite to rounding.
        return 1.0 / values, vectors / np.sqrt(values), 2e-14 / float(values[0])

    def grow(self) -> bool:
        """Twice as many eigenvectors of the ball, if they bound the rest better: rounding may hide them."""
        most = min(MOST_MODES, self._L.shape[0] // 3)
        if self._count >= most or self._L.shape[0] <= MOST_DENSE:
            return False
        self._count = min(2 * self._count, most)
        theta, V, rest = self._eigenpairs()
        if not rest < self._rest:
            return False
        self._reduce(theta, V, rest)
        return True

    def _reduce(self, theta: Array, V: Array, rest: float) -> None:
        """The basis U, and M, F and L in it."""
        p = self._lifted.shape[1]
        X, missed = self._complement(self._lifted, V, DEPENDENT)
        U = np.empty((len(X), p + X.shape[1]))
        U[:, :p], U[:, p:] = self._lifted, X
        # From here on the same memory.
        self._basis, self._lifted = U, U[:, :p]
        # Where U is everything there is nothing else.
        whole = U.shape[1] == len(U)
        self._rest = 0.0 if whole else rest + float(theta[0]) * missed
        self._form, self._mass = _in_basis(self._L, U), _in_basis(self.gram, U)
        # F is diagonal on U, the singular values and then zeros, but for the errors of the solves.
        singular = np.append(self._singular, np.zeros(X.shape[1]))
        seen = self._combine.T @ (self.adjoint.T @ U)
        self._leak = self._missed + float(np.linalg.norm(seen - np.diag(singular)[:p]))
        self._observed = np.diag(singular**2)
        # D = (I - U U' L) L^-1 M U spans what M takes U to in W; C' C = D' L D.
        D = np.empty_like(U)
        inner = np.linalg.solve(self._form, self._mass)
        for columns in _batches(U.shape[1]):
            D[:, columns] = self._factor.solve(self.gram @ U[:, columns]) - U @ inner[:, columns]
        self._coupling = np.zeros_like(self._mass) if whole else _in_basis(self._L, D)

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
        # |F w| <= missed ‖w‖_L for w orthogonal to Z in L, from its residuals.
        self._missed = float(np.sqrt(missed))
        Q = self._orthonormal(Z)
        # F in this basis: an SVD finds small singular values that its square has lost.
        vectors, singular, combine = np.linalg.svd(Q.T @ self.adjoint, full_matrices=False)
        kept = singular > CLEAR * self._missed
        kept[MOST_MODES:] = False
        self._singular, self._combine = singular[kept], combine[kept].T
        self.balance = float(singular[0] ** 2)
        # What Q leaves of the lifted combinations is not orthogonal to W.
        left = 0.0
        for columns in _batches(self._combine.shape[1]):
            rest = Z @ self._combine[:, columns]
            for _ in range(2):
                rest -= Q @ (Q.T @ (self._L @ rest))
            left += max(float(np.sum(rest * (self._L @ rest))), 0.0)
        self._missed += float(np.sqrt(left))
        self._lifted = _rotated(Q, vectors[:, kept])

    def _orthonormal(self, Z: Array) -> Array:
        """A basis of the span of Z, orthonormal in L: first the strong directions, then what they leave."""
        middle = self.adjoint.T @ Z
        squares, vectors = np.linalg.eigh((middle + middle.T) / 2.0)
        largest = float(np.sqrt(max(squares[-1], 0.0)))
        if not largest > CLEAR * self._missed:
            raise SolveError("the sensors see no parameter of the class to rounding")
        kept = squares > (STRONG * largest) ** 2
        strong = Z @ (vectors[:, kept] / np.sqrt(squares[kept]))
        if kept.all():
            return strong
        floor = (CLEAR * max(self._missed / largest, float(np.finfo(float).eps))) ** 2
        weak, _ = self._complement(strong, Z @ (vectors[:, ~kept] / largest), floor)
        return np.hstack([strong, weak])

    def _complement(self, U: Array, V: Array, floor: float) -> tuple[Array, float]:
        """An orthonormal basis of V beyond U, in the memory of V, and the squares of the lengths that were left out.

        Those are at most `floor` each.
        """
        X, missed = V, 0.0
        for _ in range(3):
            for columns in _batches(X.shape[1]):
                X[:, columns] -= U @ (U.T @ (self._L @ X[:, columns]))
            squares, vectors = np.linalg.eigh(_in_basis(self._L, X))
            kept = squares > floor
            kept[: max(U.shape[1] + len(kept) - len(U), 0)] = False
            missed += float(np.sum(np.maximum(squares[~kept], 0.0))) + floor * int(np.sum(~kept))
            X = _rotated(X, vectors[:, kept] / np.sqrt(squares[kept]))
        return X, missed

    def least(self, kappa: float) -> tuple[float, Array]:
        """Lower bound of the least eigenvalue of ``T(kappa)`` in Q, and a vector close to its eigenvector.

        Not positive where rounding hides it.
        """
        # ‖F x‖ is at least that of the diagonal part, less leak times ‖x‖_L.
        kept = 1.0 - 2.0 * self._leak / np.sqrt(kappa)
        if not kept > 0.5:
            return 0.0, self._basis[:, 0]
        T = self._observed + kappa * self._form
        scale = 1.0 / np.sqrt(np.diag(T))
        outer = np.outer(scale, scale)
        inner, y = dense_largest_eigenpair(self._mass * outer, T * outer)
        nu = max((1.0 + CLOSE) * inner, (1.0 + APART) * self._rest / kappa)
        coupled = self._mass + self._coupling / (nu * kappa - self._rest)
        if not is_definite((nu * T - coupled) * outer):
            nu = max(nu, dense_largest_eigenpair(coupled * outer, T * outer)[0])
        return kept / nu - kappa * (self.shift + self.rounding), self._basis @ (scale * y)


def _batches(count: int, size: int = BATCH) -> list[slice]:
    return [slice(i, i + size) for i in range(0, count, size)]


def _rotated(X: Array, weights: Array) -> Array:
    """``X @ weights`` in the memory of X."""
    count = weights.shape[1]
    for rows in _batches(len(X), ROWS):
        X[rows, :count] = X[rows] @ weights
    return X[:, :count]


def _in_basis(matrix: Any, U: Array) -> Array:
    """``U' A U`` without another array of this size."""
    result = np.empty((U.shape[1], U.shape[1]))
    for columns in _batches(U.shape[1]):
        result[:, columns] = U.T @ (matrix @ U[:, columns])
    return result
