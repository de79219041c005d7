"""Which cells of a mesh a box or a line may meet, without looking at all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import Array

Index = NDArray[np.int64]
Pairs = Iterator[tuple[Index, Index]]
Heights = Callable[[Index, Index], tuple[Array, Array]]

BLOCK = 1 << 17  # (query, cell) pairs handled at once; keeps the working memory near 20 MB
EDGE_TOLERANCE = 1e-10  # of the height of a cell: how far outside a point still counts as inside
GRID_LIMIT = 1e9  # buckets per axis; the pair (row, column) then fits in 64 bits
GRID_MARGIN = 1e-6  # covers the rounding of bucket numbers, at most GRID_LIMIT * machine epsilon


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
        self.bucket = (1 + 2 * GRID_MARGIN) * np.maximum(size, extent / GRID_LIMIT)
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
        first = np.searchsorted(self.rows, np.floor(left - GRID_MARGIN) - 1)
        stop = np.searchsorted(self.rows, np.floor(right + GRID_MARGIN), side="right")
        for query, position in spread(first, stop):
            low, high = heights(query, self.rows[position])
            low = np.clip(np.floor(low - GRID_MARGIN) - 1, 0, self.columns)
            high = np.clip(np.floor(high + GRID_MARGIN), -1, self.columns - 1)
            base = position * self.columns
            begin = np.searchsorted(self.key, base + low.astype(np.int64))
            end = np.searchsorted(self.key, base + high.astype(np.int64), side="right")
            for owner, place in spread(begin, end):
                yield query[owner], self.cells[place]


class BoxIndex:
    """Finds the cells whose bounding boxes may meet a box or a line.

    Every cell that does meet the query is among the pairs; some that do not are too. Cells are sorted
    into levels by the powers of four of width and height, so that grading and stretching cost little.
    """

    def __init__(self, mesh: Any) -> None:
        corners = _planar(mesh.p)[:, mesh.t]
        lower, upper = corners.min(axis=1), corners.max(axis=1)
        rounding = 8 * np.finfo(float).eps * np.abs(mesh.p).max()
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
    """The pairs of `BoxIndex.near_boxes` on one level, boxes in units of its buckets."""

    def heights(query: Index, row: Index) -> tuple[Array, Array]:
        return lower[1][query], upper[1][query]

    return level.pairs(lower[0], upper[0], heights)


def _line_pairs(level: _Level, start: Array, step: Array) -> Pairs:
    """The pairs of `BoxIndex.near_lines` on one level, `start` and `step` in units of its buckets."""
    step = step / np.abs(step).max(axis=0)
    step = np.where(np.abs(step) < 1e-200, 1e-200, step)  # no division by zero for rays along the axes
    eps = 8 * np.finfo(float).eps
    reach = level.columns + 1.0
    slope = step[1] / step[0]
    # Columns [0, columns + 1] hold all boxes; the line passes them between these two rows.
    ends = start[0] + (np.array([[0.0], [reach]]) - start[1]) / slope
    blur = eps * (np.abs(start[0]) + (reach + np.abs(start[1])) / np.abs(slope))

    def heights(query: Index, row: Index) -> tuple[Array, Array]:
        # A box of this row reaches from it to the end of the next.
        tilt, u, v = slope[query], start[0][query], start[1][query]
        at = v + tilt * (row - u + np.array([[0.0], [2.0]]))
        error = eps * (np.abs(v) + np.abs(tilt) * (np.abs(row) + 2 + np.abs(u)))
        return at.min(axis=0) - error, at.max(axis=0) + error

    return level.pairs(ends.min(axis=0) - blur, ends.max(axis=0) + blur, heights)
