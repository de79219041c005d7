"""Why a selection was made, in one sentence in terms of the data, and with which probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..certificate import Certificate
from ..certificate.parts import radius_parts
from ..checks import number

WHAT_IS_RANDOM = "over the draw of the points"
# Radii that differ by less than this share differ by rounding.
SAME = 1e-9
# Of a residual that is larger, and of one that is smaller than the baseline's.
RESIDUAL_WORDS = {
    "pde": ("its state misses the equation, physics residual", "its state fits the equation better, physics residual"),
    "bc": ("its state misses the boundary or initial values", "its state fits the boundary or initial values better"),
    "optimality": ("its solver stopped farther from a minimum", "its solver stopped nearer to a minimum"),
}


def radii_reason(
    base: Certificate, other: Certificate, rule: dict[str, Any], tolerance: float, *, accepted: bool
) -> str:
    """Both radii, which of them is larger, and the term that makes it so, where the rule's terms are known."""
    said, own = _radii_said(base.radius.value, other.radius.value, tolerance, accepted=accepted)
    allowed = f"the baseline's {said}" + (f" + tolerance {tolerance:g}" if tolerance else "")
    compared = f"is within {allowed}" if accepted else f"exceeds {allowed}"
    why = deciding_words(base, other, rule)
    reason = f"the learned radius {own} {compared}" + (f": {why}" if why else "")
    if accepted and base.radius.side == "upper" != other.radius.side:
        reason += "; it is an estimate, the baseline's is a bound"
    return reason


def misfit_words(base: Certificate, other: Certificate) -> str:
    """By how much each candidate misses the measurements, in terms of the noise level where there is one."""
    own, theirs, delta = other.residuals.data.value, base.residuals.data.value, other.noise_level
    if delta > 0.0:
        left, right = _noise_levels(own / delta), _noise_levels(theirs / delta)
        if left == right:
            return f"both miss the measurements by {left}"
        return f"it misses the measurements by {left}, the baseline by {right}"
    return f"it misses the measurements by {own:.3g}, the baseline by {theirs:.3g}, at noise level 0"


def _noise_levels(share: float) -> str:
    said = f"{share:.3g}"
    return "the noise level" if said == "1" else f"{said} noise levels"


def deciding_words(base: Certificate, other: Certificate, rule: dict[str, Any]) -> str:
    """The part of the radii that differs most, in the direction in which they differ."""
    mine, theirs = radius_parts(other, rule), radius_parts(base, rule)
    if "whole" in mine:
        return ""
    gap = other.radius.value - base.radius.value
    if abs(gap) <= SAME * base.radius.value:
        return misfit_words(base, other)
    sign = 1.0 if gap > 0.0 else -1.0
    part = max(mine, key=lambda name: sign * (mine[name] - theirs.get(name, 0.0)))
    if part == "admissibility":
        own, others = f"{mine[part]:.3g}", f"{theirs.get(part, 0.0):.3g}"
        return f"{own} of its radius is structure outside of the admissible class, {others} of the baseline's"
    if part == "trials":
        return "quantiles of the errors of both solvers in trials on samples"
    if part == "consistent":
        return _consistent_words(base, other, rule, sign)
    if part == "other":
        own, others = f"{mine[part]:.3g}", f"{theirs.get(part, 0.0):.3g}"
        return f"the proof adds {own} to its radius, {others} to the baseline's"
    return _constant_words(base, other, sign) or _residual_words(part, base, other)


def _consistent_words(base: Certificate, other: Certificate, rule: dict[str, Any], sign: float) -> str:
    """Of a radius that is the distance to the farthest consistent parameter."""
    words = misfit_words(base, other)
    agrees = sign * (other.residuals.data.value - base.residuals.data.value) > 0.0
    # Only a rule that measures the consistent set says what it is compared with.
    if agrees or "guarantee" not in rule:
        return words
    return f"parameters that explain the data lie {'farther from' if sign > 0.0 else 'nearer to'} it, though {words}"


def _constant_words(base: Certificate, other: Certificate, sign: float) -> str:
    """Of a nonlinear problem, where the constants at the two candidates differ more than their residuals do."""
    first, second = base.stability, other.stability
    levels = [part.total + part.noise_level for part in (base, other)]
    if first is None or second is None or min(first.constant.value, *levels) <= 0.0:
        return ""
    by_constant = np.log(second.constant.value / first.constant.value)
    by_level = second.exponent * np.log(levels[1] / levels[0])
    if not sign * by_constant > max(sign * by_level, SAME):
        return ""
    own, theirs = f"{second.constant.value:.3g}", f"{first.constant.value:.3g}"
    return f"the stability constant at it is {own}, at the baseline {theirs}; {misfit_words(base, other)}"


def _residual_words(part: str, base: Certificate, other: Certificate) -> str:
    if part in ("data", "noise"):
        return misfit_words(base, other)
    own, theirs = (getattr(c.residuals, part).value for c in (other, base))
    return f"{RESIDUAL_WORDS[part][own < theirs]}: {own:.3g} against {theirs:.3g} of the baseline"


def _radii_said(base: float, other: float, margin: float, *, accepted: bool) -> tuple[str, str]:
    """Both radii with four digits, or as many more as it takes to see the decision in them."""
    for digits in range(4, 18):
        said, own = f"{base:.{digits}g}", f"{other:.{digits}g}"
        if not np.isfinite(base) or (float(own) <= float(said) + margin) == accepted:
            break
    return said, own


@dataclass(frozen=True)
class Confidence:
    """With a rule that samples, a certificate fails with a small probability; two of them with the sum at most.

    Random are the points, which are drawn after both candidates are fixed. Data and noise are not: they enter by the
    noise level, which is taken for sure.

    Attributes
    ----------
    zeta_base, zeta_learn
        Of the two certificates; `zeta_learn` is None where the learned candidate has none.
    """

    zeta_base: float
    zeta_learn: float | None

    @property
    def zeta(self) -> float:
        """``zeta_base + zeta_learn``: the probability at most that one of the certificates fails."""
        return self.zeta_base + (0.0 if self.zeta_learn is None else self.zeta_learn)

    def words(self, *, accepted: bool) -> str:
        """What holds with which probability (stochastic-no-harm-selection): a rejection needs the baseline's only."""
        if accepted:
            return f"both radii hold with probability at least {max(1.0 - self.zeta, 0.0):.6g} {WHAT_IS_RANDOM}"
        return f"the baseline's radius holds with probability at least {1.0 - self.zeta_base:.6g} {WHAT_IS_RANDOM}"

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON."""
        return {"zeta_base": self.zeta_base, "zeta_learn": self.zeta_learn, "zeta": self.zeta}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Confidence:
        """The inverse of `to_dict`."""
        learned = record["zeta_learn"]
        base = number(record["zeta_base"], "zeta_base", above=0.0)
        return cls(base, None if learned is None else number(learned, "zeta_learn", above=0.0))
