"""Admissible classes: parameters ``q = B c`` with k columns, an inner product and, optionally, a ball."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import csr_matrix, diags, identity, issparse
from skfem import Basis

from ..checks import (
    Array,
    count,
    freeze_sparse,
    frozen,
    number,
    real_array,
    real_vector,
)
from ..errors import InputError, SolveError
from ..linalg import Factorization
from ..mesh.assembly import stiffness_matrix
from ..mesh.elements import check_quadrature, degree, mass_matrix
from ..shown import Shown, of_basis
from .functions import BoxModes, FunctionClass

INNER = ("l2", "euclidean")
BALL_NORMS = ("l2", "h1", "h1-seminorm", "h2")


@dataclass(frozen=True)
class Ball:
    """The constraint ``‖q‖_norm <= radius``; with the norm ``"matrix"``, ``q' matrix q <= radius²``."""

    radius: float
    norm: str
    matrix: Any = None


@dataclass(frozen=True)
class Split:
    """A parameter as a member of the class and a rest, ``q = B c + q_perp``.

    Attributes
    ----------
    coordinates
        c, of the orthogonal projection on the span of the class.
    outside
        ``‖q_perp‖_Q``.
    inside
        A member of the class near q (dof vector): ``B c`` times `shrinkage`.
    shrinkage
        What brings ``B c`` into the ball where there is one, at most 1.
    distance
        ``‖q - inside‖_Q``, at least the distance of q from the class.
    size
        ``‖q‖_Q``.
    """

    coordinates: Array
    outside: float
    inside: Array
    shrinkage: float
    distance: float
    size: float


