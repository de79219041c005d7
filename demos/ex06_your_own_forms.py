"""
Your own equation in 25 lines: where a channel is polluted
==========================================================

femcert has no class for the transport of a pollutant. It does not need one: an equation that can be written
as scikit-fem forms makes a problem to certify. Here water flows from left to right around three pillars. The flow is
the gradient of a potential, itself a finite-element solution on the same mesh, and it carries, spreads and dilutes what
leaks in. `own_problem` has both equations, the class of leaks (28 of the user's own functions) and the sensors; it has
25 lines, and a test counts them.

All the rest works as for any other problem. The learned candidate is a library of simulated leaks, one at each node of
the mesh: it returns the one that explains the 71 stations best. For one leak that is hard to beat, and it is
accepted. For two leaks the library has no answer, the best one misses the data, and the classical baseline is returned.
Both decisions are checked on 30 random channels each. The standard deviation of the noise is known. The data come from
a finer mesh; what that changes is less than a hundredth of the noise, and is stated as an error of the model.

Run: ``python demos/ex06_your_own_forms.py [DIRECTORY]`` writes the picture ``your_own_forms.png``.
"""

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist
from skfem import Basis, BilinearForm, ElementTriP2, asm, condense, solve
from skfem.helpers import dot, grad
from skfem.models.poisson import laplace

import femcert as fc

HERE = Path(__file__).parent
SPREAD, DECAY = 0.02, 0.3
NOISE, TRIALS = 0.05, 30
# What the mesh may do to the readings, in parts of the noise.
MESH = 0.01
# Squared width of a leak, and where along the channel there may be one.
WIDTH, BETWEEN = 0.03, (0.15, 1.6)


def own_problem(mesh, stations):
    """-d Laplace u + b . grad u + k u = q with b = grad(potential), u = 0 at the inlet; point values of u."""
    basis = Basis(mesh, ElementTriP2())

    @BilinearForm
    def diffusion(u, v, w):
        return dot(grad(u), grad(v))

    @BilinearForm
    def transport(u, v, w):
        return SPREAD * dot(grad(u), grad(v)) + dot(grad(w.potential), grad(u)) * v + DECAY * u * v

    ends = basis.get_dofs({"inlet", "outlet"})
    potential = solve(*condense(asm(diffusion, basis), x=basis.doflocs[0].copy(), D=ends))

    def wave(i, j):
        return lambda x: np.cos(i * np.pi * x[0] / 2) * np.cos(j * np.pi * x[1])

    return potential, fc.LinearProblem(
        basis,
        operator=asm(transport, basis, potential=basis.interpolate(potential)),
        parameters=fc.FunctionSpace(basis, [wave(i, j) for i in range(7) for j in range(4)]),
        sensors=fc.PointSensors(basis, stations),
        dirichlet={"inlet": 0.0},
    )


class Channel:
    """The channel on its mesh, and on a finer one that plays reality."""

    def __init__(self):
        plate = fc.load_mesh(HERE.parent / "meshes" / "plate_with_holes.msh")
        mesh = plate.with_boundaries({"inlet": lambda x: x[0] < 1e-9, "outlet": lambda x: x[0] > 2.0 - 1e-9})
        self.stations = mesh.p[:, mesh.interior_nodes()[::25]].T
        self.potential, self.problem = own_problem(mesh, self.stations)
        _, self.reality = own_problem(mesh.refined(1), self.stations)

    def leaks(self, places):
        """Coordinates of leaks at these places, one row each."""
        space, x = self.problem.parameters, self.problem.basis.doflocs
        fields = np.exp(-cdist(x.T, places, "sqeuclidean") / WIDTH)
        return space.solve_gram(space.matrix.T @ (space.weight @ fields)).T

    def measured(self, coefficients, rng):
        """Noisy values of the finer mesh, with their standard deviation, and how large errors of the mesh are."""
        exact = self.reality.forward_matrix() @ coefficients
        deviation = NOISE * np.linalg.norm(exact) / np.sqrt(exact.size)
        noisy = exact + deviation * rng.standard_normal(exact.size)
        data = fc.Data.gaussian(noisy, std=deviation, confidence=0.999)
        return data.with_model_error(matrix=deviation * np.eye(exact.size), size=MESH * data.noise_level)

    @cached_property
    def library(self):
        """Simulated leaks at nodes of the mesh, with what the stations would read."""
        leaks = self.leaks(possible_places(self.problem.basis.mesh.p))
        return leaks, leaks @ self.problem.forward_matrix().T

    def look_up(self, problem, data):
        """The leak of the library, with its best strength, that comes nearest to the data."""
        leaks, values = self.library
        size = np.linalg.norm(values, axis=1)
        likeness = values @ data.values / size
        best = likeness.argmax()
        return fc.Candidate.from_coefficients(problem, likeness[best] / size[best] * leaks[best], name="library")


