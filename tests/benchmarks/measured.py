"""What benchmarks share: clocks, meshes of the unit square, demos as modules, tables as files."""

import csv
import importlib.util
import sys
import time
from pathlib import Path

import numpy as np
from skfem import Basis, ElementTriP1, MeshTri

HERE = Path(__file__).parent
RESULTS = HERE / "results"


def timed(call, *arguments, clock=time.perf_counter):
    """What a call returns, and its seconds; `time.process_time` as the clock does not count other work."""
    start = clock()
    result = call(*arguments)
    return result, clock() - start


def seconds(call, *arguments):
    """How long a call takes."""
    return timed(call, *arguments)[1]


def plane(side, jitter=0.0):
    """P1 on ``side²`` vertices; the inner ones are moved at random by up to `jitter` of the mesh width."""
    line = np.linspace(0.0, 1.0, side)
    mesh = MeshTri.init_tensor(line, line)
    if jitter:
        p, inner = mesh.p.copy(), mesh.interior_nodes()
        p[:, inner] += np.random.default_rng(0).uniform(-jitter, jitter, (2, len(inner))) / (side - 1)
        mesh = MeshTri(p, mesh.t)
    return Basis(mesh, ElementTriP1())


def load_demo(name):
    """A demo as a module."""
    path = HERE.parents[1] / "demos" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def write_rows(rows, path):
    """A table with a column for each key, if a file is named."""
    if path is None:
        return
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_page(name, text):
    """To `results`."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / name).write_text(text, encoding="utf-8")
