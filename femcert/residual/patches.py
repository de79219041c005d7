"""The elements around each vertex in counterclockwise order, and normal components of a flux from both sides."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..checks import Array
from ..errors import InputError, UncertifiedError
from ..mesh.geometry import cross, diameters, measures
from ..mesh.sample import Sampler

Indices = NDArray[np.int64]

# Local facets by their local vertices, in scikit-fem's order; the cycle 0, 1, ... runs once around the element.
LOCAL_FACETS = {3: ((0, 1), (1, 2), (0, 2)), 4: ((0, 1), (1, 2), (2, 3), (0, 3))}


class Patches:
    """Facet and corner tables of a mesh of triangles or quadrilaterals.

    A *side* of a facet is one of its elements: side 0 is ``f2t[0]``, and the facet's normal points out of it. A
    *corner* is a vertex seen from one of its elements, numbered ``local vertex * elements + element``. A *fan* is a
    maximal chain of corners around a vertex, each one counterclockwise of the one before.

    Attributes
    ----------
    slots
        ``(2, facets)``: ``local facet * elements + element`` on each side, -1 beyond the boundary.
    signs
        ``(local facets, elements)``: +1 where the element is side 0 of its facet, else -1.
    ends
        ``(local facets, 2, elements)``: which end (0 or 1, as in ``mesh.facets``) the local vertices of a facet are.
    """

    def __init__(self, mesh: Any) -> None:
        self.mesh = mesh
        self.local = LOCAL_FACETS[mesh.t.shape[0]]
        elements = np.arange(mesh.nelements)
        t2f, f2t = mesh.t2f, mesh.f2t
        self.boundary = f2t[1] < 0
        first = f2t[0, t2f] == elements
        self.signs = np.where(first, 1.0, -1.0)
        numbers = np.arange(t2f.size).reshape(t2f.shape)
        self.slots = np.full(f2t.shape, -1)
        self.slots[np.where(first, 0, 1), t2f] = numbers
        tail = mesh.facets[0]
        pairs = enumerate(self.local)
        self.ends = np.array([[(mesh.t[v] != tail[t2f[l]]).astype(int) for v in pair] for l, pair in pairs])
        corners = mesh.p[:, mesh.t]
        self.counterclockwise = cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) > 0.0

    @cached_property
    def lengths(self) -> Array:
        """Of the facets."""
        start, end = self.mesh.p[:, self.mesh.facets].transpose(1, 0, 2)
        return np.asarray(np.linalg.norm(end - start, axis=0))

    @cached_property
    def normals(self) -> Array:
        """Outward normals of the local facets times their lengths, ``(2, local facets, elements)``."""
        p, t = self.mesh.p, self.mesh.t
        turn = np.where(self.counterclockwise, 1.0, -1.0)
        along = [p[:, t[(i + 1) % len(t)]] - p[:, t[i]] for i in range(len(t))]
        return np.stack([turn * np.array([edge[1], -edge[0]]) for edge in along], axis=1)

    @cached_property
    def forward(self) -> Array:
        """+1 where the counterclockwise tangent of side 0 runs from the first to the second end of a facet, else -1."""
        local, element = np.divmod(self.slots[0], self.mesh.nelements)
        start = np.where(self.counterclockwise[element], local, (local + 1) % len(self.local))
        return np.where(self.mesh.t[start, element] == self.mesh.facets[0], 1.0, -1.0)

    @cached_property
    def _around(self) -> tuple[Indices, Indices]:
        """Local facets by which a counterclockwise walk around a vertex enters and leaves each corner."""
        n = len(self.local)
        i = np.arange(n)[:, None]
        ahead, behind = i, (i - 1) % n
        entry = np.where(self.counterclockwise, ahead, behind)
        return entry, np.where(self.counterclockwise, behind, ahead)

    @cached_property
    def exits(self) -> Indices:
        """The slot (local facet, element) by which a walk leaves each corner; flat over corners."""
        return (self._around[1] * self.mesh.nelements + np.arange(self.mesh.nelements)).ravel()

    @cached_property
    def entries(self) -> Indices:
        """The slot by which a walk enters each corner."""
        return (self._around[0] * self.mesh.nelements + np.arange(self.mesh.nelements)).ravel()

    @cached_property
    def fans(self) -> Indices:
        """Corners of each fan in order, ``(longest, fans)``, padded with -1; fans that begin at the boundary first."""
        mesh, nt = self.mesh, self.mesh.nelements
        facets = mesh.t2f.ravel()
        corner_at = np.full((2, 2, mesh.facets.shape[1]), -1)
        for l, pair in enumerate(self.local):
            side = (self.signs[l] < 0.0).astype(int)
            for k, vertex in enumerate(pair):
                corner_at[self.ends[l, k], side, mesh.t2f[l]] = vertex * nt + np.arange(nt)
        out = facets[self.exits]
        end = (mesh.t.ravel() != mesh.facets[0, out]).astype(int)
        side = (self.signs.ravel()[self.exits] < 0.0).astype(int)
        following = corner_at[end, 1 - side, out]
        open_starts = np.flatnonzero(self.boundary[facets[self.entries]])
        inner = np.ones(mesh.nvertices, dtype=bool)
        inner[mesh.facets[:, self.boundary]] = False
        any_corner = np.full(mesh.nvertices, -1)
        any_corner[mesh.t.ravel()] = np.arange(mesh.t.size)
        self.closed_from = len(open_starts)
        start = np.concatenate([open_starts, any_corner[inner & (any_corner >= 0)]])
        walk = [start]
        longest = int(np.bincount(mesh.t.ravel()).max())
        while len(walk) <= longest:
            current = walk[-1]
            step = np.where(current >= 0, following[current], -1)
            step[step == start] = -1
            if not np.any(step >= 0):
                break
            walk.append(step)
        fans = np.array(walk)
        if not np.all(np.bincount(fans[fans >= 0], minlength=mesh.t.size) == 1):
            raise InputError("the elements around a vertex do not follow each other; does the mesh fold over itself?")
        return fans


def facet_parameter(mesh: Any, facets: Indices, x: Array) -> Array:
    """Parameters in [0, 1], from the first to the second end, of points ``(2, facets, points)`` on facets."""
    start = mesh.p[:, mesh.facets[0, facets]][:, :, None]
    edge = mesh.p[:, mesh.facets[1, facets]][:, :, None] - start
    return np.asarray(np.sum((x - start) * edge, axis=0) / np.sum(edge**2, axis=0))


# Jumps of this size, relative to the normal component, are rounding.
JUMP_ROUNDING = 1e-9
_CORNERS = {3: np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), 4: np.array([[0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]])}


class Flux(Protocol):
    """A vector field on the mesh that can be sampled. Whether it is conforming is checked."""

    def at(self, sampler: Sampler) -> tuple[Array, Array]:
        """Values ``(dimension, elements, points)`` and divergence ``(elements, points)``."""

    @property
    def trace_degree(self) -> int:
        """Degree of the normal component along a facet."""


class NotConformingError(UncertifiedError):
    """The normal component of a flux jumps between elements."""


class NormalTraces:
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
        if not np.all(jump <= JUMP_ROUNDING * np.abs(one) + 1e-12 * size):
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
