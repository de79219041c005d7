"""Runs the experiments, counts how the decisions depend on the draw, and checks the result against the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ..checks import count
from ..errors import InputError
from ..stability import stability
from . import printed as paper
from .checks import validation_checks
from .experiments import SCENARIOS, Scenario, heat_curve, sampling_curve
from .outcome import Agreement, ScenarioResult, StabilityResult, Validation, draw
from .setup import BASE_SEED, ROBUSTNESS_SEEDS

EXPERIMENTS = (*SCENARIOS, "stochastic")


def validate(
    *,
    only: Sequence[str] = EXPERIMENTS,
    base_seed: int = BASE_SEED,
    robustness_seeds: int = ROBUSTNESS_SEEDS,
    finished: Callable[[str], None] = lambda name: None,
) -> Validation:
    """Run the paper's validation.

    Parameters
    ----------
    only
        Names of the experiments to run, out of `EXPERIMENTS`.
    base_seed
        All noise, perturbations and sampled points derive from it.
    robustness_seeds
        Number of further base seeds 1, 2, ... for which the decisions are counted.
    finished
        Called with the name of each experiment when it is done.

    Raises
    ------
    InputError
        An unknown experiment or a negative seed.
    """
    names = checked_names(only)
    count(base_seed, "base_seed", least=0)
    count(robustness_seeds, "robustness_seeds", least=0)
    results: list[ScenarioResult] = []
    stabilities: list[StabilityResult] = []
    agreements: list[Agreement] = []
    curve = sampling = None
    for name in names:
        if name == "stochastic":
            sampling = sampling_curve(base_seed)
        else:
            cases = SCENARIOS[name]()
            results += [draw(case, base_seed) for case in cases]
            stabilities += _stabilities(cases)
            agreements += [row for case in cases for row in _agreements(case, range(1, robustness_seeds + 1))]
            curve = heat_curve() if name == "heat" else curve
        finished(name)
    result = Validation(
        experiments=names,
        base_seed=base_seed,
        scenarios=tuple(results),
        stabilities=tuple(stabilities),
        heat_curve=curve,
        sampling=sampling,
        agreements=tuple(agreements),
    )
    return replace(result, checks=validation_checks(result))


def checked_names(only: Sequence[str]) -> tuple[str, ...]:
    """`only` in the order of the paper, or an `InputError` that names what is available."""
    unknown = [name for name in only if name not in EXPERIMENTS]
    if unknown or not only:
        came = f"unknown experiment {unknown[0]!r}" if unknown else "no experiment named"
        raise InputError(f"{came}; expected one or more of {', '.join(EXPERIMENTS)}")
    return tuple(name for name in EXPERIMENTS if name in only)


def _stabilities(cases: list[Scenario]) -> list[StabilityResult]:
    """The constants of the paper's table, then those of the other discretizations."""
    title = cases[0].experiment.title
    rows = [StabilityResult(title, case.name, case.stability) for case in cases]
    further = [(case.name, *case.variant) for case in cases if case.variant is not None]
    return rows + [StabilityResult(title, f"{name}, {what}", stability(other)) for name, what, other in further]


def _agreements(case: Scenario, seeds: Iterable[int]) -> list[Agreement]:
    draws = [draw(case, seed) for seed in seeds]
    if not draws:
        return []
    rows = []
    for i, first in enumerate(draws[0].candidates):
        title, name = case.experiment.title, first.candidate.name
        wanted = paper.decision(title, case.name, name).decision
        same = sum(found.candidates[i].decision == wanted for found in draws)
        rows.append(Agreement(title, case.name, name, len(draws), same))
    return rows
