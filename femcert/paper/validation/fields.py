"""Figures of the validation that show fields: reconstructions, the tomography images, the residual field."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...report import style
from ...report.fields import draw_image, draw_line, draw_surface
from . import Outcome, Validation

CANDIDATE_LOOK: dict[str, dict[str, Any]] = {
    "learned good": {"color": style.GREEN, "linewidth": 1.6},
    "shifted learned": {"color": style.RED, "linewidth": 1.6, "linestyle": (0, (4, 1.5))},
    "unfinished PINN": {"color": style.PINK, "linewidth": 1.6, "linestyle": (0, (1, 1))},
    "hallucinated high freq.": {"color": style.PINK, "linewidth": 1.1},
    "hallucinated learned": {"color": style.PINK, "linewidth": 1.6},
}


def find(result: Validation, name: str, scenario: str = "default") -> Outcome | None:
    """The outcome of a scenario, or None where it was not run."""
    pairs = ((o.scenario.setup.name, o.scenario.name) for o in result.outcomes)
    return next((o for o, pair in zip(result.outcomes, pairs, strict=True) if pair == (name, scenario)), None)


def decided(outcome: Outcome) -> str:
    """Which candidates were accepted, rejected and left undecided, as a sentence."""
    words = []
    for status in ("accepted", "rejected", "undecided"):
        names = [v.candidate.name for v in outcome.verdicts if v.selection.status == status]
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


def _lines(outcome: Outcome, name: str, label: str, transform: Any = lambda q: q) -> Any:
    figure, axes = style.axes_of(7.6, 4.4)
    basis = outcome.scenario.problem.parameters.basis
    radii = dict(outcome.certificates())
    for verdict in outcome.verdicts:
        text = f"{verdict.candidate.name}: {verdict.decision}, R = {_radius(radii, verdict.candidate.name)}"
        look = CANDIDATE_LOOK[verdict.candidate.name]
        draw_line(axes, basis, transform(verdict.candidate.parameter), label=text, **look)
    base = f"baseline, R = {_radius(radii, 'baseline')}"
    draw_line(axes, basis, transform(outcome.baseline.parameter), label=base, **style.BASELINE)
    draw_line(axes, basis, transform(outcome.scenario.true_field), label="truth", **style.TRUTH)
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel("x")
    axes.set_ylabel(label)
    axes.legend(frameon=False, fontsize=8.5, ncols=2, handlelength=3.2, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    accepted = sum(v.decision == "accept" for v in outcome.verdicts)
    message = f"{name}: {accepted or 'none'} of {len(outcome.verdicts)} learned candidates accepted"
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
    for v in outcome.verdicts:
        text = f"{v.candidate.name}\n{v.decision}, R = {_radius(radii, v.candidate.name)}"
        panels.append((text, v.candidate.parameter))
    panels.append(("safe output\n", outcome.verdicts[-1].selection.parameter))
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
    safe = outcome.verdicts[-1].selection.parameter
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
    sweep = result.sweep
    if sweep is None:
        return None
    figure, axes = style.axes_of(7.2, 3.6)
    draw_line(axes, sweep.basis, sweep.field, color=style.BLUE, linewidth=1.8)
    rms = np.sqrt(sweep.true_msr)
    axes.axhline(rms, color=style.RED, linestyle=(0, (5, 2)), linewidth=1.4)
    axes.text(0.3, rms + 0.04, f"root mean square {rms:.3f}", color=style.RED, fontsize=9)
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel("x")
    axes.set_ylabel("physics residual r(x)")
    detail = f"mean square {sweep.true_msr:.6f}, largest square (envelope) {sweep.envelope:.6f}"
    peak = np.abs(sweep.basis.doflocs[0] - 0.72) <= 0.1
    share = (sweep.field[peak] ** 2).sum() / (sweep.field**2).sum()
    style.title(axes, f"{100 * share:.0f} % of the squared residual sits within 0.1 of the peak at x = 0.72", detail)
    return figure


def _headline(figure: Any, outcome: Outcome) -> None:
    errors = {v.candidate.name: v.relative_error for v in outcome.verdicts}
    base = outcome.scenario.relative_error(outcome.baseline.parameter)
    parts = ", ".join(f"{name} {100 * e:.1f} %" for name, e in {"baseline": base, **errors}.items())
    figure.suptitle(f"Tomography, relative errors: {parts}", x=0.01, ha="left", fontsize=12, fontweight="bold")


def _limits(fields: list[Any]) -> tuple[float, float]:
    return float(min(f.min() for f in fields)), float(max(f.max() for f in fields))
