"""Fluxes of many residuals at once, and the Gram matrices of what they miss: energy errors of all combinations.

Fluxes are linear: if ``p_j`` is a conforming flux for column j, ``sum c_j p_j`` is one for the combination c. So with
``t_j = p_j - a grad u_j`` and the parts of the sources that no flux matches, the bound of `majorant` for the
combination is a quadratic form in c.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from ..checks import Array
from ..mesh.elements import degree
from ..mesh.geometry import diameters
from ..mesh.sample import Sampler
from .block_maps import FluxMaps, flux_maps
from .equilibrate import ENOUGH
from .flux import FacetFlux
from .hierarchy import block_conjugate_gradients, bubble_count, fit_matrix
from .quadrature import Quadrature
from .weak import WeakResidual
from .workspace import Workspace

# Numbers in the arrays of a chunk of elements, and of a batch of stream functions.
CHUNK, BATCH = 6_000_000, 60_000_000


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


@dataclass
class Misfits:
    """Gram matrices of what the fluxes of some columns miss.

    Attributes
    ----------
    flux
        ``G_ij = (a^-1 t_i, t_j)``.
    oscillation
        Of the sources less their means and less what bubbles match, weighted with ``h_K² / (pi² a_K)``; None: zero.
    both
        Of a number for each combination that is at least ``(sum_K (flux_K + oscillation_K)²)^1/2``.
    lacking
        Root of the sum over columns of the squared L2 norms of what is missing in the balance of the elements.
    """

    flux: Array
    oscillation: Array | None
    both: Array
    lacking: float = 0.0


@dataclass(frozen=True)
class _Part:
    """What the local maps of a chunk need to know of some columns."""

    columns: Columns
    to_flux: Any
    varies: bool
    stream: Array = field(repr=False)


class BlockFluxes:
    """Equilibrated fluxes for blocks of columns, evaluated on one chunk of elements after the other.

    Parameters
    ----------
    r
        The residual of the zero state with zero source, and zero data on the natural boundary: coefficient and rule.
    rule
        With which it was sampled.
    steps
        Most improving steps of the fluxes.
    """

    def __init__(
        self, workspace: Workspace, r: WeakResidual, rule: Quadrature, blocks: tuple[Columns, ...], *, steps: int
    ) -> None:
        self.workspace, self.tools, self.r, self.rule = workspace, workspace.equilibration, r, rule
        self.maps: FluxMaps = flux_maps(self.tools, r)
        mesh = r.sampler.mesh
        self.order = _by_place(mesh)
        self.triangles = mesh.t.shape[0] == 3
        self.size = diameters(mesh)
        varies = not self.triangles or bool(r.norm.C.any())
        self.parts = [self._part(block, varies or degree(block.basis) > 0) for block in blocks]
        if steps > 0:
            self._improve(steps)

    def _part(self, block: Columns, varies: bool) -> _Part:
        stream = np.zeros((self.tools.space.N, block.count), dtype=np.float32)
        return _Part(block, self.maps.of_source(block.basis), varies, stream)

    @cached_property
    def polynomial(self) -> bool:
        """Whether fluxes divided by ``a^1/2`` are polynomials on the elements, so that few numbers describe them."""
        return self.triangles and self.r.norm.A.shape[1] == 1 and not np.any(self.rule.remainder)

    def chunks(self, columns: int) -> Iterator[_Chunk]:
        """All elements, so many at a time that arrays for this many columns stay small."""
        points = len(self.r.sampler.W)
        count = max(CHUNK // (columns * (4 * points + 24)), 64)
        for start in range(0, len(self.order), count):
            yield _Chunk(self, self.order[start : start + count])

    def _improve(self, steps: int) -> None:
        """Stream functions that bring the fluxes closer to ``a grad u``, as in `equilibrated_flux`."""
        space, mesh, facets = self.tools.space, self.r.sampler.mesh, self.r.traces.facets
        matrices = self.tools.matrices(1.0 / self.r.sampler.means(self.r.norm.A))
        free = np.ones(space.N, dtype=bool)
        free[mesh.facets[:, facets]] = False
        free[space.on_facets[:, facets]] = False
        A = matrices.assembled()
        for part in self.parts:
            most = max(BATCH // space.N, 1)
            for start in range(0, part.columns.count, most):
                chosen = slice(start, min(start + most, part.columns.count))
                pull, square = self._pull(part, chosen)
                part.stream[:, chosen] = block_conjugate_gradients(
                    A, pull, matrices.diagonal, free, steps=steps, enough=ENOUGH, square=square
                )

    def _pull(self, part: _Part, chosen: slice) -> tuple[Array, Array]:
        """Minus ``(a^-1 t_j, curl phi)`` for the stream functions phi, and ``‖a^-1/2 t_j‖²``."""
        n = chosen.stop - chosen.start
        pull, square = np.zeros((self.tools.space.N, n)), np.zeros(n)
        for chunk in self.chunks(n):
            T, curls = chunk.fluxes(part, chosen), chunk.curls(part.varies)
            square += np.einsum("erc,erc->c", T, T)
            dofs, place = np.unique(chunk.stream_dofs, return_inverse=True)
            local = -(curls.transpose(0, 2, 1) @ T)
            gather = csr_matrix((np.ones(place.size), (place.ravel(), np.arange(place.size))))
            pull[dofs] += gather @ local.reshape(-1, n)
        return pull, square

    def misfits(self) -> tuple[list[Misfits], dict[tuple[int, int], Array]]:
        """For every block its Gram matrices, and for every pair of blocks ``(a^-1 t_i, t_j)``, i from the first one."""
        pairs = [(i, j) for j in range(len(self.parts)) for i in range(j)]
        found = [_Sums(part.columns.count) for part in self.parts]
        cross = {(i, j): np.zeros((found[i].count, found[j].count)) for i, j in pairs}
        for chunk in self.chunks(sum(part.columns.count for part in self.parts)):
            fluxes = []
            for part, sums in zip(self.parts, found, strict=True):
                T = chunk.fluxes(part)
                sums.add(T, *chunk.sources(part))
                fluxes.append(T)
            for i, j in pairs:
                cross[i, j] += _common(fluxes[i], fluxes[j])
        return [sums.result() for sums in found], cross

    def single(self, block: int, weights: Array) -> FacetFlux:
        """The flux of one combination of a block, as `majorant` takes it."""
        part, r = self.parts[block], self.r
        U, F = part.columns.states @ weights, part.columns.sources @ weights
        gamma = self.maps.state @ U + part.to_flux @ F
        gamma = np.array([gamma, gamma]) if self.maps.merged else gamma.reshape(2, -1)
        stream = part.stream.astype(float) @ weights
        if self.maps.bent is not None:
            stream = stream + self.maps.bent @ U
        source = r.sampler.values(part.columns.basis, F) - r.norm.C * r.sampler.values(r.basis, U)
        flux = _with_inside(self.tools.patches, gamma, source, r.sampler, self.tools.degree, part.varies)
        return replace(flux, space=self.tools.space, stream=stream)


class _Sums:
    """Gram matrices, added up over chunks of elements."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.flux, self.both, self.lacking = np.zeros((count, count)), np.zeros((count, count)), 0.0
        self.oscillation: Array | None = None

    def add(self, T: Array, rest: Array | None, lacking: float) -> None:
        """Fluxes ``(elements, rows, columns)``, weighted rests of sources likewise, and squares of defects."""
        G = _gram(T)
        self.flux += G
        self.lacking += lacking
        if rest is None:
            self.both += G
            return
        if self.oscillation is None:
            self.oscillation = np.zeros_like(self.flux)
        self.oscillation += _gram(rest)
        # (x + y)² <= (1 + s) x² + (1 + 1/s) y² on each element, equal for one column.
        x, y = (np.sqrt(np.einsum("erc,erc->e", part, part))[:, None, None] for part in (T, rest))
        wide, high = (
            np.sqrt(1.0 + np.divide(b, a, out=np.zeros_like(a), where=a > 0.0)) for a, b in ((x, y), (y, x))
        )
        self.both += _gram(wide * T) + _gram(high * rest)

    def result(self) -> Misfits:
        """What came out."""
        return Misfits(self.flux, self.oscillation, self.both, float(np.sqrt(self.lacking)))


