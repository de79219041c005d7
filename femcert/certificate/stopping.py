"""The paper's stopping rule: training may stop when the total residual is below a tolerance."""

from __future__ import annotations

from dataclasses import dataclass

from ..checks import number
from ..errors import InputError
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.data import Data
from ..residual import evaluate
from .rules import WeightedRule


@dataclass(frozen=True)
class StoppingRule:
    """``data + a_pde pde + a_bc bc + a_opt optimality <= tolerance`` (the paper's tau_cert, stopping-rule).

    Call it with a candidate from a training loop; it needs no stability constant.
    """

    problem: Problem
    data: Data
    rule: WeightedRule
    tolerance: float

    def __post_init__(self) -> None:
        number(self.tolerance, "tolerance", least=0.0)
        if not isinstance(self.rule, WeightedRule):
            raise InputError(f"rule is a {type(self.rule).__name__}; expected a rule such as OperationalRadius(...)")

    def __call__(self, candidate: Candidate) -> bool:
        """Whether `candidate` may be reported as certified."""
        rule = self.rule.with_weights(self.problem, self.data)
        inside, _ = rule.split(self.problem, candidate)
        residuals = evaluate(self.problem, self.data, inside, pde_norm=rule.pde_norm, norm=rule.norm)
        pde = rule.physics(self.problem, inside, residuals)
        return bool(rule.total(residuals, pde) <= self.tolerance)
