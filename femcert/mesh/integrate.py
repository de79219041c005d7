"""Exact integrals of finite-element fields along straight lines, and exact averages over small discs and intervals.

A disc is a polygon of the same area. Plain sums of samples on lines are here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from skfem.quadrature import get_quadrature
from skfem.refdom import RefLine, RefTri

from ..checks import Array, count, number, real_vector
from ..errors import InputError
from .geometry import ROUNDING, cross, is_affine
from .locate import (
    BLOCK,
    CellIndex,
    Index,
    Locator,
    check_basis,
    check_mesh,
    check_points,
    local_values,
    scatter,
)

SNAP_TOLERANCE = 1e-12  # of the shortest edge at a vertex: how close a ray is taken to pass through the vertex
GENERAL_QUAD_POINTS = 16  # per chord, where the basis functions are not polynomials along the line


def ray_matrix(basis: Any, origins: Any, directions: Any) -> csr_matrix:
    """Matrix (n_rays, basis.N) of the integrals of phi_j over the part of each line inside the mesh.

    Row i holds the integrals of phi_j(origin_i + t direction_i / |direction_i|) dt over all real t. Each
    line is cut at the edges of the cells and integrated chord by chord with a Gauss rule that is exact on
    triangles and parallelograms; on general quadrilaterals 16 points per chord are used.

    A ray along an edge counts once: it belongs to the cell on its left, and to the cell on its right where
    that edge is on the boundary of the mesh. A vertex closer than `SNAP_TOLERANCE` of its shortest edge is on the ray.
    That decision is made per ray and vertex, so all cells around the vertex agree on it.

    Parameters
    ----------
    basis
        A scikit-fem basis of P0, P1, P2, Q0, Q1 or Q2 elements on a first-order mesh in the plane.
    origins, directions
        Arrays of shape (2, n_rays); directions of any length but zero.

    Raises
    ------
    InputError
        If the mesh is not in the plane, or the rays do not fit.
    """
    check_basis(basis)
    if basis.mesh.dim() != 2:
        raise InputError(f"mesh has dimension {basis.mesh.dim()}; rays need a mesh in the plane")
    return _chord_matrix(basis, *_check_rays(origins, directions, 2), None)


def segment_matrix(basis: Any, starts: Any, ends: Any) -> csr_matrix:
    """Matrix (n, basis.N) of the integrals of phi_j over the part of each segment inside the mesh.

    Row i holds the integrals of phi_j along the segment from start i to end i, by the rules of `ray_matrix`: the
    segment may begin or end anywhere, also outside of the mesh, and counts once where it runs along an edge.

    Parameters
    ----------
    basis
        As for `ray_matrix`.
    starts, ends
        Arrays of shape (2, n), no end at its start.

    Raises
    ------
    InputError
        If the mesh is not in the plane, or the segments do not fit.
    """
    check_basis(basis)
    if basis.mesh.dim() != 2:
        raise InputError(f"mesh has dimension {basis.mesh.dim()}; segments need a mesh in the plane")
    starts, along = check_points(starts, 2, "starts"), check_points(ends, 2, "ends")
    if starts.shape != along.shape:
        raise InputError(f"starts has shape {starts.shape} and ends has shape {along.shape}; expected the same shape")
    along = along - starts
    lengths = np.linalg.norm(along, axis=0)
    bad = np.flatnonzero(lengths == 0)
    if len(bad):
        raise InputError(f"{len(bad)} segments end where they start, the first is {bad[0]}; expected a length")
    return _chord_matrix(basis, starts, along / lengths, lengths)


def _chord_matrix(basis: Any, origins: Array, directions: Array, lengths: Array | None) -> csr_matrix:
    nodes, weights = _gauss(basis)
    blocks = []
    for ray, cell, enter, length in _chords(basis.mesh, origins, directions, lengths):
        points = origins[:, ray, None] + directions[:, ray, None] * (enter + length * nodes)
        blocks.append((ray, cell, local_values(basis, points, cell, length * weights)))
    return scatter(basis, blocks, origins.shape[1])


def ray_integrals(
    mesh: Any,
    origins: Any,
    directions: Any,
    function: Callable[[Array], Array],
    points: int,
    lengths: Array | None = None,
) -> Array:
    """Integrals of functions over the part of each line inside the mesh, by Gauss points on every chord.

    Parameters
    ----------
    origins, directions
        As for `ray_matrix`.
    function
        Of points ``(2, n)``; values of shape ``(functions, n)``.
    points
        Number of Gauss points on the chord of a cell.
    lengths
        Of segments that begin at the origins; None: whole lines.

    Returns
    -------
    Array
        Shape ``(functions, n_rays)``.
    """
    origins, directions = _check_rays(origins, directions, 2)
    t, w = np.polynomial.legendre.leggauss(points)
    nodes, weights = 0.5 * (1.0 + t), 0.5 * w
    sums = []
    for ray, _, enter, length in _chords(mesh, origins, directions, lengths):
        x = origins[:, ray, None] + directions[:, ray, None] * (enter + length * nodes)
        values = function(x.reshape(2, -1)).reshape(-1, *x.shape[1:])
        parts = (values * length) @ weights
        sums.append(np.array([np.bincount(ray, part, minlength=origins.shape[1]) for part in parts]))
    return np.asarray(np.sum(sums, axis=0))


def _chords(
    mesh: Any, origins: Array, directions: Array, lengths: Array | None
) -> Iterator[tuple[Index, Index, Array, Array]]:
    """Rays, cells, and where each ray enters a cell and how long it stays there, columns ``(n, 1)``.

    With lengths only the part from the origin to that distance counts.
    """
    tolerance = _vertex_tolerance(mesh)
    outer = mesh.f2t[1, mesh.t2f] < 0
    for ray, cell in CellIndex(mesh).near_lines(origins, directions):
        enter, leave = _clip_rays(mesh, origins[:, ray], directions[:, ray], cell, tolerance, outer[:, cell])
        if lengths is not None:
            enter, leave = np.maximum(enter, 0.0), np.minimum(leave, lengths[ray])
        hit = leave > enter
        yield ray[hit], cell[hit], enter[hit, None], (leave - enter)[hit, None]


def sampled_ray_matrix(
    basis: Any, locator: Locator, origins: Any, directions: Any, offsets: Any, *, weight: float = 1.0
) -> csr_matrix:
    """Matrix (n_rays, basis.N) of the sums of phi_j over samples of each line.

    Row i holds weight * sum_k phi_j(origin_i + offsets_k direction_i / |direction_i|), where samples outside
    the mesh contribute zero.

    Parameters
    ----------
    basis
        A scikit-fem basis of P0, P1, P2, Q0, Q1 or Q2 elements.
    locator
        A `Locator` of the mesh of `basis`.
    origins, directions
        Arrays of shape (dim, n_rays); directions of any length but zero.
    offsets
        Signed distances of the samples from the origin, the same for all rays.
    weight
        A factor for every sample, such as the spacing of the offsets.
    """
    check_basis(basis)
    if locator.mesh is not basis.mesh:
        raise InputError("locator belongs to another mesh; expected Locator(basis.mesh)")
    origins, directions = _check_rays(origins, directions, basis.mesh.dim())
    offsets = real_vector(offsets, None, "offsets")
    weight = number(weight, "weight")
    chunk = max(1, BLOCK // max(1, len(offsets)))
    blocks = []
    for begin in range(0, origins.shape[1], chunk):
        part = slice(begin, begin + chunk)
        points = origins[:, part, None] + directions[:, part, None] * offsets
        ray = begin + np.repeat(np.arange(points.shape[1]), len(offsets))
        points = points.reshape(len(points), -1)
        cell = locator.find(points)
        ray, points, cell = ray[cell >= 0], points[:, cell >= 0], cell[cell >= 0]
        local = local_values(basis, points[:, :, None], cell, np.full((len(cell), 1), weight))
        blocks.append((ray, cell, local))
    return scatter(basis, blocks, origins.shape[1])


def _check_rays(origins: Any, directions: Any, dimension: int) -> tuple[Array, Array]:
    """Origins and unit directions, of equal shape."""
    origins = check_points(origins, dimension, "origins")
    directions = check_points(directions, dimension, "directions")
    if origins.shape != directions.shape:
        shapes = f"origins has shape {origins.shape} and directions has shape {directions.shape}"
        raise InputError(f"{shapes}; expected the same shape")
    lengths = np.linalg.norm(directions, axis=0)
    bad = np.flatnonzero(lengths == 0)
    if len(bad):
        raise InputError(f"directions has {len(bad)} zero columns, the first is {bad[0]}; expected nonzero")
    return origins, directions / lengths


def _gauss(basis: Any) -> tuple[Array, Array]:
    """Gauss nodes and weights on [0, 1]; q nodes are exact for degree 2q - 1."""
    count = basis.elem.maxdeg // 2 + 1 if is_affine(basis.mesh) else GENERAL_QUAD_POINTS
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


def _vertex_tolerance(mesh: Any) -> Array:
    """How close a ray passes a vertex to be taken through it: a small part of its shortest edge."""
    ends = mesh.facets
    lengths = np.linalg.norm(mesh.p[:, ends[0]] - mesh.p[:, ends[1]], axis=0)
    shortest = np.full(mesh.p.shape[1], np.inf)
    np.minimum.at(shortest, ends.ravel(), np.tile(lengths, 2))
    shortest[np.isinf(shortest)] = 0.0  # vertices of no cell
    return SNAP_TOLERANCE * shortest + ROUNDING * np.abs(mesh.p).max()


def _clip_rays(
    mesh: Any, origins: Array, directions: Array, cells: Index, tolerance: Array, outer: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Parameters t at which each ray enters and leaves the cell paired with it; leave <= enter for a miss.

    With s the signed distance of a vertex from the line (snapped to 0) and t its position along it, the
    line crosses an edge with s_i s_j < 0 at t = (t_i s_j - t_j s_i) / (s_j - s_i). Both cells of an edge
    compute the same number, so the chords of a line neither overlap nor leave gaps.
    """
    vertices = mesh.t[:, cells]
    away = mesh.p[:, vertices] - origins[:, None]
    side = cross(directions, away)
    rounding = ROUNDING * np.abs(origins).max(axis=0)
    side[np.abs(side) <= tolerance[vertices] + rounding] = 0.0
    along = directions[0] * away[0] + directions[1] * away[1]
    next_side, next_along = np.roll(side, -1, axis=0), np.roll(along, -1, axis=0)
    crosses = side * next_side < 0
    crossing = along * next_side - next_along * side
    crossing /= np.where(crosses, next_side - side, 1.0)
    on_line = side == 0
    cuts = np.vstack((np.where(crosses, crossing, np.nan), np.where(on_line, along, np.nan)))
    enter, leave = np.fmin.reduce(cuts), np.fmax.reduce(cuts)
    # An edge on the line has its cell to the left (some s > 0) or to the right (all s <= 0).
    edge = on_line & (next_side == 0)
    counted = (side.max(axis=0) > 0) | (edge & outer).any(axis=0)
    miss = ~counted | np.isnan(enter)
    return np.where(miss, 0.0, enter), np.where(miss, 0.0, leave)


