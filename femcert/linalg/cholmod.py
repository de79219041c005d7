"""CHOLMOD of SuiteSparse, from scikit-sparse: supernodal Cholesky factors."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
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
        self._lock = threading.Lock()
        try:
            with _silent():
                self._solve = _solver(library, matrix)
            # The first solve makes what all others need.
            self.solve(np.ones(matrix.shape[0]))
        except library.CholmodNotPositiveDefiniteError:
            words = "is singular or not positive definite"
            raise SolveError(f"the {name} ({matrix.shape[0]} unknowns) {words}") from None
        except (library.CholmodOutOfMemoryError, MemoryError):
            raise SolveError(f"the factors of the {name} ({matrix.shape[0]} unknowns) do not fit in memory") from None
        except library.CholmodError as error:
            raise SolveError(f"the factorization of the {name} failed: {error}") from None

    def solve(self, right: Array, transposed: bool = False) -> Array:
        """``A^-1 right`` for a vector or columns."""
        b = np.asfortranarray(right, dtype=np.float64)
        if not b.size:
            return np.zeros_like(b)
        with self._lock, _silent():
            return np.asarray(self._solve(b))

    rough_solve = solve

    def is_positive(self) -> bool:
        """Whether the pivots are positive; else there is no object."""
        return True


@contextmanager
def _silent() -> Iterator[None]:
    """Without the warnings of scikit-sparse, which come before its errors and where rows differ in scale."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _solver(library: Any, matrix: Any) -> Any:
    """A function that solves, with scikit-sparse up to 0.4 or since 0.5.

    Supernodal factors are L L'; the others, L D L', exist for matrices that are not definite.
    """
    if hasattr(library, "cho_factor"):
        return library.cho_factor(matrix, lower=True, supernodal_mode="supernodal").solve
    return library.cholesky(matrix, mode="supernodal")
