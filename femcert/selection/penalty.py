"""What Tikhonov's objective adds to the misfit: a squared norm of the parameter, or its total variation."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import coo_matrix, diags, issparse
from skfem import Basis, InteriorFacetBasis

from ..checks import Array
from ..errors import InputError
from ..linalg import Factorization
from ..mesh.elements import degree
from ..problem.constraints import check_norm_name, checked_norm, shown_option
from ..problem.space import ParameterSpace

# Norms by name; "l2" is the norm of Q, which is Euclidean for a class that says so.
NAMES = ("l2", "h1", "h2", "tv")


def check_penalty(penalty: Any) -> None:
    """Refuse what is neither one of the names nor a sparse matrix."""
    if not (issparse(penalty) or (isinstance(penalty, str) and penalty in NAMES)):
        raise InputError(f"penalty is {shown_option(penalty)}; expected one of {', '.join(NAMES)}, or a sparse matrix")


class SquaredNorm:
    """``c' P c`` in the coordinates of a class, with what `Ridge` asks of its inner product.

    Attributes
    ----------
    gram
        P, sparse or dense.
    """

    def __init__(self, space: ParameterSpace, penalty: Any) -> None:
        if issparse(penalty):
            form = checked_norm(penalty, space.size)
        else:
            check_norm_name(penalty, space.carrier)
            length = 1.0 if space.ball is None else space.ball.length
            form = space.form(penalty, length)
        B = space.matrix
        gram = B.T @ (form @ B)
        self.gram: Any = gram.tocsr() if issparse(gram) else (gram + gram.T) / 2.0

    @cached_property
    def root(self) -> Array:
        """Upper triangular R with ``R' R = P``."""
        try:
            return np.asarray(cholesky(self.gram.toarray() if issparse(self.gram) else self.gram))
        except np.linalg.LinAlgError:
            raise InputError("the penalty is no norm of the class; its matrix is not positive definite there") from None

    @cached_property
    def _factor(self) -> Factorization:
        return Factorization(self.gram, definite=True, name="penalty", to_rounding=True)

    def solve_gram(self, right: Array) -> Array:
        """``P^-1 right``."""
        if issparse(self.gram):
            return self._factor.solve(right)
        return np.asarray(solve_triangular(self.root, solve_triangular(self.root, right, trans="T")))


def variation(space: ParameterSpace) -> tuple[Any, Array, int]:
    """D, s and d with ``TV(B c) = sum_p s_p |(D c)_p|``, where ``(D c)_p`` are d numbers; ``D' D`` is the stiffness.

    At quadrature points, ``sqrt(w_p)`` times the gradient in d coordinates, with ``s_p = sqrt(w_p)``; for piecewise
    constants, the jumps over facets times the root of their size.
    """
    basis = space.basis
    if basis is None:
        raise InputError("a class without a mesh has no total variation; expected penalty='l2' or a sparse matrix")
    rows, sizes, d = _jumps(basis) if degree(basis) == 0 else _gradients(basis)
    return rows @ space.matrix, sizes, d


def _gradients(basis: Any) -> tuple[Any, Array, int]:
    order, simplex = degree(basis), len(basis.mesh.t) == basis.mesh.dim() + 1
    points = Basis(basis.mesh, basis.elem, intorder=max(2 * order - 2 if simplex else 2 * order, 1))
    d, (cells, per_cell) = basis.mesh.dim(), points.dx.shape
    root = np.sqrt(points.dx)
    row = np.arange(cells * per_cell * d).reshape(cells, per_cell, d)
    parts = []
    for i in range(points.Nbfun):
        slopes = np.moveaxis(np.broadcast_to(points.basis[i][0].grad, (d, cells, per_cell)) * root, 0, 2)
        column = np.broadcast_to(points.element_dofs[i][:, None, None], row.shape)
        parts.append((slopes.ravel(), row.ravel(), column.ravel()))
    data, rows, columns = (np.concatenate(each) for each in zip(*parts, strict=True))
    return coo_matrix((data, (rows, columns)), shape=(row.size, basis.N)).tocsr(), root.ravel(), d


def _jumps(basis: Any) -> tuple[Any, Array, int]:
    mesh = basis.mesh
    facets = np.flatnonzero(mesh.f2t[1] >= 0)
    size = np.ones(len(facets))
    if mesh.dim() > 1:
        size = InteriorFacetBasis(mesh, basis.elem, facets=facets).dx.sum(axis=1)
    dofs, n = basis.element_dofs[0][mesh.f2t[:, facets]], len(facets)
    both = np.tile(np.arange(n), 2)
    jumps = coo_matrix((np.repeat([1.0, -1.0], n), (both, dofs.ravel())), shape=(n, basis.N)).tocsr()
    return diags(np.sqrt(size)) @ jumps, np.sqrt(size), 1
