"""Damaged files of every kind that femcert reads, and what reading them may come to.

A reader may refuse a file with a `FemcertError` of one line, or read it. What was read must be whole: the same as from
the undamaged file wherever the format can tell (archives with checksums, files that were cut), and
valid in any case. A number that was exchanged for another one in a text is a different file, not a damaged one.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import meshio
import numpy as np
from skfem import Basis, ElementTriP1, MeshTri
from skfem.io.meshio import to_meshio

import femcert as fc
from femcert.paper import Sweep

EXTREMES = ["nan", "inf", "-1", "0", "1e999", "99999999999", "-7.5", "1e-320", "", "\x00", "true", "[]", "0x10", "é"]
GRID = {"sensors": (5, 7), "noise": (0.1,), "perturbation": (0.1,), "mismatch": (0.0, 0.1), "replications": 3}


class WrongResult(Exception):
    """A damaged file was read as something that it is not."""


@dataclass(frozen=True)
class Kind:
    """Files of one kind.

    Attributes
    ----------
    write
        Writes an undamaged file (or directory) and returns the path of what is to be damaged.
    read
        Reads it to something comparable; raises `WrongResult` if that cannot be.
    exact
        Whatever is read must be equal to the undamaged: the format has checksums.
    counted
        A file that was cut is noticed: the format counts its entries or marks its end.
    """

    write: Callable[[Path], Path]
    read: Callable[[Path], Any]
    exact: bool = False
    counted: bool = True


@cache
def problem() -> fc.EllipticSource:
    basis = Basis(MeshTri().refined(2), ElementTriP1())
    sensors = fc.PointSensors(basis, [(0.3, 0.3), (0.7, 0.4), (0.4, 0.8), (0.6, 0.6)])
    return fc.EllipticSource(basis, parameters=fc.SineSpace(basis, 3), sensors=sensors)


@cache
def candidate() -> fc.Candidate:
    return fc.Candidate.from_coefficients(problem(), [1.0, -0.5, 0.25], optimality=0.125)


# Writers


def write_mesh(ending: str, options: dict[str, Any], folder: Path) -> Path:
    path = folder / f"mesh.{ending}"
    mesh = to_meshio(MeshTri().refined(1))
    points = mesh.points if mesh.points.shape[1] == 3 else np.column_stack([mesh.points, np.zeros(len(mesh.points))])
    meshio.Mesh(points, {"triangle": mesh.cells[0].data}).write(path, **options)
    return path


def write_gmsh(name: str, folder: Path) -> Path:
    """A shipped mesh with physical groups."""
    return Path(shutil.copy(Path(__file__).parents[1] / "meshes" / name, folder / name))


def write_candidate(ending: str, folder: Path) -> Path:
    path, fields = folder / f"candidate.{ending}", candidate()
    if ending == "npz":
        fields.save(path)
        return path
    mesh = to_meshio(problem().basis.mesh)
    data = {"parameter": fields.parameter, "state": fields.state}
    if ending == "csv":
        table = np.column_stack([mesh.points[:, :2], fields.parameter, fields.state])
        np.savetxt(path, table, delimiter=",", header="x,y,parameter,state", comments="", fmt="%.17g")
        return path
    points = np.column_stack([mesh.points[:, :2], np.zeros(len(mesh.points))])
    meshio.Mesh(points, {"triangle": mesh.cells[0].data}, point_data=data).write(path)
    return path


@cache
def selection_of(rule: str) -> fc.Selection:
    made = {"dominance": fc.Dominance(), "operational": fc.OperationalRadius(optimality=0.1)}[rule]
    data = problem().simulate(candidate().parameter, noise=0.05)
    return fc.no_harm(problem(), data, baseline=fc.Tikhonov(weight=1e-3), learned=candidate(), rule=made)


def write_selection(rule: str, folder: Path) -> Path:
    selection_of(rule).save(folder / "selection.json")
    return folder / "selection.json"


@cache
def swept() -> Sweep:
    return fc.sweep(grid=GRID, seed=3)


def write_sweep(folder: Path) -> Path:
    swept().save(folder / "trials.npz")
    return folder / "trials.npz"


def write_case(name: str, folder: Path) -> Path:
    from femcert.study.example import write_example

    write_example(folder / "case")
    return folder / "case" / name


# Readers


def read_mesh(path: Path) -> Any:
    mesh = fc.load_mesh(path)
    if not np.isfinite(mesh.p).all() or mesh.t.min() < 0 or mesh.t.max() >= mesh.p.shape[1]:
        raise WrongResult("a mesh that is none")
    if not np.all(np.abs(Basis(mesh, mesh.elem()).dx) > 0.0):
        raise WrongResult("a mesh with empty cells")
    return mesh.p.tobytes(), mesh.t.tobytes(), sorted(mesh.boundaries or {}), sorted(mesh.subdomains or {})


def read_candidate(path: Path) -> Any:
    found = fc.Candidate.from_file(problem(), path)
    if not np.isfinite(found.parameter).all() or not np.isfinite(found.state).all():
        raise WrongResult("a candidate that is not finite")
    problem().residual(found.state, found.parameter)
    return found.state.tobytes(), found.parameter.tobytes(), found.optimality


def read_selection(path: Path) -> Any:
    found = fc.Selection.load(path)
    json.dumps(found.to_dict(), allow_nan=False)
    str(found)
    return found.to_dict()


def read_sweep(path: Path) -> Any:
    found = Sweep.load(path)
    str(found)
    return found.grid, found.seed, found.rules, found.records.tobytes()


def read_case(path: Path) -> Any:
    from femcert.study.case import read_certify_case

    found = read_certify_case(path.parent / "case.toml").select()
    json.dumps(found.to_dict(), allow_nan=False)
    if found.accepted and not found.learned.radius.value <= found.baseline.radius.value + found.tolerance:
        raise WrongResult("accepted against the evidence")
    return found.accepted


_MESHES: dict[str, tuple[dict[str, Any], bool]] = {
    "vtu": ({}, True),
    "vtk": ({}, True),
    "xdmf": ({"data_format": "XML"}, True),
    "inp": ({}, False),
    "mesh": ({}, True),
    "xml": ({}, True),
    "bdf": ({}, False),
    "obj": ({}, False),
}
KINDS: dict[str, Kind] = {
    **{
        f"mesh .{ending}": Kind(partial(write_mesh, ending, options), read_mesh, counted=counted)
        for ending, (options, counted) in _MESHES.items()
    },
    "mesh .msh, Gmsh 4": Kind(partial(write_mesh, "msh", {"file_format": "gmsh"}), read_mesh),
    "mesh .msh, Gmsh 2": Kind(partial(write_mesh, "msh", {"file_format": "gmsh22", "binary": False}), read_mesh),
    "mesh .msh, groups": Kind(partial(write_gmsh, "interval.msh"), read_mesh),
    "candidate .npz": Kind(partial(write_candidate, "npz"), read_candidate, exact=True),
    "candidate .csv": Kind(partial(write_candidate, "csv"), read_candidate, counted=False),
    "candidate .vtu": Kind(partial(write_candidate, "vtu"), read_candidate),
    "selection, operational": Kind(partial(write_selection, "operational"), read_selection),
    "selection, dominance": Kind(partial(write_selection, "dominance"), read_selection),
    "sweep, trials.npz": Kind(write_sweep, read_sweep, exact=True),
    "case file": Kind(partial(write_case, "case.toml"), read_case, counted=False),
    "case, data": Kind(partial(write_case, "data.csv"), read_case, counted=False),
    "case, candidate": Kind(partial(write_case, "candidate.vtu"), read_case),
}


# Damage


def damaged(original: bytes, rng: np.random.Generator) -> tuple[bytes, bool]:
    """The file with one accident or a few, and whether it was only cut."""
    if rng.random() < 0.25:
        return original[: rng.integers(0, len(original))], True
    result = original
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        result = ACCIDENTS[rng.integers(len(ACCIDENTS))](result, rng)
    return result, False


def _span(data: bytes, rng: np.random.Generator) -> tuple[int, int]:
    start = int(rng.integers(0, max(len(data), 1)))
    return start, start + int(rng.choice([1, 2, 4, 16, 64]))


def _flip(data: bytes, rng: np.random.Generator) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        if found:
            found[rng.integers(len(found))] ^= 1 << int(rng.integers(8))
    return bytes(found)


def _remove(data: bytes, rng: np.random.Generator) -> bytes:
    start, stop = _span(data, rng)
    return data[:start] + data[stop:]


def _insert(data: bytes, rng: np.random.Generator) -> bytes:
    start, stop = _span(data, rng)
    return data[:start] + rng.bytes(stop - start) + data[start:]


def _repeat(data: bytes, rng: np.random.Generator) -> bytes:
    start, stop = _span(data, rng)
    return data[:stop] + data[start:]


def _blank(data: bytes, rng: np.random.Generator) -> bytes:
    start, stop = _span(data, rng)
    return data[:start] + b"\x00" * len(data[start:stop]) + data[stop:]


def _swap_lines(data: bytes, rng: np.random.Generator) -> bytes:
    lines = data.split(b"\n")
    i, j = rng.integers(len(lines), size=2)
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def _drop_line(data: bytes, rng: np.random.Generator) -> bytes:
    lines = data.split(b"\n")
    del lines[rng.integers(len(lines))]
    return b"\n".join(lines)


def _extreme(data: bytes, rng: np.random.Generator) -> bytes:
    """Another number, or none, in the place of a number."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?(e[-+]?\d+)?", data))
    if not found:
        return data
    match = found[rng.integers(len(found))]
    return data[: match.start()] + EXTREMES[rng.integers(len(EXTREMES))].encode() + data[match.end() :]