def _gram(T: Array) -> Array:
    rows = T.reshape(-1, T.shape[2])
    return np.asarray(rows.T @ rows)


def _common(first: Array, second: Array) -> Array:
    """``(a^-1 t_i, t_j)`` from numbers of which one side may have only the first ones, the others being zero."""
    rows = min(first.shape[1], second.shape[1])
    a, b = (np.ascontiguousarray(part[:, :rows]).reshape(-1, part.shape[2]) for part in (first, second))
    return np.asarray(a.T @ b)


class _Chunk:
    """Some elements, and the local maps from normal components, states, sources and stream functions on them."""

    def __init__(self, whole: BlockFluxes, elements: NDArray[np.int64]) -> None:
        self.whole, self.elements = whole, elements
        mesh, r = whole.r.sampler.mesh, whole.r
        corners = np.ascontiguousarray(mesh.p[:, mesh.t[:, elements]].reshape(2, -1))
        alone = type(mesh)(corners, np.arange(corners.shape[1]).reshape(-1, len(elements)), validate=False)
        self.sampler = Sampler(alone, r.sampler.order)
        self.A, self.C = (part if part.shape[0] == 1 else part[elements] for part in (r.norm.A, r.norm.C))
        self.stream_dofs = whole.tools.space.element_dofs[:, elements].T
        self.facets, self._place = np.unique(mesh.t2f[:, elements], return_inverse=True)
        self._rows: dict[bool, tuple[Array, ...]] = {}

    def fluxes(self, part: _Part, chosen: slice | None = None) -> Array:
        """``a^-1/2 t_j`` in orthonormal coordinates, ``(elements, rows, columns)``."""
        inputs, maps = self._inputs(part, chosen or slice(None)), self._maps(part)
        return np.asarray(np.concatenate([maps[0], self.curls(part.varies)], axis=2) @ inputs)

    def sources(self, part: _Part) -> tuple[Array | None, float]:
        """What no flux matches of the sources: weighted rests, and the sum of the squared norms of the means."""
        maps, inputs = self._maps(part), self._inputs(part, slice(None), with_stream=False)
        lacking = maps[2] @ inputs
        return (maps[1] @ inputs if part.varies else None), float(np.sum(lacking**2))

    def curls(self, varies: bool) -> Array:
        """``curl phi`` of the local stream functions, weighted like fluxes: ``(elements, rows, functions)``."""
        key = "curls", varies
        if key not in self._kept:
            space = self.whole.tools.space
            _, slopes = self.sampler.table(space.elem)
            slope = [self._physical(part) for part in slopes]
            fields = np.array([[s[1], -s[0]] for s in slope])
            if space.element_signs is not None:
                fields = fields * space.element_signs[:, None, self.elements, None]
            self._kept[key] = self._weighted(fields, varies)
        return self._kept[key]

    @cached_property
    def _kept(self) -> dict[Any, Any]:
        return {}

    def _inputs(self, part: _Part, chosen: slice, with_stream: bool = True) -> Array:
        """Normal components, states and sources (and stream functions) on the elements: ``(elements, inputs, n)``."""
        key = "inputs", id(part), chosen.start, chosen.stop
        if key not in self._kept:
            whole, columns = self.whole, part.columns
            maps, count = whole.maps, whole.r.sampler.mesh.facets.shape[1]
            rows = self.facets if maps.merged else np.concatenate([self.facets, self.facets + count])
            U, F = columns.states[:, chosen], columns.sources[:, chosen]
            gamma = maps.state[rows] @ U + _dense(part.to_flux[rows] @ F)
            stream = part.stream[self.stream_dofs, chosen].astype(float)
            if maps.bent is not None:
                stream += (maps.bent[self.stream_dofs.ravel()] @ U).reshape(stream.shape)
            dofs = columns.basis.element_dofs[:, self.elements].T
            sources = _dense(F[dofs.ravel()]).reshape(*dofs.shape, -1)
            states = U[whole.r.basis.element_dofs[:, self.elements].T]
            self._kept[key] = np.concatenate([gamma[self._ends], states, sources, stream], axis=1)
        found = self._kept[key]
        return found if with_stream else found[:, : -self.stream_dofs.shape[1]]

    @cached_property
    def _ends(self) -> Any:
        """Rows of the normal components of the chunk that belong to each element: ``(elements, ends)``."""
        whole = self.whole
        place = self._place.reshape(-1, len(self.elements))
        if whole.maps.merged:
            return place.T
        ends = whole.tools.patches.ends[:, :, self.elements]
        return (ends * len(self.facets) + place[:, None]).reshape(-1, len(self.elements)).T

    def _maps(self, part: _Part) -> tuple[Array, Array, Array]:
        """Local maps to fluxes, to the rests and to the means of what is missing, weighted."""
        key = "maps", id(part)
        if key not in self._kept:
            values, missing = zip(*self._fields(part), strict=True)
            dx = np.broadcast_to(self.sampler.dx, (len(self.elements), len(self.sampler.W)))
            R = np.array([np.broadcast_to(one, dx.shape) for one in missing])
            area = dx.sum(axis=1)
            mean = np.einsum("ieq,eq->ie", R, dx) / area
            factor = self._factor[:, None] * np.sqrt(dx * (1.0 + self._remainder[:, None]))
            rest = np.moveaxis((R - mean[:, :, None]) * factor, 0, 2)
            lacking = np.moveaxis(mean * np.sqrt(area), 0, 1)[:, None]
            self._kept[key] = self._weighted(np.array(values), part.varies), rest, lacking
        return self._kept[key]

    def _fields(self, part: _Part) -> Iterator[tuple[Array, Array]]:
        """For each input the field that it adds to t, and what it adds to ``source + div p``, at the points."""
        whole, sampler, n = self.whole, self.sampler, len(self.elements)
        patches = whole.tools.patches
        signs, slots = patches.signs[:, self.elements], len(patches.local)
        shape = (2, n, len(sampler.W))
        none, still = np.zeros((n, 1)), np.zeros((slots, 2, n))

        def of(outward: Array, source: Array) -> tuple[Array, Array]:
            flux = _with_inside(patches, outward, source, sampler, whole.tools.degree, part.varies)
            values, divergence = flux.at(sampler)
            return np.broadcast_to(values, shape), source + divergence

        for l in range(slots):
            for ends in ([(0, 1)] if whole.maps.merged else [(0,), (1,)]):
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
        return np.asarray(np.broadcast_to(self.whole.rule.remainder, len(self.whole.order))[self.elements])

    @cached_property
    def _factor(self) -> Array:
        """``‖v - mean v‖_K <= factor_K ‖v‖_V``."""
        rule, count = self.whole.rule, len(self.whole.order)
        a, c = (np.broadcast_to(w, count)[self.elements] for w in (rule.least_conductivity, rule.least_reaction))
        return np.asarray(
            np.minimum(self.whole.size[self.elements] / (np.pi * np.sqrt(a)), 1.0 / np.sqrt(np.maximum(c, 1e-300)))
        )


