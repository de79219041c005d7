"""PARDISO of Intel's MKL, from the wheel of pypardiso: Cholesky factors, several times faster at a million unknowns."""

from __future__ import annotations

import ctypes
import hashlib
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import tril

from ..errors import SolveError

Array = NDArray[np.float64]

# Real, symmetric, positive definite.
MATRIX_TYPE = 2
FACTORIZE, SOLVE, RELEASE = 12, 33, -1
# Columns per call: enough for the solver, few enough for its work space.
BLOCK = 16
OUT_OF_MEMORY, BAD_PIVOT = -2, -4
# Orderings of the last patterns, four bytes for each unknown.
ORDERS = 2
_orders: dict[bytes, NDArray[np.int32]] = {}
_orders_lock = threading.Lock()


@cache
def _library() -> Any:
    return import_module("pypardiso").ps.libmkl


@cache
def _runtime() -> Any:
    """The OpenMP library beside MKL; None where there is none, or it does not tell how threads wait."""
    name = "libiomp5md.dll" if sys.platform == "win32" else "libiomp5.so"
    try:
        runtime = ctypes.CDLL(str(Path(_library()._name).with_name(name)))
        return runtime if runtime.kmp_get_blocktime() >= 0 and runtime.kmp_set_blocktime else None
    except (OSError, AttributeError, ValueError):
        return None


@contextmanager
def _no_spinning() -> Iterator[None]:
    """Let MKL's threads sleep when they are done; by default they spin for 0.2 s, in the way of those of NumPy."""
    runtime = _runtime()
    if runtime is None:
        yield
        return
    before = runtime.kmp_get_blocktime()
    runtime.kmp_set_blocktime(0)
    try:
        yield
    finally:
        runtime.kmp_set_blocktime(before)


class Pardiso:
    """Cholesky factors of a sparse symmetric positive definite matrix, of which the lower triangle is read.

    MKL is called directly, with the handle kept: the public `solve` of pypardiso compares the whole matrix at every
    call.

    Raises
    ------
    SolveError
        A pivot is not positive, or the factors do not fit in memory.
    """

    tolerance = 0.0

    def __init__(self, matrix: Any, *, name: str) -> None:
        # The lower triangle by columns is the upper one by rows, which PARDISO expects.
        lower = tril(matrix, format="csc")
        lower.sort_indices()
        if not np.all(lower.diagonal() > 0.0):
            raise SolveError(f"the {name} is singular or not positive definite: a diagonal entry is not positive")
        self._arrays = lower.data, lower.indptr.astype(np.int32), lower.indices.astype(np.int32)
        self._handle = np.zeros(64, dtype=np.int64)
        self._options = _options()
        # Most of the time goes into the ordering, which belongs to the pattern alone.
        pattern = _pattern(*self._arrays[1:])
        with _orders_lock:
            order = _orders.pop(pattern, None)
        self._options[4] = 2 if order is None else 1
        order = np.zeros(len(self._arrays[1]) - 1, dtype=np.int32) if order is None else order
        self._lock = threading.Lock()
        self.name = name
        weakref.finalize(self, _call, RELEASE, self._handle, self._options, self._arrays, None)
        error = _call(FACTORIZE, self._handle, self._options, self._arrays, None, order)[1]
        if error == BAD_PIVOT:
            raise SolveError(f"the {name} ({matrix.shape[0]} unknowns) is singular or not positive definite")
        if error == OUT_OF_MEMORY:
            raise SolveError(f"the factors of the {name} ({matrix.shape[0]} unknowns) do not fit in memory")
        # Of another matrix, were a pivot replaced.
        if error or self._options[13]:
            raise SolveError(f"the factorization of the {name} failed (PARDISO's error {error})")
        self._options[4] = 0
        with _orders_lock:
            _orders[pattern] = order
            while len(_orders) > ORDERS:
                _orders.pop(next(iter(_orders)))

    def solve(self, right: Array, transposed: bool = False) -> Array:
        """``A^-1 right`` for a vector or columns."""
        b = np.asfortranarray(right, dtype=np.float64)
        if b.ndim == 1:
            return self._columns(b)
        x = np.empty_like(b, order="F")
        for i in range(0, b.shape[1], BLOCK):
            x[:, i : i + BLOCK] = self._columns(b[:, i : i + BLOCK])
        return x

    rough_solve = solve

    def _columns(self, b: Array) -> Array:
        if not b.size:
            return np.zeros_like(b)
        with self._lock:
            x, error = _call(SOLVE, self._handle, self._options, self._arrays, b)
        if error:
            raise SolveError(f"a solve with the {self.name} failed (PARDISO's error {error})")
        return x

    def is_positive(self) -> bool:
        """Whether the pivots are positive; else there is no object."""
        return True


def _pattern(starts: NDArray[np.int32], indices: NDArray[np.int32]) -> bytes:
    digest = hashlib.blake2b(starts.tobytes(), digest_size=32)
    digest.update(indices.tobytes())
    return digest.digest()


def _options() -> NDArray[np.int32]:
    """PARDISO's array of options, numbered from 0."""
    options = np.zeros(64, dtype=np.int32)
    options[0] = 1  # the values below, not the defaults
    options[1] = 3  # nested dissection, on all threads
    # Factors on one level: those on two (1, 10) are little faster, and miss pivots that are not positive.
    options[23] = 0
    options[34] = 1  # indices from 0
    return options


def _call(
    phase: int,
    handle: Any,
    options: NDArray[np.int32],
    arrays: tuple[Any, Any, Any],
    right: Array | None,
    order: NDArray[np.int32] | None = None,
) -> tuple[Array, int]:
    """One call of PARDISO: the solution, where there is a right-hand side, and the error code."""
    data, starts, indices = arrays
    b = np.zeros(1) if right is None else right
    x = np.zeros_like(b, order="F")
    error = ctypes.c_int32(0)
    columns = b.shape[1] if b.ndim == 2 else 1
    one, kind, step, n, width, quiet = (
        ctypes.byref(ctypes.c_int32(value)) for value in (1, MATRIX_TYPE, phase, len(starts) - 1, columns, 0)
    )
    whole, floats = ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_double)
    pardiso = _library().pardiso
    with _no_spinning():
        pardiso(
            handle.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)),
            one,
            one,
            kind,
            step,
            n,
            data.ctypes.data_as(floats),
            starts.ctypes.data_as(whole),
            indices.ctypes.data_as(whole),
            None if order is None else order.ctypes.data_as(whole),
            width,
            options.ctypes.data_as(whole),
            quiet,
            b.ctypes.data_as(floats),
            x.ctypes.data_as(floats),
            ctypes.byref(error),
        )
    return x, int(error.value)