CLIP_BLOCK = 1 << 14  # (disc, cell) pairs clipped at once
GENERAL_QUAD_DEGREE = 19  # of the rule where the basis functions are not polynomials in x and y
OVERLAP_TOLERANCE = 1e-12  # of the area of the disc: less is rounding, and counts as no overlap


def disc_matrix(
    basis: Any, centres: Any, radius: float, sides: int = 24, *, index: CellIndex | None = None
) -> csr_matrix:
    """Matrix (n_discs, basis.N) of the averages of phi_j over P_i intersected with the mesh.

    Row i holds (1 / |P_i and mesh|) times the integral of phi_j over that intersection. In the plane, P_i is
    the regular polygon with `sides` corners around centre i and the area of the disc, pi radius^2: its
    circumradius R has sides / 2 R^2 sin(2 pi / sides) = pi radius^2. On a line P_i is the interval
    [centre - radius, centre + radius]. The polygon does not depend on the mesh, and the integral is exact on
    triangles and parallelograms; on general quadrilaterals the rule has degree 19. Rows sum to one; the row
    of a disc that misses the mesh is zero, see `covered_area`.

    Parameters
    ----------
    basis
        A scikit-fem basis of P0, P1, P2, Q0, Q1 or Q2 elements on a first-order mesh.
    centres
        Centres of shape (dim, n_discs).
    radius
        Radius of the discs.
    sides
        Corners of the polygon, unused on a line mesh.
    index
        Of the mesh, where there is one already.
    """
    check_basis(basis)
    mesh = basis.mesh
    centres, radius, sides = _check_discs(mesh, centres, radius, sides)
    nodes, weights = get_quadrature(
        RefTri if mesh.dim() == 2 else RefLine, basis.elem.maxdeg if is_affine(mesh) else GENERAL_QUAD_DEGREE
    )
    barycentric = np.vstack((1 - nodes.sum(axis=0), nodes))
    blocks = []
    area = np.zeros(centres.shape[1])
    for disc, cell, simplices, measure in _pieces(mesh, centres, radius, sides, index):
        points = np.einsum("dvn,vq->dnq", simplices, barycentric)
        scaled = measure[:, None] * (weights / weights.sum())
        blocks.append((disc, cell, local_values(basis, points, cell, scaled)))
        area += np.bincount(disc, measure, minlength=len(area))
    covered = _without_rounding(area, mesh.dim(), radius)
    factors = np.divide(1.0, covered, out=np.zeros_like(covered), where=covered > 0)
    return csr_matrix(diags(factors) @ scatter(basis, blocks, len(area)))


