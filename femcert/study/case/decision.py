"""The sections ``baseline``, ``candidate`` and ``rule``: between what is decided, and how."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...certificate import (
    Dominance,
    ExactRadius,
    GuaranteedRadius,
    OperationalRadius,
    ResidualRadius,
    Rule,
    StochasticRadius,
)
from ...errors import InputError
from ...problem import Candidate, Problem
from ...selection import GaussNewton, Tikhonov
from ...timing import stage
from ..keys import at_key

RULES: dict[str, type[Rule]] = {
    "residual": ResidualRadius,
    "operational": OperationalRadius,
    "stochastic": StochasticRadius,
    "guaranteed": GuaranteedRadius,
    "exact": ExactRadius,
    "dominance": Dominance,
}
_BASELINES: dict[str, Any] = {"tikhonov": Tikhonov, "gauss-newton": GaussNewton}


def build_rule(section: Mapping[str, Any]) -> Rule:
    """The rule with its weights and options."""
    options = _without(section, "kind", "tolerance")
    return at_key("rule", lambda: RULES[section["kind"]](**options), options)


def build_baseline(section: Mapping[str, Any] | None, problem: Problem) -> Any:
    """The classical solver that fits the problem."""
    fitting = "tikhonov" if problem.linear else "gauss-newton"
    if section is None:
        if not problem.linear:
            raise InputError(f"section [baseline] is missing; expected kind = {fitting!r} and a weight")
        return Tikhonov(choose="discrepancy")
    kind = section["kind"]
    if kind != fitting:
        what = "linear" if problem.linear else "nonlinear"
        raise InputError(f"baseline.kind is {kind!r}; a {what} problem is solved by {fitting!r}")
    options = _without(section, "kind")
    if "bounds" in options:
        options["bounds"] = tuple(options["bounds"])
    return at_key("baseline", lambda: _BASELINES[kind](**options), options)


def read_candidate(section: Mapping[str, Any], problem: Problem, folder: Path) -> Candidate:
    """The learned candidate from its file."""
    options = _without(section, "file", "optimality")
    with stage("candidate"):
        made = at_key("candidate.file", lambda: Candidate.from_file(problem, folder / section["file"], **options))
    if "optimality" not in section:
        return made
    if made.optimality is not None:
        raise InputError("candidate.optimality is given, and in candidate.file too; expected one of them")
    return Candidate(
        made.state,
        made.parameter,
        section["optimality"],
        made.name,
        mesh=problem.basis.mesh,
        interpolation=made.interpolation,
    )


def _without(section: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in section.items() if name not in names}
