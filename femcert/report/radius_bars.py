"""Both radii as bars, part by part, as a page draws them without a picture."""

from __future__ import annotations

from dataclasses import dataclass

from ..certificate.parts import PARTS, radius_parts
from ..selection import Selection

# Part -> (what to call it, what it is).
PART_WORDS = {
    "data": ("Data", "what the candidate does not explain of the data"),
    "pde": ("Physics", "how far it is from solving the equation"),
    "bc": ("Boundary", "how far it is from the boundary values"),
    "noise": ("Noise", "what the data themselves are off by, at most"),
    "optimality": ("Optimization", "how far its solver stopped from a minimum"),
    "consistent": ("Consistent set", "how far a parameter that explains the data can be"),
    "admissibility": ("Outside the class", "the part of the candidate that the admissible class does not have"),
    "other": ("Remainder", "what the proof adds"),
}
# Narrower than this share of the longest bar, a part is not seen.
LEAST_WIDTH = 2e-3
# Smaller than this share, it is rounding.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Bar:
    """One radius: whose, its value and what that is, and (part, value, width in percent) of what is wide enough."""

    name: str
    radius: float
    words: str
    proven: bool
    parts: list[tuple[str, float, float]]


@dataclass(frozen=True)
class Bars:
    """Both radii on one scale.

    Attributes
    ----------
    bars
        The baseline's first.
    limit
        Where the learned bar must end to be accepted, in percent; None where radii do not decide.
    rows
        Each part with a value beyond rounding anywhere: (key, name, meaning, baseline, learned), None without a
        certificate.
    """

    bars: list[Bar]
    limit: float | None
    rows: list[tuple[str, str, str, float | None, float | None]]

    @property
    def seen(self) -> set[str]:
        """The parts that are wide enough to see in a bar."""
        return {part for bar in self.bars for part, _, _ in bar.parts}


def radius_bars(selection: Selection) -> Bars | None:
    """The bars of a selection; None without a certificate."""
    named = (("baseline", selection.baseline), ("learned", selection.learned))
    certificates = {name: c for name, c in named if c is not None}
    if not certificates:
        return None
    parts = {name: radius_parts(c, selection.rule) for name, c in certificates.items()}
    decides = "baseline" in certificates and selection.comparison is None
    end = certificates["baseline"].radius.value + selection.tolerance if decides else 0.0
    longest = max([end, *(c.radius.value for c in certificates.values())]) or 1.0
    bars = []
    for name, certificate in certificates.items():
        wide = [(part, value, 100.0 * value / longest) for part, value in _ordered(parts[name])]
        words = f"{certificate.radius.side}, {certificate.scope}"
        words = "estimate" if certificate.scope == "estimate" else words
        words += "" if certificate.size is None else f"; {certificate.scale_of_answer}"
        seen = [entry for entry in wide if entry[2] >= 100.0 * LEAST_WIDTH]
        bars.append(Bar(name, certificate.radius.value, words, certificate.radius.side == "upper", seen))
    used = [part for part in PARTS if any(found.get(part, 0.0) > ROUNDING * longest for found in parts.values())]
    values = [[parts[n].get(part, 0.0) if n in parts else None for n, _ in named] for part in used]
    rows = [(part, *PART_WORDS[part], left, right) for part, (left, right) in zip(used, values, strict=True)]
    return Bars(bars, 100.0 * end / longest if decides else None, rows)


def _ordered(parts: dict[str, float]) -> list[tuple[str, float]]:
    return [(part, parts[part]) for part in PARTS if parts.get(part, 0.0) > 0.0]
