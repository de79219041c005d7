"""Equilibration of lowest order as sparse matrices, from states and sources to the normal components of their fluxes.

What `femcert.residual.equilibrate` does for one residual is linear but for the improving steps. Local parts are read
off from that code: it is applied to one local basis function on all elements at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix, diags, vstack

from ..checks import Array
from ..mesh.sample import Sampler
from .equilibrate import Equilibration, _outward_normal
from .patches import Patches, facet_parameter
from .weak import WeakResidual

# Bends below this, relative to the normal components, are rounding.
STRAIGHT = 1e-13


def probes(r: WeakResidual) -> Iterator[WeakResidual]:
    """Residuals ``-a(phi_i, .)``, one for each local function: the same local function on all elements at once."""
    sampler, ne = r.sampler, r.sampler.mesh.nelements
    phi, slopes = sampler.table(r.basis.elem)
    if np.ptp(slopes, axis=2).max() == 0.0:
        slopes = slopes[:, :, :1]
    for value, slope in zip(phi, slopes, strict=True):
        gradient = sampler.physical([np.broadcast_to(part, (ne, len(part))) for part in slope])
        source = -r.norm.C * value if r.norm.C.any() else np.zeros((ne, 1))
        yield replace(r, source=source, flux=r.norm.A * gradient)


def scattered(rows: Any, columns: Any, values: Any, shape: tuple[int, int]) -> Any:
    """Sparse matrix of values at rows and columns, arrays of one shape (or lists of such); zeros are left out."""
    i, j = (np.concatenate([np.ravel(part) for part in parts], dtype=np.int32) for parts in (rows, columns))
    v = np.concatenate([np.ravel(part) for part in values])
    kept = v != 0.0
    if not kept.all():
        i, j, v = i[kept], j[kept], v[kept]
    return csr_matrix((v, (i, j)), shape=shape)


def by_rows(columns: Any, values: Any, count: int) -> Any:
    """Sparse matrix whose rows have the same number of entries: ``(entries, rows)`` columns and values."""
    j, v = np.asarray(columns, dtype=np.int32), np.asarray(values)
    starts = np.arange(0, j.size + 1, len(j), dtype=np.int32)
    return csr_matrix((v.T.ravel(), j.T.ravel(), starts), shape=(j.shape[1], count))


@dataclass(frozen=True)
class FluxMaps:
    """Normal components times length, at both ends of the facets, as sparse matrices.

    Attributes
    ----------
    state
        From states: ``(2 facets, dofs)``, first all first ends; where both ends agree only ``(facets, dofs)``.
    merged
        Whether both ends agree.
    bent
        From states of degree 2 to dofs of the stream function that bends the components along facets, or None.
    corrections, sampler
        From imbalances of the corners to flows through facets; the quadrature of the imbalances.
    """

    state: Any
    merged: bool
    bent: Any
    corrections: Any
    sampler: Sampler

    def of_source(self, basis: Any) -> Any:
        """From sources, finite-element functions of a basis on the mesh."""
        balance = _corner_moments(self.sampler, basis)
        flows = self.corrections @ balance
        return flows.tocsr() if self.merged else vstack([flows, flows]).tocsr()


def source_moments(sampler: Sampler, element: Any, dofs: NDArray[np.int64], size: int, basis: Any) -> Any:
    """``(psi_j, phi_i)`` with the local functions of an element, whose dofs are given, sparse ``(size, sources)``."""
    none = np.zeros((len(sampler.X), 1, 1))
    values, _ = sampler.table(basis.elem)
    if len(values) == 1:
        # Of constants.
        local = sampler.local_moments(element, values[0][None], none).T
        return by_rows(dofs, np.broadcast_to(local, dofs.shape), size).T.tocsr()
    rows, columns, data = [], [], []
    for j, value in enumerate(values):
        local = sampler.local_moments(element, value[None], none).T
        rows.append(dofs)
        columns.append(np.broadcast_to(basis.element_dofs[j], dofs.shape))
        data.append(np.broadcast_to(local, dofs.shape))
    return scattered(rows, columns, data, (size, basis.N))


def _corner_moments(sampler: Sampler, basis: Any) -> Any:
    """``(psi_j, hat_i)_K`` for each corner, sparse ``(corners, sources)``."""
    none, mesh = np.zeros((len(sampler.X), 1, 1)), sampler.mesh
    values, _ = sampler.table(basis.elem)
    moments = [sampler.local_moments(mesh.elem(), value[None], none).T.ravel() for value in values]
    columns = [np.tile(dofs, len(mesh.t)) for dofs in basis.element_dofs]
    return by_rows(columns, np.broadcast_to(moments, (len(values), mesh.t.size)), basis.N)


def flux_maps(tools: Equilibration, r: WeakResidual) -> FluxMaps:
    """The matrices for a residual of the zero state without source and boundary data: it gives coefficient and rule.

    On natural facets the data are ``-alpha u`` with alpha constant along each facet.
    """
    patches, mesh = tools.patches, tools.mesh
    facets = mesh.facets.shape[1]
    weights = 1.0 / r.sampler.means(r.norm.A)
    first_end = patches.ends[:, 0].ravel() == 0
    at_ends, bends, imbalances = [], [], []
    for probe in probes(r):
        outward, bend = _outward_normal(tools, probe)
        first, second = outward[:, 0].ravel(), outward[:, 1].ravel()
        at_ends.append((np.where(first_end, first, second), np.where(first_end, second, first)))
        bends.append(bend)
        imbalances.append(r.sampler.local_moments(mesh.elem(), probe.source, -probe.flux).T)
    columns = np.array([np.tile(dofs, len(mesh.t2f)) for dofs in r.basis.element_dofs], dtype=np.int32)
    average = _average(patches, weights)

    def from_state(values: list[Array]) -> Any:
        return average @ by_rows(columns, values, r.basis.N)

    natural = _natural(patches, r)
    merged = bends[0] is None and natural is None and all(np.array_equal(*pair) for pair in at_ends)
    ends = [from_state([pair[k] for pair in at_ends]) for k in range(1 if merged else 2)]
    bent = None if bends[0] is None else from_state([bend.ravel() for bend in bends if bend is not None])
    inner = np.ones(facets)
    inner[r.traces.facets] = 0.0
    ends = [diags(inner) @ part for part in ends]
    bent = None if bent is None else diags(inner) @ bent
    if natural is not None:
        ends = [part + extra for part, extra in zip(ends, natural[:2], strict=True)]
        bent = None if bent is None else bent + natural[2]
    averaged = vstack(ends).tocsr()
    at = [np.tile(dofs, len(mesh.t)) for dofs in r.basis.element_dofs]
    balance = by_rows(at, [np.broadcast_to(part, mesh.t.shape).ravel() for part in imbalances], r.basis.N)
    through = _through_corners(patches, merged)
    corrections = _corrections(patches, weights, r.traces.essential)
    flows = corrections @ (balance + through @ averaged)
    state = (averaged + (flows if merged else vstack([flows, flows]))).tocsr()
    state.eliminate_zeros()
    return FluxMaps(state, merged, _bent(tools, bent, abs(averaged).max()), corrections, r.sampler)


def _average(patches: Patches, weights: Array) -> Any:
    """Weighted averages over the two sides of each facet: ``(facets, slots)``."""
    elements, (one, two), inner = patches.mesh.nelements, patches.slots, ~patches.boundary
    first, second = weights[one % elements], np.where(inner, weights[two % elements], 0.0)
    total = first + second
    return by_rows([one, np.where(inner, two, one)], [first / total, -second / total], patches.mesh.t2f.size)


def _natural(patches: Patches, r: WeakResidual) -> Any:
    """Linear (for degree 2, quadratic) fits of ``-alpha u`` on natural facets, at both ends and the bend; or None."""
    part, facets = r.traces.basis, r.traces.facets
    if part is None or not r.traces.coefficient.any():
        return None
    s = facet_parameter(patches.mesh, facets, np.asarray(part.global_coordinates()))
    entries: tuple[list[Array], list[Array], list[Array]] = ([], [], [])
    for i in range(part.Nbfun):
        G = -r.traces.coefficient * np.broadcast_to(np.asarray(part.basis[i][0]), part.dx.shape)
        first, second = np.sum(G * (1 - s) * part.dx, axis=1), np.sum(G * s * part.dx, axis=1)
        entries[0].append(4.0 * first - 2.0 * second)
        entries[1].append(4.0 * second - 2.0 * first)
        entries[2].append(5.0 * np.sum(G * (6.0 * s**2 - 6.0 * s + 1.0) * part.dx, axis=1))
    shape = (patches.mesh.facets.shape[1], r.basis.N)
    rows, columns = [facets] * part.Nbfun, list(part.element_dofs)
    return [scattered(rows, columns, values, shape) for values in entries]


def _bent(tools: Equilibration, bend: Any, size: float) -> Any:
    """The bends as dofs of a stream function, see `femcert.residual.equilibrate`; None where they are rounding."""
    if bend is None or not abs(bend).max() > STRAIGHT * size:
        return None
    space = tools.space
    rows = space.on_facets[1]
    place = csr_matrix((tools.patches.forward / 6.0, (rows, np.arange(len(rows)))), shape=(space.N, len(rows)))
    return (place @ bend).tocsr()


def _through_corners(patches: Patches, merged: bool) -> Any:
    """``<gamma, hat>_dK`` for each corner: ``(corners, 2 facets)``, or ``(corners, facets)`` where both ends agree."""
    mesh, facets = patches.mesh, patches.mesh.facets.shape[1]
    columns, values = [], []
    for vertex in range(len(mesh.t)):
        for l, pair in enumerate(patches.local):
            if vertex not in pair:
                continue
            k = pair.index(vertex)
            for end, share in [(k, 2.0)] if merged else [(k, 3.0), (1 - k, 6.0)]:
                first = 0 if merged else patches.ends[l, end] * facets
                columns.append(first + mesh.t2f[l])
                values.append(patches.signs[l] / share)
    width = len(columns) // len(mesh.t)

    def by_corner(parts: list[Array]) -> Array:
        return np.array(parts).reshape(len(mesh.t), width, -1).transpose(1, 0, 2).reshape(width, -1)

    return by_rows(by_corner(columns), by_corner(values), facets if merged else 2 * facets)


def _corrections(patches: Patches, weights: Array, essential: NDArray[np.int64]) -> Any:
    """Flows through the facets that bring every corner into balance: ``(facets, corners)``.

    Around a vertex, ``flow_i = constant - sum_{j <= i} balance_j``, and the constant is linear in the balances too.
    """
    mesh, fans, elements = patches.mesh, patches.fans, patches.mesh.nelements
    facets, signs, count = mesh.t2f.ravel(), patches.signs.ravel(), mesh.facets.shape[1]
    inside = fans >= 0
    corner, length = np.where(inside, fans, 0), inside.sum(axis=0)
    number = np.arange(fans.shape[1])
    exits, entry = patches.exits[corner], patches.entries[fans[0]]
    is_essential = np.zeros(count, dtype=bool)
    is_essential[essential] = True
    closed = number >= patches.closed_from
    enters_free, leaves_free = is_essential[facets[entry]], is_essential[facets[exits[length - 1, number]]]
    one, two = patches.slots
    on_facets = weights[one % elements] + np.where(patches.boundary, 0.0, weights[two % elements])
    w = np.where(inside, on_facets[facets[exits]], 0.0)
    total = w.sum(axis=0) + np.where(closed, 0.0, on_facets[facets[entry]])
    # The share of each balance in the constant: the sum of the weights from there on.
    best = np.cumsum(w[::-1], axis=0)[::-1] / total
    free = closed | (enters_free & leaves_free)
    constant = np.where(free, best, np.where(enters_free, 1.0, 0.0))
    stuck = ~closed & ~leaves_free
    outward: list[Array] = []
    parts: list[tuple[Any, Array]] = []
    # Fans of one length at a time: each flow is a combination of all balances of its fan.
    for size in np.unique(length):
        chosen = np.flatnonzero(length == size)
        corners, share = corner[:size, chosen].T.astype(np.int32), constant[:size, chosen].T
        flow = share[:, None, :] - np.tri(size)
        flow[stuck[chosen], -1] = 0.0
        out = exits[:size, chosen].T
        flow *= signs[out][:, :, None]
        outward.append(facets[out].ravel())
        parts.append((np.repeat(corners, size, axis=0), flow.reshape(-1, size)))
        opens = ~closed[chosen]
        inward = entry[chosen[opens]]
        outward.append(facets[inward])
        parts.append((corners[opens], -signs[inward][:, None] * share[opens]))
    starts = np.concatenate([[0], np.cumsum(np.repeat([c.shape[1] for c, _ in parts], [len(c) for c, _ in parts]))])
    indices, data = (np.concatenate([part[i].ravel() for part in parts]) for i in (0, 1))
    flows = csr_matrix((data, indices, starts.astype(np.int32)), shape=(len(starts) - 1, mesh.t.size))
    through = np.concatenate(outward).astype(np.int32)
    gather = csc_matrix((np.ones(len(through)), through, np.arange(len(through) + 1)), shape=(count, len(through)))
    return gather.tocsr() @ flows
