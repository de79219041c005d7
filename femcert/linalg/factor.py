"""One sparse factorization per operator, reused for every right-hand side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu

from ..errors import SolveError

Array = NDArray[np.float64]

# Beyond this estimate of the condition number a solution has no digits left.
SINGULAR_CONDITION = 1e14

_made = 0


def factorization_count() -> int:
    """How many factorizations this process has made; a difference of two calls measures reuse."""
    return _made


class Factorization:
    """LU factors of a sparse matrix, checked for singularity.

    Parameters
    ----------
    matrix
        Square sparse matrix.
    definite
        True where the caller knows the matrix to be symmetric positive definite: the fill-reducing ordering
        of ``A + A'`` and pivots on the diagonal, two to four times faster than the general factorization.
    name
        What the matrix is, for error messages.

    Raises
    ------
    SolveError
        The matrix is not finite, singular to rounding, or ``definite=True`` was wrong.
    """

    def __init__(self, matrix: Any, *, definite: bool, name: str = "operator") -> None:
        global _made
        A = csc_matrix(matrix)
        if not np.all(np.isfinite(A.data)):
            raise SolveError(f"the {name} has NaN or infinite entries")
        options: dict[str, Any] = {"permc_spec": "COLAMD"}
        if definite:
            options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
        try:
            self._lu = splu(A, **options)
        except RuntimeError as error:
            raise SolveError(f"the {name} ({A.shape[0]} unknowns) is singular: {error}") from None
        _made += 1
        self.name = name
        self.symmetric = definite
        self._probe(A)

    def _probe(self, A: Any) -> None:
        # One solve with a seeded vector shows a null space (huge solution), unstable pivots (residual) and,
        # by its energy, an indefinite matrix, without the copy of the factors that reading pivots would cost.
        b = np.random.default_rng(0).standard_normal(A.shape[0])
        x = self._lu.solve(b)
        size = abs(A).sum(axis=0).max()
        condition = size * np.linalg.norm(x) / np.linalg.norm(b)
        if not condition < SINGULAR_CONDITION:
            raise SolveError(f"the {self.name} is singular to rounding (condition number above {condition:.1g})")
        if not np.linalg.norm(A @ x - b) <= 1e-8 * (size * np.linalg.norm(x) + np.linalg.norm(b)):
            raise SolveError(f"the factorization of the {self.name} is not accurate")
        if self.symmetric and not b @ x > 0.0:
            raise SolveError(f"the {self.name} is not positive definite")

    def solve(self, right: Array) -> Array:
        """``A^-1 right`` for a vector or for columns, all columns at once."""
        return self._solve(right, "N")

    def solve_transposed(self, right: Array) -> Array:
        """``A^-T right``."""
        return self._solve(right, "N" if self.symmetric else "T")

    def _solve(self, right: Array, transposed: str) -> Array:
        result = self._lu.solve(np.asfortranarray(right, dtype=np.float64), transposed)
        if not np.all(np.isfinite(result)):
            raise SolveError(f"a solve with the {self.name} overflowed or met NaN")
        return np.asarray(result)
