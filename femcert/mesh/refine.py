"""Refinement of a mesh, uniform or of some elements, that keeps its named boundaries and regions; Dörfler marking.

scikit-fem's own ``refined`` loses the boundaries of an adaptively refined mesh and mixes up the regions of a line.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skfem import Mesh, MeshLine
from skfem.mesh import MeshLine1, MeshQuad1

from ..checks import Array, number, real_vector
from ..errors import InputError
from .elements import MESHES
from .geometry import ROUNDING, Indices, diameters, find_facets

# Elements smaller than this, relative to the coordinates, could not be told from points any more.
_SMALLEST = 8.0 * ROUNDING
# A point this near to a vertex, relative to the element, is taken for it: no element may be as small as rounding.
VERTEX_TOLERANCE = 1e-10


def refined(mesh: Mesh, elements: Any = None) -> Mesh:
    """A finer mesh of the same domain, with the same names on the same parts of it.

    Lines are halved, triangles and quadrilaterals divided in four. Where only some triangles are, their neighbours are
    divided in two or three, longest edge first, so that no node hangs; angles do not degrade however often it is
    repeated. A named facet becomes its pieces, also inside the domain; a region its elements' pieces.

    Parameters
    ----------
    elements
        Indices of the elements to refine (lines and triangles only); None for all.

    Raises
    ------
    InputError
        The mesh is of another kind, an index is not one of its elements, or an element has the size of rounding.
    """
    if type(mesh) not in MESHES:
        raise InputError(f"cannot refine a {type(mesh).__name__}; expected MeshLine, MeshTri or MeshQuad")
    if elements is not None:
        check_adaptive(mesh)
    marked = _marked(mesh, elements)
    if isinstance(mesh, MeshLine1):
        result = _halved_lines(mesh, marked)
    elif isinstance(mesh, MeshQuad1):
        result = _quartered_quads(mesh)
    else:
        result = _divided_triangles(mesh, marked)
    if not diameters(result).min() > _SMALLEST * np.abs(result.p).max():
        raise InputError("some elements are as small as rounding of their coordinates; they cannot be refined further")
    return result


def check_adaptive(mesh: Mesh) -> None:
    """Refuse a mesh of which one element cannot be refined without leaving hanging nodes."""
    if isinstance(mesh, MeshQuad1):
        raise InputError("a mesh of quadrilaterals is refined only as a whole; use triangles (MeshTri) to adapt it")


def with_vertices(mesh: Any, points: Array) -> tuple[Any, NDArray[np.int64]]:
    """A line in one piece cut at points, from left to right, and the element that each piece is of.

    A point within `VERTEX_TOLERANCE` of a vertex is taken for it.
    """
    ends = np.sort(mesh.p[0, mesh.t], axis=0)
    order = np.argsort(ends[0])
    corners = np.append(ends[0, order], ends[1, order[-1]])
    element = np.clip(np.searchsorted(corners, points, side="right") - 1, 0, mesh.nelements - 1)
    kept: list[float] = []
    for x, e in sorted(zip(points.tolist(), element.tolist(), strict=True)):
        left, right = corners[e], corners[e + 1]
        before = max(left, kept[-1]) if kept else left
        if min(x - before, right - x) > VERTEX_TOLERANCE * (right - left):
            kept.append(x)
    x = np.sort(np.concatenate([corners, kept]))
    inside = np.searchsorted(corners, 0.5 * (x[:-1] + x[1:])) - 1
    return MeshLine(x), order[inside]


def doerfler(indicators: Any, fraction: float = 0.5) -> Indices:
    """The smallest set M of elements with ``sum_M eta_K² >= fraction * sum eta_K²``, in ascending order.

    Parameters
    ----------
    indicators
        eta_K >= 0, one per element. If all are zero, there is nothing to refine and the set is empty.
    fraction
        The bulk parameter theta, in (0, 1]; small for highly adapted meshes, 1 for every element with an error.
    """
    eta = real_vector(indicators, None, "indicators")
    theta = number(fraction, "fraction", above=0.0)
    if theta > 1.0:
        raise InputError(f"fraction is {theta}; expected at most 1")
    if not eta.size:
        raise InputError("indicators is empty; expected a value per element")
    if eta.min() < 0.0:
        raise InputError(f"indicators has the value {eta.min():.4g} at element {eta.argmin()}; expected at least 0")
    if not eta.any() or theta == 1.0:
        return np.flatnonzero(eta)
    order = np.argsort(-eta, kind="stable")
    # Scaled, so that squares neither overflow nor vanish.
    reached = np.cumsum((eta[order] / eta[order[0]]) ** 2)
    count = int(np.searchsorted(reached, theta * reached[-1])) + 1
    return np.sort(order[:count])


def _marked(mesh: Mesh, elements: Any) -> NDArray[np.bool_]:
    if elements is None:
        return np.ones(mesh.nelements, dtype=bool)
    chosen = np.asarray(elements)
    if chosen.ndim != 1 or (chosen.dtype.kind not in "iu" and chosen.size):
        came = f"a {chosen.dtype} array of shape {chosen.shape}"
        raise InputError(f"elements is {came}; expected a list of element numbers")
    wrong = chosen[(chosen < 0) | (chosen >= mesh.nelements)] if chosen.size else chosen
    if wrong.size:
        raise InputError(f"elements has {wrong[0]}; expected numbers from 0 to {mesh.nelements - 1}")
    marked = np.zeros(mesh.nelements, dtype=bool)
    marked[chosen.astype(np.int64)] = True
    return marked


def _halved_lines(mesh: Mesh, marked: NDArray[np.bool_]) -> Mesh:
    old = mesh.p.shape[1]
    ends = mesh.t[:, marked].astype(np.int64)
    middle = old + np.arange(ends.shape[1])
    p = np.hstack([mesh.p, 0.5 * (mesh.p[:, ends[0]] + mesh.p[:, ends[1]])])
    t = np.hstack([mesh.t[:, ~marked], [ends[0], middle], [middle, ends[1]]])
    halved = np.flatnonzero(marked)
    parents = np.concatenate([np.flatnonzero(~marked), halved, halved])
    # Nodes and elements from left to right: scikit-fem would leave the new ones at the end.
    nodes = np.argsort(p[0], kind="stable")
    place = np.empty_like(nodes)
    place[nodes] = np.arange(len(nodes))
    order = np.argsort(p[0, t].min(axis=0), kind="stable")
    named = {name: place[mesh.facets[:, f]].T for name, f in _plain(mesh.boundaries).items()}
    return _with_names(mesh, p[:, nodes], place[t[:, order]], parents[order], named)


def _quartered_quads(mesh: Mesh) -> Mesh:
    old, count = mesh.p.shape[1], mesh.facets.shape[1]
    p = np.hstack([mesh.p, _middles(mesh), mesh.p[:, mesh.t].mean(axis=1)])
    a, b, c, d = mesh.t
    ab, bc, cd, da = old + mesh.t2f
    x = old + count + np.arange(mesh.nelements)
    pieces = np.array([[a, ab, x, da], [ab, b, bc, x], [x, bc, c, cd], [da, x, cd, d]])
    parents = np.repeat(np.arange(mesh.nelements), 4)
    t = pieces.transpose(1, 2, 0).reshape(4, -1)
    return _with_names(mesh, p, t, parents, _halves(mesh, old + np.arange(count)))


def _divided_triangles(mesh: Mesh, marked: NDArray[np.bool_]) -> Mesh:
    """Marked triangles in four (red), others in two or three (green, blue) as the cut edges demand."""
    every = np.arange(mesh.nelements)
    first = np.argmax(_edge_lengths(mesh)[mesh.t2f], axis=0)
    # Turned so that the first edge ab is the longest, and c lies opposite.
    a, b, c = (mesh.t[(first + i) % 3, every].astype(np.int64) for i in range(3))
    ab, bc, ca = (mesh.t2f[(first + i) % 3, every] for i in range(3))
    cut = np.zeros(mesh.facets.shape[1], dtype=bool)
    cut[mesh.t2f[:, marked]] = True
    # Never a shorter edge without the longest one: else an angle would be halved again and again.
    while np.any(missing := ~cut[ab] & (cut[bc] | cut[ca])):
        cut[ab[missing]] = True
    middle = np.full(len(cut), -1, dtype=np.int64)
    middle[cut] = mesh.p.shape[1] + np.arange(np.count_nonzero(cut))
    x, y, z = middle[ab], middle[bc], middle[ca]
    whole, first_only = x < 0, (x >= 0) & (y < 0) & (z < 0)
    also_bc, also_ca, all_three = (y >= 0) & (z < 0), (y < 0) & (z >= 0), (y >= 0) & (z >= 0)
    pieces = [
        (whole, (a, b, c)),
        (first_only | also_bc, (a, x, c)),
        (first_only | also_ca, (x, b, c)),
        (also_bc | all_three, (x, b, y)),
        (also_bc, (x, y, c)),
        (also_ca | all_three, (a, x, z)),
        (also_ca, (z, x, c)),
        (all_three, (z, y, c)),
        (all_three, (x, y, z)),
    ]
    parents = np.concatenate([np.flatnonzero(where) for where, _ in pieces])
    t = np.hstack([np.array(corners)[:, where] for where, corners in pieces])
    # Pieces of a triangle stay beside each other.
    order = np.argsort(parents, kind="stable")
    p = np.hstack([mesh.p, _middles(mesh)[:, cut]])
    return _with_names(mesh, p, t[:, order], parents[order], _halves(mesh, middle))


def _edge_lengths(mesh: Mesh) -> Array:
    start, end = mesh.facets
    return np.asarray(np.linalg.norm(mesh.p[:, end] - mesh.p[:, start], axis=0))


def _middles(mesh: Mesh) -> Array:
    start, end = mesh.facets
    return np.asarray(0.5 * (mesh.p[:, start] + mesh.p[:, end]))


def _halves(mesh: Mesh, middle: Indices) -> dict[str, Indices]:
    """Node numbers of the pieces of each named facet, a row per piece; `middle` is -1 where a facet is not cut."""
    named = {}
    for name, facets in _plain(mesh.boundaries).items():
        start, end = mesh.facets[:, facets]
        between = middle[facets]
        cut = between >= 0
        named[name] = np.vstack(
            [
                np.column_stack([start, end])[~cut],
                np.column_stack([start, between])[cut],
                np.column_stack([between, end])[cut],
            ]
        )
    return named


def _with_names(mesh: Mesh, p: Array, t: NDArray[Any], parents: Indices, named: dict[str, Indices]) -> Mesh:
    """The mesh of nodes `p` and elements `t`; `named` has the nodes of each named facet, `parents` the old elements."""
    result = replace(
        mesh,
        doflocs=np.ascontiguousarray(p),
        t=np.ascontiguousarray(t, dtype=np.int32),
        _boundaries=None,
        _subdomains=None,
    )
    boundaries = {name: find_facets(result, nodes, name) for name, nodes in named.items()}
    regions = {}
    for name, elements in _plain(mesh.subdomains).items():
        inside = np.zeros(mesh.nelements, dtype=bool)
        inside[elements] = True
        regions[name] = np.flatnonzero(inside[parents])
    return replace(result, _boundaries=boundaries or None, _subdomains=regions or None)


def _plain(sets: dict[str, Any] | None) -> dict[str, Indices]:
    return {name: np.asarray(members, dtype=np.int64) for name, members in (sets or {}).items()}
