"""How well interpolants represent the states of all sources, where that is known in closed form.

``‖w - I w‖_V <= K ‖q‖`` for ``-div(a grad w) = q`` with homogeneous conditions and the linear interpolant I:

- On a line with a constant on each element the slope of ``w - I w`` has the mean zero on elements, so
  ``K = max h / (pi a^1/2)``.
- On triangles of a convex domain with ``w = 0`` on all of its boundary and one conductivity, ``|w|_2 <= ‖q‖ / a``
  (Grisvard), and ``|w - I w|_1 <= k |w|_2`` on a triangle with edges A, B, C and area S, where

      ``k² = (A B C / (4 S))² - (A² + B² + C²) / 30 - S² (A^-2 + B^-2 + C^-2) / 5``

  (Kobayashi 2011; Kobayashi, Tsuchiya 2014), at most the square of the radius of the circumscribed circle.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from ..checks import Array
from ..mesh.geometry import diameters, measures

# Parts of the extent of a mesh by which a convex one may miss its hull.
TOLERANCE = 1e-12
ROUND_UP = 1.0 + 1e-12


def interpolation_constant(mesh: Any, dirichlet: NDArray[np.int64], conductivity: Array) -> float | None:
    """K, see above; None where it is not known.

    Parameters
    ----------
    mesh
        Lines, triangles or quadrilaterals.
    dirichlet
        Indices of the boundary facets where states vanish.
    conductivity
        ``a_K`` of each element.
    """
    if mesh.dim() == 1:
        return float(np.max(diameters(mesh) / np.sqrt(conductivity))) / np.pi * ROUND_UP
    held = len(np.setdiff1d(mesh.boundary_facets(), dirichlet)) == 0
    if mesh.t.shape[0] != 3 or not held or np.ptp(conductivity) > 0.0 or not is_convex(mesh):
        return None
    return float(np.max(triangle_constants(mesh.p[:, mesh.t]))) / float(np.sqrt(conductivity[0])) * ROUND_UP


def triangle_constants(corners: Array) -> Array:
    """The k of triangles with the corners ``(2, 3, n)``."""
    edges = np.roll(corners, -1, axis=1) - corners
    squares = np.sum(edges**2, axis=0)
    area = 0.5 * np.abs(edges[0, 0] * edges[1, 1] - edges[1, 0] * edges[0, 1])
    circle = np.prod(squares, axis=0) / (16.0 * area**2)
    return np.sqrt(circle - np.sum(squares, axis=0) / 30.0 - area**2 * np.sum(1.0 / squares, axis=0) / 5.0)


def is_convex(mesh: Any) -> bool:
    """Whether a mesh in the plane fills its convex hull, without slits."""
    used = mesh.p[:, np.unique(mesh.t)]
    hull, extent = ConvexHull(used.T), float(np.ptp(used, axis=1).max())
    if abs(hull.volume - float(np.sum(measures(mesh)))) > TOLERANCE * extent**2:
        return False
    middles = mesh.p[:, mesh.facets[:, mesh.boundary_facets()]].mean(axis=1)
    # On some edge of the hull, each.
    off = hull.equations[:, :2] @ middles + hull.equations[:, 2:]
    return bool(np.all(np.max(off, axis=0) >= -TOLERANCE * extent))
