"""
A plate with holes, refined by what its certificate says of each element
========================================================================

A plate has six heated parts, and coolant runs along the lower half of each of its three holes. How much heat each part
gives off is recovered from 61 local averages of the temperature, with 2 % noise. Where a cooled rim meets an insulated
one the temperature grows like the root of the distance, and a mesh that is the same everywhere is too coarse there.

The certificate accounts for this. Its radius is C (data + w pde + noise). Here pde bounds the residual over all
functions, not only those of the mesh, and w bounds what that does to the sensors: averages over disjoint discs D are at
most ``|D|^-1/2`` times the L2 norm, which is at most a Friedrichs constant times the energy norm. On the first mesh
four fifths of the radius are mesh error. The share of each element in pde says where to refine, and it is at the six
ends of the cooled rims. With a third more elements the physics is below the noise, and the radius about a quarter of
what it was. Refined everywhere, with eleven times as many unknowns as that, the mesh is still the larger part of it.

Two things to know. C is the stability constant of the mesh; it moves by a quarter of a percent over the levels, but
that is observed, not proven. The data come from a mesh of their own, refined for the true source; its error is bounded
in the same way, and added to the noise level. The parts are unions of elements of the first mesh, the same on all
others.

Run: ``python demos/ex03_certificate_refines_plate.py [DIRECTORY]`` writes ``certificate_refines_plate.png``.
"""

import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from skfem import Basis, ElementTriP2

import femcert as fc
from femcert.mesh.read import diameters

HERE = Path(__file__).parent
HOLES = (((0.45, 0.55), 0.2), ((1.1, 0.35), 0.15), ((1.55, 0.65), 0.2))
PARTS = [f"part {i}" for i in range(6)]
HEAT = np.array([1.0, 0.0, 2.0, 0.0, 3.0, 1.0])
DISC, NOISE, THETA = 0.065, 0.02, 0.7


@dataclass
class Results:
    """Two studies, with the certificate and the true error of the reconstruction on each level."""

    data: fc.Data
    weight: float
    tolerance: float
    studies: dict
    certificates: dict
    errors: dict


