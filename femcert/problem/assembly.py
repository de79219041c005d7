"""Matrices of diffusion and mass: on linear triangles in closed form, elsewhere by scikit-fem's forms."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_matrix
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
    if not _is_linear_on_triangles(basis):
        return asm(diffusion, basis, a=conductivity).tocsr()
    x, y = basis.mesh.p[:, basis.mesh.t]
    sides = [(x[(i + 2) % 3] - x[(i + 1) % 3], y[(i + 2) % 3] - y[(i + 1) % 3]) for i in range(3)]
    twice = sides[0][0] * sides[1][1] - sides[0][1] * sides[1][0]
    weight = np.sum(conductivity * basis.dx, axis=1) / twice**2
    pairs = [(i, j) for i in range(3) for j in range(i)]
    products = {(i, j): weight * (sides[i][0] * sides[j][0] + sides[i][1] * sides[j][1]) for i, j in pairs}
    # Rows sum up to zero, also after rounding.
    diagonal = [-sum(value for pair, value in products.items() if i in pair) for i in range(3)]
    return _summed(basis, products, diagonal)


def stiffness_matrix(basis: Basis) -> Any:
    """``(grad phi_j, grad phi_i)`` (CSR)."""
    return diffusion_matrix(basis, np.ones((1, 1)))


def consistent_mass(basis: Basis) -> Any:
    """``(phi_j, phi_i)`` (CSR)."""
    if not _is_linear_on_triangles(basis):
        return asm(mass_form, basis).tocsr()
    share = np.sum(basis.dx, axis=1) / 12.0
    return _summed(basis, {(i, j): share for i in range(3) for j in range(i)}, [2.0 * share] * 3)


def _is_linear_on_triangles(basis: Basis) -> bool:
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
