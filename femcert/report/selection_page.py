"""One page about a selection, for a person who decides."""

from __future__ import annotations

from collections.abc import Mapping

from ..checks import number
from ..errors import InputError
from ..problem.base import Problem
from ..selection import Selection
from .html import render
from .radius_bars import PART_WORDS, radius_bars
from .selection_maps import (
    Section,
    Shown,
    indicator_section,
    parameter_section,
    sight_section,
    state_section,
    truth_section,
)
from .selection_words import claim_words, decision_words, percent, provenance, rule_words, tiles

# By their names in the page's style; the same hues as in `plot_selection`.
PART_COLOURS = {
    "data": "blue", "pde": "orange", "bc": "pink", "noise": "sky", "optimality": "green", "consistent": "blue",
    "admissibility": "red", "other": "grey",
}  # fmt: skip
NO_PROBLEM = "A selection from a file holds no mesh: write_report(..., problem=...) draws its fields."


def selection_page(
    selection: Selection,
    *,
    problem: Problem | None = None,
    timings: Mapping[str, float] | None = None,
    origin: Mapping[str, str] | None = None,
) -> str:
    """A selection as HTML; `problem` is where the fields of a loaded selection live, `timings` are in seconds."""
    if problem is not None and not isinstance(problem, Problem):
        raise InputError(f"problem is a {type(problem).__name__}; expected one such as EllipticSource")
    times, shown = _timing_rows(timings or {}), Shown.of(selection, problem)
    decision, why = decision_words(selection)
    return render(
        "selection.html",
        selection=selection,
        decision=decision,
        why=why,
        claim=claim_words(selection),
        tiles=tiles(selection),
        bars=radius_bars(selection),
        names={part: words[0] for part, words in PART_WORDS.items()},
        colours=PART_COLOURS,
        rule=rule_words(selection.rule),
        confidence=_confidence_rows(selection),
        sections=_sections(selection, shown),
        provenance=[*(origin or {}).items(), *provenance(selection, shown)],
        timings=times,
    )


def _sections(selection: Selection, shown: Shown | None) -> list[tuple[str, str, Section]]:
    """Headings, what they are about, and their pictures."""
    sight = ("What the sensors see", "The direction that they see least is where the data say least about the truth.")
    if shown is None:
        return [("The reconstructions", "", Section([], NO_PROBLEM)), (*sight, sight_section(selection, None))]
    chosen = "the learned candidate" if selection.accepted else "the baseline"
    found = [
        ("The parameter", f"Selected is {chosen}. Candidates share one scale.", parameter_section(selection, shown)),
        ("The state", _state_words(selection), state_section(selection, shown)),
        ("Where the physics residual is", "The share of each element.", indicator_section(shown)),
        (*sight, sight_section(selection, shown)),
    ]
    if selection.comparison is not None:
        words = "Of all truths that explain the data, this one speaks most against the learned candidate."
        found.insert(1, ("The truth that decides", words, truth_section(selection, shown)))
    return found


def _state_words(selection: Selection) -> str:
    if selection.state is not None and selection.state.ndim == 2:
        return "At the last time of each candidate."
    return ""


def _confidence_rows(selection: Selection) -> list[tuple[str, str]]:
    """What holds with which probability, where a rule samples."""
    confidence = selection.confidence
    if confidence is None:
        return []
    rows = [("the baseline's radius holds", percent(1.0 - confidence.zeta_base))]
    if confidence.zeta_learn is not None:
        rows.append(("the learned candidate's radius holds", percent(1.0 - confidence.zeta_learn)))
        rows.append(("both hold", percent(1.0 - confidence.zeta)))
    return rows


def _timing_rows(timings: Mapping[str, float]) -> list[tuple[str, float, float]]:
    """(step, seconds, share in percent)."""
    seconds = {str(step): number(value, f"timings[{step!r}]", least=0.0) for step, value in timings.items()}
    total = sum(seconds.values()) or 1.0
    return [(step, value, 100.0 * value / total) for step, value in seconds.items()]
