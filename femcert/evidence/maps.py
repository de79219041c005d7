"""Intervals over a domain: of values that are smoothed over discs about many points, together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix

from ..checks import Array
from ..errors import InputError
from ..mesh.elements import degree
from ..problem.sensors import AverageSensors
from ..problem.space import ParameterSpace
from .functionals import restricted
from .interval import Interval, IntervalTable

AXES = "xyz"


@dataclass(frozen=True, repr=False)
class PointInterval(Interval):
    """An interval of a smoothed value, and where it is.

    Attributes
    ----------
    point
        The centre of the disc.
    """

    point: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping, with a number for each coordinate and the sign."""
        return {**dict(zip(AXES, self.point, strict=False)), "sign": self.sign, **super().to_dict()}


@dataclass(frozen=True, repr=False)
class EvidenceMap(IntervalTable):
    """What the data say of smoothed values all over a domain; made by `Evidence.map`.

    A table, whose rows hold together: so "the sign is certain in all these places" is one statement, and has the
    confidence of the table. Nothing is said of values between the discs, or on scales below their radius.

    Attributes
    ----------
    radius
        Of the discs.
    """

    radius: float

    @cached_property
    def points(self) -> Array:
        """The centres, ``(n, dimension)``."""
        return np.array([row.point for row in self.intervals if isinstance(row, PointInterval)])

    @cached_property
    def lower(self) -> Array:
        """Lower ends, ``(n,)``."""
        return np.array([row.lower.value for row in self.intervals])

    @cached_property
    def upper(self) -> Array:
        """Upper ends."""
        return np.array([row.upper.value for row in self.intervals])

    @cached_property
    def estimate(self) -> Array:
        """The middles."""
        return np.array([row.estimate for row in self.intervals])

    @cached_property
    def sign(self) -> NDArray[np.int64]:
        """1 or -1 where the sign of the truth is certain, else 0."""
        return np.array([row.sign for row in self.intervals])

    def summary(self) -> dict[str, str]:
        """How many discs, where the sign is certain, and for whom."""
        signs = f"positive at {np.sum(self.sign > 0)}, negative at {np.sum(self.sign < 0)}, open at the others"
        return {
            "intervals": f"{len(self)} discs of radius {self.radius:.3g}, together at {100.0 * self.confidence:.4g} %",
            "sign": signs,
            "claim": self.claim,
        }


def spread_points(mesh: Any, apart: float) -> Array:
    """Of each cell of a grid with this spacing the vertex of the mesh nearest to its middle, if any, ``(n, d)``.

    Parameters
    ----------
    mesh
        Of scikit-fem.
    apart
        The spacing.
    """
    vertices = mesh.p[:, np.unique(mesh.t)].T
    corner = vertices.min(axis=0)
    cells = np.floor((vertices - corner) / apart + 1e-9)
    middle = corner + (cells + 0.5) * apart
    order = np.lexsort((np.linalg.norm(vertices - middle, axis=1), *cells.T))
    first = np.unique(cells[order], axis=0, return_index=True)[1]
    return np.asarray(vertices[order[first]])


def smoothed_values(space: ParameterSpace, radius: float, points: Any) -> tuple[AverageSensors, list[str], Any]:
    """Means over discs, their names, and the functionals on the dofs that they are, sparse columns.

    Parameters
    ----------
    space
        The class.
    radius
        Of the discs.
    points
        The centres; None: `spread_points`, a radius apart.
    """
    basis = space.basis
    if basis is None or degree(basis) == 0:
        raise InputError("a map smooths continuous functions on a mesh; for other parameters ask for a table of means")
    sensors = AverageSensors(basis, spread_points(basis.mesh, radius) if points is None else points, radius=radius)
    names = [f"about ({', '.join(f'{x:.3g}' for x in point)})" for point in sensors.points]
    return sensors, names, csc_matrix(restricted(space, sensors.matrix.T))


def placed(table: IntervalTable, points: Array, radius: float) -> EvidenceMap:
    """A table with the places of its rows."""
    rows: Sequence[Interval] = table.intervals
    return EvidenceMap(
        tuple(PointInterval(**vars(row), point=tuple(point.tolist())) for row, point in zip(rows, points, strict=True)),
        radius,
    )
