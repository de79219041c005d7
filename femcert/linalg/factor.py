"""One sparse factorization per operator, reused for every right-hand side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu

from ..errors import SolveError
from ..stages import stage

Array = NDArray[np.float64]

# Beyond this estimate of the condition number a solution has no digits left.
SINGULAR_CONDITION = 1e14
# SciPy hands out the pivots only with a copy of the factors, kept for good; up to so many entries that is cheap.
PIVOTS_READ = 2_000_000

_made = 0


def factorization_count() -> int:
    """How many factorizations this process has made; a difference of two calls measures reuse."""
    return _made


def lu_factors(matrix: Any, *, symmetric: bool, name: str) -> Any:
    """SuperLU factors of a finite square matrix; `symmetric`: with pivots on the diagonal, unless one is exactly zero.

    Raises
    ------
    SolveError
        The matrix is not square or not finite, a pivot vanishes, or the factors do not fit in memory.
    """
    global _made
    if matrix.shape[0] != matrix.shape[1]:
        raise SolveError(f"the {name} has shape {matrix.shape}; expected a square matrix")
    if not np.all(np.isfinite(matrix.data)):
        raise SolveError(f"the {name} has NaN or infinite entries")
    options: dict[str, Any] = {"permc_spec": "COLAMD"}
    if symmetric:
        options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    try:
        with stage("factorization", f"{name}, {matrix.shape[0]:,} unknowns"):
            factors = splu(matrix, **options)
    except RuntimeError as error:
        raise SolveError(f"the {name} ({matrix.shape[0]} unknowns) is singular: {error}") from None
    except MemoryError:
        raise SolveError(f"the factors of the {name} ({matrix.shape[0]} unknowns) do not fit in memory") from None
    _made += 1
    return factors


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

    Attributes
    ----------
    condition
        Estimate of the condition number of the matrix scaled to a unit diagonal, from below but rarely by more than a
        factor of two.

    Raises
    ------
    SolveError
        The matrix is not square, not finite or singular to rounding, or ``definite=True`` was wrong. A matrix that is
        not symmetric is always refused; an indefinite one where the factors are small enough to read the pivots,
        else if a seeded random vector shows it.
    """

    def __init__(self, matrix: Any, *, definite: bool, name: str = "operator") -> None:
        A = csc_matrix(matrix)
        self._lu = lu_factors(A, symmetric=definite, name=name)
        self.name = name
        self.symmetric = definite
        # What overflows below fails a check.
        with np.errstate(over="ignore", invalid="ignore"):
            self._probe(A)

    def _probe(self, A: Any) -> None:
        # Solves with a seeded vector show unstable pivots (residual) and a null space (huge solution). The matrix is
        # scaled, so that neither its units nor tiny or huge entries matter.
        size = float(abs(A).sum(axis=0).max())
        S = A / size
        b = np.random.default_rng(0).standard_normal(A.shape[0])
        x = self._lu.solve(size * b)
        self.condition = self._scaled_condition(A)
        if not self.condition < SINGULAR_CONDITION:
            raise SolveError(f"the {self.name} is singular to rounding (condition number {self.condition:.1g})")
        if not np.linalg.norm(S @ x - b) <= 1e-8 * (np.linalg.norm(x) + np.linalg.norm(b)):
            raise SolveError(f"the factorization of the {self.name} is not accurate")
        if self.symmetric:
            if not np.linalg.norm(S @ b - S.T @ b) <= 1e-10 * np.linalg.norm(b):
                raise SolveError(f"the {self.name} is not symmetric; expected definite=False for it")
            if not (b @ x > 0.0 and self._has_positive_pivots()):
                raise SolveError(f"the {self.name} is not positive definite")

    def _scaled_condition(self, A: Any) -> float:
        # Elimination does not feel a scaling of rows and columns, so neither does this number: ‖S‖ ‖S^-1‖ for
        # S = D^-1/2 A D^-1/2 with the diagonal D of A, the latter by inverse iteration.
        diagonal = np.abs(A.diagonal())
        root = np.sqrt(diagonal) if np.all(diagonal > 0.0) else np.ones(len(diagonal))
        size = float((abs(A) @ (1.0 / root) / root).max())
        x = np.random.default_rng(1).standard_normal(len(root))
        growth = 0.0
        for step in range(3):
            x = x / np.linalg.norm(x)
            x = root * self._lu.solve(root * x, "N" if self.symmetric or step % 2 == 0 else "T")
            length = float(np.linalg.norm(x))
            if not (np.isfinite(length) and length > 0.0):
                return np.inf
            growth = max(growth, length)
        return size * growth

    def _has_positive_pivots(self) -> bool:
        # Pivots on the diagonal have the signs of the eigenvalues (Sylvester); only a zero one is moved off it.
        if not np.array_equal(self._lu.perm_r, self._lu.perm_c):
            return False
        return self._lu.nnz > PIVOTS_READ or bool(np.all(self._lu.U.diagonal() > 0.0))

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
