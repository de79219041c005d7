"""Figures of the validation: decisions, radii and errors, reconstructions, stability, the sampled residual."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..report import style
from ..report.fields import draw_image, draw_line, draw_surface
from ..report.pictures import Drawing
from .outcome import Row, ScenarioResult, Validation

# Colour and marker of each experiment.
LOOK = {
    "Poisson source": (style.BLUE, "o"),
    "Inverse heat": (style.RED, "s"),
    "Tomography": (style.GREEN, "^"),
    "Geophysical coeff.": (style.PINK, "D"),
}
PAPER = {"markerfacecolor": "none", "markeredgecolor": style.BLACK, "markeredgewidth": 1.4, "linestyle": "none"}
# Line of each candidate.
CANDIDATE_LOOK: dict[str, dict[str, Any]] = {
    "learned good": {"color": style.GREEN, "linewidth": 1.6},
    "shifted learned": {"color": style.RED, "linewidth": 1.6, "linestyle": (0, (4, 1.5))},
    "unfinished PINN": {"color": style.PINK, "linewidth": 1.6, "linestyle": (0, (1, 1))},
    "hallucinated high freq.": {"color": style.PINK, "linewidth": 1.1},
    "hallucinated learned": {"color": style.PINK, "linewidth": 1.6},
}


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
        _note(axes, f"{style.short(row['sharpness'])} x", (row["radius"], i), (9, 0), va="center")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xscale("log")
    axes.set_xlim(right=max(row["radius"] for row in rows) * 12)
    axes.set_xlabel("error and radius in the coordinates (log scale)")
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    covered = sum(row["covered"] for row in rows)
    message = f"Poisson: {covered} of {len(rows)} radii contain the true error"
    style.title(axes, message, "the number is radius / true error")
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
    computed = [row["constant"] for row in rows]
    axes.plot(marked, computed, "o", color=style.BLUE, markersize=8, label="femcert, times of the paper")
    printed = [float(row["paper_constant"]) for row in rows]
    axes.plot(marked, printed, "s", markersize=14, label="paper", **PAPER)
    for t, constant in zip(marked, computed, strict=True):
        _note(axes, f"{constant:.3f}", (t, constant), (0, -20), ha="left")
    axes.set_xlim(0.0, times[-1])
    axes.set_xlabel("observation time T")
    axes.set_ylabel("stability constant C = 1 / sigma_min")
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    growth = constants[-1] / constants[0]
    style.title(axes, f"Heat: later data say less, C grows {growth:.1f}-fold up to T = {times[-1]:g}")
    return figure


def sampling_curve(result: Validation) -> Any:
    """Empirical mean square and its high-probability bound over the number of points."""
    rows = result.sampling_rows()
    if not rows:
        return None
    figure, axes = style.axes_of(7.2, 4.2)
    M = [row["points"] for row in rows]
    bound, paper_bound = ([float(row[name]) for row in rows] for name in ("upper_bound", "paper_upper_bound"))
    mean, paper_mean = ([float(row[name]) for row in rows] for name in ("empirical_msr", "paper_empirical_msr"))
    axes.plot(M, bound, "-D", color=style.BLUE, markersize=5, label="upper bound (mean)")
    axes.plot(M, mean, "-o", color=style.GREEN, markersize=5, label="empirical mean square")
    axes.plot(M, paper_bound, "s", markersize=12, label="paper", **PAPER)
    axes.plot(M, paper_mean, "s", markersize=12, **PAPER)
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
    groups: dict[str, list[Row]] = {}
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


def _note(axes: Any, text: str, at: tuple[float, float], offset: tuple[float, float], **alignment: str) -> None:
    """Words beside a point, some printer's points away from it."""
    axes.annotate(text, at, xytext=offset, textcoords="offset points", fontsize=9, **alignment)


def _case(row: Row) -> str:
    return str(row["experiment"]) + (f", {row['scenario']}" if row["scenario"] != "default" else "")


