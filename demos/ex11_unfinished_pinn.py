"""
A network that was stopped early: it fits the data, and is refused for its physics and its unfinished training
==============================================================================================================

The source of `ex10_pinn_on_l_shape.py` again, 12 sensors with 10 % noise. This time the training puts the data first (a
weight of 100) and is stopped after 300 steps of Adam. The result seems complete: its temperature fits the sensors
better than the classical baseline does. But that temperature does not belong to the source beside it; the equation
between the two has hardly been learned, and the source is further from the truth than the baseline's.

Two residuals show this without the truth. The physics residual, a guaranteed bound of how far the temperature is from
the one that the equation gives, is ten times the baseline's. And the gradient of the training loss (with that weight in
it), which a candidate reports as its optimality, is far from zero. `OperationalRadius` adds both to the radius, with
weights fixed before; either alone is enough to reject, so a wrong value of the gradient would not help the candidate. A
network of the same size, trained with equal weights until its gradient is more than fifty times smaller (600 steps of
L-BFGS), is accepted by the same rule, and better than the baseline.

Run: ``python demos/ex11_unfinished_pinn.py [DIRECTORY]`` writes the picture ``unfinished_pinn.png``.
"""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import femcert as fc
from femcert.learn import PINN

HERE = Path(__file__).parent
RULE = fc.OperationalRadius(pde=1.0, bc=1.0, optimality=1.0, pde_norm="equilibrated")
NETWORKS = {
    "unfinished PINN": {"data_weight": 100.0, "adam": 300, "lbfgs": 0},
    "finished PINN": {"data_weight": 1.0, "adam": 200, "lbfgs": 600},
}


