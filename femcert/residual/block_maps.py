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
from scipy.sparse import csr_matrix, diags, vstack

from ..checks import Array
from ..mesh.sample import Sampler
from .equilibrate import Equilibration, _outward_normal
from .patches import Patches, facet_parameter
from .weak import WeakResidual

# Bends below this, relative to the normal components, are rounding.
STRAIGHT = 1e-13
# Vertices whose corners are paired at once.
FANS = 100_000


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
        mesh, sampler = self.sampler.mesh, self.sampler
        balance = source_moments(sampler, mesh.elem(), _corners(mesh), mesh.t.size, basis)
        flows = self.corrections @ balance
        return flows.tocsr() if self.merged else vstack([flows, flows]).tocsr()


def source_moments(sampler: Sampler, element: Any, dofs: NDArray[np.int64], size: int, basis: Any) -> Any:
    """``(psi_j, phi_i)`` with the local functions of an element, whose dofs are given, sparse ``(size, sources)``."""
    none = np.zeros((len(sampler.X), 1, 1))
    values, _ = sampler.table(basis.elem)
    rows, columns, data = [], [], []
    for j, value in enumerate(values):
        local = sampler.local_moments(element, value[None], none).T
        rows.append(dofs)
        columns.append(np.broadcast_to(basis.element_dofs[j], dofs.shape))
        data.append(np.broadcast_to(local, dofs.shape))
    return scattered(rows, columns, data, (size, basis.N))


def flux_maps(tools: Equilibration, r: WeakResidual) -> FluxMaps:
    """The matrices for a residual of the zero state without source and boundary data: it gives coefficient and rule.

    On natural facets the data are ``-alpha u`` with alpha constant along each facet.
    """
    patches, mesh = tools.patches, tools.mesh
    slots, facets = mesh.t2f.size, mesh.facets.shape[1]
    weights = 1.0 / r.sampler.means(r.norm.A)
    first_end = patches.ends[:, 0].ravel() == 0
    at_ends, bends, imbalances = [], [], []
    for probe in probes(r):
        outward, bend = _outward_normal(tools, probe)
        first, second = outward[:, 0].ravel(), outward[:, 1].ravel()
        at_ends.append((np.where(first_end, first, second), np.where(first_end, second, first)))
        bends.append(bend)
        imbalances.append(r.sampler.local_moments(mesh.elem(), probe.source, -probe.flux).T)
    element = np.arange(slots) % mesh.nelements
    columns = [dofs[element] for dofs in r.basis.element_dofs]
    average = _average(patches, weights)

    def from_state(values: list[Array]) -> Any:
        rows = [np.arange(slots)] * len(values)
        return average @ scattered(rows, columns, values, (slots, r.basis.N))

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
    at = [np.broadcast_to(dofs, mesh.t.shape) for dofs in r.basis.element_dofs]
    balance = scattered([_corners(mesh)] * len(at), at, imbalances, (mesh.t.size, r.basis.N))
    through = _through_corners(patches)
    if merged:
        through = through[:, :facets] + through[:, facets:]
    corrections = _corrections(patches, weights, r.traces.essential)
    flows = corrections @ (balance + through @ averaged)
    state = (averaged + (flows if merged else vstack([flows, flows]))).tocsr()
    return FluxMaps(state, merged, _bent(tools, bent, abs(averaged).max()), corrections, r.sampler)


def _corners(mesh: Any) -> NDArray[np.int64]:
    return np.arange(mesh.t.size).reshape(mesh.t.shape)


def _average(patches: Patches, weights: Array) -> Any:
    """Weighted averages over the two sides of each facet: ``(facets, slots)``."""
    elements, (one, two), inner = patches.mesh.nelements, patches.slots, ~patches.boundary
    first, second = weights[one % elements], np.where(inner, weights[two % elements], 0.0)
    total, facets = first + second, np.arange(len(one))
    rows, columns = [facets, facets[inner]], [one, two[inner]]
    values = [first / total, -(second / total)[inner]]
    return scattered(rows, columns, values, (len(one), patches.mesh.t2f.size))


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


def _through_corners(patches: Patches) -> Any:
    """``<gamma, hat>_dK`` for each corner: ``(corners, 2 facets)``."""
    mesh, facets = patches.mesh, patches.mesh.facets.shape[1]
    corner = _corners(mesh)
    rows, columns, values = [], [], []
    for l, pair in enumerate(patches.local):
        for k, vertex in enumerate(pair):
            for end, share in ((k, 3.0), (1 - k, 6.0)):
                rows.append(corner[vertex])
                columns.append(patches.ends[l, end] * facets + mesh.t2f[l])
                values.append(patches.signs[l] / share)
    return scattered(rows, columns, values, (mesh.t.size, 2 * facets))


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
    rows, columns, values = [], [], []
    for low in range(0, fans.shape[1], FANS):
        some = slice(low, min(low + FANS, fans.shape[1]))
        # All pairs of corners around the same vertex, fan by fan.
        fan, place = (index.astype(np.int32) for index in np.nonzero(inside[:, some].T))
        fan += low
        at, share = corner[place, fan].astype(np.int32), constant[place, fan]
        often, start = length[fan], np.cumsum(length[some]) - length[some]
        row = np.repeat(np.arange(len(fan), dtype=np.int32), often)
        within = np.arange(len(row), dtype=np.int32) - np.repeat((np.cumsum(often) - often).astype(np.int32), often)
        other = start[fan - low].astype(np.int32)[row] + within
        flow = share[other] - (within <= place[row])
        flow[(stuck[fan] & (place == often - 1))[row]] = 0.0
        out = exits[place, fan]
        opens = ~closed[fan]
        inward = entry[fan[opens]]
        rows += [facets[out].astype(np.int32)[row], facets[inward].astype(np.int32)]
        columns += [at[other], at[opens]]
        values += [signs[out][row] * flow, -signs[inward] * share[opens]]
    return scattered(rows, columns, values, (count, mesh.t.size))