def disc_averages(
    mesh: Any, centres: Any, radius: float, function: Callable[[Array], Array], order: int, sides: int = 24
) -> Array:
    """Averages of functions over the polygons of `disc_matrix`, by a rule of an order on their parts in each cell.

    Parameters
    ----------
    function
        Of points ``(dimension, n)``; values of shape ``(functions, n)``.

    Returns
    -------
    Array
        Shape ``(functions, n_discs)``.
    """
    check_mesh(mesh)
    centres, radius, sides = _check_discs(mesh, centres, radius, sides)
    nodes, weights = get_quadrature(RefTri if mesh.dim() == 2 else RefLine, order)
    barycentric = np.vstack((1 - nodes.sum(axis=0), nodes))
    area, sums = np.zeros(centres.shape[1]), []
    for disc, _, simplices, measure in _pieces(mesh, centres, radius, sides):
        if not len(disc):
            continue
        points = np.einsum("dvn,vq->dnq", simplices, barycentric)
        values = function(points.reshape(len(points), -1)).reshape(-1, *points.shape[1:])
        parts = measure * (values @ (weights / weights.sum()))
        sums.append(np.array([np.bincount(disc, part, minlength=len(area)) for part in parts]))
        area += np.bincount(disc, measure, minlength=len(area))
    return np.asarray(np.sum(sums, axis=0) / area)


