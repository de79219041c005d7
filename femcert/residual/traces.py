"""Normal components of a flux on the facets from both sides: whether it is conforming, and its boundary values."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import Array
from ..errors import UncertifiedError
from ..mesh.geometry import diameters, measures
from ..mesh.sample import Sampler
from .flux import Flux
from .stars import LOCAL_FACETS

# Jumps of this size, relative to the normal component, are rounding.
ROUNDING = 1e-9
_CORNERS = {3: np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), 4: np.array([[0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]])}


class NotConformingError(UncertifiedError):
    """The normal component of a flux jumps between elements."""


class FacetCheck:
    """The facets of a mesh, from both sides; made once for all fluxes on the mesh."""

    def __init__(self, sampler: Sampler) -> None:
        self._geometry, self.mesh = sampler, sampler.mesh
        mesh = sampler.mesh
        self.first, self.second = (_slots(mesh, side) for side in (0, 1))
        self._inner = np.flatnonzero(mesh.f2t[1] >= 0)
        self._points: dict[int, tuple[Array, Sampler]] = {}
        self.diameters, self.areas = diameters(mesh), measures(mesh)

    def traces(self, flux: Flux, facets: NDArray[np.int64]) -> tuple[Array, Array]:
        """Outward normal component of a flux on boundary facets, after a check that it is continuous across all others.

        Returns
        -------
        points, values
            Parameters in [0, 1] from the first to the second end of a facet, and values ``(facets, points)``; on lines,
            one.

        Raises
        ------
        UncertifiedError
            The normal component jumps, so that the field is no conforming flux.
        """
        points, outward = self.outward(flux)
        one, two = outward[self.first[self._inner]], outward[self.second[self._inner]]
        jump = np.abs(one + two)
        size = float(np.abs(outward).max(initial=0.0))
        # Rounding against the flux there, and against rounding of the largest flux anywhere.
        if not np.all(jump <= ROUNDING * np.abs(one) + 1e-12 * size):
            raise NotConformingError(
                f"the flux is not conforming: its normal component jumps by up to {float(jump.max()):.3g}; "
                "expected an H(div) field, such as one of ElementTriRT1"
            )
        return points, outward[self.first[facets]]

    def outward(self, flux: Any) -> tuple[Array, Array]:
        """Parameters along the facets, and outward normal components ``(local facets * elements, points)``."""
        return self._on_lines(flux) if self.mesh.t.shape[0] == 2 else self._on_polygons(flux)

    def jumps(self, field: Any) -> Array:
        """``‖[p . n]‖²`` on each inner facet, 0 on the boundary."""
        points, outward = self.outward(field)
        jump = outward[self.first] + np.where(self.mesh.f2t[1] >= 0, 1.0, 0.0)[:, None] * outward[self.second]
        jump[self.mesh.f2t[1] < 0] = 0.0
        if self.mesh.t.shape[0] == 2:
            return np.asarray(jump[:, 0] ** 2)
        weights = np.polynomial.legendre.leggauss(len(points))[1] / 2.0
        ends = self.mesh.p[:, self.mesh.facets]
        return np.asarray(jump**2 @ weights * np.linalg.norm(ends[:, 1] - ends[:, 0], axis=0))

    def _on_lines(self, flux: Flux) -> tuple[Array, Array]:
        mesh = self.mesh
        values, _ = flux.at(self._geometry.at_points(np.array([[0.0, 1.0]])))
        ends = np.broadcast_to(values[0], (mesh.nelements, 2))
        right = np.sign(mesh.p[0, mesh.t[1]] - mesh.p[0, mesh.t[0]])
        return np.zeros(1), np.concatenate([-right * ends[:, 0], right * ends[:, 1]])[:, None]

    def _on_polygons(self, flux: Flux) -> tuple[Array, Array]:
        count = flux.trace_degree + 1
        s, sampler = self._sampler(count)
        values, _ = flux.at(sampler)
        normals, backward = self._normals
        outward = np.empty((len(self.mesh.t2f), self.mesh.nelements, count))
        for l, (n, turned) in enumerate(zip(normals, backward, strict=True)):
            here = values[:, :, l * count : (l + 1) * count] if values.shape[2] > 1 else values
            np.multiply(here[0], n[0], out=outward[l])
            outward[l] += here[1] * n[1]
            outward[l, turned] = outward[l, turned, ::-1]
        return s, outward.reshape(-1, count)

    def _sampler(self, count: int) -> tuple[Array, Sampler]:
        """Gauss points on the local facets, one after the other."""
        if count not in self._points:
            s = (np.polynomial.legendre.leggauss(count)[0] + 1.0) / 2.0
            n = self.mesh.t.shape[0]
            corners = _CORNERS[n]
            X = [np.outer(corners[:, i], 1.0 - s) + np.outer(corners[:, j], s) for i, j in LOCAL_FACETS[n]]
            self._points[count] = s, self._geometry.at_points(np.hstack(X))
        return self._points[count]

    @cached_property
    def _normals(self) -> tuple[list[Array], list[NDArray[np.int64]]]:
        """Outward unit normals of the local facets ``(2, elements, 1)``, and the elements that see them backwards."""
        p, t = self.mesh.p, self.mesh.t
        middle = p[:, t].mean(axis=1)
        normals, backward = [], []
        for l, (i, j) in enumerate(LOCAL_FACETS[t.shape[0]]):
            edge = p[:, t[j]] - p[:, t[i]]
            n = np.array([edge[1], -edge[0]]) / np.linalg.norm(edge, axis=0)
            n *= np.sign(np.sum(n * (p[:, t[i]] - middle), axis=0))
            normals.append(n[:, :, None])
            backward.append(np.flatnonzero(t[i] != self.mesh.facets[0, self.mesh.t2f[l]]))
        return normals, backward


def _slots(mesh: Any, side: int) -> NDArray[np.int64]:
    """``local facet * elements + element`` of each facet on one side."""
    n = mesh.nelements
    result = np.full(mesh.facets.shape[1], -1)
    for l, facets in enumerate(mesh.t2f):
        here = mesh.f2t[side, facets] == np.arange(n)
        result[facets[here]] = l * n + np.flatnonzero(here)
    return result
