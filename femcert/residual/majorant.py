"""The independent checker: an upper bound of a dual norm from any conforming flux, wherever it came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array, required
from ..errors import InputError, UncertifiedError
from ..mesh.elements import same_mesh
from ..mesh.geometry import cross
from ..mesh.sample import dot
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.states import strong_form
from ..shown import Shown
from .energy import state_equation
from .flux import ElementFlux
from .patches import Flux, NormalTraces, facet_parameter
from .quadrature import Quadrature
from .remainders import finished_upper, is_exact, quadrature_words
from .weak import WeakResidual, check_norm
from .workspace import workspace_of

# A defect this small against the bound is rounding: its factor is then a crude one, CRUDE diameters of the domain.
NEGLIGIBLE, CRUDE = 1e-6, 1e4
# What rounding leaves of the balance of the elements, relative to the flux (times their sizes).
BALANCE_ROUNDING = 1e-9
# A defect this small does not call for a sharper constant.
SMALL = 1e-2


@dataclass(frozen=True, repr=False)
class Majorant(Shown):
    """An upper bound of ``‖r‖`` and its parts.

    Attributes
    ----------
    value
        The bound.
    elements
        Contributions of the elements; the root of the sum of their squares is `value` but for the defect.
    misfit, oscillation, defect
        ``‖A^-1/2 (p - flux)‖``; the part of the source and of the natural data that no flux of this space matches; and
        the Friedrichs constant times what is missing in the balance of the elements.
    exact
        Whether all integrals were exact, or their remainders known and included.
    words
        About that, for the record.
    """

    value: float
    elements: Array
    misfit: float
    oscillation: float
    defect: float
    exact: bool
    words: str

    def summary(self) -> dict[str, str]:
        """The bound and its parts."""
        return {
            "value": f"{self.value:.6g} on {len(self.elements)} elements",
            "misfit": f"{self.misfit:.4g}",
            "oscillation": f"{self.oscillation:.4g}",
            "defect": f"{self.defect:.4g}",
            "integrals": self.words or ("exact" if self.exact else "not exact"),
        }

    @property
    def bound(self) -> Bound:
        """The value with its side: ``"upper"`` where the quadrature was exact, else ``"estimate"``."""
        return Bound(self.value, "upper" if self.exact else "estimate", f"majorant of a conforming flux, {self.words}")


def majorant(
    r: WeakResidual, flux: Flux, rule: Quadrature, constant: Callable[[bool], Bound | None], check: NormalTraces
) -> Majorant:
    """Upper bound of ``sup <r, v> / ‖v‖`` over H1 functions v that vanish on the Dirichlet boundary.

    For any flux p with continuous normal component

        <r, v> = (source + div p, v) + <natural - p.n, v> + (p - flux, grad v),

    so with ``R = source + div p``, its mean on each element taken out (Payne-Weinberger, convex elements),

        ‖r‖ <= ( sum_K ( ‖A^-1/2 (p - flux)‖_K + h_K / (pi A_K^1/2) ‖R - mean R‖_K + facets_K )² )^1/2 + C_F ‖mean R‖,

    with true diameters h_K, ``A_K = min A`` on K, and for a natural facet e of K, ``J = natural - p.n``,
    ``facets_K = (|e| h_K² (1/pi + 1/pi²) / (|K| A_K))^1/2 ‖J - mean J‖_e``.

    Parameters
    ----------
    rule
        The quadrature that `r` was sampled with.
    constant
        Makes the Friedrichs constant of the norm, ``‖v‖_L2 <= C_F ‖v‖``: a cheap one (or None) for ``False``, a sharp
        one for ``True``; called only where it matters.
    check
        Of the facets of the mesh.

    Raises
    ------
    UncertifiedError
        The flux is not conforming, or an element is not convex.
    """
    sampler, mesh = r.sampler, r.sampler.mesh
    _check_convex(mesh)
    values, divergence = flux.at(sampler)
    D = values - r.flux
    misfit = sampler.integral(dot(D, D) / r.norm.A)
    if rule.separate:
        size = dot(values, values) + dot(r.flux, r.flux)
        misfit = misfit + 4.0 * rule.remainder * sampler.integral(size / r.norm.A)
    else:
        misfit = misfit * (1.0 + rule.remainder)
    R = r.source + divergence
    area, h = check.areas, check.diameters
    mean = sampler.integral(R) / area
    rest = sampler.integral((R - mean[:, None]) ** 2) * (1.0 + rule.remainder) if R.shape[1] > 1 else 0.0 * mean
    least = np.broadcast_to(rule.least_conductivity, mean.shape)
    factor = h / (np.pi * np.sqrt(least))
    reaction = np.broadcast_to(rule.least_reaction, mean.shape)
    factor = np.minimum(factor, 1.0 / np.sqrt(np.maximum(reaction, 1e-300)))
    oscillation = factor * np.sqrt(rest)
    facets, boundary_mean = _facet_terms(r, *check.traces(flux, r.traces.facets), h / np.sqrt(least), area)
    elements = np.sqrt(misfit) + oscillation + facets
    value = float(np.sqrt(np.sum(elements**2)))
    lacking = float(np.sqrt(np.sum(mean**2 * area)))
    crude = _crude_constant(r, float(least.min()), float(area.sum()))
    # On strongly graded meshes rounding in the balance of tiny elements, against the whole flux.
    rounding = CRUDE * BALANCE_ROUNDING * float(np.sqrt(sampler.integral(dot(r.flux, r.flux) / r.norm.A).sum()))
    width = float(h.max() / np.sqrt(least.min()))
    defect = _defect(lacking, boundary_mean, value, crude, rounding, width, constant)
    return Majorant(
        value=value + defect,
        elements=elements,
        misfit=float(np.sqrt(np.sum(misfit))),
        oscillation=float(np.sqrt(np.sum((oscillation + facets) ** 2))),
        defect=defect,
        exact=rule.exact,
        words=rule.words,
    )


def _facet_terms(
    r: WeakResidual, points: Array, normal: Array, scaled_diameter: Array, area: Array
) -> tuple[Array, float]:
    """Contribution of the natural facets to their elements, and the norm of the mean defects on them."""
    mesh, part, facets = r.sampler.mesh, r.traces.basis, r.traces.facets
    result = np.zeros(mesh.nelements)
    if part is None:
        return result, 0.0
    G = np.broadcast_to(r.natural, part.dx.shape)
    element = mesh.f2t[0, facets]
    if mesh.t.shape[0] == 2:
        gap = np.abs(G[:, 0] - normal[:, 0])
        return result, float(np.sqrt(2.0 * np.sum(gap**2 / area[element])))
    s = facet_parameter(mesh, facets, np.asarray(part.global_coordinates()))
    length, area = part.dx.sum(axis=1), areas_over(mesh, facets, element)
    J = G - _interpolated(points, normal, s)
    mean = np.sum(J * part.dx, axis=1) / length
    rest = np.sqrt(np.sum((J - mean[:, None]) ** 2 * part.dx, axis=1))
    trace = scaled_diameter[element] * np.sqrt(length / area * (1.0 / np.pi + 1.0 / np.pi**2))
    np.add.at(result, element, trace * rest)
    # An element with several natural facets counts for each of them.
    most = int(np.bincount(element).max())
    return result, float(np.sqrt(most * np.sum(mean**2 * length**2 / area)))


def areas_over(mesh: Any, facets: Any, element: Any) -> Array:
    """Area of the element over a facet; of a quadrilateral, that of the larger triangle in it with this side."""
    p, t = mesh.p, mesh.t[:, element]
    start, end = mesh.p[:, mesh.facets[:, facets]].transpose(1, 0, 2)
    edge = end - start
    arms = [p[:, corner] - start for corner in t]
    return np.asarray(np.max([np.abs(cross(edge, arm)) / 2.0 for arm in arms], axis=0))


def _interpolated(points: Array, values: Array, s: Array) -> Array:
    """Lagrange interpolation of values at `points` along each facet, evaluated at `s`."""
    result = np.zeros_like(s)
    for i, here in enumerate(points):
        shape = np.ones_like(s)
        for other in np.delete(points, i):
            shape = shape * (s - other) / (here - other)
        result += values[:, i : i + 1] * shape
    return result


def _defect(
    lacking: float,
    on_boundary: float,
    value: float,
    crude: float,
    rounding: float,
    scaled_diameter: float,
    constant: Callable[[bool], Bound | None],
) -> float:
    """``C_F ‖mean R‖ + (C_F² + 2 h C_F / A^1/2)^1/2 ‖mean J‖``, the second by a trace inequality on the elements."""
    if lacking == 0.0 and on_boundary == 0.0:
        return 0.0

    def term(C: float) -> float:
        return C * lacking + np.sqrt(C**2 + 2.0 * scaled_diameter * C) * on_boundary

    if term(crude) <= NEGLIGIBLE * value or term(crude) <= min(rounding, SMALL * value):
        return float(term(crude))
    cheap = constant(False)
    if cheap is not None and term(cheap.value) <= SMALL * value:
        return float(term(cheap.value))
    sharp = constant(True)
    return float(min(term(bound.value) for bound in (cheap, sharp) if bound is not None))


def _crude_constant(r: WeakResidual, least: float, area: float) -> float:
    """Far above the Friedrichs constant: from the diameter, and without Dirichlet facets from what holds constants."""
    square = np.sum(np.ptp(r.sampler.mesh.p, axis=1) ** 2) / least
    if not len(r.traces.essential):
        constant = np.ones((r.sampler.mesh.nelements, 1)), np.zeros((1, 1, 1)), np.ones(r.norm.B.shape)
        energy = r.inner(constant, constant)
        square = square + area / energy if energy > 0.0 else np.inf
    return CRUDE * float(np.sqrt(square))


def _check_convex(mesh: Any) -> None:
    if mesh.t.shape[0] != 4:
        return
    x = mesh.p[:, mesh.t]
    turns = []
    for i in range(4):
        a, b = x[:, (i + 1) % 4] - x[:, i], x[:, (i + 2) % 4] - x[:, (i + 1) % 4]
        turns.append(cross(a, b))
    turning = np.array(turns)
    if not np.all((turning.min(axis=0) > 0.0) | (turning.max(axis=0) < 0.0)):
        raise UncertifiedError("some quadrilaterals are not convex; split them, or use method='enriched'")


# Jumps of a flux beyond this, relative to the flux, are more than the rounding of its evaluation.
JUMP = 1e-13


def flux_majorant(problem: Problem, candidate: Candidate, flux: Any, *, norm: str = "energy") -> Majorant:
    """Upper bound of the dual norm of a candidate's residual from any conforming flux p, close to ``a grad u`` or not.

    How the flux was made does not matter: the function checks that the normal component is continuous, and evaluates
    the misfit, the divergence defect times a guaranteed Friedrichs constant, and the oscillation; see `majorant`.

    Parameters
    ----------
    flux
        A pair ``(basis, dofs)`` of a scikit-fem basis with an H(div) element (``ElementTriRT1``, ``ElementQuadRT1``; on
        lines ``ElementLineP1`` or ``P2``) on the problem's mesh.
    norm
        ``"energy"`` or ``"h1"``.

    Returns
    -------
    Majorant
        Its ``bound`` has the side ``"upper"`` where the quadrature was exact.

    Raises
    ------
    UncertifiedError
        The flux is not conforming, or the strong form of the state equation is not known.
    """
    check_norm(norm)
    equation = state_equation(problem, "flux_majorant")
    check_candidate(problem, candidate)
    form = required(strong_form(equation, candidate.parameter), "flux_majorant", "the strong form", problem)
    if not isinstance(flux, (tuple, list)) or len(flux) != 2:
        raise InputError(f"flux is a {type(flux).__name__}; expected a pair (basis, dofs)")
    given = ElementFlux(*flux)
    if not same_mesh(given.basis.mesh, equation.basis.mesh):
        raise InputError("the flux lives on another mesh than the problem; build its basis on the same mesh")
    workspace = workspace_of(equation)
    rule = workspace.rule(form, norm, enriched=max(workspace.degree, given.trace_degree))
    r = workspace.residual(form, problem.check_state(candidate.state), norm, rule)

    def constant(sharp: bool) -> Bound | None:
        return workspace.friedrichs(r, rule, norm, sharp)

    result = majorant(r, given, rule, constant, workspace.facets)
    jumps = _jumps(r, given, workspace.facets, rule, constant)
    value = finished_upper(result.value + jumps, r.size)
    exact, words = is_exact(r, rule), quadrature_words(r, rule)
    if rule.missed is not None:
        exact, words = False, "without the declared errors of its coefficients; use dual_norm, which includes them"
    return replace(result, value=value, defect=result.defect + jumps, exact=exact, words=words)


def _jumps(
    r: WeakResidual, flux: ElementFlux, check: NormalTraces, rule: Quadrature, constant: Callable[[bool], Bound | None]
) -> float:
    """What jumps of the normal component contribute that are too small to refuse the flux, but larger than rounding.

    ``sum_e <[p.n], v>_e`` with the trace inequality of the majorant on one element of each facet.
    """
    mesh, squares = r.sampler.mesh, check.jumps(flux)
    element = mesh.f2t[0]
    over, length = check.areas[element], np.ones(len(squares))
    if mesh.dim() == 2:
        start, end = mesh.p[:, mesh.facets].transpose(1, 0, 2)
        over, length = areas_over(mesh, np.arange(len(squares)), element), np.linalg.norm(end - start, axis=0)
    size = float(r.sampler.integral(dot(r.flux, r.flux)).sum())
    if not float(np.sum(squares * over / length)) > JUMP**2 * size:
        return 0.0
    C = constant(True) or constant(False)
    assert C is not None
    width = float(check.diameters.max() / np.sqrt(rule.least_conductivity.min()))
    # Each element counts at most once for each of its facets.
    total = float(len(mesh.t2f) * np.sum(squares * length / over))
    return float(np.sqrt(total * (C.value**2 + 2.0 * width * C.value)))