def find(result: Validation, name: str, scenario: str = "default") -> ScenarioResult | None:
    """The outcome of a scenario, or None where it was not run."""
    pairs = ((o.scenario.experiment.name, o.scenario.name) for o in result.scenarios)
    return next((o for o, pair in zip(result.scenarios, pairs, strict=True) if pair == (name, scenario)), None)


def decided(outcome: ScenarioResult) -> str:
    """Which candidates were accepted, rejected and left undecided, as a sentence."""
    words = []
    for status in ("accepted", "rejected", "undecided"):
        names = [v.candidate.name for v in outcome.candidates if v.selection.status == status]
        if names:
            words.append(f"{status}: {', '.join(names)}")
    return "; ".join(words)


def poisson_reconstruction(result: Validation) -> Any:
    """Sources of the Poisson experiment."""
    outcome = find(result, "poisson")
    return outcome and _lines(outcome, "Poisson source", "source q(x)")


def heat_reconstruction(result: Validation) -> Any:
    """Initial values of the heat experiment at T = 0.08."""
    outcome = find(result, "heat", "T=0.08")
    return outcome and _lines(outcome, "Inverse heat, T = 0.08", "initial value q(x)")


def coefficient_reconstruction(result: Validation) -> Any:
    """Conductivities of the coefficient experiment."""
    outcome = find(result, "coefficient")
    return outcome and _lines(outcome, "Coefficient", "conductivity a(x) = exp(q)", transform=np.exp)


