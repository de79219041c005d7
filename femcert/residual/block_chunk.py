"""Fluxes of many columns on a few elements, from normal components, states, sources and stream functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import Array
from ..mesh.geometry import diameters
from ..mesh.sample import Sampler
from ..problem.forward import dense
from .block_maps import FluxMaps
from .equilibrate import Equilibration
from .flux import FacetFlux
from .hierarchy import bubble_count, fit_matrix
from .quadrature import Quadrature
from .weak import WeakResidual


@dataclass(frozen=True)
class Columns:
    """States and their sources, a column for each; both may be combined in any way.

    Attributes
    ----------
    states
        Dof values, ``(dofs, columns)``.
    basis, sources
        The sources as finite-element functions, ``(dofs of the basis, columns)``, dense or sparse.
    """

    states: Array
    basis: Any
    sources: Any

    @property
    def count(self) -> int:
        """How many."""
        return int(self.states.shape[1])


@dataclass(frozen=True)
class Part:
    """What the local maps of a chunk need to know of some columns."""

    columns: Columns
    to_flux: Any
    varies: bool
    stream: Any = field(repr=False)

    def some(self, chosen: slice) -> Part:
        """Some of the columns."""
        block = self.columns
        states = np.ascontiguousarray(block.states[:, chosen])
        some = Columns(states, block.basis, block.sources[:, chosen])
        return replace(self, columns=some, stream=self.stream[:, chosen])


@dataclass(frozen=True)
class Ground:
    """Mesh, coefficient and quadrature of all chunks.

    Attributes
    ----------
    tools, maps
        Equilibration on the mesh.
    r, rule
        The residual of the zero state with zero source, and the rule that it was sampled with.
    """

    tools: Equilibration
    maps: FluxMaps
    r: WeakResidual
    rule: Quadrature

    @cached_property
    def polynomial(self) -> bool:
        """Whether fluxes divided by ``a^1/2`` are polynomials on the elements, so that few numbers describe them."""
        triangles, constant = self.r.sampler.mesh.t.shape[0] == 3, self.r.norm.A.shape[1] == 1
        return triangles and constant and not np.any(self.rule.remainder)

    @cached_property
    def factors(self) -> Array:
        """``‖v - mean v‖_K <= factor_K ‖v‖_V``."""
        mesh, rule = self.r.sampler.mesh, self.rule
        a, c = (np.broadcast_to(w, mesh.nelements) for w in (rule.least_conductivity, rule.least_reaction))
        return np.asarray(np.minimum(diameters(mesh) / (np.pi * np.sqrt(a)), 1.0 / np.sqrt(np.maximum(c, 1e-300))))


class Chunk:
    """Some elements, and the local maps from normal components, states, sources and stream functions on them."""

    def __init__(self, whole: Ground, elements: NDArray[np.int64]) -> None:
        self.whole, self.elements = whole, elements
        mesh, r = whole.r.sampler.mesh, whole.r
        corners = np.ascontiguousarray(mesh.p[:, mesh.t[:, elements]].reshape(2, -1))
        alone = type(mesh)(corners, np.arange(corners.shape[1]).reshape(-1, len(elements)), validate=False)
        self.sampler = Sampler(alone, r.sampler.order)
        self.A, self.C = (part if part.shape[0] == 1 else part[elements] for part in (r.norm.A, r.norm.C))
        self.stream_dofs = whole.tools.space.element_dofs[:, elements].T
        self.facets, self._place = np.unique(mesh.t2f[:, elements], return_inverse=True)

    def fluxes(self, part: Part) -> Array:
        """``a^-1/2 t_j`` in orthonormal coordinates, ``(elements, rows, columns)``."""
        inputs, maps = self._inputs(part), self._maps(part)
        return np.asarray(np.concatenate([maps[0], self.curls(part.varies)], axis=2) @ inputs)

    def sources(self, part: Part) -> tuple[Array | None, float]:
        """What no flux matches of the sources: weighted rests, and the sum of the squared norms of the means."""
        maps, inputs = self._maps(part), self._inputs(part)[:, : -self.stream_dofs.shape[1]]
        lacking = maps[2] @ inputs
        return (maps[1] @ inputs if part.varies else None), float(np.sum(lacking**2))

    def curls(self, varies: bool) -> Array:
        """``curl phi`` of the local stream functions, weighted like fluxes: ``(elements, rows, functions)``."""
        return self._derivatives("curls", varies)

    def gradients(self, varies: bool) -> Array:
        """``a grad phi`` of the same functions, weighted likewise."""
        return self._derivatives("gradients", varies)

    def _derivatives(self, which: str, varies: bool) -> Array:
        key = which, varies
        if key not in self._kept:
            space = self.whole.tools.space
            _, slopes = self.sampler.table(space.elem)
            slope = [self._physical(part) for part in slopes]
            if which == "curls":
                fields = np.array([[s[1], -s[0]] for s in slope])
            else:
                fields = np.array([self.A * s for s in slope])
            if space.element_signs is not None:
                fields = fields * space.element_signs[:, None, self.elements, None]
            self._kept[key] = self._weighted(fields, varies)
        return self._kept[key]

    @cached_property
    def _kept(self) -> dict[Any, Any]:
        return {}

    def _inputs(self, part: Part) -> Array:
        """Normal components, states, sources and stream functions on the elements, ``(elements, inputs, columns)``."""
        key = "inputs", id(part)
        if key not in self._kept:
            whole, columns = self.whole, part.columns
            maps, count = whole.maps, whole.r.sampler.mesh.facets.shape[1]
            rows = self.facets if maps.merged else np.concatenate([self.facets, self.facets + count])
            gamma = maps.state[rows] @ columns.states + dense(part.to_flux[rows] @ columns.sources)
            dofs = columns.basis.element_dofs[:, self.elements].T
            parts = [
                gamma[self._ends],
                columns.states[whole.r.basis.element_dofs[:, self.elements].T],
                dense(columns.sources[dofs.ravel()]).reshape(*dofs.shape, -1),
                part.stream[self.stream_dofs],
            ]
            inputs = np.concatenate(parts, axis=1, dtype=float)
            if maps.bent is not None:
                bent = maps.bent[self.stream_dofs.ravel()] @ columns.states
                inputs[:, -self.stream_dofs.shape[1] :] += bent.reshape(len(dofs), -1, columns.count)
            self._kept[key] = inputs
        return np.asarray(self._kept[key])

    @cached_property
    def _ends(self) -> Any:
        """Rows of the normal components of the chunk that belong to each element: ``(elements, ends)``."""
        whole = self.whole
        place = self._place.reshape(-1, len(self.elements))
        if whole.maps.merged:
            return place.T
        ends = whole.tools.patches.ends[:, :, self.elements]
        return (ends * len(self.facets) + place[:, None]).reshape(-1, len(self.elements)).T

    def _maps(self, part: Part) -> tuple[Array, Array, Array]:
        """Local maps to fluxes, to the rests and to the means of what is missing, weighted."""
        key = "maps", id(part)
        if key not in self._kept:
            whole = self.whole
            values, missing = zip(*self._fields(part), strict=True)
            dx = np.broadcast_to(self.sampler.dx, (len(self.elements), len(self.sampler.W)))
            R = np.array([np.broadcast_to(one, dx.shape) for one in missing])
            area = dx.sum(axis=1)
            mean = np.einsum("ieq,eq->ie", R, dx) / area
            factor = whole.factors[self.elements][:, None] * np.sqrt(dx * (1.0 + self._remainder[:, None]))
            rest = np.moveaxis((R - mean[:, :, None]) * factor, 0, 2)
            lacking = np.moveaxis(mean * np.sqrt(area), 0, 1)[:, None]
            self._kept[key] = self._weighted(np.array(values), part.varies), rest, lacking
        return self._kept[key]

    def _fields(self, part: Part) -> Iterator[tuple[Array, Array]]:
        """For each input the field that it adds to t, and what it adds to ``source + div p``, at the points."""
        whole, sampler, n = self.whole, self.sampler, len(self.elements)
        patches = whole.tools.patches
        signs, slots = patches.signs[:, self.elements], len(patches.local)
        shape = (2, n, len(sampler.W))
        none, still = np.zeros((n, 1)), np.zeros((slots, 2, n))

        def of(outward: Array, source: Array) -> tuple[Array, Array]:
            flux = with_bubbles(patches, outward, source, sampler, whole.tools.degree, part.varies)
            values, divergence = flux.at(sampler)
            return np.broadcast_to(values, shape), source + divergence

        for l in range(slots):
            for ends in [(0, 1)] if whole.maps.merged else [(0,), (1,)]:
                outward = still.copy()
                outward[l, list(ends)] = signs[l]
                yield of(outward, none)
        phi, slopes = sampler.table(whole.r.basis.elem)
        for value, slope in zip(phi, slopes, strict=True):
            field, missing = of(still, -self.C * value if self.C.any() else none)
            yield field - self.A * self._physical(slope), missing
        psi, _ = sampler.table(part.columns.basis.elem)
        for value in psi:
            yield of(still, np.broadcast_to(value, shape[1:]) if np.ptp(value) > 0.0 else none + value[0])

    def _physical(self, slope: Array) -> Array:
        """The gradient of a local function from that on the reference element, ``(2, points)``."""
        return self.sampler.physical([np.broadcast_to(axis, (len(self.elements), len(axis))) for axis in slope])

    def _weighted(self, fields: Array, varies: bool) -> Array:
        """Fields ``(inputs, 2, elements, points)`` times ``(dx / a)^1/2``, or orthonormal coordinates of them."""
        whole, n = self.whole, len(self.elements)
        if whole.polynomial:
            basis = _orthonormal(self.sampler, whole.tools.degree + int(varies))
            scale = np.sqrt(self.sampler.determinant / self.A)[:, 0]
            rows = np.einsum("iaeq,qd->eadi", fields, basis, optimize=True) * scale[:, None, None, None]
            # The lower degrees first, for both components.
            rows = rows.transpose(0, 2, 1, 3)
        else:
            weight = np.sqrt(self.sampler.dx / self.A * (1.0 + self._remainder[:, None]))
            rows = np.moveaxis(fields * weight, 0, 3).transpose(1, 0, 2, 3)
        return np.ascontiguousarray(rows.reshape(n, -1, len(fields)))

    @cached_property
    def _remainder(self) -> Array:
        return np.asarray(
            np.broadcast_to(self.whole.rule.remainder, self.whole.r.sampler.mesh.nelements)[self.elements]
        )


class _LocalFlux(FacetFlux):
    """A flux whose normal components are given element by element, seen from inside."""

    def outward(self) -> Array:
        """As given."""
        return self.gamma.copy() if self.gamma.ndim == 3 else super().outward()


def with_bubbles(patches: Any, gamma: Array, source: Array, sampler: Sampler, degree: int, bubbles: bool) -> FacetFlux:
    """A flux with bubbles that bring its divergence to minus a source, as far as they can."""
    local = SimpleNamespace(local=patches.local, mesh=sampler.mesh) if gamma.ndim == 3 else patches
    none = np.zeros((1, bubble_count(len(patches.local), degree)))
    flux = _LocalFlux(local, gamma, none, degree, None)  # type: ignore[arg-type]
    triangles = len(patches.local) == 3
    if not bubbles or (triangles and source.shape[1] == 1):
        return flux
    lacking = -source if triangles else -(source + flux.at(sampler)[1]) * sampler.determinant
    fit = np.broadcast_to(lacking, (len(lacking), len(sampler.W))) @ fit_matrix(sampler, degree)
    return replace(flux, inside=fit * sampler.determinant if triangles else fit, _base=None)


def _orthonormal(sampler: Sampler, degree: int) -> Array:
    """``(points, polynomials)``: weights times polynomials that are orthonormal on the reference triangle."""
    x, y = sampler.X
    powers = [(i, total - i) for total in range(degree + 1) for i in range(total + 1)]
    root = np.sqrt(sampler.W)
    q, _ = np.linalg.qr(np.array([x**i * y**j for i, j in powers]).T * root[:, None])
    return np.asarray(q * root[:, None])
