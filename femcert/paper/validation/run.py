"""Runs the experiments, counts how the decisions depend on the draw, and checks the result against the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from types import ModuleType

from ...checks import count
from ...errors import InputError
from . import (
    coefficient,
    heat,
    poisson,
    stochastic,
    tomography,
)
from . import (
    printed as paper,
)
from .checks import all_checks
from .outcome import Outcome, Scenario, draw
from .result import EXPERIMENTS, Agreement, StabilityResult, Validation
from .setup import BASE_SEED, ROBUSTNESS_SEEDS

INVERSE: dict[str, ModuleType] = {
    "poisson": poisson,
    "heat": heat,
    "tomography": tomography,
    "coefficient": coefficient,
}


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
    outcomes: list[Outcome] = []
    stabilities: list[StabilityResult] = []
    agreements: list[Agreement] = []
    curve = sweep = None
    for name in names:
        if name == "stochastic":
            sweep = stochastic.sweep(base_seed)
        else:
            cases = INVERSE[name].scenarios()
            outcomes += [draw(case, base_seed) for case in cases]
            stabilities += _stabilities(INVERSE[name], cases)
            agreements += [row for case in cases for row in _agreements(case, range(1, robustness_seeds + 1))]
            curve = heat.stability_curve() if name == "heat" else curve
        finished(name)
    result = Validation(
        experiments=names,
        base_seed=base_seed,
        outcomes=tuple(outcomes),
        stabilities=tuple(stabilities),
        heat_curve=curve,
        sweep=sweep,
        agreements=tuple(agreements),
    )
    return replace(result, checks=all_checks(result))


def checked_names(only: Sequence[str]) -> tuple[str, ...]:
    """`only` in the order of the paper, or an `InputError` that names what is available."""
    unknown = [name for name in only if name not in EXPERIMENTS]
    if unknown or not only:
        came = f"unknown experiment {unknown[0]!r}" if unknown else "no experiment named"
        raise InputError(f"{came}; expected one or more of {', '.join(EXPERIMENTS)}")
    return tuple(name for name in EXPERIMENTS if name in only)


def _stabilities(module: ModuleType, cases: list[Scenario]) -> list[StabilityResult]:
    title = cases[0].setup.title
    rows = [StabilityResult(title, case.name, case.stability) for case in cases]
    return rows + [StabilityResult(title, name, constant) for name, constant in module.further_stability()]


def _agreements(case: Scenario, seeds: Iterable[int]) -> list[Agreement]:
    outcomes = [draw(case, seed) for seed in seeds]
    if not outcomes:
        return []
    rows = []
    for i, first in enumerate(outcomes[0].verdicts):
        name = first.candidate.name
        wanted = paper.decision(case.setup.title, case.name, name).decision
        same = sum(outcome.verdicts[i].decision == wanted for outcome in outcomes)
        rows.append(Agreement(case.setup.title, case.name, name, len(outcomes), same))
    return rows
