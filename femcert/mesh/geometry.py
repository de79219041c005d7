"""Names, sizes and facets of the cells of a mesh, and whether its quadrilaterals are parallelograms."""

from __future__ import annotations

import difflib
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from skfem import Mesh
from skfem.mesh import MeshQuad1, MeshTri1

from ..checks import Array
from ..errors import InputError

# What a few operations on coordinates may lose, relatively.
ROUNDING = 8.0 * float(np.finfo(float).eps)

Indices = NDArray[np.int64]

# Of the extent of a quadrilateral: how far the sums of its opposite corners may differ in a parallelogram.
PARALLELOGRAM_TOLERANCE = 1e-13
# Of the sides of a box: how far its corners may be off, and its measure.
BOX_TOLERANCE = 1e-12
# The same, of the sum of its diagonals, for what rounding of the coordinates does.
ROUNDED_TOLERANCE = 1e-14


def cross(a: Array, b: Array) -> Array:
    """The plane cross product a_0 b_1 - a_1 b_0 along the first axis."""
    return np.asarray(a[0] * b[1] - a[1] * b[0])


def boundary_facets(mesh: Mesh, name: str) -> Indices:
    """Indices of the facets of the boundary called `name`, or an `InputError` that lists the names."""
    return _named(mesh.boundaries, name, "boundary")


def region_elements(mesh: Mesh, name: str) -> Indices:
    """Indices of the elements of the subdomain called `name`, or an `InputError` that lists the names."""
    return _named(mesh.subdomains, name, "region")


