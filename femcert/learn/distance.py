"""A smooth function that vanishes on the Dirichlet boundary and nowhere else, for boundary values that hold exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from ..checks import Array
from ..errors import InputError
from ..mesh.geometry import cross

Index = NDArray[np.int64]

# Of the extent of the mesh: nearer to the boundary is on it.
ON_BOUNDARY = 1e-12
# A boundary that turns by more than this has a corner; polygons that stand for circles turn less.
CORNER = np.deg2rad(25.0)
# A boundary that turns by less is straight, if no node is farther from the edge than this part of the extent.
STRAIGHT, BESIDE = 1e-9, 1e-14
# Points times edges that are looked at in one go.
BLOCK = 200_000
# Height over length at which a point counts as on the line of a segment, and terms of the series used there.
FLAT, TERMS = 0.1, 9


class BoundaryDistance:
    """A product of smooth distances to the pieces of the Dirichlet boundary,

        phi(x) = s prod_i 1 / (1 + l g_i(x) / pi),    g_i(x) = integral over the piece Gamma_i of |x - y|^-2 ds(y),

    with l the extent of the mesh and s such that phi is at most 1 at the vertices; on a line ``g_i = pi / |x - x_i|``
    for a Dirichlet point. For an infinite straight piece ``pi / g`` is the distance d, and the factor d / (d + l). So
    phi is infinitely smooth inside a domain of any shape, zero on the boundary, and has a nonzero slope there away from
    corners.

    The boundary is cut into pieces at its convex corners. There phi grows like r², and its Laplacian is bounded. At a
    re-entrant corner it grows like r and its Laplacian is of size 1/r; solutions are singular there, too.

    The integral over a straight edge has a closed form; how it is divided into facets does not matter.

    Parameters
    ----------
    mesh, facets
        Facets of the Dirichlet boundary.
    """

    def __init__(self, mesh: Any, facets: Any) -> None:
        if not len(facets):
            raise InputError("there is no Dirichlet boundary, so nothing to hold exactly; use boundary='soft'")
        ends = _facing_inside(mesh, facets)
        extent = float(np.ptp(mesh.p, axis=1).max())
        self._least, self._length = ON_BOUNDARY * extent, extent / np.pi
        self._scale = 1.0
        ends = ends if mesh.dim() == 1 else _edges(ends, extent)
        pieces = np.arange(len(facets)) if mesh.dim() == 1 else _pieces(ends, extent)
        self._pieces = [ends[:, :, pieces == i] for i in range(pieces.max() + 1)]
        self._scale = 1.0 / float(self.value(mesh.p).max())

    def value(self, x: Any) -> Array:
        """phi, exactly zero on the boundary."""
        return self.jet(x)[0]

    def gradient(self, x: Any) -> Array:
        """Its gradient, shaped like x."""
        return self.jet(x)[1]

    def laplacian(self, x: Any) -> Array:
        """Its Laplacian; at a re-entrant corner it has none."""
        return self.jet(x)[2]

    def jet(self, x: Any) -> tuple[Array, Array, Array]:
        """Value, gradient and Laplacian, by the product rule."""
        x = np.asarray(x, dtype=float)
        points = x.reshape(len(x), -1)
        most = max(ends.shape[2] for ends in self._pieces)
        blocks = np.array_split(points, 1 + points.shape[1] * most // BLOCK, axis=1)
        jets = zip(*map(self._jet, blocks), strict=True)
        value, gradient, laplacian = (np.concatenate(parts, axis=-1) for parts in jets)
        return value.reshape(x.shape[1:]), gradient.reshape(x.shape), laplacian.reshape(x.shape[1:])

    def _jet(self, points: Array) -> tuple[Array, Array, Array]:
        value, gradient = np.full(points.shape[1], self._scale), np.zeros(points.shape)
        laplacian = np.zeros(points.shape[1])
        for ends in self._pieces:
            factor, slope, bend = self._factor(points, ends)
            laplacian = value * bend + 2.0 * (gradient * slope).sum(axis=0) + laplacian * factor
            gradient = value * slope + gradient * factor
            value = value * factor
        return value, gradient, laplacian

    def _factor(self, points: Array, ends: Array) -> tuple[Array, Array, Array]:
        g, slope, bend, nearest = (self._on_line if len(points) == 1 else self._in_plane)(points, ends)
        whole = 1.0 + self._length * g
        value = np.where(nearest <= self._least, 0.0, 1.0 / whole)
        gradient = -self._length * slope / whole**2
        laplacian = self._length * (2.0 * self._length * (slope**2).sum(axis=0) / whole - bend) / whole**2
        return value, gradient, laplacian

    def _on_line(self, points: Array, ends: Array) -> tuple[Array, Array, Array, Array]:
        gap = points - ends[0, 0]
        d = np.maximum(np.abs(gap), self._least)
        g = np.pi / d
        return g[0], -np.where(gap < 0.0, -1.0, 1.0) * g / d, 2.0 * (g / d**2)[0], np.abs(gap)[0]

    def _in_plane(self, points: Array, ends: Array) -> tuple[Array, Array, Array, Array]:
        """g, its gradient ``-2 int (x - y) / |x - y|⁴``, its Laplacian ``4 int |x - y|^-4``; the distance."""
        start, end = ends[:, 0], ends[:, 1]
        length = np.linalg.norm(end - start, axis=0)
        along = (end - start) / length
        gap = points[:, :, None] - start[:, None]
        # In coordinates of the edge: it runs from a to b at the height f below the point.
        a = -(gap * along[:, None]).sum(axis=0)
        b, f = a + length, cross(along[:, None], gap)
        height = np.maximum(np.abs(f), self._least)
        first, second = _integrals(a, b, height)
        across = -2.0 * np.where(f < -self._least, -height, height) * second
        tangential = 1.0 / (height**2 + a**2) - 1.0 / (height**2 + b**2)
        normal = np.stack([-along[1], along[0]])
        slope = (tangential * along[:, None] + across * normal[:, None]).sum(axis=2)
        beside = np.maximum(np.maximum(a, -b), 0.0)
        return first.sum(axis=1), slope, 4.0 * second.sum(axis=1), np.hypot(f, beside).min(axis=1)


def _facing_inside(mesh: Any, facets: Any) -> Array:
    """End points of facets, ``(dimension, 2, facets)`` in the plane, with the domain to their left."""
    ends: Array = mesh.p[:, mesh.facets[:, facets]]
    if mesh.dim() == 1:
        return ends
    inside = mesh.p[:, mesh.t[:, mesh.f2t[0, facets]]].mean(axis=1)
    right = cross(ends[:, 1] - ends[:, 0], inside - ends[:, 0]) < 0.0
    return np.where(right, ends[:, ::-1], ends)


def corner_weight(mesh: Any, x: Array) -> Array:
    """``prod min(1, r_c / rho)²`` over the re-entrant corners of a plane mesh, rho an eighth of its extent; else 1.

    There strong residuals of smooth functions that vanish on the boundary are unbounded, like 1/r: they would
    dominate a mean square over points.
    """
    weight = np.ones(x.shape[1:])
    if mesh.dim() == 1:
        return weight
    extent = float(np.ptp(mesh.p, axis=1).max())
    ends = _facing_inside(mesh, mesh.boundary_facets())
    met, _, turn = _turns(ends, extent)
    for corner in ends[:, 1, met[turn < -CORNER]].T:
        weight *= np.minimum(1.0, np.linalg.norm(x - corner[:, None], axis=0) * 8.0 / extent) ** 2
    return weight


def _turns(ends: Array, extent: float) -> tuple[Index, Index, Array]:
    """Facets that another one follows, that one, and the angle to the left between them."""
    start, end = ends[:, 0].T, ends[:, 1].T
    gap, following = cKDTree(start).query(end, distance_upper_bound=ON_BOUNDARY * extent)
    met = np.flatnonzero(np.isfinite(gap))
    before, after = (end - start)[met].T, (end - start)[following[met]].T
    return met, following[met], np.arctan2(cross(before, after), (before * after).sum(axis=0))


def _edges(ends: Array, extent: float) -> Array:
    """Facets that follow each other on a straight line, as one edge."""
    met, following, turn = _turns(ends, extent)
    straight, count = np.abs(turn) < STRAIGHT, ends.shape[2]
    before, after = met[straight], following[straight]
    links = coo_matrix((np.ones(len(before)), (before, after)), shape=(count, count))
    edge = connected_components(links, directed=False)[1]
    first, last = (np.setdiff1d(np.arange(count), gone) for gone in (after, before))
    edges = int(edge.max()) + 1
    whole = np.zeros((*ends.shape[:2], edges))
    whole[:, 0, edge[first]], whole[:, 1, edge[last]] = ends[:, 0, first], ends[:, 1, last]
    along = whole[:, 1] - whole[:, 0]
    beside = np.abs(cross(along[:, edge], ends[:, 0] - whole[:, 0, edge]))
    bent = beside > BESIDE * extent * np.linalg.norm(along, axis=0)[edge]
    # An edge with nodes beside it, or with several ends, stays divided.
    wrong = np.bincount(edge, weights=bent) > 0.0
    for end in (first, last):
        wrong |= np.bincount(edge[end], minlength=edges) != 1
    return np.concatenate([whole[:, :, ~wrong], ends[:, :, wrong[edge]]], axis=2)


def _pieces(ends: Array, extent: float) -> Index:
    """For each facet the number of its piece: facets that meet, unless in a convex corner."""
    met, following, turn = _turns(ends, extent)
    joined = turn < CORNER
    links = coo_matrix((np.ones(joined.sum()), (met[joined], following[joined])), shape=2 * (ends.shape[2],))
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)


def _integrals(a: Array, b: Array, f: Array) -> tuple[Array, Array]:
    """``int_a^b (f² + s²)^-1 ds`` and ``int_a^b (f² + s²)^-2 ds``, also where f is tiny against a and b."""
    first = (np.arctan(b / f) - np.arctan(a / f)) / f
    second = (b / (f**2 + b**2) - a / (f**2 + a**2) + first) / (2.0 * f**2)
    flat = (a * b > 0.0) & (f < FLAT * np.minimum(np.abs(a), np.abs(b)))
    if flat.any():
        f, a, b = f[flat], a[flat], b[flat]
        powers = [(-1.0) ** k * f ** (2 * k) for k in range(TERMS)]
        first[flat] = sum(p * (a ** -(2 * k + 1) - b ** -(2 * k + 1)) / (2 * k + 1) for k, p in enumerate(powers))
        second[flat] = sum(
            (k + 1) * p * (a ** -(2 * k + 3) - b ** -(2 * k + 3)) / (2 * k + 3) for k, p in enumerate(powers)
        )
    return first, second