class _LocalFlux(FacetFlux):
    """A flux whose normal components are given element by element, seen from inside."""

    def outward(self) -> Array:
        """As given."""
        return self.gamma.copy() if self.gamma.ndim == 3 else super().outward()


def _with_inside(
    patches: Any, gamma: Array, source: Array, sampler: Sampler, degree: int, bubbles: bool
) -> FacetFlux:
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


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if issparse(matrix) else matrix)


def _orthonormal(sampler: Sampler, degree: int) -> Array:
    """``(points, polynomials)``: weights times polynomials that are orthonormal on the reference triangle."""
    x, y = sampler.X
    powers = [(i, total - i) for total in range(degree + 1) for i in range(total + 1)]
    root = np.sqrt(sampler.W)
    q, _ = np.linalg.qr(np.array([x**i * y**j for i, j in powers]).T * root[:, None])
    return np.asarray(q * root[:, None])


def _by_place(mesh: Any) -> NDArray[np.int64]:
    """Elements in the order of a curve that fills the plane, so that those of a chunk are near to each other."""
    middle = mesh.p[:, mesh.t].mean(axis=1)
    low, size = middle.min(axis=1), float(np.ptp(middle, axis=1).max()) or 1.0
    x, y = (((middle[i] - low[i]) / size * 65535.0).astype(np.int64) for i in (0, 1))
    key = np.zeros(middle.shape[1], dtype=np.int64)
    for bit in range(16):
        key |= ((x >> bit) & 1) << (2 * bit) | ((y >> bit) & 1) << (2 * bit + 1)
    return np.asarray(np.argsort(key, kind="stable"))

