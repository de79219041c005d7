"""Hats and bubbles: functions of degree 2 and 3, and vector fields that change only a divergence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..checks import Array
from ..mesh.sample import Sampler
from .patches import LOCAL_FACETS

_SLOPES = np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]])
# Factors in each variable of the unit square: 0 falls, 1 rises, 2 and 3 are bubbles; -1 stands for any bubble.
_QUAD_HATS = ((0, 0), (1, 0), (1, 1), (0, 1))
_QUAD_FACETS = ((-1, 0), (1, -1), (-1, 1), (0, -1))


class HierarchicalTri:
    """Hats; on facets ``4 lam_i lam_j``; then ``6 lam_i lam_j (lam_i - lam_j)`` and ``27 lam_0 lam_1 lam_2``."""

    def __init__(self, degree: int) -> None:
        self.degree = degree
        self.doflocs = np.zeros((6 if degree == 2 else 10, 2))

    def lbasis(self, X: Array, i: int) -> tuple[Array, Array]:
        """Value and reference gradient of local basis function i."""
        lam = np.array([1.0 - X[0] - X[1], X[0], X[1]])
        if i < 3:
            return lam[i], np.broadcast_to(_SLOPES[i][:, None], X.shape)
        if i == 9:
            slope = sum(np.outer(_SLOPES[j], lam[(j + 1) % 3] * lam[(j + 2) % 3]) for j in range(3))
            return 27.0 * lam[0] * lam[1] * lam[2], 27.0 * np.asarray(slope)
        a, b = LOCAL_FACETS[3][(i - 3) % 3]
        la, lb = lam[a], lam[b]
        if i < 6:
            return 4.0 * la * lb, 4.0 * (np.outer(_SLOPES[a], lb) + np.outer(_SLOPES[b], la))
        value = 6.0 * la * lb * (la - lb)
        return value, 6.0 * (np.outer(_SLOPES[a], 2 * la * lb - lb**2) + np.outer(_SLOPES[b], la**2 - 2 * la * lb))


class HierarchicalQuad:
    """Products of ``1 - t``, ``t``, ``4 t (1 - t)``, and for degree 3 ``12 t (1 - t) (1/2 - t)``."""

    def __init__(self, degree: int) -> None:
        self.degree = degree
        bubbles = tuple(range(2, degree + 1))
        on_facets = ((b if f < 0 else f, b if g < 0 else g) for b in bubbles for f, g in _QUAD_FACETS)
        inside = ((a, b) for a in bubbles for b in bubbles)
        self.factors: tuple[tuple[int, int], ...] = (*_QUAD_HATS, *on_facets, *inside)
        self.doflocs = np.zeros((len(self.factors), 2))

    def lbasis(self, X: Array, i: int) -> tuple[Array, Array]:
        """Value and reference gradient of local basis function i."""
        one = np.ones_like(X)
        values = np.array([1.0 - X, X, 4.0 * X * (1.0 - X), 12.0 * X * (1.0 - X) * (0.5 - X)])
        slopes = np.array([-one, one, 4.0 - 8.0 * X, 6.0 - 36.0 * X + 36.0 * X**2])
        f, g = self.factors[i]
        return values[f, 0] * values[g, 1], np.array([slopes[f, 0] * values[g, 1], values[f, 0] * slopes[g, 1]])


@dataclass(frozen=True)
class Space:
    """Dofs of continuous functions on a mesh: vertices, facets (even bubbles, then odd ones), insides of elements.

    Attributes
    ----------
    element_signs
        -1 where an odd bubble runs against its facet, or None.
    on_facets
        Dofs of the bubbles of each facet, ``(bubbles, facets)``.
    """

    elem: Any
    element_dofs: NDArray[np.int64]
    N: int
    element_signs: Array | None
    on_facets: NDArray[np.int64]


def hierarchical_space(mesh: Any, degree: int) -> Space:
    """Hats and bubbles of degree 2 or 3 on triangles or quadrilaterals."""
    nv, nf, nt = mesh.nvertices, mesh.facets.shape[1], mesh.nelements
    triangles = mesh.t.shape[0] == 3
    elem: Any = HierarchicalTri(degree) if triangles else HierarchicalQuad(degree)
    on_facets = nv + np.arange((degree - 1) * nf).reshape(degree - 1, nf)
    dofs = [mesh.t, *(row[mesh.t2f] for row in on_facets)]
    inside = elem.doflocs.shape[0] - sum(len(block) for block in dofs)
    start = nv + (degree - 1) * nf
    dofs.append(start + np.arange(inside * nt).reshape(inside, nt))
    signs = None
    if degree == 3:
        # Both kinds of odd bubbles are positive next to the first local vertex of their facet.
        firsts = [0, 1, 0] if triangles else [0, 1, 3, 0]
        signs = np.ones((len(elem.doflocs), nt))
        odd = 2 * len(mesh.t)
        for l, vertex in enumerate(firsts):
            signs[odd + l] = np.where(mesh.t[vertex] == mesh.facets[0, mesh.t2f[l]], 1.0, -1.0)
    return Space(elem, np.vstack(dofs), start + inside * nt, signs, on_facets)


class ElementMatrices:
    """``(weight grad u, grad v) + (mass u, v)`` element by element, with a constant weight on each; never assembled."""

    def __init__(self, space: Space, mesh: Any, weight: Array, mass: Array | None = None) -> None:
        self.space = space
        sampler = Sampler(mesh, 2 * space.elem.degree if mesh.t.shape[0] == 4 or mass is not None else _gram(space))
        phi, slopes = sampler.table(space.elem)
        B, n = sampler.inverse, len(phi)
        pairs = ((0, 0), (0, 1), (1, 1))
        metric = np.array([sum(B[i, k] * B[j, k] for k in (0, 1)) for i, j in pairs])
        product = np.array([slopes[:, None, i] * slopes[None, :, j] for i, j in pairs])
        product[1] += product[1].transpose(1, 0, 2)
        # Each local matrix is a sum of matrices of the reference element with factors of the element: a few of them on
        # straight elements, one for each quadrature point on bent ones.
        if B.shape[3] == 1:
            parts = [product @ sampler.W]
            factors = [metric[..., 0] * (weight * sampler.determinant[:, 0])]
        else:
            parts = [np.moveaxis(product, 3, 1).reshape(-1, n, n)]
            factors = [np.moveaxis(metric * (weight[:, None] * sampler.dx), 2, 1).reshape(-1, len(weight))]
        if mass is not None:
            parts.append(np.einsum("aq,bq->qab", phi, phi))
            factors.append((mass[:, None] * sampler.dx).T)
        self._parts, self._factors = np.concatenate(parts), np.concatenate(factors)

    @cached_property
    def _local(self) -> Array | None:
        """Local matrices, where there are too many parts to be applied one by one."""
        if len(self._parts) <= 3:
            return None
        return self._matrices()

    def _matrices(self) -> Array:
        n = self._parts.shape[1]
        local = (self._factors.T @ self._parts.reshape(-1, n * n)).reshape(-1, n, n)
        signs = self.space.element_signs
        return local if signs is None else local * signs.T[:, :, None] * signs.T[:, None, :]

    @cached_property
    def diagonal(self) -> Array:
        """Of the matrix that these would assemble to."""
        return self.gather(self._factors.T @ np.einsum("cii->ci", self._parts))

    def gather(self, local: Array) -> Array:
        """Sums over elements of local vectors ``(elements, functions)``."""
        return np.asarray(np.bincount(self.space.element_dofs.ravel(), local.T.ravel(), minlength=self.space.N))

    def assembled(self) -> Any:
        """The sparse matrix."""
        n = self._parts.shape[1]
        dofs = self.space.element_dofs.T.astype(np.int32)
        rows, cols = np.repeat(dofs, n, axis=1).ravel(), np.tile(dofs, (1, n)).ravel()
        return csr_matrix((self._matrices().ravel(), (rows, cols)), shape=(self.space.N, self.space.N))

    def apply(self, u: Array) -> Array:
        """The matrix times a dof vector."""
        values = u[self.space.element_dofs].T
        if self._local is not None:
            return self.gather(np.matmul(self._local, values[..., None])[..., 0])
        signs = self.space.element_signs
        values = values if signs is None else values * signs.T
        result = np.zeros_like(values)
        for part, factor in zip(self._parts, self._factors, strict=True):
            result += factor[:, None] * (values @ part)
        return self.gather(result if signs is None else result * signs.T)


def _gram(space: Space) -> int:
    return 2 * (int(space.elem.degree) - 1)


def conjugate_gradients(
    apply: Any,
    right: Array,
    diagonal: Array,
    free: NDArray[np.bool_],
    *,
    steps: int,
    enough: float,
    square: float | None = None,
) -> Array:
    """A few steps of conjugate gradients for ``A x = b`` on the free dofs, from zero, with the diagonal.

    Stops early once a step gains less than the fraction `enough` of what all steps have gained in energy, or, for a
    distance whose `square` the steps make smaller, of what is left of it. Any number of steps is right for its users:
    they choose a flux or a test function, whose bound is then evaluated as it is.
    """
    usable = free & (diagonal > 0.0)
    scale = np.where(usable, 1.0 / np.where(usable, diagonal, 1.0), 0.0)
    x = np.zeros_like(right)
    r = np.where(usable, right, 0.0)
    z = scale * r
    p, rz, gained = z, float(r @ z), 0.0
    for _ in range(steps):
        Ap = np.where(usable, apply(p), 0.0)
        curvature = float(p @ Ap)
        if not (curvature > 0.0 and rz > 0.0):
            break
        step = rz / curvature
        x = x + step * p
        gain = step * rz
        gained += gain
        if gain <= enough * (gained if square is None else square - gained):
            break
        r = r - step * Ap
        z = scale * r
        fresh = float(r @ z)
        p, rz = z + fresh / rz * p, fresh
    return x


def block_conjugate_gradients(
    matrix: Any,
    right: Array,
    diagonal: Array,
    free: NDArray[np.bool_],
    *,
    steps: int,
    enough: float,
    square: Array,
) -> Array:
    """`conjugate_gradients` for many columns at once, each with its own steps until it has converged.

    In the precision of `right` (and of the matrix), in place: the result takes as much memory as three of it.
    """
    usable = free & (diagonal > 0.0)
    scale = np.where(usable, 1.0 / np.where(usable, diagonal, 1.0), 0.0).astype(right.dtype)[:, None]
    x, r = np.zeros_like(right), right.copy()
    r[~usable] = 0.0
    p = scale * r
    z = np.empty_like(r)
    rz, gained = _products(r, p), np.zeros(right.shape[1])
    active = rz > 0.0
    for _ in range(steps):
        Ap = matrix @ p
        Ap[~usable] = 0.0
        curvature = _products(p, Ap)
        active &= (curvature > 0.0) & (rz > 0.0)
        step = np.where(active, rz / np.where(active, curvature, 1.0), 0.0)
        np.multiply(p, step.astype(right.dtype), out=z)
        x += z
        gain = step * rz
        gained += gain
        active &= gain > enough * (square - gained)
        if not active.any():
            break
        Ap *= step.astype(right.dtype)
        r -= Ap
        np.multiply(scale, r, out=z)
        fresh = _products(r, z)
        p *= np.where(active, fresh / np.where(active, rz, 1.0), 0.0).astype(right.dtype)
        p += z
        rz = fresh
    return x


def _products(first: Array, second: Array) -> Array:
    """Scalar products of columns."""
    return np.asarray(np.einsum("ij,ij->j", first, second), dtype=float)


_CORNERS = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


def bubble_fields(vertices: int, degree: int, X: Array) -> tuple[Array, Array]:
    """Fields ``(fields, 2, points)`` and divergences ``(fields, points)`` at reference points.

    On the triangle ``lam_i lam_j t_ij`` with the tangent t_ij, whose divergence is ``lam_i - lam_j``, and for degree 2
    also ``lam_i lam_j (lam_i - lam_j) t_ij``: together all polynomials of this degree with mean zero. On the square
    ``(x (1-x) P(y), 0)`` and its siblings: all polynomials of this degree in each variable with mean zero.
    """
    return _on_triangle(degree, X) if vertices == 3 else _on_square(degree, X)


def fit_matrix(sampler: Sampler, degree: int) -> Array:
    """``(points, fields)``: coefficients of bubble fields from samples of the divergence they should have."""
    _, divergence = bubble_fields(sampler.mesh.t.shape[0], degree, sampler.X)
    root = np.sqrt(sampler.W)
    return np.asarray((np.linalg.pinv((divergence * root).T, rcond=1e-10) * root).T)


def _on_triangle(degree: int, X: Array) -> tuple[Array, Array]:
    lam = np.array([1.0 - X[0] - X[1], X[0], X[1]])
    fields, divergences = [], []
    for i, j in LOCAL_FACETS[3]:
        a, b = lam[i], lam[j]
        tangent = _CORNERS[:, j] - _CORNERS[:, i]
        fields.append(np.outer(tangent, a * b))
        divergences.append(a - b)
        if degree == 2:
            fields.append(np.outer(tangent, a * b * (a - b)))
            divergences.append(a**2 + b**2 - 4.0 * a * b)
    return np.array(fields), np.array(divergences)


def _on_square(degree: int, X: Array) -> tuple[Array, Array]:
    legendre = [np.polynomial.legendre.legval(2.0 * X - 1.0, row) for row in np.eye(degree + 1)]
    bubbles = [(X * (1 - X), 1 - 2 * X), (X * (1 - X) * (0.5 - X), 0.5 - 3 * X + 3 * X**2)][:degree]
    fields, divergences = [], []
    for value, slope in bubbles:
        for P in legendre:
            zero = np.zeros_like(X[0])
            fields += [np.array([value[0] * P[1], zero]), np.array([zero, value[1] * P[0]])]
            divergences += [slope[0] * P[1], slope[1] * P[0]]
    return np.array(fields), np.array(divergences)


@cache
def bubble_count(vertices: int, degree: int) -> int:
    """How many fields there are."""
    return len(bubble_fields(vertices, degree, np.full((2, 1), 0.25))[0])
