"""Writes a validation or a sweep: tables, figures and one page that holds them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..report.files import check_free, draft_directory, publish
from ..report.html import render
from ..report.pictures import Drawing, picture_files, write_pictures
from ..report.tables import write_csv
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


def write_validation(result: Validation, draft: Path, target: Path) -> None:
    """Build tables, figures and page in the directory `draft`, then rename them into `target`."""
    found = rows.validation_rows(result)
    for name, path in zip(rows.COLUMNS, VALIDATION_TABLES, strict=True):
        if found[name]:
            write_csv(draft / path, rows.COLUMNS[name], found[name])
    _draw_and_publish(result, validation_page, VALIDATION_FIGURES, draft, target, validation_files())


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

    All files appear together or not at all; the path of the page is returned.

    Parameters
    ----------
    compare
        Whether to put the paper's numbers beside those of its own grid; False for another problem on this grid.
    """
    if not isinstance(result, Sweep):
        raise InputError(f"result is a {type(result).__name__}; expected a Sweep")
    target = Path(out)
    with draft_directory(target) as draft:
        check_free(target, sweep_files())
        found = rows.sweep_rows(result, compare and comparable(result))
        for path, table in zip(SWEEP_TABLES, found.values(), strict=True):
            if table:
                write_csv(draft / path, tuple(table[0]), table)
        _draw_and_publish(result, partial(sweep_page, compare=compare), SWEEP_FIGURES, draft, target, sweep_files())
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


def _draw_and_publish(
    result: Any,
    page: Callable[[Any, Pictures], str],
    figures: Sequence[Drawing],
    draft: Path,
    target: Path,
    owned: Iterable[str],
) -> None:
    """Figures and page beside the tables that the draft holds; all of them are then renamed, the page last."""
    pictures = write_pictures(figures, result, draft)
    (draft / REPORT).write_text(page(result, pictures), encoding="utf-8")
    publish(draft, target, owned=owned, last=REPORT)
