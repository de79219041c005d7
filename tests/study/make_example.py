"""Make the files of ``femcert certify --example``. Run:  python tests/study/make_example.py femcert/study/example"""

import csv
import sys
from pathlib import Path

import meshio
import numpy as np
from skfem import Basis, ElementTriP1, MeshTri

import femcert as fc

# The source that the data were made from, in the coordinates of the class, and what the candidate makes of it.
TRUTH = (0.8, -0.5, 0.6, 0.2, -0.3, 0.1, 0.0, 0.05)
GUESS = (0.798, -0.497, 0.6, 0.203, -0.295, 0.1, 0.005, 0.0475)
NOISE = 0.01


def make(folder):
    """Write mesh, data and candidate to a directory."""
    write_mesh(folder / "mesh.msh")
    problem = problem_of_the_case(fc.load_mesh(folder / "mesh.msh"))
    space = problem.parameters
    exact = problem.observe(problem.solve(space.field(TRUTH)))
    deviation = NOISE * float(np.sqrt(np.mean(exact**2)))
    values = exact + deviation * np.random.default_rng(0).standard_normal(exact.size)
    with (folder / "data.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["x", "y", "value", "deviation"])
        for (x, y), value in zip(problem.sensors.points.tolist(), values.tolist(), strict=True):
            writer.writerow([round(x, 6), round(y, 6), f"{value:.8g}", f"{deviation:.4g}"])
    guess = space.field(GUESS)
    fields = {"source": guess, "potential": problem.solve(guess)}
    mesh = problem.basis.mesh
    flat = np.column_stack([mesh.p.T, np.zeros(mesh.nvertices)])
    meshio.Mesh(flat, {"triangle": mesh.t.T}, point_data=fields).write(folder / "candidate.vtu")


def problem_of_the_case(mesh):
    """The same problem as in the case file, in Python."""
    basis = Basis(mesh, ElementTriP1())
    grid = np.meshgrid(np.linspace(0.15, 1.85, 7), np.linspace(0.15, 0.85, 4), indexing="ij")
    points = np.round(np.array(grid).reshape(2, -1).T, 6)
    return fc.EllipticSource(
        basis,
        parameters=fc.CosineSpace(basis, 8),
        sensors=fc.AverageSensors(basis, points, radius=0.06),
        conductivity={"top": 1.0, "middle": lambda x: 0.4 + 0.1 * x[0], "bottom": 2.0},
        dirichlet={"ground": 0.0},
        neumann={"sides": 0.0},
        robin={"surface": (0.5, lambda x: 0.02 * np.sin(np.pi * x[0] / 2))},
    )


def write_mesh(path):
    """Three layers on a 2 x 1 plate, with physical groups, as Gmsh writes them."""
    mesh = MeshTri.init_tensor(np.linspace(0.0, 2.0, 41), np.linspace(0.0, 1.0, 21))
    height = mesh.p[1, mesh.t].mean(axis=0)
    layers = [("bottom", height < 0.35), ("middle", (height > 0.35) & (height < 0.7)), ("top", height > 0.7)]
    facets = mesh.boundary_facets()
    x, y = mesh.p[:, mesh.facets[:, facets]].mean(axis=1)
    edges = [("ground", y == 0.0), ("sides", (x == 0.0) | (x == 2.0)), ("surface", y == 1.0)]
    cells = [("line", mesh.facets[:, facets[chosen]].T) for _, chosen in edges]
    cells += [("triangle", mesh.t[:, chosen].T) for _, chosen in layers]
    tags = [np.full(len(block), 1 + i % 3) for i, (_, block) in enumerate(cells)]
    # Tags count from 1 in each dimension.
    names = {name: np.array([1 + i % 3, 1 + i // 3]) for i, (name, _) in enumerate([*edges, *layers])}
    raw = meshio.Mesh(
        np.column_stack([mesh.p.T, np.zeros(mesh.nvertices)]),
        cells,
        cell_data={"gmsh:physical": tags, "gmsh:geometrical": tags},
        field_data=names,
    )
    raw.write(path, file_format="gmsh22", binary=False)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
