"""Inverse problems that are known by matrices only, from any code."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, diags, identity, issparse

from ..checks import Array, count, freeze_sparse, frozen, real_array, real_vector
from ..errors import InputError, SolveError
from ..linalg import Factorization
from ..shown import in_brief
from .base import Problem
from .constraints import checked_norm
from .forward import dense
from .gram import weight_below
from .solve_errors import MeasuredMap, SolveErrors, bound_least
from .space import ParameterSpace, check_space


class CoordinateSpace(ParameterSpace):
    """Vectors of k numbers with ``‖q‖_Q² = q' G q``: parameters of which no mesh is known, only matrices.

    Parameters
    ----------
    dimension
        k.
    gram
        G, symmetric positive definite, sparse or dense ``(k, k)``: the mass matrix of the code that made the forward
        map. Default: the identity.

    Examples
    --------
    >>> space = CoordinateSpace(2, gram=[[2.0, 0.0], [0.0, 0.5]])
    >>> space.norm([1.0, 2.0])
    2.0
    """

    def __init__(self, dimension: int, *, gram: Any = None) -> None:
        k = count(dimension, "dimension")
        self.basis = None
        self.inner = "gram"
        self.matrix = freeze_sparse(identity(k, format="csr"))
        self.ball = None
        given = gram if gram is None or issparse(gram) else real_array(gram, "gram")
        if given is not None and given.shape != (k, k):
            raise InputError(f"gram has shape {given.shape}; expected ({k}, {k})")
        matrix = identity(k, format="csr") if given is None else csr_matrix(given)
        self._gram = checked_norm(matrix, k)

    @cached_property
    def weight(self) -> Any:
        """G."""
        return self._gram

    @property
    def norm_name(self) -> str:
        """The norm of the Gram matrix."""
        return "norm of the Gram matrix"


class MatrixProblem(MeasuredMap, Problem):
    """``K u = L q``, ``y = H u + offset`` with matrices from any code; the state is internal, candidates have none.

    Every rule that needs no state applies: what is certified is the parameter. Claims are about the discretized
    problem that the matrices are.

    Parameters
    ----------
    operator, load, observe
        K ``(n, n)``, L ``(n, N)`` and H ``(m, n)``, sparse or dense; n states, N parameter dofs, m data.
    parameters
        The admissible class on the N dofs. Default: all of them, a `CoordinateSpace` with the norm of `gram`.
    gram
        G with ``‖q‖_Q² = q' G q``, where no class is given. Default: the identity.
    offset
        Data of the parameter zero; default 0.
    definite
        Say True where K is symmetric positive definite: a faster factorization.

    Examples
    --------
    >>> import numpy as np
    >>> import femcert as fc
    >>> problem = fc.MatrixProblem(operator=[[2.0, 0.0], [0.0, 4.0]], load=np.eye(2), observe=np.eye(2))
    >>> data = fc.Data([0.5, 0.25], 0.01)
    >>> baseline = fc.Tikhonov(weight=1e-6)(problem, data)
    >>> print(fc.certify(problem, data, baseline, fc.ExactRadius()).radius)
    <= 0.04002 (ExactRadius)
    """

    def __init__(
        self,
        *,
        operator: Any,
        load: Any,
        observe: Any,
        parameters: ParameterSpace | None = None,
        gram: Any = None,
        offset: Any = None,
        definite: bool = False,
    ) -> None:
        K, self.load, self.observation = (
            _matrix(matrix, name) for matrix, name in ((operator, "operator"), (load, "load"), (observe, "observe"))
        )
        n = K.shape[0]
        if K.shape != (n, n) or self.load.shape[0] != n or self.observation.shape[1] != n:
            shapes = ", ".join(str(matrix.shape) for matrix in (K, self.load, self.observation))
            raise InputError(f"operator, load and observe have shapes {shapes}; expected (n, n), (n, N), (m, n)")
        if parameters is not None and gram is not None:
            raise InputError("both parameters and gram came; the norm of the parameters is that of their class")
        N = self.load.shape[1]
        self.parameters = CoordinateSpace(N, gram=gram) if parameters is None else check_space(parameters)
        if self.parameters.size != N:
            raise InputError(f"parameters have {self.parameters.size} dofs, but load has {N} columns")
        m = self.observation.shape[0]
        self._offset = frozen(np.zeros(m) if offset is None else real_vector(offset, m, "offset"))
        # Powers of two scale without rounding: the condition number is that of a unit diagonal, whatever the units are.
        s = diags(_powers(K))
        self._load, self._observe = csr_matrix(s @ self.load), csr_matrix(self.observation @ s)
        self._operator, self.definite = freeze_sparse(csr_matrix(s @ K @ s)), definite

    @cached_property
    def factor(self) -> Factorization:
        """The factorized operator, of unit diagonal."""
        name = "operator of the matrices"
        try:
            return self.factorize(self._operator, definite=self.definite, name=name, to_rounding=True)
        except SolveError as error:
            raise SolveError(f"{error} (are rows and columns of prescribed values left out?)") from None

    @property
    def observation_count(self) -> int:
        """Rows of H."""
        return int(self.observation.shape[0])

    @property
    def offset(self) -> Array:
        """As given."""
        return self._offset

    def summary(self) -> dict[str, str]:
        """Sizes and class."""
        return {
            "matrices": f"{self.load.shape[0]} states, {self.observation_count} data",
            "parameters": in_brief(self.parameters),
        }

    @property
    def measured(self) -> bool:
        """See `MeasuredMap.measured`: where K is said to be definite."""
        return self.definite

    @cached_property
    def solve_errors(self) -> SolveErrors:
        """See `MeasuredMap.solve_errors`."""
        bound_least(self.factor, self._operator)
        return SolveErrors(self.factor, self._load, self._observe, weight_below(self.parameters))

    def read(self, fields: Any) -> tuple[Array, Array]:
        """``H K^-1 L`` for columns, and the errors of states; or their norms with those of what loads are sums of."""
        right = dense(self._load @ fields)
        u = self.factor.solve(right)
        values = np.asarray(self._observe @ u)
        if self.measured:
            return values, self.solve_errors.of_fields(u, right, fields)
        return values, np.linalg.norm(u, axis=0) + np.linalg.norm(dense(abs(self._load) @ abs(fields)), axis=0)

    def pull(self, weights: Array) -> tuple[Array, Array]:
        """Its transpose, and the same for adjoint states."""
        right = dense(self._observe.T @ weights)
        z = self.factor.solve_transposed(right)
        values = np.asarray(self._load.T @ z)
        if self.measured:
            return values, self.solve_errors.of_adjoints(z, right, weights)
        return values, np.linalg.norm(z, axis=0) + np.linalg.norm(dense(abs(self._observe).T @ abs(weights)), axis=0)

    @cached_property
    def state_readings(self) -> Array:
        """Norms of the scaled rows of H."""
        return np.sqrt(np.asarray(self._observe.multiply(self._observe).sum(axis=1)).ravel())

    @cached_property
    def state_loads(self) -> Array:
        """Norms of what the scaled loads of the columns of the class are sums of."""
        summed = abs(self._load) @ abs(self.parameters.matrix)
        squares = summed.multiply(summed) if issparse(summed) else summed**2
        return np.sqrt(np.asarray(squares.sum(axis=0)).ravel())

    @property
    def solve_rounding(self) -> float:  # type: ignore[override]
        """What rounding takes of the states, relative to them: an estimate."""
        return float(self.factor.rounding)

    @property
    def backend(self) -> str:
        """What solves with K."""
        return self.factor.backend

    @property
    def solve_tolerance(self) -> float:
        """Relative energy error at which its solves end, 0 with factors."""
        return self.factor.tolerance


def _matrix(matrix: Any, name: str) -> csr_matrix:
    """As CSR, finite and real, with a row at least."""
    given = matrix if issparse(matrix) else real_array(matrix, name)
    if given.ndim != 2 or 0 in given.shape:
        raise InputError(f"{name} has shape {given.shape}; expected a matrix with a row and a column at least")
    found = csr_matrix(given)
    return csr_matrix((real_array(found.data, name), found.indices, found.indptr), shape=found.shape)


def _powers(K: csr_matrix) -> Array:
    """Powers of two that scale the diagonal of K to about one; a zero there by its row."""
    diagonal, rows = np.abs(K.diagonal()), np.asarray(abs(K).max(axis=1).todense()).ravel()
    size = np.where(diagonal > 0.0, diagonal, np.where(rows > 0.0, rows, 1.0))
    return np.asarray(2.0 ** -np.round(0.5 * np.log2(size)))
