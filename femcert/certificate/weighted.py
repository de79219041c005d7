"""The paper's radii R_delta and R_op: a stability constant times a weighted sum of residuals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array, number
from ..errors import CandidateError, InputError, UncertifiedError
from ..evidence import Evidence, check_explained, is_large_ball
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.data import Data
from ..problem.space import Split
from ..residual import Residuals, evaluate
from ..residual.residuals import check_pde_norm
from ..residual.weak import check_norm
from ..stability import Stability, stability
from ..stability.weights import certified_weights
from .certificate import Certificate
from .rule import Judge, Rule, explaining


@dataclass(frozen=True, kw_only=True)
class WeightedRule(Rule):
    """A stability constant times a weighted sum of residuals.

    Parameters
    ----------
    pde_norm
        How the physics residual is measured: ``"rms"``, the paper's root mean square, or a method of `dual_norm`, such
        as ``"equilibrated"``, a guaranteed upper bound over the continuous space (for heat, over space and time). With
        a dual norm the boundary residual is measured in H^1/2.
    norm
        ``"energy"`` or ``"h1"``: the norm of the test functions in a dual norm.
    covered
        True: the parameter is split, ``q = Pi q + q_perp``, residuals are those of ``Pi q``, and ``‖q_perp‖_Q`` is
        added to the radius: structure outside of the class counts also where it changes no reading. False: the paper's
        radius, which does not count it.
    """

    pde_norm: str = "rms"
    norm: str = "energy"
    covered: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_pde_norm(self.pde_norm)
        check_norm(self.norm)
        if not isinstance(self.covered, bool):
            raise InputError(f"covered is {self.covered!r}; expected True or False")

    def prepare(self, problem: Problem, data: Data, solvers: Mapping[str, Any] | None = None) -> WeightedJudge:
        """The judge, with numbers for all weights; it refuses data that no parameter of the class explains."""
        judge = self.judge(problem, data)
        if judge.asked is None:
            check_explained(problem, data, judge.constant)
        return judge

    def judge(self, problem: Problem, data: Data) -> WeightedJudge:
        """The judge, without a look at the data."""
        return WeightedJudge(self.with_weights(problem, data), problem, data)

    def with_weights(self, problem: Problem, data: Data) -> WeightedRule:
        """The rule with numbers for all weights: itself, unless a weight is to be computed for this problem."""
        return self

    @property
    def weights(self) -> dict[str, Any]:
        """Weights of the residual components ``pde``, ``bc`` and ``optimality``."""
        return {"pde": 1.0, "bc": 1.0, "optimality": 0.0}

    @property
    def decides(self) -> tuple[str, ...]:
        """The components with a weight, and the distance from the class if `covered`."""
        weighted = (name for name, weight in self.weights.items() if weight != 0.0)
        return ("data", *weighted, *(("admissibility",) if self.covered else ()))

    def total(self, residuals: Residuals, pde: Bound) -> float:
        """The paper's eta (total-certificate): ``data + a_pde pde + a_bc bc + a_opt optimality``."""
        w = self.weights
        if w["optimality"] > 0.0 and not residuals.reported:
            raise UncertifiedError(
                f"the rule weighs the optimality residual by {w['optimality']:g}, but the candidate reports none; "
                "give Candidate(..., optimality=...) or a rule with optimality=0"
            )
        return (
            residuals.data.value
            + w["pde"] * pde.value
            + w["bc"] * residuals.bc.value
            + w["optimality"] * residuals.optimality.value
        )

    def to_dict(self) -> dict[str, Any]:
        """Name, weights and options, for the record."""
        options = {"weights": self.weights, "pde_norm": self.pde_norm, "norm": self.norm, "covered": self.covered}
        return {**self._named(), **options}


