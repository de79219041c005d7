"""The eigenproblems behind the modulus: ``M x = nu (F' F + kappa L) x`` for every multiplier kappa, bounded from above.

All multipliers share one small dense problem. With the lifted sensors ``Z = L^-1 F'`` and the first eigenvectors V of
``M v = theta L v``, let U be a basis of their span, orthonormal in L, and W what is orthogonal to it in L. There
``F W = 0`` and ``W' M W <= theta_W W' L W`` with the next eigenvalue theta_W, which a count of pivots proves. So
``T(kappa) = F' F + kappa L`` has no part that couples U and W, M has a small one, ``C = W' M U``, and the largest
eigenvalue nu of both is at most ``max(t, nu_t)`` for every ``t > theta_W / kappa``, where nu_t is that of

    M_UU + C' C / (t kappa - theta_W)    in    T_UU(kappa).
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import csc_matrix, issparse

from ..checks import Array
from ..errors import InputError, SolveError, UncertifiedError
from ..linalg import (
    dense_eigenpairs,
    dense_largest_eigenpair,
    is_definite,
    separated_eigenpairs,
)
from ..linalg.accuracy import EPS
from ..problem.ball_form import ROUNDING, BallForm
from ..problem.data import Data
from ..problem.forward import Linearization, dense

# Up to this many coordinates all eigenvectors of the ball are taken.
MOST_DENSE = 300
# More observations than this make the dense parts too large.
MOST_OBSERVATIONS = 4000
# How many eigenvectors of the ball are taken at first, and at most; so many combinations of the data at most.
FIRST_MODES, MOST_MODES = 60, 640
# Directions that are found at once, in parts of the longest of them; sensors see something if it is so many times the
# errors of the solves.
STRONG, CLEAR = 1e-5, 30.0
# Rows and columns of a tall matrix that are taken at a time.
ROWS, COLUMNS = 4096, 8
# Directions of V that lie in the span of Z to this part; squares of lengths.
DEPENDENT = 1e-20
# How far above the eigenvalue on U, and above theta_W / kappa, a trial value is.
CLOSE, APART = 1e-4, 5e-4


class Pencils:
    """``T(kappa) = F' F + kappa L`` in the inner product of Q, for every kappa.

    ``L + shift M`` takes the place of L (see `BallForm`), which moves all eigenvalues by ``kappa shift``; what rounding
    may add to L is subtracted likewise.

    Attributes
    ----------
    ball, gram
        L, as a `BallForm`, and M.
    balance
        The multiplier at which ``F' F`` and L weigh the same where the data see most.
    """

    def __init__(self, forward: Linearization, data: Data | None) -> None:
        space = forward.parameters
        # Missing readings are left out.
        m = forward.observation_count if data is None else data.count
        assert space.ball is not None
        if m > MOST_OBSERVATIONS:
            raise InputError(f"the modulus takes at most {MOST_OBSERVATIONS} observations; there are {m}")
        self._forward, self.data = forward, data
        self.gram = space.gram if issparse(space.gram) else csc_matrix(space.gram)
        self.ball = BallForm(space, self.gram)
        self._count = FIRST_MODES
        # The eigenvectors first: their work space is gone before there are sensors. Then both share one array.
        theta, V, rest = self._eigenpairs()
        U = np.empty((len(V), m + V.shape[1]), order="F")
        U[:, m:] = V
        del V
        forward.exact("a modulus")
        # Combinations of the data that were kept, where they are too many; a root of the form that weighs them, and
        # what rounding leaves of it.
        self._mixed: Array | None = None
        self._root: Array | None = None
        self._kept = 1.0
        self._lift(U[:, :m], self._weights())
        self._reduce(U, m, theta, rest)

    def _weights(self) -> Array:
        """Whitened data as combinations of the sensors, in columns."""
        unit = np.eye(self._forward.observation_count)
        return unit if self.data is None else self.data.whiten(unit).T

    def _functionals(self, weights: Array) -> Array:
        """``F'`` of combinations of the sensors: functionals on the coordinates, by one adjoint solve for each."""
        return dense(self._forward.parameters.matrix.T @ self._forward.adjoint(weights))

    def weighed(self, form: Array, turn: Array | None = None) -> Pencils:
        """The same with ``F' S F`` in place of ``F' F``, for a positive definite S; nothing is factorized anew.

        Parameters
        ----------
        form
            S.
        turn
            Rows that combine the whitened data, R: then it is ``F' R' S R F``.
        """
        result, S = copy.copy(self), form
        seen = self._combine.T @ self._seen
        if self._mixed is not None:
            if turn is not None:
                raise UncertifiedError(f"more than {MOST_MODES} data cannot be combined here; expected fewer")
            # S >= C' (C S^-1 C')^-1 C for the combinations C of the data that were kept.
            S = np.linalg.inv(self._mixed @ np.linalg.solve(S, self._mixed.T))
        elif turn is not None:
            seen = turn @ seen
        values, V = np.linalg.eigh((form + form.T) / 2.0)
        size, top = float(np.linalg.norm(S, 2)), float(np.linalg.norm(self._seen, 2))
        observed = seen.T @ S @ seen
        result._observed = (observed + observed.T) / 2.0
        # Errors of S are relative to its norm, those of F to its largest value.
        eps = 16.0 * len(S) * EPS
        result._leak, result.balance = float(np.sqrt(size)) * (self._leak + eps * top), size * self.balance
        result._kept = 1.0 - eps * float(values[-1] / values[0]) if values[0] > 0.0 else 0.0
        result._root = np.sqrt(np.maximum(values, 0.0))[:, None] * V.T
        result._root = result._root if turn is None else result._root @ turn
        # More eigenvectors would be those of the other form.
        result._count = MOST_MODES
        return result

    def adjoint(self) -> Array:
        """``F'`` in whitened data, ``(dimension, observations)``; it is computed anew, since it is tall."""
        weights = self._weights()
        return np.hstack([self._functionals(weights[:, columns]) for columns in _batches(len(weights))])

    def observe(self, X: Array) -> Array:
        """``F X`` in whitened data for columns of coordinates, by one solve for each."""
        values = self._forward.apply(self._forward.parameters.matrix @ X)
        seen = values if self.data is None else self.data.whiten(values)
        return seen if self._root is None else np.asarray(self._root @ seen)

    def least_misfit(self, values: Array, radius: float, most: float) -> float:
        """Lower bound of ``‖F x - y‖_Y`` over all x with ``‖x‖_L <= radius`` and ``‖x‖_Q <= most``.

        With ``F x = C' S z`` up to `_missed` times ``‖x‖_L``, where ``‖z‖ <= ‖x‖_L``, and ``eta = C y`` it is

            ``min { ‖S z - eta‖² : ‖z‖ <= r } >= sum eta_i² lam / (s_i² + lam) - lam r²``    for every ``lam >= 0``.

        Parameters
        ----------
        values
            y, not whitened, without the offset of the problem.
        """
        y = self._taken.T @ values
        eta, s2 = self._combine @ y, self._singular**2
        ball = self.ball
        r = float(np.sqrt((1.0 + ball.relative) * radius**2 + (ball.shift + 2.0 * ball.rounding) * most**2))
        lam = float(s2[0]) * np.geomspace(1e-30, 1e30, 2001)[:, None]
        within = np.sum(eta**2 * lam / (s2 + lam), axis=1) - lam[:, 0] * r**2
        beyond = float(np.linalg.norm(y - self._combine.T @ eta)) ** 2
        return float(np.sqrt(beyond + max(float(within.max()), 0.0))) - self._missed * r

    def _eigenpairs(self) -> tuple[Array, Array, float]:
        """The first eigenpairs of the ball, and what bounds the others; all of them for few coordinates."""
        L = self.ball
        if L.shape[0] > MOST_DENSE:
            return separated_eigenpairs(L, self.gram, self._count, factor=L, assembled=L.matrix, apart=L.apart)
        values, vectors = dense_eigenpairs(L.matrix, self.gram, shift=0.0)
        # What the eigensolver left out is infinite to rounding.
        return 1.0 / values, vectors / np.sqrt(values), 2e-14 / float(values[0])

    def grow(self) -> bool:
        """Twice as many eigenvectors of the ball, if they bound the rest better: rounding may hide them."""
        most = min(MOST_MODES, self.ball.shape[0] // 3)
        if self._count >= most or self.ball.shape[0] <= MOST_DENSE:
            return False
        self._count = min(2 * self._count, most)
        theta, V, rest = self._eigenpairs()
        if not rest < self._rest:
            return False
        r = len(self._singular)
        U = np.empty((len(V), r + V.shape[1]), order="F")
        U[:, :r], U[:, r:] = self._basis[:, :r], V
        self._reduce(U, r, theta, rest)
        return True

    def _lift(self, Z: Array, weights: Array) -> None:
        """``Z = L^-1 F'`` for combinations of the sensors, made orthonormal in L, and the singular values of F on it.

        Of very many combinations those with the largest singular values are lifted again, and no more: that is less
        data, and a larger modulus.
        """
        squares, missed = 0.0, 0.0
        for columns in _batches(Z.shape[1]):
            residual = self._functionals(weights[:, columns])
            Z[:, columns] = self.ball.solve(residual)
            squares += float(np.sum(residual * Z[:, columns]))
            residual -= self.ball @ Z[:, columns]
            missed += max(float(np.sum(residual * self.ball.solve(residual))), 0.0)
        # F' - L Z is at most this long in the norm of L^-1.
        error = float(np.sqrt(missed))
        floor = max(missed, EPS ** 2 * squares) / Z.shape[1]
        G, left = self._orthonormal(Z, floor)
        vectors, singular, combine = np.linalg.svd(G, full_matrices=False)
        if not len(singular) or not singular[0] > CLEAR * error:
            raise SolveError("the sensors see no parameter of the class to rounding")
        if len(singular) > MOST_MODES:
            self._mixed = combine[:MOST_MODES]
            return self._lift(Z[:, :MOST_MODES], weights @ combine[:MOST_MODES].T)
        self._taken, self._combine = weights, combine
        # F x = G' Q' L x for all x, up to so many times the norm of x in L.
        self._missed = error + left + float(np.linalg.norm(G - (vectors * singular) @ combine))
        self._singular, self._turn = singular, vectors
        self.balance = float(singular[0] ** 2)

    def _orthonormal(self, Z: Array, floor: float) -> tuple[Array, float]:
        """Turn Z into ``Q G`` by Gram and Schmidt, Q orthonormal in L and in the first columns of Z.

        Returns
        -------
        tuple
            G, and a bound of ``‖Z - Q G‖_L``. Directions with the square of their length below `floor` are left out.
        """
        n, m = Z.shape
        G, size, left = np.zeros((min(n, m), m)), 0, 0.0
        for columns in _batches(m):
            rest = Z[:, columns].copy()
            # Each time those of about the same length; then there is no room for more, or nothing but rounding is left.
            while True:
                Q = Z[:, :size]
                part = Q.T @ (self.ball @ rest)
                rest -= Q @ part
                G[:size, columns] += part
                squares, vectors = np.linalg.eigh(rest.T @ (self.ball @ rest))
                kept = squares > max(floor, STRONG**2 * squares[-1])
                kept[: max(len(kept) + size - min(columns.start + len(kept), n), 0)] = False
                if not kept.any():
                    break
                new, _ = self._complement(Q, rest @ (vectors[:, kept] / np.sqrt(squares[kept])), 0.1, rounds=2)
                Z[:, size : size + new.shape[1]] = new
                size += new.shape[1]
                if not new.shape[1]:
                    break
            left += max(float(np.trace(rest.T @ (self.ball @ rest))), 0.0)
        # What is left is rounding, and so is what it is computed with.
        return G[:size], 2.0 * float(np.sqrt(left))

    def _reduce(self, U: Array, start: int, theta: Array, rest: float) -> None:
        """The basis U, and M, F and L in it: lifted sensors first, and from the column `start` on eigenvectors."""
        r = len(self._singular)
        X, missed = self._complement(U[:, :r], U[:, start:], DEPENDENT)
        size = r + X.shape[1]
        for column in range(r, size if start > r else r):
            U[:, column] = X[:, column - r]
        self._basis = U = U[:, :size]
        # Where U is everything there is nothing else.
        whole = size == len(U)
        self._rest = 0.0 if whole else rest + float(theta[0]) * missed
        form, mass = _in_basis(self.ball, U), _in_basis(self.gram, U)
        coupling = np.zeros_like(mass) if whole else self._coupled(form, mass)
        self._form, self._mass, self._coupling = (self._turned(matrix) for matrix in (form, mass, coupling))
        # F on the turned U, the singular values and then zeros but for rounding; how symmetric L is shows more of it.
        seen, blurred = (self._singular[:, None] * part[:r] for part in (self._form, self._form - self._form.T))
        self._leak = self._missed + float(np.linalg.norm(blurred))
        self._seen, self._observed = seen, seen.T @ seen

    def _coupled(self, form: Array, mass: Array) -> Array:
        """``C' C = D' L D``, where ``D = L^-1 M U - U inner`` spans what M takes U to in W.

        As ``D' (M U - L U inner)``, which needs a few columns of D at a time.
        """
        U, result = self._basis, np.empty_like(mass)
        inner = np.linalg.solve(form, mass)
        for columns in _batches(len(mass)):
            D = self.ball.solve(self.gram @ U[:, columns]) - U @ inner[:, columns]
            result[columns] = (self.gram @ D).T @ U - ((self.ball @ D).T @ U) @ inner
        # It is symmetric but for rounding.
        rounding = float(np.linalg.norm(result - result.T)) + ROUNDING * float(np.trace(result))
        return np.asarray((result + result.T) / 2.0 + rounding * np.eye(len(mass)))

    def _turned(self, matrix: Array) -> Array:
        """A form in U, in the basis in which F is diagonal."""
        r, result = len(self._turn), matrix.copy()
        result[:r] = self._turn.T @ result[:r]
        result[:, :r] = result[:, :r] @ self._turn
        return result

    def _complement(self, U: Array, V: Array, floor: float, *, rounds: int = 3) -> tuple[Array, float]:
        """An orthonormal basis of V beyond U, in the memory of V, and the squares of the lengths that were left out.

        Those are at most `floor` each.
        """
        X, missed = V, 0.0
        for _ in range(rounds):
            for columns in _batches(X.shape[1]):
                X[:, columns] -= U @ (U.T @ (self.ball @ X[:, columns]))
            squares, vectors = np.linalg.eigh(_in_basis(self.ball, X))
            kept = squares > floor
            kept[: max(U.shape[1] + len(kept) - len(U), 0)] = False
            missed += float(np.sum(np.maximum(squares[~kept], 0.0))) + floor * int(np.sum(~kept))
            X = _rotated(X, vectors[:, kept] / np.sqrt(squares[kept]))
        return X, missed

    def least(self, kappa: float) -> tuple[float, Array]:
        """Lower bound of the least eigenvalue of ``T(kappa)`` in Q, and a vector close to its eigenvector.

        Not positive where rounding hides it.
        """
        # ‖F x‖ is at least what is seen of the part in U, less leak times ‖x‖_L.
        factors = (self._kept, 1.0 - 2.0 * self._leak / np.sqrt(kappa), 1.0 - self.ball.relative)
        kept = float(np.prod(factors))
        if not (min(factors) > 0.0 and kept > 0.5):
            return 0.0, self._basis[:, 0]
        T = self._observed + kappa * self._form
        scale = 1.0 / np.sqrt(np.diag(T))
        outer = np.outer(scale, scale)
        inner, y = dense_largest_eigenpair(self._mass * outer, T * outer)
        nu = max((1.0 + CLOSE) * inner, (1.0 + APART) * self._rest / kappa)
        coupled = self._mass + self._coupling / (nu * kappa - self._rest)
        if not is_definite((nu * T - coupled) * outer):
            nu = max(nu, dense_largest_eigenpair(coupled * outer, T * outer)[0])
        return kept / nu - kappa * (self.ball.shift + self.ball.rounding), self._vector(scale * y)

    def beside(self, nu: float, turn: Array | None = None) -> tuple[Array, Array, float, float] | None:
        """What ``‖v + y‖_Q² - nu (y' T(1) y)`` is at most over all y, for ``v = (L + shift M)^-1 F' g``.

        It is at most ``g' V' (I - D / nu)^-1 V g`` where the matrix is positive definite: with ``R' R`` the form
        ``M_UU + C' C / (nu - theta_W)`` that bounds M for given parts in U, ``D = R T_UU^-1 R'``.

        Parameters
        ----------
        nu
            Above that of `least`.
        turn
            As for `weighed`: v is then ``L^-1 F' R' g``.

        Returns
        -------
        tuple
            V, D, how many times ``‖y‖_Q²`` is lost per nu, and by which part of ``‖v‖_Q`` the shift moves v; None where
            rounding or the shift hide it.
        """
        kept = self._kept * (1.0 - 2.0 * self._leak) * (1.0 - self.ball.relative)
        # M <= theta (L + shift M), so that M <= theta / (1 - shift theta) L.
        bent = self.ball.shift * (1.01 * float(np.linalg.norm(self._mass, 2)) + self._rest)
        if self._mixed is not None or not (kept > 0.5 and kept * nu > (1.0 + APART) * self._rest and bent < 0.5):
            return None
        T = kept * (self._observed + self._form)
        scale = 1.0 / np.sqrt(np.diag(T))
        values, Q = np.linalg.eigh(self._mass + self._coupling / (kept * nu - self._rest))
        R = np.sqrt(np.maximum(values, 0.0) + len(values) * EPS * values[-1])[:, None] * Q.T
        try:
            root = cholesky(T * np.outer(scale, scale), lower=True)
        except np.linalg.LinAlgError:
            return None
        half = solve_triangular(root, scale[:, None] * R.T, lower=True)
        seen = self._combine.T @ self._seen
        lifted = np.linalg.solve(self._form, (seen if turn is None else turn @ seen).T)
        return R @ lifted, half.T @ half, self.ball.shift + self.ball.rounding, bent / (1.0 - bent)

    def _vector(self, y: Array) -> Array:
        r = len(self._turn)
        return np.asarray(self._basis @ np.append(self._turn @ y[:r], y[r:]))


def _batches(count: int, size: int = COLUMNS) -> list[slice]:
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
