"""The paper's radii R_delta and R_op: a stability constant times a weighted sum of residuals."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ..bound import Bound
from ..errors import InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.checks import number
from ..problem.data import Data
from ..residual import Residuals
from ..residual.physics import check_pde_norm
from ..residual.weak import check_norm
from ..stability import Stability
from ..stability.weights import certified_weights


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A certification rule: weights fixed before any candidate is seen, the same for all of them.

    Parameters
    ----------
    stability
        A stability constant computed beforehand, used for every candidate. Default: that of the problem, for a
        nonlinear one that of the linearization at the candidate.
    pde_norm
        How the physics residual is measured: ``"rms"``, the paper's root mean square, or a method of `dual_norm`, such
        as ``"equilibrated"``, a guaranteed upper bound over the continuous space (for heat, over space and time). With
        a dual norm the boundary residual is measured in H^1/2.
    norm
        ``"energy"`` or ``"h1"``: the norm of the test functions in a dual norm.
    """

    stability: Stability | None = field(default=None, repr=False)
    pde_norm: str = "rms"
    norm: str = "energy"

    def __post_init__(self) -> None:
        check_pde_norm(self.pde_norm)
        check_norm(self.norm)
        if self.stability is not None and not isinstance(self.stability, Stability):
            raise InputError(f"stability is a {type(self.stability).__name__}; expected the result of stability()")

    @property
    def weights(self) -> dict[str, Any]:
        """Weights of the residual components ``pde``, ``bc`` and ``optimality``."""
        return {"pde": 1.0, "bc": 1.0, "optimality": 0.0}

    def resolved(self, problem: Problem, data: Data) -> Rule:
        """The rule with numbers for all weights: itself, unless a weight is to be computed for this problem."""
        return self

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

    def to_dict(self) -> dict[str, Any]:
        """Name, weights and options, for the record."""
        return {
            "name": type(self).__name__,
            "weights": self.weights,
            "stability": "given" if self.stability is not None else "computed",
            "pde_norm": self.pde_norm,
            "norm": self.norm,
        }


@dataclass(frozen=True, kw_only=True)
class ResidualRadius(Rule):
    """The paper's R_delta (uncertainty-radius): ``C (data + pde + bc + delta)^p``."""


@dataclass(frozen=True, kw_only=True)
class OperationalRadius(Rule):
    """The paper's R_op (operational-radius): ``C (data + a_pde pde + a_bc bc + delta + a_opt optimality)^p``.

    Parameters
    ----------
    pde, bc, optimality
        The weights a_pde, a_bc and a_opt, all >= 0. With ``optimality > 0`` a candidate must report its optimality.
        ``pde="certified"`` and ``bc="certified"`` compute the operator norms that make the sum a theorem instead of a
        calibration (`femcert.stability.weights`); they need a dual norm, such as ``pde_norm="equilibrated"``.
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

    def resolved(self, problem: Problem, data: Data) -> OperationalRadius:
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