ACCIDENTS = [_flip, _remove, _insert, _repeat, _blank, _swap_lines, _drop_line, _extreme, _extreme]


# One input


def outcome(kind: Kind, path: Path, expected: Any, *, cut: bool) -> str:
    """``"refused"``, ``"same"`` or ``"another"``; raises what must not happen.

    Raises
    ------
    WrongResult
        It was read as what it cannot be, or refused in more than a line.
    Exception
        Any other exception is one that a user should not see.
    """
    try:
        found = kind.read(path)
    except fc.FemcertError as error:
        if not str(error).strip() or "\n" in str(error):
            raise WrongResult(f"no line of a message: {error!r}") from None
        return "refused"
    if found == expected:
        return "same"
    if kind.exact or (cut and kind.counted):
        raise WrongResult("read as something else than what was written")
    return "another"


@dataclass(frozen=True)
class Bench:
    """A directory where the damaged files of one kind are made and read."""

    kind: Kind
    folder: Path
    path: Path
    original: bytes
    expected: Any

    @classmethod
    def of(cls, name: str, folder: Path) -> Bench:
        clean = folder / "clean"
        clean.mkdir(parents=True)
        path = KINDS[name].write(clean)
        return cls(KINDS[name], folder, path.relative_to(clean), path.read_bytes(), KINDS[name].read(path))

    def run(self, name: str, seed: int) -> str:
        """The outcome of the damage with this number; the file stays where it is."""
        rng = np.random.default_rng([seed, *name.encode()])
        data, cut = damaged(self.original, rng)
        shutil.rmtree(self.folder / "damaged", ignore_errors=True)
        shutil.copytree(self.folder / "clean", self.folder / "damaged")
        (self.folder / "damaged" / self.path).write_bytes(data)
        return outcome(self.kind, self.folder / "damaged" / self.path, self.expected, cut=cut)
