"""The cheapest fluxes for many columns: lowest order on linear triangles, one sparse matrix from states to misfits.

Without improving steps and bubbles, ``t = p - a grad u`` is a constant plus ``(div p / 2) (x - centre)`` on each
triangle, and both parts are orthogonal. The constants are a sparse matrix times the states and the sources; of the
other part and of the oscillation of the sources only sparse quadratic forms are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import diags, issparse

from ..checks import Array
from ..mesh.elements import degree
from ..problem.forward import dense
from .block_chunk import Columns, Ground, Part
from .block_maps import by_rows, scattered
from .blocks import Misfits
from .flux import FacetFlux
from .patches import Patches

# Numbers in the misfits of a batch of elements.
NUMBERS = 1_000_000


class PlainFluxes:
    """Equilibrated fluxes of lowest order for blocks of columns, as `BlockFluxes` without stream functions and bubbles.

    For linear triangles, a conductivity that is constant on elements, no reaction and no Robin boundary.
    """

    def __init__(self, ground: Ground, blocks: Sequence[Columns]) -> None:
        self.ground = ground
        maps, r = ground.maps, ground.r
        mesh = r.sampler.mesh
        self.parts = [_part(ground, block) for block in blocks]
        self.area = r.sampler.determinant[:, 0] / 2.0
        self.conductivity = np.broadcast_to(r.norm.A[:, 0], mesh.nelements)
        corners = mesh.p[:, mesh.t]
        edges = corners - np.roll(corners, 1, axis=1)
        # The integral of |x - centre|² over a triangle.
        self.moment = self.area * np.sum(edges**2, axis=(0, 1)) / 36.0
        to_centre, divergence = _triangle_maps(ground.tools.patches, self.area)
        root = np.sqrt(self.area / self.conductivity)
        scale = diags(np.concatenate([root, root]))
        self._to_centre, self._divergence = scale @ to_centre, diags(np.sqrt(self.area)) @ divergence
        means, gradients = self._to_centre @ maps.state, scale @ _gradients(ground)
        # SciPy adds matrices with sorted columns several times faster.
        means.sort_indices()
        gradients.sort_indices()
        self._constants = (means - gradients).tocsr()
        self._balance = (self._divergence @ maps.state).tocsr()

    def misfits(self) -> tuple[list[Misfits], dict[tuple[int, int], Array]]:
        """For every block its Gram matrices, and for every pair of blocks ``(a^-1 t_i, t_j)``, i from the first one."""
        flows = [part.to_flux @ part.columns.sources for part in self.parts]
        means = [_means(self.ground, part.columns) for part in self.parts]
        root = diags(np.sqrt(self.area))
        fluxes = [_by_rows(self._to_centre @ flow) for flow in flows]
        lacking = [_by_rows(self._divergence @ flow + root @ mean) for flow, mean in zip(flows, means, strict=True)]
        ends = np.cumsum([0, *(part.columns.count for part in self.parts)])
        gram, squares = np.zeros((ends[-1], ends[-1])), np.zeros(ends[-1])
        for T in self._rows(self._constants, fluxes):
            gram += T.T @ T
        for T in self._rows(self._balance, lacking):
            squares += np.einsum("ij,ij->j", T, T)
        gram += self._radial(means)
        pieces = [slice(*pair) for pair in pairwise(ends)]
        found = [
            self._misfits(part, gram[piece, piece], float(np.sqrt(squares[piece].sum())))
            for part, piece in zip(self.parts, pieces, strict=True)
        ]
        cross = {(i, j): gram[pieces[i], pieces[j]] for j in range(len(pieces)) for i in range(j)}
        return found, cross

    def single(self, block: int, weights: Array) -> FacetFlux:
        """The flux of one combination of a block, as `majorant` takes it."""
        part, ground = self.parts[block], self.ground
        gamma = ground.maps.state @ (part.columns.states @ weights) + part.to_flux @ (part.columns.sources @ weights)
        return FacetFlux(ground.tools.patches, np.array([gamma, gamma]), np.zeros((1, 1)), 1, ground.tools.space)

    def _rows(self, matrix: Any, sources: list[Any]) -> Iterator[Array]:
        """A matrix times the states of all blocks, plus what the sources add, some rows at a time."""
        counts = [part.columns.count for part in self.parts]
        ends = np.cumsum([0, *counts])
        step = max(NUMBERS // int(ends[-1]), 1)
        whole = np.empty((step, ends[-1]))
        for start in range(0, matrix.shape[0], step):
            rows = matrix[start : start + step]
            T = whole[: rows.shape[0]]
            for part, source, (low, high) in zip(self.parts, sources, pairwise(ends), strict=True):
                np.add(rows @ part.columns.states, dense(source[start : start + step]), out=T[:, low:high])
            yield T

    def _radial(self, means: list[Any]) -> Array:
        """``(a^-1 s_i, s_j)`` for ``s = (div p / 2) (x - centre)``, div p being minus the mean of the source."""
        weights = diags(np.sqrt(self.moment / self.conductivity) / 2.0)
        scaled = [weights @ part for part in means]
        return np.block([[dense(first.T @ second) for second in scaled] for first in scaled])

    def _misfits(self, part: Part, gram: Array, lacking: float) -> Misfits:
        least = float(self.conductivity.min())
        # What is missing in the balance is missing in the divergence above, too.
        slip = lacking * float(np.sqrt((self.moment / self.area).max() / least)) / 2.0
        flux = gram if slip == 0.0 else _sum(gram, slip**2 * np.eye(len(gram)))
        if degree(part.columns.basis) == 0:
            return Misfits(flux, None, flux, lacking)
        form = _oscillation(self.ground, part.columns.basis, self.area)
        sources = part.columns.sources
        oscillation = np.asarray(dense(sources.T @ (form @ sources)))
        return Misfits(flux, oscillation, _sum(flux, oscillation), lacking)


def _by_rows(matrix: Any) -> Any:
    return matrix.tocsr() if issparse(matrix) else matrix


def _part(ground: Ground, block: Columns) -> Part:
    block = replace(block, states=np.ascontiguousarray(block.states))
    return Part(block, ground.maps.of_source(block.basis), False, np.zeros((1, 1)))


def _triangle_maps(patches: Patches, area: Array) -> tuple[Any, Any]:
    """From flows through facets to the flux in the centres, first all first components, and to its divergence."""
    mesh = patches.mesh
    corners = mesh.p[:, mesh.t]
    centre = corners.mean(axis=1)
    along: list[list[Array]] = [[], []]
    sums = []
    for l, pair in enumerate(patches.local):
        opposite = corners[:, ({0, 1, 2} - set(pair)).pop()]
        for axis in (0, 1):
            along[axis].append(patches.signs[l] * (centre[axis] - opposite[axis]) / (2.0 * area))
        sums.append(patches.signs[l] / area)
    count = mesh.facets.shape[1]
    to_centre = by_rows(np.hstack([mesh.t2f, mesh.t2f]), np.hstack([np.array(part) for part in along]), count)
    return to_centre, by_rows(mesh.t2f, sums, count)


def _gradients(ground: Ground) -> Any:
    """``a grad u`` on the triangles, ``(2 elements, dofs)``."""
    r = ground.r
    elements = r.sampler.mesh.nelements
    _, slopes = r.sampler.table(r.basis.elem)
    values = []
    for slope in slopes:
        field = r.norm.A * r.sampler.physical([np.broadcast_to(part[:1], (elements, 1)) for part in slope])
        values.append(field[:, :, 0].ravel())
    return by_rows(np.hstack([r.basis.element_dofs] * 2), values, r.basis.N)


def _means(ground: Ground, block: Columns) -> Any:
    """Means of the sources on the elements, dense or sparse ``(elements, columns)``."""
    sampler = ground.r.sampler
    psi, _ = sampler.table(block.basis.elem)
    shares = psi @ sampler.W / sampler.W.sum()
    dofs = block.basis.element_dofs
    return by_rows(dofs, np.broadcast_to(shares[:, None], dofs.shape), block.basis.N) @ block.sources


def _oscillation(ground: Ground, basis: Any, area: Array) -> Any:
    """``sum_K factor_K² (psi_i - mean, psi_j - mean)_K``, sparse."""
    sampler = ground.r.sampler
    psi, _ = sampler.table(basis.elem)
    share = sampler.W / sampler.W.sum()
    local = (psi * share) @ psi.T - np.outer(psi @ share, psi @ share)
    weights = ground.factors**2 * area
    pairs = list(np.ndindex(local.shape))
    rows, columns = ([basis.element_dofs[pair[side]] for pair in pairs] for side in (0, 1))
    return scattered(rows, columns, [local[pair] * weights for pair in pairs], (basis.N, basis.N))


def _sum(first: Array, second: Array) -> Array:
    """A Gram matrix for the sum of two norms, see `femcert.residual.block_errors.combined`."""
    sizes = [float(np.sqrt(max(np.trace(gram), 0.0))) for gram in (first, second)]
    if not min(sizes) > 0.0:
        return first + second
    s = sizes[1] / sizes[0]
    return np.asarray((1.0 + s) * first + (1.0 + 1.0 / s) * second)
