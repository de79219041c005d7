"""Heatmaps of the sweep over its regimes, at the paper's settings where the grid has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...checks import Array
from ...report import style
from . import Sweep
from .rows import has_radii

# Cells of a heatmap with numbers to read in them.
MOST_NUMBERS = 130


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