def possible_places(points):
    """Those of the points (columns) where there may be a leak, as rows."""
    return points[:, (points[0] > BETWEEN[0]) & (points[0] < BETWEEN[1])].T


@dataclass
class Trial:
    """A true leak or two, the data, both answers and the selection."""

    places: np.ndarray
    truth: np.ndarray
    data: fc.Data
    baseline: fc.Candidate
    learned: fc.Candidate
    selection: fc.Selection


def trial(channel, leaks, seed):
    """`leaks` leaks in the middle of random elements, so that none of them is in the library."""
    problem, rng = channel.problem, np.random.default_rng(seed)
    mesh = problem.basis.mesh
    centres = possible_places(mesh.p[:, mesh.t].mean(axis=1))
    places = centres[rng.integers(len(centres), size=leaks)]
    coefficients = channel.leaks(places).sum(axis=0)
    data = channel.measured(coefficients, rng)
    baseline = fc.Tikhonov(choose="discrepancy")(problem, data)
    learned = channel.look_up(problem, data)
    selection = fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=fc.ResidualRadius())
    return Trial(places, problem.parameters.field(coefficients), data, baseline, learned, selection)


def main(trials=TRIALS):
    """The channel, and trials with one leak and with two."""
    channel = Channel()
    return channel, {leaks: [trial(channel, leaks, 100 * leaks + seed) for seed in range(trials)] for leaks in (1, 2)}


def counts(trials):
    """Accepted, really better, and accepted although worse."""
    better = [t.selection.learned.error(t.truth) < t.selection.baseline.error(t.truth) for t in trials]
    accepted = [t.selection.accepted for t in trials]
    return sum(accepted), sum(better), sum(a and not b for a, b in zip(accepted, better, strict=True))


def check(channel, results):
    """What this demo claims."""
    accepted, better, unsafe = counts(results[1])
    assert accepted >= 0.8 * len(results[1])
    assert better >= 0.8 * len(results[1])
    assert unsafe == 0
    accepted, better, unsafe = counts(results[2])
    assert accepted <= 0.2 * len(results[2])
    assert better <= 0.2 * len(results[2])
    assert unsafe == 0
    problem = channel.problem
    for one in (*results[1], *results[2]):
        for certificate in (one.selection.baseline, one.selection.learned):
            assert certificate.radius.side == "upper"
            assert certificate.contains(one.truth)
        c, _ = problem.parameters.project(one.truth)
        difference = (channel.reality.forward_matrix() - problem.forward_matrix()) @ c
        assert one.data.norm(difference) < one.data.model.norm
    # The flow keeps to the channel: nothing goes through the pillars or the walls, so what enters leaves.
    flux = flow_out(channel)
    assert abs(flux["inlet"] + flux["outlet"]) < 1e-8
    assert flux["outlet"] > 0.5


def flow_out(channel):
    """The flow out of the channel through both ends, from the weak form of the potential."""
    basis = channel.problem.basis
    weak = asm(laplace, basis) @ channel.potential
    return {name: float(weak[basis.get_dofs(name).all()].sum()) for name in ("inlet", "outlet")}


