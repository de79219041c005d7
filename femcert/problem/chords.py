"""Exact integrals of finite-element fields along straight lines, and plain sums of samples on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..errors import InputError
from .boxes import BLOCK, BoxIndex, Index
from .checks import Array, number, real_vector
from .locate import Locator, check_basis, check_points, is_affine, local_values, scatter

SNAP = 1e-12  # of the shortest edge at a vertex: how close a ray is taken to pass through the vertex
GENERAL_QUAD_POINTS = 16  # per chord, where the basis functions are not polynomials along the line


def ray_matrix(basis: Any, origins: Any, directions: Any) -> csr_matrix:
    """Matrix (n_rays, basis.N) of the integrals of phi_j over the part of each line inside the mesh.

    Row i holds the integrals of phi_j(origin_i + t direction_i / |direction_i|) dt over all real t. Each
    line is cut at the edges of the cells and integrated chord by chord with a Gauss rule that is exact on
    triangles and parallelograms; on general quadrilaterals 16 points per chord are used.

    A ray along an edge counts once: it belongs to the cell on its left, and to the cell on its right where
    that edge is on the boundary of the mesh. A vertex closer than 1e-12 of its shortest edge is on the ray.
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
    mesh = basis.mesh
    if mesh.dim() != 2:
        raise InputError(f"mesh has dimension {mesh.dim()}; rays need a mesh in the plane")
    origins, directions = _check_rays(origins, directions, 2)
    nodes, weights = _gauss(basis)
    blocks = []
    for ray, cell, enter, length in _chords(mesh, origins, directions):
        points = origins[:, ray, None] + directions[:, ray, None] * (enter + length * nodes)
        blocks.append((ray, cell, local_values(basis, points, cell, length * weights)))
    return scatter(basis, blocks, origins.shape[1])


def ray_integrals(
    mesh: Any, origins: Any, directions: Any, function: Callable[[Array], Array], points: int
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

    Returns
    -------
    Array
        Shape ``(functions, n_rays)``.
    """
    origins, directions = _check_rays(origins, directions, 2)
    t, w = np.polynomial.legendre.leggauss(points)
    nodes, weights = 0.5 * (1.0 + t), 0.5 * w
    sums = []
    for ray, _, enter, length in _chords(mesh, origins, directions):
        x = origins[:, ray, None] + directions[:, ray, None] * (enter + length * nodes)
        values = function(x.reshape(2, -1)).reshape(-1, *x.shape[1:])
        parts = (values * length) @ weights
        sums.append(np.array([np.bincount(ray, part, minlength=origins.shape[1]) for part in parts]))
    return np.asarray(np.sum(sums, axis=0))


def _chords(mesh: Any, origins: Array, directions: Array) -> Iterator[tuple[Index, Index, Array, Array]]:
    """Rays, cells, and where each ray enters a cell and how long it stays there, columns ``(n, 1)``."""
    tolerance = _vertex_tolerance(mesh)
    outer = mesh.f2t[1, mesh.t2f] < 0
    for ray, cell in BoxIndex(mesh).near_lines(origins, directions):
        enter, leave = _clip(mesh, origins[:, ray], directions[:, ray], cell, tolerance, outer[:, cell])
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
    return SNAP * shortest + 8 * np.finfo(float).eps * np.abs(mesh.p).max()


def _clip(
    mesh: Any, origins: Array, directions: Array, cells: Index, tolerance: Array, outer: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Parameters t at which each ray enters and leaves the cell paired with it; leave <= enter for a miss.

    With s the signed distance of a vertex from the line (snapped to 0) and t its position along it, the
    line crosses an edge with s_i s_j < 0 at t = (t_i s_j - t_j s_i) / (s_j - s_i). Both cells of an edge
    compute the same number, so the chords of a line neither overlap nor leave gaps.
    """
    vertices = mesh.t[:, cells]
    away = mesh.p[:, vertices] - origins[:, None]
    side = directions[0] * away[1] - directions[1] * away[0]
    rounding = 8 * np.finfo(float).eps * np.abs(origins).max(axis=0)
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
