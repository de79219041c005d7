"""The paper's stopping rule: training may stop when the total residual is below a tolerance."""

from __future__ import annotations

from dataclasses import dataclass

from ..checks import kind_of, number
from ..errors import InputError
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.data import Data
from .weighted import WeightedRule


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
            raise InputError(f"rule is {kind_of(self.rule)}; expected a rule such as OperationalRadius(...)")

    def __call__(self, candidate: Candidate) -> bool:
        """Whether `candidate` may be reported as certified."""
        judge = self.rule.judge(self.problem, self.data)
        inside, _ = judge.moved(check_candidate(self.problem, candidate))
        residuals = judge.residuals(inside)
        return bool(judge.rule.total(residuals, judge.physics(inside, residuals)) <= self.tolerance)
