"""A picture of one selection: the parameter fields, and what the two radii are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..certificate.parts import PARTS, radius_parts
from ..checks import Array
from ..errors import InputError
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..selection import Selection
from . import style
from .fields import draw_image, draw_line, value_limits

_COLOURS = (
    style.BLUE, style.ORANGE, style.PINK, style.SKY, style.GREEN, style.BLUE, style.BLUE, style.RED, style.GREY,
    style.BLUE,
)  # fmt: skip
PART_COLOURS = dict(zip(PARTS, _COLOURS, strict=True))


def plot_selection(
    selection: Selection,
    problem: Problem,
    path: str | Path,
    *,
    truth: Any = None,
    baseline: Candidate | None = None,
    learned: Candidate | None = None,
) -> Path:
    """Draw the parameter fields of a selection and its two radii, part by part.

    Parameters
    ----------
    selection, problem
        What was decided, and where.
    path
        Where to write the picture: a name that ends in .png, .pdf or .svg.
    truth
        The true parameter (dof vector), where it is known.
    baseline, learned
        The two candidates; a selection itself holds only the one it selected, which is then marked among them.
    """

    def draw() -> Any:
        if problem.parameters.basis is None:
            raise InputError("plot_selection draws fields in the domain; this problem's parameters are none")
        fields = _fields(selection, problem, truth, baseline, learned)
        dimension = problem.parameters.basis.mesh.dim()
        if dimension not in (1, 2):
            raise InputError(f"plot_selection draws 1D and 2D fields; this mesh has dimension {dimension}")
        return (_with_lines if dimension == 1 else _with_images)(problem, fields, selection)

    return style.write_figure(path, draw)


def _fields(
    selection: Selection, problem: Problem, truth: Any, baseline: Candidate | None, learned: Candidate | None
) -> list[tuple[str, Array, dict[str, Any]]]:
    named: list[tuple[str, Any, dict[str, Any]]] = [
        ("truth", truth, style.TRUTH),
        ("baseline", baseline and baseline.parameter, style.BASELINE),
        ("learned", learned and learned.parameter, style.LEARNED),
    ]
    chosen = selection.parameter
    fields = [(name, problem.check_parameter(values), look) for name, values, look in named if values is not None]
    taken = [name for name, values, _ in fields if name != "truth" and np.array_equal(values, chosen)]
    if not taken:
        look = {"color": style.RED, "linewidth": 1.6, "linestyle": (0, (1, 1.5))}
        return [*fields, ("selected", problem.check_parameter(chosen), look)]
    return [(f"{name}, selected" if name in taken else name, values, look) for name, values, look in fields]


def _message(selection: Selection) -> str:
    if selection.status == "undecided":
        return "Undecided, and the baseline is kept"
    verdict = selection.status
    if selection.learned is None or selection.learned.name == "learned":
        return f"The learned candidate is {verdict}"
    name = style.displayed(selection.learned.name)
    # A long name on a line of its own, so that the narrowest picture holds it.
    return (
        f"The learned candidate '{name}' is {verdict}" if len(name) <= 12 else f"Learned candidate {verdict}:\n{name}"
    )


def _with_lines(problem: Problem, fields: list[tuple[str, Array, dict[str, Any]]], selection: Selection) -> Any:
    figure = style.new_figure(10.0, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=[1.7, 1.0])
    style.tidy(left)
    for name, values, look in fields:
        draw_line(left, problem.parameters.basis, values, label=name, **look)
    left.set_xlabel("x")
    left.set_ylabel("parameter q")
    left.legend(frameon=False, fontsize=9, handlelength=3.2)
    style.title(left, _message(selection))
    _bars(right, selection)
    return figure


def _with_images(problem: Problem, fields: list[tuple[str, Array, dict[str, Any]]], selection: Selection) -> Any:
    figure = style.new_figure(2.9 * max(len(fields), 2) + 0.6, 6.2)
    figure.suptitle(_message(selection), x=0.01, ha="left", fontsize=12, fontweight="bold", parse_math=False)
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.35, 1.0])
    panels = np.atleast_1d(top.subplots(1, len(fields), sharex=True, sharey=True))
    low, high = value_limits(problem.parameters.basis, [values for _, values, _ in fields])
    for axes, (name, values, _) in zip(panels, fields, strict=True):
        image = draw_image(axes, problem.parameters.basis, values, vmin=low, vmax=high)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("x")
    panels[0].set_ylabel("y")
    top.colorbar(image, ax=list(panels), label="parameter q", shrink=0.85)
    _bars(bottom.subplots(), selection)
    return figure


def _bars(axes: Any, selection: Selection) -> None:
    style.tidy(axes, grid="x")
    rows = [
        (name, c) for name, c in (("learned", selection.learned), ("baseline", selection.baseline))
        if c is not None and np.isfinite(c.radius.value)
    ]
    if not rows:
        axes.text(0.5, 0.5, "no radius", ha="center", va="center", transform=axes.transAxes)
        return
    parts = [radius_parts(certificate, selection.rule) for _, certificate in rows]
    longest = max(c.radius.value for _, c in rows)
    left = np.zeros(len(rows))
    for name in PARTS:
        widths = np.array([part.get(name, 0.0) for part in parts])
        if widths.max() > 1e-3 * longest:
            axes.barh([r for r, _ in rows], widths, left=left, height=0.55, color=PART_COLOURS[name], label=name)
        left += widths
    for i, (_, certificate) in enumerate(rows):
        text = f" {style.short(certificate.radius.value)} ({certificate.radius.side})"
        axes.text(certificate.radius.value, i, text, va="center", fontsize=9)
        axes.text(0.0, i - 0.32, f" {certificate.scale}", va="top", fontsize=8)
    axes.set_ylim(-0.65, len(rows) - 0.6)
    axes.set_xlim(0.0, 1.45 * longest if longest > 0.0 else 1.0)
    norm = rows[0][1].norm
    axes.set_xlabel("radius, by residual" + (f"; % of the answer\n({norm})" if norm else ""))
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="lower left", bbox_to_anchor=(0.0, 1.0))
