"""Figures of the sweep: the boundary, and what each rule did."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...checks import Array
from ...report import style
from . import Sweep
from .heatmaps import few_ticks, headline
from .rows import has_radii
from .table import Outcome

# More points than these cover each other.
MOST_POINTS = 40_000
# Fewer than these are drawn larger.
FEW_POINTS = 2_000
# Bars with the number of unsafe trials below them.
MOST_COUNTS = 8
# Rules drawn in a row.
PANELS = 3


def boundary(result: Sweep) -> Any:
    """Every trial: certificate ratio, which the rule sees, and error ratio, which it does not."""
    if not has_radii(result):
        return None
    ratio, error = result.ratio().ravel(), result.error_ratio.ravel()
    shown = np.isfinite(ratio) & (ratio > 0.0) & np.isfinite(error)
    if not shown.any():
        return None
    figure = style.new_figure(8.4, 6.6)
    upper, axes = figure.subplots(2, 1, sharex=True, height_ratios=(1, 3.2))
    style.tidy(upper, grid="x")
    style.tidy(axes)
    _distributions(upper, result)
    floor = _outcome_points(axes, result, shown, ratio, error)
    for panel in (upper, axes):
        panel.axvline(1.0, color=style.BLACK, linewidth=1.3)
    axes.axhline(1.0, color=style.BLACK, linewidth=1.0, linestyle=(0, (5, 2)))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("certificate ratio  R learned / R baseline  (log scale): the rule accepts left of 1")
    axes.set_ylabel("error ratio  E  (log scale), hindsight only")
    style.plain_numbers(axes)
    if floor is not None:
        _label_floor(axes, floor)
    legend = axes.legend(frameon=True, framealpha=0.93, edgecolor="none", fontsize=9, loc="upper left")
    for handle in legend.legend_handles:
        handle.set_sizes([32.0])
    style.title(upper, _boundary_message(result.outcome()), _boundary_detail(result, int(np.sum(~shown))))
    return figure


def rules(result: Sweep) -> Any:
    """Safe, unsafe and falsely rejected parts of the trials at each noise level, for every rule."""
    names = result.rules
    columns = min(len(names), PANELS)
    lines = -(-len(names) // columns)
    figure = style.new_figure(max(1.6 + 2.9 * columns, 5.0), 1.2 + 2.7 * lines)
    axes = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for panel, rule in zip(axes, names, strict=False):
        _rule_bars(panel, [result.outcome(rule, noise=noise) for noise in result.grid.noise])
        panel.set_title(style.displayed(rule), loc="left", fontsize=10, parse_math=False)
        ticks = few_ticks(len(result.grid.noise))
        panel.set_xticks(ticks, [f"{result.grid.noise[i]:g}" for i in ticks], fontsize=9)
    for panel in axes[len(names) :]:
        panel.set_axis_off()
    for number, panel in enumerate(axes[: len(names)]):
        panel.tick_params(labelbottom=True)
        if number + columns >= len(names):
            panel.set_xlabel("noise fraction", fontsize=9)
    for panel in axes[::columns]:
        panel.set_ylabel("% of trials", fontsize=9)
    handles, labels = axes[0].get_legend_handles_labels()
    free = axes[len(names)] if len(names) < len(axes) else None
    place = (
        {"loc": "center left"}
        if free is not None
        else {"loc": "outside lower center", "ncols": 3 if columns == PANELS else 1}
    )
    (free if free is not None else figure).legend(handles, labels, frameon=False, fontsize=9, **place)
    for panel in axes[: len(names)]:
        # Room for the numbers below the lowest bar, and some height where there are no bars.
        panel.margins(y=0.09)
        panel.update_datalim([(0.0, 5.0)])
    headline(figure, _rules_message(result.outcomes()))
    return figure


def _distributions(axes: Any, result: Sweep) -> None:
    from matplotlib import colormaps

    ratio = result.ratio()
    finite = ratio[np.isfinite(ratio) & (ratio > 0.0)]
    low, high = float(finite.min()), float(finite.max())
    bins = np.geomspace(low / 1.01, high * 1.01, 91)
    levels = result.grid.mismatch
    for i, mu in enumerate(levels):
        values = ratio[..., i][np.isfinite(ratio[..., i])]
        colour = colormaps["viridis"](0.9 * i / max(len(levels) - 1, 1))
        label = f"{mu:g}" if len(levels) <= 8 or i in (0, len(levels) - 1) else None
        axes.hist(values, bins, histtype="stepfilled", color=colour, alpha=0.35, linewidth=0)
        axes.hist(values, bins, histtype="step", color=colour, linewidth=1.6, label=label)
    axes.set_ylabel("trials")
    axes.tick_params(labelbottom=False)
    axes.legend(title="mismatch", title_fontsize=9, frameon=False, fontsize=9, loc="upper left", ncols=2)


def _outcome_points(axes: Any, result: Sweep, shown: NDArray[np.bool_], ratio: Array, error: Array) -> float | None:
    """Draw the trials by what came of them; the height at which an error ratio of zero is drawn, if there is one."""
    accepted, better, worse = (flags.ravel() for flags in (result.accepted(), result.better, result.worse))
    rejected = ~accepted & ~result.undecided().ravel()
    positive = error[shown & (error > 0.0)]
    zero = shown & (error == 0.0)
    least = float(positive.min()) if positive.size else 0.1
    floor = least / 4.0 if zero.any() else None
    chosen = _some(shown)
    height = np.where(error == 0.0, least / 4.0, error)
    groups = (
        ("rejected, not better", rejected & ~better, "#b6bcc6", 4, 1),
        ("rejected, better (false rejection)", rejected & better, style.SKY, 4, 2),
        ("selected, no worse (safe)", accepted & ~worse, style.GREEN, 6, 3),
        ("selected, worse (unsafe)", accepted & worse, style.RED, 22, 4),
    )
    for label, group, colour, size, order in groups:
        pick = chosen & group
        text = f"{label}: {int(group.sum()):,}"
        area = size if shown.size > FEW_POINTS else max(4 * size, 22)
        points = axes.scatter(ratio[pick], height[pick], s=area, color=colour, linewidths=0, zorder=order, label=text)
        points.set_in_layout(False)
    return floor


def _label_floor(axes: Any, floor: float) -> None:
    """The strip of trials whose error ratio has no place on a logarithmic axis."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    axes.axhspan(floor / 1.6, floor * 1.6, color="#eef0f3", zorder=0)
    axes.set_ylim(bottom=floor / 1.6)
    major, minor = axes.yaxis.get_majorticklocs(), axes.yaxis.get_minorticklocs()
    axes.yaxis.set_major_locator(FixedLocator([floor, *major[major > 2.0 * floor]]))
    axes.yaxis.set_minor_locator(FixedLocator(minor[minor > 2.0 * floor]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: "0" if value == floor else style.short(value)))
    text = "E = 0: the learned candidate is the truth"
    axes.annotate(text, (0.01, floor * 1.7), xycoords=("axes fraction", "data"), fontsize=8.5, color=style.GREY)