def disc_overlaps(mesh: Any, centres: Any, radius: float, sides: int = 24) -> tuple[csr_matrix, Array]:
    """Area (length on a line) of each cell in each polygon of `disc_matrix`, ``(n_discs, cells)``, and their sums.

    A sum is pi radius^2 (2 radius on a line) for a disc inside the mesh, and exactly 0 for no overlap.
    """
    check_mesh(mesh)
    centres, radius, sides = _check_discs(mesh, centres, radius, sides)
    none = np.zeros(0, dtype=np.int64)
    found = [(none, none, np.zeros(0))]
    found += [(disc, cell, measure) for disc, cell, _, measure in _pieces(mesh, centres, radius, sides)]
    rows, cells, areas = (np.concatenate(part) for part in zip(*found, strict=True))
    parts = csr_matrix((areas, (rows, cells)), shape=(centres.shape[1], mesh.nelements))
    return parts, _without_rounding(np.asarray(parts.sum(axis=1)).ravel(), mesh.dim(), radius)


def covered_area(mesh: Any, centres: Any, radius: float, sides: int = 24) -> Array:
    """The second result of `disc_overlaps`."""
    return disc_overlaps(mesh, centres, radius, sides)[1]


def _check_discs(mesh: Any, centres: Any, radius: Any, sides: Any) -> tuple[Array, float, int]:
    """The arguments of a disc function, checked."""
    centres = check_points(centres, mesh.dim(), "centres")
    return centres, number(radius, "radius", above=0.0), count(sides, "sides", least=3)


def _without_rounding(area: Array, dimension: int, radius: float) -> Array:
    """`area`, with 0 for what rounding leaves of discs that only touch the mesh."""
    full = np.pi * radius**2 if dimension == 2 else 2 * radius
    return np.where(area > OVERLAP_TOLERANCE * full, area, 0.0)


