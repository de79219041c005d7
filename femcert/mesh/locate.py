"""Where points lie in a mesh, and the values of basis functions there; which cells a box or a line may meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix
from skfem.mesh import MeshTri1

from ..checks import Array, real_array
from ..errors import InputError
from .elements import MESHES, degree
from .geometry import ROUNDING, cross

Index = NDArray[np.int64]
Pairs = Iterator[tuple[Index, Index]]
Heights = Callable[[Index, Index], tuple[Array, Array]]

BLOCK = 1 << 17  # (query, cell) pairs handled at once; keeps the working memory near 20 MB
EDGE_TOLERANCE = 1e-10  # of the height of a cell: how far outside a point still counts as inside
GRID_LIMIT = 1e9  # buckets per axis; the pair (row, column) then fits in 64 bits
LEAST_STEP = 1e-200  # no division by zero for rays along the axes
GRID_TOLERANCE = 1e-6  # covers the rounding of bucket numbers, at most GRID_LIMIT * machine epsilon


def spread(first: Index, stop: Index) -> Pairs:
    """All (i, j) with first[i] <= j < stop[i], in blocks of at most `BLOCK` pairs."""
    counts = np.maximum(stop - first, 0)
    ends = np.cumsum(counts)
    shift = first - (ends - counts)
    total = int(ends[-1]) if len(ends) else 0
    for begin in range(0, total, BLOCK):
        flat = np.arange(begin, min(begin + BLOCK, total))
        owner = np.searchsorted(ends, flat, side="right")
        yield owner, flat + shift[owner]


class _Level:
    """Boxes of similar width and height, sorted by the bucket of their lower left corner.

    With buckets as large as the largest box, a box of bucket (i, j) lies within the buckets (i, j) to
    (i+1, j+1); so what meets it is found from the buckets one to the left and one below. Only occupied
    rows are kept, and the boxes of a run of columns in a row are contiguous.
    """

    def __init__(self, lower: Array, upper: Array, cells: Index) -> None:
        self.corner = lower.min(axis=1)
        extent = upper.max(axis=1) - self.corner
        size = (upper - lower).max(axis=1)
        self.bucket = (1 + 2 * GRID_TOLERANCE) * np.maximum(size, extent / GRID_LIMIT)
        self.bucket[self.bucket == 0] = 1.0  # the second axis of a line mesh
        row, column = np.floor(self.scaled(lower)).astype(np.int64)
        self.columns = int(column.max()) + 1
        self.rows, position = np.unique(row, return_inverse=True)
        key = position * self.columns + column
        order = np.argsort(key, kind="stable")
        self.key, self.cells = key[order], cells[order]

    def scaled(self, points: Array) -> Array:
        return (points - self.corner[:, None]) / self.bucket[:, None]

    def pairs(self, left: Array, right: Array, heights: Heights) -> Pairs:
        """Pairs (query, cell) for queries that reach from `left` to `right` and, in a row, over `heights`."""
        first = np.searchsorted(self.rows, np.floor(left - GRID_TOLERANCE) - 1)
        stop = np.searchsorted(self.rows, np.floor(right + GRID_TOLERANCE), side="right")
        for query, position in spread(first, stop):
            low, high = heights(query, self.rows[position])
            low = np.clip(np.floor(low - GRID_TOLERANCE) - 1, 0, self.columns)
            high = np.clip(np.floor(high + GRID_TOLERANCE), -1, self.columns - 1)
            base = position * self.columns
            begin = np.searchsorted(self.key, base + low.astype(np.int64))
            end = np.searchsorted(self.key, base + high.astype(np.int64), side="right")
            for owner, place in spread(begin, end):
                yield query[owner], self.cells[place]


class CellIndex:
    """Finds the cells whose bounding boxes may meet a box or a line.

    Every cell that does meet the query is among the pairs; some that do not are too. Cells are sorted
    into levels by the powers of four of width and height, so that grading and stretching cost little.
    """

    def __init__(self, mesh: Any) -> None:
        corners = _planar(mesh.p)[:, mesh.t]
        lower, upper = corners.min(axis=1), corners.max(axis=1)
        rounding = ROUNDING * np.abs(mesh.p).max()
        padding = EDGE_TOLERANCE * np.max(upper - lower, axis=0) + rounding
        self.lower, self.upper = lower - padding, upper + padding
        exponents = (np.frexp(self.upper - self.lower)[1] // 2).astype(np.int64)
        level = np.unique(exponents[0] * 4096 + exponents[1], return_inverse=True)[1]
        ends = np.cumsum(np.bincount(level))
        members = np.split(np.argsort(level, kind="stable"), ends[:-1])
        self.levels = [_Level(self.lower[:, cells], self.upper[:, cells], cells) for cells in members]

    def near_boxes(self, lower: Array, upper: Array) -> Pairs:
        """Pairs (box, cell) of boxes [lower, upper], columns of shape (dim, n), and cells they meet."""
        lower, upper = _planar(lower), _planar(upper)
        for level in self.levels:
            for query, cell in _box_pairs(level, level.scaled(lower), level.scaled(upper)):
                meets = (lower[:, query] <= self.upper[:, cell]) & (upper[:, query] >= self.lower[:, cell])
                meets = meets.all(axis=0)
                yield query[meets], cell[meets]

    def near_lines(self, origins: Array, directions: Array) -> Pairs:
        """Pairs (line, cell) of infinite lines origin + t direction and cells whose boxes they may meet."""
        for level in self.levels:
            yield from _line_pairs(level, level.scaled(origins), directions / level.bucket[:, None])


def _planar(points: Array) -> Array:
    """Points of a line mesh get a second coordinate 0, so that one code serves both dimensions."""
    return points if len(points) == 2 else np.vstack((points, np.zeros_like(points)))


def _box_pairs(level: _Level, lower: Array, upper: Array) -> Pairs:
    """The pairs of `CellIndex.near_boxes` on one level, boxes in units of its buckets."""

    def heights(query: Index, row: Index) -> tuple[Array, Array]:
        return lower[1][query], upper[1][query]

    return level.pairs(lower[0], upper[0], heights)


def _line_pairs(level: _Level, start: Array, step: Array) -> Pairs:
    """The pairs of `CellIndex.near_lines` on one level, `start` and `step` in units of its buckets."""
    step = step / np.abs(step).max(axis=0)
    step = np.where(np.abs(step) < LEAST_STEP, LEAST_STEP, step)
    reach = level.columns + 1.0
    slope = step[1] / step[0]
    # Columns [0, columns + 1] hold all boxes; the line passes them between these two rows.
    ends = start[0] + (np.array([[0.0], [reach]]) - start[1]) / slope
    blur = ROUNDING * (np.abs(start[0]) + (reach + np.abs(start[1])) / np.abs(slope))

    def heights(query: Index, row: Index) -> tuple[Array, Array]:
        # A box of this row reaches from it to the end of the next.
        tilt, u, v = slope[query], start[0][query], start[1][query]
        at = v + tilt * (row - u + np.array([[0.0], [2.0]]))
        error = ROUNDING * (np.abs(v) + np.abs(tilt) * (np.abs(row) + 2 + np.abs(u)))
        return at.min(axis=0) - error, at.max(axis=0) + error

    return level.pairs(ends.min(axis=0) - blur, ends.max(axis=0) + blur, heights)


def check_mesh(mesh: Any) -> None:
    """Raise `InputError` unless `mesh` has straight, convex cells: MeshLine, MeshTri or MeshQuad."""
    if type(mesh) not in MESHES or mesh.p.shape[0] != mesh.dim():
        raise InputError(f"mesh is a {type(mesh).__name__}; expected a first-order MeshLine, MeshTri or MeshQuad")
    corners = mesh.p[:, mesh.t]
    if len(mesh.t) < 4:
        # A line has a length, a triangle an area.
        sides = corners[:, 1:] - corners[:, :1]
        turns = sides[:, 0] if mesh.dim() == 1 else cross(sides[:, 0], sides[:, 1])[None]
    else:
        sides = np.roll(corners, -1, axis=1) - corners
        turns = cross(sides, np.roll(sides, -1, axis=1))
    # Convex means that all corners turn the same way; the comparison also refuses NaN.
    bad = np.flatnonzero(~(turns * np.sign(turns[0]) > 0).all(axis=0))
    if len(bad):
        raise InputError(f"mesh has {len(bad)} cells that are flat or not convex, the first is cell {bad[0]}")


def check_basis(basis: Any) -> None:
    """Raise `InputError` unless `basis` is P0, P1, P2, Q0, Q1 or Q2 on a mesh that `check_mesh` accepts."""
    check_mesh(basis.mesh)
    degree(basis)


def check_points(points: Any, dimension: int, name: str) -> Array:
    """`points` as a finite array of shape (dimension, n)."""
    array = real_array(points, name)
    if array.ndim != 2 or array.shape[0] != dimension:
        raise InputError(f"{name} has shape {array.shape}; expected ({dimension}, n), one column per point")
    return array


class Locator:
    """Finds the cell of each point of a line, triangle or convex quadrilateral mesh.

    Parameters
    ----------
    mesh
        A first-order `MeshLine`, `MeshTri` or `MeshQuad`, of any grading and numbering.

    Raises
    ------
    InputError
        For curved or three-dimensional meshes, and for cells that are flat or not convex.
    """

    def __init__(self, mesh: Any) -> None:
        check_mesh(mesh)
        self.mesh = mesh
        self.index = CellIndex(mesh)

    def find(self, points: Any) -> Index:
        """Cell of each column of `points`, -1 outside the mesh; on shared edges the lowest cell number.

        A point counts as inside a cell if it is at most `EDGE_TOLERANCE` of the cell's height beyond its edges.
        """
        points = check_points(points, self.mesh.dim(), "points")
        nowhere = self.mesh.t.shape[1]
        found = np.full(points.shape[1], nowhere, dtype=np.int64)
        for query, cell in self.index.near_boxes(points, points):
            inside = _contains(self.mesh, cell, points[:, query])
            np.minimum.at(found, query[inside], cell[inside])
        found[found == nowhere] = -1
        return found


def _contains(mesh: Any, cells: Index, points: Array) -> NDArray[np.bool_]:
    """Whether each point lies in the cell paired with it, up to the tolerance."""
    if mesh.dim() == 1:
        return np.ones(len(cells), dtype=bool)  # the padded boxes are the cells
    corners = mesh.p[:, mesh.t[:, cells]]
    turned = np.sign(cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))
    sides = np.roll(corners, -1, axis=1) - corners
    lengths = np.hypot(*sides)
    area = np.abs(cross(corners[:, 2] - corners[:, 0], corners[:, -1] - corners[:, 1]))
    slack = EDGE_TOLERANCE * area / lengths.max(axis=0) + ROUNDING * np.abs(mesh.p).max()
    depth = turned * cross(sides, points[:, None] - corners)
    return (depth >= -slack * lengths).all(axis=0)


def reference_points(mesh: Any, points: Array, cells: Index) -> Array:
    """Preimages of points (dim, n, q) under the map of the reference cell to the cells (n,).

    Quadrilaterals: with a = p1 - p0, b = p3 - p0, c = p0 - p1 + p2 - p3 and d = x - p0 the equation
    d = a X + b Y + c X Y gives cross(d - a X, b + c X) = 0, a quadratic in X whose slope at the wanted
    root is minus the Jacobian determinant; that picks the root.
    """
    corners = mesh.p[:, mesh.t[:, cells]][..., None]
    d = points - corners[:, 0]
    a = corners[:, 1] - corners[:, 0]
    if mesh.dim() == 1:
        return d / a
    b = corners[:, -1] - corners[:, 0]
    if isinstance(mesh, MeshTri1):
        return np.stack((cross(d, b), cross(a, d))) / cross(a, b)
    c = corners[:, 2] - corners[:, 1] - b
    turned = np.sign(cross(a, b))
    quadratic, linear, constant = -cross(a, c), cross(d, c) - cross(a, b), cross(d, b)
    root = np.sqrt(np.maximum(linear**2 - 4 * quadratic * constant, 0.0))
    usual = turned * linear <= 0  # the two forms of the root; each avoids cancellation on its side
    X = np.where(usual, 2 * turned * constant, -linear - turned * root)
    X = X / np.where(usual, root - turned * linear, 2 * quadratic)
    other = b + c * X
    Y = ((d - a * X) * other).sum(axis=0) / (other**2).sum(axis=0)
    # One Newton step wins back the digits that the root loses in strongly distorted cells.
    along, across, rest = a + c * Y, b + c * X, d - a * X - b * Y - c * X * Y
    determinant = cross(along, across)
    determinant = np.where(determinant * turned > 0, determinant, np.inf)
    return np.stack((X + cross(rest, across) / determinant, Y + cross(along, rest) / determinant))


def local_values(basis: Any, points: Array, cells: Index, weights: Array) -> Array:
    """sum_q weights[i, q] phi_k(points[:, i, q]) for the functions phi_k of cell i; shape (k, i)."""
    X = reference_points(basis.mesh, points, cells)
    return np.stack([(basis.elem.lbasis(X, k)[0] * weights).sum(axis=-1) for k in range(basis.Nbfun)])


def scatter(basis: Any, blocks: list[tuple[Index, Index, Array]], count: int) -> csr_matrix:
    """Sum blocks (rows, cells, local values) into a matrix of shape (count, basis.N)."""
    table = basis.dofs.element_dofs
    shape = (count, basis.N)
    if not blocks:
        return csr_matrix(shape)
    rows = np.concatenate([np.tile(row.astype(np.int32), len(local)) for row, _, local in blocks])
    columns = np.concatenate([table[:, cells].ravel() for _, cells, _ in blocks])
    data = np.concatenate([local.ravel() for _, _, local in blocks])
    return coo_matrix((data, (rows, columns)), shape=shape).tocsr()


def interpolation_matrix(basis: Any, points: Any, cells: Any) -> csr_matrix:
    """Matrix (n_points, basis.N) of the values phi_j(x_i), taken inside the given cells.

    Parameters
    ----------
    basis
        A scikit-fem basis of P0, P1, P2, Q0, Q1 or Q2 elements on a first-order mesh.
    points
        Points of shape (dim, n_points).
    cells
        The cell of each point, as `Locator.find` gives it.

    Raises
    ------
    InputError
        If a cell is -1 (the point is outside the mesh) or does not exist.
    """
    check_basis(basis)
    points = check_points(points, basis.mesh.dim(), "points")
    cells = np.asarray(cells)
    if cells.shape != points.shape[1:] or (cells.size and not np.issubdtype(cells.dtype, np.integer)):
        what = f"shape {cells.shape} and type {cells.dtype}"
        raise InputError(f"cells has {what}; expected shape {points.shape[1:]} and whole numbers")
    bad = np.flatnonzero((cells < 0) | (cells >= basis.mesh.t.shape[1]))
    if len(bad):
        where = f"point {bad[0]} at {tuple(points[:, bad[0]].tolist())}"
        raise InputError(f"{len(bad)} points have no cell, the first is {where}; move them into the mesh")
    cells = cells.astype(np.int64)
    local = local_values(basis, points[:, :, None], cells, np.ones((len(cells), 1)))
    return scatter(basis, [(np.arange(len(cells)), cells, local)], len(cells))
