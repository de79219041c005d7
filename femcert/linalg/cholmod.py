"""CHOLMOD of SuiteSparse, from scikit-sparse: supernodal Cholesky factors."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SolveError

Array = NDArray[np.float64]


class Cholmod:
    """Cholesky factors of a sparse symmetric positive definite matrix, of which the lower triangle is read.

    Raises
    ------
    SolveError
        A pivot is not positive, or the factors do not fit in memory.
    """

    tolerance = 0.0

    def __init__(self, matrix: Any, *, name: str) -> None:
        library: Any = import_module("sksparse.cholmod")
        try:
            with warnings.catch_warnings():
                # It warns before it raises.
                warnings.simplefilter("ignore")
                # Supernodal factors are L L'; the others, L D L', exist for matrices that are not definite.
                self._factor = library.cholesky(matrix, mode="supernodal")
                # Made with the first solve.
                self._factor(np.ones(matrix.shape[0]))
        except library.CholmodNotPositiveDefiniteError:
            words = "is singular or not positive definite"
            raise SolveError(f"the {name} ({matrix.shape[0]} unknowns) {words}") from None
        except (library.CholmodOutOfMemoryError, MemoryError):
            raise SolveError(f"the factors of the {name} ({matrix.shape[0]} unknowns) do not fit in memory") from None
        except library.CholmodError as error:
            raise SolveError(f"the factorization of the {name} failed: {error}") from None

    def solve(self, right: Array, transposed: bool = False) -> Array:
        """``A^-1 right`` for a vector or columns."""
        return np.asarray(self._factor(np.asfortranarray(right, dtype=np.float64)))

    rough_solve = solve

    def is_positive(self) -> bool:
        """Whether the pivots are positive; else there is no object."""
        return True
