"""Admissible classes: parameters ``q = B c`` with k columns, an inner product and, optionally, a ball."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import diags, identity, issparse
from skfem import Basis

from ..checks import Array, freeze_sparse, frozen, number, real_vector
from ..errors import InputError, SolveError, UncertifiedError
from ..linalg import Factorization
from ..linalg.outside import largest_outside
from ..mesh.assembly import stiffness_matrix
from ..mesh.elements import check_quadrature, field_degree, mass_matrix
from ..shown import of_basis
from .carrier import Carried
from .constraints import (
    Ball,
    Bounds,
    Part,
    Remainder,
    Split,
    check_norm_name,
    checked_norm,
    one_of,
    sampled_size,
    shown_option,
)
from .functions import BoxModes, FunctionClass
from .gram import norm_kept

INNER = ("l2", "euclidean")
# How far, relatively, the centre of a ball may be from its class.
MEMBER = 1e-9


class ParameterSpace(Carried):
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
        field_degree(basis)
        check_quadrature(basis)
        if not isinstance(inner, str) or inner not in INNER:
            raise InputError(f"inner is {shown_option(inner)}; expected one of {', '.join(INNER)}")
        if matrix.shape[1] < 1 or matrix.shape[1] > basis.N:
            raise InputError(f"a space of dimension {matrix.shape[1]} on {basis.N} dofs; expected 1 to {basis.N}")
        self.basis: Any = basis
        self.inner = inner
        self.matrix = freeze_sparse(matrix) if issparse(matrix) else frozen(matrix)
        self.ball: Ball | None = None

    # Truths are members of the span, with any values, unless something else is said.
    remainder: Remainder | None = None
    bounds: Bounds | None = None
    # What is asked for, of all coordinates: everything, unless something else is said.
    part: Part | None = None

    def summary(self) -> dict[str, str]:
        """Dimension, norm and ball."""
        ball = {} if self.ball is None else {"ball": self.ball.words}
        more = {type(x).__name__.lower(): x.words for x in (self.remainder, self.bounds, self.part) if x is not None}
        short = ", ".join([f"dimension {self.dimension}", self.norm_name, *ball.values()])
        fields = f"{self.size} numbers" if self.basis is None else of_basis(self.basis)
        return {"class": short, "fields": fields, "norm": self.norm_name, **ball, **more}

    def functions_on(self, mesh: Any) -> FunctionClass | None:
        """The functions of x that the columns interpolate, integrated on a mesh; None: the columns are the class.

        A claim about the continuous problem is about these functions where there are some.
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

    kept = cached_property(norm_kept)

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

    def within_ball(
        self,
        radius: float | None = None,
        *,
        norm: Any = "h1",
        length: float = 1.0,
        centre: Any = None,
        samples: Any = None,
        confidence: float = 0.95,
    ) -> ParameterSpace:
        """The same space intersected with ``‖q - q0‖_norm <= radius``, as a new object.

        Parameters
        ----------
        radius
            Of the ball. Or give `samples`.
        norm
            ``"l2"``, ``"h1"``, ``"h1-seminorm"``, ``"h2"`` (see `form`), or a sparse symmetric positive definite matrix
            P of the size of the dof vector: ``‖q‖² = q' P q``, such as the precision matrix of a Gaussian.
        length
            In the units of the mesh: ``"h1"`` is ``∫ q² + length² |grad q|²``, so that metres and millimetres give the
            same class. For features of that size both parts are of one order.
        centre
            q0, a dof vector of the class; default: zero. It must not be made of the same samples.
        samples
            Truths, a dof vector in each row, that entered nothing else (no learned map, centre or length). The radius
            is then the conformal quantile of their norms: a truth like them lies in the ball with `confidence`.
        confidence
            Of the radius from samples; it is accounted for beside that of the data.
        """
        one_of(radius, samples, "within_ball")
        unit = number(length, "length", above=0.0)
        result = copy.copy(self)
        middle = None if centre is None else self._member(centre)
        size = 1.0 if radius is None else number(radius, "radius", above=0.0)
        if issparse(norm):
            result.ball = Ball(size, "matrix", checked_norm(norm, self.size), centre=middle)
        else:
            check_norm_name(norm, self.carrier)
            result.ball = Ball(size, norm, None, unit, middle)
        if samples is not None:
            found, n = sampled_size(samples, self.size, confidence, result.ball_norm)
            if not found > 0.0:
                raise InputError("the samples have the norm 0, so that the ball is a point; expected other samples")
            result.ball = replace(result.ball, radius=found, alpha=1.0 - confidence, samples=n)
        return result

    def with_remainder(
        self,
        size: float | None = None,
        *,
        norm: str | None = None,
        length: float = 1.0,
        samples: Any = None,
        confidence: float = 0.95,
    ) -> ParameterSpace:
        """Truths ``q = B c + w`` near the span, with ``‖w‖_Q <= tau`` and w orthogonal to the columns, as a new object.

        Parameters
        ----------
        size
            tau; with `norm` the radius of a ball ``‖q‖_norm <= size`` in which the truths lie: tau² is then
            ``size²`` times the largest eigenvalue of ``(I - P)' M (I - P)`` over the norm, P the projection on the
            span, from above.
        norm, length
            As for `within_ball`: ``"l2"``, ``"h1"``, ``"h1-seminorm"``, ``"h2"``.
        samples
            Truths, a dof vector in each row, that entered nothing else: tau is the conformal quantile of ``‖w‖_Q``.
        confidence
            Of tau from samples.

        Raises
        ------
        UncertifiedError
            The norm does not bound what lies outside of the span, to rounding.
        """
        one_of(size, samples, "with_remainder")
        result = copy.copy(self)
        if samples is not None:
            tau, n = sampled_size(samples, self.size, confidence, lambda row: self.norm(self.project(row)[1]))
            result.remainder = Remainder(tau, 1.0 - confidence, n)
            return result
        tau = number(size, "size", least=0.0)
        result.remainder = Remainder(tau)
        if norm is None:
            return result
        check_norm_name(norm, self.carrier)
        form = self.form(norm, number(length, "length", above=0.0))
        share = largest_outside(form, self.weight, self.matrix)
        result.remainder = Remainder(tau * share, source=f" ({norm} norm of the truth at most {tau:.4g})")
        return result

    def within_bounds(self, lower: Any = None, upper: Any = None) -> ParameterSpace:
        """The same space with ``lower <= q <= upper`` at the dofs, as a new object.

        Parameters
        ----------
        lower, upper
            A number, or one for each dof; None: no bound. Intervals use them in a ball of all directions, without a
            remainder (extra ``bounds``); elsewhere they hold, but are not shorter.
        """
        ends = []
        for given, none, name in ((lower, -np.inf, "lower"), (upper, np.inf, "upper")):
            values = np.asarray(none if given is None else given, dtype=float)
            if values.shape not in ((), (self.size,)) or np.any(np.isnan(values)):
                raise InputError(f"{name} has shape {values.shape}, or NaN; expected a number or ({self.size},)")
            ends.append(frozen(np.broadcast_to(values, (self.size,)).copy()))
        if not np.all(ends[0] <= ends[1]):
            raise InputError("lower exceeds upper; expected lower <= upper at every dof")
        result = copy.copy(self)
        result.bounds = Bounds(*ends)
        return result

    def interest(self, part: Any, *, free: bool = False) -> ParameterSpace:
        """The same space, of which only a part of the coordinates is asked for: intervals are for the field of these.

        Parameters
        ----------
        part
            A slice, indices, or True and False for the coordinates of interest. The others are nuisance: they explain
            data, but no functional depends on them.
        free
            Whether the ball leaves them free, so that it is one of the part alone; a few that the data determine.
        """
        result = copy.copy(self)
        result.part = Part.of(part, self.dimension, free)
        return result

    @property
    def alpha(self) -> float:
        """With which probability, at most, a truth like the samples breaks what was learned from samples."""
        return sum(each.alpha for each in (self.ball, self.remainder) if each is not None)

    def _member(self, centre: Any) -> Array:
        """A dof vector that lies in the span of the class."""
        q = real_vector(centre, self.size, "centre")
        outside = self.norm(self.project(q)[1])
        if not outside <= MEMBER * self.norm(q):
            raise InputError(f"centre is {outside:.3g} away from the class; expected a member of it")
        return frozen(q)

    @cached_property
    def _h1_parts(self) -> tuple[Any, Any]:
        return mass_matrix(self.basis), stiffness_matrix(self.basis)

    def form(self, norm: str, length: float = 1.0) -> Any:
        """Sparse matrix of a squared norm on the dofs.

        ``"l2"``; ``"h1"``: ``∫ q² + length² |grad q|²``; ``"h1-seminorm"``: its second part; ``"h2"``:
        ``‖q - length² Laplace q‖²``, the discrete Laplacian with natural conditions and lumped mass; ``"matrix"``: the
        one of the ball.
        """
        if norm == "matrix":
            assert self.ball is not None
            return self.ball.matrix
        if norm == "l2":
            return mass_matrix(self.basis)
        root = self.root_of_form(norm, length)
        if root is not None:
            return root.T @ root
        M, K = self._h1_parts
        return length**2 * K if norm == "h1-seminorm" else M + length**2 * K

    def root_of_form(self, norm: str, length: float = 1.0) -> Any:
        """Sparse R with ``form(norm) = R' R``, where there is one of smaller condition number; else None."""
        parts = self.parts_of_form(norm, length)
        return None if parts is None else diags(parts[0] ** -0.5) @ parts[1]

    def parts_of_form(self, norm: str, length: float = 1.0) -> tuple[Array, Any] | None:
        """The diagonal of D and a symmetric A with ``form(norm) = A D^-1 A``, where it is such a product; else None."""
        if norm != "h2":
            return None
        M, K = self._h1_parts
        return mass_matrix(self.basis, lumped=True).diagonal(), M + length**2 * K

    @property
    def ball_form(self) -> Any:
        """`form` of the ball."""
        assert self.ball is not None
        if self.part is not None and self.part.free:
            raise UncertifiedError("the ball leaves a part of the coordinates free, which only intervals know of")
        return self.form(self.ball.norm, self.ball.length)

    @property
    def ball_of_coordinates(self) -> Any:
        """The form of the ball on the coordinates, ``B' L B``; zero on those that it leaves free."""
        assert self.ball is not None
        form = self.matrix.T @ (self.form(self.ball.norm, self.ball.length) @ self.matrix)
        return form if self.part is None else self.part.bound(form)

    def ball_norm(self, field: Array) -> float:
        """``‖q - q0‖`` in the norm of the ball."""
        assert self.ball is not None
        e = field if self.ball.centre is None else field - self.ball.centre
        if self.part is not None and self.part.free:
            c = self.project(e)[0]
            return float(np.sqrt(max(c @ (self.ball_of_coordinates @ c), 0.0)))
        return float(np.sqrt(max(e @ (self.ball_form @ e), 0.0)))

    @property
    def ball_about_zero(self) -> Ball | None:
        """The ball, for baselines, which minimize about zero: an `UncertifiedError` where it has a centre."""
        if self.ball is not None and self.ball.centre is not None:
            raise UncertifiedError(
                "Tikhonov and GaussNewton need a ball about zero, and the ball of the class has a centre; for a linear "
                "problem give baseline=fc.evidence(problem, data).centre, else a candidate of your own"
            )
        return self.ball

    def split(self, field: Any) -> Split:
        """The projection of a dof vector on the class, its rest, and how far it is from the class, all in one."""
        q = real_vector(field, self.size, "field")
        c, remainder = self.project(q)
        outside, member = self.norm(remainder), np.asarray(self.matrix @ c)
        factor = self.shrinkage(member)
        inside = self._shrunk(member, factor)
        distance = outside if factor == 1.0 else self.norm(q - inside)
        return Split(c, outside, inside, factor, distance, self.norm(q))

    def split_of_inside(self, split: Split) -> Split:
        """That of ``split.inside``, which lies in the class, without another projection."""
        inside, c = split.inside, split.coordinates
        if split.shrinkage != 1.0:
            centre = None if self.ball is None else self.ball.centre
            c = c * split.shrinkage
            if centre is not None:
                c = c + (1.0 - split.shrinkage) * self.project(centre)[0]
        return Split(c, 0.0, inside, 1.0, 0.0, self.norm(inside))

    def nearest(self, field: Any) -> Array:
        """A field of the class near `field`: its projection, shrunk into the ball where there is one."""
        inside = self.field(self.project(field)[0])
        return self._shrunk(inside, self.shrinkage(inside))

    def _shrunk(self, field: Array, factor: float) -> Array:
        """`field`, with its distance from the centre of the ball times a factor."""
        centre = None if self.ball is None else self.ball.centre
        return field * factor if centre is None else centre + (field - centre) * factor

    def shrinkage(self, field: Array) -> float:
        """The largest factor of at most 1 that brings `field`, from the centre, into the ball; 1 without a ball."""
        if self.ball is None:
            return 1.0
        size = self.ball_norm(field)
        return min(1.0, self.ball.radius / size) if size > 0.0 else 1.0

    def distance(self, field: Any) -> float:
        """An upper bound of the distance in Q from `field` to the class (the ball included)."""
        return self.norm(field - self.nearest(field))


def check_space(parameters: Any) -> ParameterSpace:
    """`parameters` if it is an admissible class, else an `InputError`."""
    if not isinstance(parameters, ParameterSpace):
        raise InputError(f"parameters is a {type(parameters).__name__}; expected a space such as EigenmodeSpace")
    return parameters


class FullSpace(ParameterSpace):
    """The whole finite-element space: coordinates are the dof values."""

    def __init__(self, basis: Basis, *, inner: str = "l2") -> None:
        field_degree(basis)
        super().__init__(basis, identity(basis.N, format="csr"), inner=inner)

    def project(self, field: Any) -> tuple[Array, Array]:
        """The field itself; the remainder is zero."""
        q = real_vector(field, self.size, "field")
        return q.copy(), np.zeros_like(q)
