"""The fields of a selection as small pictures: reconstructions, indicators, what the sensors see."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import Array
from ..errors import FemcertError
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.data import Data
from ..residual.dual import dual_norm
from ..selection import Selection
from ..stability import Stability, stability
from . import style
from .field_pictures import LINE_MARGINS, elements_picture, field_picture, legend_above, lines_picture
from .svg import INK, Picture, again, axes_within, picture

# Above this many elements the equilibrated bound takes longer than a page is worth.
MOST_EQUILIBRATED = 20_000
LOOKS: dict[str, dict[str, Any]] = {
    "baseline": {"color": style.BLUE, "linewidth": 2.0},
    "learned": {"color": style.GREEN, "linewidth": 2.0},
    # A broad stroke under the one that was taken.
    "selected": {"color": style.RED, "linewidth": 7.0, "alpha": 0.35, "zorder": 1.5, "solid_capstyle": "butt"},
}


@dataclass(frozen=True)
class Section:
    """Pictures under a heading, and a line for what is missing among them."""

    pictures: list[Picture]
    missing: str = ""


@dataclass(frozen=True)
class Shown:
    """What there is to draw of a selection.

    Attributes
    ----------
    problem
        Where the fields live.
    data
        None for a selection from a file.
    candidates
        Those that are known, by role: ``"baseline"``, ``"learned"``.
    """

    problem: Problem
    data: Data | None
    candidates: dict[str, Candidate]

    @classmethod
    def of(cls, selection: Selection, problem: Problem | None) -> Shown | None:
        """From what the selection remembers, else from a problem alone; None without both."""
        case = selection.case
        if case is not None:
            named = {"baseline": case.baseline, "learned": case.learned}
            return cls(case.problem, case.data, {role: c for role, c in named.items() if c is not None})
        if problem is None:
            return None
        problem.check_parameter(selection.parameter)
        return cls(problem, None, {})


def parameter_section(selection: Selection, shown: Shown) -> Section:
    """The parameter of baseline, learned and selected on one scale, and the difference of the first two."""
    fields = {role: c.parameter for role, c in shown.candidates.items()}
    chosen = {**fields, "selected": selection.parameter}
    return _compared("parameter", shown.problem.parameters.basis, chosen, _absent(selection))


def state_section(selection: Selection, shown: Shown) -> Section:
    """The same for the state, of heat at the last time."""
    if not shown.problem.has_state or selection.state is None:
        return Section([], "This problem has no state: the sensors see the parameter itself.")
    fields = {role: c.state for role, c in shown.candidates.items()}
    states = {role: _last(u) for role, u in {**fields, "selected": selection.state}.items() if u is not None}
    return _compared("state", shown.problem.basis, states, _absent(selection))


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
    limits = _limits(fields.values())
    made: dict[str, Picture] = {}
    for role, values in fields.items():
        name, title = f"{what}-{role}", role.capitalize()
        same = next((other for other in made if np.array_equal(fields[other], values)), None)
        if same is None:
            made[role] = field_picture(name, title, basis, values, limits=limits)
        else:
            made[role] = again(made[same], f"{what}-{same}", name, title)
    return made


def _limits(fields: Collection[Array]) -> tuple[float, float]:
    return min(float(values.min()) for values in fields), max(float(values.max()) for values in fields)


def indicator_section(shown: Shown) -> Section:
    """The share of each element in the physics residual, where the problem knows its strong form."""
    problem, pictures = shown.problem, []
    mesh = problem.basis.mesh
    method = "equilibrated" if mesh.nelements <= MOST_EQUILIBRATED else "indicator"
    try:
        norms = {role: dual_norm(problem, c, method) for role, c in shown.candidates.items()}
    except FemcertError as error:
        return Section([], f"Left out: {error}.")
    most = max((float(n.indicators.max()) for n in norms.values()), default=0.0)
    for role, found in norms.items():
        bound = found.best
        caption = f"together {style.short(bound.value)} ({bound.side}, {bound.source})"
        title = role.capitalize()
        pictures.append(elements_picture(f"indicators-{role}", title, mesh, found.indicators, most, caption=caption))
    return Section(pictures, "" if norms else "The file holds no candidates to judge.")


def known_stability(selection: Selection, shown: Shown | None) -> tuple[Stability | None, str]:
    """The stability that was used, computed again where it was not kept with its directions; and why there is none."""
    used = [c.stability for c in (selection.learned, selection.baseline) if c is not None and c.stability is not None]
    chosen = used[0] if selection.accepted and used else used[-1] if used else None
    if shown is None or (chosen is not None and chosen.weakest is not None):
        return chosen, ""
    at = None if shown.problem.linear else selection.parameter
    try:
        return stability(shown.problem, at=at, data=shown.data, validate=False), ""
    except FemcertError as error:
        return chosen, f"Left out: {error}."


def sight_section(selection: Selection, shown: Shown | None) -> Section:
    """Singular values with the noise level, and the direction that the sensors see least."""
    found, missing = known_stability(selection, shown)
    if found is None:
        return Section([], missing or "The rule needs no stability constant, and there is no problem to compute it.")
    levels = [c.noise_level for c in (selection.baseline, selection.learned) if c is not None]
    pictures = [singular_values_picture(found, levels[0] if levels else None)]
    if found.weakest is not None and shown is not None:
        pictures.append(_weakest_picture(found, shown))
    return Section(pictures, missing)


def _weakest_picture(found: Stability, shown: Shown) -> Picture:
    basis, field = shown.problem.parameters.basis, found.weakest
    assert field is not None
    change = f"changes the data by {style.short(found.sigma_min)} only"
    caption = f"norm 1, {change if found.sigma_min > 0.0 else 'does not change the data'}"
    points = getattr(shown.problem.sensors, "points", None)
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


def truth_section(selection: Selection, shown: Shown) -> Section:
    """The consistent truth that the rule `Dominance` names, with its distances from the two candidates."""
    comparison = selection.comparison
    assert comparison is not None
    problem = shown.problem
    norm: Callable[[Array], float] = problem.parameters.norm
    far = {role: norm(c.parameter - comparison.truth) for role, c in shown.candidates.items()}
    caption = ", ".join(f"{style.short(value)} from the {role}" for role, value in far.items())
    basis = problem.parameters.basis
    if basis.mesh.dim() == 1:
        lines = [(role, c.parameter, LOOKS[role]) for role, c in shown.candidates.items()]
        truth = ("truth that decides", comparison.truth, {**style.TRUTH, "color": INK})
        return Section([lines_picture("truth", "The truth that decides", basis, [*lines, truth], caption=caption)])
    fields = [comparison.truth, *(c.parameter for c in shown.candidates.values())]
    limits = _limits(fields)
    title = "The truth that decides"
    return Section([field_picture("truth", title, basis, comparison.truth, limits=limits, caption=caption)])
