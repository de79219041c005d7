"""Writes a validation or a sweep: tables, figures and one page that holds them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import output_directory, remove_former, write_csv, write_text
from ..report.html import render
from ..report.pictures import Drawing, picture_files, write_pictures
from ..selection.selection import package_versions
from . import printed as paper
from . import rows, sweep_figures, validation_figures
from .checks import comparable, sweep_checks
from .outcome import Validation
from .setup import BASE_SEED, ROBUSTNESS_SEEDS
from .tally import Sweep

REPORT = "report.html"
VALIDATION_TABLES = tuple(f"tables/{name}.csv" for name in rows.COLUMNS)
VALIDATION_FIGURES = validation_figures.FIGURES
SWEEP_TABLES = ("summary.csv", "regimes.csv", "mismatch.csv", "rules.csv")
SWEEP_FIGURES = sweep_figures.FIGURES

Pictures = list[dict[str, Any]]


def validation_files() -> list[str]:
    """Everything that a validation may write, relative to its directory."""
    return [*VALIDATION_TABLES, *picture_files(VALIDATION_FIGURES), REPORT]


def sweep_files() -> list[str]:
    """Everything that the report of a sweep may write, relative to its directory."""
    return [*SWEEP_TABLES, *picture_files(SWEEP_FIGURES), REPORT]


def write_validation(result: Validation, out: Path) -> None:
    """Write tables, figures and, last, the page into the directory `out`, in place of those of another run."""
    found = rows.validation_rows(result)
    named = zip(rows.COLUMNS, VALIDATION_TABLES, strict=True)
    tables = {path: (rows.COLUMNS[name], found[name]) for name, path in named}
    _write(result, tables, VALIDATION_FIGURES, validation_page, out)


def validation_page(result: Validation, pictures: Pictures) -> str:
    """The page of a validation as HTML."""
    found = rows.validation_rows(result)
    uncovered = [row for row in found["coverage"] if not row["covered"]]
    return render(
        "validation.html",
        result=result,
        rows=found,
        groups=rows.check_groups(result),
        pictures=pictures,
        settings=rows.settings(result),
        versions=package_versions(),
        default_seed=BASE_SEED,
        counted_seeds=ROBUSTNESS_SEEDS,
        printed={"msr": paper.TRUE_MSR, "envelope": paper.ENVELOPE},
        uncovered=uncovered,
        uncovered_names=sorted({row["candidate"] for row in uncovered}),
        fragile=[row for row in found["robustness"] if row["agreement"] < row["seeds"]],
    )


def write_sweep(result: Sweep, out: str | Path, *, compare: bool = True) -> Path:
    """Write tables, figures and a page about a sweep into the directory `out`; other files there are left alone.

    Each file appears whole, the page last; its path is returned.

    Parameters
    ----------
    compare
        Whether to put the paper's numbers beside those of its own grid; False for another problem on this grid.
    """
    if not isinstance(result, Sweep):
        raise InputError(f"result is a {type(result).__name__}; expected a Sweep")
    target = Path(out)
    with output_directory(target, sweep_files()):
        found = rows.sweep_rows(result, compare and comparable(result))
        named = zip(SWEEP_TABLES, found.values(), strict=True)
        tables = {path: (tuple(table[0]) if table else (), table) for path, table in named}
        _write(result, tables, SWEEP_FIGURES, partial(sweep_page, compare=compare), target)
    return target / REPORT


def sweep_page(result: Sweep, pictures: Pictures, *, compare: bool = True) -> str:
    """The page of a sweep as HTML."""
    beside = compare and comparable(result)
    checks = sweep_checks(result) if compare else []
    found = rows.sweep_rows(result, beside)
    of_rule = [row for rule in result.rules for row in found["rules"] if row["rule"] == rule]
    return render(
        "sweep.html",
        result=result,
        grid=result.grid,
        beside=beside,
        checks=checks,
        failures=[check for check in checks if not check.passed],
        summary=found["summary"],
        mismatches=found["mismatch"],
        regimes=found["regimes"],
        range=rows.ratio_range(result) if beside else None,
        rules=[row for row in of_rule if row["noise"] == "all"],
        levels=[row for row in of_rule if row["noise"] != "all"],
        sentences={rule: rows.sentence(result, rule) for rule in result.rules},
        printed_trials=paper.TRIALS,
        pictures=pictures,
        versions=package_versions(),
    )


def _write(
    result: Any,
    tables: Mapping[str, tuple[Sequence[str], Sequence[Mapping[str, Any]]]],
    figures: Sequence[Drawing],
    page: Callable[[Any, Pictures], str],
    out: Path,
) -> None:
    """Write tables by their names with columns and rows, figures and the page; what an earlier run left goes first."""
    remove_former(out, [*tables, *picture_files(figures), REPORT])
    for path, (columns, found) in tables.items():
        if found:
            write_csv(out / path, columns, found)
    write_text(out / REPORT, page(result, write_pictures(figures, result, out)))
