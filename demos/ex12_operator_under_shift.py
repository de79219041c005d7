"""
A neural operator with more noise than in its training, and without some of its sensors
=======================================================================================

On a disc, a network maps 36 local averages of the temperature to the heat source. It was trained on 1,000 simulated
sources, one hot spot each, with 1 % noise. On data like these it is better than the classical baseline in nearly
every trial. Then the data shift. With 5 and 20 % noise the network weighs its sensors as if the noise were 1 %. When
sensors fail, their mean over the training data is put in for them, which the network takes for measurements; one lost
sensor is enough.

Two rules judge it, on the data that were really measured. `ResidualRadius` detects lost sensors, because the source no
longer explains the ones that are left. It does not detect noise: both radii are then mostly noise, the operator's is
the smaller one since it fits closer, and at 20 % it is taken in every trial though worse in more than half of them. A
smaller radius is no proof of a smaller error. `Dominance` requires a proof, and never takes the operator where it is
worse. These data prove nothing either way, not even without a shift, so it never takes the operator.

Here each shift is tried 40 times. `tests/benchmarks/operator_trials.py` does it 200 times, and its table is
`demos/operator_under_shift.csv`: with 20 % noise the operator is worse in 103 trials, `ResidualRadius` takes it in all
200, and `Dominance` rejects it in all 200.

Run: ``python demos/ex12_operator_under_shift.py [DIRECTORY]`` writes the picture ``operator_under_shift.png``.
"""

import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from skfem import Basis, ElementTriP1

import femcert as fc
from femcert.learn import NeuralOperator

HERE = Path(__file__).parent
MODES, TRAINED, TRIALS = 12, 0.01, 40
RULES = {"ResidualRadius": fc.ResidualRadius(), "Dominance": fc.Dominance()}
# Noise of the data, and number of lost sensors.
SHIFTS = {
    "at home": (0.01, 0),
    "5 % noise": (0.05, 0),
    "20 % noise": (0.2, 0),
    "1 sensor lost": (0.01, 1),
    "4 sensors lost": (0.01, 4),
    "12 sensors lost": (0.01, 12),
}


@dataclass
class Tally:
    """Relative errors ``(trials, 2)`` of baseline and operator, what each rule accepted, the first trial in full."""

    errors: list = field(default_factory=list)
    accepted: dict = field(default_factory=lambda: {name: [] for name in RULES})
    example: tuple = ()

    @property
    def worse(self):
        """Where the operator is worse than the baseline."""
        errors = np.array(self.errors)
        return errors[:, 1] > errors[:, 0]


@cache
def build_problem():
    """-Laplace u = q on the disc, u = 0 on its rim; averages of u on three rings and in the middle."""
    basis = Basis(fc.load_mesh(HERE.parent / "meshes" / "disc.msh"), ElementTriP1())
    sensors = fc.AverageSensors(basis, sensor_rings(), radius=0.06)
    return fc.EllipticSource(basis, parameters=fc.EigenmodeSpace(basis, MODES), sensors=sensors)


def sensor_rings():
    """36 points."""
    rings = [np.zeros((1, 2))]
    for radius, count in ((0.35, 7), (0.65, 12), (0.88, 16)):
        angle = 2.0 * np.pi * np.arange(count) / count
        rings.append(radius * np.column_stack([np.cos(angle), np.sin(angle)]))
    return np.vstack(rings)


def random_sources(count, rng):
    """Coordinates of a hot spot each, anywhere within 0.6 of the middle."""
    problem = build_problem()
    space, x = problem.parameters, problem.basis.doflocs
    radius, angle = 0.6 * np.sqrt(rng.random(count)), 2.0 * np.pi * rng.random(count)
    spots = radius * np.array([np.cos(angle), np.sin(angle)])
    distances = ((x[:, :, None] - spots[:, None]) ** 2).sum(axis=0)
    fields = rng.uniform(2.0, 4.0, count) * np.exp(-distances / 0.15)
    return space.solve_gram(space.matrix.T @ (space.weight @ fields)).T


def kept_sensors(lost):
    """Which sensors still work: those lost are the same in all trials."""
    return np.sort(np.random.default_rng(1).permutation(len(sensor_rings()))[lost:])


