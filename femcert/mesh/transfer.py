"""Fields from another mesh, or from scattered points, on the dofs of a basis; and what was lost on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from scipy.spatial import Delaunay, KDTree, QhullError
from skfem import Basis, ElementLineP1, ElementTriP1, MeshLine, MeshTri

from ..checks import Array, coordinates, count, number, real_array
from ..errors import InputError
from .elements import degree, same_mesh
from .geometry import cross, diameters
from .locate import CellIndex, Index, Locator, interpolation_matrix


@dataclass(frozen=True)
class Interpolation:
    """How far the dofs of a candidate are from the values that it was made of.

    Attributes
    ----------
    source
        What the values were given on, in words.
    distance
        The largest distance from a dof to the nearest place with a given value.
    outside
        Number of dofs outside of the given mesh, or of the convex hull of the given points. They got the value at the
        nearest point inside.
    beyond
        How far outside the farthest of them is.
    unread
        Number of given values at places outside of the problem's mesh; these do not count below.
    differences
        By field: the largest ``|interpolant - given value|`` over the places with a given value.
    relative
        The same, over the largest ``|given value|``.
    """

    source: str
    distance: float
    outside: int
    beyond: float
    unread: int
    differences: dict[str, float]
    relative: dict[str, float]

    def __str__(self) -> str:
        text = f"interpolated from {self.source}, at most {self.distance:.3g} away"
        if self.outside:
            text += f"; {self.outside} dofs outside, by at most {self.beyond:.3g}"
        if self.unread:
            text += f"; {self.unread} given values outside of the problem's mesh"
        parts = ", ".join(f"{name} to {100 * share:.2g} %" for name, share in self.relative.items())
        return text + (f"; read back: {parts}" if parts else "")

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping, as JSON takes it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Any) -> Interpolation:
        """What `to_dict` gave."""
        names = list(cls.__dataclass_fields__)
        if not isinstance(record, Mapping) or sorted(record) != sorted(names):
            raise InputError(f"interpolation is {record!r}; expected a mapping with {', '.join(names)}")
        return cls(
            source=str(record["source"]),
            distance=number(record["distance"], "distance", least=0.0),
            outside=count(record["outside"], "outside", least=0),
            beyond=number(record["beyond"], "beyond", least=0.0),
            unread=count(record["unread"], "unread", least=0),
            differences=_table(record["differences"], "differences"),
            relative=_table(record["relative"], "relative"),
        )


def _table(record: Any, name: str) -> dict[str, float]:
    if not isinstance(record, Mapping):
        raise InputError(f"{name} is {record!r}; expected a number for each field")
    return {str(field): number(value, f"{name} of {field}", least=0.0) for field, value in record.items()}


def merged(parts: list[Interpolation | None]) -> Interpolation | None:
    """One record for fields that came from the same place; None if nothing was interpolated."""
    found = [part for part in parts if part is not None]
    if not found:
        return None
    return Interpolation(
        source=" and ".join(dict.fromkeys(part.source for part in found)),
        distance=max(part.distance for part in found),
        outside=max(part.outside for part in found),
        beyond=max(part.beyond for part in found),
        unread=max(part.unread for part in found),
        differences={name: value for part in found for name, value in part.differences.items()},
        relative={name: value for part in found for name, value in part.relative.items()},
    )


# Of the extent of the mesh: nodes that are this close are the same.
PLACE_TOLERANCE = 1e-12
# Of the diameter of the nearest cell: how far outside of the other mesh a dof may lie without being asked for. A
# circle bulges by less over an edge that is shorter than its radius.
BULGE = 0.25
# A source that is this many times larger, with this share of its values outside of the target, is in another unit.
LARGER, UNREAD = 3.0, 0.9


class Transfer:
    """Interpolates fields of `source` at the dofs of `target`: nodal values of one finite-element field in another.

    A dof at the place of a given value gets that value. One outside of the source's mesh gets the value at the nearest
    point of its boundary. A `target` of piecewise constants is sampled at the centres of its cells.

    Parameters
    ----------
    source, target
        Bases of P0, P1, P2, Q0, Q1 or Q2 elements on meshes of the same dimension.
    words
        What `source` is, for messages.
    tolerance
        How far outside a dof may lie; default: a quarter of the diameter of the nearest cell.

    Raises
    ------
    InputError
        The meshes do not fit, perhaps because of another unit, or piecewise constants are to become continuous.
    """

    def __init__(self, source: Basis, target: Basis, *, words: str, tolerance: float | None = None) -> None:
        if degree(source) == 0 < degree(target):
            raise InputError(f"{words} gives a value to each cell, but the problem takes nodal values; give these")
        if source.mesh.dim() != target.mesh.dim():
            raise InputError(f"{words} has dimension {source.mesh.dim()}, the problem {target.mesh.dim()}")
        self.source, self.target, self.words = source, target, words
        self._same_dofs = same_dofs(source, target)
        if self._same_dofs:
            return
        self._same = PLACE_TOLERANCE * float(np.ptp(source.mesh.p, axis=1).max())
        self._sites = KDTree(source.doflocs.T)
        gaps, nearest = self._sites.query(target.doflocs.T)
        self._found = gaps <= self._same
        self._distance = float(gaps.max())
        self._complete = bool(self._found.all()) and len(np.unique(nearest)) == source.N
        self._outside, self._beyond = 0, 0.0
        rows = np.flatnonzero(self._found)
        shape = (target.N, source.N)
        picked = csr_matrix((np.ones(len(rows)), (rows, nearest[rows])), shape=shape)
        self._matrix = picked if self._found.all() else picked + self._between(tolerance)

    def _between(self, tolerance: float | None) -> csr_matrix:
        """Rows of the dofs that are at no given place."""
        mesh, points = self.source.mesh, self.target.doflocs.copy()
        cells = Locator(mesh).find(points)
        out = np.flatnonzero((cells < 0) & ~self._found)
        if len(out):
            points[:, out], cells[out], away = nearest_points(mesh, points[:, out], limit=tolerance)
            self._check_reach(out, away, _reach(mesh, cells[out], tolerance))
            self._outside, self._beyond = len(out), float(away.max())
        # Any cell will do for the rows that the diagonal below sets to zero.
        cells[self._found & (cells < 0)] = 0
        return diags((~self._found).astype(float)) @ interpolation_matrix(self.source, points, cells)

    def _check_reach(self, dofs: Index, away: Array, reach: Array) -> None:
        far = np.flatnonzero(~(away <= reach))
        if len(far):
            i = far[np.argmax(away[far])]
            where = ", ".join(f"{x:.4g}" for x in self.target.doflocs[:, dofs[i]])
            raise InputError(
                f"{len(far)} of {self.target.N} dofs lie outside of {self.words}, the one at ({where}) by "
                f"{away[i]:.3g}; expected the same domain, or a tolerance that allows for it"
            )

    def __call__(self, values: Any, name: str) -> tuple[Array, Interpolation | None]:
        """Dof values on `target` of the dof values `values` on `source`, one or several columns, and the record."""
        given = real_array(values, name)
        if given.ndim not in (1, 2) or len(given) != self.source.N:
            expected = f"({self.source.N},) or ({self.source.N}, times), a value for each dof of {self.words}"
            raise InputError(f"{name} has shape {given.shape}; expected {expected}")
        if self._same_dofs:
            return given, None
        self._check_twins(given, name)
        result = np.asarray(self._matrix @ given)
        return result, None if self._complete else self._record(result, given, name)

    def _check_twins(self, given: Array, name: str) -> None:
        twins = self._sites.query_pairs(self._same, output_type="ndarray")
        if len(twins) and np.any(given[twins[:, 0]] != given[twins[:, 1]]):
            place = self.source.doflocs[:, twins[0, 0]].tolist()
            raise InputError(f"{name} has two values at the same place of {self.words}, near {place}; expected one")

    def _record(self, result: Array, given: Array, name: str) -> Interpolation:
        cells = Locator(self.target.mesh).find(self.source.doflocs)
        seen = np.flatnonzero(cells >= 0)
        self._check_size(self.source.N - len(seen))
        back = interpolation_matrix(self.target, self.source.doflocs[:, seen], cells[seen]) @ result
        most = float(np.abs(back - given[seen]).max(initial=0.0))
        scale = float(np.abs(given).max(initial=0.0))
        return Interpolation(
            source=self.words,
            distance=self._distance,
            outside=self._outside,
            beyond=self._beyond,
            unread=int(self.source.N - len(seen)),
            differences={name: most} if len(seen) else {},
            relative={name: most / scale if scale > 0.0 else 0.0} if len(seen) else {},
        )


    def _check_size(self, unread: int) -> None:
        size, own = (float(np.ptp(basis.mesh.p, axis=1).max()) for basis in (self.source, self.target))
        if size > LARGER * own and unread > UNREAD * self.source.N:
            came = f"{unread} of {self.source.N} values of {self.words} lie outside of the problem's mesh"
            sizes = f"they extend over {size:.3g}, the mesh over {own:.3g}"
            raise InputError(f"{came}, and {sizes}; expected the same domain; another unit?")


def same_dofs(first: Basis, second: Basis) -> bool:
    """Whether two bases have the same elements on the same mesh, so that dof vectors of one are those of the other."""
    return type(first.elem) is type(second.elem) and same_mesh(first.mesh, second.mesh)


def on_dofs(
    targets: tuple[Basis, Basis],
    homes: tuple[Basis, Basis],
    parameter: Any,
    state: Any,
    *,
    tolerance: float | None = None,
    words: str | None = None,
) -> tuple[Array, Array | None, Interpolation | None]:
    """Parameter and state on `targets` from dof values on `homes`, both bases of state and parameter; and a record."""
    if tolerance is not None and not (isinstance(tolerance, (int, float, np.number)) and tolerance >= 0.0):
        raise InputError(f"tolerance is {tolerance!r}; expected a distance, not below 0")
    for home in homes:
        degree(home)
    (state_target, target), (state_home, home) = targets, homes
    move = Transfer(home, target, words=words or _described(home), tolerance=tolerance)
    q, record = move(parameter, "parameter")
    if state is None:
        return q, None, record
    if home is not state_home or not same_dofs(target, state_target):
        move = Transfer(state_home, state_target, words=words or _described(state_home), tolerance=tolerance)
    u, other = move(state, "state")
    return q, u, merged([record, other])


def _described(basis: Basis) -> str:
    return f"a mesh of {basis.mesh.nvertices} nodes and {basis.mesh.nelements} cells"


def nearest_points(mesh: Any, points: Array, *, limit: float | None = None) -> tuple[Array, Index, Array]:
    """For points outside of a mesh: the nearest points of its boundary, their cells, and the distances.

    Points farther than `limit` (and the longest edge of the boundary) get the nearest node of the boundary instead.
    """
    facets = mesh.boundary_facets()
    ends = mesh.p[:, mesh.facets[:, facets]]
    nodes = ends.reshape(len(mesh.p), -1)
    away, start = KDTree(nodes.T).query(points.T)
    owner = np.asarray(start % len(facets))
    near = nodes[:, start]
    longest = float(np.linalg.norm(ends[:, -1] - ends[:, 0], axis=0).max())
    close = np.flatnonzero(away <= longest + (BULGE * diameters(mesh).max() if limit is None else limit))
    index = CellIndex(SimpleNamespace(p=mesh.p, t=mesh.facets[:, facets]))
    reach = away[close]
    for query, facet in index.near_boxes(points[:, close] - reach, points[:, close] + reach):
        who = close[query]
        foot = _foot(ends[:, :, facet], points[:, who])
        gap = np.linalg.norm(foot - points[:, who], axis=0)
        order = np.lexsort((gap, who))
        first = order[np.unique(who[order], return_index=True)[1]]
        better = first[gap[first] < away[who[first]]]
        near[:, who[better]], away[who[better]], owner[who[better]] = foot[:, better], gap[better], facet[better]
    return near, mesh.f2t[0, facets[owner]].astype(np.int64), away


def _foot(ends: Array, points: Array) -> Array:
    """The nearest point of each segment, ends of shape (dim, 2, n); of a single end, that end."""
    if ends.shape[1] == 1:
        return ends[:, 0]
    start, along = ends[:, 0], ends[:, 1] - ends[:, 0]
    share = ((points - start) * along).sum(axis=0) / (along**2).sum(axis=0)
    return start + np.clip(share, 0.0, 1.0) * along


def _reach(mesh: Any, cells: Index, tolerance: float | None) -> Array:
    if tolerance is None:
        return BULGE * diameters(mesh)[cells]
    return np.full(len(cells), tolerance)


# Of the square of the longest edge: triangles of less area are rounding of points on a line.
FLAT_TOLERANCE = 1e-12


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
    close = PLACE_TOLERANCE * float(np.ptp(points, axis=0).max())
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
    triangles = triangles[:, np.abs(cross(b - a, c - a)) > FLAT_TOLERANCE * longest]
    if not triangles.size:
        raise InputError(f"the {len(points)} points lie on a line; expected points that span the plane")
    used, numbers = np.unique(triangles, return_inverse=True)
    if len(used) < len(points):
        lost = points[np.setdiff1d(np.arange(len(points)), used)[0]].tolist()
        raise InputError(f"points has {len(points) - len(used)} that are too near to others, such as {lost}; drop them")
    return MeshTri(np.ascontiguousarray(points[used].T), np.ascontiguousarray(numbers.reshape(triangles.shape))), used
