"""Writes a sweep: tables, figures and one page that holds them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...errors import InputError
from ...report import tables
from ...report.files import check_free, draft_directory, publish
from ...report.html import render
from ...report.pictures import Drawing, picture_files, write_pictures
from ...selection.selection import package_versions
from . import Sweep, rows
from . import figures as sweep_figures
from . import heatmaps as sweep_heatmaps
from . import printed as paper
from .checks import bands, comparable

REPORT = "report.html"
TABLES = ("summary.csv", "regimes.csv", "mismatch.csv", "rules.csv")

FIGURES: tuple[Drawing, ...] = (
    (
        "boundary",
        sweep_figures.boundary,
        "Every trial by certificate ratio and error ratio, with the line at ratio 1 left of which the rule accepts",
    ),
    ("acceptance", sweep_heatmaps.acceptance, "Accepted trials by number of sensors and learned perturbation"),
    ("unsafe", sweep_heatmaps.unsafe, "Unsafe acceptances by number of sensors and learned perturbation"),
    ("false_rejections", sweep_heatmaps.false_rejections, "False rejections by number of sensors and perturbation"),
    ("ratios", sweep_heatmaps.ratios, "Median certificate ratio by number of sensors and noise level"),
    ("rules", sweep_figures.rules, "Safe, unsafe and falsely rejected parts of the trials by noise level, per rule"),
)


def owned_files() -> list[str]:
    """Everything that a sweep report may write, relative to its directory."""
    return [*TABLES, *picture_files(FIGURES), REPORT]


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
        check_free(target, owned_files())
        _write_tables(result, draft, compare)
        pictures = write_pictures(FIGURES, result, draft)
        (draft / REPORT).write_text(page(result, pictures, compare=compare), encoding="utf-8")
        publish(draft, target, owned=owned_files(), last=REPORT)
    return target / REPORT


def page(result: Sweep, pictures: list[dict[str, Any]], *, compare: bool = True) -> str:
    """The report as HTML."""
    beside = compare and comparable(result)
    checks = bands(result) if compare else []
    everywhere = rows.rule_rows(result)
    return render(
        "sweep.html",
        result=result,
        grid=result.grid,
        beside=beside,
        checks=checks,
        failures=[check for check in checks if not check.passed],
        summary=rows.summary(result, beside),
        mismatches=rows.mismatch_rows(result, beside),
        regimes=rows.regime_rows(result, beside),
        range=rows.ratio_range(result) if beside else None,
        rules=[row for row in everywhere if row["noise"] == "all"],
        levels=[row for rule in result.rules for row in everywhere if row["rule"] == rule and row["noise"] != "all"],
        sentences={rule: rows.sentence(result, rule) for rule in result.rules},
        printed_trials=paper.TRIALS,
        pictures=pictures,
        versions=package_versions(),
    )


def _write_tables(result: Sweep, draft: Path, compare: bool) -> None:
    beside = compare and comparable(result)
    columns = rows.with_paper if beside else tuple
    summary, regimes, mismatch, rules = (draft / name for name in TABLES)
    tables.write_csv(summary, rows.SUMMARY_PAPER if beside else rows.SUMMARY, rows.summary(result, beside))
    # A rule without radii has no regimes; a heading with nothing below it would look like a result.
    if found := rows.regime_rows(result, beside):
        tables.write_csv(regimes, columns(rows.REGIMES), found)
    tables.write_csv(mismatch, columns(rows.MISMATCH), rows.mismatch_rows(result, beside))
    tables.write_csv(rules, rows.RULES, rows.rule_rows(result))
