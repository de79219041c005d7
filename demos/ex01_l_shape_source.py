"""
A learned map on the L-shape: accepted for sources like those of its training, rejected for others
==================================================================================================

A heat source on an L-shaped plate is recovered from 48 local averages of the temperature, with 5 % noise. The learned
candidate is a linear map from sensor values to sources, trained on 2,000 simulated sources in the lower arm of the L.
For sources there it is better than the classical baseline: it fits the data better, its radius is smaller, and it is
accepted. For sources in the right arm its training does not apply: it misses the data, and the baseline is returned.
The selector does not use the truth; the demo does, and checks both decisions on 60 sources in each arm.

Run: ``python demos/ex01_l_shape_source.py [DIRECTORY]`` writes the picture ``l_shape_source.png``.
"""

import sys
from pathlib import Path

import numpy as np
from skfem import Basis, ElementTriP1

import femcert as fc

HERE = Path(__file__).parent
ARMS = {"lower": ((-0.85, -0.85), (-0.15, 0.0)), "right": ((0.0, 0.15), (0.85, 0.85))}
MODES, NOISE, SOURCES = 20, 0.05, 60


def build_problem():
    """-Laplace u = q on the L-shape, u = 0 on its boundary; 48 averages of u; 20 Laplace eigenmodes for q."""
    basis = Basis(fc.load_mesh(HERE.parent / "meshes" / "l_shape.msh"), ElementTriP1())
    return fc.EllipticSource(
        basis, parameters=fc.EigenmodeSpace(basis, MODES), sensors=fc.AverageSensors(basis, sensor_grid(), radius=0.08)
    )


def sensor_grid():
    """A regular grid of points inside the L."""
    x, y = np.meshgrid(*2 * [np.linspace(-0.875, 0.875, 8)])
    inside = (x < 0) | (y > 0)
    return np.column_stack([x[inside], y[inside]])


def random_sources(problem, arm, rng, count):
    """Coefficients of random sources: two hot spots each, in one arm of the L."""
    x = problem.basis.doflocs[:, :, None, None]
    spots = rng.uniform(*ARMS[arm], (count, 2, 2)).transpose(2, 0, 1)[:, None]
    heat = rng.uniform(2.0, 5.0, (count, 2))
    fields = (heat * np.exp(-((x - spots) ** 2).sum(axis=0) / 0.08)).sum(axis=2)
    space = problem.parameters
    return space.solve_gram(space.matrix.T @ (space.weight @ fields)).T


class LearnedMap:
    """Least-squares map from sensor values to coefficients, trained on sources in the lower arm."""

    def __init__(self, problem, samples=2000, seed=1):
        rng = np.random.default_rng(seed)
        coefficients = random_sources(problem, "lower", rng, samples)
        clean = coefficients @ problem.forward_matrix().T
        noisy = clean + NOISE * np.std(clean) * rng.standard_normal(clean.shape)
        self.weights = np.linalg.lstsq(noisy, coefficients, rcond=None)[0]

    def __call__(self, problem, data):
        return fc.Candidate.from_coefficients(problem, data.values @ self.weights)


def select(problem, learned, truth, seed):
    """Data, both candidates and the selection for one true source."""
    data = problem.simulate(truth, noise=NOISE, seed=seed)
    baseline = fc.Tikhonov(choose="discrepancy")(problem, data)
    candidate = learned(problem, data)
    return baseline, candidate, fc.no_harm(
        problem, data, baseline=baseline, learned=candidate, rule=fc.ResidualRadius()
    )


def main(sources=SOURCES):
    """For each arm: truth, baseline, candidate and selection for every source."""
    problem = build_problem()
    learned = LearnedMap(problem)
    trials = {}
    for arm in ARMS:
        truths = random_sources(problem, arm, np.random.default_rng(100), sources)
        fields = [problem.parameters.field(c) for c in truths]
        trials[arm] = [(truth, *select(problem, learned, truth, seed)) for seed, truth in enumerate(fields)]
    return problem, trials


def counts(trials):
    """Accepted, really better, and accepted although worse, of the trials of one arm."""
    better = [s.learned.error(truth) < s.baseline.error(truth) for truth, _, _, s in trials]
    accepted = [s.accepted for *_, s in trials]
    unsafe = sum(a and not b for a, b in zip(accepted, better, strict=True))
    return sum(accepted), sum(better), unsafe


def draw(problem, trials, path):
    """The first source of each arm: truth, baseline, learned, and the radii with the true errors."""
    from matplotlib.figure import Figure

    from femcert.report.fields import draw_image

    figure = Figure(figsize=(13, 6.4), layout="constrained", dpi=130)
    figure.suptitle("A learned map is taken where it was trained, and refused where it was not", fontweight="bold")
    rows = figure.subplots(2, 4, width_ratios=[1, 1, 1, 1.1])
    for row, (arm, results) in zip(rows, trials.items(), strict=True):
        truth, baseline, candidate, selection = results[0]
        fields = {"truth": truth, "baseline": baseline.parameter, "learned": candidate.parameter}
        top = max(np.abs(field).max() for field in fields.values())
        for axes, (name, field) in zip(row, fields.items(), strict=False):
            image = draw_image(axes, problem.basis, field, vmin=-top, vmax=top, cmap="RdBu_r")
            chosen = name == ("learned" if selection.accepted else "baseline")
            axes.set_title(f"{name}{' (selected)' if chosen else ''}", fontweight="bold" if chosen else None)
            axes.set_xticks([-1, 0, 1], labels=["-1", "0", "1"])
            axes.set_yticks([-1, 0, 1])
        row[0].plot(*sensor_grid().T, "k.", markersize=3, label="sensors")
        row[0].set_ylabel(f"source in the {arm} arm\ny")
        row[0].legend(loc="lower right", fontsize=8, frameon=False)
        figure.colorbar(image, ax=row[:3].tolist(), label="source q", shrink=0.8)
        draw_radii(row[3], truth, selection, counts(results), len(results))
    rows[1][0].set_xlabel("x")
    figure.savefig(path)


def draw_radii(axes, truth, selection, tally, total):
    """Radius and true error of both candidates as bars."""
    names, certificates = ("baseline", "learned"), (selection.baseline, selection.learned)
    place = np.arange(2)
    axes.barh(place + 0.18, [c.radius.value for c in certificates], 0.34, color="#0072B2", label="radius (known)")
    axes.barh(place - 0.18, [c.error(truth) for c in certificates], 0.34, color="#E69F00", label="true error (unknown)")
    axes.set_yticks(place, labels=names)
    axes.set_xlabel("distance in the L2 norm")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)
    accepted, better, _ = tally
    decision = selection.status
    tail = f"{accepted} accepted, {better} really better"
    axes.set_title(f"learned {decision}; of {total} such sources\n{tail}", fontsize=10)


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    directory.mkdir(parents=True, exist_ok=True)
    problem, trials = main()
    for arm, results in trials.items():
        print(f"sources in the {arm} arm: accepted %d, really better %d, accepted although worse %d" % counts(results))
        print(results[0][-1], end="\n\n")
    draw(problem, trials, directory / "l_shape_source.png")
