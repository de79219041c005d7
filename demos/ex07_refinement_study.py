"""
A refinement study: how fast two kinds of refinement converge, and a surrogate that no refinement helps
=======================================================================================================

A source heats an L-shaped plate. At its inner corner the temperature bends so sharply that finite elements of degree 2
lose their order there: refined everywhere, the error falls like dofs^(-1/3); refined where the elements' shares of the
bound are large, like 1 / dofs. The study finds both rates without knowing the solution, from guaranteed bounds of the
error. Here the truth is known (the energy of the exact temperature is, to twelve digits) and lies between the bounds on
every level.

Then two reconstructions of the source, from twelve averages of the temperature with half a percent of noise, are judged
on the adaptive meshes. The classical baseline solves the equation on each of them; its radius falls until the noise is
all that is left. The surrogate was trained on simulations of the first mesh, and its temperature is that of the first
mesh forever. There it is accepted, since it is more accurate than the baseline. On finer meshes the certificate
contains the error of its temperature, that of the baseline is gone, and the same answer is rejected: a surrogate is as
accurate as the mesh it was trained on. The remedy is cheap. Solved for on each mesh, the temperature of the surrogate's
source has all the advantages of both, and is accepted on every level.

Run: ``python demos/ex07_refinement_study.py [DIRECTORY]`` writes the picture ``refinement_study.png``.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from skfem import Basis, ElementTriP2

import femcert as fc
from femcert.mesh.locate import Locator, interpolation_matrix
from femcert.mesh.read import diameters

HERE = Path(__file__).parent
# ‖grad u‖² of the exact solution of -Laplace u = 1.
ENERGY = 0.2140758026866
CENTRES = [(x, y) for x in (-0.75, -0.25, 0.25, 0.75) for y in (-0.75, -0.25, 0.25, 0.75) if x < 0.0 or y > 0.0]
DISC, NOISE, THETA = 0.15, 0.005, 0.7
# Constant, linear and quadratic sources, with their degrees: of a function alone nothing is known. The true one is 1.
SHAPES = (
    fc.Polynomial(lambda x: np.ones_like(x[0]), 0),
    fc.Polynomial(lambda x: x[0], 1),
    fc.Polynomial(lambda x: x[1], 1),
    fc.Polynomial(lambda x: x[0] * x[1], 2),
    fc.Polynomial(lambda x: x[0] ** 2 - x[1] ** 2, 2),
    fc.Polynomial(lambda x: x[0] ** 2 + x[1] ** 2, 2),
)
TRUTH = np.eye(len(SHAPES))[0]
# By mesh, so that one factorization serves all studies of it.
PROBLEMS = {}


@dataclass
class Results:
    """Two studies of the true source, and two of the decision: with the surrogate's state, and with a solved one."""

    uniform: fc.Study
    adaptive: fc.Study
    frozen: fc.Study
    solved: fc.Study
    data: fc.Data
    weight: float


def first_mesh():
    """The L-shape, with triangles of about the same size."""
    return fc.load_mesh(HERE.parent / "meshes" / "l_shape.msh")


def build_problem(mesh):
    """-Laplace u = q on the L-shape, u = 0 on its boundary; averages of u over twelve discs. Once for each mesh."""
    if id(mesh) not in PROBLEMS:
        basis = Basis(mesh, ElementTriP2())
        sensors = fc.AverageSensors(basis, CENTRES, radius=DISC)
        problem = fc.EllipticSource(basis, parameters=fc.FunctionSpace(basis, SHAPES), sensors=sensors)
        PROBLEMS[id(mesh)] = (mesh, problem)
    return PROBLEMS[id(mesh)][1]


def true_error(problem, candidate):
    """The energy norm of the error of a Galerkin state: by orthogonality, energies subtract."""
    energy = candidate.state @ (problem.operator @ candidate.state)
    return float(np.sqrt(max(ENERGY - energy, 0.0)))


def true_case(mesh):
    """The state of the true source."""
    return fc.Case(build_problem(mesh), parameter=1.0, truth=true_error)


def sensor_weight(mesh):
    """A number w with ``‖H v‖ <= w ‖grad v‖`` for all v that vanish on the boundary; the discs are disjoint."""
    constant = fc.friedrichs_constant(mesh, dirichlet=mesh.boundary_facets())
    return constant.value / np.sqrt(np.pi * DISC**2)


def measure(study, weight, seed=0):
    """Noisy averages on the last mesh of a study, of known deviation; the error of that mesh is one of the model."""
    problem = build_problem(study.meshes[-1])
    exact = problem.forward_matrix() @ TRUTH
    deviation = NOISE * np.linalg.norm(exact) / np.sqrt(exact.size)
    noise = deviation * np.random.default_rng(seed).standard_normal(exact.size)
    data = fc.Data.gaussian(exact + noise, std=deviation, confidence=0.999)
    return data.with_model_error(matrix=np.eye(exact.size), size=weight * study.rows[-1].upper)