class WeightedJudge(Judge):
    """``C (eta + delta)^p``, plus the distance from the class if `covered`; an upper bound where that is proven."""

    rule: WeightedRule

    @cached_property
    def constant(self) -> Stability | None:
        """That of a linear problem, where the rule has none; None for a nonlinear one."""
        # On a large ball the check of the data needs the modulus, whatever constant is given.
        needed = self.rule.stability is None or is_large_ball(self.problem)
        return stability(self.problem, data=self.data) if needed and self.problem.forward is not None else None

    @cached_property
    def asked(self) -> Evidence | None:
        """On a ball, for noise of known law: the evidence, which says whether the radius of a candidate holds."""
        random = self.data.law.zeta > 0.0 and self.problem.parameters.ball is not None
        return explaining(self.problem, self.data) if random and self.problem.forward is not None else None

    def moved(self, candidate: Candidate) -> tuple[Candidate, float]:
        """The candidate whose residuals are taken, and what the radius adds for it.

        If `covered`, its parameter is moved into the class: projected, and shrunk into the ball where there is one. One
        that lies in the class to rounding stays as it is.
        """
        if not self.rule.covered:
            return candidate, 0.0
        split = self.split(candidate)
        if split.distance <= self.problem.rounding * split.size:
            return candidate, split.distance
        parts = candidate.state, split.inside, candidate.optimality, candidate.name
        inside = Candidate(*parts, functions=candidate.functions)
        self.keep(inside, self.problem.parameters.split_of_inside(split))
        return inside, split.distance

    def physics(self, candidate: Candidate, residuals: Residuals) -> Bound:
        """The physics residual that enters the radius."""
        return residuals.pde

    def residuals(self, candidate: Candidate) -> Residuals:
        """Of a candidate that was moved."""
        rule, split = self.rule, self.split(candidate)
        return evaluate(self.problem, self.data, candidate, pde_norm=rule.pde_norm, norm=rule.norm, split=split)

    def certify(self, candidate: Candidate) -> Certificate:
        """See `Judge.certify`."""
        problem, data, rule = self.problem, self.data, self.rule
        inside, outside = self.moved(candidate)
        residuals = self.residuals(inside)
        constant = self._constant_at(inside.parameter)
        pde = self.physics(inside, residuals)
        total = rule.total(residuals, pde)
        radius = constant.radius(total + data.noise_level) + outside
        split = self.split(candidate)
        if self.asked is None:
            known = constant if rule.stability is None else self.constant
            proven, allowance = state_free_radius(problem, data, split, known)
        else:
            proven, allowance = self.asked.radius(candidate.parameter).value, 0.0
        # Where the two are equal in exact arithmetic, rounding may leave them slightly apart; the larger one is
        # reported.
        holds = proven <= radius * (1.0 + 1e-8) + problem.rounding * split.size
        value = max(radius, proven + allowance) if holds else radius
        if not np.isfinite(value):
            raise CandidateError(f"the radius of {candidate.name!r} is {value}")
        distance = Bound(split.distance, "upper", "distance from the admissible class")
        bound = Bound(value, "upper" if holds else "estimate", type(rule).__name__)
        residuals = replace(residuals, pde=pde, admissibility=distance)
        return self.certificate(candidate, bound, residuals=residuals, total=total, stability=constant)

    def _constant_at(self, parameter: Array) -> Stability:
        """That of the rule, or of the problem; of a nonlinear problem that of the linearization at a parameter."""
        # One that is validated for one candidate only would be larger, and the radii could not be compared.
        known = self.rule.stability or self.constant
        return known or stability(self.problem, at=parameter, data=self.data, validate=False)


def state_free_radius(
    problem: Problem, data: Data, split: Split, constant: Stability | None
) -> tuple[float, float]:
    """``C (‖F c + y0 - y‖_Y + delta) + ‖q - B c‖_Q`` with ``B c = Pi q``: contains every discrete truth of the class.

    It needs no state, so it is the yardstick for radii that use one; infinite where no proof is known. A constant that
    came from elsewhere proves nothing: C is then computed here, for these sensors and this covariance. The second
    number is what rounding may add to the first. For a nonlinear problem there is none: the truth may lie outside of
    the ball on which a constant is validated.
    """
    forward = problem.forward
    if forward is None:
        return np.inf, 0.0
    try:
        constant = stability(problem, data=data) if constant is None else constant
    except (InputError, UncertifiedError):
        return np.inf, 0.0
    if constant.constant.side != "upper":
        return np.inf, 0.0
    if constant.levels is not None:
        return _on_ball(problem, data, split, constant)
    response: Array = forward.matrix @ split.coordinates
    # A solve may lose a part of what the most visible parameter shows, also where this one shows little.
    most = constant.sigma_max * split.size
    size = most + data.norm(response) + data.norm(data.values)
    misfit = data.norm(response + forward.offset - data.values)
    C = constant.constant.value
    proven = C * (misfit + data.noise_level) + split.outside
    lost = forward.rounding_of(data) * size + forward.error(data) * split.size + forward.offset_rounding(data)
    return proven, C * lost + problem.rounding * split.size


