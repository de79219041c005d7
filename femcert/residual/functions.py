"""The dual norm of the physics residual of a state that is a function with a gradient, such as a network.

Its nodal interpolant is another state, with a residual of its own: on coarse elements mostly interpolation error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from skfem.mesh import MeshLine1

from ..bound import Bound
from ..checks import Array, count, real_array
from ..errors import InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.candidate_functions import callable_of, check_frozen
from ..problem.elliptic import EllipticCoefficient, EllipticSource
from ..problem.strong import StrongForm, is_zero
from .dual import DualNorm
from .equilibrate import equilibrated_flux
from .lower import best_quotient, bubble_search, samples_of
from .norms import state_norm
from .quadrature import MOST_ORDER, Rule
from .riesz import split
from .static import STEPS, checked_bound, lowered
from .weak import WeakResidual, check_norm
from .workspace import Workspace, workspace_of


def dual_norm_of_functions(
    problem: Problem, candidate: Candidate, *, norm: str = "energy", order: int = 10
) -> DualNorm:
    """``‖r‖ = sup <r, v> / ‖v‖_V`` for the state *function* of a candidate, its gradient taken at quadrature points.

    ``<r, v> = (q - c u, v) - (a grad u, grad v)`` with the candidate's own parameter (the dof vector that is handed
    out). As in `dual_norm`, an equilibrated flux gives the upper number and test functions beyond the trial space the
    lower one. A network is no polynomial, so quadrature is not exact, and both are estimates; the gradient is believed.

    Parameters
    ----------
    problem
        An elliptic problem on triangles or quadrilaterals.
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
    if not isinstance(problem, (EllipticSource, EllipticCoefficient)) or isinstance(problem.basis.mesh, MeshLine1):
        raise UncertifiedError("functions need an elliptic problem in the plane; use dual_norm, on the interpolant")
    functions = candidate.functions
    if functions is None or not callable(getattr(functions.state, "gradient", None)):
        raise InputError(f"candidate {candidate.name!r} has no state function with a method gradient(x)")
    check_frozen(problem, candidate)
    workspace, equation = workspace_of(problem), problem.strong(candidate.parameter)
    rule = workspace.rule(equation, norm)
    least = min(count(order, "order"), MOST_ORDER[problem.basis.mesh.t.shape[0]])
    rule = replace(rule, order=max(rule.order, least), exact=False)
    r = _residual(workspace, equation, norm, rule, functions.state)
    factor = state_norm(problem, norm, parameter=candidate.parameter).factor
    parts = split(r, factor, workspace.free)
    flux = equilibrated_flux(workspace.equilibration, parts.rest, steps=STEPS)
    static = checked_bound(workspace, r, parts, rule, norm, factor, flux)
    words = "of the state as a function, quadrature not exact"

    def lower() -> Bound:
        v = bubble_search(workspace.enriched(r), workspace.matrices(r), parts, factor, workspace.free)
        tests = [samples_of(workspace.enriched(r).space, r, v), r.samples(parts.representative)]
        return Bound(lowered(r, rule, best_quotient(r, tests)), "estimate", f"bubbles beyond the trial space, {words}")

    return DualNorm(
        upper=Bound(static.upper, "estimate", f"equilibrated flux, {words}"),
        lower=lower,
        indicators=static.indicators(),
        method="equilibrated",
        norm=norm,
    )


def _residual(workspace: Workspace, equation: StrongForm, norm: str, rule: Rule, state: Any) -> WeakResidual:
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