class Surrogate:
    """A linear map from data to sources, trained on simulations of one mesh, with the states of that mesh."""

    def __init__(self, mesh, samples=2000, seed=1):
        self.home, self.locator, rng = build_problem(mesh), Locator(mesh), np.random.default_rng(seed)
        others = 0.15 * rng.standard_normal((samples, len(SHAPES) - 1))
        sources = np.column_stack([rng.uniform(0.5, 1.5, samples), others])
        values = sources @ self.home.forward_matrix().T
        noisy = values + NOISE * np.std(values) * rng.standard_normal(values.shape)
        self.weights = np.linalg.lstsq(noisy, sources, rcond=None)[0]

    def frozen(self, problem, data):
        """Its source, and its own state of the first mesh, which all finer meshes can represent."""
        c = data.values @ self.weights
        state = self.home.solve(self.home.parameters.field(c))
        if problem.basis.N > self.home.basis.N:
            cells = self.locator.find(problem.basis.doflocs)
            state = interpolation_matrix(self.home.basis, problem.basis.doflocs, cells) @ state
            state[problem.boundary.prescribed] = 0.0
        return fc.Candidate(state, problem.parameters.field(c), name="surrogate")

    def solved(self, problem, data):
        """The same source, with the state that the equation on this mesh gives it."""
        return fc.Candidate.from_coefficients(problem, data.values @ self.weights, name="surrogate, solved")


def decisions(meshes, data, learned, weight):
    """The selection on each of the meshes."""
    rule = fc.OperationalRadius(pde=weight, pde_norm="equilibrated")

    def build(mesh):
        baseline = fc.Tikhonov(choose="discrepancy")
        return fc.Case(build_problem(mesh), data=data, baseline=baseline, learned=learned, rule=rule)

    return fc.refinement_study(build, levels=meshes)


def main(uniform_levels=3, most_dofs=60_000, judged=9):
    """Both refinements of the true source, and the decisions on the first `judged` adaptive meshes."""
    mesh = first_mesh()
    uniform = fc.refinement_study(true_case, mesh=mesh, levels=uniform_levels)
    adaptive = fc.refinement_study(
        true_case, mesh=mesh, adaptive=True, theta=THETA, levels=20, most_dofs=most_dofs
    )
    weight = sensor_weight(mesh)
    data, surrogate = measure(adaptive, weight), Surrogate(mesh)
    # Residuals are compared in units of the noise.
    weight *= data.largest_weight
    meshes = adaptive.meshes[:judged]
    judgements = [decisions(meshes, data, learned, weight) for learned in (surrogate.frozen, surrogate.solved)]
    return Results(uniform, adaptive, *judgements, data, weight)


def final_rate(study, levels=5):
    """Slope of the upper bound over the dofs, on the last levels."""
    dofs, upper = (np.log(study.column(name)[-levels:]) for name in ("dofs", "upper"))
    return float(np.polyfit(dofs, upper, 1)[0])


def saving(results):
    """Dofs of the last uniform level over those of the adaptive one that reached its bound."""
    last = results.uniform.rows[-1]
    return last.dofs / next(row.dofs for row in results.adaptive.rows if row.upper <= last.upper)


def check(results):
    """What this demo claims."""
    for study, (least, most), sharp in ((results.uniform, (-0.36, -0.31), 1.25), (results.adaptive, (-1.1, -0.9), 1.2)):
        assert least < final_rate(study) < most
        for row in study.rows:
            assert row.lower <= row.truth <= row.upper <= sharp * row.truth
            assert not row.estimates
    assert saving(results) > 10.0
    assert results.frozen.column("decision")[0] == "accept"
    assert set(results.frozen.column("decision")[2:]) == {"reject"}
    assert set(results.solved.column("decision")) == {"accept"}
    base, frozen = (results.frozen.column(f"radius_{name}") for name in ("baseline", "learned"))
    assert base[-1] < 0.5 * base[0]
    assert 0.7 * frozen[0] < frozen[-1] <= frozen[0]
    noise = results.data.noise_level
    # In the end the mesh is a small part of the radius: data and noise are the rest.
    last = results.frozen.selections[-1].baseline
    assert results.weight * last.residuals.pde.value < 0.3 * noise
    for study in (results.frozen, results.solved):
        for mesh, selection in zip(study.meshes, study.selections, strict=True):
            one = build_problem(mesh).parameters.field(TRUTH)
            for certificate in (selection.baseline, selection.learned):
                assert certificate.radius.side == "upper"
                assert certificate.contains(one)
            assert selection.learned.error(one) < selection.baseline.error(one)


def draw(results, path):
    """Bounds over the dofs, one adaptive mesh with its corner, and radii on the adaptive meshes."""
    from femcert.report import style

    figure = style.new_figure(16.0, 5.0)
    message = "Refinement pays where it is needed, and only for those who solve the equation again"
    figure.suptitle(message, fontsize=14, fontweight="bold")
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.2, 1.1, 1.2])
    draw_bounds(left, results)
    draw_corner(figure, middle, results.adaptive.meshes[8])
    draw_radii(right, results)
    style.save(figure, path)


