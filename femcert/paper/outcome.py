"""What comes out of a scenario for one draw, and the result of a whole validation with its tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..certificate import Certificate, certify
from ..checks import Array
from ..problem import Candidate, Data
from ..residual import reduced_gradient_norm
from ..selection import Selection, no_harm
from ..stability import Stability
from ..study.study import DECISIONS
from . import printed as paper
from .experiments import SamplingCurve, Scenario
from .printed import Check
from .setup import candidate_seed, noise_seed

Row = dict[str, Any]


@dataclass(frozen=True)
class CandidateResult:
    """A learned candidate, the selection between it and the baseline, and its true error, which no selection uses."""

    candidate: Candidate
    selection: Selection
    relative_error: float

    @property
    def decision(self) -> str:
        """``"accept"`` or ``"reject"``, as the paper says; ``"undecided"`` where rule or baseline failed."""
        return DECISIONS[self.selection.status]


@dataclass(frozen=True)
class ScenarioResult:
    """One draw of a scenario: data, baseline, and a result for each learned candidate."""

    scenario: Scenario
    data: Data
    baseline: Candidate
    candidates: tuple[CandidateResult, ...]

    @cached_property
    def covered(self) -> dict[str, Certificate]:
        """The certificates with the paper's rule, but with structure outside of the class counted."""
        rule = replace(self.scenario.rule, covered=True)
        candidates = {"baseline": self.baseline, **{c.candidate.name: c.candidate for c in self.candidates}}
        return {name: certify(self.scenario.problem, self.data, c, rule) for name, c in candidates.items()}

    def certificates(self) -> list[tuple[str, Certificate]]:
        """Name and certificate of the baseline and of every learned candidate."""
        base = self.candidates[0].selection.baseline
        rows = [("baseline", base), *((c.candidate.name, c.selection.learned) for c in self.candidates)]
        return [(name, certificate) for name, certificate in rows if certificate is not None]


def draw(case: Scenario, base_seed: int) -> ScenarioResult:
    """Noise, baseline, candidates and selections for one base seed."""
    problem, experiment = case.problem, case.experiment
    # The paper takes the norm of the noise that was drawn as noise level.
    seed = noise_seed(base_seed, case.number)
    data = problem.simulate(case.true_field, noise=experiment.noise, seed=seed, oracle=True)
    baseline = case.solver(weight=experiment.weight)(problem, data)
    rng = np.random.default_rng(candidate_seed(base_seed, case.number))
    results = []
    for name, parameter, state in case.learned(case, rng):
        state = problem.solve(parameter) if state is None else state
        optimality = reduced_gradient_norm(problem, data, parameter, weight=experiment.weight)
        candidate = Candidate(state, parameter, optimality, name, mesh=problem.mesh)
        selection = no_harm(problem, data, baseline=baseline, learned=candidate, rule=case.rule)
        results.append(CandidateResult(candidate, selection, case.relative_error(parameter)))
    return ScenarioResult(case, data, baseline, tuple(results))


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
class Validation:
    """Everything that was computed.

    Attributes
    ----------
    experiments
        Names of the experiments that were run.
    scenarios
        One result per scenario, with problem, data, candidates and selections.
    stabilities
        The paper's constants and, beside them, those of the consistent mass and of exact rays.
    heat_curve
        Times and stability constants of the heat problem; None where it was not run.
    sampling
        The stochastic experiment; None where it was not run.
    agreements
        How the decisions depend on the draw.
    checks
        The comparisons with the paper.
    """

    experiments: tuple[str, ...]
    base_seed: int
    scenarios: tuple[ScenarioResult, ...]
    stabilities: tuple[StabilityResult, ...]
    heat_curve: tuple[Array, Array] | None
    sampling: SamplingCurve | None
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
        for result in self.scenarios:
            title, scenario = result.scenario.experiment.title, result.scenario.name
            for found in result.candidates:
                printed = paper.decision(title, scenario, found.candidate.name)
                base, learned = found.selection.baseline, found.selection.learned
                rows.append(
                    {
                        "experiment": title,
                        "scenario": scenario,
                        "candidate": found.candidate.name,
                        "radius_baseline": base and base.radius.value,
                        "radius_learned": learned and learned.radius.value,
                        "relative_error": found.relative_error,
                        "decision": found.decision,
                        **_of_paper(printed, "radius_baseline", "radius_learned", "relative_error", "decision"),
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
                    **_of_paper(printed, "sigma_min", "constant", "condition"),
                }
            )
        return rows

    def sampling_rows(self) -> list[Row]:
        """A row for each number of points of the stochastic experiment."""
        if self.sampling is None:
            return []
        rows = []
        for item in self.sampling.rows:
            printed = _of_paper(paper.sampling(item.points), "empirical_msr", "upper_bound", "coverage")
            rows.append({**vars(item), "true_msr": self.sampling.true_msr, **printed})
        return rows

    def coverage_rows(self) -> list[Row]:
        """Hindsight: for every reconstruction whether its radius contains the truth, and how sharp it is.

        Beside the paper's radius stands the one that counts structure outside of the class.
        """
        rows = []
        for result in self.scenarios:
            truth = result.scenario.true_field
            for name, certificate in result.certificates():
                rows.append(
                    {
                        "experiment": result.scenario.experiment.title,
                        "scenario": result.scenario.name,
                        "candidate": name,
                        "error": certificate.error(truth),
                        "radius": certificate.radius.value,
                        "sharpness": certificate.sharpness(truth),
                        "covered": certificate.contains(truth),
                        "side": certificate.radius.side,
                        "covered_radius": result.covered[name].radius.value,
                    }
                )
        return rows


def _of_paper(printed: Any, *names: str) -> Row:
    """The printed numbers of these names; empty where the paper has no such row."""
    return {f"paper_{name}": getattr(printed, name) if printed else "" for name in names}
