"""Figures of the validation that show numbers: errors and radii, stability, coverage, decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...report import style
from . import Validation

# Colour and marker of each experiment.
LOOK = {
    "Poisson source": (style.BLUE, "o"),
    "Inverse heat": (style.RED, "s"),
    "Tomography": (style.GREEN, "^"),
    "Geophysical coeff.": (style.PINK, "D"),
}
PAPER = {"markerfacecolor": "none", "markeredgecolor": style.BLACK, "markeredgewidth": 1.4, "linestyle": "none"}


def poisson_error_radius(result: Validation) -> Any:
    """True error and radius of every Poisson reconstruction."""
    rows = [row for row in result.coverage_rows() if row["experiment"] == "Poisson source"]
    if not rows:
        return None
    figure, axes = style.axes_of(7.2, 3.4)
    names = [row["candidate"] for row in rows][::-1]
    for i, row in enumerate(rows[::-1]):
        axes.plot([row["error"], row["radius"]], [i, i], color="#b6bcc6", linewidth=2.5, zorder=1)
        axes.plot(row["error"], i, "o", color=style.RED, markersize=8, label="true error" if i == 0 else None)
        axes.plot(row["radius"], i, "D", color=style.BLUE, markersize=7, label="radius" if i == 0 else None)
        axes.annotate(
            f"{style.short(row['sharpness'])} x",
            (row["radius"], i),
            xytext=(9, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xscale("log")
    axes.set_xlim(right=max(row["radius"] for row in rows) * 12)
    axes.set_xlabel("error and radius in the coordinates (log scale)")
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    covered = sum(row["covered"] for row in rows)
    style.title(
        axes, f"Poisson: {covered} of {len(rows)} radii contain the true error", "the number is radius / true error"
    )
    return figure


def heat_stability(result: Validation) -> Any:
    """The stability constant of the heat problem over the observation time."""
    if result.heat_curve is None:
        return None
    figure, axes = style.axes_of(7.2, 4.0)
    times, constants = result.heat_curve
    axes.plot(times, constants, color=style.BLUE, linewidth=2.2, label="femcert, 48 times")
    rows = [r for r in result.stability_rows() if r["experiment"] == "Inverse heat" and r["paper_constant"]]
    marked = [float(row["scenario"].removeprefix("T=")) for row in rows]
    axes.plot(
        marked,
        [row["constant"] for row in rows],
        "o",
        color=style.BLUE,
        markersize=8,
        label="femcert, times of the paper",
    )
    printed = [float(row["paper_constant"]) for row in rows]
    axes.plot(marked, printed, "s", markersize=14, label="paper", **PAPER)
    for t, row in zip(marked, rows, strict=True):
        axes.annotate(
            f"{row['constant']:.3f}",
            (t, row["constant"]),
            xytext=(0, -20),
            textcoords="offset points",
            ha="left",
            fontsize=9,
        )
    axes.set_xlim(0.0, times[-1])
    axes.set_xlabel("observation time T")
    axes.set_ylabel("stability constant C = 1 / sigma_min")
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    growth = constants[-1] / constants[0]
    style.title(axes, f"Heat: later data say less, C grows {growth:.1f}-fold up to T = {times[-1]:g}")
    return figure


def stochastic_sweep(result: Validation) -> Any:
    """Empirical mean square and its high-probability bound over the number of points."""
    rows = result.stochastic_rows()
    if not rows:
        return None
    figure, axes = style.axes_of(7.2, 4.2)
    M = [row["points"] for row in rows]
    axes.plot(M, [row["upper_bound"] for row in rows], "-D", color=style.BLUE, markersize=5, label="upper bound (mean)")
    axes.plot(
        M, [row["empirical_msr"] for row in rows], "-o", color=style.GREEN, markersize=5, label="empirical mean square"
    )
    axes.plot(M, [float(row["paper_upper_bound"]) for row in rows], "s", markersize=12, label="paper", **PAPER)
    axes.plot(M, [float(row["paper_empirical_msr"]) for row in rows], "s", markersize=12, **PAPER)
    axes.axhline(rows[0]["true_msr"], color=style.RED, linestyle=(0, (5, 2)), linewidth=1.4, label="true mean square")
    axes.set_xscale("log")
    axes.set_xticks(M, [str(m) for m in M])
    axes.minorticks_off()
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("validation points M (log scale)")
    axes.set_ylabel("mean squared residual")
    axes.legend(frameon=False, fontsize=9)
    least = min(row["coverage"] for row in rows)
    detail = f"{rows[0]['repetitions']} repetitions each, zeta = {rows[0]['zeta']:g}"
    style.title(axes, f"The bound tightens with M and holds in at least {100 * least:.1f} % of the draws", detail)
    return figure


def error_radius(result: Validation) -> Any:
    """Radius over true error for all reconstructions."""
    rows = result.coverage_rows()
    if not rows:
        return None
    figure, axes = style.axes_of(7.2, 5.4)
    errors, radii = (np.array([row[key] for row in rows]) for key in ("error", "radius"))
    low, high = 0.5 * min(errors.min(), radii.min()), 2.0 * errors.max()
    axes.fill_between([low, high], [low, high], [low, low], color=style.RED, alpha=0.09, linewidth=0)
    axes.plot([low, high], [low, high], color=style.BLACK, linewidth=1.0)
    axes.text(high, low * 1.3, "radius below the true error  ", ha="right", va="bottom", fontsize=9, color=style.RED)
    for name, (colour, marker) in LOOK.items():
        chosen = np.array([row["experiment"] == name for row in rows])
        base = np.array([row["candidate"] == "baseline" for row in rows])
        if chosen.any():
            shape = {"marker": marker, "linestyle": "none", "color": colour, "markersize": 8}
            axes.plot(errors[chosen & ~base], radii[chosen & ~base], label=name, **shape)
            axes.plot(errors[chosen & base], radii[chosen & base], fillstyle="none", markeredgewidth=1.6, **shape)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(low, 2.0 * radii.max())
    axes.set_xlabel("true error (log scale)")
    axes.set_ylabel("radius (log scale)")
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    missed = sorted({row["candidate"] for row in rows if not row["covered"]})
    detail = "hollow: baselines" + (f"; not contained: {', '.join(missed)}" if missed else "")
    style.title(axes, f"{sum(row['covered'] for row in rows)} of {len(rows)} radii contain the true error", detail)
    return figure


def coverage(result: Validation) -> Any:
    """Share of the radii of each experiment that contain the truth."""
    rows = result.coverage_rows()
    if not rows:
        return None
    figure, axes = style.axes_of(7.2, 3.2)
    style.tidy(axes, grid="x")
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(_case(row), []).append(row)
    for i, members in enumerate(list(groups.values())[::-1]):
        inside = sum(row["covered"] for row in members)
        axes.barh(i, inside, color=style.BLUE, height=0.6)
        missed = len(members) - inside
        if missed:
            axes.barh(i, missed, left=inside, color="white", edgecolor=style.RED, hatch="////", height=0.6)
        names = ", ".join(row["candidate"] for row in members if not row["covered"])
        text = f"{inside} of {len(members)}" + (f"; not: {names}" if names else "")
        axes.text(len(members) + 0.06, i, text, va="center", fontsize=9)
    axes.set_yticks(range(len(groups)), list(groups)[::-1])
    widest = max(len(m) for m in groups.values())
    axes.set_xlim(0.0, widest * 1.65)
    axes.set_xticks(range(widest + 1))
    axes.set_xlabel("reconstructions, baseline included")
    total = sum(row["covered"] for row in rows)
    detail = "hatched: the radius is smaller than the true error" if total < len(rows) else ""
    style.title(axes, f"{total} of {len(rows)} radii contain the truth", detail)
    return figure


def decisions(result: Validation) -> Any:
    """The ratio of the two radii for every decision, the paper's beside it."""
    rows = [row for row in result.decision_rows() if row["radius_learned"] is not None]
    if not rows:
        return None
    figure, axes = style.axes_of(8.2, 0.8 + 0.34 * (len(rows) + 2))
    style.tidy(axes, grid="x")
    shown: set[str] = set()
    for i, row in enumerate(rows[::-1]):
        ratio = row["radius_learned"] / row["radius_baseline"]
        colour, marker = (style.GREEN, "o") if row["decision"] == "accept" else (style.RED, "X")
        label = f"{row['decision']}ed here"
        axes.plot(ratio, i, marker, color=colour, markersize=8, label=None if label in shown else label)
        shown.add(label)
        printed = float(row["paper_radius_learned"]) / float(row["paper_radius_baseline"])
        axes.plot(printed, i, "s", markersize=13, label="paper" if i == 0 else None, **PAPER)
    axes.axvline(1.0, color=style.BLACK, linewidth=1.2)
    names = [f"{_case(row)}: {row['candidate']}" for row in rows]
    axes.set_yticks(range(len(rows)), names[::-1], fontsize=9)
    axes.set_xscale("log")
    axes.set_xlim(left=0.4)
    axes.set_xlabel("learned radius / baseline radius (log scale); at most 1 is accepted")
    handles = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    labels = [label for label in ("accepted here", "rejected here", "paper") if label in handles]
    axes.legend([handles[label] for label in labels], labels, frameon=False, fontsize=9, loc="lower right")
    equal = sum(row["decision"] == row["paper_decision"] for row in rows)
    style.title(axes, f"{equal} of {len(rows)} decisions equal the paper's")
    return figure


def _case(row: dict[str, Any]) -> str:
    return str(row["experiment"]) + (f", {row['scenario']}" if row["scenario"] != "default" else "")
