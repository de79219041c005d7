"""SciPy's SuperLU: for every matrix, symmetric or not, and always installed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from ..errors import SolveError
from . import backends

Array = NDArray[np.float64]

# SciPy hands out the pivots only with a copy of the factors, kept for good; up to so many entries that is cheap.
PIVOTS_READ = 2_000_000


def lu_factors(matrix: Any, *, symmetric: bool, name: str) -> Any:
    """SuperLU factors of a finite square matrix; `symmetric`: with pivots on the diagonal, unless one is exactly zero.

    Raises
    ------
    SolveError
        A pivot vanishes, or the factors do not fit in memory: they are not begun where an estimate says so.
    """
    needed, free = backends.factor_bytes(matrix, "superlu"), backends.free_bytes()
    if needed > free:
        size = f"about {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free"
        raise SolveError(f"the factors of the {name} ({matrix.shape[0]} unknowns) would take {size}")
    options: dict[str, Any] = {"permc_spec": "COLAMD"}
    if symmetric:
        options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    try:
        return splu(matrix, **options)
    except RuntimeError as error:
        raise SolveError(f"the {name} ({matrix.shape[0]} unknowns) is singular: {error}") from None
    except MemoryError:
        raise SolveError(f"the factors of the {name} ({matrix.shape[0]} unknowns) do not fit in memory") from None


class SuperLU:
    """LU factors of a sparse matrix; the fill-reducing ordering of ``A + A'`` where it is symmetric."""

    # Of the relative error of a solve, what is not rounding.
    tolerance = 0.0

    def __init__(self, matrix: Any, *, symmetric: bool, name: str) -> None:
        self._lu = lu_factors(matrix, symmetric=symmetric, name=name)

    def solve(self, right: Array, transposed: bool = False) -> Array:
        """``A^-1 right`` or ``A^-T right``."""
        return np.asarray(self._lu.solve(np.asfortranarray(right, dtype=np.float64), "T" if transposed else "N"))

    rough_solve = solve

    def is_positive(self) -> bool:
        """Whether the pivots are positive, as far as they are read."""
        # Pivots on the diagonal have the signs of the eigenvalues (Sylvester); only a zero one is moved off it.
        if not np.array_equal(self._lu.perm_r, self._lu.perm_c):
            return False
        return self._lu.nnz > PIVOTS_READ or bool(np.all(self._lu.U.diagonal() > 0.0))
