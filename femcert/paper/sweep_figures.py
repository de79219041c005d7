"""Figures of the sweep: the boundary between accepted and rejected, heatmaps of the regimes, what each rule did."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import Array
from ..report import style
from ..report.pictures import Drawing
from .rows import has_radii
from .tally import Sweep, Tally

# More points than these cover each other.
MOST_POINTS = 40_000
# Fewer than these are drawn larger.
FEW_POINTS = 2_000
# Bars with the number of unsafe trials below them.
MOST_COUNTS = 8
# Rules drawn in a row.
PANELS = 3
# Cells of a heatmap with numbers to read in them.
MOST_NUMBERS = 130


def boundary(result: Sweep) -> Any:
    """Every trial: certificate ratio, which the rule computes, and error ratio, which is unknown to it."""
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


def _boundary_message(found: Tally) -> str:
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


def _rules_message(outcomes: list[Tally]) -> str:
    clean = [style.displayed(found.rule) for found in outcomes if found.accepted and not found.unsafe]
    if clean:
        return f"Never unsafe in this sweep: {', '.join(clean)}"
    return "Every rule that accepts is unsafe at times" if any(o.accepted for o in outcomes) else "Nothing is accepted"


def _rule_bars(axes: Any, outcomes: list[Tally]) -> None:
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


def acceptance(result: Sweep) -> Any:
    """Accepted trials over sensors and perturbation, with mismatch and without."""
    return _rates(result, result.accepted(), "Accepted", 1.0)


def unsafe(result: Sweep) -> Any:
    """Unsafe acceptances, likewise."""
    return _rates(result, result.accepted() & result.worse, "Unsafe", 0.2)


def false_rejections(result: Sweep) -> Any:
    """False rejections, likewise."""
    flags = ~result.accepted() & ~result.undecided() & result.better
    return _rates(result, flags, "False rejections", 1.0)


def ratios(result: Sweep) -> Any:
    """Median certificate ratio over sensors and noise, with mismatch and without."""
    from matplotlib.ticker import LogLocator

    if not has_radii(result):
        return None
    grid = result.grid
    sigma = _representative(grid.perturbation, 0.05)
    medians = np.median(result.ratio()[..., grid.perturbation.index(sigma), :], axis=0)
    levels = _two(grid.mismatch, 0.02)
    figure, panels = _panels(len(levels), len(grid.noise))
    parts = []
    for panel, mu in zip(panels, levels, strict=True):
        values = medians[..., grid.mismatch.index(mu)].T
        colours = {"cmap": _ratio_map(values), "norm": _ratio_scale(values)}
        image = _heatmap(panel, values, (grid.sensors, grid.noise), style.short, colours)
        _scale(figure, image, panel, "median ratio (log scale)", LogLocator(subs=(1.0, 2.0, 5.0)))
        _name(panel, f"mismatch {mu:g}, perturbation {sigma:g}", "noise fraction")
        parts.append(f"{_ratio_range(values)} at mismatch {mu:g}")
    headline(figure, f"Median certificate ratio: {', '.join(parts)}")
    return figure


def _rates(result: Sweep, flags: NDArray[np.bool_], subject: str, least_top: float) -> Any:
    from matplotlib.ticker import MaxNLocator

    grid = result.grid
    eta = _representative(grid.noise, 0.02)
    rates = flags[:, :, grid.noise.index(eta)].mean(axis=0)
    levels = _two(grid.mismatch, 0.05)
    shown = [rates[..., grid.mismatch.index(mu)].T for mu in levels]
    top = max(least_top, *(float(values.max()) for values in shown))
    figure, panels = _panels(len(levels), len(grid.perturbation))
    colours = {"cmap": style.MESH_MAP if subject == "Unsafe" else "YlGnBu", "vmin": 0.0, "vmax": 100.0 * top}
    image = None
    for panel, mu, values in zip(panels, levels, shown, strict=True):
        image = _heatmap(panel, 100.0 * values, (grid.sensors, grid.perturbation), lambda v: f"{v:.0f}", colours)
        _name(panel, f"mismatch {mu:g}, noise {eta:g}", "learned perturbation")
    _scale(figure, image, panels, "% of a regime's trials", MaxNLocator(5, integer=True))
    parts = [f"{_rate_range(values)} at mismatch {mu:g}" for mu, values in zip(levels, shown, strict=True)]
    headline(figure, f"{subject}: {', '.join(parts)}")
    return figure


def _ratio_range(values: Array) -> str:
    known = values[~np.isnan(values)]
    ends = dict.fromkeys(style.short(value) for value in (known.min(), known.max())) if known.size else ("none",)
    return " to ".join(ends)


def _rate_range(values: Array) -> str:
    low, high = 100.0 * float(values.min()), 100.0 * float(values.max())
    if high == 0.0:
        return "none"
    return f"{low:.0f} to {high:.0f} %" if high - low >= 0.5 else f"{high:.0f} %"


def _heatmap(axes: Any, values: Array, at: tuple[Any, Any], text: Any, colours: dict[str, Any]) -> Any:
    """Cells with their numbers in them; columns and rows are named by the two axes of the grid."""
    image = axes.imshow(np.ma.masked_invalid(values), origin="lower", aspect="auto", **colours)
    axes.set_facecolor("#d9dde3")
    columns, lines = (few_ticks(len(names)) for names in at)
    axes.set_xticks(columns, [f"{at[0][i]:g}" for i in columns], fontsize=9)
    axes.set_yticks(lines, [f"{at[1][i]:g}" for i in lines], fontsize=9)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if values.size <= MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(values):
            colour = image.cmap(image.norm(value)) if np.isfinite(value) else (1.0, 1.0, 1.0, 1.0)
            dark = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2] < 0.55
            word = text(value) if np.isfinite(value) else "-"
            ink = "white" if dark else style.BLACK
            words = axes.text(j, i, word, ha="center", va="center", fontsize=8.5, color=ink)
            # Inside its cell; the layout need not measure it.
            words.set_in_layout(False)
    return image


def _scale(figure: Any, image: Any, panels: Any, label: str, ticks: Any) -> None:
    bar = figure.colorbar(image, ax=panels, ticks=ticks, format=lambda value, _: style.short(value))
    bar.minorticks_off()
    bar.outline.set_visible(False)
    bar.set_label(label, fontsize=9)
    bar.ax.tick_params(labelsize=9)


def _ratio_map(values: Array) -> str:
    if np.any(values <= 1.0) and np.any(values > 1.0):
        return "RdBu_r"
    return "OrRd" if np.all(values > 1.0) else "Blues_r"


def _ratio_scale(values: Array) -> Any:
    """Logarithmic; where some ratios are above 1 and some below, with 1 in the middle."""
    from matplotlib.colors import LogNorm

    usable = values[np.isfinite(values) & (values > 0.0)]
    low, high = (float(usable.min()), float(usable.max())) if usable.size else (1.0, 1.0)
    if low <= 1.0 < high:
        high = max(high, 1.0 / low)
        low = 1.0 / high
    return LogNorm(low, high) if low < high else LogNorm(0.5 * low, 2.0 * high)


def _panels(count: int, lines: int) -> tuple[Any, Any]:
    figure = style.new_figure(1.4 + 4.5 * count, 1.6 + 0.36 * min(max(lines, 4), 14))
    return figure, figure.subplots(1, count, squeeze=False)[0]


def _name(axes: Any, words: str, vertical: str) -> None:
    axes.set_title(words, loc="left", fontsize=9.5, color=style.GREY)
    axes.set_xlabel("sensors", fontsize=9)
    axes.set_ylabel(vertical, fontsize=9)


def headline(figure: Any, message: str) -> None:
    """What a figure of several panels says."""
    figure.suptitle(message, x=0.01, ha="left", fontsize=11.5, fontweight="bold", parse_math=False)


def _representative(values: tuple[float, ...], wanted: float) -> float:
    """The paper's choice where the grid has it, else one in the middle."""
    return wanted if wanted in values else sorted(values)[len(values) // 2]


def _two(values: tuple[float, ...], wanted: float) -> list[float]:
    """That choice, and the least value beside it."""
    first = _representative(values, wanted)
    return [first] if first == min(values) else [first, min(values)]


def few_ticks(count: int) -> list[int]:
    """Places to be named: all of few, some of many."""
    return list(range(0, count, -(-count // 12)))


FIGURES: tuple[Drawing, ...] = (
    (
        "boundary",
        boundary,
        "Every trial by certificate ratio and error ratio, with the line at ratio 1 left of which the rule accepts",
    ),
    ("acceptance", acceptance, "Accepted trials by number of sensors and learned perturbation"),
    ("unsafe", unsafe, "Unsafe acceptances by number of sensors and learned perturbation"),
    ("false_rejections", false_rejections, "False rejections by number of sensors and perturbation"),
    ("ratios", ratios, "Median certificate ratio by number of sensors and noise level"),
    ("rules", rules, "Safe, unsafe and falsely rejected parts of the trials by noise level, per rule"),
)
