"""
Backward heat on a plate with holes: a sharpened picture is rejected, a trained map accepted
============================================================================================

A plate with three holes is heated in spots of its upper part; a while later its temperature is measured at 71 places,
with 5 % noise. Wanted is the temperature at the beginning. Three reconstructions are judged: the classical baseline
(Tikhonov regularization, discrepancy principle), a map trained on 2,000 simulated plates, and a "sharpened" picture:
the baseline with its detail enhanced, as an image filter would do it. The sharpened picture looks more like hot spots,
but heat that starts like that would not arrive at the sensors as measured: it is rejected, and is indeed farther from
the truth. The trained map is accepted.

Run: ``python demos/ex02_plate_backward_heat.py [DIRECTORY]`` writes the picture ``plate_backward_heat.png``.
"""

import sys
from pathlib import Path

import numpy as np
from skfem import Basis, ElementTriP1

import femcert as fc

HERE = Path(__file__).parent
HOLES = (((0.45, 0.55), 0.2), ((1.1, 0.35), 0.15), ((1.55, 0.65), 0.2))
MODES, NOISE, TIME = 30, 0.05, 0.5


def build_problem():
    """u_t = 0.02 Laplace u; cold outer rim, insulated holes; 30 Neumann eigenmodes of the plate for u(0)."""
    basis = Basis(fc.load_mesh(HERE.parent / "meshes" / "plate_with_holes.msh"), ElementTriP1())
    return fc.HeatInitial(
        basis,
        parameters=fc.EigenmodeSpace(basis, MODES, boundary="neumann"),
        sensors=fc.AverageSensors(basis, sensor_grid(), radius=0.04),
        times=TIME,
        diffusivity=0.02,
        steps=25,
        dirichlet={"outer": 0.0},
    )


def sensor_grid():
    """Points of a regular grid that keep clear of the holes."""
    x, y = np.meshgrid(np.linspace(0.1, 1.9, 13), np.linspace(0.1, 0.9, 7))
    points = np.column_stack([x.ravel(), y.ravel()])
    clear = [np.linalg.norm(points - centre, axis=1) > radius + 0.02 for centre, radius in HOLES]
    return points[np.all(clear, axis=0)]


def random_plates(problem, rng, count):
    """Coefficients of random initial temperatures: three hot spots each, in the upper part of the plate."""
    x = problem.basis.doflocs[:, :, None, None]
    spots = rng.uniform((0.1, 0.65), (1.9, 0.9), (count, 3, 2)).transpose(2, 0, 1)[:, None]
    heat = rng.uniform(0.5, 1.0, (count, 3))
    fields = (heat * np.exp(-((x - spots) ** 2).sum(axis=0) / 0.03)).sum(axis=2)
    space = problem.parameters
    return space.solve_gram(space.matrix.T @ (space.weight @ fields)).T


def trained_map(problem, samples=2000, seed=1):
    """A linear map from sensor values to coefficients, fitted to simulated plates."""
    rng = np.random.default_rng(seed)
    coefficients = random_plates(problem, rng, samples)
    clean = coefficients @ problem.forward_matrix().T
    noisy = clean + NOISE * np.std(clean) * rng.standard_normal(clean.shape)
    weights = np.linalg.lstsq(noisy, coefficients, rcond=None)[0]
    return lambda problem, data: fc.Candidate.from_coefficients(problem, data.values @ weights, name="trained map")


def sharpened(problem, baseline, gain=1.0, scale=0.02):
    """The baseline with its detail enhanced: q + gain (q - blurred q); the blur divides mode j by 1 + scale lam_j."""
    c, _ = problem.parameters.project(baseline.parameter)
    detail = c * (1.0 - 1.0 / (1.0 + scale * problem.parameters.eigenvalues))
    return fc.Candidate.from_coefficients(problem, c + gain * detail, name="sharpened")


def main(seed=3):
    """Truth, data, and candidates with their selections; the same data, baseline and rule for both."""
    problem = build_problem()
    truth = problem.parameters.field(random_plates(problem, np.random.default_rng(1000 + seed), 1)[0])
    data = problem.simulate(truth, noise=NOISE, seed=seed)
    baseline = fc.Tikhonov(choose="discrepancy")(problem, data)
    candidates = [trained_map(problem)(problem, data), sharpened(problem, baseline)]
    selections = [
        fc.no_harm(problem, data, baseline=baseline, learned=candidate, rule=fc.ResidualRadius())
        for candidate in candidates
    ]
    return problem, truth, data, baseline, candidates, selections


def draw(problem, truth, data, baseline, candidates, selections, path):
    """What was, what was seen, and the three reconstructions with their radii."""
    from matplotlib.figure import Figure

    from femcert.report.fields import draw_image

    figure = Figure(figsize=(13.5, 5.6), layout="constrained", dpi=130)
    figure.suptitle("A crisper picture is not a better one: the sharpened reconstruction is refused", fontweight="bold")
    panels = figure.subplots(2, 3)
    trained, crisp = selections
    top = float(truth.max())
    fields = {
        "wanted: the temperature at t = 0": truth,
        f"baseline: {summary(trained.baseline, truth)}": baseline.parameter,
        f"{verdict(trained)}: {summary(trained.learned, truth)}": candidates[0].parameter,
        f"{verdict(crisp)}: {summary(crisp.learned, truth)}": candidates[1].parameter,
    }
    places = [panels[0, 0], panels[0, 1], panels[1, 1], panels[1, 2]]
    for axes, (name, field) in zip(places, fields.items(), strict=True):
        image = draw_image(axes, problem.basis, field, vmin=-0.35 * top, vmax=1.35 * top, cmap="inferno")
        axes.set_title(name, fontsize=9.5)
    figure.colorbar(image, ax=panels[:, 1:].ravel().tolist(), label="temperature at t = 0", shrink=0.7)
    seen = panels[1, 0].scatter(*sensor_grid().T, c=data.values, cmap="inferno", s=38)
    panels[1, 0].set_title(f"measured: averages at t = {TIME:g}, 5 % noise", fontsize=9.5)
    panels[1, 0].set_aspect("equal")
    figure.colorbar(seen, ax=panels[1, 0], orientation="horizontal", label="measured temperature", shrink=0.8)
    draw_radii(panels[0, 2], truth, [trained.baseline, trained.learned, crisp.learned])
    for axes in (panels[0, 0], panels[0, 1], panels[1, 0], panels[1, 1], panels[1, 2]):
        axes.set_xticks([0, 1, 2])
        axes.set_yticks([0, 1])
    figure.savefig(path)


def verdict(selection):
    """Name and fate of the learned candidate."""
    return f"{selection.learned.name}, {selection.status}"


def summary(certificate, truth):
    """Radius and true error in a few characters."""
    return f"radius {certificate.radius.value:.2g}, true error {certificate.error(truth):.2g}"


def draw_radii(axes, truth, certificates):
    """Radius and true error of the candidates as bars."""
    place = np.arange(len(certificates))[::-1]
    axes.barh(place + 0.18, [c.radius.value for c in certificates], 0.34, color="#0072B2", label="radius (known)")
    axes.barh(place - 0.18, [c.error(truth) for c in certificates], 0.34, color="#E69F00", label="true error (unknown)")
    axes.set_yticks(place, labels=[c.name for c in certificates])
    axes.set_xlabel("distance in the L2 norm")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False, loc="upper right")


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    directory.mkdir(parents=True, exist_ok=True)
    results = main()
    for selection in results[-1]:
        print(f"{selection.learned.name}:\n{selection}\n")
    draw(*results, directory / "plate_backward_heat.png")
