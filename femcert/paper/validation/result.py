"""The result of a validation: rows beside the paper's, and the checks that decide whether it passed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...checks import Array
from ...stability import Stability
from . import printed as paper
from .outcome import Outcome
from .stochastic import Sweep

EXPERIMENTS = ("poisson", "heat", "tomography", "coefficient", "stochastic")

Row = dict[str, Any]


@dataclass(frozen=True)
class StabilityResult:
    """A stability constant under the names of the paper's table."""

    experiment: str
    scenario: str
    stability: Stability


@dataclass(frozen=True)
class Agreement:
    """For how many base seeds a decision equals the paper's."""

    experiment: str
    scenario: str
    candidate: str
    seeds: int
    agreement: int


@dataclass(frozen=True)
class Check:
    """A comparison with the paper.

    Attributes
    ----------
    subject, quantity
        Experiment, scenario and candidate; and what is compared.
    computed, printed
        The value here and the paper's.
    requirement
        What must hold, in words.
    """

    subject: str
    quantity: str
    computed: str
    printed: str
    requirement: str
    passed: bool

    def __str__(self) -> str:
        return f"{self.subject}, {self.quantity}: {self.computed}, paper {self.printed} ({self.requirement})"


@dataclass(frozen=True)
class Validation:
    """Everything that was computed.

    Attributes
    ----------
    experiments
        Names of the experiments that were run.
    outcomes
        One per scenario, with problem, data, candidates and selections.
    stabilities
        The paper's constants and, beside them, those of the consistent mass and of exact rays.
    heat_curve
        Times and stability constants of the heat problem; None where it was not run.
    sweep
        The stochastic experiment; None where it was not run.
    agreements
        How the decisions depend on the draw.
    """

    experiments: tuple[str, ...]
    base_seed: int
    outcomes: tuple[Outcome, ...]
    stabilities: tuple[StabilityResult, ...]
    heat_curve: tuple[Array, Array] | None
    sweep: Sweep | None
    agreements: tuple[Agreement, ...]
    checks: tuple[Check, ...] = ()

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that did not pass."""
        return tuple(check for check in self.checks if not check.passed)

    @property
    def passed(self) -> bool:
        """Whether there were checks and all of them passed."""
        return bool(self.checks) and not self.failures

    def decision_rows(self) -> list[Row]:
        """A row for each learned candidate, the paper's values beside it."""
        rows = []
        for outcome in self.outcomes:
            title, scenario = outcome.scenario.setup.title, outcome.scenario.name
            for verdict in outcome.verdicts:
                printed = paper.decision(title, scenario, verdict.candidate.name)
                base, learned = verdict.selection.baseline, verdict.selection.learned
                rows.append(
                    {
                        "experiment": title,
                        "scenario": scenario,
                        "candidate": verdict.candidate.name,
                        "radius_baseline": base and base.radius.value,
                        "radius_learned": learned and learned.radius.value,
                        "relative_error": verdict.relative_error,
                        "decision": verdict.decision,
                        "paper_radius_baseline": printed.radius_baseline,
                        "paper_radius_learned": printed.radius_learned,
                        "paper_relative_error": printed.relative_error,
                        "paper_decision": printed.decision,
                    }
                )
        return rows

    def stability_rows(self) -> list[Row]:
        """A row for each stability constant; the paper's columns are empty where it has none."""
        rows = []
        for item in self.stabilities:
            printed = paper.stability(item.experiment, item.scenario)
            rows.append(
                {
                    "experiment": item.experiment,
                    "scenario": item.scenario,
                    "sigma_min": item.stability.sigma_min,
                    "constant": item.stability.constant.value,
                    "condition": item.stability.condition,
                    "paper_sigma_min": printed.sigma_min if printed else "",
                    "paper_constant": printed.constant if printed else "",
                    "paper_condition": printed.condition if printed else "",
                }
            )
        return rows

    def stochastic_rows(self) -> list[Row]:
        """A row for each number of points."""
        if self.sweep is None:
            return []
        rows = []
        for item in self.sweep.rows:
            printed = paper.sweep(item.points)
            rows.append(
                {
                    "points": item.points,
                    "repetitions": item.repetitions,
                    "true_msr": self.sweep.true_msr,
                    "empirical_msr": item.empirical_msr,
                    "upper_bound": item.upper_bound,
                    "coverage": item.coverage,
                    "zeta": item.zeta,
                    "paper_empirical_msr": printed.empirical_msr,
                    "paper_upper_bound": printed.upper_bound,
                    "paper_coverage": printed.coverage,
                }
            )
        return rows

    def coverage_rows(self) -> list[Row]:
        """Hindsight: for every reconstruction whether its radius contains the truth, and how sharp it is.

        Beside the paper's radius stands the one that counts structure outside of the class.
        """
        rows = []
        for outcome in self.outcomes:
            truth = outcome.scenario.true_field
            for name, certificate in outcome.certificates():
                rows.append(
                    {
                        "experiment": outcome.scenario.setup.title,
                        "scenario": outcome.scenario.name,
                        "candidate": name,
                        "error": certificate.error(truth),
                        "radius": certificate.radius.value,
                        "sharpness": certificate.sharpness(truth),
                        "covered": certificate.contains(truth),
                        "side": certificate.radius.side,
                        "covered_radius": outcome.covered[name].radius.value,
                    }
                )
        return rows
