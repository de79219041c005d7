"""Fields of large meshes on the pixels of a picture, since a page shows no more than that.

A field is read at the middle of each pixel. Of numbers of elements a pixel shows the largest among the elements that
have their centres in it, so that no peak is lost between the pixels.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import Array
from ..mesh.elements import MESHES
from ..mesh.locate import Locator, local_values
from ..mesh.vectors import magnitude

# Elements above which a picture is drawn by pixels.
MOST_ELEMENTS = 60_000
# Pixels along the longer side: those of a map in a page, at twice the dots of a common screen.
PIXELS = 400

_made: dict[int, Raster] = {}


@dataclass(frozen=True)
class Raster:
    """Pixels over a mesh in the plane, row by row from below.

    Attributes
    ----------
    extent
        Left, right, bottom and top.
    shape
        Rows and columns.
    points, cells
        Middles of the pixels ``(2, pixels)``, and the elements that they are in; -1 outside.
    """

    extent: tuple[float, float, float, float]
    shape: tuple[int, int]
    points: Array
    cells: NDArray[np.int64]

    def of_field(self, basis: Any, values: Array) -> Array:
        """A finite-element function, of vectors their lengths; masked outside the mesh."""
        basis, values = magnitude(basis, values)
        inside = self.cells >= 0
        cells = self.cells[inside]
        local = local_values(basis, self.points[:, inside, None], cells, np.ones((len(cells), 1)))
        return self._shown(inside, np.sum(local * np.asarray(values)[basis.element_dofs[:, cells]], axis=0))

    def of_elements(self, mesh: Any, values: Array) -> Array:
        """A number for each element; masked outside the mesh."""
        inside = self.cells >= 0
        shown = np.full(inside.size, -np.inf)
        shown[inside] = values[self.cells[inside]]
        left, right, bottom, top = self.extent
        x, y = mesh.p[:, mesh.t].mean(axis=1)
        rows, columns = self.shape
        column = np.minimum(((x - left) / (right - left) * columns).astype(np.int64), columns - 1)
        row = np.minimum(((y - bottom) / (top - bottom) * rows).astype(np.int64), rows - 1)
        np.maximum.at(shown, row * columns + column, values)
        inside = np.isfinite(shown)
        return self._shown(inside, shown[inside])

    def _shown(self, inside: NDArray[np.bool_], values: Array) -> Array:
        image = np.ma.masked_all(inside.size)
        image[inside] = values
        return image.reshape(self.shape)


def raster_of(mesh: Any) -> Raster | None:
    """The pixels for a mesh, made once; None where its elements are few enough to be drawn."""
    if mesh.dim() != 2 or mesh.nelements <= MOST_ELEMENTS or type(mesh) not in MESHES:
        return None
    if id(mesh) not in _made:
        _made[id(mesh)] = _raster(mesh)
        weakref.finalize(mesh, _made.pop, id(mesh), None)
    return _made[id(mesh)]


def _raster(mesh: Any) -> Raster:
    low, high = mesh.p.min(axis=1), mesh.p.max(axis=1)
    columns, rows = np.maximum(np.ceil(PIXELS * (high - low) / (high - low).max()), 1.0).astype(int)
    x, y = ((np.arange(n) + 0.5) / n * (b - a) + a for n, a, b in zip((columns, rows), low, high, strict=True))
    points = np.array([np.tile(x, rows), np.repeat(y, columns)])
    extent = (float(low[0]), float(high[0]), float(low[1]), float(high[1]))
    return Raster(extent, (int(rows), int(columns)), points, Locator(mesh).find(points))