def first_mesh():
    """The plate, with names for the cooled half of each rim and for the six parts, three by two."""
    mesh = fc.load_mesh(HERE.parent / "meshes" / "plate_with_holes.msh")

    def cooled(x):
        below = [(np.hypot(x[0] - c[0], x[1] - c[1]) < 1.1 * r) & (x[1] < c[1]) for c, r in HOLES]
        return np.any(below, axis=0)

    def part(i):
        return lambda x: (np.minimum(x[0] // (2 / 3), 2) == i % 3) & ((x[1] > 0.5) == (i > 2))

    return mesh.with_boundaries({"cooled": cooled}).with_subdomains({name: part(i) for i, name in enumerate(PARTS)})


def ends_of_cooling(mesh):
    """The six points where a cooled rim meets an insulated one."""
    cooled = mesh.boundaries["cooled"]
    insulated = np.setdiff1d(mesh.boundaries["holes"], cooled)
    return mesh.p[:, np.intersect1d(mesh.facets[:, cooled], mesh.facets[:, insulated])].T


def sensor_grid():
    """Points of a regular grid whose discs keep clear of each other and of the holes."""
    x, y = np.meshgrid(np.linspace(0.1, 1.9, 13), np.linspace(0.1, 0.9, 7))
    points = np.column_stack([x.ravel(), y.ravel()])
    clear = [np.linalg.norm(points - centre, axis=1) > radius + DISC for centre, radius in HOLES]
    return points[np.all(clear, axis=0)]


def build_problem(mesh):
    """-Laplace u = q with u = 0 where cooled, insulated elsewhere; q constant on each part."""
    basis = Basis(mesh, ElementTriP2())
    return fc.EllipticSource(
        basis,
        parameters=fc.RegionSpace(basis, PARTS),
        sensors=fc.AverageSensors(basis, sensor_grid(), radius=DISC),
        dirichlet={"cooled": 0.0},
    )


def sensor_weight(mesh):
    """A number w with ``‖H v‖ <= w ‖grad v‖`` for all v that vanish on the cooled rims."""
    constant = fc.friedrichs_constant(mesh, dirichlet=mesh.boundaries["cooled"])
    return constant.value / np.sqrt(np.pi * DISC**2)


def measure(weight, seed=0):
    """Noisy averages of the temperature, and a noise level that covers the error of the mesh they come from, too."""

    def true_state(mesh):
        problem = build_problem(mesh)
        return fc.Case(problem, parameter=problem.parameters.field(HEAT))

    study = fc.refinement_study(true_state, mesh=first_mesh(), adaptive=True, theta=THETA, tolerance=0.0018, levels=30)
    problem = build_problem(study.meshes[-1])
    data = problem.simulate(problem.parameters.field(HEAT), noise=NOISE, seed=seed)
    return fc.Data(data.values, data.noise_level + weight * study.rows[-1].upper)


def study_of(data, rule, tolerance, **options):
    """A refinement study of the reconstruction, with its certificates and true errors."""
    cases = []

    def build(mesh):
        cases.append(fc.Case(build_problem(mesh), data=data, baseline=fc.Tikhonov(choose="discrepancy"), rule=rule))
        return cases[-1]

    study = fc.refinement_study(build, mesh=first_mesh(), tolerance=tolerance, theta=THETA, **options)
    # The same problems again, so that what they factorized is not factorized twice.
    certificates = [fc.certify(c.problem, data, c.baseline(c.problem, data), rule) for c in cases]
    errors = [known.error(c.problem.parameters.field(HEAT)) for known, c in zip(certificates, cases, strict=True)]
    return study, certificates, errors


def main(uniform_levels=3):
    """Refine where the certificate asks until the physics is below the noise; then, for comparison, everywhere."""
    weight = sensor_weight(first_mesh())
    data = measure(weight)
    rule = fc.OperationalRadius(pde=weight, pde_norm="equilibrated")
    tolerance = data.noise_level / weight
    found = {
        "adaptive": study_of(data, rule, tolerance, adaptive=True, levels=30),
        "uniform": study_of(data, rule, tolerance, levels=uniform_levels),
    }
    return Results(data, weight, tolerance, *({name: three[i] for name, three in found.items()} for i in range(3)))


def reached(results):
    """The first adaptive level whose bound is no worse than that of the last uniform one."""
    last = results.studies["uniform"].rows[-1]
    return next(row for row in results.studies["adaptive"].rows if row.upper <= last.upper)


def saving(results):
    """Dofs of the last uniform level over those of the adaptive one that reached its bound."""
    return results.studies["uniform"].rows[-1].dofs / reached(results).dofs


def small_elements(mesh):
    """Middles of the elements with a diameter below a tenth of any on the first mesh."""
    small = diameters(mesh) < 0.1 * diameters(first_mesh()).min()
    return mesh.p[:, mesh.t[:, small]].mean(axis=1).T


def check(results):
    """What this demo claims."""
    adaptive, certificates = results.studies["adaptive"], results.certificates["adaptive"]
    radii = [certificate.radius.value for certificate in certificates]
    assert all(finer < coarser for coarser, finer in pairwise(radii))
    assert adaptive.stopped == "tolerance"
    assert results.weight * certificates[0].residuals.pde.value > 5.0 * results.data.noise_level
    assert results.weight * certificates[-1].residuals.pde.value <= results.data.noise_level
    assert results.studies["uniform"].stopped == "levels"
    assert saving(results) >= 2.0
    for name, errors in results.errors.items():
        for certificate, error in zip(results.certificates[name], errors, strict=True):
            assert certificate.residuals.pde.side == certificate.radius.side == "upper"
            assert error <= certificate.radius.value
    small = small_elements(adaptive.meshes[-1])
    far = np.linalg.norm(small[:, None] - ends_of_cooling(first_mesh()), axis=2).min(axis=1)
    assert len(small) > 100
    assert far.max() < 0.02


def table(results):
    """Levels of both studies: dofs, the parts of the radius before C, the radius and the true error."""
    lines = [f"{'':10}{'dofs':>8}{'data':>9}{'w pde':>9}{'noise':>9}{'C':>8}{'radius':>9}{'true error':>12}"]
    for name, study in results.studies.items():
        for row, certificate, error in zip(study.rows, results.certificates[name], results.errors[name], strict=True):
            pde = results.weight * certificate.residuals.pde.value
            lines.append(
                f"{name:10}{row.dofs:8,}{certificate.residuals.data.value:9.4f}{pde:9.4f}{certificate.noise_level:9.4f}"
                f"{certificate.stability.constant.value:8.3f}{certificate.radius.value:9.3f}{error:12.3f}"
            )
    return "\n".join(lines)


def draw(results, path):
    """Three meshes whole and at one end of a cooled rim, coloured by indicators; below them all radii, by parts."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    study = results.studies["adaptive"]
    shown = [0, (len(study.rows) - 1) // 2, len(study.rows) - 1]
    most = max(study.indicators[i].max() for i in shown)
    figure = Figure(figsize=(13, 8.6), layout="constrained", dpi=110)
    message = "The certificate says where the mesh is too coarse: at the ends of the cooled rims"
    figure.suptitle(message, fontweight="bold")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.5, 1.0])
    panels = top.subplots(2, 3)
    end = ends_of_cooling(study.meshes[0])[2]
    for i, (whole, detail) in zip(shown, panels.T, strict=True):
        row, mesh = study.rows[i], study.meshes[i]
        for axes, line in ((whole, 0.15), (detail, 0.4)):
            image = draw_mesh(axes, mesh, study.indicators[i], line, LogNorm(1e-3 * most, most))
        whole.set_title(f"level {row.level}: {row.elements:,} elements, pde ≤ {row.upper:.2g}", fontsize=10)
        for axes in (whole, detail):
            axes.plot(*mesh.p[:, mesh.facets[:, mesh.boundaries["cooled"]]], color="#0072B2", linewidth=2.5)
        whole.set(xlim=(-0.02, 2.02), ylim=(-0.02, 1.02), frame_on=False)
        detail.set(xlim=end[0] + np.array([-0.03, 0.07]), ylim=end[1] + np.array([-0.025, 0.025]))
        whole.indicate_inset_zoom(detail, edgecolor="black", alpha=0.8)
    panels[0, 0].text(0.45, 0.55, "cooled\nbelow", ha="center", va="center", fontsize=8, color="#0072B2")
    top.colorbar(image, ax=panels.ravel().tolist(), label="share of an element in pde", shrink=0.8, extend="min")
    draw_radii(bottom.subplots(), results)
    figure.savefig(path)


def draw_mesh(axes, mesh, values, line, scale):
    """Elements in colours, with their edges."""
    from matplotlib.collections import PolyCollection

    corners = mesh.p[:, mesh.t].transpose(2, 1, 0)
    cells = PolyCollection(corners, array=values, norm=scale, cmap="YlOrRd", linewidth=line, edgecolor="#404040c0")
    axes.add_collection(cells)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    return cells


def draw_radii(axes, results):
    """A bar for each level of both studies: the radius, by parts, and the true error."""
    place, labels, start = [], [], 0.0
    for name, study in results.studies.items():
        here = start + np.arange(len(study.rows))
        axes.text(here[0] - 0.4, 3.5, f"{name} refinement", fontweight="bold", fontsize=10)
        place.extend(here)
        labels.extend(f"{row.dofs:,}" for row in study.rows)
        start = here[-1] + 2.0
    certificates = [c for several in results.certificates.values() for c in several]
    constants = np.array([c.stability.constant.value for c in certificates])
    parts = {
        "noise": ("#56B4E9", [c.noise_level for c in certificates]),
        "data": ("#0072B2", [c.residuals.data.value for c in certificates]),
        "physics: the mesh": ("#E69F00", [results.weight * c.residuals.pde.value for c in certificates]),
    }
    base = np.zeros(len(certificates))
    for name, (colour, values) in parts.items():
        axes.bar(place, constants * values, 0.7, bottom=base, color=colour, label=name)
        base += constants * values
    errors = [error for several in results.errors.values() for error in several]
    axes.plot(place, errors, "k_", markersize=16, markeredgewidth=2, label="true error (unknown)")
    axes.set_xticks(place, labels=labels)
    axes.set_xlabel("dofs")
    axes.set_ylabel("radius, by parts")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(
        f"uniform refinement takes {saving(results):.0f} times as many dofs for what adaptive refinement proves at its "
        f"level {reached(results).level}",
        fontsize=10,
        pad=14,
    )
    axes.legend(fontsize=9, frameon=False, loc="upper center", ncols=2)


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    directory.mkdir(parents=True, exist_ok=True)
    results = main()
    check(results)
    print(table(results))
    print(f"uniform refinement needs {saving(results):.1f} times the dofs for the bound of its last level")
    draw(results, directory / "certificate_refines_plate.png")
