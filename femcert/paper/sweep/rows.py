"""The tables of a sweep as rows, the paper's numbers beside them, and a sentence about each rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Sweep
from . import printed as paper
from .checks import DOMINANCE, GAUSSIAN, OPERATIONAL, ZETA
from .table import Outcome

Row = dict[str, Any]

SUMMARY = ("quantity", "of", "count", "rate")
SUMMARY_PAPER = (*SUMMARY, "paper_count", "paper_rate")
MISMATCH = (
    "mismatch", "accept_rate", "median_ratio", "median_error_ratio", "unsafe_rate", "false_rejection_rate",
)  # fmt: skip
REGIMES = (
    "regime", "regimes", "ratio", "error_ratio", "accept_rate", "better_rate", "unsafe_rate", "false_rejection_rate",
)  # fmt: skip
RULES = (
    "rule", "noise", "trials", "accepted", "safe", "unsafe", "false_rejections", "undecided", "accept_rate",
    "unsafe_rate", "unsafe_of_accepted", "false_rejection_rate",
)  # fmt: skip


def has_radii(result: Sweep) -> bool:
    """Whether the rule by which regimes are judged has radii at all."""
    return not bool(np.all(np.isnan(result.ratio())))


def summary(result: Sweep, beside: bool) -> list[Row]:
    """The paper's aggregate outcomes of the first rule; with the paper's own numbers if they are to stand beside."""
    found = result.outcome()
    rows = [
        _row("trials", found.trials, found.trials, "trials", paper.TRIALS, paper.TRIALS),
        _row("selected", found.accepted, found.trials, "trials", paper.SELECTED, paper.TRIALS),
        _row("safe", found.safe, found.trials, "trials", paper.SAFE, paper.TRIALS),
        _row("safe", found.safe, found.accepted, "selected", paper.SAFE, paper.SELECTED),
        _row("unsafe", found.unsafe, found.trials, "trials", paper.UNSAFE, paper.TRIALS),
        _row("unsafe", found.unsafe, found.accepted, "selected", paper.UNSAFE, paper.SELECTED),
        _row("false rejections", found.false_rejections, found.trials, "trials", paper.FALSE_REJECTIONS, paper.TRIALS),
    ]
    if has_radii(result):
        cells = result.grid.cells
        for row, printed in zip(result.regimes(), paper.REGIMES, strict=True):
            total = sum(other.regimes for other in paper.REGIMES)
            rows.append(_row(f"{row.regime} regimes", row.regimes, cells, "regimes", printed.regimes, total))
    return rows if beside else [_without_paper(row) for row in rows]


def mismatch_rows(result: Sweep, beside: bool) -> list[Row]:
    """The paper's table by mismatch amplitude."""
    return _beside(beside, result.mismatches(), paper.MISMATCHES, "mismatch")


def regime_rows(result: Sweep, beside: bool) -> list[Row]:
    """The paper's table of regimes; empty for a rule without radii."""
    return _beside(beside, result.regimes(), paper.REGIMES, "regime") if has_radii(result) else []


def rule_rows(result: Sweep) -> list[Row]:
    """What every rule did, in all (noise None) and by noise level."""
    levels: list[float | None] = [None, *result.grid.noise]
    return [
        _outcome(found, noise)
        for noise in levels
        for found in (result.outcomes() if noise is None else result.outcomes(noise=noise))
    ]


def ratio_range(result: Sweep) -> Row:
    """Least and largest median ratio of the regimes that the paper's last heatmap shows; only for its grid."""
    i, j = result.grid.perturbation.index(0.05), result.grid.mismatch.index(0.02)
    medians = np.median(result.ratio()[..., i, j], axis=0)
    return {"least": float(medians.min()), "most": float(medians.max()), "printed": paper.RATIO_RANGE}


def with_paper(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Each column but the first followed by the paper's."""
    return (columns[0], *(name for column in columns[1:] for name in (column, f"paper_{column}")))


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
    if rule == "residual":
        return _residual(result)
    if rule == "exact":
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
    decisions = [result.accepted(rule) for rule in ("residual", OPERATIONAL)]
    other = int(np.sum(decisions[0] != decisions[1]))
    where = {0: "no trial", 1: "one trial"}.get(other, f"{other:,} trials")
    text += f"; it differs from the operational rule in {where}"
    flawed = np.asarray(result.grid.mismatch) > 0.0
    if flawed.any() and not any(taken[..., flawed].any() for taken in decisions):
        text += ", for without mismatch only the optimality is weighed, and with one both reject everything"
    return f"{text}."


def _dominance(result: Sweep, found: Outcome) -> str:
    text = "Accepts only where no truth within the noise level is closer to the baseline"
    count = "none" if not found.unsafe else f"{found.unsafe:,}"
    text += f"; of its {found.accepted:,} acceptances here {count} {'is' if found.unsafe < 2 else 'are'} unsafe"
    if 0.0 not in result.grid.noise:
        return f"{text}."
    quiet = result.outcome(DOMINANCE, noise=0.0)
    noisy, trials = found.accepted - quiet.accepted, found.trials - quiet.trials
    rest = f"; with noise it accepts {noisy:,} of {trials:,} trials ({_part(noisy, trials, 2)})" if trials else ""
    return f"{text}. {_part(quiet.accepted, found.accepted)} of its acceptances are trials without noise{rest}."


def _gaussian(result: Sweep, found: Outcome) -> str:
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


def _row(quantity: str, count: int, total: int, of: str, printed: int, printed_total: int) -> Row:
    return {
        "quantity": quantity,
        "count": count,
        "rate": count / total if total else None,
        "of": of,
        "paper_count": printed,
        "paper_rate": printed / printed_total,
    }


def _without_paper(row: Row) -> Row:
    return {name: value for name, value in row.items() if not name.startswith("paper_")}


def _beside(beside: bool, rows: list[Any], printed: tuple[Any, ...], key: str) -> list[Row]:
    if not beside:
        return [dict(vars(row)) for row in rows]
    return [
        {**vars(row), **{f"paper_{name}": value for name, value in vars(other).items() if name != key}}
        for row, other in zip(rows, printed, strict=True)
    ]


def _outcome(found: Outcome, noise: float | None) -> Row:
    return {
        "noise": "all" if noise is None else noise,
        **found.row(),
        "accept_rate": found.rate("accepted"),
        "unsafe_rate": found.rate("unsafe"),
        "unsafe_of_accepted": found.unsafe / found.accepted if found.accepted else None,
        "false_rejection_rate": found.rate("false_rejections"),
    }