def _named(sets: dict[str, Any] | None, name: str, what: str) -> Indices:
    known = sorted(sets or {})
    if sets is None or name not in sets:
        near = difflib.get_close_matches(str(name), known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        expected = f"expected one of {', '.join(map(repr, known))}" if known else "it names none"
        raise InputError(f"{what} {name!r} is not in the mesh; {expected}{hint}")
    if not len(sets[name]):
        raise InputError(f"{what} {name!r} of the mesh is empty; expected at least one member")
    return np.unique(np.asarray(sets[name], dtype=np.int64))


def diameters(mesh: Mesh) -> Array:
    """The diameter of each element: its longest edge or diagonal."""
    corners = mesh.p[:, mesh.t]
    pairs = itertools.combinations(range(mesh.t.shape[0]), 2)
    return np.max([np.linalg.norm(corners[:, i] - corners[:, j], axis=0) for i, j in pairs], axis=0)


def measures(mesh: Mesh) -> Array:
    """The length or area of each element."""
    corners = corner_areas(mesh)
    # The corner triangles cover a quadrilateral twice, and there are three copies of a triangle.
    weight = {1: 1.0, 3: 1 / 3, 4: 1 / 2}[len(corners)]
    return np.abs(weight * corners.sum(axis=0))


def connected_parts(mesh: Mesh) -> Indices:
    """The connected part that each element belongs to; a common vertex does not connect."""
    inner = mesh.f2t[:, mesh.f2t[1] >= 0]
    graph = csr_matrix((np.ones(inner.shape[1]), (inner[0], inner[1])), shape=(mesh.nelements, mesh.nelements))
    return np.asarray(connected_components(graph, directed=False)[1])


def corner_areas(mesh: Mesh) -> Array:
    """Signed length of each line, or signed area of the triangle at each corner of each cell."""
    corners = mesh.p[:, mesh.t]
    if mesh.dim() == 1:
        return np.asarray(corners[:, 1] - corners[:, 0])
    after, before = np.roll(corners, -1, axis=1) - corners, np.roll(corners, 1, axis=1) - corners
    return np.asarray(0.5 * cross(after, before))


def twist(mesh: Any) -> Array:
    """How far each quadrilateral is from a parallelogram, ``p_0 - p_1 + p_2 - p_3``: shape ``(2, elements)``."""
    x = mesh.p[:, mesh.t]
    return np.asarray(x[:, 0] - x[:, 1] + x[:, 2] - x[:, 3])


def is_affine(mesh: Any) -> bool:
    """Whether every cell is an affine image of the reference cell (quadrilaterals: parallelograms)."""
    if mesh.t.shape[0] < 4:
        return True
    extent = np.ptp(mesh.p[:, mesh.t], axis=1).max(axis=0)
    return bool((np.abs(twist(mesh)) <= PARALLELOGRAM_TOLERANCE * extent).all())


def bend(mesh: Any) -> Array:
    """On each element a bound of ``|det J - mean| / mean``: 0 where straight, or a parallelogram to rounding."""
    if mesh.t.shape[0] < 4:
        return np.zeros(mesh.nelements)
    x, away = mesh.p[:, mesh.t], twist(mesh)
    size = np.abs(x[:, 2] - x[:, 0]).max(axis=0) + np.abs(x[:, 3] - x[:, 1]).max(axis=0)
    first, second = x[:, 1] - x[:, 0] + x[:, 2] - x[:, 3], x[:, 3] - x[:, 0] + x[:, 2] - x[:, 1]
    variation = np.abs(cross(first, away)) / 4.0 + np.abs(cross(second, away)) / 4.0
    straight = np.abs(away).max(axis=0) <= ROUNDED_TOLERANCE * size
    return np.where(straight, 0.0, variation / measures(mesh))


def index_facets(mesh: Any) -> None:
    """Give a mesh of triangles or quadrilaterals its tables ``facets``, ``t2f`` and ``f2t``, unless it has them.

    From one sort of integers; scikit-fem makes the same tables by comparing columns, ten times slower on large meshes.
    Facets are sorted by their vertices, the smaller one first. A scikit-fem that keeps its tables elsewhere does not
    find these, and makes its own.
    """
    if type(mesh) not in (MeshTri1, MeshQuad1) or hasattr(mesh, "_facets") or hasattr(mesh, "_f2t"):
        return
    t, pairs = mesh.t, np.array(mesh.elem.refdom.facets).T
    ends = t[pairs].reshape(2, -1)
    ends = np.array([np.minimum(*ends), np.maximum(*ends)])
    keys = ends[0].astype(np.int64) * (int(t.max()) + 1) + ends[1]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    is_first = np.append(True, keys[1:] != keys[:-1])
    first = np.flatnonzero(is_first)
    mesh._facets = np.ascontiguousarray(ends[:, order[first]])
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(is_first) - 1
    mesh._t2f = number.reshape(-1, t.shape[1])
    last = np.append(first[1:], len(order)) - 1
    sides = order[np.array([first, last])] % t.shape[1]
    sides[1, sides[0] == sides[1]] = -1
    mesh._f2t = sides.astype(np.int32)


def find_facets(mesh: Mesh, nodes: Indices, name: str) -> Indices:
    """Indices of the facets with the given nodes, one facet per row."""
    # one integer per facet, the same for any order of its nodes
    base = mesh.p.shape[1] ** np.arange(nodes.shape[1])[::-1]
    wanted = np.sort(nodes, axis=1) @ base
    facets = np.sort(mesh.facets, axis=0).T @ base
    order = np.argsort(facets)
    place = order[np.minimum(np.searchsorted(facets, wanted, sorter=order), len(facets) - 1)]
    missing = np.count_nonzero((facets[place] != wanted) | (nodes.min(axis=1) < 0))
    if missing:
        raise InputError(f"boundary {name!r} has {missing} of {len(nodes)} facets that belong to no cell")
    return np.unique(place)


def dirichlet_eigenvalue(mesh: Mesh, facets: Indices) -> float:
    """A lower bound of the least eigenvalue of the Laplacian with zeros on `facets`; 0 where nothing simple is known.

    On a box with sides L_i it is the sum of ``(pi / L_i)²`` over the directions with zeros at both ends, and of a
    quarter of that where they are at one end. A function that vanishes on the whole boundary of another domain is one
    on the box around it.
    """
    low, lengths = mesh.p.min(axis=1), np.ptp(mesh.p, axis=1)
    given, outer = np.zeros(mesh.facets.shape[1], dtype=bool), mesh.boundary_facets()
    given[facets] = True
    squares = (1.0 - ROUNDING) * (np.pi / lengths) ** 2
    if given[outer].all():
        return float(squares.sum())
    if not np.isclose(measures(mesh).sum(), np.prod(lengths), rtol=BOX_TOLERANCE, atol=0.0):
        return 0.0
    share, on_sides = np.zeros(len(lengths)), np.zeros(len(outer), dtype=bool)
    ends = mesh.p[:, mesh.facets[:, outer]].reshape(len(lengths), -1, len(outer))
    for i, length in enumerate(lengths):
        sides = [np.abs(ends[i] - end).max(axis=0) <= BOX_TOLERANCE * length for end in (low[i], low[i] + length)]
        on_sides |= np.any(sides, axis=0)
        share[i] = {0: 0.0, 1: 0.25, 2: 1.0}[sum(bool(given[outer[side]].all()) for side in sides)]
    # Where there are cuts inside, it is no box.
    return float(share @ squares) if on_sides.all() else 0.0
