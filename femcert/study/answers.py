"""Candidates and baselines of a case: from files, or solvers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ..errors import InputError
from ..problem import Candidate, Problem
from ..selection import Tikhonov
from .keys import Table, checked_table
from .kinds import BASELINES, SOLVERS, candidate_of


def candidates_of(value: Any) -> dict[str, Table]:
    """The section ``candidate``: one table, or a table of them by name."""
    table = checked_table(value, "candidate")
    if not table or not all(isinstance(each, Mapping) for each in table.values()):
        return {"candidate": _candidate(table, "candidate")}
    return {name: _candidate(each, f"candidate.{name}") for name, each in table.items()}


def _candidate(value: Any, key: str) -> Table:
    """The file of a finished one, or a solver."""
    return Table.read(value, key, SOLVERS if "kind" in checked_table(value, key) else candidate_of)


def solver_of(value: Any) -> Table:
    """The section ``baseline``: a solver, or the file of a reconstruction."""
    return Table.read(value, "baseline", candidate_of if "file" in checked_table(value, "baseline") else BASELINES)


def _from_file(table: Table, problem: Problem, folder: Path) -> Candidate:
    return cast(Candidate, table(problem=problem, folder=folder, key=f"{table.key}.file"))


def _solved_by(table: Table, problem: Problem, folder: Path) -> Any:
    """A solver: what it needs beside its keys depends on its kind."""
    if table.kind in BASELINES:
        return baseline_of(table, problem, folder)
    given: dict[str, Any] = {"problem": problem, "folder": folder, "key": f"{table.key}.file"}
    return table(**{name: given[name] for name in given if name in table.parameters})


def made_by(candidates: dict[str, Table], problem: Problem, folder: Path) -> Any:
    """As `no_harm` takes them."""
    made = {
        name: _solved_by(table, problem, folder) if table.kind else _from_file(table, problem, folder)
        for name, table in candidates.items()
    }
    alone = [table.key for table in candidates.values()] == ["candidate"]
    return made["candidate"] if alone else made


def baseline_of(table: Table | None, problem: Problem, folder: Path, *, unknown: bool = False) -> Any:
    """The classical solver that fits the problem, or a reconstruction from its file.

    Where the deviation of the noise is `unknown` there is no discrepancy to choose a weight by.
    """
    if unknown and table is not None and table.values.get("choose") == "discrepancy":
        raise InputError(f"{table.key}.choose is 'discrepancy', and data.std is 'unknown'; expected 'gcv' or a weight")
    if table is not None and "file" in table.values:
        return _from_file(table, problem, folder)
    what, fitting = ("linear", "tikhonov") if problem.forward is not None else ("nonlinear", "gauss-newton")
    if table is None:
        if fitting != "tikhonov":
            raise InputError(f"section [baseline] is missing; expected kind = {fitting!r} and a weight")
        return Tikhonov(choose="gcv" if unknown else "discrepancy")
    if table.kind != fitting:
        raise InputError(f"{table.key}.kind is {table.kind!r}; a {what} problem is solved by {fitting!r}")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in table.values.items()}
    return table(values=values)
