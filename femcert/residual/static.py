"""Bounds of the residual of one elliptic equation: the trial space split off, the rest between a flux and test functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..linalg import Factorization
from ..problem.checks import Array
from ..problem.equation import Equation
from .equilibrate import equilibrated_flux
from .flux import Flux
from .lower import best_quotient, bubble_search, samples_of
from .majorant import Majorant, majorant
from .quadrature import Rule
from .riesz import Split, split
from .weak import WeakResidual
from .workspace import Workspace

# Improving steps of the flux, by degree of the state.
STEPS = {1: 4, 2: 6}
# Sums of many terms, relative to the result.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Static:
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

    @property
    def exact(self) -> bool:
        """Whether all integrals were exact, or known to be within remainders that are included."""
        return self.rule.exact and self.residual.traces.exact

    @property
    def words(self) -> str:
        """About the quadrature, for the record."""
        if self.rule.exact and not self.residual.traces.exact:
            return "quadrature not exact: a boundary value is not a polynomial along the facets"
        return self.rule.words

    def indicators(self) -> Array:
        """Root of ``‖w‖_K²`` plus the squared majorant on each element."""
        square = self.checked.elements**2
        if self.parts.representative.any():
            r = self.residual
            value, slope, _ = r.samples(self.parts.representative)
            square = square + r.sampler.integral(r.norm.A * np.sum(slope**2, axis=0) + r.norm.C * value**2)
        return np.sqrt(square)

    def lower(self) -> float:
        """The residual on the best combination of w and of a test function beyond the trial space."""
        r, space = self.residual, self.workspace.enriched.space
        v = bubble_search(
            self.workspace.enriched, self.workspace.matrices(r), self.parts, self.factor, self.workspace.free
        )
        functions = [samples_of(space, r, v)]
        if self.parts.representative.any():
            functions.append(r.samples(self.parts.representative))
        return self.lowered(best_quotient(r, functions))

    def lowered(self, quotient: float) -> float:
        """A quotient of quadratures made a lower bound: less the remainders of quadrature."""
        epsilon = float(self.rule.remainder.max(initial=0.0))
        if self.rule.separate and epsilon > 0.0:
            r = self.residual
            size = float(np.sqrt(r.sampler.integral(np.sum(r.flux**2, axis=0) / r.norm.A).sum()))
            quotient -= 2.0 * epsilon * size
        return max(quotient * (1.0 - epsilon) * (1.0 - ROUNDING), 0.0)


def static_bound(
    workspace: Workspace, equation: Equation, state: Array, norm: str, factor: Factorization, *, steps: int | None = None
) -> Static:
    """Upper bound of the dual norm of the residual of a state in an equation, on triangles or quadrilaterals."""
    rule = workspace.rule(equation, norm)
    r = workspace.residual(equation, state, norm, rule)
    parts = split(r, factor, workspace.free)
    most = STEPS[workspace.degree] if steps is None else steps
    flux = equilibrated_flux(workspace.equilibration, parts.rest, steps=most)
    return checked_bound(workspace, r, parts, rule, norm, factor, flux)


def checked_bound(
    workspace: Workspace, r: WeakResidual, parts: Split, rule: Rule, norm: str, factor: Any, flux: Flux
) -> Static:
    """The upper bound that a flux for the rest of a residual gives."""
    checked = majorant(parts.rest, flux, rule, lambda sharp: workspace.friedrichs(r, rule, norm, sharp))
    square = parts.square * (1.0 + ROUNDING) + 2.0 * abs(parts.cross) + checked.value**2
    return Static(workspace, factor, r, parts, rule, checked, float(np.sqrt(square)) * (1.0 + ROUNDING))