def draw(channel, results, path):
    """A row for one leak and one for two: what flows, what is measured, both answers, and radii."""
    from femcert.report import style

    figure = style.new_figure(16.0, 5.2)
    message = "Your own equation, certified: the library is taken where it knows the answer, and refused where not"
    figure.suptitle(message, fontsize=14, fontweight="bold")
    rows = figure.subplots(2, 4, width_ratios=[1.2, 1.2, 1.2, 1.0])
    for row, (leaks, trials) in zip(rows, results.items(), strict=True):
        draw_trial(figure, row, channel, trials[0])
        row[0].set_ylabel("one leak" if leaks == 1 else "two leaks", fontsize=12, fontweight="bold")
        accepted, better, _ = counts(trials)
        tally = f"of {len(trials)} such channels\n{accepted} accepted, {better} really better"
        draw_radii(row[3], trials[0], f"library {trials[0].selection.status}; {tally}")
    rows[1, 3].legend(frameon=False, fontsize=8.5, loc="upper right")
    style.save(figure, path)


def draw_trial(figure, row, channel, one):
    """Concentration with stream lines and stations, and both reconstructions with the true places."""
    from femcert.report import style
    from femcert.report.fields import draw_image

    problem, chosen = channel.problem, "library" if one.selection.accepted else "baseline"
    state = draw_image(row[0], problem.basis, problem.solve(one.truth), cmap="YlGnBu", vmin=0.0)
    draw_flow(row[0], channel)
    row[0].scatter(*channel.stations.T, s=9, color="black", label="stations")
    row[0].set_title("concentration (unknown), flow, stations", fontsize=10.5)
    figure.colorbar(state, ax=row[0], shrink=0.72, pad=0.01, label="concentration u")
    top = 1.05 * max(np.abs(q).max() for q in (one.truth, one.baseline.parameter, one.learned.parameter))
    for axes, candidate, name in ((row[1], one.baseline, "baseline"), (row[2], one.learned, "library")):
        image = draw_image(axes, problem.basis, candidate.parameter, cmap="RdBu_r", vmin=-top, vmax=top)
        axes.plot(*one.places.T, "x", color=style.BLACK, markersize=9, markeredgewidth=2.0, label="true place")
        selected = name == chosen
        words = f"{name}'s leak" + (", selected" if selected else "")
        axes.set_title(words, fontsize=10.5, fontweight="bold" if selected else None)
    row[1].legend(loc="lower right", fontsize=8.5, framealpha=0.85, edgecolor="none")
    figure.colorbar(image, ax=row[1:3].tolist(), shrink=0.72, pad=0.01, label="leak q")
    mesh = problem.basis.mesh
    for axes in row[:3]:
        axes.plot(*mesh.p[:, mesh.facets[:, mesh.boundary_facets()]], color=style.GREY, linewidth=0.8)
        axes.set(xticks=[], yticks=[], frame_on=False)


def draw_flow(axes, channel):
    """Stream lines of the gradient of the potential."""
    from matplotlib.tri import LinearTriInterpolator, Triangulation

    mesh = channel.problem.basis.mesh
    triangles = Triangulation(*mesh.p, mesh.t.T)
    # On a P2 basis the values at the nodes come first.
    potential = LinearTriInterpolator(triangles, channel.potential[: mesh.p.shape[1]])
    x, y = np.linspace(0.0, 2.0, 81), np.linspace(0.0, 1.0, 41)
    flow = potential.gradient(*np.meshgrid(x, y))
    axes.streamplot(x, y, *flow, color="#6b7280", linewidth=0.6, arrowsize=0.7, density=0.7)


def draw_radii(axes, one, tally):
    """Radius and true error of both candidates as bars."""
    from femcert.report import style

    certificates = (one.selection.baseline, one.selection.learned)
    places = np.array([1.0, 0.0])
    axes.barh(places + 0.18, [c.radius.value for c in certificates], 0.34, color=style.BLUE, label="radius (known)")
    errors = [c.error(one.truth) for c in certificates]
    axes.barh(places - 0.18, errors, 0.34, color=style.ORANGE, label="true error (unknown)")
    axes.set_yticks(places, labels=["baseline", "library"])
    axes.set_xlabel("distance in the L2 norm")
    style.tidy(axes, grid="x")
    axes.set_title(tally, fontsize=9.5)


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    directory.mkdir(parents=True, exist_ok=True)
    channel, results = main()
    for leaks, trials in results.items():
        print(f"{leaks} leaks: accepted %d, really better %d, accepted although worse %d" % counts(trials))
        print(trials[0].selection, end="\n\n")
    check(channel, results)
    draw(channel, results, directory / "your_own_forms.png")
