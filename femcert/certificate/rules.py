"""The paper's radii R_delta and R_op: a stability constant times a weighted sum of residuals."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import number
from ..errors import CandidateError, InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.data import Data
from ..residual import Residuals, evaluate
from ..residual.residuals import check_pde_norm
from ..residual.weak import check_norm
from ..stability import Stability, stability
from ..stability.weights import certified_weights
from .certificate import Certificate
from .evidence import check_explained, is_large_ball
from .proof import proven_radius, split
from .rule import Rule


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
        added to the radius: structure outside of the class counts also where no sensor sees it. False: the paper's
        radius, which does not count it.
    """

    pde_norm: str = "rms"
    norm: str = "energy"
    covered: bool = True
    computed: Stability | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_pde_norm(self.pde_norm)
        check_norm(self.norm)
        if not isinstance(self.covered, bool):
            raise InputError(f"covered is {self.covered!r}; expected True or False")

    def resolved(self, problem: Problem, data: Data) -> WeightedRule:
        """The rule with the stability constant of a linear problem, and with numbers for all weights."""
        if self.is_resolved(problem, data):
            return self
        rule = self.with_weights(problem, data)
        # On a large ball the check needs the modulus, whatever constant is given.
        needed = self.stability is None or is_large_ball(problem)
        constant = stability(problem, data=data) if problem.linear and needed else None
        check_explained(problem, data, constant)
        return replace(rule, computed=constant, checked=(problem, data))

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

    def split(self, problem: Problem, candidate: Candidate) -> tuple[Candidate, float]:
        """The candidate whose residuals are taken, and what the radius adds for it."""
        check_candidate(problem, candidate)
        return split(problem, candidate) if self.covered else (candidate, 0.0)

    def physics(self, problem: Problem, candidate: Candidate, residuals: Residuals) -> Bound:
        """The physics residual that enters the radius."""
        return residuals.pde

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

    def radius(self, total: float, data: Data, stability: Stability) -> float:
        """``C (eta + delta)^p``."""
        return stability.radius(total + data.noise_level)

    def certify(self, problem: Problem, data: Data, candidate: Candidate) -> Certificate:
        """``C (eta + delta)^p``, plus the distance from the class if `covered`."""
        inside, outside = self.split(problem, candidate)
        residuals = evaluate(problem, data, inside, pde_norm=self.pde_norm, norm=self.norm)
        # A constant that is validated for one candidate only would be larger, and the comparison of radii unfair to it.
        at = None if problem.linear else inside.parameter
        constant = self.stability or self.computed or stability(problem, at=at, data=data, validate=False)
        pde = self.physics(problem, inside, residuals)
        total = self.total(residuals, pde)
        radius = self.radius(total, data, constant) + outside
        proven, allowance = proven_radius(
            problem, data, candidate, constant if self.stability is None else self.computed
        )
        q, norm = candidate.parameter, problem.parameters.norm
        # Where the two are equal in exact arithmetic, rounding may leave them a hair apart; the larger one is reported.
        holds = proven <= radius * (1.0 + 1e-8) + problem.rounding * norm(q)
        value = max(radius, proven + allowance) if holds else radius
        if not np.isfinite(value):
            raise CandidateError(f"the radius of {candidate.name!r} is {value}")
        distance = Bound(problem.parameters.distance(q), "upper", "distance from the admissible class")
        parts = {**dict(residuals.items()), "pde": pde, "admissibility": distance}
        return Certificate(
            radius=Bound(value, "upper" if holds else "estimate", type(self).__name__),
            residuals=Residuals(**parts, reported=residuals.reported),
            total=total,
            stability=constant,
            scope="discrete" if holds else "estimate",
            noise_level=data.noise_level,
            name=candidate.name,
            _distance=lambda truth: norm(problem.check_parameter(truth) - q),
        )

    def to_dict(self) -> dict[str, Any]:
        """Name, weights and options, for the record."""
        options = {"weights": self.weights, "pde_norm": self.pde_norm, "norm": self.norm, "covered": self.covered}
        return {**super().to_dict(), **options}


@dataclass(frozen=True, kw_only=True)
class ResidualRadius(WeightedRule):
    """The paper's R_delta (uncertainty-radius): ``C (data + pde + bc + delta)^p``.

    Notes
    -----
    What it compares: for a linear problem C and delta are the same for both candidates, and for states that are solved
    pde and bc are rounding. Between two such candidates of the class it is a contest of misfits ``‖H u - y‖_Y``: the
    better fit to the data, noise included, is accepted. Least squares wins it against every other candidate, whether it
    is nearer to the truth or not.
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
    candidate reports of itself; with ``optimality=0`` a contest of misfits as with `ResidualRadius`. With
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
