"""One page about a selection, for a person who decides: its sections, with the fields as small pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..checks import Array, number
from ..problem.base import Problem, check_problem
from ..selection import Selection
from ..stability import Stability
from . import style
from .fields import LINE_MARGINS, elements_picture, field_picture, legend_above, lines_picture, value_limits
from .html import render
from .pictures import INK, Picture, axes_within, picture
from .scene import Scene, known_stability
from .selection_words import (
    PART_WORDS,
    claim_words,
    decision_words,
    experiment_rows,
    percent,
    provenance,
    radius_bars,
    rule_words,
    tiles,
)

# By their names in the page's style; the same hues as in `plot_selection`.
PART_COLOURS = {
    "data": "blue", "pde": "orange", "bc": "pink", "noise": "sky", "optimality": "green", "consistent": "blue",
    "trials": "blue", "admissibility": "red", "other": "grey", "whole": "blue",
}  # fmt: skip
NO_MESH = "The problem has no mesh to draw on: it is known by matrices only."
NO_FIELD = "The parameter is no field in the domain: write_fields writes it on the nodes where it lives."
NO_PROBLEM = "A selection from a file holds no mesh: write_report(..., problem=...) draws its fields."
LOOKS: dict[str, dict[str, Any]] = {
    "baseline": {"color": style.BLUE, "linewidth": 2.0},
    "learned": {"color": style.GREEN, "linewidth": 2.0},
    # A broad stroke under the one that was taken.
    "selected": {"color": style.RED, "linewidth": 7.0, "alpha": 0.35, "zorder": 1.5, "solid_capstyle": "butt"},
}


@dataclass(frozen=True)
class Labels:
    """What a page is about, and what its parameter is called.

    Attributes
    ----------
    title, quantity, unit
        Any of them may be empty.
    """

    title: str = ""
    quantity: str = ""
    unit: str = ""

    @property
    def heading(self) -> str:
        """Of the maps of the parameter."""
        name = f"The {self.quantity}" if self.quantity else "The parameter"
        return f"{name} in {self.unit}" if self.unit else name


def selection_page(
    selection: Selection,
    *,
    problem: Problem | None = None,
    timings: Mapping[str, float] | None = None,
    origin: Mapping[str, str] | None = None,
    labels: Labels | None = None,
) -> str:
    """A selection as HTML; `problem` is where the fields of a loaded selection live, `timings` are in seconds."""
    if problem is not None:
        check_problem(problem)
    times, scene = _timing_rows(timings or {}), Scene.of(selection, problem)
    decision, why = decision_words(selection)
    labels = labels or Labels()
    return render(
        "selection.html",
        labels=labels,
        selection=selection,
        decision=decision,
        why=why,
        claim=claim_words(selection),
        tiles=tiles(selection),
        bars=radius_bars(selection),
        names={part: words[0] for part, words in PART_WORDS.items()},
        colours=PART_COLOURS,
        rule=rule_words(selection.rule),
        regions=_region_rows(selection),
        confidence=_confidence_rows(selection),
        experiments=[] if scene is None else experiment_rows(scene),
        sections=_sections(selection, scene, labels),
        provenance=[*(origin or {}).items(), *provenance(selection, scene)],
        timings=times,
    )


def _sections(selection: Selection, scene: Scene | None, labels: Labels) -> list[tuple[str, str, Section]]:
    """Headings, what they are about, and their pictures."""
    sight = ("What the sensors see", "The direction that they see least is where the data say least about the truth.")
    if scene is None:
        return [("The reconstructions", "", Section([], NO_PROBLEM)), (*sight, sight_section(selection, None))]
    if scene.problem.mesh is None:
        found = [("The reconstructions", "", Section([], NO_MESH if scene.problem.basis is None else NO_FIELD))]
        if scene.problem.basis is not None:
            found.append(("The state", _state_words(selection), state_section(selection, scene)))
        return found
    chosen = "the learned candidate" if selection.accepted else "the baseline"
    found = [
        (labels.heading, f"Selected is {chosen}. Candidates share one scale.", parameter_section(selection, scene)),
        ("The state", _state_words(selection), state_section(selection, scene)),
        ("Where the physics residual is", "The share of each element.", indicator_section(scene)),
        (*sight, sight_section(selection, scene)),
    ]
    if selection.comparison is not None and selection.comparison.truth is not None:
        words = "Of all truths that explain the data, this is the one at which the learned candidate compares worst."
        found.insert(1, ("The truth that decides", words, truth_section(selection, scene)))
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


def _region_rows(selection: Selection) -> list[tuple[str, str, list[tuple[float, bool]]]]:
    """(region, what the data say, and for each candidate its value and whether that is possible)."""
    claims = selection.regions
    if claims is None:
        return []
    claimed = list(claims.values.values())
    return [
        (row[0], row[1], [(values[i], claims.table[i].contains(values[i])) for values in claimed])
        for i, row in enumerate(claims.rows())
    ]


def _timing_rows(timings: Mapping[str, float]) -> list[tuple[str, float, float]]:
    """(step, seconds, share in percent)."""
    seconds = {str(step): number(value, f"timings[{step!r}]", least=0.0) for step, value in timings.items()}
    total = sum(seconds.values()) or 1.0
    return [(step, value, 100.0 * value / total) for step, value in seconds.items()]


@dataclass(frozen=True)
class Section:
    """Pictures under a heading, and a line for what is missing among them."""

    pictures: list[Picture]
    missing: str = ""


def parameter_section(selection: Selection, scene: Scene) -> Section:
    """The parameter of baseline, learned and selected on one scale, and the difference of the first two."""
    fields = {role: c.parameter for role, c in scene.candidates.items()}
    chosen = {**fields, "selected": selection.parameter}
    return _compared("parameter", scene.problem.parameters.basis, chosen, _absent(selection))


def state_section(selection: Selection, scene: Scene) -> Section:
    """The same for the state, of heat at the last time."""
    if not scene.problem.states or selection.state is None:
        return Section([], "This problem has no state: the sensors see the parameter itself.")
    fields = {role: c.state for role, c in scene.candidates.items()}
    states = {role: _last(u) for role, u in {**fields, "selected": selection.state}.items() if u is not None}
    return _compared("state", scene.problem.basis, states, _absent(selection))


def _absent(selection: Selection) -> str:
    """Why there is no learned candidate, where there is none."""
    if selection.baseline is None:
        return "The learned candidate was not looked at, because the baseline has no certificate."
    return "There is no learned candidate to draw."


def _last(state: Array) -> Array:
    return state if state.ndim == 1 else state[:, -1]


def _compared(what: str, basis: Any, fields: dict[str, Array], absent: str) -> Section:
    missing = "" if "learned" in fields else absent
    if "baseline" not in fields:
        missing = "Only the selected reconstruction is in the file."
    difference = fields["learned"] - fields["baseline"] if "learned" in fields else None
    if basis.mesh.dim() == 1:
        lines = [(role, values, LOOKS[role]) for role, values in fields.items()]
        pictures = [lines_picture(f"{what}-lines", "Candidates, and the selected one", basis, lines)]
        if difference is not None:
            line = [("learned minus baseline", difference, {"color": INK, "linewidth": 1.6})]
            pictures.append(lines_picture(f"{what}-difference", "Difference", basis, line))
        return Section(pictures, missing)
    pictures = list(_maps(what, basis, fields).values())
    if difference is not None:
        note = "learned minus baseline, on its own scale"
        pictures.append(field_picture(f"{what}-difference", "Difference", basis, difference, signed=True, caption=note))
    return Section(pictures, missing)


def _maps(what: str, basis: Any, fields: dict[str, Array]) -> dict[str, Picture]:
    """A map of each field on one scale; what was selected is one of the others, and drawn once."""
    limits = value_limits(basis, fields.values())
    made: dict[str, Picture] = {}
    for role, values in fields.items():
        name, title = f"{what}-{role}", role.capitalize()
        same = next((other for other in made if np.array_equal(fields[other], values)), None)
        if same is None:
            made[role] = field_picture(name, title, basis, values, limits=limits)
        else:
            made[same] = replace(made[same], title=f"{made[same].title}, {role}")
    return made


def indicator_section(scene: Scene) -> Section:
    """The share of each element in the physics residual, where the problem knows its strong form."""
    pictures, mesh = [], scene.problem.mesh
    norms, missing = scene.physics()
    if missing:
        return Section([], missing)
    most = max((float(n.indicators.max()) for n in norms.values()), default=0.0)
    for role, found in norms.items():
        bound = found.best
        caption = f"together {style.short(bound.value)} ({bound.side}, {bound.source})"
        title = role.capitalize()
        pictures.append(elements_picture(f"indicators-{role}", title, mesh, found.indicators, most, caption=caption))
    return Section(pictures, "" if norms else "The file holds no candidates to judge.")


def sight_section(selection: Selection, scene: Scene | None) -> Section:
    """Singular values with the noise level, and the direction that the sensors see least."""
    found, missing = known_stability(selection, scene)
    if found is None:
        return Section([], missing or "The rule needs no stability constant, and there is no problem to compute it.")
    levels = [c.noise_level for c in (selection.baseline, selection.learned) if c is not None]
    pictures = [singular_values_picture(found, levels[0] if levels else None)]
    if found.weakest is not None and scene is not None:
        pictures.append(_weakest_picture(found, scene))
    return Section(pictures, missing)


def _weakest_picture(found: Stability, scene: Scene) -> Picture:
    basis, field = scene.problem.parameters.basis, found.weakest
    assert field is not None
    change = f"changes the data by {style.short(found.sigma_min)} only"
    caption = f"norm 1, {change if found.sigma_min > 0.0 else 'does not change the data'}"
    points = getattr(scene.problem.sensors, "points", None)
    if basis.mesh.dim() == 1:
        line = [("weakest direction", field, {"color": style.RED, "linewidth": 2.0})]
        return lines_picture("weakest", "Weakest direction", basis, line, caption=caption, marks=points)
    caption += "" if points is None else "; dots: sensors"
    return field_picture("weakest", "Weakest direction", basis, field, signed=True, caption=caption, marks=points)


def singular_values_picture(found: Stability, noise_level: float | None) -> Picture:
    """One mark for each direction on a logarithmic scale, and the noise level as a line."""
    sigma = found.singular_values
    place = np.arange(1, len(sigma) + 1)
    level = noise_level if noise_level else None
    hidden = sigma <= (level or 0.0)

    def draw(figure: Any) -> None:
        axes = axes_within(figure, *LINE_MARGINS)
        style.tidy(axes)
        for chosen, colour, name in ((~hidden, style.BLUE, "seen"), (hidden, style.RED, "below the noise")):
            if chosen.any():
                axes.scatter(place[chosen], sigma[chosen], s=16.0, color=colour, label=f"{name} ({chosen.sum()})")
        if level is not None:
            axes.axhline(level, color=INK, linewidth=1.1, linestyle=(0, (5, 2)), label="noise level")
        axes.set_yscale("log")
        style.plain_numbers(axes)
        axes.set_xlim(0.3, len(sigma) + 0.7)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("direction")
        legend_above(axes, left=-0.2)

    ending = f"condition {style.short(found.condition)}" if np.isfinite(found.condition) else "some are not seen at all"
    caption = f"what a unit of each direction does to the data; {ending}"
    if found.method == "sparse":
        caption = "the largest and the smallest only, by the sparse method"
    return picture("singular-values", "Singular values", draw, caption=caption)


def truth_section(selection: Selection, scene: Scene) -> Section:
    """The consistent truth that the rule `Dominance` names, with its distances from the two candidates."""
    comparison = selection.comparison
    assert comparison is not None
    assert comparison.truth is not None
    worst, problem = comparison.truth, scene.problem
    norm: Callable[[Array], float] = problem.parameters.norm
    far = {role: norm(c.parameter - worst) for role, c in scene.candidates.items()}
    caption = ", ".join(f"{style.short(value)} from the {role}" for role, value in far.items())
    basis = problem.parameters.basis
    if basis.mesh.dim() == 1:
        lines = [(role, c.parameter, LOOKS[role]) for role, c in scene.candidates.items()]
        truth = ("truth that decides", worst, {**style.TRUTH, "color": INK})
        return Section([lines_picture("truth", "The truth that decides", basis, [*lines, truth], caption=caption)])
    fields = [worst, *(c.parameter for c in scene.candidates.values())]
    limits = value_limits(basis, fields)
    title = "The truth that decides"
    return Section([field_picture("truth", title, basis, worst, limits=limits, caption=caption)])
