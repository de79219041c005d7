"""A refinement study as pictures (its bounds over the dofs, its meshes) and as a page."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..selection.selection import package_versions
from ..study import Level, Study
from . import style
from .html import render
from .pictures import page_image

STOPPED = {
    "tolerance": "the upper bound reached the tolerance",
    "dofs": "the next level would have had more dofs than allowed",
    "levels": "all levels were computed",
}
HEADINGS = {
    "level": "Level", "elements": "Elements", "dofs": "Dofs", "h": "h", "lower": "Lower bound", "upper": "Upper bound",
    "truth": "Truth", "effectivity": "Effectivity", "C_stab": "C stab", "radius_baseline": "R baseline",
    "relative_baseline": "R / answer", "radius_learned": "R learned", "relative_learned": "R / answer",
    "decision": "Decision", "seconds": "Seconds",
}  # fmt: skip
# Rounding of a bound that is sharp.
_SLACK = 1e-9
LOOKS: dict[str, dict[str, Any]] = {
    "upper": {"color": style.BLUE, "linewidth": 2.0, "marker": "o", "markersize": 5},
    "truth": {**style.TRUTH, "marker": "D", "markersize": 4},
    "lower": {"color": style.SKY, "linewidth": 2.0, "marker": "o", "markersize": 5},
}
NAMES = {"upper": "upper bound", "truth": "truth", "lower": "lower bound"}
# Rates of the theory; a fitted one this near is shown beside its exact value.
_KNOWN_RATES = (Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(2))
_MOST_PANELS = 6


def study_page(study: Study) -> str:
    """A study as HTML."""
    pictures = [
        page_image(study_figure(study), "Bounds of the residual over the dofs, with fitted slopes"),
        page_image(meshes_figure(study), "The meshes, coloured by the share of each element in the upper bound"),
    ]
    return render(
        "study.html",
        study=study,
        last=study.rows[-1],
        columns=[HEADINGS[name] for name in study.shown_columns()],
        texts=study.cells(),
        missed=[row.level for row in study.rows if not holds(row)],
        has_truth=any(row.truth is not None for row in study.rows),
        estimated=sorted({name for row in study.rows for name in row.estimates}),
        decisions=[row.decision for row in study.rows if row.decision],
        undecided=study.undecided(),
        norm=next((s.baseline.norm for s in study.selections if s is not None and s.baseline is not None), None),
        stopped=STOPPED[study.stopped],
        pictures=pictures,
        versions=package_versions(),
    )


def holds(row: Level) -> bool:
    """Whether the truth of a level, where it is known, lies between its bounds."""
    if row.truth is None:
        return True
    return row.lower <= row.truth * (1.0 + _SLACK) and row.truth <= row.upper * (1.0 + _SLACK)


def plot_study(study: Study, path: str | Path) -> Path:
    """Draw bounds, truth, effectivity and radii of a study over its dofs, with fitted slopes, as PNG, PDF or SVG."""
    return style.write_figure(path, lambda: study_figure(check_study(study)))


def plot_meshes(study: Study, path: str | Path) -> Path:
    """Draw the meshes of a study (six at most) and the share of each element in the upper bound: PNG, PDF or SVG."""
    return style.write_figure(path, lambda: meshes_figure(check_study(study)))


def check_study(study: Any) -> Study:
    """`study` if it is one, else an `InputError`."""
    if not isinstance(study, Study):
        raise InputError(f"study is a {type(study).__name__}; expected the result of refinement_study")
    return study


def study_figure(study: Study) -> Any:
    """The bounds, and beside them the effectivity and the radii where there are any."""
    sides = [
        draw
        for draw, name in ((_draw_effectivity, "effectivity"), (_draw_radii, "radius_baseline"))
        if any(value is not None for value in study.column(name))
    ]
    if not sides:
        figure, axes = style.axes_of(7.2, 4.6)
        _draw_bounds(axes, study)
        return figure
    figure = style.new_figure(10.5, 4.8)
    left, right = figure.subfigures(1, 2, width_ratios=[1.5, 1.0])
    _draw_bounds(_tidy(left.subplots()), study)
    for axes, draw in zip(np.atleast_1d(right.subplots(len(sides), 1, sharex=True)), sides, strict=True):
        draw(_tidy(axes), study)
        style.plain_numbers(axes)
    axes.set_xlabel("dofs")
    return figure


def meshes_figure(study: Study) -> Any:
    """Meshes side by side; on a line, the indicators over x."""
    shown = _spread(len(study.rows), _MOST_PANELS)
    if study.meshes[0].dim() == 1:
        return _lines_figure(study, shown)
    from matplotlib.colors import LogNorm

    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    width, height = np.ptp(study.meshes[0].p, axis=1)
    tall = 3.0 * min(max(height / width, 0.35), 1.6) + 0.3
    figure = style.new_figure(3.0 * columns + 1.5, tall * rows + 0.35)
    figure.suptitle("Meshes and indicators", x=0.01, ha="left", fontsize=11.5, fontweight="bold")
    panels = figure.subplots(rows, columns, squeeze=False)
    least, most = _range([study.indicators[i] for i in shown])
    scale = LogNorm(least, most)
    for axes, i in zip(panels.ravel(), shown, strict=False):
        image = _draw_mesh(axes, study.meshes[i], np.maximum(study.indicators[i], least), scale)
        row = study.rows[i]
        axes.set_title(f"level {row.level}: {row.elements:,} elements", fontsize=9.5, loc="left", pad=3)
    for axes in panels.ravel()[len(shown) :]:
        axes.set_visible(False)
    label = "share of the upper bound"
    figure.colorbar(image, ax=list(panels.ravel()), label=label, shrink=0.75, extend="min", aspect=28, pad=0.02)
    return figure


def _range(indicators: list[Any]) -> tuple[float, float]:
    """Limits of a logarithmic scale: the largest value, and where the smallest two percent begin."""
    values = np.concatenate(indicators)
    most = float(values.max()) or 1.0
    return min(max(float(np.quantile(values, 0.02)), 1e-4 * most), 0.5 * most), most


def reference_slope(rate: float) -> tuple[float, str]:
    """The slope of the triangle beside a curve: the known rate near the fitted one, else the fitted one."""
    known = min(_KNOWN_RATES, key=lambda fraction: abs(float(fraction) + rate))
    if abs(float(known) + rate) <= 0.12 * float(known):
        return -float(known), f"-{known}"
    return rate, f"{rate:.2f}"


def _tidy(axes: Any) -> Any:
    style.tidy(axes)
    return axes


def _draw_bounds(axes: Any, study: Study) -> None:
    dofs = np.array(study.column("dofs"), dtype=float)
    for name, look in LOOKS.items():
        values = np.array([np.nan if value is None else value for value in study.column(name)])
        if not np.any(values > 0.0):
            continue
        rate = study.rates.get(name)
        label = NAMES[name] if rate is None else f"{NAMES[name]}, slope {rate:.2f}"
        axes.plot(dofs, np.where(values > 0.0, values, np.nan), label=label, **look)
    lower, upper = np.array(study.column("lower")), np.array(study.column("upper"))
    axes.fill_between(dofs, lower, upper, where=lower > 0.0, color=style.SKY, alpha=0.15, linewidth=0.0)
    axes.set_xscale("log")
    if np.any(upper > 0.0):
        axes.set_yscale("log")
        axes.legend(frameon=False, fontsize=9, loc="upper right")
        _draw_triangle(axes, study)
    style.plain_numbers(axes)
    axes.set_xlabel("dofs")
    axes.set_ylabel(f"residual, dual of the {study.norm} norm")
    how = f"adaptive refinement (θ = {study.theta:g})" if study.adaptive else "uniform refinement"
    rate = study.rates.get("upper")
    message = "Bounds of the residual" if rate is None else f"The upper bound falls with slope {rate:.2f}"
    if rate is not None and rate >= 0.0:
        message = "The upper bound does not fall"
    style.title(axes, message, f"{study.method}; {how}, {len(study.rows)} levels")


def _draw_triangle(axes: Any, study: Study) -> None:
    """A triangle with the slope of the upper bound, below the lowest curve at the finer levels."""
    rate = study.rates.get("upper")
    if rate is None or not rate < -0.05:
        return
    slope, label = reference_slope(rate)
    lowest = [min(v for v in (row.lower, row.truth, row.upper) if v) for row in study.rows if row.upper > 0.0]
    right = float(study.rows[-1].dofs)
    left = right / min((right / study.rows[0].dofs) ** 0.3, 4.0)
    low = 0.45 * lowest[-1]
    high = low * (left / right) ** slope
    axes.plot([left, right, left, left], [high, low, low, high], color=style.GREY, linewidth=1.1)
    axes.annotate(
        label, (left, np.sqrt(low * high)), xytext=(-4, 0), textcoords="offset points", ha="right", va="center",
        fontsize=9, color=style.GREY,
    )  # fmt: skip
    axes.annotate(
        "1", (np.sqrt(left * right), low), xytext=(0, -3), textcoords="offset points", ha="center", va="top",
        fontsize=9, color=style.GREY,
    )  # fmt: skip


def _draw_effectivity(axes: Any, study: Study) -> None:
    points = [(row.dofs, row.effectivity) for row in study.rows if row.effectivity is not None]
    axes.plot(*zip(*points, strict=True), color=style.BLUE, linewidth=2.0, marker="o", markersize=5)
    axes.axhline(1.0, color=style.BLACK, linewidth=1.0, linestyle=(0, (5, 2)))
    axes.set_xscale("log")
    highest = max(value for _, value in points)
    axes.set_ylim(min(0.9, 0.95 * min(value for _, value in points)), max(1.1, 1.08 * highest))
    style.title(axes, "Effectivity", "upper bound / truth; 1 is sharp")


def _draw_radii(axes: Any, study: Study) -> None:
    for name, look in (("baseline", style.BASELINE), ("learned", style.LEARNED)):
        points = [(row.dofs, getattr(row, f"radius_{name}"), row.decision) for row in study.rows]
        points = [point for point in points if point[1] is not None]
        if not points:
            continue
        axes.plot([p[0] for p in points], [p[1] for p in points], label=name, **look)
        taken = [p for p in points if (p[2] == "accept") == (name == "learned")]
        for chosen, fill in ((points, "white"), (taken, look["color"])):
            place = [p[0] for p in chosen], [p[1] for p in chosen]
            axes.scatter(*place, s=26, color=fill, edgecolor=look["color"], zorder=3)
    axes.set_xscale("log")
    radii = [value for row in study.rows for value in (row.radius_baseline, row.radius_learned) if value]
    if radii and max(radii) > 10.0 * min(radii):
        axes.set_yscale("log")
    else:
        axes.set_ylim(0.0, 1.15 * max(radii, default=1.0))
    axes.legend(frameon=False, fontsize=9)
    decided = any(row.decision for row in study.rows)
    style.title(axes, "Radii", "filled: selected" if decided else "of the baseline")


def _draw_mesh(axes: Any, mesh: Any, values: Any, scale: Any) -> Any:
    from matplotlib.collections import PolyCollection

    # Thinner lines for smaller elements, down to none.
    line = 0.0 if mesh.nelements > 20_000 else min(0.6, 12.0 / np.sqrt(mesh.nelements))
    cells = PolyCollection(
        mesh.p[:, mesh.t].transpose(2, 1, 0), array=values, norm=scale, cmap=style.MESH_MAP, linewidth=line,
        edgecolor="#404040c0" if line else "face", antialiased=bool(line), rasterized=True,
    )  # fmt: skip
    axes.add_collection(cells)
    axes.autoscale_view()
    axes.set_aspect("equal")
    axes.set_axis_off()
    return cells


def _lines_figure(study: Study, shown: list[int]) -> Any:
    figure, axes = style.axes_of(8.6, 4.0)
    colours = _shades(len(shown))
    for i, colour in zip(shown, colours, strict=True):
        mesh = study.meshes[i]
        ends = np.sort(mesh.p[0, mesh.t], axis=0)
        order = np.argsort(ends[0])
        edges = np.append(ends[0, order], ends[1, order[-1]])
        row = study.rows[i]
        label = f"level {row.level}: {row.elements:,} elements"
        axes.stairs(study.indicators[i][order], edges, baseline=None, color=colour, linewidth=1.6, label=label)
    least, most = _range([study.indicators[i] for i in shown])
    axes.set_yscale("log")
    axes.set_ylim(0.5 * least, 2.0 * most)
    axes.set_xlabel("x")
    axes.set_ylabel("share of the upper bound")
    axes.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
    style.title(axes, "Where the residual is", "indicator of each element")
    return figure


def _shades(number: int) -> list[Any]:
    from matplotlib import colormaps

    return [colormaps[style.IMAGE_MAP](x) for x in np.linspace(0.9, 0.05, number)]


def _spread(number: int, most: int) -> list[int]:
    """At most `most` indices from the first to the last, evenly."""
    return sorted({round(x) for x in np.linspace(0, number - 1, min(number, most))})
