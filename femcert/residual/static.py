"""Bounds of the residual of one elliptic equation: the trial space split off, flux and test functions for the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array
from ..errors import UncertifiedError
from ..linalg import Factorization
from ..mesh.sample import dot
from ..problem.strong import StrongForm
from .deviation import deviation
from .equilibrate import equilibrated_flux
from .flux import Flux
from .lower import best_quotient, bubble_search, samples_of
from .majorant import Majorant, majorant
from .quadrature import Rule
from .riesz import Split, split, split_further
from .traces import NotConformingError
from .weak import WeakResidual
from .workspace import Workspace

# Against the misfit of the flux: too little to spend bubbles on.
SMALL_OSCILLATION = 0.01
# A reaction c with c h² above this many a asks for more.
DOMINATING = 4.0
# Most improving steps of the flux; on meshes that are not stretched it takes far fewer.
STEPS = 60
# Sums of many terms, relative to the result; and differences of fluxes, relative to the fluxes.
ROUNDING, SIZE_ROUNDING = 1e-12, 1e-14


class Sampled:
    """A residual with the rule it was sampled by: whether its integrals are exact."""

    residual: WeakResidual
    rule: Rule

    @property
    def exact(self) -> bool:
        """Whether all integrals were exact, or known to be within remainders that are included."""
        return described(self.residual, self.rule)[0]

    @property
    def words(self) -> str:
        """About the quadrature, for the record."""
        return described(self.residual, self.rule)[1]


@dataclass(frozen=True)
class Static(Sampled):
    """A residual, split, with its upper bound.

    Attributes
    ----------
    residual, parts
        The functional, and its split into a part on the trial space and the rest.
    rule
        Quadrature, and whether it is exact.
    checked
        The majorant of the rest.
    upper
        ``(‖w‖² + 2 rest(w) + ‖rest‖²)^1/2``.
    """

    workspace: Workspace
    factor: Factorization
    residual: WeakResidual
    parts: Split
    rule: Rule
    checked: Majorant
    upper: float

    def indicators(self) -> Array:
        """Root of ``‖w‖_K²`` plus the squared majorant on each element."""
        square = self.checked.elements**2
        if self.parts.square > 0.0:
            r = self.residual
            value, slope, _ = self.parts.samples or r.samples(self.parts.representative)
            square = square + r.sampler.integral(r.norm.A * dot(slope, slope) + r.norm.C * value**2)
        return np.sqrt(square)


def static_bound(
    workspace: Workspace,
    equation: StrongForm,
    state: Array,
    norm: str,
    factor: Factorization,
    *,
    steps: int | None = None,
) -> Static:
    """Upper bound of the dual norm of the residual of a state in an equation, on triangles or quadrilaterals.

    For P1 on triangles first without bubbles, with fewer quadrature points; on fine meshes the source hardly varies on
    an element, and that is enough.
    """
    result = _bound(workspace, equation, state, norm, factor, STEPS if steps is None else steps)
    wider = deviation(workspace, state, result.residual, result.rule, norm)
    return replace(result, upper=wider.above(result.upper))


def _bound(
    workspace: Workspace, equation: StrongForm, state: Array, norm: str, factor: Factorization, most: int
) -> Static:
    if workspace.degree == 1 and workspace.basis.mesh.t.shape[0] == 3:
        result = _with_rule(workspace, equation, state, norm, factor, most, light=True)
        if result.checked.oscillation <= SMALL_OSCILLATION * result.checked.misfit and not _reacts(result):
            return result
    result = _with_rule(workspace, equation, state, norm, factor, most, light=False)
    if not _reacts(result):
        return result
    sharper = _with_bubbles(workspace, equation, state, norm, factor, most)
    return sharper if sharper.upper < result.upper else result


def _reacts(result: Static) -> bool:
    """Whether the reaction dominates on some element, and the flux, which knows nothing of it, matters."""
    r = result.residual
    ratio = r.sampler.means(r.norm.C) * result.workspace.facets.diameters**2 / r.sampler.means(r.norm.A)
    return bool(ratio.max() > DOMINATING) and result.checked.value**2 > SMALL_OSCILLATION * result.parts.square


def _with_bubbles(
    workspace: Workspace, equation: StrongForm, state: Array, norm: str, factor: Factorization, steps: int
) -> Static:
    """The bound after bubbles beyond the trial space have been split off too.

    They carry nearly all of the residual also where the reaction dominates, and what the flux makes too large is then
    small.
    """
    rule = workspace.rule(equation, norm, enriched=workspace.degree + 1)
    r = workspace.residual(equation, state, norm, rule)
    parts = split(r, factor, workspace.free)
    v = bubble_search(workspace.enriched(r), workspace.matrices(r), parts, factor, workspace.free)
    parts = split_further(r, parts, samples_of(workspace.enriched(r).space, r, v), factor, workspace.free)
    flux = equilibrated_flux(workspace.equilibration, parts.rest, steps=steps)
    return checked_bound(workspace, r, parts, rule, norm, factor, flux)


def static_lower(workspace: Workspace, equation: StrongForm, state: Array, norm: str, factor: Factorization) -> float:
    """The residual on the best combination of w and of a test function beyond the trial space."""
    rule = workspace.rule(equation, norm)
    r = workspace.residual(equation, state, norm, rule)
    parts = split(r, factor, workspace.free)
    v = bubble_search(workspace.enriched(r), workspace.matrices(r), parts, factor, workspace.free)
    functions = [samples_of(workspace.enriched(r).space, r, v)]
    if parts.representative.any():
        functions.append(r.samples(parts.representative))
    return deviation(workspace, state, r, rule, norm).below(lowered(r, rule, best_quotient(r, functions)))


def _with_rule(
    workspace: Workspace,
    equation: StrongForm,
    state: Array,
    norm: str,
    factor: Factorization,
    steps: int,
    *,
    light: bool,
) -> Static:
    rule = workspace.rule(equation, norm, light=light)
    r = workspace.residual(equation, state, norm, rule)
    parts = split(r, factor, workspace.free)
    flux = equilibrated_flux(workspace.equilibration, parts.rest, steps=steps, bubbles=not light)
    return checked_bound(workspace, r, parts, rule, norm, factor, flux)


def checked_bound(
    workspace: Workspace, r: WeakResidual, parts: Split, rule: Rule, norm: str, factor: Any, flux: Flux
) -> Static:
    """The upper bound that a flux for the rest of a residual gives."""
    def constant(sharp: bool) -> Bound | None:
        return workspace.friedrichs(r, rule, norm, sharp)

    try:
        checked = majorant(parts.rest, flux, rule, constant, workspace.facets)
    except NotConformingError as error:
        # It is conforming by construction.
        raise UncertifiedError(
            f"the elements are too thin for a flux in double precision ({error}); use method='enriched'"
        ) from None
    square = parts.square * (1.0 + ROUNDING + rule.signed) + 2.0 * abs(parts.cross) + checked.value**2
    # What quadrature may miss of r(w) and of rest(w).
    square += 4.0 * rule.signed * size_of(r) * float(np.sqrt(max(parts.square, 0.0)))
    upper = float(np.sqrt(square)) * (1.0 + ROUNDING) + SIZE_ROUNDING * size_of(r)
    return Static(workspace, factor, r, parts, rule, checked, upper)


def size_of(r: WeakResidual) -> float:
    """``‖A^-1/2 flux‖`` and what reaction and Robin terms add to it: what the residual is a small difference of."""
    square = r.sampler.integral(dot(r.flux, r.flux) / r.norm.A).sum()
    _, cu, _, alpha_u = r.terms
    if cu.any():
        square += r.sampler.integral(cu**2 / np.where(r.norm.C > 0.0, r.norm.C, 1.0)).sum()
    if r.traces.basis is not None and r.norm.B.any():
        square += np.sum(alpha_u**2 / np.where(r.norm.B > 0.0, r.norm.B, 1.0) * r.traces.basis.dx)
    return float(np.sqrt(square))


def lowered(r: WeakResidual, rule: Rule, quotient: float) -> float:
    """A quotient of quadratures made a lower bound: less the remainders of quadrature, and rounding."""
    # The norm of a test function divides by nothing: where products are polynomials, so is its square.
    quotient -= size_of(r) * (2.0 * rule.signed + SIZE_ROUNDING)
    return max(quotient, 0.0) / (1.0 + rule.signed) * (1.0 - ROUNDING)


def described(r: WeakResidual, rule: Rule) -> tuple[bool, str]:
    """Whether all integrals were exact (or their remainders included), and words about it for the record."""
    if rule.exact and not r.traces.exact:
        return False, f"quadrature not exact: {r.traces.doubt}"
    if rule.exact and rule.missed is not None:
        return True, f"{rule.words}, declared errors included"
    return rule.exact, rule.words
