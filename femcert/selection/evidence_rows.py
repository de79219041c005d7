"""The evidence of a selection as a table: what decides, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..bound import Bound
from ..certificate import Certificate

if TYPE_CHECKING:
    from .selection import Selection

HEAD = ("", "baseline", "learned", "measured as")


def evidence_rows(selection: Selection) -> list[tuple[str, str, str, str]]:
    """Rows (quantity, baseline, learned, how it was measured); of the residuals those that enter the rule.

    The rule's record names them; one that was saved before it did shows all. Where the two candidates were not measured
    alike, the last cell says how each was.
    """
    left, right = (_numbers(part, selection.rule) for part in (selection.baseline, selection.learned))
    missing = ("-", "")
    rows = []
    for name in left or right:
        (first, source), (second, other) = left.get(name, missing), right.get(name, missing)
        differ = source and other and source != other
        rows.append((name, first, second, f"baseline: {source}, learned: {other}" if differ else source or other))
    if selection.comparison is not None:
        rows.append(("margin", "-", f"{selection.comparison.margin:.4g}", ""))
    return rows


def _numbers(certificate: Certificate | None, rule: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """By quantity: its value with its side, and how it was measured."""
    if certificate is None:
        return {}
    radius, scope = certificate.radius, certificate.scope
    constant = None if certificate.stability is None else certificate.stability.constant
    sided = radius.side if scope == radius.side else f"{radius.side}, {scope}"
    chance = "" if radius.probability == 1.0 else f", {100.0 * radius.probability:.4g} %"
    found = {"radius": (f"{radius.value:.4g} ({sided}{chance})", radius.source)}
    if certificate.norm is not None:
        found["relative radius"] = (certificate.scale, f"part of the {certificate.norm} of the answer")
    residuals = certificate.residuals.items()
    decides = rule.get("decides", [name for name, _ in residuals])
    found |= {name: (_with_side(bound), bound.source) for name, bound in residuals if name in decides}
    found["noise level"] = (f"{certificate.noise_level:.4g}", "")
    found["stability constant"] = ("-", "") if constant is None else (_with_side(constant), constant.source)
    return found


def _with_side(bound: Bound) -> str:
    chance = "" if bound.probability == 1.0 else f", probability {bound.probability:g}"
    return f"{bound.value:.4g} ({bound.side}{chance})"
