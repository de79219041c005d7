"""Sensors on the boundary: averages over arcs of equal length."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from scipy.sparse.csgraph import connected_components, depth_first_order
from skfem import Basis

from ..checks import Array, count
from ..errors import InputError
from ..mesh.elements import check_field_basis
from ..mesh.geometry import boundary_facets, cross
from ..mesh.locate import interpolation_matrix
from ..mesh.vectors import of_component, scalar_basis
from .sensors import Sensors

# Of the length of a boundary: cuts that are nearer to each other are one.
CUT_TOLERANCE = 1e-13
# Three Gauss points are exact for the quadratics along a straight facet.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(3)


class BoundarySensors(Sensors):
    """Averages of the trace over `count` arcs of equal length of a named boundary.

    In 1D the boundary is a set of points, and `count` must be their number. In 2D each connected piece of the
    boundary is walked once, and cut where the arcs end (facets are split, not rounded). The walk does not depend on
    the numbering of the mesh: from left to right over the pieces, an open one from its leftmost end, a closed one
    counterclockwise from its leftmost node (of several the lowest).

    Parameters
    ----------
    boundary
        Name of a boundary part; None for the whole boundary.
    component
        Of a vector field: the one that is read; None: every one, all arcs of the first component, then of the next.
    """

    bounded = True

    def __init__(
        self, basis: Basis, *, boundary: str | None = None, count: int, component: int | None = None
    ) -> None:
        check_field_basis(basis)
        scalar = scalar_basis(basis)
        mesh = basis.mesh
        if boundary is not None and not isinstance(boundary, str):
            raise InputError(f"boundary is a {type(boundary).__name__}; expected the name of a boundary part")
        facets = mesh.boundary_facets() if boundary is None else boundary_facets(mesh, boundary)
        rows = (_end_points if mesh.dim() == 1 else _arc_averages)(scalar, facets, count)
        super().__init__(of_component(basis, rows, scalar, component), basis)


def _end_points(basis: Basis, facets: NDArray[np.int64], number: int) -> csr_matrix:
    if count(number, "count") != len(facets):
        raise InputError(f"count is {number}, but this boundary has {len(facets)} points")
    nodes = basis.mesh.facets[0, facets]
    nodes = nodes[np.argsort(basis.mesh.p[0, nodes])]
    points = basis.mesh.p[:, nodes]
    cells = np.array([np.flatnonzero((basis.mesh.t == node).any(axis=0))[0] for node in nodes])
    return interpolation_matrix(basis, points, cells)


def _arc_averages(basis: Basis, facets: NDArray[np.int64], number: int) -> csr_matrix:
    mesh = basis.mesh
    facets, forward = _walk(mesh, facets)
    start, end = mesh.p[:, mesh.facets[0, facets]], mesh.p[:, mesh.facets[1, facets]]
    start, end = np.where(forward, start, end), np.where(forward, end, start)
    length = np.linalg.norm(end - start, axis=0)
    stop = np.cumsum(length)
    total = stop[-1]
    # Cut the walk at the facet ends and at the arc ends; every piece then lies in one facet and one arc.
    arcs = total * np.arange(1, count(number, "count")) / number
    cuts = np.unique(np.concatenate([[0.0], stop, arcs]))
    cuts = cuts[np.concatenate([[True], np.diff(cuts) > CUT_TOLERANCE * total])]
    middle = 0.5 * (cuts[1:] + cuts[:-1])
    facet = np.minimum(np.searchsorted(stop, middle), len(facets) - 1)
    arc = np.minimum((middle / total * number).astype(int), number - 1)
    s = middle[:, None] + 0.5 * np.diff(cuts)[:, None] * _NODES
    weight = 0.5 * np.diff(cuts)[:, None] * _WEIGHTS
    ratio = (s - (stop - length)[facet][:, None]) / length[facet][:, None]
    x = start[:, facet, None] + ratio * (end - start)[:, facet, None]
    cells = np.repeat(mesh.f2t[0, facets][facet], len(_NODES))
    values = interpolation_matrix(basis, x.reshape(2, -1), cells)
    gather = csr_matrix(
        (weight.ravel(), (np.repeat(arc, len(_NODES)), np.arange(values.shape[0]))), shape=(number, values.shape[0])
    )
    return diags(1.0 / np.asarray(gather.sum(axis=1)).ravel()) @ gather @ values


def _walk(mesh: Any, facets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Facets in the order of a walk along the boundary curves, and whether each is walked from its first node."""
    nodes = mesh.facets[:, facets]
    n = mesh.p.shape[1]
    graph = csr_matrix((np.ones(len(facets)), nodes), shape=(n, n))
    graph = graph + graph.T
    degree = np.diff(graph.indptr)
    _, label = connected_components(graph, directed=False)
    # All nodes from left to right, those above each other from below; rounded, so that noise does not decide.
    p = mesh.p - mesh.p.mean(axis=1, keepdims=True)
    sweep = np.lexsort(np.round(p / np.ptp(p, axis=1).max(), 9)[::-1])
    sweep = sweep[degree[sweep] > 0]
    position: Array = np.full(n, -1.0)
    reached = 0
    for piece in dict.fromkeys(label[sweep].tolist()):
        members = sweep[label[sweep] == piece]
        ends = members[degree[members] == 1]
        order = depth_first_order(graph, ends[0] if len(ends) else members[0], directed=False)[0]
        if not len(ends) and cross(p[:, order], p[:, np.roll(order, -1)]).sum() < 0.0:
            order[1:] = order[:0:-1].copy()
        position[order] = reached + np.arange(len(order))
        reached += len(order) + 1
    low, high = position[nodes[0]], position[nodes[1]]
    # Consecutive nodes, except for the facet that closes a loop: that one comes last and runs backwards.
    closing = np.abs(low - high) > 1.5
    key = np.where(closing, np.maximum(low, high) + 0.5, np.minimum(low, high))
    order = np.argsort(key)
    return facets[order], np.where(closing, low > high, low < high)[order]
