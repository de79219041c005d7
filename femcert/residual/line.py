"""Dual norms on lines, exact to rounding: test functions of high degree, and a flux that is an antiderivative."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial import legendre
from scipy.sparse import csr_matrix

from ..checks import Array
from ..linalg import Factorization
from ..mesh.sample import Sampler, dot
from ..problem.strong import StrongForm
from .hierarchy import Space
from .lower import UNIT
from .majorant import Majorant, majorant
from .quadrature import Quadrature
from .remainders import ROUNDING, deviation, finished_lower, is_exact, quadrature_words, upper_of_parts
from .weak import WeakResidual
from .workspace import Workspace

# Degrees of the test functions that are tried, until the rest of the residual is this small against the whole.
DEGREES, SMALL = (4, 8, 14, 24, 40), 1e-7


class HierarchicalLine:
    """Hats, and integrals of Legendre polynomials that vanish at both ends, up to a degree."""

    def __init__(self, degree: int) -> None:
        self.degree = degree
        self.doflocs = np.zeros((degree + 1, 1))

    def lbasis(self, X: Array, i: int) -> tuple[Array, Array]:
        """Value and slope of local basis function i."""
        if i < 2:
            return (X[0] if i else 1.0 - X[0]), np.full(X.shape, 2.0 * i - 1.0)
        t = 2.0 * X[0] - 1.0
        scale = 1.0 / np.sqrt(2.0 * (2 * i - 1))
        P = legendre.legvander(t, i)
        return scale * (P[:, i] - P[:, i - 2]), (2.0 * scale * (2 * i - 1) * P[:, i - 1])[None]


@dataclass(frozen=True)
class LineFlux:
    """A continuous piecewise polynomial, given on each element by its Legendre coefficients."""

    coefficients: Array

    trace_degree = 0

    def at(self, sampler: Sampler) -> tuple[Array, Array]:
        """Values and divergence."""
        t = 2.0 * sampler.X[0] - 1.0
        values = legendre.legval(t, self.coefficients)
        slope = legendre.legval(t, legendre.legder(self.coefficients))
        return values[None], 2.0 * slope / sampler.signed_determinant


@dataclass(frozen=True)
class LineBound:
    """Bounds on a line: the representative w in the enriched space, and the majorant of what is left."""

    residual: WeakResidual
    rule: Quadrature
    checked: Majorant
    upper: float
    lower: float
    indicators: Array

    sources = "flux on a line", "test functions of high degree"

    @property
    def exact(self) -> bool:
        """Whether all integrals were exact, or known to be within remainders that are included."""
        return is_exact(self.residual, self.rule)

    @property
    def words(self) -> str:
        """About the quadrature, for the record."""
        return quadrature_words(self.residual, self.rule)


def line_bound(
    workspace: Workspace, equation: StrongForm, state: Array, norm: str, *, loads: Array | None = None
) -> LineBound:
    """Both bounds of the dual norm of a residual on a line; they agree to rounding for smooth coefficients.

    Parameters
    ----------
    loads
        Strengths of point loads at the vertices, ``sum_i loads_i v(x_i)``, besides the source of the equation; for
        lines in one piece.
    """
    best: LineBound | None = None
    for degree in DEGREES:
        rule = workspace.rule(equation, norm, enriched=degree)
        r = workspace.residual(equation, state, norm, rule)
        if loads is not None:
            r = _with_loads(r, loads)
        bound = _with_degree(workspace, r, rule, norm, degree)
        # A low degree may have the least upper bound, by rounding, but never the largest lower one.
        if best is None or not best.exact:
            best = bound
        elif bound.exact:
            best = replace(bound, upper=min(bound.upper, best.upper), lower=max(bound.lower, best.lower))
        # Nor is there more to know of a residual that is rounding.
        if bound.checked.value <= max(SMALL * bound.upper, ROUNDING * r.size):
            break
    assert best is not None
    wider = deviation(workspace, state, best.residual, best.rule, norm)
    return replace(best, upper=wider.above(best.upper), lower=wider.below(best.lower))


def _with_loads(r: WeakResidual, loads: Array) -> WeakResidual:
    """The residual with point loads: ``v(x) = v(end) - int v'`` from x to the right end, a flux with a jump."""
    mesh = r.sampler.mesh
    x = mesh.p[0]
    order = np.argsort(x)
    passed = np.empty(len(x))
    passed[order] = np.cumsum(loads[order])
    first = mesh.t[np.argmin(x[mesh.t], axis=0), np.arange(mesh.nelements)]
    at_end = np.where(r.traces.facets == order[-1], loads.sum(), 0.0)[:, None]
    f, cu, g, alpha_u = r.terms
    return replace(
        r, flux=r.flux + passed[first][:, None], natural=r.natural + at_end, terms=(f, cu, g + at_end, alpha_u)
    )


