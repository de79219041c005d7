"""A certificate: a candidate's residuals, the stability constant, and the radius they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..bound import Bound
from ..errors import InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.checks import Array, number
from ..problem.data import Data
from ..problem.linear import LinearProblem
from ..residual import Residuals, evaluate
from ..stability import Stability, stability
from .rules import Rule


@dataclass(frozen=True)
class Certificate:
    """What is known about one candidate.

    Attributes
    ----------
    radius
        Its side is ``"upper"`` only where the discrete bound was verified for this very candidate.
    residuals
        Components ``data``, ``pde``, ``bc``, ``optimality``, ``admissibility``.
    total
        The paper's eta: the weighted sum of the residuals.
    stability
        The stability constant used.
    scope
        What the radius speaks of: ``"discrete"`` (a truth of the discretized problem) or ``"estimate"`` (no claim).
    noise_level
        The paper's delta.
    name
        Of the candidate.
    """

    radius: Bound
    residuals: Residuals
    total: float
    stability: Stability
    scope: str
    noise_level: float
    name: str
    _distance: Callable[[Any], float] | None = field(default=None, repr=False, compare=False)

    def certified_at(self, level: float) -> bool:
        """Whether ``eta <= level``, the paper's residual-certified test; also its stopping rule tau_cert."""
        return bool(self.total <= number(level, "level", least=0.0))

    def error(self, truth: Any) -> float:
        """``‖q - truth‖_Q``: hindsight, never used by a selection."""
        if self._distance is None:
            raise UncertifiedError("a certificate loaded from a file does not know its candidate; certify again")
        return self._distance(truth)

    def contains(self, parameter: Any) -> bool:
        """Whether a parameter (dof vector) lies within the radius: coverage, if it is the truth."""
        return bool(self.error(parameter) <= self.radius.value)

    def sharpness(self, truth: Any) -> float:
        """``radius / ‖q - truth‖_Q``: 1 is tight, large is conservative, below 1 is not covered."""
        error = self.error(truth)
        return self.radius.value / error if error > 0.0 else float("inf")

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON."""
        return {
            "name": self.name,
            "radius": self.radius.to_dict(),
            "scope": self.scope,
            "total": self.total,
            "noise_level": self.noise_level,
            "residuals": {name: bound.to_dict() for name, bound in self.residuals.items()},
            "optimality_reported": self.residuals.reported,
            "stability": self.stability.to_dict(),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Certificate:
        """The inverse of `to_dict`."""
        parts = {name: Bound(**bound) for name, bound in record["residuals"].items()}
        return cls(
            radius=Bound(**record["radius"]),
            residuals=Residuals(**parts, reported=bool(record["optimality_reported"])),
            total=number(record["total"], "total", least=0.0),
            stability=Stability.from_dict(record["stability"]),
            scope=str(record["scope"]),
            noise_level=number(record["noise_level"], "noise_level", least=0.0),
            name=str(record["name"]),
        )


def certify(problem: Problem, data: Data, candidate: Candidate, rule: Rule) -> Certificate:
    """Evaluate `rule` for one candidate.

    The radius of a nonlinear problem is an estimate: with the constant of the linearization at the candidate, the same
    formula for all candidates. `stability(problem, at=candidate.parameter, data=data)` says on which ball around it a
    constant is proven; that the truth lies in that ball is not shown by the data.

    Raises
    ------
    InputError
        The candidate does not belong to the problem, or the class has more coordinates than observations.
    UncertifiedError
        The stability constant is infinite, or the rule needs a residual that the candidate does not have.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem is a {type(problem).__name__}; expected one such as EllipticSource")
    if not isinstance(rule, Rule):
        raise InputError(f"rule is a {type(rule).__name__}; expected a rule such as OperationalRadius(...)")
    rule = rule.resolved(problem, problem.check_data(data))
    residuals = evaluate(problem, data, candidate, pde_norm=rule.pde_norm, norm=rule.norm)
    # A constant that is validated for one candidate only would be larger, and the comparison of radii unfair to it.
    at = None if problem.linear else candidate.parameter
    constant = rule.stability or stability(problem, at=at, data=data, validate=False)
    pde = rule.physics(problem, candidate, residuals)
    total = rule.total(residuals, pde)
    radius = rule.radius(total, data, constant)
    proven, allowance = _proven_radius(problem, data, candidate, None if rule.stability is not None else constant)
    q, norm = candidate.parameter, problem.parameters.norm
    # Where the two are equal in exact arithmetic, rounding may leave them a hair apart; the larger one is reported.
    covered = proven <= radius * (1.0 + 1e-8) + problem.rounding * norm(q)
    value = max(radius, proven + allowance) if covered else radius
    if not np.isfinite(value):
        raise UncertifiedError(f"the radius of {candidate.name!r} is {value}")
    return Certificate(
        radius=Bound(value, "upper" if covered else "estimate", type(rule).__name__),
        residuals=Residuals(**{**dict(residuals.items()), "pde": pde}, reported=residuals.reported),
        total=total,
        stability=constant,
        scope="discrete" if covered else "estimate",
        noise_level=data.noise_level,
        name=candidate.name,
        _distance=lambda truth: norm(problem.check_parameter(truth) - q),
    )


def _proven_radius(
    problem: Problem, data: Data, candidate: Candidate, constant: Stability | None
) -> tuple[float, float]:
    """``C (‖F c + y0 - y‖_Y + delta) + ‖q - B c‖_Q`` with ``B c = Pi q``: contains every discrete truth of the class.

    It needs no state, so it is the yardstick for radii that use one; infinite where no proof is known. A constant that
    came from elsewhere proves nothing: C is then computed here, for these sensors and this covariance. The second
    number is what rounding may add to the first. For a nonlinear problem there is none: the truth may lie outside of
    the ball on which a constant is validated.
    """
    if not isinstance(problem, LinearProblem):
        return np.inf, 0.0
    try:
        constant = stability(problem, data=data) if constant is None else constant
    except (InputError, UncertifiedError):
        return np.inf, 0.0
    if constant.levels is not None:
        return _proven_on_ball(problem, data, candidate, constant)
    c, remainder = problem.parameters.project(candidate.parameter)
    response: Array = problem.forward_matrix() @ c
    size = data.norm(response) + data.norm(problem.offset) + data.norm(data.values)
    misfit = data.norm(response + problem.offset - data.values)
    C = constant.constant.value
    proven = C * (misfit + data.noise_level) + problem.parameters.norm(remainder)
    return proven, C * problem.rounding * size + problem.rounding * problem.parameters.norm(candidate.parameter)


def _proven_on_ball(
    problem: LinearProblem, data: Data, candidate: Candidate, constant: Stability
) -> tuple[float, float]:
    """``omega(‖H S q' - y‖_Y + delta) + ‖q - q'‖_Q`` with q' the candidate, projected and shrunk into the ball."""
    space = problem.parameters
    if constant.moduli is None or space.ball is None:
        return np.inf, 0.0
    c, _ = space.project(candidate.parameter)
    q = space.field(c)
    size = float(np.sqrt(max(q @ (space.form(space.ball.norm) @ q), 0.0)))
    inside = q * min(1.0, space.ball.radius / size if size > 0.0 else 1.0)
    predicted = problem.predict(problem.solve(inside), inside)
    rounding = problem.rounding * (data.norm(predicted) + data.norm(data.values))
    eps = data.norm(predicted - data.values) + data.noise_level + rounding
    if not eps > 0.0:
        return np.inf, 0.0
    distance = space.norm(candidate.parameter - inside)
    return constant.modulus(eps).value + distance, problem.rounding * space.norm(candidate.parameter)
