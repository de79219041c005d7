"""Bounds of the residual of one elliptic equation: the trial space split off, flux and test functions for the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array
from ..errors import UncertifiedError
from ..linalg import Factorization
from ..mesh.sample import dot
from ..problem.strong import StrongForm
from .equilibrate import equilibrated_flux
from .line import LineBound, line_bound
from .lower import RieszSplit, best_quotient, bubble_search, samples_of, split, split_further
from .majorant import Majorant, majorant
from .patches import Flux, NotConformingError
from .quadrature import Quadrature
from .remainders import deviation, finished_lower, is_exact, quadrature_words, upper_of_parts
from .weak import WeakResidual
from .workspace import Workspace

# Against the misfit of the flux: too little to spend bubbles on.
SMALL_OSCILLATION = 0.01
# A reaction c with c h² above this many a needs further terms.
DOMINATING = 4.0
# Most improving steps of the flux; on meshes that are not stretched it takes far fewer.
STEPS = 60


@dataclass(frozen=True)
class EllipticBound:
    """A residual, split, with its upper bound, and with its lower bound when it is first asked for.

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
    below
        Computes the lower bound.
    """

    residual: WeakResidual
    parts: RieszSplit
    rule: Quadrature
    checked: Majorant
    upper: float
    below: Callable[[], float]

    sources = "equilibrated flux", "bubbles beyond the trial space"

    @cached_property
    def lower(self) -> float:
        """The residual on the best combination of w and of a test function beyond the trial space."""
        return self.below()

    @cached_property
    def indicators(self) -> Array:
        """Root of ``‖w‖_K²`` plus the squared majorant on each element."""
        square = self.checked.elements**2
        if self.parts.square > 0.0:
            r = self.residual
            value, slope, _ = self.parts.samples or r.samples(self.parts.representative)
            square = square + r.sampler.integral(r.norm.A * dot(slope, slope) + r.norm.C * value**2)
        return np.sqrt(square)

    @property
    def exact(self) -> bool:
        """Whether all integrals were exact, or known to be within remainders that are included."""
        return is_exact(self.residual, self.rule)

    @property
    def words(self) -> str:
        """About the quadrature, for the record."""
        return quadrature_words(self.residual, self.rule)


def bounded(
    workspace: Workspace,
    equation: StrongForm,
    state: Array,
    norm: str,
    factor: Callable[[], Factorization],
    *,
    steps: int | None = None,
    loads: Array | None = None,
) -> EllipticBound | LineBound:
    """Both bounds of the dual norm of the residual of a state in an equation, on lines or in the plane.

    Parameters
    ----------
    factor
        Makes the factorization of the norm's matrix; a line needs none.
    steps
        Most improving steps of the flux in the plane.
    loads
        Point loads at the vertices, see `line_bound`; on a line only.
    """
    if workspace.basis.mesh.dim() == 1:
        return line_bound(workspace, equation, state, norm, loads=loads)
    assert loads is None
    return elliptic_bound(workspace, equation, state, norm, factor(), steps=steps)


def elliptic_bound(
    workspace: Workspace,
    equation: StrongForm,
    state: Array,
    norm: str,
    factor: Factorization,
    *,
    steps: int | None = None,
) -> EllipticBound:
    """Bounds of the dual norm of the residual of a state in an equation, on triangles or quadrilaterals.

    For P1 on triangles first without bubbles, with fewer quadrature points; on fine meshes the source hardly varies on
    an element, and that is enough.
    """
    search = _Search(workspace, equation, state, norm, factor, STEPS if steps is None else steps)
    result = search.best()
    wider = deviation(workspace, state, result.residual, result.rule, norm)
    return replace(result, upper=wider.above(result.upper))


@dataclass(frozen=True)
class _Search:
    """The ways to an upper bound, from the cheapest to the sharpest, for one state in one equation."""

    workspace: Workspace
    equation: StrongForm
    state: Array
    norm: str
    factor: Factorization
    steps: int

    def best(self) -> EllipticBound:
        if self.workspace.degree == 1 and self.workspace.basis.mesh.t.shape[0] == 3:
            result = self._equilibrated(light=True)
            if result.checked.oscillation <= SMALL_OSCILLATION * result.checked.misfit and not self._reacts(result):
                return result
        result = self._equilibrated(light=False)
        if not self._reacts(result):
            return result
        sharper = self._with_bubbles()
        return sharper if sharper.upper < result.upper else result

    def below(self) -> float:
        """The lower bound."""
        r, rule = self._sampled()
        value = lower_bound(self.workspace, r, rule, split(r, self.factor, self.workspace.free), self.factor)
        return deviation(self.workspace, self.state, r, rule, self.norm).below(value)

    def _sampled(self, **options: Any) -> tuple[WeakResidual, Quadrature]:
        rule = self.workspace.rule(self.equation, self.norm, **options)
        return self.workspace.residual(self.equation, self.state, self.norm, rule), rule

    def _reacts(self, result: EllipticBound) -> bool:
        """Whether the reaction dominates on some element, so that the flux, which is made without it, is not sharp."""
        r = result.residual
        ratio = r.sampler.means(r.norm.C) * self.workspace.facets.diameters**2 / r.sampler.means(r.norm.A)
        return bool(ratio.max() > DOMINATING) and result.checked.value**2 > SMALL_OSCILLATION * result.parts.square

    def _equilibrated(self, *, light: bool) -> EllipticBound:
        r, rule = self._sampled(light=light)
        parts = split(r, self.factor, self.workspace.free)
        flux = equilibrated_flux(self.workspace.equilibration, parts.rest, steps=self.steps, bubbles=not light)
        return checked_bound(self.workspace, r, parts, rule, self.norm, flux, self.below)

    def _with_bubbles(self) -> EllipticBound:
        """The bound after bubbles beyond the trial space have been split off too.

        They carry nearly all of the residual also where the reaction dominates, and what the flux makes too large is
        then small.
        """
        workspace, free = self.workspace, self.workspace.free
        r, rule = self._sampled(enriched=workspace.degree + 1)
        parts = split(r, self.factor, free)
        v = bubble_search(workspace.enriched(r), workspace.matrices(r), parts, self.factor, free)
        parts = split_further(r, parts, samples_of(workspace.enriched(r).space, r, v), self.factor, free)
        flux = equilibrated_flux(workspace.equilibration, parts.rest, steps=self.steps)
        return checked_bound(workspace, r, parts, rule, self.norm, flux, self.below)


def lower_bound(
    workspace: Workspace, r: WeakResidual, rule: Quadrature, parts: RieszSplit, factor: Factorization
) -> float:
    """A residual on the best combination of its representative w and of a test function beyond the trial space."""
    enriched = workspace.enriched(r)
    v = bubble_search(enriched, workspace.matrices(r), parts, factor, workspace.free)
    functions = [samples_of(enriched.space, r, v)]
    if parts.representative.any():
        functions.append(r.samples(parts.representative))
    return finished_lower(best_quotient(r, functions), r.size, rule.signed)


def checked_bound(
    workspace: Workspace,
    r: WeakResidual,
    parts: RieszSplit,
    rule: Quadrature,
    norm: str,
    flux: Flux,
    below: Callable[[], float],
) -> EllipticBound:
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
    upper = upper_of_parts(r, rule, parts.square, parts.cross, checked.value)
    return EllipticBound(r, parts, rule, checked, upper, below)
