"""Matrices of diffusion and mass: on linear triangles in closed form, elsewhere by scikit-fem's forms."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix
from skfem import Basis, BilinearForm, ElementTriP1, asm
from skfem.helpers import dot, grad
from skfem.mesh import MeshTri1

from ..checks import Array
from .geometry import index_facets
from .vectors import component_matrix, components, is_vector, scalar_basis


@BilinearForm
def diffusion(u: Any, v: Any, w: Any) -> Any:
    """(a grad u, grad v)"""
    return w["a"] * dot(grad(u), grad(v))


@BilinearForm
def mass_form(u: Any, v: Any, _: Any) -> Any:
    """(u, v), also of vectors"""
    return dot(u, v) if u.ndim > 2 else u * v


def diffusion_matrix(basis: Basis, conductivity: Array) -> Any:
    """``(a grad phi_j, grad phi_i)`` (CSR), a at the quadrature points of `basis`.

    On linear triangles ``int_K a`` times ``e_i . e_j / (2 |K|)²``, e_i the side opposite to vertex i.
    """
    if not is_linear_on_triangles(basis):
        return asm(diffusion, basis, a=conductivity).tocsr()
    weight = np.sum(conductivity * basis.dx, axis=1)
    edges = _edge_sums(basis, [weight * value for value in _gradient_products(basis)])
    # Rows sum up to zero, also after rounding.
    return _edge_matrix(basis, edges, -1.0)


def stiffness_matrix(basis: Basis) -> Any:
    """``(grad phi_j, grad phi_i)`` (CSR); of vector fields that of each component."""
    if is_vector(basis):
        return _by_components(basis, stiffness_matrix(scalar_basis(basis)))
    return diffusion_matrix(basis, np.ones((1, 1)))


def consistent_mass(basis: Basis) -> Any:
    """``(phi_j, phi_i)`` (CSR)."""
    if is_vector(basis):
        return _by_components(basis, consistent_mass(scalar_basis(basis)))
    if not is_linear_on_triangles(basis):
        return asm(mass_form, basis).tocsr()
    share = np.sum(basis.dx, axis=1) / 12.0
    # A vertex couples to itself as much as to both others of the triangle.
    return _edge_matrix(basis, _edge_sums(basis, [share] * 3), 1.0)


def _by_components(basis: Basis, matrix: Any) -> Any:
    """The matrix that couples each component of a vector field with itself as `matrix` does."""
    scalar = scalar_basis(basis)
    picks = [component_matrix(basis, scalar, i) for i in range(components(basis))]
    return csr_matrix(sum(pick.T @ matrix @ pick for pick in picks))


class DiffusionPattern:
    """Diffusion matrices on linear triangles for one conductivity after the other: a sparse product for each.

    An edge couples its ends by the sum over its triangles of ``int_K a`` times a number of the mesh; a vertex itself
    by minus the sum over its edges.
    """

    def __init__(self, basis: Basis) -> None:
        index_facets(basis.mesh)
        mesh, n = basis.mesh, int(basis.N)
        triangles = np.tile(np.arange(mesh.nelements), 3)
        couplings = coo_matrix((np.concatenate(_gradient_products(basis)), (mesh.t2f.ravel(), triangles))).tocsr()
        # Across from right angles nothing is coupled, whatever the conductivity.
        couplings.eliminate_zeros()
        coupled = np.diff(couplings.indptr) > 0
        self._couplings, (i, j) = couplings[coupled], mesh.facets[:, coupled]
        ends = (np.concatenate([i, j]), np.tile(np.arange(len(i)), 2))
        self._at_vertex = coo_matrix((np.full(2 * len(i), -1.0), ends), shape=(n, len(i))).tocsr()
        self._pattern = _edge_pattern(i, j, n)
        self._volumes, self._areas = basis.dx, basis.dx.sum(axis=1)
        gradients = np.stack([shape[0].grad[:, :, 0] for shape in basis.basis], axis=2)
        starts = np.arange(0, 3 * mesh.nelements + 1, 3)
        places = mesh.t.T.ravel()
        self._derivatives = [csr_matrix((d.ravel(), places, starts), shape=(mesh.nelements, n)) for d in gradients]

    def matrix(self, conductivity: Array) -> Any:
        """``(a grad phi_j, grad phi_i)`` (CSR), a at the quadrature points of the basis, or one number an element."""
        one = conductivity.shape[1] == 1
        weight = conductivity[:, 0] * self._areas if one else np.sum(conductivity * self._volumes, axis=1)
        edges = self._couplings @ weight
        return _filled(self._pattern, edges, self._at_vertex @ edges)

    def slopes(self, u: Array) -> Any:
        """``grad u . grad phi_i`` on each triangle, a column for each vertex i (CSR)."""
        entries = sum((d @ u)[:, None] * d.data.reshape(-1, 3) for d in self._derivatives)
        d = self._derivatives[0]
        return csr_matrix((entries.ravel(), d.indices, d.indptr), shape=d.shape)


def _gradient_products(basis: Basis) -> list[Array]:
    """``grad phi_i . grad phi_j`` on each linear triangle, for the ends i and j of each of its edges."""
    x, y = basis.mesh.p[:, basis.mesh.t]
    sides = [(x[(i + 2) % 3] - x[(i + 1) % 3], y[(i + 2) % 3] - y[(i + 1) % 3]) for i in range(3)]
    (a, b), (c, d) = sides[:2]
    twice = a * d - b * c
    pairs = basis.mesh.elem.refdom.facets
    return [(sides[i][0] * sides[j][0] + sides[i][1] * sides[j][1]) / twice**2 for i, j in pairs]


def is_linear_on_triangles(basis: Basis) -> bool:
    """Whether the basis is P1 on all of a mesh of straight triangles."""
    return type(basis.mesh) is MeshTri1 and type(basis.elem) is ElementTriP1 and basis.tind is None


def _edge_sums(basis: Basis, values: list[Array]) -> Array:
    """For each edge of the mesh the sum over its triangles, of numbers for each edge of a triangle."""
    index_facets(basis.mesh)
    return _sums(basis.mesh.t2f.ravel(), np.concatenate(values), basis.mesh.facets.shape[1])


def _edge_matrix(basis: Basis, edges: Array, sign: float) -> Any:
    """The symmetric matrix (CSR) that couples the ends of edges, and a vertex itself by `sign` times their sum."""
    n = int(basis.N)
    # Across from a right angle nothing is coupled, and factors are sparser without such entries.
    coupled = np.flatnonzero(edges)
    edges, (i, j) = edges[coupled], basis.mesh.facets[:, coupled]
    return _filled(_edge_pattern(i, j, n), edges, sign * (_sums(i, edges, n) + _sums(j, edges, n)))


def _sums(places: Any, values: Array, length: int) -> Array:
    return np.asarray(np.bincount(places, values, length), dtype=np.float64)


def _edge_pattern(i: Any, j: Any, n: int) -> Any:
    """The entries of such a matrix: each has the number of its edge, from 1, or behind these that of its vertex."""
    m, vertices = len(i), np.arange(n, dtype=np.int32)
    edges = np.arange(1, m + 1, dtype=np.int32)
    places = np.concatenate([edges, edges, m + 1 + vertices])
    where = (np.concatenate([i, j, vertices]), np.concatenate([j, i, vertices]))
    return coo_matrix((places, where), shape=(n, n)).tocsr()


def _filled(pattern: Any, edges: Array, vertices: Array) -> Any:
    values = np.concatenate([edges, vertices])[pattern.data - 1]
    return csr_matrix((values, pattern.indices, pattern.indptr), shape=pattern.shape)