def _pieces(
    mesh: Any, centres: Array, radius: float, sides: int, index: CellIndex | None = None
) -> Iterator[tuple[Index, Index, Array, Array]]:
    """Simplices that tile (polygon and cell), as (disc, cell, corners (dim, dim + 1, n), measures (n,))."""
    reach = _circumradius(radius, sides) if mesh.dim() == 2 else radius
    for discs, cells in (index or CellIndex(mesh)).near_boxes(centres - reach, centres + reach):
        for begin in range(0, len(discs), CLIP_BLOCK):
            disc, cell = discs[begin : begin + CLIP_BLOCK], cells[begin : begin + CLIP_BLOCK]
            corners = mesh.p[:, mesh.t[:, cell]]
            if mesh.dim() == 1:
                middle = centres[:, None, disc]
                ends = np.clip(np.sort(corners, axis=1), middle - radius, middle + radius)
                yield disc, cell, ends, np.diff(ends[0], axis=0)[0]
            else:
                polygons, sizes = _clip_disc(corners - centres[:, None, disc], radius, sides)
                owner, triangles, area = _fan(polygons, sizes)
                yield disc[owner], cell[owner], triangles + centres[:, None, disc[owner]], area


def _circumradius(radius: float, sides: int) -> float:
    """R with sides / 2 R^2 sin(2 pi / sides) = pi radius^2."""
    return radius * float(np.sqrt(2 * np.pi / (sides * np.sin(2 * np.pi / sides))))


def _clip_disc(corners: Array, radius: float, sides: int) -> tuple[Array, Index]:
    """Convex polygons (2, v, n) cut by the regular polygon around 0: padded corners and their numbers.

    Sutherland and Hodgman (1974), one half plane x . normal <= apothem after the other, for all polygons
    at once; only those that a half plane cuts are touched.
    """
    apothem = _circumradius(radius, sides) * np.cos(np.pi / sides)
    angles = 2 * np.pi * (np.arange(sides) + 0.5) / sides
    polygons = corners
    sizes = np.full(corners.shape[2], corners.shape[1])
    for normal in np.stack((np.cos(angles), np.sin(angles)), axis=1):
        depth = apothem - np.tensordot(normal, polygons, axes=1)
        used = np.arange(polygons.shape[1])[:, None] < sizes
        cut = np.flatnonzero((used & (depth < 0)).any(axis=0))
        if not len(cut):
            continue
        pieces, sizes[cut] = _cut(polygons[:, :, cut], sizes[cut], depth[:, cut])
        extra = max(0, pieces.shape[1] - polygons.shape[1])
        polygons = np.pad(polygons, ((0, 0), (0, extra), (0, 0)))
        polygons[:, : pieces.shape[1], cut] = pieces
    return polygons, sizes


def _cut(polygons: Array, sizes: Index, depth: Array) -> tuple[Array, Index]:
    """Part of each padded convex polygon where `depth`, given at its corners, is not negative."""
    slot = np.arange(polygons.shape[1])[:, None]
    used = slot < sizes
    following = np.where(slot + 1 < sizes, slot + 1, 0)
    next_depth = np.take_along_axis(depth, following, axis=0)
    next_corner = np.take_along_axis(polygons, following[None], axis=1)
    crosses = used & (depth * next_depth < 0)
    share = depth / np.where(crosses, depth - next_depth, 1.0)
    crossing = polygons + share * (next_corner - polygons)
    # Each corner that stays is followed by the crossing on the edge that leaves it.
    shape = (2, 2 * polygons.shape[1], polygons.shape[2])
    candidates = np.stack((polygons, crossing), axis=2).reshape(shape)
    kept = np.stack((used & (depth >= 0), crosses), axis=1).reshape(shape[1:])
    order = np.argsort(~kept, axis=0, kind="stable")
    new_sizes = kept.sum(axis=0)
    order = order[: new_sizes.max()]
    return np.take_along_axis(candidates, order[None], axis=1), new_sizes


def _fan(polygons: Array, sizes: Index) -> tuple[Index, Array, Array]:
    """Triangles (0, i, i + 1) of padded convex polygons: owner, corners (2, 3, n) and areas."""
    number_of_fans = max(0, polygons.shape[1] - 2)
    second, owner = np.nonzero(np.arange(number_of_fans)[:, None] + 2 < sizes)
    base = polygons[:, 0, owner]
    triangles = np.stack((base, polygons[:, second + 1, owner], polygons[:, second + 2, owner]), axis=1)
    a, b = triangles[:, 1] - base, triangles[:, 2] - base
    return owner, triangles, np.abs(cross(a, b)) / 2