def _on_ball(problem: Problem, data: Data, split: Split, constant: Stability) -> tuple[float, float]:
    """``omega(‖H S q' - y‖_Y + delta) + ‖q - q'‖_Q`` with q' the candidate, projected and shrunk into the ball."""
    space, forward = problem.parameters, problem.forward
    if constant.moduli is None or space.ball is None or forward is None:
        return np.inf, 0.0
    state = problem.solve(split.inside)
    misfit = data.norm(problem.predict(state, split.inside) - data.values)
    most = constant.sigma_max * space.norm(split.inside)
    lost = forward.rounding_of(data) * most + problem.lost_to_rounding(data, state, split.inside)
    lost += problem.solved_error(data, state, split.inside)
    eps = misfit + data.noise_level + lost
    if not eps > 0.0:
        return np.inf, 0.0
    return constant.modulus(eps).value + split.distance, problem.rounding * split.size


@dataclass(frozen=True, kw_only=True)
class ResidualRadius(WeightedRule):
    """The paper's R_delta (uncertainty-radius): ``C (data + pde + bc + delta)^p``.

    Notes
    -----
    What it compares: for a linear problem C and delta are the same for both candidates, and for states that are solved
    pde and bc are rounding. Between two such candidates of the class it compares misfits ``‖H u - y‖_Y``: the
    better fit to the data, noise included, is accepted. Least squares has the smallest misfit of all candidates,
    whether it is nearer to the truth or not.
    """


@dataclass(frozen=True, kw_only=True)
class OperationalRadius(WeightedRule):
    """The paper's R_op (operational-radius): ``C (data + a_pde pde + a_bc bc + delta + a_opt optimality)^p``.

    Parameters
    ----------
    pde, bc, optimality
        The weights a_pde, a_bc and a_opt, all >= 0. With ``optimality > 0`` a candidate must report its optimality.
        ``pde="certified"`` and ``bc="certified"`` compute the operator norms that make the sum a theorem instead of a
        calibration (`femcert.stability.weights`); they need a dual norm, such as ``pde_norm="equilibrated"``.

    Notes
    -----
    What it compares: for solved states of the class, ``misfit + a_opt optimality``, the gradient norm being what a
    candidate reports of itself; with ``optimality=0`` misfits alone, as with `ResidualRadius`. With
    ``pde_norm="equilibrated"`` also the mesh error of the two states, weighted by a_pde.
    """

    pde: float | str = 1.0
    bc: float | str = 1.0
    optimality: float = 0.0
    certified: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("pde", "bc", "optimality"):
            value = getattr(self, name)
            if value == "certified" and name != "optimality":
                if self.pde_norm == "rms" or self.norm != "energy":
                    raise InputError(f"{name}='certified' goes with pde_norm='equilibrated' and norm='energy'")
                continue
            if isinstance(value, str):
                raise InputError(f"the weight {name} is {value!r}; expected a number, or 'certified' for pde and bc")
            object.__setattr__(self, name, number(value, f"the weight {name}", least=0.0))

    @property
    def weights(self) -> dict[str, Any]:
        """Weights of the residual components."""
        return {"pde": self.pde, "bc": self.bc, "optimality": self.optimality}

    def with_weights(self, problem: Problem, data: Data) -> OperationalRadius:
        """The rule with certified weights as numbers."""
        names = tuple(name for name in ("pde", "bc") if getattr(self, name) == "certified")
        if not names:
            return self
        weights = certified_weights(problem, data=data)
        return replace(self, **{name: getattr(weights, name).value for name in names}, certified=names)

    def to_dict(self) -> dict[str, Any]:
        """Name, weights and options, for the record."""
        record = super().to_dict()
        return {**record, "certified": list(self.certified)} if self.certified else record