class ParameterSpace(Shown):
    """Parameters ``q = B c`` on the dofs of `basis`.

    Parameters
    ----------
    basis
        Where the parameter lives (its dofs); the spaces below derive it from the state's basis. A `CoordinateSpace` has
        none: its `basis` is None.
    matrix
        ``B``: dense ``(N, k)`` for global modes, sparse for local functions.
    inner
        ``"l2"``: the norm of Q is that of L2(Omega). ``"euclidean"``: the Euclidean norm of the dof vector, as in
        the paper; it drifts under mesh refinement, so it is for reproducing the paper only.
    """

    def __init__(self, basis: Basis, matrix: Any, *, inner: str = "l2") -> None:
        degree(basis)
        check_quadrature(basis)
        if not isinstance(inner, str) or inner not in INNER:
            raise InputError(f"inner is {_shown(inner)}; expected one of {', '.join(INNER)}")
        if matrix.shape[1] < 1 or matrix.shape[1] > basis.N:
            raise InputError(f"a space of dimension {matrix.shape[1]} on {basis.N} dofs; expected 1 to {basis.N}")
        self.basis: Any = basis
        self.inner = inner
        self.matrix = freeze_sparse(matrix) if issparse(matrix) else frozen(matrix)
        self.ball: Ball | None = None

    def summary(self) -> dict[str, str]:
        """Dimension, norm and ball."""
        ball = {} if self.ball is None else {"ball": f"radius {self.ball.radius:g}, {self.ball.norm}"}
        within = "" if self.ball is None else f", in a ball of radius {self.ball.radius:g}"
        short = f"dimension {self.dimension}, {self.norm_name}{within}"
        fields = f"{self.size} numbers" if self.basis is None else of_basis(self.basis)
        return {"class": short, "fields": fields, "norm": self.norm_name, **ball}

    def functions_on(self, mesh: Any) -> FunctionClass | None:
        """The functions of x that the columns interpolate, integrated on a mesh; None: the columns are the class.

        A claim about the continuous problem speaks of these functions where there are some.
        """
        return None

    def dirichlet_modes(self) -> BoxModes | None:
        """The same functions where they are eigenfunctions of the Laplacian on a box, zero on its boundary; or None."""
        return None

    @property
    def dimension(self) -> int:
        """Number of coordinates k."""
        return int(self.matrix.shape[1])

    @property
    def size(self) -> int:
        """Length of the dof vectors q."""
        return int(self.matrix.shape[0])

    @cached_property
    def weight(self) -> Any:
        """Sparse matrix W with ``‖q‖_Q² = q' W q``."""
        return mass_matrix(self.basis) if self.inner == "l2" else freeze_sparse(identity(self.basis.N))

    @property
    def norm_name(self) -> str:
        """What the norm of Q is called, where a radius is shown."""
        return "L2 norm" if self.inner == "l2" else "Euclidean norm of the dofs"

    @cached_property
    def gram(self) -> Any:
        """``G = B' W B``, dense for global modes and sparse for local functions."""
        gram = self.matrix.T @ (self.weight @ self.matrix)
        return freeze_sparse(gram) if issparse(gram) else frozen(np.asarray(gram))

    @cached_property
    def root(self) -> Array:
        """Upper triangular R with ``R' R = G`` (dense), so that ``‖B c‖_Q = ‖R c‖``."""
        gram = self.gram.toarray() if issparse(self.gram) else self.gram
        scale = np.sqrt(np.diag(gram))
        if not np.all(scale > 0.0):
            raise InputError(f"column {int(np.argmin(scale))} of the parameter space is zero")
        try:
            R = cholesky(gram / np.outer(scale, scale)) * scale
        except np.linalg.LinAlgError:
            raise InputError("the columns of the parameter space are linearly dependent") from None
        if not np.abs(np.diag(R) / scale).min() > 1e-7:
            raise InputError("the columns of the parameter space are linearly dependent to rounding")
        return frozen(R)

    @cached_property
    def _gram_factor(self) -> Factorization:
        try:
            name = "Gram matrix of the parameter space"
            return Factorization(self.gram, definite=True, name=name, to_rounding=True)
        except SolveError as error:
            raise InputError(f"the columns of the parameter space are linearly dependent: {error}") from None

    def solve_gram(self, right: Array) -> Array:
        """``G^-1 right``, for a vector or columns."""
        if issparse(self.gram):
            return self._gram_factor.solve(right)
        if not np.all(np.isfinite(right)):
            raise SolveError("functionals on the parameter space have NaN or infinite values; choose another unit")
        return solve_triangular(self.root, solve_triangular(self.root, right, trans="T"))

    @property
    def dependence(self) -> float:
        """The condition number of the Gram matrix, scaled to a unit diagonal; where it is sparse, twice an estimate."""
        if issparse(self.gram):
            return 2.0 * self._gram_factor.condition
        return float(np.linalg.cond(self.root / np.linalg.norm(self.root, axis=0))) ** 2

    def field(self, coefficients: Any) -> Array:
        """Dof vector ``B c``."""
        c = real_vector(coefficients, self.dimension, "coefficients")
        return np.asarray(self.matrix @ c)

    def project(self, field: Any) -> tuple[Array, Array]:
        """Coordinates of the orthogonal projection on the class, and the remainder ``q - B c``.

        The remainder is a dof vector, orthogonal to the class in the inner product of Q.
        """
        q = real_vector(field, self.size, "field")
        c = self.solve_gram(np.asarray(self.matrix.T @ (self.weight @ q)))
        return c, q - np.asarray(self.matrix @ c)

    def norm(self, field: Any) -> float:
        """``‖q‖_Q`` of a dof vector."""
        q = real_vector(field, self.size, "field")
        # Of numbers whose squares are none it is infinite or NaN.
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.sqrt(max(q @ (self.weight @ q), 0.0)))

    def within_ball(self, radius: float, *, norm: Any = "h1") -> ParameterSpace:
        """The same space intersected with ``‖q‖_norm <= radius``, as a new object.

        Parameters
        ----------
        radius
            Of the ball, about zero.
        norm
            ``"l2"``, ``"h1"``, ``"h1-seminorm"``, ``"h2"`` (see `form`), or a sparse symmetric positive definite matrix
            P of the size of the dof vector: ``‖q‖² = q' P q``, such as the precision matrix of a Gaussian.
        """
        size = number(radius, "radius", above=0.0)
        result = copy.copy(self)
        if issparse(norm):
            result.ball = Ball(size, "matrix", _checked_norm(norm, self.size))
            return result
        if not isinstance(norm, str) or norm not in BALL_NORMS:
            raise InputError(f"norm is {_shown(norm)}; expected one of {', '.join(BALL_NORMS)}, or a sparse matrix")
        if self.basis is None:
            raise InputError(f"norm={norm!r} needs functions on a mesh; expected the sparse matrix of a norm")
        if norm != "l2" and degree(self.basis) == 0:
            raise InputError(f"piecewise constants have no {norm} norm; expected norm='l2'")
        if norm == "h2":
            # Refused here where the elements have no lumped mass.
            mass_matrix(self.basis, lumped=True)
        result.ball = Ball(size, norm)
        return result

    @cached_property
    def _h1_parts(self) -> tuple[Any, Any]:
        return mass_matrix(self.basis), stiffness_matrix(self.basis)

    def form(self, norm: str) -> Any:
        """Sparse matrix of a squared norm on the dofs.

        ``"l2"``, ``"h1"``, ``"h1-seminorm"``, or ``"h2"``: ``‖q - Laplace q‖``, the discrete Laplacian with natural
        conditions and lumped mass; ``"matrix"``: the one of the ball.
        """
        if norm == "matrix":
            assert self.ball is not None
            return self.ball.matrix
        if norm == "l2":
            return mass_matrix(self.basis)
        root = self.root_of_form(norm)
        if root is not None:
            return root.T @ root
        M, K = self._h1_parts
        return K if norm == "h1-seminorm" else M + K

    def root_of_form(self, norm: str) -> Any:
        """Sparse R with ``form(norm) = R' R``, where there is one of smaller condition number; else None."""
        if norm != "h2":
            return None
        M, K = self._h1_parts
        return diags(mass_matrix(self.basis, lumped=True).diagonal() ** -0.5) @ (M + K)

    def split(self, field: Any) -> Split:
        """The projection of a dof vector on the class, its rest, and how far it is from the class, all in one."""
        q = real_vector(field, self.size, "field")
        c, remainder = self.project(q)
        outside, member = self.norm(remainder), np.asarray(self.matrix @ c)
        factor = self.shrinkage(member)
        inside = member * factor
        distance = outside if factor == 1.0 else self.norm(q - inside)
        return Split(c, outside, inside, factor, distance, self.norm(q))

    def split_of_inside(self, split: Split) -> Split:
        """That of ``split.inside``, which lies in the class, without another projection."""
        inside = split.inside
        return Split(split.coordinates * split.shrinkage, 0.0, inside, 1.0, 0.0, self.norm(inside))

    def nearest(self, field: Any) -> Array:
        """A field of the class near `field`: its projection, shrunk into the ball where there is one."""
        inside = self.field(self.project(field)[0])
        return inside * self.shrinkage(inside)

    def shrinkage(self, field: Array) -> float:
        """The largest factor of at most 1 that brings `field` into the ball; 1 without a ball."""
        if self.ball is None:
            return 1.0
        size = float(np.sqrt(max(field @ (self.form(self.ball.norm) @ field), 0.0)))
        return min(1.0, self.ball.radius / size) if size > 0.0 else 1.0

    def distance(self, field: Any) -> float:
        """An upper bound of the distance in Q from `field` to the class (the ball included)."""
        return self.norm(field - self.nearest(field))


