"""What came of the decisions, counted as the paper counts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .result import Sweep

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Outcome:
    """Decisions of one rule in hindsight.

    Attributes
    ----------
    trials, accepted
        How many, and in how many the learned candidate was taken.
    safe, unsafe
        Of the accepted: no farther from the truth than the baseline, and farther.
    false_rejections
        Rejected although closer to the truth than the baseline.
    undecided
        Neither accepted nor rejected: the rule could not be applied, or the baseline has no certificate.
    """

    rule: str
    trials: int
    accepted: int
    safe: int
    unsafe: int
    false_rejections: int
    undecided: int = 0

    def rate(self, name: str) -> float:
        """A count as a part of all trials."""
        return float(getattr(self, name)) / self.trials

    def row(self) -> dict[str, Any]:
        """Plain mapping."""
        return asdict(self)


def outcome(rule: str, accepted: Flags, undecided: Flags, better: Flags, worse: Flags) -> Outcome:
    """Count the decisions."""
    unsafe, taken, open_ = (int(np.sum(flags)) for flags in (accepted & worse, accepted, undecided))
    missed = int(np.sum(~accepted & ~undecided & better))
    return Outcome(rule, accepted.size, taken, taken - unsafe, unsafe, missed, open_)


@dataclass(frozen=True)
class MismatchRow:
    """A row of the paper's table by mismatch amplitude; medians are over trials, rates parts of them."""

    mismatch: float
    accept_rate: float
    median_ratio: float
    median_error_ratio: float
    unsafe_rate: float
    false_rejection_rate: float


def mismatches(result: Sweep, rule: str | None = None) -> list[MismatchRow]:
    """One row for each amplitude mu."""
    rows = []
    for i, mu in enumerate(result.grid.mismatch):
        found = result.outcome(rule, mismatch=mu)
        rows.append(
            MismatchRow(
                mu,
                found.rate("accepted"),
                float(np.median(result.ratio(rule)[..., i])),
                float(np.median(result.error_ratio[..., i])),
                found.rate("unsafe"),
                found.rate("false_rejections"),
            )
        )
    return rows


@dataclass(frozen=True)
class RegimeRow:
    """A row of the paper's table of regimes.

    The ratios are means over the regimes of each regime's median over its trials.
    """

    regime: str
    regimes: int
    ratio: float
    error_ratio: float
    accept_rate: float
    better_rate: float
    unsafe_rate: float
    false_rejection_rate: float


def sufficient(result: Sweep, rule: str | None = None) -> Flags:
    """Regimes whose median certificate ratio is at most 1, ``(sensors, noise, perturbation, mismatch)``."""
    return np.asarray(np.median(result.ratio(rule), axis=0) <= 1.0)


def regimes(result: Sweep, rule: str | None = None) -> list[RegimeRow]:
    """Certificate-sufficient and fallback-required regimes."""
    enough = sufficient(result, rule)
    ratio, error_ratio = np.median(result.ratio(rule), axis=0), np.median(result.error_ratio, axis=0)
    accepted, better, worse = result.accepted(rule), result.better, result.worse
    rejected = ~accepted & ~result.undecided(rule)
    rows = []
    for name, where in (("certificate-sufficient", enough), ("fallback-required", ~enough)):
        taken, closer = accepted[:, where], better[:, where]
        rows.append(
            RegimeRow(
                name,
                int(where.sum()),
                _mean(ratio[where]),
                _mean(error_ratio[where]),
                _mean(taken),
                _mean(closer),
                _mean(taken & worse[:, where]),
                _mean(rejected[:, where] & closer),
            )
        )
    return rows


def text(result: Sweep) -> str:
    """Accepted, safe, unsafe and falsely rejected trials of every rule, in all and by noise level."""
    width = max(len(rule) for rule in result.rules)
    head = f"{'accepted':>8}  {'safe':>8}  {'unsafe':>8}  {'false rej.':>10}  {'undecided':>9}  trials"
    lines = [f"{'noise':>8}  {'rule':<{width}}  {head}"]
    groups = [("all", result.outcomes())]
    groups += [(f"{noise:g}", result.outcomes(noise=noise)) for noise in result.grid.noise]
    for label, outcomes in groups:
        for o in outcomes:
            counts = f"{o.accepted:>8}  {o.safe:>8}  {o.unsafe:>8}  {o.false_rejections:>10}  {o.undecided:>9}"
            lines.append(f"{label:>8}  {o.rule:<{width}}  {counts}  {o.trials}")
    return "\n".join(lines)


def _mean(values: NDArray[Any]) -> float:
    return float(np.mean(values)) if values.size else float("nan")
