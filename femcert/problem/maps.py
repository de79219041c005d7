"""A linear forward map from any code: a matrix, or two functions; no mesh, no equation."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from ..checks import Array, count, freeze_sparse, frozen, number, real_array, real_vector
from ..errors import InputError
from ..shown import in_brief
from .base import Problem
from .forward import BATCH, ROUNDING, SizedMap, dense
from .matrices import CoordinateSpace
from .space import ParameterSpace, check_space

# How often the stated accuracy may be found missed on random vectors: norms of sums of a few terms.
SLACK = 10.0
# Differences up to this may be those of single precision, or of solves that end early.
NEARLY = 1e-3


class ForwardMap(SizedMap, Problem):
    """``y = F q + offset`` with F from any code; candidates are parameters, their state is None.

    Every rule that needs no state applies, and evidence where the class is a ball or the data determine it. Claims
    are about the discretized problem that F is.

    Parameters
    ----------
    given
        F: a matrix ``(m, N)``, sparse or dense; a linear operator of SciPy or PyLops; or a pair of functions ``(apply,
        adjoint)`` of one vector each, from N parameters to m data and back. Functions are compared on random vectors,
        ``(F x) . w = x . (F' w)``, as soon as they come.
    parameters
        The admissible class on the N parameters. Default: all of them, a `CoordinateSpace` with the norm of `gram`.
    gram
        G with ``‖q‖_Q² = q' G q``, where no class is given. Default: the identity.
    size
        N, where functions come without a class or a Gram matrix.
    offset
        Data of the parameter zero; default 0.
    accuracy
        Relative error of the functions: 1e-6 or so in single precision, or the tolerance at which their solves end.
        What they may have lost is part of all that is claimed.

    Examples
    --------
    Running sums, and a ball of the full space with a sparse precision matrix:

    >>> import numpy as np
    >>> import femcert as fc
    >>> from scipy.sparse import diags
    >>> P = diags([[2.0] * 6, [-1.0] * 5, [-1.0] * 5], [0, 1, -1])
    >>> space = fc.CoordinateSpace(6).within_ball(3.0, norm=P.tocsr())
    >>> problem = fc.ForwardMap((np.cumsum, lambda w: np.cumsum(w[::-1])[::-1]), parameters=space)
    >>> data = fc.Data.gaussian([1.0, 2.1, 2.9, 4.0, 5.1, 5.9], std=0.1)
    >>> print(fc.evidence(problem, data).interval(np.full(6, 1.0 / 6.0)).half_length < 0.05)
    True
    """

    def __init__(
        self,
        given: Any,
        *,
        parameters: ParameterSpace | None = None,
        gram: Any = None,
        size: int | None = None,
        offset: Any = None,
        accuracy: float = ROUNDING,
    ) -> None:
        if parameters is not None and gram is not None:
            raise InputError("both parameters and gram came; the norm of the parameters is that of their class")
        self.accuracy = number(accuracy, "accuracy", above=0.0)
        if callable(getattr(given, "matvec", None)) and callable(getattr(given, "rmatvec", None)):
            # A linear operator of SciPy or PyLops.
            columns = int(given.shape[1])
            given, size = (given.matvec, given.rmatvec), columns if size is None else size
            if columns != (known := _announced(parameters, gram, size)):
                raise InputError(f"the operator has {columns} columns; expected {known}, one for each parameter")
        functions = isinstance(given, (tuple, list)) and len(given) == 2 and all(callable(each) for each in given)
        self._matrix = None if functions else _checked(given)
        if self._matrix is None:
            N = _announced(parameters, gram, size)
            self._apply, self._adjoint = given
            m = _values(self._apply, np.zeros(N), None, "apply").size
        else:
            m, N = (int(n) for n in self._matrix.shape)
            if size is not None and size != N:
                raise InputError(f"size is {size}, but the matrix has {N} columns")
        self.parameters = CoordinateSpace(N, gram=gram) if parameters is None else check_space(parameters)
        if self.parameters.size != N:
            raise InputError(f"parameters have {self.parameters.size} dofs, but the matrix has {N} columns")
        self._count = m
        self._offset = frozen(np.zeros(m) if offset is None else real_vector(offset, m, "offset"))
        if self._matrix is None:
            self._check_functions(N)

    def _check_functions(self, N: int) -> None:
        """Whether they are linear, and each the adjoint of the other."""
        rng = np.random.default_rng(0)
        x, y, w = rng.standard_normal(N), rng.standard_normal(N), rng.standard_normal(self._count)
        Fx, Fy, both = (self.read(z[:, None])[0][:, 0] for z in (x, y, 2.0 * x - 3.0 * y))
        sizes = float(2.0 * np.linalg.norm(Fx) + 3.0 * np.linalg.norm(Fy))
        allowed = SLACK * self.accuracy
        sizes = float(2.0 * np.linalg.norm(Fx) + 3.0 * np.linalg.norm(Fy))
        apart = float(np.linalg.norm(both - (2.0 * Fx - 3.0 * Fy)))
        if not apart <= allowed * sizes:
            part = f"{apart / sizes:.2g} of its size"
            raise InputError(f"apply is not linear: it is off by {part} on random vectors{_advice(apart, sizes)}")
        back = self.pull(w[:, None])[0][:, 0]
        apart = abs(float(Fx @ w - x @ back))
        sizes = float(np.linalg.norm(Fx) * np.linalg.norm(w) + np.linalg.norm(x) * np.linalg.norm(back))
        if not apart <= allowed * sizes:
            numbers = f"(F x) . w = {float(Fx @ w):.10g}, x . (F' w) = {float(x @ back):.10g}"
            raise InputError(f"adjoint is not that of apply: on random vectors {numbers}{_advice(apart, sizes)}")

    @property
    def observation_count(self) -> int:
        """Rows of F."""
        return self._count

    @property
    def offset(self) -> Array:
        """As given."""
        return self._offset

    def summary(self) -> dict[str, str]:
        """Sizes and class."""
        made = "two functions" if self._matrix is None else "a matrix"
        words = f"{made}, from {self.parameters.size} parameters to {self._count} data"
        return {"map": words, "parameters": in_brief(self.parameters)}

    def read(self, fields: Any) -> tuple[Array, Array]:
        """``F`` for columns, and the largest value of each."""
        X = dense(fields)
        if self._matrix is not None:
            found = np.asarray(self._matrix @ X)
        else:
            # Code of the caller's, which knows single vectors.
            found = np.stack([_values(self._apply, x, self._count, "apply") for x in X.T], axis=1)
        return found, np.abs(X).max(axis=0, initial=0.0)

    def pull(self, weights: Array) -> tuple[Array, Array]:
        """``F'`` for columns, and the largest value of each."""
        W = np.asarray(weights)
        if self._matrix is not None:
            found = np.asarray(self._matrix.T @ W)
        else:
            N = self.parameters.size
            found = np.stack([_values(self._adjoint, w, N, "adjoint") for w in W.T], axis=1)
        return found, np.abs(W).max(axis=0, initial=0.0)

    @cached_property
    def _sized(self) -> tuple[Array, Array, Array]:
        """F on the coordinates, and what errors of its entries are relative to.

        Of a matrix to what the sums are made of; of functions to the largest row, since how they sum is not known.
        """
        B = self.parameters.matrix
        if self._matrix is not None:
            sums = np.asarray(abs(self._matrix).sum(axis=1)).ravel()
            return frozen(np.array(dense(self._matrix @ B))), sums, self.loads
        k, m = self.parameters.dimension, self._count
        if k <= m:
            F = np.hstack([self.apply(B[:, j : j + BATCH]) for j in range(0, k, BATCH)])
        else:
            F = np.asarray(dense(B.T @ self.adjoint(np.eye(m)))).T
        return frozen(F), np.full(m, np.linalg.norm(F, axis=1).max()), self.loads

    @property
    def readings(self) -> Array:
        """See `_sized`."""
        return self._sized[1]

    @cached_property
    def loads(self) -> Array:
        """Largest values of the columns of the class; of functions, ones."""
        if self._matrix is None:
            return np.ones(self.parameters.dimension)
        return np.asarray(dense(abs(self.parameters.matrix).max(axis=0))).ravel()

    @property
    def solve_rounding(self) -> float:  # type: ignore[override]
        """The accuracy of the functions."""
        return self.accuracy

    @property
    def rounding(self) -> float:
        """The same, for predictions."""
        return max(ROUNDING, self.accuracy)

    def rounding_of(self, data: Any) -> float:
        """`rounding`, in the norm of the data."""
        return self.rounding * (1.0 if data is None else data.spread)


def _checked(given: Any) -> Any:
    """A matrix, finite and real, with a row at least."""
    if callable(given):
        raise InputError("the map is one function; expected a matrix, or a pair (apply, adjoint)")
    array = given if issparse(given) else real_array(given, "the map")
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"the map has shape {array.shape}; expected a matrix, or a pair of functions (apply, adjoint)")
    if not issparse(array):
        return frozen(np.array(array))
    found = csr_matrix(array)
    return freeze_sparse(csr_matrix((real_array(found.data, "the map"), found.indices, found.indptr), found.shape))


def _announced(parameters: ParameterSpace | None, gram: Any, size: int | None) -> int:
    """N, from what came beside the functions."""
    if parameters is not None:
        return check_space(parameters).size
    if gram is not None:
        return int(np.shape(gram)[0])
    if size is None:
        raise InputError("functions do not say how many parameters they take; give size=, gram= or parameters=")
    return count(size, "size")


def _advice(apart: float, sizes: float) -> str:
    """Where the difference may be what the functions lose."""
    return "; if they are not more accurate than that, give accuracy=" if apart <= NEARLY * sizes else ""


def _values(function: Callable[[Array], Any], vector: Array, expected: int | None, name: str) -> Array:
    return real_vector(np.asarray(function(np.array(vector))), expected, f"what {name} returns")
