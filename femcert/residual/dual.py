"""The dual norm of the physics residual over the continuous space, between two bounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from skfem.mesh import MeshLine1

from ..bound import Bound
from ..checks import Array, count, frozen
from ..errors import InputError, UncertifiedError
from ..linalg import Factorization
from ..mesh.elements import degree
from ..mesh.sample import Sampler, dot
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.elliptic import EllipticCoefficient, EllipticSource
from ..problem.heat import HeatInitial
from ..problem.strong import StrongForm
from ..problem.tomography import Tomography
from ..shown import Shown
from .deviation import deviation
from .indicator import residual_indicators
from .interval import LineBound, line_bound
from .lower import best_quotient, enriched_representative, samples_of
from .norms import state_norm
from .riesz import split
from .static import ROUNDING, described, lowered, static_bound, static_lower
from .weak import check_norm
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
        An elliptic problem, on lines, triangles or quadrilaterals; with ``method="riesz"`` any problem with a state.
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
        Most improving steps of the flux; default: as many as pay, about 3 where the mesh is not stretched. Valid with
        any number.

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
    if not isinstance(problem, Problem):
        raise InputError(f"problem is a {type(problem).__name__}; expected one such as EllipticSource")
    check_candidate(problem, candidate)
    if steps is not None:
        count(steps, "steps", least=0)
    if isinstance(problem, Tomography):
        raise UncertifiedError("tomography has no state equation, so no physics residual; no method applies")
    if not isinstance(problem, (EllipticSource, EllipticCoefficient)):
        return _on_own_forms(problem, candidate, method, norm)
    equation, u = problem.strong(candidate.parameter), problem.check_state(candidate.state)
    workspace = workspace_of(problem)
    if method == "indicator":
        r = workspace.residual(equation, u, norm, workspace.rule(equation, norm))
        indicators = residual_indicators(r, workspace.facets, workspace.degree)
        total = Bound(float(np.linalg.norm(indicators)), "estimate", "residual indicators, constants set to one")
        return DualNorm(upper=total, lower=None, indicators=indicators, method=method, norm=norm)
    if isinstance(problem.basis.mesh, MeshLine1) and method != "riesz":
        return _on_line(line_bound(workspace, equation, u, norm), method, norm)
    factor = state_norm(problem, norm, parameter=candidate.parameter).factor
    if method != "equilibrated":
        return _from_below(workspace, equation, u, factor, method, norm)
    return _equilibrated(workspace, equation, u, factor, norm, steps)


def _equilibrated(
    workspace: Workspace, equation: StrongForm, state: Array, factor: Factorization, norm: str, steps: int | None
) -> DualNorm:
    static = static_bound(workspace, equation, state, norm, factor, steps=steps)
    exact, words = static.exact, static.words

    def lower() -> Bound:
        value = static_lower(workspace, equation, state, norm, factor)
        return Bound(value, "lower" if exact else "estimate", f"bubbles beyond the trial space, {words}")

    return DualNorm(
        upper=Bound(static.upper, "upper" if exact else "estimate", f"equilibrated flux, {words}"),
        lower=lower,
        indicators=static.indicators(),
        method="equilibrated",
        norm=norm,
    )


def _on_line(bound: LineBound, method: str, norm: str) -> DualNorm:
    upper = Bound(bound.upper, "upper" if bound.exact else "estimate", f"flux on a line, {bound.words}")
    lower = Bound(bound.lower, "lower" if bound.exact else "estimate", f"test functions of high degree, {bound.words}")
    return DualNorm(
        upper=upper if method == "equilibrated" else None,
        lower=lambda: lower,
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
    value = deviation(workspace, state, r, rule, norm).below(lowered(r, rule, best_quotient(r, [v])))
    exact, about = described(r, rule)
    local = r.sampler.integral(r.norm.A * dot(v[1], v[1]) + r.norm.C * v[0] ** 2)
    bound = Bound(value, "lower" if exact else "estimate", f"{words}, {about}")
    return DualNorm(upper=None, lower=lambda: bound, indicators=np.sqrt(local), method=method, norm=norm)


def _on_own_forms(problem: Problem, candidate: Candidate, method: str, norm: str) -> DualNorm:
    """The Riesz representative from the assembled residual, for problems whose strong form is not known."""
    name = type(problem).__name__
    if isinstance(problem, HeatInitial):
        raise UncertifiedError("a heat state has a residual at every time; use space_time_norm(problem, candidate)")
    if method != "riesz":
        raise UncertifiedError(f"method {method!r} needs the strong form, which a {name} does not know; use 'riesz'")
    r = problem.residual(candidate.state, candidate.parameter)
    space = state_norm(problem, norm, state=candidate.state, parameter=candidate.parameter)
    w = np.zeros(problem.basis.N)
    w[problem.free] = space.factor.solve(r[problem.free])
    # The quotient of this w, also where it is the representative only to the tolerance of an iteration.
    square = float(w @ (space.matrix @ w))
    value = max(float(r @ w), 0.0) / float(np.sqrt(square)) if square > 0.0 else 0.0
    sampler = Sampler(problem.basis.mesh, 2 * degree(problem.basis))
    slope = sampler.gradients(problem.basis, w)
    local: Array = sampler.integral(dot(slope, slope) + sampler.values(problem.basis, w) ** 2)
    # A form is a function of x, of which assembly knows samples.
    bound = Bound(value * (1.0 - ROUNDING), "estimate", "Riesz representative in the trial space, assembled forms")
    return DualNorm(upper=None, lower=lambda: bound, indicators=np.sqrt(local), method=method, norm=norm)