def shifted_problem(lost):
    """The problem with the sensors that are left."""
    whole = build_problem()
    if not lost:
        return whole
    left = fc.MatrixSensors(whole.sensors.matrix[kept_sensors(lost)])
    return fc.EllipticSource(whole.basis, parameters=whole.parameters, sensors=left)


def with_fill_in(operator, kept):
    """The operator as a solver for the sensors that are left: for the others it reads the mean of its training."""

    def solve(problem, data):
        values = operator.mean_values
        values[kept] = data.values
        return fc.Candidate.from_coefficients(problem, operator.coefficients(values), name="operator")

    return solve


def noisy_data(problem, coefficients, noise, rng):
    """Gaussian noise, of which the standard deviation is known."""
    exact = problem.forward_matrix() @ coefficients
    deviation = noise * np.linalg.norm(exact) / np.sqrt(exact.size)
    return fc.Data.gaussian(exact + deviation * rng.standard_normal(exact.size), std=deviation, confidence=0.999)


def run(operator, noise, lost, trials):
    """All trials of one shift."""
    problem, tally = shifted_problem(lost), Tally()
    learned, norm = with_fill_in(operator, kept_sensors(lost)), problem.parameters.norm
    for seed, coefficients in enumerate(random_sources(trials, np.random.default_rng(5))):
        truth = problem.parameters.field(coefficients)
        data = noisy_data(problem, coefficients, noise, np.random.default_rng(seed))
        candidates = fc.Tikhonov(choose="discrepancy")(problem, data), learned(problem, data)
        tally.errors.append([norm(c.parameter - truth) / norm(truth) for c in candidates])
        tally.example = tally.example or (truth, *candidates)
        for name, rule in RULES.items():
            selection = fc.no_harm(problem, data, baseline=candidates[0], learned=candidates[1], rule=rule)
            tally.accepted[name].append(selection.accepted)
    return tally


def main(trials=TRIALS):
    """Train once, then meet all shifts."""
    operator = NeuralOperator(width=48)
    operator.fit(build_problem(), sampler=random_sources, count=1000, noise=TRAINED, steps=300, rate=3e-3)
    return {name: run(operator, *shift, trials) for name, shift in SHIFTS.items()}


def check(tallies):
    """What this demo claims."""
    trials = len(tallies["at home"].errors)
    worse = {name: int(tally.worse.sum()) for name, tally in tallies.items()}
    taken = {name: np.sum(tally.accepted["ResidualRadius"]) for name, tally in tallies.items()}
    assert worse["at home"] <= 0.05 * trials
    assert taken["at home"] >= 0.9 * trials
    assert worse["20 % noise"] > 0.4 * trials
    assert taken["20 % noise"] >= 0.9 * trials
    for name in ("1 sensor lost", "4 sensors lost", "12 sensors lost"):
        assert worse[name] > 0.7 * trials
        assert taken[name] < 0.3 * trials
    for tally in tallies.values():
        accepted = np.array(tally.accepted["Dominance"])
        assert not np.any(accepted & tally.worse)
        assert np.sum(~accepted) >= tally.worse.sum()


def table(tallies):
    """A line for each shift."""
    lines = [f"{'':16}{'errors':>17}{'worse':>8}   accepted (though worse) by {' and '.join(RULES)}"]
    for name, tally in tallies.items():
        base, learned = 100.0 * np.mean(tally.errors, axis=0)
        counts = [f"{sum(a)} ({np.sum(np.array(a) & tally.worse)})" for a in tally.accepted.values()]
        lines.append(f"{name:16}{base:7.1f} % {learned:6.1f} %{tally.worse.sum():8}   {'   '.join(counts)}")
    return "\n".join(lines)


def draw(tallies, path):
    """Reconstructions of one source, mean errors, and what the rules did."""
    from femcert.report import style

    figure = style.new_figure(14.5, 7.6)
    message = "A trained network under shift: the radius notices lost sensors, only dominance is safe from noise, too"
    figure.suptitle(message, fontsize=14, fontweight="bold")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.0, 1.0])
    draw_maps(top, tallies)
    left, right = bottom.subplots(1, 2, width_ratios=[1, 1.25])
    draw_errors(left, tallies)
    draw_decisions(right, tallies)
    style.save(figure, path)


