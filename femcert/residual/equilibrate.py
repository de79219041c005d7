"""An equilibrated flux for a residual that vanishes on the hats: a walk around every vertex, then a stream function.

The bound does not depend on these steps: it is evaluated by `femcert.residual.majorant` for whatever flux comes out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import Array
from ..mesh.sample import Sampler, dot, nodal_fit
from .flux import FacetFlux
from .hierarchy import ElementMatrices, bubble_count, conjugate_gradients, fit_matrix, hierarchical_space
from .patches import Patches, facet_parameter
from .weak import WeakResidual

# A step that gains less than this fraction of what is left of the squared misfit is the last one.
ENOUGH = 0.02


class Equilibration:
    """What equilibration needs of a mesh, made once.

    Parameters
    ----------
    degree
        Of the state. Stream functions have one degree more; bubbles match the source up to this degree.
    """

    def __init__(self, mesh: Any, degree: int) -> None:
        self.mesh = mesh
        self.patches = Patches(mesh)
        self.space = hierarchical_space(mesh, degree + 1)
        self.degree = degree
        self._kept: tuple[Array, ElementMatrices] | None = None

    def matrices(self, weights: Array) -> ElementMatrices:
        """Stiffness of the stream functions with weights on the elements; kept while the weights stay the same."""
        if self._kept is None or not np.array_equal(self._kept[0], weights):
            self._kept = weights, ElementMatrices(self.space, self.mesh, weights)
        return self._kept[1]


def equilibrated_flux(tools: Equilibration, r: WeakResidual, *, steps: int, bubbles: bool = True) -> FacetFlux:
    """A conforming flux p with ``(div p + source, 1)_K = 0`` on every element, and p close to ``r.flux``.

    1. Average the normal components of ``r.flux`` from both sides of each facet, weighted by 1/A.
    2. Around each vertex walk from element to element: the hat-weighted balance of each gives the flow through the
       next facet (a cumulative sum); one constant per vertex is free and makes the flows small.
    3. Inside the elements, bubbles (if asked for) match the source up to the state's degree.
    4. Minimize ``‖A^-1/2 (p + curl s - r.flux)‖`` over stream functions s of one degree more than the state by
       conjugate gradients as long as a step is worth its cost: a few steps, more on stretched meshes. The curl changes
       neither the divergence nor the natural boundary.
    """
    patches = tools.patches
    weights = 1.0 / r.sampler.means(r.norm.A)
    gamma, bend = _averaged(patches, _outward_normal(tools, r), weights)
    _set_natural(patches, r, gamma, bend)
    gamma += _corrections(patches, _corner_balances(patches, r, gamma), weights, r.traces.essential)
    none = np.zeros((1, bubble_count(len(patches.local), tools.degree)))
    flux = FacetFlux(patches, gamma, none, tools.degree, tools.space)
    if bubbles:
        flux = _with_inside(flux, r)
    if bend is not None:
        flux = replace(flux, stream=_bent_stream(tools, bend))
    return flux if steps == 0 else _improved(tools, r, flux, weights, steps)


def _improved(tools: Equilibration, r: WeakResidual, flux: FacetFlux, weights: Array, steps: int) -> FacetFlux:
    """The flux plus the curl of a stream function that brings it closer to ``r.flux``."""
    sampler = r.sampler
    values, _ = flux.at(sampler)
    D = (values - r.flux) / r.norm.A
    square = float(sampler.integral(r.norm.A * dot(D, D)).sum())
    turned = np.broadcast_to(np.array([D[1], -D[0]]), (2, D.shape[1], len(sampler.W)))
    pull = sampler.moments(tools.space, np.zeros((1, 1)), turned)
    matrices = tools.matrices(weights)
    free = np.ones(tools.space.N, dtype=bool)
    free[sampler.mesh.facets[:, r.traces.facets]] = False
    free[tools.space.on_facets[:, r.traces.facets]] = False
    s = conjugate_gradients(matrices.apply, pull, matrices.diagonal, free, steps=steps, enough=ENOUGH, square=square)
    return replace(flux, stream=s if flux.stream is None else s + flux.stream)


def _bent_stream(tools: Equilibration, bend: Array) -> Array:
    """Stream function whose curl has the normal component ``bend (6 t² - 6 t + 1)`` times length on the facets."""
    s = np.zeros(tools.space.N)
    # Along the facet an odd bubble is 6 t (1 - t) (1 - 2 t) from its first end, with the slope 6 (6 t² - 6 t + 1).
    s[tools.space.on_facets[1]] = tools.patches.forward * bend / 6.0
    return s


def _node_values(sampler: Sampler, field: Array, degree: int) -> Array:
    """Values at vertices, and for degree 2 at the middles of facets, of polynomial fits to a field on each element."""
    n = sampler.mesh.t.shape[0]
    if field.shape[1] == 1:
        return np.broadcast_to(field[:, 0], (degree * n, sampler.mesh.nelements))
    _, fit = nodal_fit(sampler, degree)
    return np.asarray(fit[: degree * n] @ field.T)


def _outward_normal(tools: Equilibration, r: WeakResidual) -> tuple[Array, Array | None]:
    """Normal component of the flux times length on local facets, seen from each element.

    Its linear part at both ends, ``(local facets, 2, elements)``; for degree 2 also the factor of ``6 t² - 6 t + 1``.
    """
    patches, degree = tools.patches, tools.degree
    x, y = (_node_values(r.sampler, component, degree) for component in r.flux)
    n = patches.normals
    ends = np.array([[n[0, l] * x[i] + n[1, l] * y[i] for i in pair] for l, pair in enumerate(patches.local)])
    if degree == 1:
        return ends, None
    m = len(patches.local)
    middle = n[0] * x[m : 2 * m] + n[1] * y[m : 2 * m]
    bend = (ends[:, 0] + ends[:, 1] - 2.0 * middle) / 3.0
    return ends - bend[:, None], bend


def _averaged(patches: Patches, normal: tuple[Array, Array | None], weights: Array) -> tuple[Array, Array | None]:
    """Weighted averages over the two sides of each facet, at both of its ends, and of the bend."""
    elements = patches.mesh.nelements
    flat_ends = patches.ends[:, 0].ravel()
    # Component at end 0 and at end 1, flat over (local facet, element).
    ends, bend = normal
    first, second = ends[:, 0].ravel(), ends[:, 1].ravel()
    at_end = np.where(flat_ends == 0, first, second), np.where(flat_ends == 0, second, first)
    one, two = patches.slots
    inner = ~patches.boundary
    w1 = weights[one % elements]
    w2 = np.where(inner, weights[two % elements], 0.0)

    def mean(v: Array) -> Array:
        return np.asarray((w1 * v[one] - w2 * np.where(inner, v[two], 0.0)) / (w1 + w2))

    return np.array([mean(v) for v in at_end]), None if bend is None else mean(bend.ravel())


def _set_natural(patches: Patches, r: WeakResidual, gamma: Array, bend: Array | None) -> None:
    """Put the linear (for degree 2, quadratic) fits of the natural data on their facets."""
    part = r.traces.basis
    if part is None:
        return
    facets = r.traces.facets
    s = facet_parameter(patches.mesh, facets, np.asarray(part.global_coordinates()))
    G = np.broadcast_to(r.natural, part.dx.shape)
    first, second = np.sum(G * (1 - s) * part.dx, axis=1), np.sum(G * s * part.dx, axis=1)
    gamma[:, facets] = [4.0 * first - 2.0 * second, 4.0 * second - 2.0 * first]
    if bend is not None:
        bend[facets] = 5.0 * np.sum(G * (6.0 * s**2 - 6.0 * s + 1.0) * part.dx, axis=1)


def _corner_balances(patches: Patches, r: WeakResidual, gamma: Array) -> Array:
    """``(source, hat)_K - (flux, grad hat)_K + <gamma, hat>_dK`` for each corner, flat over corners."""
    mesh = patches.mesh
    balance = r.sampler.local_moments(mesh.elem(), r.source, -r.flux).T.copy()
    for l, (i, j) in enumerate(patches.local):
        at_i, at_j = (patches.signs[l] * gamma[patches.ends[l, k], mesh.t2f[l]] for k in (0, 1))
        balance[i] += at_i / 3.0 + at_j / 6.0
        balance[j] += at_j / 3.0 + at_i / 6.0
    return balance.ravel()


def _corrections(patches: Patches, balance: Array, weights: Array, essential: NDArray[np.int64]) -> Array:
    """Flows through the facets that bring every corner into balance, as additions to gamma."""
    mesh, fans, elements = patches.mesh, patches.fans, patches.mesh.nelements
    facets, signs = mesh.t2f.ravel(), patches.signs.ravel()
    inside = fans >= 0
    corner = np.where(inside, fans, 0)
    outflow = -np.cumsum(np.where(inside, balance[corner], 0.0), axis=0)
    exits, entry = patches.exits[corner], patches.entries[fans[0]]
    length = inside.sum(axis=0)
    last = exits[length - 1, np.arange(fans.shape[1])]
    is_essential = np.zeros(mesh.facets.shape[1], dtype=bool)
    is_essential[essential] = True
    closed = np.arange(fans.shape[1]) >= patches.closed_from
    enters_free, leaves_free = is_essential[facets[entry]], is_essential[facets[last]]
    # The constant: free on closed fans and between two Dirichlet facets; else a natural facet fixes it.
    one, two = patches.slots
    facet_weights = weights[one % elements] + np.where(patches.boundary, 0.0, weights[two % elements])
    w = np.where(inside, facet_weights[facets[exits]], 0.0)
    open_weight = np.where(closed, 0.0, facet_weights[facets[entry]])
    best = -(w * outflow).sum(axis=0) / (w.sum(axis=0) + open_weight)
    to_zero = -outflow[length - 1, np.arange(fans.shape[1])]
    constant = np.where(closed | (enters_free & leaves_free), best, np.where(enters_free, to_zero, 0.0))
    outflow = np.where(inside, outflow + constant, 0.0)
    # A natural facet at the end of a fan keeps its flow; what is left there is a defect of the balance.
    stuck = ~closed & ~leaves_free
    outflow[length[stuck] - 1, np.flatnonzero(stuck)] = 0.0
    total = np.bincount(facets[exits].ravel(), (signs[exits] * outflow).ravel(), minlength=mesh.facets.shape[1])
    entering = np.where(closed, 0.0, -constant)
    total += np.bincount(facets[entry], signs[entry] * entering, minlength=mesh.facets.shape[1])
    return np.array([total, total])


def _with_inside(flux: FacetFlux, r: WeakResidual) -> FacetFlux:
    """The flux with bubbles that bring its divergence to minus the source, as far as they can."""
    sampler = r.sampler
    triangles = len(flux.patches.local) == 3
    if triangles and r.source.shape[1] == 1:
        return flux
    # On triangles the divergence of the linear part is a constant, which the bubbles do not change.
    lacking = -r.source if triangles else -(r.source + flux.at(sampler)[1]) * sampler.determinant
    fit = np.broadcast_to(lacking, (len(lacking), len(sampler.W))) @ fit_matrix(sampler, flux.degree)
    return replace(flux, inside=fit * sampler.determinant if triangles else fit, _base=None)
