"""A picture of an interval as a function of the radius of the ball."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..evidence import Evidence
from ..evidence.sensitivity import Sensitivity
from . import style


def plot_sensitivity(
    evidence: Evidence,
    functional: Any,
    path: str | Path,
    *,
    radii: Any = None,
    value: float = 0.0,
    weights: str = "fixed",
    truth: tuple[float, float] | None = None,
) -> Path:
    """Draw the interval of a functional over the radius of the ball.

    Radii below the least norm that explains the data are shaded: the truth cannot have them. Where the band reaches
    `value` is the breakdown.

    Parameters
    ----------
    evidence
        Of a class with a ball.
    functional
        As for `Evidence.interval`.
    path
        Where to write the picture: a name that ends in .png, .pdf or .svg.
    radii
        Of the ball; default: around least norm, radius of the class and breakdown.
    value
        The number in question.
    weights
        ``"fixed"``: weights of the radius of the class; the intervals are nested and hold for all radii together, so
        that one may be chosen afterwards. ``"best"``: the best weights of each radius; an interval then holds for a
        radius that was fixed before the data. The picture says which.
    truth
        Norm and value of the truth, where it is known.
    """

    def draw() -> Any:
        if not isinstance(evidence, Evidence):
            raise InputError(f"evidence is a {type(evidence).__name__}; expected the result of evidence()")
        return sensitivity_figure(evidence.sensitivity(functional, radii, value=value, weights=weights), truth)

    return style.write_figure(path, draw)


def sensitivity_figure(found: Sensitivity, truth: tuple[float, float] | None = None) -> Any:
    """The band and its marks, with what they say."""
    figure, axes = style.axes_of(7.6, 4.6)
    draw_sensitivity(axes, found, truth)
    style.plain_numbers(axes)
    axes.set_ylabel(style.displayed(found.name), parse_math=False)
    axes.legend(frameon=True, framealpha=0.9, edgecolor="none", fontsize=9, loc="best")
    style.title(axes, _message(found), f"{100.0 * found.confidence:.4g} %, {found.claim}")
    return figure


def draw_sensitivity(axes: Any, found: Sensitivity, truth: tuple[float, float] | None = None) -> None:
    """The band, what cannot be, the radius of the class and the breakdown, on axes."""
    kind = "nested: for all radii together" if found.weights == "fixed" else "for one radius, fixed before the data"
    axes.fill_between(
        found.radii, found.lower, found.upper, color=style.BLUE, alpha=0.25, linewidth=0.0, label=f"interval, {kind}"
    )
    for end in (found.lower, found.upper):
        axes.plot(found.radii, end, color=style.BLUE, linewidth=1.8)
    axes.set_xscale("log")
    axes.set_xlim(found.radii[0], found.radii[-1])
    least = found.least_norm.value
    if least > found.radii[0]:
        look = {"color": style.GREY, "alpha": 0.3, "linewidth": 0.0}
        label = f"cannot be: the data need {style.short(least)}{_alone(found)}"
        axes.axvspan(found.radii[0], min(least, found.radii[-1]), label=label, **look)
    axes.axhline(found.value, color=style.BLACK, linewidth=1.0)
    radius = f"radius of the class, {style.short(found.radius)}"
    axes.axvline(found.radius, color=style.GREEN, linewidth=1.6, linestyle=(0, (5, 2)), label=radius)
    broken = None if found.breakdown is None else found.breakdown.value
    if broken is not None and found.radii[0] < broken <= found.radii[-1]:
        look = {"color": style.RED, "marker": "o", "markersize": 8.0, "linestyle": "none", "zorder": 4}
        axes.plot([broken], [found.value], label=f"breakdown, {style.short(broken)}", **look)
    if truth is not None:
        look = {"color": style.BLACK, "marker": "*", "markersize": 11.0, "linestyle": "none", "zorder": 4}
        axes.plot([truth[0]], [truth[1]], label="truth", **look)
    axes.set_ylim(*_limits(found))
    axes.set_xlabel("radius of the ball")


def _alone(found: Sensitivity) -> str:
    """The confidence of the least norm, which is not that of both statements together."""
    level = found.least_norm.probability
    return "" if level == 1.0 else f" ({100.0 * level:.4g} % by itself)"


def _message(found: Sensitivity) -> str:
    return found.message.replace(repr(found.name), f"'{style.displayed(found.name)}'")


def _limits(found: Sensitivity) -> tuple[float, float]:
    """Of the axis: what the largest radius would need may hide all else."""
    inside = found.radii <= 1.5 * max(found.radius, found.least_norm.value)
    ends = np.concatenate([found.lower[inside], found.upper[inside], [found.value]])
    if found.breakdown is not None and np.isfinite(found.breakdown.value):
        near = found.radii <= 1.2 * found.breakdown.value
        ends = np.concatenate([ends, found.lower[near], found.upper[near]])
    ends = ends[np.isfinite(ends)]
    low, high = float(ends.min()), float(ends.max())
    room = 0.15 * ((high - low) or 1.0)
    return low - room, high + room
