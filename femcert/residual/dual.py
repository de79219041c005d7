"""The dual norm of the physics residual over the continuous space, between two bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array, count, frozen, real_array, required
from ..errors import InputError, UncertifiedError
from ..linalg import Factorization
from ..mesh.elements import degree
from ..mesh.geometry import diameters
from ..mesh.sample import Sampler, callable_of, dot, nodal_fit
from ..problem.base import Problem, check_problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.candidate_functions import check_frozen
from ..problem.states import strong_form
from ..problem.strong import StrongForm, is_zero
from ..shown import Shown
from .elliptic import STEPS, EllipticBound, bounded, checked_bound, lower_bound
from .energy import state_equation, state_norm
from .equilibrate import equilibrated_flux
from .line import LineBound
from .lower import best_quotient, enriched_representative, samples_of, split
from .patches import NormalTraces
from .quadrature import MOST_ORDER, Quadrature
from .remainders import deviation, finished_lower, is_exact, quadrature_words
from .weak import WeakResidual, check_norm
from .workspace import Workspace, workspace_of

METHODS = ("equilibrated", "enriched", "riesz", "indicator")


class DualNorm(Shown):
    """``‖r‖ = sup <r, v> / ‖v‖_V`` over all v in H1 that vanish on the Dirichlet boundary, or what is known of it.

    Attributes
    ----------
    upper
        Bound from above (side ``"upper"``, or ``"estimate"`` where something was not exact), or None.
    lower
        Bound from below, computed when it is first asked for, or None.
    indicators
        One nonnegative number per element; the root of the sum of their squares is about `upper`.
    method, norm
        As asked for.
    """

    def __init__(
        self,
        *,
        upper: Bound | None,
        lower: Callable[[], Bound] | None,
        indicators: Array,
        method: str,
        norm: str,
    ) -> None:
        self.upper = upper
        self._lower = lower
        self.indicators = frozen(indicators)
        self.method = method
        self.norm = norm

    @cached_property
    def lower(self) -> Bound | None:
        """Bound from below."""
        return None if self._lower is None else self._lower()

    @property
    def best(self) -> Bound:
        """`upper` where there is one, else `lower`."""
        bound = self.lower if self.upper is None else self.upper
        if bound is None:
            raise UncertifiedError(f"method {self.method!r} gave no number")
        return bound

    def summary(self) -> dict[str, str]:
        """Both bounds, norm and method."""
        found = {"upper": self.upper, "lower": self.lower}
        bounds = {name: str(bound) for name, bound in found.items() if bound is not None}
        return {**bounds, "norm": self.norm, "method": self.method}

    def __repr__(self) -> str:
        low = "" if self._lower is None else f"{self.lower.value:.6g} <= "  # type: ignore[union-attr]
        high = "" if self.upper is None else f" <= {self.upper.value:.6g} ({self.upper.side})"
        return f"DualNorm({low}‖r‖{high}, {self.norm}, {self.method})"


def dual_norm(
    problem: Problem,
    candidate: Candidate,
    method: str = "equilibrated",
    *,
    norm: str = "energy",
    steps: int | None = None,
) -> DualNorm:
    """The physics residual ``<r, v> = l(q)(v) - a(u, v)`` of a candidate in the dual of V.

    In the norm ``"energy"``, ``‖v‖_V² = a(v, v)``, it is the energy error of a state with the right boundary values.

    Parameters
    ----------
    problem
        One whose state equation has a strong form (`StateEquation.strong`), on lines, triangles or quadrilaterals; with
        ``method="riesz"`` any problem with one stationary state.
    candidate
        Its state need not solve anything.
    method
        ``"equilibrated"`` (default): a guaranteed upper bound from an equilibrated flux, and a lower bound.
        ``"enriched"``: lower bound, the largest value on elements of one degree more.
        ``"riesz"``: lower bound on the trial space; zero for a Galerkin solution.
        ``"indicator"``: the residual-based estimate with constants set to one. No bound.
    norm
        ``"energy"`` or ``"h1"`` (``‖grad v‖² + ‖v‖²``).
    steps
        Most improving steps of the flux; default: as many as are worth their cost, about 3 where the mesh is not
        stretched. Valid with any number.

    Notes
    -----
    Coefficients, source and natural boundary values that are numbers, values per element, tables of these,
    finite-element fields or declared as `Polynomial` give bounds. Any other function is known at points only: then both
    numbers are estimates, and their source names the function.

    Raises
    ------
    UncertifiedError
        The method does not apply to this problem; the message names one that does.

    Examples
    --------
    How far the finite-element solution of -u'' = 1 is from u = x (1 - x) / 2, in the energy norm: h / 12^(1/2).
    With a problem as in the example of `no_harm`:

    >>> one = np.ones(problem.basis.N)
    >>> residual = dual_norm(problem, Candidate(problem.solve(one), one))
    >>> f"{residual.lower.value:.6f} {residual.upper.value:.6f} {1 / 32 / 12**0.5:.6f}"
    '0.009021 0.009021 0.009021'
    """
    check_norm(norm)
    if method not in METHODS:
        raise InputError(f"method is {method!r}; expected one of {', '.join(map(repr, METHODS))}")
    check_problem(problem)
    check_candidate(problem, candidate)
    if steps is not None:
        count(steps, "steps", least=0)
    equation = state_equation(problem, "dual_norm")
    form, u = strong_form(equation, candidate.parameter), problem.check_state(candidate.state)
    if form is None:
        return _on_own_forms(problem, candidate, method, norm)
    workspace = workspace_of(equation)
    if method == "indicator":
        r = workspace.residual(form, u, norm, workspace.rule(form, norm))
        indicators = residual_indicators(r, workspace.facets, workspace.degree)
        total = Bound(float(np.linalg.norm(indicators)), "estimate", "residual indicators, constants set to one")
        return DualNorm(upper=total, lower=None, indicators=indicators, method=method, norm=norm)

    def factor() -> Factorization:
        return state_norm(problem, norm, parameter=candidate.parameter).factor

    # On a line the default is a lower bound by richer elements too.
    if method == "riesz" or (method == "enriched" and equation.basis.mesh.dim() > 1):
        return _from_below(workspace, form, u, factor(), method, norm)
    bound = bounded(workspace, form, u, norm, factor, steps=steps)
    return _between(bound, method, norm, exact=bound.exact, words=bound.words)


def _between(bound: EllipticBound | LineBound, method: str, norm: str, *, exact: bool, words: str) -> DualNorm:
    above, below = bound.sources
    upper = Bound(bound.upper, "upper" if exact else "estimate", f"{above}, {words}")
    return DualNorm(
        upper=upper if method == "equilibrated" else None,
        lower=lambda: Bound(bound.lower, "lower" if exact else "estimate", f"{below}, {words}"),
        indicators=bound.indicators,
        method=method,
        norm=norm,
    )


def _from_below(
    workspace: Workspace, equation: StrongForm, state: Array, factor: Factorization, method: str, norm: str
) -> DualNorm:
    """``"riesz"`` and ``"enriched"``: the residual on its representative in a finite space."""
    rule = workspace.rule(equation, norm)
    r = workspace.residual(equation, state, norm, rule)
    if method == "riesz":
        v = r.samples(split(r, factor, workspace.free).representative)
        words = "Riesz representative in the trial space"
    else:
        enriched = workspace.enriched(r)
        v = samples_of(enriched.space, r, enriched_representative(enriched, workspace.matrices(r), r))
        words = "Riesz representative in one degree more"
    value = finished_lower(best_quotient(r, [v]), r.size, rule.signed)
    value = deviation(workspace, state, r, rule, norm).below(value)
    local = r.sampler.integral(r.norm.A * dot(v[1], v[1]) + r.norm.C * v[0] ** 2)
    bound = Bound(value, "lower" if is_exact(r, rule) else "estimate", f"{words}, {quadrature_words(r, rule)}")
    return DualNorm(upper=None, lower=lambda: bound, indicators=np.sqrt(local), method=method, norm=norm)


def _on_own_forms(problem: Problem, candidate: Candidate, method: str, norm: str) -> DualNorm:
    """The Riesz representative from the assembled residual, for problems whose strong form is not known."""
    equation, name = problem.states[0], type(problem).__name__
    if equation.time is not None:
        raise UncertifiedError(f"the state of a {name} has a residual at every time; use space_time_norm")
    if method != "riesz":
        raise UncertifiedError(f"method {method!r} needs the strong form, which a {name} does not know; use 'riesz'")
    basis, free = equation.basis, equation.free
    r = equation.residual(candidate.state, candidate.parameter)
    space = state_norm(problem, norm, state=candidate.state, parameter=candidate.parameter)
    w = np.zeros(basis.N)
    w[free] = space.factor.solve(r[free])
    # The quotient of this w, also where it is the representative only to the tolerance of an iteration.
    square = float(w @ (space.matrix @ w))
    value = max(float(r @ w), 0.0) / float(np.sqrt(square)) if square > 0.0 else 0.0
    sampler = Sampler(basis.mesh, 2 * degree(basis))
    slope = sampler.gradients(basis, w)
    local: Array = sampler.integral(dot(slope, slope) + sampler.values(basis, w) ** 2)
    # A form is a function of x, which assembly evaluates at points only.
    bound = Bound(finished_lower(value), "estimate", "Riesz representative in the trial space, assembled forms")
    return DualNorm(upper=None, lower=lambda: bound, indicators=np.sqrt(local), method=method, norm=norm)


def dual_norm_of_functions(
    problem: Problem, candidate: Candidate, *, norm: str = "energy", order: int = 10
) -> DualNorm:
    """``‖r‖ = sup <r, v> / ‖v‖_V`` for the state *function* of a candidate, its gradient taken at quadrature points.

    ``<r, v> = (q - c u, v) - (a grad u, grad v)`` with the candidate's own parameter (the dof vector that is handed
    out). As in `dual_norm`, an equilibrated flux gives the upper number and test functions beyond the trial space the
    lower one. A network is no polynomial, so quadrature is not exact, and both are estimates; the gradient is not
    checked.

    Parameters
    ----------
    problem
        One whose state equation has a strong form, on triangles or quadrilaterals.
    candidate
        Made by `Candidate.from_functions` with a state that has methods ``value(x)`` (or is callable) and
        ``gradient(x)``.
    norm
        ``"energy"`` or ``"h1"``.
    order
        Least order of the quadrature.

    Raises
    ------
    UncertifiedError
        The problem is another one, or the functions are no longer those that the dof values were taken from.
    """
    check_norm(norm)
    check_candidate(problem, candidate)
    equation = state_equation(problem, "dual_norm_of_functions")
    form = required(strong_form(equation, candidate.parameter), "dual_norm_of_functions", "the strong form", problem)
    if equation.basis.mesh.dim() == 1:
        raise UncertifiedError("functions need an equation in the plane; use dual_norm, on the interpolant")
    functions = candidate.functions
    if functions is None or not callable(getattr(functions.state, "gradient", None)):
        raise InputError(f"candidate {candidate.name!r} has no state function with a method gradient(x)")
    check_frozen(problem, candidate)
    workspace = workspace_of(equation)
    rule = workspace.rule(form, norm)
    least = min(count(order, "order"), MOST_ORDER[equation.basis.mesh.t.shape[0]])
    rule = replace(rule, order=max(rule.order, least), exact=False)
    r = _residual_of_function(workspace, form, norm, rule, functions.state)
    factor = state_norm(problem, norm, parameter=candidate.parameter).factor
    parts = split(r, factor, workspace.free)
    flux = equilibrated_flux(workspace.equilibration, parts.rest, steps=STEPS)

    def below() -> float:
        return lower_bound(workspace, r, rule, parts, factor)

    bound = checked_bound(workspace, r, parts, rule, norm, flux, below)
    return _between(bound, "equilibrated", norm, exact=False, words="of the state as a function, quadrature not exact")


def _residual_of_function(
    workspace: Workspace, equation: StrongForm, norm: str, rule: Quadrature, state: Any
) -> WeakResidual:
    """The residual functional of a state function, sampled: that of the zero state, with the function in its place."""
    r = workspace.residual(equation, np.zeros(workspace.basis.N), norm, rule)
    sampler, traces = r.sampler, r.traces
    a = equation.conductivity.at(sampler)
    cu = np.zeros((1, 1))
    if not is_zero(equation.reaction):
        cu = equation.reaction.at(sampler) * _sampled(callable_of(state), sampler.x, sampler.dx.shape)
    alpha_u = np.zeros_like(traces.coefficient)
    if traces.basis is not None and traces.coefficient.any():
        x = np.asarray(traces.basis.global_coordinates())
        alpha_u = traces.coefficient * _sampled(callable_of(state), x, x.shape[1:])
    return replace(
        r,
        source=r.source - cu,
        flux=a * _sampled(state.gradient, sampler.x, sampler.x.shape),
        natural=r.natural - alpha_u,
        terms=(r.terms[0], cu, r.terms[2], alpha_u),
    )


def _sampled(function: Any, x: Array, shape: tuple[int, ...]) -> Array:
    """A function of flat points at points of any arrangement, finite and of the right shape."""
    flat = real_array(function(x.reshape(len(x), -1)), "the state function")
    if flat.size != int(np.prod(shape)):
        raise InputError(f"the state function returned shape {flat.shape} for {x[0].size} points of dimension {len(x)}")
    return flat.reshape(shape)


class BrokenField:
    """A sampled vector field as polynomials on the elements, without any continuity."""

    def __init__(self, sampler: Sampler, field: Array, degree: int) -> None:
        self.field, self.trace_degree = field, 2
        if field.shape[2] == 1:
            # Constant on the elements.
            self.trace_degree = 0
            return
        self.elem, fit = nodal_fit(sampler, degree)
        whole = np.broadcast_to(field, (len(field), sampler.mesh.nelements, len(sampler.W)))
        self.nodes = [component @ fit.T for component in whole]

    def at(self, sampler: Sampler) -> tuple[Array, Array]:
        """Values and divergence."""
        if not self.trace_degree:
            return self.field, np.zeros((self.field.shape[1], 1))
        phi, slopes = sampler.table(self.elem)
        values = np.array([nodes @ phi for nodes in self.nodes])
        divergence = np.zeros(values.shape[1:])
        for i, nodes in enumerate(self.nodes):
            divergence += sampler.physical([nodes @ slopes[:, j] for j in range(len(sampler.X))])[i]
        return values, divergence


def residual_indicators(r: WeakResidual, check: NormalTraces, degree: int) -> Array:
    """On each element the root of ``h²/A ‖source + div flux‖² + sum_e s_e h/A ‖[flux . n]‖_e²``.

    Jumps count half for each of two elements, defects of natural boundary values in full.
    """
    sampler, mesh = r.sampler, r.sampler.mesh
    flux = BrokenField(sampler, r.flux, degree)
    _, divergence = flux.at(sampler)
    h, A = diameters(mesh), sampler.means(r.norm.A)
    total = h**2 / A * sampler.integral((r.source + divergence) ** 2)
    jumps = check.jumps(flux)
    total += h / A * sum(0.5 * jumps[facets] for facets in mesh.t2f)
    part = r.traces.basis
    if part is not None:
        element, facets = mesh.f2t[0, r.traces.facets], r.traces.facets
        _, outward = check.outward(flux)
        # The means suffice for an estimate.
        weights = part.dx.sum(axis=1) if mesh.t.shape[0] > 2 else np.ones(len(facets))
        gap = r.natural.mean(axis=1) - outward[check.first[facets]].mean(axis=1)
        np.add.at(total, element, h[element] / A[element] * gap**2 * weights)
    return np.sqrt(total)
