"""Scattered points as a mesh: the sorted points of a line, a Delaunay triangulation in the plane."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import Delaunay, KDTree, QhullError
from skfem import Basis, ElementLineP1, ElementTriP1, MeshLine, MeshTri

from ..errors import InputError
from .checks import Array, coordinates, real_array
from .locate import cross
from .transfer import SAME_PLACE

# Of the square of the longest edge: triangles of less area are rounding of points on a line.
_FLAT = 1e-12


class PointCloud:
    """Places of given values, joined to a mesh on which they are the nodal values of a P1 field.

    Parameters
    ----------
    points
        ``(points, dimension)``, a row per point; several values at one place must agree.

    Attributes
    ----------
    basis
        P1 on the mesh of the points.
    spacing
        The median distance of a point to its nearest neighbour.
    """

    def __init__(self, points: Any, dimension: int) -> None:
        array = coordinates(points, "points")
        array = array[:, None] if array.ndim == 1 and dimension == 1 else array
        if array.ndim != 2 or array.shape[1] != dimension or len(array) <= dimension:
            expected = f"({dimension + 1} or more, {dimension}), a row per point"
            raise InputError(f"points has shape {array.shape}; expected {expected}")
        self.count = len(array)
        self._keep, self._twins = _distinct(array)
        kept = array[self._keep]
        if len(kept) <= dimension:
            raise InputError(f"points has {len(kept)} different places; expected at least {dimension + 1}")
        self.spacing = float(np.median(KDTree(kept).query(kept, k=2)[0][:, 1]))
        mesh, used = _joined(kept)
        self._keep = self._keep[used]
        self.basis = Basis(mesh, ElementLineP1() if dimension == 1 else ElementTriP1())

    @property
    def words(self) -> str:
        """What it is, for messages."""
        return f"{self.count} scattered points"

    def nodal(self, values: Any, name: str) -> Array:
        """Values at the points as dof values of `basis`."""
        given = real_array(values, name)
        if given.ndim not in (1, 2) or len(given) != self.count:
            expected = f"({self.count},) or ({self.count}, times), a value per point"
            raise InputError(f"{name} has shape {given.shape}; expected {expected}")
        first, second = self._twins
        columns = given.reshape(self.count, -1)
        wrong = np.flatnonzero((columns[first] != columns[second]).any(axis=1))
        if len(wrong):
            pair = f"{first[wrong[0]]} and {second[wrong[0]]}"
            raise InputError(f"{name} has different values at points {pair}, which are at the same place")
        return given[self._keep]


def _distinct(points: Array) -> tuple[NDArray[np.int64], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Indices of points at different places, and the pairs at the same one."""
    close = SAME_PLACE * float(np.ptp(points, axis=0).max())
    pairs = KDTree(points).query_pairs(close, output_type="ndarray")
    first, second = pairs.min(axis=1), pairs.max(axis=1)
    return np.setdiff1d(np.arange(len(points)), second), (first, second)


def _joined(points: Array) -> tuple[Any, NDArray[np.int64]]:
    """A mesh of the points, and which of them are its nodes, in order."""
    if points.shape[1] == 1:
        order = np.argsort(points[:, 0])
        return MeshLine(points[order, 0]), order
    middle = points.mean(axis=0)
    try:
        # Qhull loses digits far from the origin.
        triangles = Delaunay((points - middle) / np.abs(points - middle).max()).simplices.T
    except QhullError:
        raise InputError(f"the {len(points)} points lie on a line; expected points that span the plane") from None
    a, b, c = points[triangles].transpose(0, 2, 1)
    longest = np.max([((a - b) ** 2).sum(axis=0), ((b - c) ** 2).sum(axis=0), ((c - a) ** 2).sum(axis=0)], axis=0)
    triangles = triangles[:, np.abs(cross(b - a, c - a)) > _FLAT * longest]
    if not triangles.size:
        raise InputError(f"the {len(points)} points lie on a line; expected points that span the plane")
    used, numbers = np.unique(triangles, return_inverse=True)
    if len(used) < len(points):
        lost = points[np.setdiff1d(np.arange(len(points)), used)[0]].tolist()
        raise InputError(f"points has {len(points) - len(used)} that are too near to others, such as {lost}; drop them")
    return MeshTri(np.ascontiguousarray(points[used].T), np.ascontiguousarray(numbers.reshape(triangles.shape))), used
