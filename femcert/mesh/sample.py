"""Fields at points: of a quadrature rule of any order on every element, and anywhere, such as at random points."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skfem import Basis
from skfem.quadrature import get_quadrature

from ..checks import Array, number, real_array
from ..errors import InputError
from .elements import MESHES, lagrange
from .geometry import ROUNDING
from .locate import Locator, interpolation_matrix, reference_points, scatter

# Highest orders of the rules that are used, by vertices of an element.
MOST_ORDER = {2: 120, 3: 18, 4: 30}
# What rounding may add to the sum of two coordinates of a lattice.
LATTICE_TOLERANCE = 1e-12


class Sampler:
    """A quadrature rule on every element of a mesh of lines, triangles or quadrilaterals.

    Arrays have the shape ``(elements, points)``, vector fields ``(dimension, elements, points)``; the last axis has
    length 1 where nothing varies over an element (Jacobians of straight lines and triangles, gradients of P1).

    Parameters
    ----------
    order
        Polynomials of this degree on the reference element are integrated exactly (on quadrilaterals in each variable).
    points
        Reference points to use instead of a rule: for evaluation only.

    Attributes
    ----------
    X, W
        Points ``(dimension, points)`` and weights on the reference element.
    """

    def __init__(self, mesh: Any, order: int, *, points: Array | None = None) -> None:
        if type(mesh) not in MESHES:
            raise InputError(f"{type(mesh).__name__} is not supported; expected lines, triangles or quadrilaterals")
        self.mesh = mesh
        self._tables: dict[Any, tuple[Array, Array]] = {}
        if points is not None:
            self.order, self.X, self.W = order, points, np.full(points.shape[1], np.nan)
            return
        # Two of the rules on triangles have negative weights; the sum of nonnegative values must not be negative.
        self.order = order + 1 if mesh.t.shape[0] == 3 and order in (3, 7) else order
        self.X, self.W = get_quadrature(mesh.refdom, self.order)

    def at_points(self, points: Array) -> Sampler:
        """The same elements at other reference points, for evaluation only."""
        other = Sampler(self.mesh, 0, points=points)
        if self.mesh.t.shape[0] < 4:
            # Straight elements have one Jacobian each, whatever the points.
            for name in ("jacobian", "signed_determinant", "determinant", "inverse"):
                other.__dict__[name] = getattr(self, name)
        return other

    @cached_property
    def jacobian(self) -> Array:
        """``dx_i / dX_j``, shape ``(dimension, dimension, elements, 1 or points)``."""
        corners = self.mesh.p[:, self.mesh.t]
        if self.mesh.t.shape[0] < 4:
            return np.moveaxis(corners[:, 1:] - corners[:, :1], 2, -1)[..., None]
        _, slopes = self.table(self.mesh.elem())
        return np.einsum("ick,cjq->ijkq", corners, slopes)

    @cached_property
    def signed_determinant(self) -> Array:
        """Of the Jacobian; negative where an element runs clockwise."""
        J = self.jacobian
        return J[0, 0] if len(J) == 1 else J[0, 0] * J[1, 1] - J[0, 1] * J[1, 0]

    @cached_property
    def determinant(self) -> Array:
        """Absolute value of the determinant of the Jacobian."""
        return np.abs(self.signed_determinant)

    @cached_property
    def inverse(self) -> Array:
        """``dX_i / dx_j``, shaped like the Jacobian."""
        J, d = self.jacobian, self.signed_determinant
        if len(J) == 1:
            return (1.0 / d)[None, None]
        return np.array([[J[1, 1] / d, -J[0, 1] / d], [-J[1, 0] / d, J[0, 0] / d]])

    @cached_property
    def dx(self) -> Array:
        """Quadrature weights on the elements, ``(elements, points)``."""
        return self.determinant * self.W

    @cached_property
    def x(self) -> Array:
        """Coordinates of the points, ``(dimension, elements, points)``."""
        corners = self.mesh.p[:, self.mesh.t]
        shapes, _ = self.table(self.mesh.elem())
        return np.array([axis.T @ shapes for axis in corners])

    def table(self, element: Any) -> tuple[Array, Array]:
        """Basis functions ``(functions, points)`` and reference gradients ``(functions, dimension, points)``."""
        key = (type(element), _count(element))
        if key not in self._tables:
            pairs = [element.lbasis(self.X, i) for i in range(_count(element))]
            values = np.array([np.broadcast_to(value, self.W.shape) for value, _ in pairs])
            shape = (len(self.X), self.W.size)
            slopes = np.array([np.broadcast_to(slope, shape) for _, slope in pairs], dtype=float)
            self._tables[key] = (values, slopes)
        return self._tables[key]

    def values(self, basis: Basis, dofs: Array) -> Array:
        """A finite-element function at the points."""
        phi, _ = self.table(basis.elem)
        return np.asarray(_local(basis, dofs) @ phi)

    def gradients(self, basis: Basis, dofs: Array) -> Array:
        """Its gradient."""
        _, slopes = self.table(basis.elem)
        if np.ptp(slopes, axis=2).max() == 0.0:
            slopes = slopes[:, :, :1]
        local = _local(basis, dofs)
        if slopes.shape[2] > 1 and isinstance(basis, Basis):
            # Shapes add up to one: without the first value nothing large cancels where a function hardly varies.
            local = local - local[:, :1]
        return self.physical([local @ slopes[:, j] for j in range(len(self.X))])

    def physical(self, reference: Sequence[Array]) -> Array:
        """Gradients with respect to x from gradients with respect to X: ``J^-T g``."""
        B = self.inverse
        result = np.empty((len(B), len(reference[0]), max(reference[0].shape[1], B.shape[3])))
        for i in range(len(B)):
            np.multiply(B[0, i], reference[0], out=result[i])
            for j in range(1, len(B)):
                result[i] += B[j, i] * reference[j]
        return result

    def moments(self, basis: Basis, source: Array, flux: Array) -> Array:
        """``int source phi_i + flux . grad phi_i`` for all basis functions, a dof vector."""
        local = self.local_moments(basis.elem, source, flux)
        signs = getattr(basis, "element_signs", None)
        if signs is not None:
            local *= signs.T
        return np.asarray(np.bincount(basis.element_dofs.ravel(), local.T.ravel(), minlength=basis.N), dtype=float)

    def local_moments(self, element: Any, source: Array, flux: Array) -> Array:
        """The same for each element, ``(elements, functions)``."""
        phi, slopes = self.table(element)
        B = self.inverse
        result = (source * self.dx) @ phi.T if source.shape[1] > 1 else source * (self.dx @ phi.T)
        constant = flux.shape[2] == 1 and B.shape[3] == 1
        for j in range(len(B)):
            along = sum(B[j, i] * flux[i] for i in range(len(B)))
            if constant:
                result += (along * self.determinant) * (slopes[:, j] @ self.W)
            else:
                result += (along * self.dx) @ slopes[:, j].T
        return result

    def integral(self, values: Array) -> Array:
        """Integral over each element."""
        if self.determinant.shape[1] > 1:
            return np.asarray(np.sum(values * self.dx, axis=1))
        mean = values[:, 0] * self.W.sum() if values.shape[1] == 1 else values @ self.W
        return np.asarray(mean * self.determinant[:, 0])

    def means(self, field: Array) -> Array:
        """Mean of a field over each element."""
        elements = self.mesh.nelements
        if field.shape[1] == 1:
            return np.array(np.broadcast_to(field[:, 0], elements))
        return self.integral(field) / self.integral(np.ones((elements, 1)))


def dot(first: Array, second: Array) -> Array:
    """Scalar product of two sampled vector fields."""
    product = first[0] * second[0]
    for i in range(1, len(first)):
        product += first[i] * second[i]
    return product


def _local(basis: Any, dofs: Array) -> Array:
    """Coefficients on each element; a space whose functions change sign between elements brings their signs."""
    local = dofs[basis.element_dofs]
    signs = getattr(basis, "element_signs", None)
    return np.asarray(local.T if signs is None else (local * signs).T)


def _count(element: Any) -> int:
    return len(element.doflocs)


@dataclass(frozen=True)
class PolynomialFit:
    """A field as polynomials on the elements.

    Attributes
    ----------
    coefficients
        On each element, of monomials about the middle of the reference element; the first one is the constant.
    largest
        Upper bounds of the absolute values of the monomials.
    away
        On each element, the largest distance from the samples.
    """

    degree: int
    coefficients: Array
    largest: Array
    away: Array

    @property
    def mean(self) -> Array:
        """The values in the middle."""
        return self.coefficients[:, 0]

    @property
    def spread(self) -> Array:
        """On each element a bound of the distance from `mean`."""
        return np.asarray(np.abs(self.coefficients[:, 1:]) @ self.largest[1:])

    def at(self, sampler: Sampler) -> Array:
        """Values at the points of a sampler."""
        return np.asarray(self.coefficients @ _centred_monomials(sampler, self.degree))


def polynomial_fit(sampler: Sampler, values: NDArray[Any], degree: int) -> PolynomialFit:
    """The polynomials of a known degree on the reference element that are nearest to samples, element by element.

    Polynomials of total degree d on lines and triangles, of degree d in each variable on quadrilaterals. Where the
    samples of an element are equal to rounding, a constant.
    """
    if values.shape[1] == 1:
        return PolynomialFit(0, values, np.ones(1), np.zeros(len(values)))
    if np.all(np.ptp(values, axis=1) <= ROUNDING * np.abs(values).max(axis=1)):
        return PolynomialFit(0, values[:, :1], np.ones(1), np.ptp(values, axis=1))
    P = _centred_monomials(sampler, degree)
    coefficients = values @ np.linalg.pinv(P)
    away = np.abs(coefficients @ P - values).max(axis=1)
    return PolynomialFit(degree, coefficients, _largest_monomials(sampler, degree), away)


def nodal_fit(sampler: Sampler, degree: int) -> tuple[Any, Array]:
    """A Lagrange element, and the matrix ``(nodes, points)`` from samples to the nodal values of the best fit."""
    elem = lagrange(sampler.mesh, degree)
    phi, _ = sampler.table(elem)
    return elem, np.linalg.solve((phi * sampler.W) @ phi.T, phi * sampler.W)


def norming_constant(sampler: Sampler, degree: int) -> float:
    """How many times its largest sample a polynomial of a degree can be on an element.

    On a lattice of n steps along a side by the Lagrange functions of the samples, and between its points by Markov's
    inequality: derivatives are at most ``2 d²`` times the polynomial on [0, 1], ``4 d² / width`` on a triangle
    (Wilhelmsen 1974), so that with the nearest point of the lattice ``‖p‖ <= max |p| + ‖p‖ / 2``.
    """
    if degree == 0:
        return 1.0
    n = {2: 2, 3: 8, 4: 4}[sampler.mesh.t.shape[0]] * degree**2
    s = np.linspace(0.0, 1.0, n + 1)
    X = s[None] if len(sampler.X) == 1 else np.array(np.meshgrid(s, s)).reshape(2, -1)
    if sampler.mesh.t.shape[0] == 3:
        X = X[:, X.sum(axis=0) <= 1.0 + LATTICE_TOLERANCE]
    lagrange = np.linalg.pinv(_centred_monomials(sampler, degree)) @ _centred_monomials(sampler.at_points(X), degree)
    return 2.0 * float(np.abs(lagrange).sum(axis=0).max())


def _centred_monomials(sampler: Sampler, degree: int) -> Array:
    X = sampler.X - (1.0 / 3.0 if sampler.mesh.t.shape[0] == 3 else 0.5)
    return np.array([np.prod(X ** p[:, None], axis=0) for p in _powers(sampler, degree)])


def _largest_monomials(sampler: Sampler, degree: int) -> Array:
    # A coordinate is at most 2/3 from the centroid of the reference triangle, 1/2 from the middle of [0, 1].
    reach = 2.0 / 3.0 if sampler.mesh.t.shape[0] == 3 else 0.5
    return np.asarray(reach ** _powers(sampler, degree).sum(axis=1))


def _powers(sampler: Sampler, degree: int) -> NDArray[np.int64]:
    d = len(sampler.X)
    powers = np.stack(np.meshgrid(*[np.arange(degree + 1)] * d, indexing="ij"), axis=-1).reshape(-1, d)
    return powers if sampler.mesh.t.shape[0] == 4 else powers[powers.sum(axis=1) <= degree]


class Points:
    """Points of a mesh, each with the cell that it lies in; where a field jumps between cells, the cell decides.

    Parameters
    ----------
    x
        Coordinates, ``(dimension, points)``.
    cells
        Numbers of the cells, ``(points,)``; None: they are located when they are first needed.
    """

    def __init__(self, mesh: Any, x: Array, cells: NDArray[np.int64] | None = None) -> None:
        self.mesh, self.x = mesh, x
        self._locate = (lambda: Locator(mesh).find(x)) if cells is None else (lambda: cells)

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """Numbers of the cells, -1 outside of the mesh."""
        return self._locate()

    def moved(self, by: Array) -> Points:
        """The points somewhere else, but with the same cells."""
        other = Points(self.mesh, self.x + by)
        other._locate = lambda: self.cells
        return other

    def values(self, basis: Basis, dofs: Array) -> Array:
        """A finite-element function at the points."""
        return np.asarray(self.values_matrix(basis) @ dofs)

    def gradients(self, basis: Basis, dofs: Array) -> Array:
        """Its gradient inside of the cells, ``(dimension, points)``."""
        return np.array([G @ dofs for G in self.gradient_matrices(basis)])

    def values_matrix(self, basis: Basis) -> Any:
        """``phi_j(x_i)``, sparse ``(points, dofs)``."""
        return interpolation_matrix(basis, self.x, self.cells)

    def gradient_matrices(self, basis: Basis) -> list[Any]:
        """``d phi_j / d x_k (x_i)`` inside of the cells, a sparse matrix for each k."""
        X = reference_points(self.mesh, self.x[:, :, None], self.cells)
        n, shape = len(self.cells), self.mesh.elem()
        slopes = np.array([_reference_slope(shape, X, i) for i in range(len(self.mesh.t))])
        corners = self.mesh.p[:, self.mesh.t[:, self.cells]]
        inverse = np.linalg.inv(np.einsum("icn,cjn->nij", corners, slopes))
        functions = [_reference_slope(basis.elem, X, i) for i in range(basis.Nbfun)]
        local = np.array([np.einsum("nji,jn->in", inverse, slope) for slope in functions])
        return [scatter(basis, [(np.arange(n), self.cells, local[:, k])], n) for k in range(len(self.x))]


def _reference_slope(element: Any, X: Array, i: int) -> Array:
    """Gradient of a local basis function at reference points, ``(dimension, points)``."""
    slope = np.asarray(element.lbasis(X, i)[1], dtype=float)
    return np.array(np.broadcast_to(slope, X.shape))[:, :, 0]


def uniform_points(mesh: Any, count: int, rng: np.random.Generator) -> Points:
    """Independent random points, uniform on the mesh."""
    share = cell_shares(mesh)
    return points_in(mesh, rng.choice(share.size, size=count, p=share / share.sum()), rng)


def points_in(mesh: Any, cells: NDArray[np.int64], rng: np.random.Generator) -> Points:
    """A random point in each of the cells, uniform inside of it: a quadrilateral is two triangles."""
    x, size = _simplices(mesh)
    piece = np.zeros(len(cells), dtype=np.int64)
    if len(size) == 2:
        piece = (rng.random(len(cells)) * size.sum(axis=0)[cells] >= size[0, cells]).astype(np.int64)
    corner = x[:, :, piece, cells]
    s = rng.random((x.shape[1] - 1, len(cells)))
    if len(s) == 2:
        s = np.where(s.sum(axis=0) > 1.0, 1.0 - s, s)
    return Points(mesh, corner[:, 0] + np.einsum("dij,ij->dj", corner[:, 1:] - corner[:, :1], s), cells)


def cell_shares(mesh: Any) -> Array:
    """Size of each cell over the size of the mesh."""
    size = _simplices(mesh)[1].sum(axis=0)
    return np.asarray(size / size.sum())


def _simplices(mesh: Any) -> tuple[Array, Array]:
    """Corners ``(dimension, corner, piece, cell)`` and sizes ``(piece, cell)`` of the simplices of the mesh."""
    p, t = mesh.p, mesh.t
    corners = np.stack([t[[0, 1, 2]], t[[0, 2, 3]]], axis=1) if len(t) == 4 else t[:, None, :]
    x = p[:, corners]
    edges = x[:, 1:] - x[:, :1]
    size = np.abs(edges[0, 0] if mesh.dim() == 1 else edges[0, 0] * edges[1, 1] - edges[0, 1] * edges[1, 0])
    return x, size


def values_at(function: Any, x: Array, name: str, *, vector: bool = False) -> Array:
    """A function of x (or a number) at points, finite and real: ``(points,)``, or for a vector shaped like x.

    Raises
    ------
    InputError
        The function returns anything else.
    """
    function = callable_of(function)
    # A copy: a function may write to what it gets.
    values = real_array(function(np.array(x)) if callable(function) else number(function, name), name)
    expected = x.shape if vector else x.shape[1:]
    if values.shape not in ((), expected):
        raise InputError(f"{name} returned shape {values.shape} for x of shape {x.shape}; expected {expected}")
    return np.array(np.broadcast_to(values, expected))


def callable_of(function: Any) -> Any:
    """`function` itself, or its method ``value`` where it cannot be called.

    Raises
    ------
    InputError
        It is a module of PyTorch, which takes rows of tensors.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(function, torch.nn.Module):
        raise InputError(f"got the torch module {type(function).__name__}; expected femcert.learn.Function(module)")
    return function if callable(function) else getattr(function, "value", function)


def offers(function: Any, *names: str) -> bool:
    """Whether a function of the user has methods, such as ``gradient`` or ``laplacian``."""
    return all(callable(getattr(function, name, None)) for name in names)
