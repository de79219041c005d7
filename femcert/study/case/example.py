"""A complete case to start from: mesh, data, candidate and a case file with comments."""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import meshio
import numpy as np
from skfem import MeshTri

from ...checks import Array
from ...errors import InputError
from ...mesh import load_mesh
from ...problem import Problem
from ..keys import parsed_file
from .data import Measurements
from .equation import build_problem, state_basis
from .sensors import build_sensors
from .spaces import build_space

CASE = Path(__file__).with_name("example.toml")
# The source that the data were made from, in the coordinates of the class, and what the candidate makes of it.
TRUTH = (0.8, -0.5, 0.6, 0.2, -0.3, 0.1, 0.0, 0.05)
GUESS = (0.798, -0.497, 0.6, 0.203, -0.295, 0.1, 0.005, 0.0475)
NOISE = 0.01


def write_example(folder: Path) -> Path:
    """Write the example to a new or empty directory; the path of its case file.

    The data are a known source's, with noise of one per cent. The candidate stands for that of a network: the same
    source, a little off.

    Raises
    ------
    InputError
        The directory is not empty, or cannot be written to.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        came = "is not empty" if folder.is_dir() else "is a file"
        raise InputError(f"{folder} {came}; expected a new or empty directory")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}") from None
    try:
        _fill(draft)
        # A directory of this kind is for its owner alone; the others are as the user wants them.
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o777 & ~mask)
        if folder.exists():
            folder.rmdir()
        draft.rename(folder)
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder / "case.toml"


def _fill(folder: Path) -> None:
    _write_mesh(folder / "mesh.msh")
    problem, points = _problem(folder)
    space = problem.parameters
    exact = problem.observe(problem.solve(space.field(TRUTH)))
    deviation = NOISE * float(np.sqrt(np.mean(exact**2)))
    values = exact + deviation * np.random.default_rng(0).standard_normal(exact.size)
    with (folder / "data.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["x", "y", "value", "deviation"])
        for (x, y), value in zip(points.tolist(), values.tolist(), strict=True):
            writer.writerow([round(x, 6), round(y, 6), f"{value:.8g}", f"{deviation:.4g}"])
    guess = space.field(GUESS)
    fields = {"source": guess, "potential": problem.solve(guess)}
    mesh = problem.basis.mesh
    flat = np.column_stack([mesh.p.T, np.zeros(mesh.nvertices)])
    meshio.Mesh(flat, {"triangle": mesh.t.T}, point_data=fields).write(folder / "candidate.vtu")
    shutil.copyfile(CASE, folder / "case.toml")


def _problem(folder: Path) -> tuple[Problem, Array]:
    """The problem of the case with its sensors on a grid."""
    record = parsed_file(CASE)
    basis = state_basis(load_mesh(folder / "mesh.msh"), record["problem"]["degree"])
    grid = np.meshgrid(np.linspace(0.15, 1.85, 7), np.linspace(0.15, 0.85, 4), indexing="ij")
    points = np.round(np.array(grid).reshape(2, -1).T, 6)
    sensors = build_sensors(record["sensors"], basis, Measurements(np.zeros(len(points)), points=points))
    space = build_space(record["class"], basis, folder)
    return build_problem(record["problem"], record["boundary"], basis, space, sensors), points


def _write_mesh(path: Path) -> None:
    """Three layers on a 2 x 1 plate, with physical groups, as Gmsh writes them."""
    mesh = MeshTri.init_tensor(np.linspace(0.0, 2.0, 41), np.linspace(0.0, 1.0, 21))
    height = mesh.p[1, mesh.t].mean(axis=0)
    layers = [("bottom", height < 0.35), ("middle", (height > 0.35) & (height < 0.7)), ("top", height > 0.7)]
    facets = mesh.boundary_facets()
    x, y = mesh.p[:, mesh.facets[:, facets]].mean(axis=1)
    edges = [("ground", y == 0.0), ("sides", (x == 0.0) | (x == 2.0)), ("surface", y == 1.0)]
    cells: list[Any] = [("line", mesh.facets[:, facets[chosen]].T) for _, chosen in edges]
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