def draw_bounds(axes, results):
    """Upper bound, truth and lower bound of both studies, with their slopes."""
    from femcert.report import style

    style.tidy(axes)
    truth = None
    for study, name, colour in ((results.uniform, "uniform", style.RED), (results.adaptive, "adaptive", style.BLUE)):
        dofs = study.column("dofs")
        axes.fill_between(dofs, study.column("lower"), study.column("upper"), color=colour, alpha=0.25, linewidth=0.0)
        axes.plot(dofs, study.column("upper"), "o-", color=colour, markersize=4, label=f"{name}, upper bound")
        axes.plot(dofs, study.column("lower"), "-", color=colour, linewidth=1.0, alpha=0.8, label="and lower bound")
        (truth,) = axes.plot(dofs, study.column("truth"), **{**style.TRUTH, "linewidth": 1.2})
        row = study.rows[-1]
        axes.annotate(
            f"slope {final_rate(study):.2f}", (row.dofs, row.upper), xytext=(-4, 9), textcoords="offset points",
            color=colour, fontsize=10, fontweight="bold", ha="left" if study.adaptive else "center",
        )  # fmt: skip
    truth.set_label("true error")
    axes.set(xscale="log", yscale="log", xlabel="dofs", ylabel="error of the temperature, energy norm")
    style.plain_numbers(axes)
    axes.legend(frameon=False, fontsize=9, loc="lower left")
    message = f"for the same bound, uniform refinement takes {saving(results):.0f} times the dofs"
    axes.set_title(message, fontsize=11)


def draw_corner(figure, axes, mesh):
    """A mesh coloured by the size of its elements, and its corner enlarged."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LogNorm

    sizes = diameters(mesh)
    corners, scale = mesh.p[:, mesh.t].transpose(2, 1, 0), LogNorm(sizes.min(), sizes.max())
    detail = axes.inset_axes((0.53, 0.02, 0.45, 0.45))
    for panel, line in ((axes, 0.2), (detail, 0.4)):
        cells = PolyCollection(corners, array=sizes, norm=scale, cmap="YlGnBu_r", linewidth=line, edgecolor="#40404080")
        panel.add_collection(cells)
        panel.set(xticks=[], yticks=[], aspect="equal")
    axes.set(xlim=(-1.02, 1.02), ylim=(-1.02, 1.02), frame_on=False)
    detail.set(xlim=(-0.05, 0.05), ylim=(-0.05, 0.05))
    axes.indicate_inset_zoom(detail, edgecolor="black", alpha=0.9)
    figure.colorbar(cells, ax=axes, label="diameter of an element", shrink=0.7, pad=0.02)
    axes.set_title(f"adaptive mesh, {mesh.nelements:,} elements; its corner, x 20", fontsize=11)


def draw_radii(axes, results):
    """Radii of the baseline and of the surrogate with both states, and who is taken."""
    from femcert.report import style

    style.tidy(axes)
    levels = results.frozen.column("level")
    curves = [
        ("baseline", results.frozen.column("radius_baseline"), style.BLUE, None),
        ("surrogate, with its state of the first mesh", results.frozen.column("radius_learned"), style.RED, "frozen"),
        ("surrogate, solved on each mesh", results.solved.column("radius_learned"), style.GREEN, "solved"),
    ]
    for label, values, colour, name in curves:
        axes.plot(levels, values, color=colour, linewidth=2.0, label=label)
        if name is not None:
            taken = np.array(getattr(results, name).column("decision")) == "accept"
            for chosen, fill in ((taken, colour), (~taken, "white")):
                place = np.array(levels)[chosen], np.array(values)[chosen]
                axes.scatter(*place, s=42, color=fill, edgecolor=colour, linewidth=1.6, zorder=3)
    axes.scatter([], [], s=42, color=style.GREY, label="accepted")
    axes.scatter([], [], s=42, color="white", edgecolor=style.GREY, linewidth=1.6, label="rejected")
    axes.set(xlabel="adaptive level", ylabel="radius of the source, L2 norm", xticks=levels)
    axes.set_ylim(0.0, 1.35 * max(values[0] for _, values, _, _ in curves))
    axes.legend(frameon=False, fontsize=9, loc="upper right", ncols=1)
    axes.set_title("a state of the first mesh is found out on finer ones", fontsize=11)


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    directory.mkdir(parents=True, exist_ok=True)
    results = main()
    for name in ("uniform", "adaptive", "frozen", "solved"):
        print(f"{name}\n{getattr(results, name)}\n")
    print(f"slopes: uniform {final_rate(results.uniform):.3f}, adaptive {final_rate(results.adaptive):.3f}")
    print(f"uniform refinement takes {saving(results):.1f} times the dofs")
    check(results)
    draw(results, directory / "refinement_study.png")
