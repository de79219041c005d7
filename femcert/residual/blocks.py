"""Fluxes of many residuals at once, and the Gram matrices of what they miss: energy errors of all combinations.

Fluxes are linear: if ``p_j`` is a conforming flux for column j, ``sum c_j p_j`` is one for the combination c. So with
``t_j = p_j - a grad u_j`` and the parts of the sources that no flux matches, the bound of `majorant` for the
combination is a quadratic form in c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..checks import Array
from ..mesh.elements import degree
from .block_chunk import Chunk, Columns, Ground, Part, with_bubbles
from .block_maps import flux_maps
from .equilibrate import ENOUGH
from .flux import FacetFlux
from .hierarchy import ElementMatrices, block_conjugate_gradients
from .quadrature import Quadrature
from .weak import WeakResidual
from .workspace import Workspace

# Numbers in the arrays of a chunk of elements, of a batch of stream functions, and of those that are improved at once.
CHUNK, BATCH, AT_ONCE = 6_000_000, 120_000_000, 6_000_000
# Numbers in test functions up to which they pay; steps towards them, as for stream functions.
TESTED, TEST_STEPS, TEST_ENOUGH = 4_000_000, 12, 0.01
# Combinations of test functions below this part of the largest are left out.
DEPENDENT = 1e-8
# Above so many numbers stream functions are kept in single precision.
DOUBLE = 10_000_000


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
    gradient
        Of parts of the fluxes that are ``a grad v`` with v zero on the Dirichlet boundary, from below; or None.
    """

    flux: Array
    oscillation: Array | None
    both: Array
    lacking: float = 0.0
    gradient: Array | None = None


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
        self.tools, self.r = workspace.equilibration, r
        self.ground = ground_of(workspace, r, rule)
        self.maps = self.ground.maps
        mesh = r.sampler.mesh
        self.order = _by_place(mesh)
        varies = mesh.t.shape[0] > 3 or bool(r.norm.C.any())
        self.parts = [self._part(block, varies or degree(block.basis) > 0) for block in blocks]
        if steps > 0:
            self._improve(steps)

    def _part(self, block: Columns, varies: bool) -> Part:
        size = (self.tools.space.N, block.count)
        # Any stream function will do, so where many are kept single precision is enough.
        stream = np.zeros(size, dtype=np.float32 if size[0] * size[1] > DOUBLE else float)
        # Sparse matrices are applied to rows.
        block = replace(block, states=np.ascontiguousarray(block.states))
        return Part(block, self.maps.of_source(block.basis), varies, stream)

    def chunks(self, columns: int) -> Iterator[Chunk]:
        """All elements, so many at a time that arrays for this many columns stay small."""
        points = len(self.r.sampler.W)
        count = max(CHUNK // (columns * (4 * points + 24)), 64)
        for start in range(0, len(self.order), count):
            yield Chunk(self.ground, self.order[start : start + count])

    def _improve(self, steps: int) -> None:
        """Stream functions that bring the fluxes closer to ``a grad u``, as in `equilibrated_flux`."""
        space, mesh, facets = self.tools.space, self.r.sampler.mesh, self.r.traces.facets
        matrices = self.tools.matrices(1.0 / self.r.sampler.means(self.r.norm.A))
        free = np.ones(space.N, dtype=bool)
        free[mesh.facets[:, facets]] = False
        free[space.on_facets[:, facets]] = False
        A = matrices.assembled()
        at_once, most = (max(numbers // space.N, 1) for numbers in (AT_ONCE, BATCH))
        for part in self.parts:
            matrix = A.astype(part.stream.dtype)
            for chosen in batches(part.columns.count, most):
                pull, square = self._pull(part.some(chosen), Chunk.curls)
                np.negative(pull, out=pull)
                for few in batches(pull.shape[1], at_once):
                    right = np.ascontiguousarray(pull[:, few])
                    pull[:, few] = block_conjugate_gradients(
                        matrix, right, matrices.diagonal, free, steps=steps, enough=ENOUGH, square=square[few]
                    )
                part.stream[:, chosen] = pull

    def _pull(self, part: Part, derivatives: Callable[[Chunk, bool], Array]) -> tuple[Any, Array]:
        """``(a^-1 t_j, d)`` for derivatives d of the stream functions, and ``‖a^-1/2 t_j‖²``."""
        n = part.columns.count
        pull, square = np.zeros((self.tools.space.N, n), dtype=part.stream.dtype), np.zeros(n)
        for chunk in self.chunks(n):
            T, fields = chunk.fluxes(part), derivatives(chunk, part.varies)
            square += np.einsum("erc,erc->c", T, T)
            dofs, place = np.unique(chunk.stream_dofs, return_inverse=True)
            local = fields.transpose(0, 2, 1) @ T
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
        gradients = self._gradient_parts()
        return [replace(sums.result(), gradient=own) for sums, own in zip(found, gradients, strict=True)], cross

    def _gradient_parts(self) -> list[Array | None]:
        """``sup_v (t_c, grad v)² / (a grad v, grad v)`` from below, as Gram matrices; None where it is not computed.

        Test functions are those of the enriched space to which some conjugate gradients lead, one for each column, and
        all combinations of them.
        """
        r, space, mesh = self.r, self.tools.space, self.r.sampler.mesh
        simple = self.ground.polynomial and not (r.norm.C.any() or r.traces.coefficient.any())
        if not simple or space.N * sum(part.columns.count for part in self.parts) > TESTED:
            return [None] * len(self.parts)
        matrices = ElementMatrices(space, mesh, r.sampler.means(r.norm.A))
        free = np.ones(space.N, dtype=bool)
        free[mesh.facets[:, r.traces.essential]] = False
        free[space.on_facets[:, r.traces.essential]] = False
        K = matrices.assembled()
        found: list[Array | None] = []
        for part in self.parts:
            pull, square = self._pull(part, Chunk.gradients)
            V = block_conjugate_gradients(
                K, pull, matrices.diagonal, free, steps=TEST_STEPS, enough=TEST_ENOUGH, square=square
            )
            found.append(_largest_quotients(V.T @ (K @ V), V.T @ pull))
        return found

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
        flux = with_bubbles(self.tools.patches, gamma, source, r.sampler, self.tools.degree, part.varies)
        return replace(flux, space=self.tools.space, stream=stream)


def _largest_quotients(gram: Array, values: Array) -> Array:
    """``sup_v (v' values c)² / v' gram v`` as a quadratic form in c, from below."""
    sizes, turn = np.linalg.eigh((gram + gram.T) / 2.0)
    kept = sizes > DEPENDENT * max(float(sizes[-1]), 0.0)
    seen = (turn[:, kept] / np.sqrt(sizes[kept])).T @ values
    return np.asarray((1.0 - DEPENDENT) * (seen.T @ seen))


def ground_of(workspace: Workspace, r: WeakResidual, rule: Quadrature) -> Ground:
    """Mesh, coefficient and quadrature of fluxes, with the matrices of the equilibration."""
    return Ground(workspace.equilibration, flux_maps(workspace.equilibration, r), r, rule)


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
        wide, high = (np.sqrt(1.0 + np.divide(b, a, out=np.zeros_like(a), where=a > 0.0)) for a, b in ((x, y), (y, x)))
        self.both += _gram(wide * T) + _gram(high * rest)

    def result(self) -> Misfits:
        """What came out."""
        return Misfits(self.flux, self.oscillation, self.both, float(np.sqrt(self.lacking)))


def batches(count: int, most: int) -> list[slice]:
    """Consecutive parts of so many columns, of at most `most` each."""
    return [slice(start, min(start + most, count)) for start in range(0, count, most)]


def _gram(T: Array) -> Array:
    rows = T.reshape(-1, T.shape[2])
    return np.asarray(rows.T @ rows)


def _common(first: Array, second: Array) -> Array:
    """``(a^-1 t_i, t_j)`` from numbers of which one side may have only the first ones, the others being zero."""
    rows = min(first.shape[1], second.shape[1])
    a, b = (np.ascontiguousarray(part[:, :rows]).reshape(-1, part.shape[2]) for part in (first, second))
    return np.asarray(a.T @ b)


def _by_place(mesh: Any) -> NDArray[np.int64]:
    """Elements in the order of a curve that fills the plane, so that those of a chunk are near to each other."""
    middle = mesh.p[:, mesh.t].mean(axis=1)
    low, size = middle.min(axis=1), float(np.ptp(middle, axis=1).max()) or 1.0
    x, y = (((middle[i] - low[i]) / size * 65535.0).astype(np.int64) for i in (0, 1))
    key = np.zeros(middle.shape[1], dtype=np.int64)
    for bit in range(16):
        key |= ((x >> bit) & 1) << (2 * bit) | ((y >> bit) & 1) << (2 * bit + 1)
    return np.asarray(np.argsort(key, kind="stable"))