def _shown(option: Any) -> str:
    return repr(option) if isinstance(option, str) else f"a {type(option).__name__}"


def _checked_norm(matrix: Any, size: int) -> Any:
    """The matrix of a squared norm on the dofs, symmetric and positive definite."""
    if matrix.shape != (size, size):
        raise InputError(f"the matrix of the norm has shape {matrix.shape}; expected ({size}, {size}), a row per dof")
    real_array(matrix.tocsr().data, "the matrix of the norm")
    result = freeze_sparse((matrix + matrix.T) / 2.0)
    if abs(matrix - result).max() > 1e-12 * abs(result).max():
        raise InputError("the matrix of the norm is not symmetric")
    try:
        Factorization(result, definite=True, name="matrix of the norm")
    except SolveError as error:
        raise InputError(f"the norm is not one: {error}; expected a symmetric positive definite matrix") from None
    return result


def check_space(parameters: Any) -> ParameterSpace:
    """`parameters` if it is an admissible class, else an `InputError`."""
    if not isinstance(parameters, ParameterSpace):
        raise InputError(f"parameters is a {type(parameters).__name__}; expected a space such as EigenmodeSpace")
    return parameters


class FullSpace(ParameterSpace):
    """The whole finite-element space: coordinates are the dof values."""

    def __init__(self, basis: Basis, *, inner: str = "l2") -> None:
        degree(basis)
        super().__init__(basis, identity(basis.N, format="csr"), inner=inner)

    def project(self, field: Any) -> tuple[Array, Array]:
        """The field itself; the remainder is zero."""
        q = real_vector(field, self.size, "field")
        return q.copy(), np.zeros_like(q)


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
        self._gram = _checked_norm(matrix, k)

    @cached_property
    def weight(self) -> Any:
        """G."""
        return self._gram

    @property
    def norm_name(self) -> str:
        """The norm of the Gram matrix."""
        return "norm of the Gram matrix"