def _with_degree(workspace: Workspace, r: WeakResidual, rule: Quadrature, norm: str, degree: int) -> LineBound:
    mesh, sampler = r.sampler.mesh, r.sampler
    nv, nt = mesh.nvertices, mesh.nelements
    inside = nv + np.arange((degree - 1) * nt).reshape(degree - 1, nt)
    space = Space(HierarchicalLine(degree), np.vstack([mesh.t, inside]), nv + inside.size, None, inside[:0])
    w = _representative(space, r)
    value, slope = sampler.values(space, w), sampler.gradients(space, w)
    trace = _at_ends(r, w)
    square = r.inner((value, slope, trace), (value, slope, trace))
    on_w = r.apply(value, slope, trace)
    rest = WeakResidual(
        r.basis, sampler, r.traces,
        source=r.source - r.norm.C * value,
        flux=r.flux + r.norm.A * slope,
        natural=r.natural - r.norm.B * trace,
        norm=r.norm, terms=r.terms,
    )  # fmt: skip
    flux = _antiderivative(rest)
    checked = majorant(rest, flux, rule, lambda sharp: workspace.friedrichs(r, rule, norm, sharp), workspace.facets)
    upper = upper_of_parts(r, rule, square, on_w - square, checked.value)
    sure = on_w - UNIT * r.magnitude(value, slope, trace)
    lower = finished_lower(sure / np.sqrt(square), r.size, rule.signed) if square > 0.0 else 0.0
    local = sampler.integral(r.norm.A * dot(slope, slope) + r.norm.C * value**2)
    indicators = np.sqrt(local + checked.elements**2)
    return LineBound(r, rule, checked, upper, lower, indicators)


def _representative(space: Space, r: WeakResidual) -> Array:
    """The Riesz representative in the enriched space."""
    sampler = r.sampler
    phi, slopes = sampler.table(space.elem)
    n = len(phi)
    dx = sampler.dx
    products = (slopes[:, 0, None] * slopes[None, :, 0]).reshape(n * n, -1)
    stiff = (r.norm.A * dx * sampler.inverse[0, 0] ** 2) @ products.T
    local = stiff + (r.norm.C * dx) @ (phi[:, None] * phi[None]).reshape(n * n, -1).T
    dofs = space.element_dofs.T
    rows, cols = np.repeat(dofs, n, axis=1).ravel(), np.tile(dofs, (1, n)).ravel()
    K = csr_matrix((local.ravel(), (rows, cols)), shape=(space.N, space.N)).tolil()
    right = sampler.moments(space, r.source, -r.flux)
    facets = r.traces.facets
    if len(facets):
        right[facets] += np.broadcast_to(r.natural, (len(facets), 1))[:, 0]
        weight = np.broadcast_to(r.norm.B, (len(facets), 1))[:, 0]
        for facet, b in zip(facets, weight, strict=True):
            K[facet, facet] += b
    free = np.setdiff1d(np.arange(space.N), r.traces.essential)
    w = np.zeros(space.N)
    factor = Factorization(K.tocsr()[free][:, free], definite=True, name="norm on the line")
    w[free] = factor.solve(right[free])
    return w


def _at_ends(r: WeakResidual, w: Array) -> Array:
    """Values on the natural boundary, which are those of the hats. Facets of a line are its vertices."""
    return w[r.traces.facets][:, None]


def _antiderivative(r: WeakResidual) -> LineFlux:
    """The flux with ``p' = -source``; its constant fits a natural end, else it is the one nearest to ``r.flux``."""
    sampler, mesh = r.sampler, r.sampler.mesh
    t = 2.0 * sampler.X[0] - 1.0
    degree = min(len(t) - 1, sampler.order // 2)
    source = np.broadcast_to(r.source, (mesh.nelements, len(t)))
    V = legendre.legvander(t, degree)
    fit = (V * sampler.W[:, None]).T @ source.T * (2.0 * np.arange(degree + 1) + 1.0)[:, None]
    half = sampler.signed_determinant[:, 0] / 2.0
    p = legendre.legint(-fit * half, lbnd=-1)
    order = np.argsort(mesh.p[0, mesh.t].min(axis=0))
    reverse = half < 0.0
    rise = legendre.legval(1.0, p)
    # From left to right: the left end of an element is its first vertex unless it is reversed.
    climb = np.where(reverse, -rise, rise)[order]
    left = np.zeros(mesh.nelements)
    left[order] = np.concatenate([[0.0], np.cumsum(climb)[:-1]])
    p[0] += np.where(reverse, left - rise, left)
    return LineFlux(_shifted(p, r))


def _shifted(p: Array, r: WeakResidual) -> Array:
    """Add constants to each connected piece; the pieces of an interval are one."""
    mesh, traces = r.sampler.mesh, r.traces
    values, _ = LineFlux(p).at(r.sampler)
    D = (r.flux - values)[0] / r.norm.A
    constant = float(r.sampler.integral(D).sum() / r.sampler.integral(np.ones_like(D) / r.norm.A).sum())
    if len(traces.facets):
        facet = int(traces.facets[0])
        element = int(mesh.f2t[0, facet])
        x = mesh.p[0, mesh.t[:, element]]
        end = int(mesh.t[1, element] == facet)
        outward = 1.0 if x[end] > x[1 - end] else -1.0
        here = float(legendre.legval(2.0 * end - 1.0, p[:, element]))
        constant = outward * float(np.broadcast_to(r.natural, (len(traces.facets), 1))[0, 0]) - here
    result = p.copy()
    result[0] += constant
    return result
