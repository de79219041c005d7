"""What the bounds of one state equation share: quadrature, factorizations, equilibration tables; each made once."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..bound import Bound
from ..checks import Array
from ..mesh.elements import degree
from ..mesh.sample import Sampler
from ..problem.boundary import BoundaryConditions
from ..problem.states import StateEquation
from ..problem.strong import StrongForm
from .equilibrate import Equilibration
from .friedrichs import box_friedrichs_constant, friedrichs_constant
from .hierarchy import ElementMatrices
from .lower import Enriched, enriched_space
from .patches import NormalTraces
from .quadrature import Quadrature, choose_rule
from .weak import Traces, WeakResidual, weak_residual

_spaces: WeakKeyDictionary[StateEquation, Workspace] = WeakKeyDictionary()


class Workspace:
    """Tables of one state equation, filled as they are needed."""

    def __init__(self, equation: StateEquation) -> None:
        self.basis = equation.basis
        self.free = equation.free
        self.degree = degree(equation.basis)
        self._samplers: dict[int, Sampler] = {}
        # With the boundary conditions that they are of, so that no other object gets its identity.
        self._traces: dict[tuple[int, int], tuple[BoundaryConditions, Traces]] = {}
        self._rules: dict[tuple[str, int | None, bool], tuple[Any, Quadrature]] = {}
        self._friedrichs: dict[bool, tuple[Quadrature, Traces, Bound | None]] = {}
        self._enriched: dict[bytes, Enriched] = {}
        self._kept: tuple[Array, Array, ElementMatrices] | None = None

    @cached_property
    def equilibration(self) -> Equilibration:
        """Patches and stream functions."""
        return Equilibration(self.basis.mesh, self.degree)

    @cached_property
    def facets(self) -> NormalTraces:
        """Whether fluxes are conforming."""
        return NormalTraces(next(iter(self._samplers.values())))

    def enriched(self, r: WeakResidual) -> Enriched:
        """Test functions of one degree more than the state that vanish on the Dirichlet facets of a residual."""
        essential = r.traces.essential
        key = essential.tobytes()
        if key not in self._enriched:
            self._enriched[key] = enriched_space(self.equilibration.space, self.basis, essential)
        return self._enriched[key]

    def rule(self, equation: StrongForm, norm: str, *, enriched: int | None = None, light: bool = False) -> Quadrature:
        """The quadrature for an equation; found anew if its coefficient or the degree of its source changed."""
        fixed = (equation.conductivity, equation.reaction, getattr(equation.source, "basis", equation.source))
        key = norm, enriched, light
        if key not in self._rules or not _same(self._rules[key][0], fixed):
            rule = choose_rule(equation, self.basis, energy=norm == "energy", enriched=enriched, light=light)
            self._rules[key] = fixed, rule
        return self._rules[key][1]

    def residual(self, equation: StrongForm, state: Array, norm: str, rule: Quadrature) -> WeakResidual:
        """The residual functional of a state, sampled."""
        if rule.order not in self._samplers:
            self._samplers[rule.order] = Sampler(self.basis.mesh, rule.order)
        key = id(equation.boundary), rule.order
        if key not in self._traces:
            self._traces[key] = equation.boundary, Traces(equation, self.basis, rule.order)
        sampler, traces = self._samplers[rule.order], self._traces[key][1]
        return weak_residual(equation, self.basis, state, sampler, traces, norm=norm)

    def matrices(self, r: WeakResidual) -> ElementMatrices:
        """Stiffness of the enriched space in the norm of `r`, with weights constant on elements."""
        A, C = (r.sampler.means(field) for field in (r.norm.A, r.norm.C))
        if not C.any() and not len(r.traces.essential):
            # Only a boundary term fixes the constants; a little mass takes its place in the search for test functions.
            C = A / np.sum(np.ptp(self.basis.mesh.p, axis=1) ** 2)
        if self._kept is None or not (np.array_equal(self._kept[0], A) and np.array_equal(self._kept[1], C)):
            mass = C if C.any() else None
            self._kept = A, C, ElementMatrices(self.enriched(r).space, self.basis.mesh, A, mass)
        return self._kept[2]

    def friedrichs(self, r: WeakResidual, rule: Quadrature, norm: str, sharp: bool) -> Bound | None:
        """``‖v‖_L2 <= C ‖v‖_V``: in closed form (or None), or from the eigenvalue problem of Crouzeix and Raviart."""
        if norm == "h1":
            return Bound(1.0, "upper", "the H1 norm is at least the L2 norm")
        kept = self._friedrichs.get(sharp)
        if kept is None or kept[0] is not rule or kept[1] is not r.traces:
            self._friedrichs[sharp] = kept = rule, r.traces, self._friedrichs_constant(r, rule, sharp)
        return kept[2]

    def _friedrichs_constant(self, r: WeakResidual, rule: Quadrature, sharp: bool) -> Bound | None:
        mesh, traces = self.basis.mesh, r.traces
        least = np.broadcast_to(rule.least_conductivity, mesh.nelements)
        if not sharp:
            whole = not len(traces.facets) and mesh.t.shape[0] > 2
            return box_friedrichs_constant(mesh, conductivity=float(least.min())) if whole else None
        robin = None
        floor = traces.least_coefficient()
        if np.any(floor > 0.0):
            robin = traces.facets, floor
        return friedrichs_constant(
            mesh, dirichlet=traces.essential, conductivity=least, robin=robin, reaction=rule.least_reaction.min()
        )


def workspace_of(equation: StateEquation) -> Workspace:
    """The workspace of a state equation, the same one each time."""
    if equation not in _spaces:
        _spaces[equation] = Workspace(equation)
    return _spaces[equation]


def _same(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    return all(a is b for a, b in zip(first, second, strict=True))