def draw_maps(figure, tallies):
    """Truth, baseline and operator at home, and the operator abroad; sensors that are lost are crossed out."""
    from femcert.report.fields import draw_image

    problem = build_problem()
    truth, baseline, home = tallies["at home"].example
    panels = {
        "truth (unknown)": (truth, 0),
        "baseline, at home": (baseline.parameter, 0),
        "operator, at home": (home.parameter, 0),
        "operator, 20 % noise": (tallies["20 % noise"].example[2].parameter, 0),
        "operator, 4 sensors lost": (tallies["4 sensors lost"].example[2].parameter, 4),
    }
    grid, norm = figure.subplots(1, len(panels)), problem.parameters.norm
    for axes, (name, (field_, lost)) in zip(grid, panels.items(), strict=True):
        top = truth.max()
        image = draw_image(axes, problem.basis, field_, vmin=-0.3 * top, vmax=1.1 * top)
        points, kept = sensor_rings(), kept_sensors(lost)
        gone = np.setdiff1d(np.arange(len(points)), kept)
        axes.plot(*points[kept].T, ".", color="white", markersize=2.5)
        axes.plot(*points[gone].T, "x", color="#ff3b30", markersize=7, markeredgewidth=2)
        axes.set_title(name, fontsize=11)
        away = norm(field_ - truth) / norm(truth)
        axes.set_xlabel(f"{100 * away:.0f} % from the truth" if away else "", fontsize=10)
        axes.set(xticks=[], yticks=[], frame_on=False)
    figure.colorbar(image, ax=list(grid), label="source q", aspect=20, pad=0.01, extend="both")


def draw_errors(axes, tallies):
    """Mean relative errors by shift."""
    from femcert.report import style

    places = np.arange(len(tallies))[::-1]
    base, learned = 100.0 * np.array([np.mean(tally.errors, axis=0) for tally in tallies.values()]).T
    axes.barh(places + 0.19, base, 0.36, color=style.BLUE, label="baseline")
    axes.barh(places - 0.19, learned, 0.36, color=style.GREEN, label="operator")
    axes.set_yticks(places, labels=list(tallies), fontsize=10)
    axes.set_xlabel("mean distance from the truth, %")
    axes.set_title("how far off both are", fontsize=12, fontweight="bold")
    style.tidy(axes, grid="x")
    axes.legend(frameon=False, fontsize=9, loc="upper right")


def draw_decisions(axes, tallies):
    """How often the operator is better, and how often each rule took it, rightly or not."""
    from matplotlib.patches import Patch

    from femcert.report import style

    places, trials = np.arange(len(tallies))[::-1], len(next(iter(tallies.values())).errors)
    for place, tally in zip(places, tallies.values(), strict=True):
        rows = zip((0.27, 0.0, -0.27), ("really", *RULES), strict=True)
        for shift, name in rows:
            taken = ~tally.worse if name == "really" else np.array(tally.accepted[name])
            good, bad = np.sum(taken & ~tally.worse), np.sum(taken & tally.worse)
            colour = style.GREY if name == "really" else style.GREEN
            axes.barh(place + shift, good, 0.23, color=colour)
            axes.barh(place + shift, bad, 0.23, left=good, color=style.RED)
            label = {"really": "really better", "ResidualRadius": "accepted by ResidualRadius"}
            words = label.get(name, "accepted by Dominance")
            axes.text(good + bad + 0.4, place + shift, f"{good + bad} {words}", fontsize=8, va="center")
    axes.set_yticks(places, labels=list(tallies), fontsize=10)
    axes.set_xlim(0.0, 1.5 * trials)
    axes.set_xticks(range(0, trials + 1, 10))
    axes.set_xlabel(f"number of {trials} trials")
    axes.set_title("who takes the operator", fontsize=12, fontweight="bold")
    style.tidy(axes, grid="x")
    kinds = {"accepted, and better": style.GREEN, "accepted, although worse": style.RED}
    handles = [Patch(color=colour, label=label) for label, colour in kinds.items()]
    axes.legend(handles=handles, frameon=False, fontsize=9, loc="lower right")


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    directory.mkdir(parents=True, exist_ok=True)
    tallies = main()
    print(table(tallies))
    check(tallies)
    draw(tallies, directory / "operator_under_shift.png")