def _lines(outcome: ScenarioResult, name: str, label: str, transform: Any = lambda q: q) -> Any:
    figure, axes = style.axes_of(7.6, 4.4)
    basis = outcome.scenario.problem.parameters.basis
    radii = dict(outcome.certificates())
    for found in outcome.candidates:
        text = f"{found.candidate.name}: {found.decision}, R = {_radius(radii, found.candidate.name)}"
        look = CANDIDATE_LOOK[found.candidate.name]
        draw_line(axes, basis, transform(found.candidate.parameter), label=text, **look)
    base = f"baseline, R = {_radius(radii, 'baseline')}"
    draw_line(axes, basis, transform(outcome.baseline.parameter), label=base, **style.BASELINE)
    draw_line(axes, basis, transform(outcome.scenario.true_field), label="truth", **style.TRUTH)
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel("x")
    axes.set_ylabel(label)
    axes.legend(frameon=False, fontsize=8.5, ncols=2, handlelength=3.2, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    accepted = sum(v.decision == "accept" for v in outcome.candidates)
    message = f"{name}: {accepted or 'none'} of {len(outcome.candidates)} learned candidates accepted"
    style.title(axes, message, decided(outcome))
    return figure


def _radius(radii: dict[str, Any], name: str) -> str:
    return style.short(radii[name].radius.value) if name in radii else "none"


def tomography_images(result: Validation) -> Any:
    """Truth, baseline, candidates and the safe output with one colour scale."""
    outcome = find(result, "tomography")
    if outcome is None:
        return None
    radii = dict(outcome.certificates())
    panels = [
        ("truth\n", outcome.scenario.true_field),
        (f"baseline\nR = {_radius(radii, 'baseline')}", outcome.baseline.parameter),
    ]
    for v in outcome.candidates:
        text = f"{v.candidate.name}\n{v.decision}, R = {_radius(radii, v.candidate.name)}"
        panels.append((text, v.candidate.parameter))
    panels.append(("safe output\n", outcome.candidates[-1].selection.parameter))
    low, high = _limits([values for _, values in panels])
    figure = style.new_figure(11.5, 3.1)
    row = figure.subplots(1, len(panels), sharex=True, sharey=True)
    for axes, (name, values) in zip(row, panels, strict=True):
        image = draw_image(axes, outcome.scenario.problem.basis, values, vmin=low, vmax=high)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("x (pixels)")
    row[0].set_ylabel("y (pixels)")
    figure.colorbar(image, ax=list(row), label="image q", shrink=0.8)
    _headline(figure, outcome)
    return figure


def tomography_surfaces(result: Validation) -> Any:
    """Truth and safe output as surfaces."""
    outcome = find(result, "tomography")
    if outcome is None:
        return None
    safe = outcome.candidates[-1].selection.parameter
    low, high = _limits([outcome.scenario.true_field, safe])
    figure = style.new_figure(9.6, 4.4)
    for i, (name, values) in enumerate((("truth", outcome.scenario.true_field), ("safe output", safe))):
        axes = figure.add_subplot(1, 2, i + 1, projection="3d")
        draw_surface(axes, outcome.scenario.problem.basis, values, vmin=low, vmax=high)
        axes.set(xlabel="x (pixels)", ylabel="y (pixels)", zlabel="image q", zlim=(low, high))
        axes.set_title(name, fontsize=10)
        axes.set_box_aspect((1.0, 1.0, 0.62), zoom=0.95)
        axes.view_init(elev=32, azim=-58)
    error = outcome.scenario.relative_error(safe)
    text = f"Tomography: the safe output differs from the truth by {100 * error:.1f} %"
    figure.suptitle(text, x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure


def stochastic_field(result: Validation) -> Any:
    """The residual field that the sweep samples."""
    curve = result.sampling
    if curve is None:
        return None
    figure, axes = style.axes_of(7.2, 3.6)
    draw_line(axes, curve.basis, curve.field, color=style.BLUE, linewidth=1.8)
    rms = np.sqrt(curve.true_msr)
    axes.axhline(rms, color=style.RED, linestyle=(0, (5, 2)), linewidth=1.4)
    axes.text(0.3, rms + 0.04, f"root mean square {rms:.3f}", color=style.RED, fontsize=9)
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel("x")
    axes.set_ylabel("physics residual r(x)")
    detail = f"mean square {curve.true_msr:.6f}, largest square (envelope) {curve.envelope:.6f}"
    peak = np.abs(curve.basis.doflocs[0] - 0.72) <= 0.1
    share = (curve.field[peak] ** 2).sum() / (curve.field**2).sum()
    style.title(axes, f"{100 * share:.0f} % of the squared residual sits within 0.1 of the peak at x = 0.72", detail)
    return figure


def _headline(figure: Any, outcome: ScenarioResult) -> None:
    errors = {v.candidate.name: v.relative_error for v in outcome.candidates}
    base = outcome.scenario.relative_error(outcome.baseline.parameter)
    parts = ", ".join(f"{name} {100 * e:.1f} %" for name, e in {"baseline": base, **errors}.items())
    figure.suptitle(f"Tomography, relative errors: {parts}", x=0.01, ha="left", fontsize=12, fontweight="bold")


def _limits(fields: list[Any]) -> tuple[float, float]:
    return float(min(f.min() for f in fields)), float(max(f.max() for f in fields))


FIGURES: tuple[Drawing, ...] = (
    ("decisions", decisions, "Ratio of learned to baseline radius for all decisions, with the paper's ratios"),
    ("error_radius", error_radius, "Radius over true error for all reconstructions, with the diagonal"),
    ("coverage", coverage, "Number of radii that contain the truth, by experiment"),
    ("poisson_reconstruction", poisson_reconstruction, "Poisson sources: truth, baseline and candidates"),
    ("poisson_error_radius", poisson_error_radius, "Poisson: true error and radius of every reconstruction"),
    ("heat_reconstruction", heat_reconstruction, "Initial values at T = 0.08: truth, baseline and candidates"),
    ("heat_stability", heat_stability, "Stability constant of the heat problem over the observation time"),
    ("tomography_images", tomography_images, "Tomography: truth, baseline, candidates and safe output as images"),
    ("tomography_surfaces", tomography_surfaces, "Tomography: truth and safe output as surfaces"),
    ("coefficient_reconstruction", coefficient_reconstruction, "Conductivities: truth, baseline and candidates"),
    ("stochastic_field", stochastic_field, "The residual field that is sampled"),
    ("stochastic_sweep", sampling_curve, "Empirical mean square and upper bound over the number of points"),
)
