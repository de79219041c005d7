"""Writes a validation: tables, figures and one page that holds them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...report import tables
from ...report.files import publish
from ...report.html import render
from ...report.pictures import Drawing, picture_files, write_pictures
from ...selection.selection import package_versions
from . import Validation, diagnostics, fields
from . import printed as paper
from .setup import (
    BASE_SEED,
    COEFFICIENT,
    HEAT,
    HEAT_TIMES,
    POISSON,
    ROBUSTNESS_SEEDS,
    STOCHASTIC,
    TOMOGRAPHY,
    candidate_seed,
    noise_seed,
)

REPORT = "report.html"

COLUMNS = {
    "decisions": (
        "experiment",
        "scenario",
        "candidate",
        "radius_baseline",
        "radius_learned",
        "relative_error",
        "decision",
        "paper_radius_baseline",
        "paper_radius_learned",
        "paper_decision",
    ),
    "stability": (
        "experiment",
        "scenario",
        "sigma_min",
        "constant",
        "condition",
        "paper_sigma_min",
        "paper_condition",
    ),
    "stochastic": (
        "points",
        "repetitions",
        "true_msr",
        "empirical_msr",
        "upper_bound",
        "coverage",
        "zeta",
        "paper_empirical_msr",
        "paper_upper_bound",
        "paper_coverage",
    ),
    "robustness": ("experiment", "scenario", "candidate", "seeds", "agreement"),
    "coverage": (
        "experiment",
        "scenario",
        "candidate",
        "error",
        "radius",
        "sharpness",
        "covered",
        "side",
        "covered_radius",
    ),
    "checks": ("subject", "quantity", "computed", "printed", "requirement", "passed"),
}

FIGURES: tuple[Drawing, ...] = (
    (
        "decisions",
        diagnostics.decisions,
        "Ratio of learned to baseline radius for all decisions, with the paper's ratios",
    ),
    ("error_radius", diagnostics.error_radius, "Radius over true error for all reconstructions, with the diagonal"),
    ("coverage", diagnostics.coverage, "Number of radii that contain the truth, by experiment"),
    ("poisson_reconstruction", fields.poisson_reconstruction, "Poisson sources: truth, baseline and candidates"),
    (
        "poisson_error_radius",
        diagnostics.poisson_error_radius,
        "Poisson: true error and radius of every reconstruction",
    ),
    ("heat_reconstruction", fields.heat_reconstruction, "Initial values at T = 0.08: truth, baseline and candidates"),
    ("heat_stability", diagnostics.heat_stability, "Stability constant of the heat problem over the observation time"),
    (
        "tomography_images",
        fields.tomography_images,
        "Tomography: truth, baseline, candidates and safe output as images",
    ),
    ("tomography_surfaces", fields.tomography_surfaces, "Tomography: truth and safe output as surfaces"),
    ("coefficient_reconstruction", fields.coefficient_reconstruction, "Conductivities: truth, baseline and candidates"),
    ("stochastic_field", fields.stochastic_field, "The residual field that is sampled"),
    (
        "stochastic_sweep",
        diagnostics.stochastic_sweep,
        "Empirical mean square and upper bound over the number of points",
    ),
)


def owned_files() -> list[str]:
    """Everything that a validation may write, relative to its directory."""
    return [*(f"tables/{name}.csv" for name in COLUMNS), *picture_files(FIGURES), REPORT]


def write_validation(result: Validation, draft: Path, target: Path) -> None:
    """Build tables, figures and page in the directory `draft`, then rename them into `target`."""
    rows = _rows(result)
    for name, columns in COLUMNS.items():
        if rows[name]:
            tables.write_csv(draft / "tables" / f"{name}.csv", columns, rows[name])
    pictures = write_pictures(FIGURES, result, draft)
    (draft / REPORT).write_text(page(result, pictures), encoding="utf-8")
    publish(draft, target, owned=owned_files(), last=REPORT)


def page(result: Validation, pictures: list[dict[str, Any]]) -> str:
    """The report as HTML."""
    rows = _rows(result)
    uncovered = [row for row in rows["coverage"] if not row["covered"]]
    return render(
        "validation.html",
        result=result,
        rows=rows,
        groups=_groups(result),
        pictures=pictures,
        settings=settings(result),
        versions=package_versions(),
        default_seed=BASE_SEED,
        counted_seeds=ROBUSTNESS_SEEDS,
        printed={"msr": paper.TRUE_MSR, "envelope": paper.ENVELOPE},
        uncovered=uncovered,
        uncovered_names=sorted({row["candidate"] for row in uncovered}),
        fragile=[row for row in rows["robustness"] if row["agreement"] < row["seeds"]],
    )


def settings(result: Validation) -> list[dict[str, Any]]:
    """A row of settings and seeds for each scenario that was run."""
    rows = []
    for setup in (POISSON, HEAT, TOMOGRAPHY, COEFFICIENT):
        if setup.name not in result.experiments:
            continue
        numbers = range(setup.first, setup.first + (len(HEAT_TIMES) if setup is HEAT else 1))
        seeds = [f"{noise_seed(result.base_seed, n)} / {candidate_seed(result.base_seed, n)}" for n in numbers]
        rows.append(
            {
                "title": setup.title,
                "n": setup.grid,
                "k": setup.modes,
                "m": setup.observations,
                "noise": f"{setup.noise:g}",
                "weight": f"{setup.weight:g}",
                "pde": f"{setup.pde:g}",
                "optimality": f"{setup.optimality:g}",
                "seeds": ", ".join(seeds),
                "note": setup.note,
            }
        )
    if STOCHASTIC.name in result.experiments:
        blank = dict.fromkeys(("k", "m", "noise", "weight", "pde", "optimality"), "-")
        seed = f"- / {candidate_seed(result.base_seed, STOCHASTIC.first)}"
        rows.append({"title": STOCHASTIC.title, "n": STOCHASTIC.grid, **blank, "seeds": seed, "note": STOCHASTIC.note})
    return rows


def _rows(result: Validation) -> dict[str, list[dict[str, Any]]]:
    return {
        "decisions": result.decision_rows(),
        "stability": result.stability_rows(),
        "stochastic": result.stochastic_rows(),
        "robustness": [vars(item) for item in result.agreements],
        "coverage": result.coverage_rows(),
        "checks": [vars(check) for check in result.checks],
    }


def _groups(result: Validation) -> list[dict[str, Any]]:
    """Passed and total for each kind of check, for the top of the page."""
    kinds = {
        "Decisions": ("decision",),
        "Stability constants": ("sigma_min", "constant", "condition"),
        "Radii": ("radius_baseline", "radius_learned"),
        "Relative errors": ("relative_error", "hallucinated_part"),
        "Stochastic residual": (
            "true_msr",
            "envelope",
            "empirical_msr",
            "upper_bound",
            "bound_minus_mean",
            "coverage",
        ),
    }
    groups = []
    for name, quantities in kinds.items():
        checks = [check for check in result.checks if check.quantity in quantities]
        if checks:
            groups.append({"name": name, "passed": sum(check.passed for check in checks), "total": len(checks)})
    return groups
