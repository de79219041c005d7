"""A picture of a design: how long intervals will be, over sensors and noise levels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..checks import Array
from ..errors import InputError
from ..evidence import Design
from . import style

COLOURS = (style.BLUE, style.RED, style.GREEN, style.PINK, style.ORANGE, style.SKY)
# Panels that can still be read, and how many of them stand side by side.
MOST_PANELS, ACROSS = 12, 3


def plot_design(design: Design, path: str | Path) -> Path:
    """Draw half lengths over the number of sensors, a line for each noise level, and their limits as dashes.

    With a single number of sensors they are drawn over the noise level.

    Parameters
    ----------
    design
        The result of `design`, for at most 12 functionals.
    path
        Where to write the picture: a name that ends in .png, .pdf or .svg.
    """
    return style.write_figure(path, lambda: design_figure(design))


def design_figure(design: Any) -> Any:
    """A panel for each functional."""
    if not isinstance(design, Design):
        raise InputError(f"design is a {type(design).__name__}; expected the result of design()")
    n = len(design.names)
    if n > MOST_PANELS:
        raise InputError(f"the design has {n} functionals; a picture holds {MOST_PANELS} of them")
    across = min(n, ACROSS)
    down = -(-n // across)
    figure = style.new_figure(max(3.6 * across + 0.8, 7.6), 3.2 * down + 1.0)
    low, high = (f(design.half_lengths[np.isfinite(design.half_lengths)], initial=i) for f, i in _ENDS)
    figure.suptitle(_message(design, low, high), x=0.01, ha="left", fontsize=11.5, fontweight="bold", parse_math=False)
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for i, axes in enumerate(panels.ravel()):
        axes.set_visible(i < n)
        if i < n:
            _panel(axes, design, i)
    for axes in panels[:, 0]:
        axes.set_ylabel("half length")
    for axes in panels.ravel()[max(n - across, 0) : n]:
        axes.set_xlabel("sensors" if len(design.counts) > 1 else "standard deviation of the noise")
        axes.tick_params(labelbottom=True)
    panels[0, 0].legend(frameon=False, fontsize=8.5)
    words = [f"solid: half lengths that hold together at {100.0 * design.confidence:.4g} %"]
    if np.any(np.isfinite(design.limits)):
        words += ["dashed: no procedure whose length is fixed before the data has less for one functional alone"]
    figure.supxlabel("\n".join(words), x=0.01, ha="left", fontsize=9, color=style.GREY)
    return figure


_ENDS = ((np.min, np.inf), (np.max, 0.0))


def _message(design: Design, low: float, high: float) -> str:
    what = f"'{style.displayed(design.names[0])}'" if len(design.names) == 1 else f"{len(design.names)} functionals"
    if not high > 0.0:
        return f"No number of these sensors bounds {what}"
    if high == low:
        return f"{what}: half length {style.short(high)}"
    return f"{what}: half lengths from {style.short(high)} down to {style.short(low)}, before measuring"


def _panel(axes: Any, design: Design, functional: int) -> None:
    style.tidy(axes)
    half, limits = design.half_lengths[:, :, functional], design.limits[:, :, functional]
    axes.set_yscale("log")
    if len(design.counts) > 1:
        for i, std in enumerate(design.std):
            look = {"color": COLOURS[i % len(COLOURS)], "label": f"std {style.short(std)}"}
            _lines(axes, np.asarray(design.counts, dtype=float), half[i], limits[i], look)
        axes.xaxis.get_major_locator().set_params(integer=True)
    else:
        axes.set_xscale("log")
        order = np.argsort(design.std)
        look = {"color": style.BLUE, "label": f"{design.counts[0]} sensors"}
        _lines(axes, np.asarray(design.std)[order], half[order, 0], limits[order, 0], look)
    style.plain_numbers(axes)
    axes.set_title(style.displayed(design.names[functional]), fontsize=10, loc="left", parse_math=False)


def _lines(axes: Any, x: Array, half: Array, limits: Array, look: dict[str, Any]) -> None:
    shown = np.where(np.isfinite(half), half, np.nan)
    axes.plot(x, shown, marker="o", markersize=4.0, linewidth=1.8, **look)
    axes.plot(x, limits, color=look["color"], linewidth=1.0, linestyle=(0, (4, 3)))
