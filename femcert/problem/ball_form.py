"""The form of a ball, ``‖q‖² = c' L c``, applied and inverted with as few rounding errors as it allows.

The norm of H2 is that of ``R q`` with ``R = D^-1/2 (M + K)``, so that ``L = R' R`` has the square of the condition
number of R, 1e12 on a line of 400 cells. Products with the assembled L lose ``eps cond(L)`` in the norm of L, and
differently on every processor; products with R and then R' lose ``eps cond(L)^1/2``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

from ..checks import Array
from ..linalg import Factorization, diagonal_part
from ..linalg.accuracy import EPS
from ..mesh.geometry import measures

# The shift of a ball, in parts of its scale.
SHIFT = 1e-3
# Of entries of the assembled forms and of their products, in parts of the absolute values.
ROUNDING = 16.0 * EPS
# Steps of iterative refinement; each takes the error of a solve, at most eps cond(L), times itself.
REFINEMENTS = 2


class BallForm:
    """``L + shift M`` on the coordinates of a space with a ball; M is the inner product of Q.

    A seminorm as ball has no inverse, nor has a norm on a tiny domain to rounding; the shift gives it one.

    Parameters
    ----------
    space
        With its ball.
    gram
        M, sparse.

    Attributes
    ----------
    unshifted
        L, assembled.
    matrix
        ``L + shift M``, assembled and symmetric.
    rounding, relative
        Without rounding errors L is at least ``(1 - relative) L - rounding M``, with the L that is applied here.
    apart
        The assembled matrix is within ``apart M`` of what is applied.
    """

    def __init__(self, space: Any, gram: Any) -> None:
        norm, B = space.ball.norm, space.matrix
        root = space.root_of_form(norm, space.ball.length)
        self._root = None if root is None else root @ B
        self._gram = gram
        self.unshifted = B.T @ (space.ball_form @ B)
        self.shift = _shift(space, norm)
        L = csc_matrix(self.unshifted) + self.shift * gram
        self.matrix = csr_matrix((L + L.T) / 2.0)
        self.shape = self.matrix.shape
        ones, least = np.ones(L.shape[0]), diagonal_part(gram)
        if self._root is None:
            self.rounding, self.relative, self.apart = ROUNDING * _most(abs(self.matrix) @ ones, least), 0.0, 0.0
        else:
            # ‖(R + dR) c‖ >= ‖R c‖ - eta ‖c‖_M, and 2 eta ‖R c‖ ‖c‖_M <= eta (‖R c‖² + ‖c‖_M²).
            square = _most(abs(self._root).T @ (abs(self._root) @ ones) + self.shift * (abs(gram) @ ones), least)
            self.rounding = self.relative = ROUNDING * float(np.sqrt(square))
            self.apart = 2.0 * ROUNDING * square
        self._factor = Factorization(self.matrix, definite=True, name="form of the ball").exact("a modulus")
        self.gram_from_above = self._factor.gram_from_above

    def __matmul__(self, X: Array) -> Array:
        if self._root is None:
            return np.asarray(self.matrix @ X)
        return np.asarray(self._root.T @ (self._root @ X) + self.shift * (self._gram @ X))

    def squares(self, X: Array) -> Array:
        """``X' L X`` without the shift."""
        if self._root is None:
            return np.asarray(X.T @ (self.unshifted @ X))
        RX = self._root @ X
        return np.asarray(RX.T @ RX)

    def norm_from_above(self, x: Array) -> float:
        """Not below ``‖x‖_L`` without rounding errors."""
        square = (1.0 + self.relative) * max(float(self.squares(x[:, None])[0, 0]), 0.0)
        return float(np.sqrt(square + 2.0 * self.rounding * float(x @ (self._gram @ x))))

    def solve(self, right: Array) -> Array:
        """``(L + shift M)^-1 right`` for columns."""
        x = self._factor.solve(right)
        for _ in range(0 if self._root is None else REFINEMENTS):
            x += self._factor.solve(right - self @ x)
        return x


def _most(sums: Any, least: Array) -> float:
    return float(np.max(np.asarray(sums) / least))


def _shift(space: Any, norm: str) -> float:
    """Small against the first eigenvalue that is not that of a constant, about ``(pi / d)²`` on a domain of size d.

    In another inner product than that of L2, times the mean ratio of the two.
    """
    if norm in ("matrix", "joint"):
        # A matrix of the user's is positive definite, and its units are its own.
        return 0.0
    if space.facets is not None:
        # Of norms on a boundary only the seminorm has none; its size is that of the gradient along all of it.
        return SHIFT / float(space.form("l2").sum()) ** 2 if norm == "h1-seminorm" else 0.0
    mesh = space.basis.mesh
    size = float(np.sum(measures(mesh))) ** (1.0 / mesh.dim())
    shift = {"l2": 0.0, "h2": SHIFT / size**4}.get(norm, SHIFT / size**2)
    if space.inner == "l2":
        return shift
    B = space.matrix
    return shift * float((B.T @ (space.form("l2") @ B)).trace()) / float(space.gram.trace())