def load_first_demo():
    """The problem and the data of ex10."""
    spec = importlib.util.spec_from_file_location("ex10", HERE / "ex10_pinn_on_l_shape.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@dataclass
class Results:
    """The problem with its data, the baseline, and for each network its candidate, training record and selection."""

    problem: fc.EllipticSource
    truth: np.ndarray
    data: fc.Data
    baseline: fc.Candidate
    candidates: dict
    records: dict
    selections: dict


def main(seed=0):
    """Both trainings and what the rule makes of them."""
    first = load_first_demo()
    per_side, noise = first.CASES["few noisy sensors"]
    problem, rng = first.build_problem(per_side), np.random.default_rng(seed)
    truth = first.random_source(problem, rng)
    # With a noise level in the units of the sensors, for which the weights of the paper's radius are.
    data = first.noisy_data(problem, truth, noise, rng)
    baseline = fc.Tikhonov(choose="discrepancy")(problem, data)
    candidates, records, selections = {}, {}, {}
    for name, options in NETWORKS.items():
        pinn = PINN(width=20, points=600, seed=seed, name=name, **options)
        candidates[name] = pinn(problem, data)
        records[name] = pinn.record
        selections[name] = fc.no_harm(problem, data, baseline=baseline, learned=candidates[name], rule=RULE)
    return Results(problem, truth, data, baseline, candidates, records, selections)


def parts(results):
    """The radius of each candidate as the sum of its parts, times the stability constant."""
    selections = results.selections
    certificates = {"baseline": selections["unfinished PINN"].baseline}
    certificates |= {name: selection.learned for name, selection in selections.items()}
    table = {}
    for name, certificate in certificates.items():
        residuals, C = certificate.residuals, certificate.stability.constant.value
        values = {"noise": results.data.noise_level, "data": residuals.data.value, "physics": residuals.pde.value}
        values["optimality"] = residuals.optimality.value
        table[name] = {part: C * value for part, value in values.items()}
    return table


def check(results):
    """What this demo claims."""
    early, late = results.selections.values()
    table = parts(results)
    base, unfinished = table["baseline"], table["unfinished PINN"]
    for selection in (early, late):
        for certificate, row in ((selection.baseline, base), (selection.learned, table[selection.learned.name])):
            assert certificate.radius.side == "upper"
            assert certificate.contains(results.truth)
            # The parts are the radius: boundary values hold, and the source is of the class.
            assert abs(certificate.radius.value - sum(row.values())) < 1e-6 * certificate.radius.value
    assert unfinished["data"] < base["data"]
    assert unfinished["physics"] > 5.0 * base["physics"]
    assert unfinished["optimality"] > 50.0 * table["finished PINN"]["optimality"]
    assert not early.accepted
    # Either of the two would have been enough.
    for part in ("physics", "optimality"):
        assert sum(unfinished.values()) - unfinished[part] > sum(base.values())
    assert early.learned.error(results.truth) > 2.0 * early.baseline.error(results.truth)
    assert late.accepted
    assert late.learned.error(results.truth) < late.baseline.error(results.truth)


def draw(results, path):
    """The training, the three sources, and the radii by parts."""
    from femcert.report import style
    from femcert.report.fields import draw_image

    figure = style.new_figure(14.0, 7.2)
    message = "An unfinished network fits the data; its physics and its gradient give it away"
    figure.suptitle(message, fontsize=14, fontweight="bold")
    top, bottom = figure.subfigures(2, 1)
    maps = top.subplots(1, 4)
    norm = results.problem.parameters.norm
    fields = {"truth (unknown)": results.truth, "baseline": results.baseline.parameter}
    fields |= {name: candidate.parameter for name, candidate in results.candidates.items()}
    for axes, (name, field) in zip(maps, fields.items(), strict=True):
        most = 1.1 * results.truth.max()
        image = draw_image(axes, results.problem.basis, field, vmin=-0.2 * most, vmax=most)
        axes.set_title(name, fontsize=11)
        away = norm(field - results.truth) / norm(results.truth)
        axes.set_xlabel(f"{100 * away:.0f} % from the truth" if away else "", fontsize=10)
        axes.set(xticks=[], yticks=[], frame_on=False)
    top.colorbar(image, ax=list(maps), label="source q", aspect=25, pad=0.01, extend="both")
    left, right = bottom.subplots(1, 2, width_ratios=[1, 1.5])
    draw_training(left, results)
    draw_parts(right, results)
    style.save(figure, path)


def draw_training(axes, results):
    """Data and physics terms of the loss of both trainings."""
    from femcert.report import style

    for name, line in (("unfinished PINN", "-"), ("finished PINN", (0, (4, 2)))):
        record = results.records[name]
        for term, colour in (("data", style.BLUE), ("physics", style.RED)):
            label = f"{term}, {name.split()[0]}"
            axes.plot(record.steps, record.losses[term], color=colour, linestyle=line, label=label)
    axes.axvline(300, color=style.GREY, linewidth=0.8)
    axes.text(303, 3.0, "stopped", fontsize=9, color=style.GREY, va="center")
    axes.set_yscale("log")
    axes.set_xlabel("training step")
    axes.set_ylabel("relative mean square")
    style.tidy(axes)
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="lower left", bbox_to_anchor=(0.0, 1.0))


def draw_parts(axes, results):
    """Stacked bars: what the radius of each candidate is made of."""
    from femcert.report import style

    table = parts(results)
    colours = {"noise": style.GREY, "data": style.BLUE, "physics": style.RED, "optimality": style.ORANGE}
    names = list(table)[::-1]
    left = np.zeros(len(names))
    for part, colour in colours.items():
        width = np.array([table[name][part] for name in names])
        axes.barh(names, width, 0.55, left=left, color=colour, label=part)
        left += width
    accepted = {name: selection.accepted for name, selection in results.selections.items()}
    for place, name in enumerate(names):
        words = {True: "accepted", False: "rejected"}.get(accepted.get(name), "")
        axes.text(left[place] + 0.01 * left.max(), place, f"{left[place]:.1f}  {words}", va="center", fontsize=11)
    axes.set_xlim(0.0, 1.22 * left.max())
    axes.set_xlabel("radius, by parts (L2 norm)")
    style.tidy(axes, grid="x")
    axes.legend(frameon=False, fontsize=9, ncols=4, loc="lower left", bbox_to_anchor=(0.0, 1.0))


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    directory.mkdir(parents=True, exist_ok=True)
    results = main()
    for selection in results.selections.values():
        print(selection, end="\n\n")
    check(results)
    draw(results, directory / "unfinished_pinn.png")
