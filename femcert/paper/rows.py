"""The tables of the two pages as rows, the paper's numbers beside them, and a sentence about each rule of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import printed as paper
from .outcome import Row, Validation
from .rules import DOMINANCE, EXACT, GAUSSIAN, OPERATIONAL, RESIDUAL, ZETA
from .setup import COEFFICIENT, HEAT, HEAT_TIMES, POISSON, STOCHASTIC, TOMOGRAPHY, candidate_seed, noise_seed
from .tally import Sweep, Tally

# Columns of the tables of a validation; the tables of a sweep have all that is in their rows.
COLUMNS = {
    "decisions": (
        "experiment", "scenario", "candidate", "radius_baseline", "radius_learned", "relative_error",
        "decision", "paper_radius_baseline", "paper_radius_learned", "paper_decision",
    ),
    "stability": (
        "experiment", "scenario", "sigma_min", "constant", "condition", "paper_sigma_min", "paper_condition",
    ),
    "stochastic": (
        "points", "repetitions", "true_msr", "empirical_msr", "upper_bound", "coverage", "zeta",
        "paper_empirical_msr", "paper_upper_bound", "paper_coverage",
    ),
    "robustness": ("experiment", "scenario", "candidate", "seeds", "agreement"),
    "coverage": (
        "experiment", "scenario", "candidate", "error", "radius", "sharpness", "covered", "side",
        "covered_radius",
    ),
    "checks": ("subject", "quantity", "computed", "printed", "requirement", "passed"),
}  # fmt: skip


def validation_rows(result: Validation) -> dict[str, list[Row]]:
    """The rows of every table of a validation, by its name."""
    return {
        "decisions": result.decision_rows(),
        "stability": result.stability_rows(),
        "stochastic": result.sampling_rows(),
        "robustness": [vars(item) for item in result.agreements],
        "coverage": result.coverage_rows(),
        "checks": [vars(check) for check in result.checks],
    }


def settings(result: Validation) -> list[dict[str, Any]]:
    """A row of settings and seeds for each scenario that was run."""
    rows = []
    for experiment in (POISSON, HEAT, TOMOGRAPHY, COEFFICIENT):
        if experiment.name not in result.experiments:
            continue
        numbers = range(experiment.first, experiment.first + (len(HEAT_TIMES) if experiment is HEAT else 1))
        seeds = [f"{noise_seed(result.base_seed, n)} / {candidate_seed(result.base_seed, n)}" for n in numbers]
        rows.append(
            {
                "title": experiment.title,
                "n": experiment.grid,
                "k": experiment.modes,
                "m": experiment.observations,
                "noise": f"{experiment.noise:g}",
                "weight": f"{experiment.weight:g}",
                "pde": f"{experiment.pde:g}",
                "optimality": f"{experiment.optimality:g}",
                "seeds": ", ".join(seeds),
                "note": experiment.note,
            }
        )
    if STOCHASTIC.name in result.experiments:
        blank = dict.fromkeys(("k", "m", "noise", "weight", "pde", "optimality"), "-")
        seed = f"- / {candidate_seed(result.base_seed, STOCHASTIC.first)}"
        rows.append({"title": STOCHASTIC.title, "n": STOCHASTIC.grid, **blank, "seeds": seed, "note": STOCHASTIC.note})
    return rows


def check_groups(result: Validation) -> list[dict[str, Any]]:
    """Passed and total for each kind of check, for the top of the page."""
    kinds = {
        "Decisions": ("decision",),
        "Stability constants": ("sigma_min", "constant", "condition"),
        "Radii": ("radius_baseline", "radius_learned"),
        "Relative errors": ("relative_error", "hallucinated_part"),
        "Stochastic residual": (
            "true_msr", "envelope", "empirical_msr", "upper_bound", "bound_minus_mean", "coverage",
        ),
    }  # fmt: skip
    groups = []
    for name, quantities in kinds.items():
        checks = [check for check in result.checks if check.quantity in quantities]
        if checks:
            groups.append({"name": name, "passed": sum(check.passed for check in checks), "total": len(checks)})
    return groups


def sweep_rows(result: Sweep, beside: bool) -> dict[str, list[Row]]:
    """The rows of every table of a sweep, by its name.

    Parameters
    ----------
    beside
        Whether each of the paper's numbers follows the computed one.
    """
    # A rule without radii has no regimes; a heading with nothing below it would look like a result.
    regimes = result.regimes() if has_radii(result) else []
    return {
        "summary": _summary(result, beside),
        "regimes": _beside(beside, regimes, paper.REGIMES[: len(regimes)], "regime"),
        "mismatch": _beside(beside, result.mismatches(), paper.MISMATCHES, "mismatch"),
        "rules": _rules(result),
    }


def has_radii(result: Sweep) -> bool:
    """Whether the rule by which regimes are judged has radii at all."""
    return not bool(np.all(np.isnan(result.ratio())))


def ratio_range(result: Sweep) -> Row:
    """Least and largest median ratio of the regimes that the paper's last heatmap shows; only for its grid."""
    i, j = result.grid.perturbation.index(0.05), result.grid.mismatch.index(0.02)
    medians = np.median(result.ratio()[..., i, j], axis=0)
    return {"least": float(medians.min()), "most": float(medians.max()), "printed": paper.RATIO_RANGE}


