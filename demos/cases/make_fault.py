"""Make the data and the candidate of fault.toml: a heat source in faulted layers, and what a trained map makes of it.

The map from sensor values to sources is fitted to 400 random intrusions in the basement, and reads measurements of one
more that it has not seen. Run:  python demos/cases/make_fault.py
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import meshio
import numpy as np
from skfem import Basis, ElementTriP1

import femcert as fc

HERE = Path(__file__).parent
NOISE = 0.02


def problem_of_the_case() -> tuple[fc.EllipticSource, np.ndarray]:
    """The same problem as in fault.toml, in Python, and where its sensors are."""
    basis = Basis(fc.load_mesh(HERE / "../../meshes/fault.msh"), ElementTriP1())
    depth, x = np.meshgrid([0.2, 0.4, 0.6, 0.8], np.linspace(0.1, 1.9, 9))
    points = np.column_stack([x.ravel(), -depth.ravel()]).round(6)
    problem = fc.EllipticSource(
        basis,
        parameters=fc.EigenmodeSpace(basis, 10, boundary="neumann"),
        sensors=fc.AverageSensors(basis, points, radius=0.04),
        conductivity={"upper": fc.Polynomial(lambda x: 1.0 + 0.5 * x[1], 1), "middle": 0.4, "basement": 2.0},
        dirichlet={"surface": 0.0},
        neumann={"bottom": 0.05},
        robin={"sides": (0.5, 0.0)},
    )
    return problem, points


def random_sources(problem: fc.EllipticSource, count: int, rng: np.random.Generator) -> np.ndarray:
    """Coordinates of warm spots in the basement."""
    places = rng.uniform((0.3, -0.95), (1.7, -0.65), (count, 2))
    x = problem.basis.doflocs.T
    spots = [np.exp(-((x - place) ** 2).sum(axis=1) / 0.08) for place in places]
    return np.array([problem.parameters.project(spot)[0] for spot in spots])


def main(folder: Path = HERE) -> None:
    """Write fault_data.csv and fault_candidate.vtu."""
    folder.mkdir(parents=True, exist_ok=True)
    problem, points = problem_of_the_case()
    rng = np.random.default_rng(7)
    space, offset = problem.parameters, problem.observe(problem.solve(np.zeros(problem.parameters.basis.N)))
    sources = random_sources(problem, 401, rng)
    exact = sources @ problem.forward_matrix().T
    deviation = NOISE * float(np.sqrt(np.mean(exact**2)))
    seen = exact + deviation * rng.standard_normal(exact.shape)
    learned = np.linalg.lstsq(seen[1:], sources[1:], rcond=None)[0]
    with (folder / "fault_data.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["x", "y", "value", "std"])
        for place, value in zip(points.tolist(), (offset + seen[0]).tolist(), strict=True):
            writer.writerow([*place, f"{value:.8g}", f"{deviation:.4g}"])
    source = space.field(seen[0] @ learned)
    mesh = problem.basis.mesh
    flat = np.column_stack([mesh.p.T, np.zeros(mesh.nvertices)])
    fields = {"heat_source": source, "temperature": problem.solve(source)}
    meshio.Mesh(flat, {"triangle": mesh.t.T}, point_data=fields).write(folder / "fault_candidate.vtu")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
