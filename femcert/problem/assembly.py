"""Matrices of diffusion and mass: on linear triangles in closed form, elsewhere by scikit-fem's forms."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix
from skfem import Basis, BilinearForm, ElementTriP1, asm
from skfem.helpers import dot, grad
from skfem.mesh import MeshTri1

from .checks import Array


@BilinearForm
def diffusion(u: Any, v: Any, w: Any) -> Any:
    """(a grad u, grad v)"""
    return w["a"] * dot(grad(u), grad(v))


@BilinearForm
def mass_form(u: Any, v: Any, _: Any) -> Any:
    """(u, v)"""
    return u * v


def diffusion_matrix(basis: Basis, conductivity: Array) -> Any:
    """``(a grad phi_j, grad phi_i)`` (CSR), a at the quadrature points of `basis`.

    On linear triangles ``int_K a`` times ``e_i . e_j / (2 |K|)²``, e_i the side opposite to vertex i.
    """
    if not is_linear_on_triangles(basis):
        return asm(diffusion, basis, a=conductivity).tocsr()
    weight = np.sum(conductivity * basis.dx, axis=1)
    products = {pair: weight * value for pair, value in _gradient_products(basis).items()}
    # Rows sum up to zero, also after rounding.
    diagonal = [-sum(value for pair, value in products.items() if i in pair) for i in range(3)]
    return _summed(basis, products, diagonal)


def stiffness_matrix(basis: Basis) -> Any:
    """``(grad phi_j, grad phi_i)`` (CSR)."""
    return diffusion_matrix(basis, np.ones((1, 1)))


def consistent_mass(basis: Basis) -> Any:
    """``(phi_j, phi_i)`` (CSR)."""
    if not is_linear_on_triangles(basis):
        return asm(mass_form, basis).tocsr()
    share = np.sum(basis.dx, axis=1) / 12.0
    return _summed(basis, {(i, j): share for i in range(3) for j in range(i)}, [2.0 * share] * 3)


class DiffusionPattern:
    """Diffusion matrices on linear triangles for one conductivity after the other: a sparse product for each.

    An edge couples its ends by the sum over its triangles of ``int_K a`` times a number of the mesh; a vertex itself
    by minus the sum over its edges.
    """

    def __init__(self, basis: Basis) -> None:
        mesh, n = basis.mesh, int(basis.N)
        edges, of_edge = mesh.facets, []
        for first, second in mesh.elem.refdom.facets:
            of_edge.append(_gradient_products(basis)[max(first, second), min(first, second)])
        triangles = np.tile(np.arange(mesh.nelements), 3)
        couplings = coo_matrix((np.concatenate(of_edge), (mesh.t2f.ravel(), triangles))).tocsr()
        # Across from right angles nothing is coupled, whatever the conductivity.
        couplings.eliminate_zeros()
        coupled = np.diff(couplings.indptr) > 0
        self._couplings, (i, j) = couplings[coupled], edges[:, coupled].astype(np.int32)
        m, vertices = len(i), np.arange(n, dtype=np.int32)
        ends = (np.r_[i, j], np.tile(np.arange(m, dtype=np.int32), 2))
        self._at_vertex = coo_matrix((np.full(2 * m, -1.0), ends), shape=(n, m)).tocsr()
        # Places in what is computed, from 1, for each entry of the matrix.
        places = np.r_[np.arange(m), np.arange(m), m + np.arange(n)] + 1
        self._pattern = coo_matrix((places, (np.r_[i, j, vertices], np.r_[j, i, vertices])), shape=(n, n)).tocsr()
        self._volumes = basis.dx

    def matrix(self, conductivity: Array) -> Any:
        """``(a grad phi_j, grad phi_i)`` (CSR), a at the quadrature points of the basis, or one number an element."""
        edges = self._couplings @ np.sum(conductivity * self._volumes, axis=1)
        values = np.concatenate([edges, self._at_vertex @ edges])[self._pattern.data - 1]
        return csr_matrix((values, self._pattern.indices, self._pattern.indptr), shape=self._pattern.shape)


def _gradient_products(basis: Basis) -> dict[tuple[int, int], Array]:
    """``grad phi_i . grad phi_j`` on each linear triangle, for ``i > j``."""
    x, y = basis.mesh.p[:, basis.mesh.t]
    sides = [(x[(i + 2) % 3] - x[(i + 1) % 3], y[(i + 2) % 3] - y[(i + 1) % 3]) for i in range(3)]
    twice = sides[0][0] * sides[1][1] - sides[0][1] * sides[1][0]
    pairs = [(i, j) for i in range(3) for j in range(i)]
    return {(i, j): (sides[i][0] * sides[j][0] + sides[i][1] * sides[j][1]) / twice**2 for i, j in pairs}


def is_linear_on_triangles(basis: Basis) -> bool:
    """Whether the basis is P1 on all of a mesh of straight triangles."""
    return type(basis.mesh) is MeshTri1 and type(basis.elem) is ElementTriP1 and basis.tind is None


def _summed(basis: Basis, below: dict[tuple[int, int], Array], diagonal: list[Array]) -> Any:
    """The symmetric matrix of element matrices, given by what is below their diagonals and by these."""
    dofs = basis.element_dofs.astype(np.int32)
    rows = [dofs[i] for i, _ in below] + [dofs[j] for _, j in below] + list(dofs)
    columns = [dofs[j] for _, j in below] + [dofs[i] for i, _ in below] + list(dofs)
    data = [*below.values(), *below.values(), *diagonal]
    parts = (np.concatenate(data), (np.concatenate(rows), np.concatenate(columns)))
    matrix = coo_matrix(parts, shape=(basis.N, basis.N)).tocsr()
    # Across from a right angle nothing is coupled, and factors are sparser without such entries.
    matrix.eliminate_zeros()
    return matrix
