"""The line meshes and sensors that three experiments share."""

from __future__ import annotations

import numpy as np
from skfem import Basis, ElementLineP1, MeshLine

from ...checks import Array
from ...problem import PointSensors


def line_basis(interior: int) -> Basis:
    """P1 on the unit interval with this many interior nodes."""
    return Basis(MeshLine(np.linspace(0.0, 1.0, interior + 2)), ElementLineP1())


def spread_sensors(basis: Basis, observations: int) -> PointSensors:
    """The paper's spread observations: interior nodes number ``linspace(0, n - 1, m)``, truncated to integers."""
    nodes = np.sort(basis.mesh.p[0])[1:-1]
    chosen = np.linspace(0, nodes.size - 1, observations).astype(int)
    return PointSensors(basis, nodes[chosen][None])


def decaying(modes: int, decay: float, norm: float) -> Array:
    """Coordinates ``(-1)^(j+1) j^-decay``, scaled to a norm."""
    j = np.arange(1.0, modes + 1.0)
    c = (-1.0) ** (j + 1) * j**-decay
    return norm * c / np.linalg.norm(c)
