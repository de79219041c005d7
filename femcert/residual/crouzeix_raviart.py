"""The Crouzeix-Raviart pencil of a mesh: one unknown per facet, its mean."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from ..checks import Array
from ..mesh.geometry import diameters, measures

Indices = NDArray[np.int64]

# ‖u - I u‖ <= kappa h ‖grad (u - I u)‖ on a cell of diameter h, where I u has the facet means of u: on a triangle (Liu,
# A framework of verified eigenvalue bounds for self-adjoint differential operators, 2015), and on a line, where I u
# has the end values and the bound is Friedrichs' inequality of an interval.
TRIANGLE_CONSTANT = 0.1893
LINE_CONSTANT = 1.0 / np.pi


@dataclass(frozen=True)
class FacetPencil:
    """Stiffness and mass of the facet means, and how well they represent a function.

    Attributes
    ----------
    stiffness
        ``a_h(u, v) = sum_K a_K (grad u, grad v)_K + sum_e alpha_e |e| u_e v_e`` on the facets that are not prescribed.
    mass
        ``(u, v)`` in L2, diagonal on triangles.
    distance
        ``C_h`` with ``‖u - I u‖ <= C_h ‖u - I u‖_a_h``, the largest ``kappa h_K / sqrt(a_K)``.
    """

    stiffness: Any
    mass: Any
    distance: float


def facet_pencil(mesh: Any, conductivity: Array, robin: Array, prescribed: Indices) -> FacetPencil:
    """Pencil of a mesh of lines, triangles or convex quadrilaterals, each cut in two along its shorter diagonal.

    On a triangle with edges ``e_i`` (as vectors, around the triangle) the stiffness is
    ``a e_i . e_j / |K|`` and the mass ``|K| / 3`` for each edge.

    Parameters
    ----------
    conductivity
        ``a_K`` of each element of the mesh.
    robin
        ``alpha_e`` of each facet of the mesh, zero where there is no Robin condition.
    prescribed
        Facets where the function vanishes.
    """
    if mesh.dim() == 1:
        cells, stiffness, mass = _lines(mesh, conductivity)
        size, distance = np.ones(mesh.nfacets), LINE_CONSTANT * diameters(mesh) / np.sqrt(conductivity)
    else:
        points, cells, parent = _triangles(mesh)
        stiffness, mass, longest = _triangle_matrices(points, conductivity[parent])
        size = np.linalg.norm(mesh.p[:, mesh.facets[0]] - mesh.p[:, mesh.facets[1]], axis=0)
        distance = TRIANGLE_CONSTANT * longest / np.sqrt(conductivity[parent])
    n = int(cells.max()) + 1
    boundary = np.zeros(n)
    boundary[: mesh.nfacets] = robin * size
    kept = np.setdiff1d(np.arange(n), prescribed)
    K, M = (_assembled(part, cells, n) for part in (stiffness, mass))
    K = (K + diags(boundary)).tocsr()
    return FacetPencil(K[kept][:, kept], M[kept][:, kept], float(distance.max()))


def _lines(mesh: Any, conductivity: Array) -> tuple[Indices, Array, Array]:
    h = measures(mesh)
    stiffness = np.array([[1.0, -1.0], [-1.0, 1.0]])[:, :, None] * conductivity / h
    return mesh.t2f, stiffness, np.array([[2.0, 1.0], [1.0, 2.0]])[:, :, None] * h / 6.0


def _triangles(mesh: Any) -> tuple[Array, Indices, Indices]:
    """Corners (2, 3, n) and facets (3, n) of triangles that fill the mesh, and the element of each.

    Facet i is opposite to corner i. Facets of the mesh keep their numbers; the diagonals of quadrilaterals follow.
    """
    p, t, f = mesh.p, mesh.t, mesh.t2f
    element = np.arange(t.shape[1])
    if t.shape[0] == 3:  # scikit-fem's facets are those of the corners 01, 12, 02
        return p[:, t], f[[1, 2, 0]], element
    # Corners 0123 with facets 01, 12, 23, 03, turned by one where the diagonal 13 is the shorter one.
    turned = np.linalg.norm(p[:, t[1]] - p[:, t[3]], axis=0) < np.linalg.norm(p[:, t[0]] - p[:, t[2]], axis=0)
    t, f = (np.where(turned, np.roll(x, -1, axis=0), x) for x in (t, f))
    cut = mesh.nfacets + element
    corners = np.concatenate([t[[0, 1, 2]], t[[0, 2, 3]]], axis=1)
    facets = np.concatenate([np.array([f[1], cut, f[0]]), np.array([f[2], f[3], cut])], axis=1)
    return p[:, corners], facets, np.concatenate([element, element])


def _triangle_matrices(points: Array, conductivity: Array) -> tuple[Array, Array, Array]:
    # edge i runs from corner i+1 to corner i+2, opposite to corner i
    edges = np.roll(points, -2, axis=1) - np.roll(points, -1, axis=1)
    area = 0.5 * np.abs(edges[0, 0] * edges[1, 1] - edges[1, 0] * edges[0, 1])
    stiffness = np.einsum("dik,djk->ijk", edges, edges) * conductivity / area
    mass = np.eye(3)[:, :, None] * area / 3.0
    return stiffness, mass, np.sqrt(np.max(np.sum(edges**2, axis=0), axis=0))


def _assembled(local: Array, cells: Indices, n: int) -> Any:
    m = len(cells)
    entries = [(local[i, j], cells[i], cells[j]) for i, j in itertools.product(range(m), range(m)) if local[i, j].any()]
    data, rows, columns = (np.concatenate(part) for part in zip(*entries, strict=True))
    return csr_matrix((data, (rows, columns)), shape=(n, n))