def _boundary_message(found: Outcome) -> str:
    if not found.accepted:
        return f"No candidate of {found.trials:,} is selected"
    worse = f"{found.unsafe:,} of them are worse" if found.unsafe else "none of them is worse"
    return f"{found.accepted:,} of {found.trials:,} candidates are selected; {worse}"


def _boundary_detail(result: Sweep, hidden: int) -> str:
    parts = [f"rule: {style.displayed(result.rules[0])}"]
    if result.grid.trials > MOST_POINTS:
        parts.append(f"a random sample of {MOST_POINTS:,} trials below, all of them above")
    if hidden:
        parts.append(f"{hidden:,} trials without a finite ratio are not shown")
    return "; ".join(parts)


def _some(shown: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if shown.size <= MOST_POINTS:
        return shown
    chosen = np.zeros(shown.size, dtype=bool)
    chosen[np.random.default_rng(0).choice(shown.size, MOST_POINTS, replace=False)] = True
    return shown & chosen


def _rules_message(outcomes: list[Outcome]) -> str:
    clean = [style.displayed(found.rule) for found in outcomes if found.accepted and not found.unsafe]
    if clean:
        return f"Never unsafe in this sweep: {', '.join(clean)}"
    return "Every rule that accepts is unsafe at times" if any(o.accepted for o in outcomes) else "Nothing is accepted"


def _rule_bars(axes: Any, outcomes: list[Outcome]) -> None:
    style.tidy(axes, grid="y")
    at = np.arange(len(outcomes))
    safe, bad, missed = (
        np.array([100.0 * o.rate(name) for o in outcomes]) for name in ("safe", "unsafe", "false_rejections")
    )
    axes.bar(at, missed, 0.75, bottom=safe, color="#d9dde3", label="better, but rejected (false rejection)")
    axes.bar(at, safe, 0.75, color=style.GREEN, label="accepted, no worse (safe)")
    axes.bar(at, -bad, 0.75, color=style.RED, label="accepted, worse (unsafe), with its count")
    axes.axhline(0.0, color=style.BLACK, linewidth=0.8)
    if len(outcomes) <= MOST_COUNTS:
        for i, found in enumerate(outcomes):
            if found.unsafe:
                words = {"ha": "center", "va": "top", "fontsize": 8, "color": style.RED, "textcoords": "offset points"}
                axes.annotate(f"{found.unsafe:,}", (i, -bad[i]), xytext=(0, -2), **words)
    axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):.0f}")
    axes.tick_params(axis="y", labelsize=9)
