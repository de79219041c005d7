"""Lower bounds of a dual norm: the Riesz representative in the trial space, and test functions beyond it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from skfem import FacetBasis

from ..checks import Array
from ..linalg import Factorization
from ..linalg.accuracy import EPS
from ..mesh.sample import Sampler, dot
from .hierarchy import ElementMatrices, Space, conjugate_gradients
from .weak import Samples, WeakResidual

MOST_CORRECTIONS = 5
# Relative to the energy of the state's flux, what is left on the trial space is then rounding.
CORRECTED = 1e-13


@dataclass(frozen=True)
class RieszSplit:
    """``r = (w, .)_V + rest``, w in the trial space.

    ``‖r‖² = ‖w‖² + 2 rest(w) + ‖rest‖²`` for any w, and ``rest(w)`` is rounding where w is the Riesz representative.

    Attributes
    ----------
    representative
        Dof values of w.
    square, cross
        ``‖w‖²`` and ``rest(w)``.
    rest
        The remaining functional; it vanishes on the trial space up to rounding.
    samples
        Values, gradients and boundary values of w, where it is more than its part in the trial space.
    """

    representative: Array
    square: float
    cross: float
    rest: WeakResidual
    samples: Samples | None = None


def split(r: WeakResidual, factor: Factorization, free: NDArray[np.int64]) -> RieszSplit:
    """Take the trial space out of a residual, with iterative correction.

    `factor` is that of the norm's matrix on the free dofs, perhaps assembled with another quadrature: the residual is
    evaluated anew after each solve, so that what remains is small whatever the factor was.
    """
    whole = r.on_basis()[free]
    size = float(r.sampler.integral(dot(r.flux, r.flux) / r.norm.A).sum())
    w = np.zeros(r.basis.N)
    rest, left = r, whole
    for _ in range(MOST_CORRECTIONS):
        step = factor.solve(left)
        gain = float(left @ step)
        if not gain > CORRECTED**2 * (size + float(whole @ w[free])):
            break
        w[free] += step
        rest = r.without(w)
        left = rest.on_basis()[free]
    return RieszSplit(w, float((whole - left) @ w[free]), float(left @ w[free]), rest)


def split_further(
    r: WeakResidual, first: RieszSplit, function: Samples, factor: Factorization, free: Any
) -> RieszSplit:
    """Take a function beyond the trial space out of a residual as well, then once more the trial space."""
    again = split(first.rest.without_samples(function), factor, free)
    on_trial = first.representative + again.representative
    parts = zip(r.samples(on_trial), function, strict=True)
    value, slope, trace = (a + b for a, b in parts)
    w = (value, slope, trace)
    return RieszSplit(on_trial, r.inner(w, w), again.rest.apply(*w), again.rest, w)


# Steps of conjugate gradients for the default lower bound; a step that gains less than this ends it.
STEPS, ENOUGH = 6, 0.003
# Rounding of a term in a sum, relative to the term.
UNIT = 8.0 * EPS


@dataclass(frozen=True)
class Enriched:
    """A hierarchical space of one degree more than the state: the state's space V and bubbles W.

    Attributes
    ----------
    space
        All of V + W, in hierarchical dofs.
    to_hierarchical
        From the state's nodal dofs to hierarchical ones.
    bubbles, free
        Which dofs of `space` are free and belong to W; which are free.
    """

    space: Space
    to_hierarchical: Any
    bubbles: NDArray[np.bool_]
    free: NDArray[np.bool_]


def enriched_space(space: Space, basis: Any, essential: NDArray[np.int64]) -> Enriched:
    """Hats and bubbles, sorted into the trial space and what lies beyond it."""
    mesh = basis.mesh
    nv, nf = mesh.nvertices, mesh.facets.shape[1]
    T, size = _change_of_basis(basis, space.N)
    bubbles = np.zeros(space.N, dtype=bool)
    bubbles[size:] = True
    if space.elem.degree == 3:
        bubbles[:] = False
        bubbles[nv + nf :] = True
        if mesh.t.shape[0] == 4:
            # The first inner function of degree 3 is that of degree 2, part of the trial space.
            bubbles[space.element_dofs[12]] = False
    free = np.ones(space.N, dtype=bool)
    free[space.on_facets[:, essential]] = False
    free[mesh.facets[:, essential]] = False
    return Enriched(space, T, bubbles & free, free)


def _change_of_basis(basis: Any, size: int) -> tuple[Any, int]:
    """Sparse map from nodal to hierarchical dofs (vertices, facets, insides)."""
    mesh = basis.mesh
    nv, nf, nt = mesh.nvertices, mesh.facets.shape[1], mesh.nelements
    vertex = basis.nodal_dofs[0]
    rows, cols, vals = [np.arange(nv)], [vertex], [np.ones(nv)]

    def put(row: Array, col: Array, value: float) -> None:
        rows.append(row)
        cols.append(col)
        vals.append(np.full(len(row), value))

    if basis.elem.maxdeg > 1 and len(basis.facet_dofs):
        facet = nv + np.arange(nf)
        put(facet, basis.facet_dofs[0], 1.0)
        for end in mesh.facets:
            put(facet, vertex[end], -0.5)
    if len(basis.interior_dofs) and mesh.t.shape[0] == 4:
        # Value in the middle, less what hats (1/4 each) and facet bubbles (1/2 each) have there.
        inside = nv + 2 * nf + np.arange(nt)
        put(inside, basis.interior_dofs[0], 1.0)
        for facets in mesh.t2f:
            put(inside, basis.facet_dofs[0][facets], -0.5)
        for corners in mesh.t:
            put(inside, vertex[corners], 0.25)
    entries = np.concatenate(vals), (np.concatenate(rows), np.concatenate(cols))
    return csr_matrix(entries, shape=(size, basis.N)), nv


def functional_on(space: Space, r: WeakResidual) -> Array:
    """``<r, phi_i>`` for the functions of a hierarchical space."""
    flux = np.broadcast_to(-r.flux, (2, r.sampler.mesh.nelements, max(r.flux.shape[2], len(r.sampler.W))))
    result = r.sampler.moments(space, r.source, flux)
    if r.traces.basis is not None and r.natural.any():
        values = traces_of(space, r)
        density = np.broadcast_to(r.natural, r.traces.basis.dx.shape) * r.traces.basis.dx
        element = r.sampler.mesh.f2t[0, r.traces.facets]
        local = np.einsum("ifq,fq->if", values, density)
        result += np.bincount(space.element_dofs[:, element].ravel(), local.ravel(), minlength=space.N)
    return result


def traces_of(space: Space, r: WeakResidual) -> Array:
    """Local functions of a space at the points of the natural boundary, ``(functions, facets, points)``."""
    part: FacetBasis = r.traces.basis
    X = np.asarray(part.mapping.invF(np.asarray(part.global_coordinates()), part.tind))
    flat = Sampler(r.sampler.mesh, 0, points=X.reshape(2, -1))
    values = flat.table(space.elem)[0].reshape(-1, *part.dx.shape)
    if space.element_signs is not None:
        values = values * space.element_signs[:, part.tind][..., None]
    return values


def samples_of(space: Space, r: WeakResidual, dofs: Array) -> Samples:
    """Values, gradients and boundary values of a function of a hierarchical space."""
    trace = np.zeros((0, 1))
    if r.traces.basis is not None:
        local = dofs[space.element_dofs[:, r.traces.basis.tind]]
        trace = np.einsum("if,ifq->fq", local, traces_of(space, r))
    return r.sampler.values(space, dofs), r.sampler.gradients(space, dofs), trace


def bubble_search(
    enriched: Enriched, matrices: ElementMatrices, split: RieszSplit, factor: Factorization, free: NDArray[np.int64]
) -> Array:
    """A test function of V + W on which the rest of a residual is large: hierarchical dofs.

    With the residual zero on V, the best one is ``b - Pb``, P the projection on V and b in W the solution of
    ``(K_WW - K_WV K_VV^-1 K_VW) b = <rest, .>``; here by a few steps of conjugate gradients, one solve on V each.
    """
    T = enriched.to_hierarchical
    right = functional_on(enriched.space, split.rest)

    def off_trial_space(b: Array) -> Array:
        Kb = matrices.apply(b)
        z = np.zeros(T.shape[1])
        z[free] = factor.solve((T.T @ Kb)[free])
        return b - T @ z

    b = conjugate_gradients(
        lambda p: matrices.apply(off_trial_space(p)), right, matrices.diagonal, enriched.bubbles,
        steps=STEPS, enough=ENOUGH,
    )  # fmt: skip
    return off_trial_space(b)


def enriched_representative(enriched: Enriched, matrices: ElementMatrices, r: WeakResidual) -> Array:
    """The Riesz representative of a residual in V + W (with weights constant on elements): hierarchical dofs."""
    free = np.flatnonzero(enriched.free)
    K = matrices.assembled()[free][:, free]
    v = np.zeros(enriched.space.N)
    v[free] = Factorization(K, definite=True, name="enriched norm").solve(functional_on(enriched.space, r)[free])
    return v


def best_quotient(r: WeakResidual, functions: list[Samples]) -> float:
    """``sup <r, v> / ‖v‖`` over the span of functions given by samples: a lower bound of the dual norm."""
    h = np.array([r.apply(*f) for f in functions])
    G = np.array([[r.inner(f, g) for g in functions] for f in functions])
    scale = np.sqrt(np.diag(G))
    kept = scale > 0.0
    if not kept.any():
        return 0.0
    h, G = h[kept] / scale[kept], G[np.ix_(kept, kept)] / np.outer(scale[kept], scale[kept])
    # Any coefficients give a lower bound; these are the best ones.
    c = np.linalg.lstsq(G, h, rcond=1e-12)[0]
    length = float(c @ G @ c)
    rounding = UNIT * np.array([r.magnitude(*f) for f in functions])[kept] / scale[kept]
    return max(float(c @ h - np.abs(c) @ rounding) / np.sqrt(length), 0.0) if length > 0.0 else 0.0