def _summary(result: Sweep, beside: bool) -> list[Row]:
    """The paper's aggregate outcomes of the first rule."""
    found = result.outcome()
    trials, selected = ("trials", found.trials, paper.TRIALS), ("selected", found.accepted, paper.SELECTED)
    counts = [
        ("trials", *trials[1:], *trials),
        ("selected", *selected[1:], *trials),
        ("safe", found.safe, paper.SAFE, *trials),
        ("safe", found.safe, paper.SAFE, *selected),
        ("unsafe", found.unsafe, paper.UNSAFE, *trials),
        ("unsafe", found.unsafe, paper.UNSAFE, *selected),
        ("false rejections", found.false_rejections, paper.FALSE_REJECTIONS, *trials),
    ]
    if has_radii(result):
        regimes = ("regimes", result.grid.cells, sum(printed.regimes for printed in paper.REGIMES))
        for found_here, printed in zip(result.regimes(), paper.REGIMES, strict=True):
            counts.append((f"{printed.regime} regimes", found_here.regimes, printed.regimes, *regimes))
    rows = []
    for quantity, here, there, of, total, paper_total in counts:
        row: Row = {"quantity": quantity, "of": of, "count": here, "rate": here / total if total else None}
        rows.append({**row, "paper_count": there, "paper_rate": there / paper_total} if beside else row)
    return rows


def _beside(beside: bool, rows: Sequence[Any], printed: Sequence[Any], key: str) -> list[Row]:
    """The fields of each row, all but the first, the `key`, followed by the paper's if these are to stand beside."""
    if not beside:
        return [dict(vars(row)) for row in rows]
    merged = []
    for row, other in zip(rows, printed, strict=True):
        pairs = {name: {name: value, f"paper_{name}": vars(other)[name]} for name, value in vars(row).items()}
        pairs[key].pop(f"paper_{key}")
        merged.append({name: value for pair in pairs.values() for name, value in pair.items()})
    return merged


def _rules(result: Sweep) -> list[Row]:
    """What every rule did, in all and by noise level."""
    tallies: list[tuple[float | str, Tally]] = [("all", found) for found in result.outcomes()]
    tallies += [(noise, found) for noise in result.grid.noise for found in result.outcomes(noise=noise)]
    return [
        {
            "rule": found.rule,
            "noise": noise,
            **found.row(),
            "accept_rate": found.rate("accepted"),
            "unsafe_rate": found.rate("unsafe"),
            "unsafe_of_accepted": found.unsafe / found.accepted if found.accepted else None,
            "false_rejection_rate": found.rate("false_rejections"),
        }
        for noise, found in tallies
    ]


def sentence(result: Sweep, rule: str) -> str:
    """What to know about the acceptances of a rule."""
    found = result.outcome(rule)
    if not found.accepted:
        return f"It accepts nothing; {found.false_rejections:,} learned candidates would have been better."
    unsafe = f"{found.unsafe:,} of its {found.accepted:,} acceptances ({_part(found.unsafe, found.accepted, 1)})"
    if rule == OPERATIONAL:
        return (
            f"The paper's rule compares two radii, and the smaller radius need not have the smaller error: {unsafe} "
            f"are unsafe, and it misses {_part(found.false_rejections, found.safe + found.false_rejections)} of the "
            "better candidates."
        )
    if rule == RESIDUAL:
        return _residual(result)
    if rule == EXACT:
        return (
            "The smallest radius that the data allow, but still a comparison of radii: a smaller worst case does not "
            f"mean a smaller error, and {unsafe} are unsafe."
        )
    if rule == DOMINANCE:
        return _dominance(result, found)
    if rule == GAUSSIAN:
        return _gaussian(result, found)
    return f"{unsafe} are unsafe; it misses {found.false_rejections:,} learned candidates that are better."


def _residual(result: Sweep) -> str:
    text = "All residuals count fully"
    if OPERATIONAL not in result.rules:
        return f"{text}."
    decisions = [result.accepted(rule) for rule in (RESIDUAL, OPERATIONAL)]
    other = int(np.sum(decisions[0] != decisions[1]))
    where = {0: "no trial", 1: "one trial"}.get(other, f"{other:,} trials")
    text += f"; it differs from the operational rule in {where}"
    flawed = np.asarray(result.grid.mismatch) > 0.0
    if flawed.any() and not any(taken[..., flawed].any() for taken in decisions):
        text += ", for without mismatch only the optimality is weighed, and with one both reject everything"
    return f"{text}."


def _dominance(result: Sweep, found: Tally) -> str:
    text = "Accepts only where no truth within the noise level is closer to the baseline"
    count = "none" if not found.unsafe else f"{found.unsafe:,}"
    text += f"; of its {found.accepted:,} acceptances here {count} {'is' if found.unsafe < 2 else 'are'} unsafe"
    if 0.0 not in result.grid.noise:
        return f"{text}."
    quiet = result.outcome(DOMINANCE, noise=0.0)
    noisy, trials = found.accepted - quiet.accepted, found.trials - quiet.trials
    rest = f"; with noise it accepts {noisy:,} of {trials:,} trials ({_part(noisy, trials, 2)})" if trials else ""
    return f"{text}. {_part(quiet.accepted, found.accepted)} of its acceptances are trials without noise{rest}."


def _gaussian(result: Sweep, found: Tally) -> str:
    of_all, of_accepted = _part(found.unsafe, found.trials, 2), _part(found.unsafe, found.accepted, 1)
    text = f"Its level zeta = {ZETA:g} is a share of all trials, not of the accepted ones: unsafe are {of_all} of all "
    text += f"trials and {of_accepted} of the accepted"
    levels = [(result.outcome(GAUSSIAN, noise=noise), noise) for noise in result.grid.noise]
    worst = max(((o, eta) for o, eta in levels if o.accepted), key=lambda pair: pair[0].unsafe / pair[0].accepted)
    if len(levels) > 1 and worst[0].unsafe:
        text += f", and {worst[0].unsafe:,} of {worst[0].accepted:,} at the noise fraction {worst[1]:g}"
    return f"{text}."


def _part(count: int, total: int, places: int = 0) -> str:
    return f"{100.0 * count / total:.{places}f} %" if total else "none"
