"""A scenario of the validation, and what comes out of it for one draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...certificate import Certificate, OperationalRadius, certify
from ...checks import Array
from ...problem.base import Problem
from ...problem.candidate import Candidate
from ...problem.data import Data
from ...residual import reduced_gradient_norm
from ...selection import GaussNewton, Selection, Tikhonov, no_harm
from ...stability import Stability, stability
from ...study.study import DECISIONS
from .setup import Setup, candidate_seed, noise_seed


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """An inverse problem with a known truth, its baseline, and the learned candidates to be judged.

    Attributes
    ----------
    number
        Through all experiments, for the seeds.
    truth
        Coordinates of the true parameter.
    learned
        ``(scenario, random generator) -> [(name, parameter, state or None)]``.
    measured
        The field in which relative errors are measured; the parameter itself unless said otherwise.
    """

    setup: Setup
    name: str
    number: int
    problem: Problem
    truth: Array
    stability: Stability
    learned: Callable[[Scenario, np.random.Generator], list[tuple[str, Array, Any]]]
    measured: Callable[[Array], Array] = lambda q: q

    @property
    def rule(self) -> OperationalRadius:
        """The paper's operational radius with the weights of its table; the boundary residual counts fully."""
        setup = self.setup
        return OperationalRadius(
            pde=setup.pde, bc=1.0, optimality=setup.optimality, stability=self.stability, covered=False
        )

    @property
    def true_field(self) -> Array:
        """Dof vector of the truth."""
        return self.problem.parameters.field(self.truth)

    def relative_error(self, parameter: Array) -> float:
        """``‖q - q_true‖ / ‖q_true‖`` in the Euclidean norm of the paper, of the measured field."""
        exact = self.measured(self.true_field)
        return float(np.linalg.norm(self.measured(parameter) - exact) / np.linalg.norm(exact))

    def moved(self, rng: np.random.Generator, scale: float) -> Array:
        """The truth with every coordinate moved by `scale` times a standard normal number (dof vector)."""
        c = self.truth + scale * rng.standard_normal(self.truth.size)
        return self.problem.parameters.field(c)

    def shifted(self) -> Array:
        """The truth with the structured shift added to its modes (dof vector)."""
        c = self.truth.copy()
        c[list(self.setup.shifted)] += self.setup.shift
        return self.problem.parameters.field(c)


@dataclass(frozen=True)
class Verdict:
    """A learned candidate, the selection between it and the baseline, and its true error, which no selection sees."""

    candidate: Candidate
    selection: Selection
    relative_error: float

    @property
    def decision(self) -> str:
        """``"accept"`` or ``"reject"``, as the paper says; ``"undecided"`` where rule or baseline failed."""
        return DECISIONS[self.selection.status]


@dataclass(frozen=True)
class Outcome:
    """One draw of a scenario: data, baseline, and a verdict for each learned candidate."""

    scenario: Scenario
    base_seed: int
    data: Data
    baseline: Candidate
    verdicts: tuple[Verdict, ...]

    @cached_property
    def covered(self) -> dict[str, Certificate]:
        """The certificates with the paper's rule, but with structure outside of the class counted."""
        rule = replace(self.scenario.rule, covered=True)
        candidates = {"baseline": self.baseline, **{v.candidate.name: v.candidate for v in self.verdicts}}
        return {name: certify(self.scenario.problem, self.data, c, rule) for name, c in candidates.items()}

    def certificates(self) -> list[tuple[str, Certificate]]:
        """Name and certificate of the baseline and of every learned candidate."""
        base = self.verdicts[0].selection.baseline
        rows = [("baseline", base), *((v.candidate.name, v.selection.learned) for v in self.verdicts)]
        return [(name, certificate) for name, certificate in rows if certificate is not None]


def scenario(
    setup: Setup,
    problem: Problem,
    truth: Any,
    learned: Callable[[Scenario, np.random.Generator], list[tuple[str, Array, Any]]],
    *,
    name: str = "default",
    number: int | None = None,
    measured: Callable[[Array], Array] | None = None,
) -> Scenario:
    """A scenario with the stability constant of its problem, for a nonlinear one at the truth."""
    c = np.asarray(truth, dtype=float)
    at = None if problem.linear else problem.parameters.field(c)
    return Scenario(
        setup=setup,
        name=name,
        number=setup.first if number is None else number,
        problem=problem,
        truth=c,
        stability=stability(problem, at=at),
        learned=learned,
        **({} if measured is None else {"measured": measured}),
    )


def draw(case: Scenario, base_seed: int) -> Outcome:
    """Noise, baseline, candidates and selections for one base seed."""
    problem, setup = case.problem, case.setup
    # The paper takes the norm of the noise that was drawn as noise level.
    seed = noise_seed(base_seed, case.number)
    data = problem.simulate(case.true_field, noise=setup.noise, seed=seed, oracle=True)
    solver = Tikhonov(weight=setup.weight) if problem.linear else GaussNewton(weight=setup.weight)
    baseline = solver(problem, data)
    rule = case.rule
    rng = np.random.default_rng(candidate_seed(base_seed, case.number))
    verdicts = []
    for name, parameter, state in case.learned(case, rng):
        if state is None and problem.has_state:
            state = problem.solve(parameter)
        optimality = reduced_gradient_norm(problem, data, parameter, weight=setup.weight)
        candidate = Candidate(state, parameter, optimality, name, mesh=problem.basis.mesh)
        selection = no_harm(problem, data, baseline=baseline, learned=candidate, rule=rule)
        verdicts.append(Verdict(candidate, selection, case.relative_error(parameter)))
    return Outcome(case, base_seed, data, baseline, tuple(verdicts))
