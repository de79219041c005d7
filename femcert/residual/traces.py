"""Normal components of a flux on the facets, from both sides: whether it is conforming, and its values on the boundary."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UncertifiedError
from ..problem.checks import Array
from ..problem.sampling import Sampler
from .flux import Flux
from .stars import LOCAL_FACETS

# Jumps of this size, relative to the flux, are rounding.
ROUNDING = 1e-9
_CORNERS = {3: np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), 4: np.array([[0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]])}


def checked_traces(flux: Flux, mesh: Any, facets: NDArray[np.int64]) -> tuple[Array, Array]:
    """Outward normal component of a flux on boundary facets, after a check that it is continuous across all others.

    Returns
    -------
    points, values
        Parameters in [0, 1] from the first to the second end of a facet, and values ``(facets, points)``; on lines, one.

    Raises
    ------
    UncertifiedError
        The normal component jumps, so that the field is no conforming flux.
    """
    if mesh.t.shape[0] == 2:
        points, outward, sizes = _on_lines(flux, mesh)
    else:
        points, outward, sizes = _on_polygons(flux, mesh)
    elements = mesh.nelements
    first = _slots(mesh, 0)
    inner = np.flatnonzero(mesh.f2t[1] >= 0)
    second = _slots(mesh, 1)[inner]
    jump = np.abs(outward[first[inner]] + outward[second])
    size = np.maximum(sizes[first[inner] % elements], sizes[second % elements])[:, None]
    worst = float(np.max(jump - ROUNDING * size, initial=0.0))
    # Against the flux of the two elements, and against rounding of the whole field.
    if not worst <= 1e-13 * float(sizes.max(initial=0.0)):
        raise UncertifiedError(
            f"the flux is not conforming: its normal component jumps by up to {float(jump.max()):.3g} across facets; "
            "expected an H(div) field, such as one of ElementTriRT1"
        )
    return points, outward[first[facets]]


def _on_lines(flux: Flux, mesh: Any) -> tuple[Array, Array, Array]:
    values, _ = flux.at(Sampler(mesh, 0, points=np.array([[0.0, 1.0]])))
    ends = np.broadcast_to(values[0], (mesh.nelements, 2))
    right = np.sign(mesh.p[0, mesh.t[1]] - mesh.p[0, mesh.t[0]])
    outward = np.concatenate([-right * ends[:, 0], right * ends[:, 1]])[:, None]
    return np.zeros(1), outward, np.abs(ends).max(axis=1)


def _on_polygons(flux: Flux, mesh: Any) -> tuple[Array, Array, Array]:
    count = flux.trace_degree + 1
    s = (np.polynomial.legendre.leggauss(count)[0] + 1.0) / 2.0
    local, corners = LOCAL_FACETS[mesh.t.shape[0]], _CORNERS[mesh.t.shape[0]]
    X = np.hstack([np.outer(corners[:, i], 1.0 - s) + np.outer(corners[:, j], s) for i, j in local])
    values, _ = flux.at(Sampler(mesh, 0, points=X))
    values = np.broadcast_to(values, (2, mesh.nelements, X.shape[1])).reshape(2, -1, len(local), count)
    p, t = mesh.p, mesh.t
    middle = p[:, t].mean(axis=1)
    parts = []
    for l, (i, j) in enumerate(local):
        edge = p[:, t[j]] - p[:, t[i]]
        normal = np.array([edge[1], -edge[0]]) / np.linalg.norm(edge, axis=0)
        normal *= np.sign(np.sum(normal * (p[:, t[i]] - middle), axis=0))
        along = normal[0][:, None] * values[0, :, l] + normal[1][:, None] * values[1, :, l]
        backward = t[i] != mesh.facets[0, mesh.t2f[l]]
        parts.append(np.where(backward[:, None], along[:, ::-1], along))
    return s, np.concatenate(parts), np.sqrt(np.max(np.sum(values**2, axis=0), axis=(1, 2)))


def _slots(mesh: Any, side: int) -> NDArray[np.int64]:
    """``local facet * elements + element`` of each facet on one side."""
    n = mesh.nelements
    result = np.full(mesh.facets.shape[1], -1)
    for l, facets in enumerate(mesh.t2f):
        here = mesh.f2t[side, facets] == np.arange(n)
        result[facets[here]] = l * n + np.flatnonzero(here)
    return result
