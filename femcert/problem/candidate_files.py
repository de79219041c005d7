"""Reads the fields of a candidate from a file: NPZ, CSV, or VTU, VTK and XDMF with a mesh."""

from __future__ import annotations

import csv
import json
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO
from zipfile import BadZipFile, is_zipfile

import numpy as np
from skfem import Basis

from ..checks import Array, number, real_array
from ..errors import InputError
from ..files import written
from ..mesh.elements import degree
from ..mesh.read import read_raw
from ..mesh.transfer import Interpolation
from .base import Problem
from .candidate_meshes import MeshFields

# What np.load raises for a missing, damaged or foreign file; TypeError for a lone array, which is no archive.
_READ_ERRORS = (OSError, ValueError, TypeError, KeyError, EOFError, RuntimeError, MemoryError, BadZipFile, zlib.error)
# Formats whose fields come in the order of the nodes. In Gmsh's they come with node numbers, which meshio overlooks.
_WITH_MESH = (".vtu", ".vtk", ".xdmf", ".xmf")
# What an archive may hold besides the fields.
_OTHERS = ("points", "optimality", "interpolation")
# How coordinates are called, by us and by ParaView.
_AXES = (("x", "Points:0", "Points_0"), ("y", "Points:1", "Points_1"))


@dataclass(frozen=True)
class FileFields:
    """What a file says of a candidate.

    Attributes
    ----------
    parameter, state
        Values: on the dofs of `parameter_basis` and `basis` where the file has a mesh, at `points` where it has these,
        else on the problem's own dofs.
    """

    parameter: Any
    state: Any = None
    basis: Basis | None = None
    parameter_basis: Basis | None = None
    points: Array | None = None
    optimality: float | None = None
    interpolation: Interpolation | None = None


def read_fields(path: Path, problem: Problem, *, parameter: str, state: str | None) -> FileFields:
    """The fields called `parameter` and `state` in a file; see `Candidate.from_file`.

    Raises
    ------
    InputError
        The file is missing, damaged, of an unknown format, or has no such field.
    """
    ending = path.suffix.lower()
    if ending == ".npz":
        return _from_archive(path, parameter, state)
    if ending == ".csv":
        if problem.mesh is None:
            raise InputError("the problem has no mesh for the rows of a table; expected .npz")
        return _from_table(path, problem.mesh.dim(), parameter, state)
    if ending not in _WITH_MESH:
        raise InputError(f"its ending is {path.suffix!r}; expected .npz, .csv, {', '.join(_WITH_MESH)}")
    fields = MeshFields(read_raw(path))
    basis, u = None, None
    names = _state_names(fields.names, state)
    if names:
        basis, u = fields.columns(names, cellwise=False)
    cellwise = degree(problem.parameters.basis) == 0
    home, q = fields.columns([_required(fields.names, parameter)], cellwise=cellwise)
    return FileFields(q, u, home if basis is None else basis, home)


def _required(names: Iterable[str], wanted: str) -> str:
    names = sorted(names)
    if wanted not in names:
        raise InputError(f"it has {', '.join(map(repr, names)) or 'no fields'}; expected one called {wanted!r}")
    return wanted


def _state_names(names: Iterable[str], state: str | None) -> list[str]:
    """The field `state`, or ``state_0``, ``state_1`` and so on, or none if it was not named."""
    names, base = set(names), "state" if state is None else state
    if base in names:
        return [base]
    found = {name: re.fullmatch(re.escape(base) + r"_(\d{1,9})", name) for name in names}
    numbers = {name: int(match[1]) for name, match in found.items() if match}
    if not numbers:
        return [] if state is None else [_required(names, base)]
    # Python reads 00 as a number too, and the digits of other scripts.
    odd = sorted(name for name, i in numbers.items() if name != f"{base}_{i}")
    if odd or sorted(numbers.values()) != list(range(len(numbers))):
        came = f"are numbered as in {odd[0]!r}" if odd else f"have the numbers {sorted(numbers.values())}"
        raise InputError(f"its fields {base}_... {came}; expected 0, 1, 2 and so on, one per time")
    return [f"{base}_{i}" for i in range(len(numbers))]


def _columns(get: Callable[[str], Any], names: list[str]) -> Any:
    """The named arrays, side by side if there are several."""
    return get(names[0]) if len(names) == 1 else np.column_stack([get(name) for name in names])


def read_arrays(path: Path, wanted: Callable[[set[str]], Iterable[str]]) -> dict[str, Any]:
    """Arrays of an ``.npz`` file: those of the wanted that are there, chosen by the names of all.

    Raises
    ------
    InputError
        The file is missing, damaged, or no archive of plain arrays.
    """
    try:
        # np.load would leave a damaged file open.
        with path.open("rb") as file:
            if not is_zipfile(file):
                raise ValueError("it is no zip archive")
            file.seek(0)
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array")
            return _arrays(archive, wanted(_names_once(archive)))
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError("there is no such file") from None
    except _READ_ERRORS as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"it cannot be read as an .npz archive of plain arrays: {reason}") from None


def _from_archive(path: Path, parameter: str, state: str | None) -> FileFields:
    names: list[str] = []

    def wanted(found: set[str]) -> list[str]:
        fields = found - {"points", "optimality"}
        names[:] = _state_names(fields, state)
        return [_required(fields, parameter), *names, *_OTHERS]

    arrays = read_arrays(path, wanted)
    parts = {name: real_array(arrays[name], name) for name in names}
    if len({values.shape for values in parts.values()}) > 1:
        raise InputError(f"its arrays {', '.join(parts)} have different shapes; expected the same")
    return FileFields(
        parameter=real_array(arrays[parameter], parameter),
        state=_columns(parts.__getitem__, names) if names else None,
        points=arrays.get("points"),
        optimality=number(arrays["optimality"], "optimality") if "optimality" in arrays else None,
        interpolation=_interpolation(arrays["interpolation"]) if "interpolation" in arrays else None,
    )


def _names_once(archive: Any) -> set[str]:
    """Names of the arrays; of two with one name NumPy would take the last."""
    names = Counter(name.removesuffix(".npy") for name in archive.zip.namelist())
    twice = sorted(name for name, count in names.items() if count > 1)
    if twice:
        raise InputError(f"it has {twice[0]!r} twice; expected each name once")
    for member in archive.zip.infolist():
        # Compares its name with the one in the directory: damage there would make a field one that nobody asked for.
        archive.zip.open(member).close()
    return set(names)


def _arrays(archive: Any, wanted: Iterable[str]) -> dict[str, Any]:
    """Those of the wanted arrays that are there."""
    found = {name: archive[name] for name in wanted if name in archive.files}
    for name, values in found.items():
        if not isinstance(values, np.ndarray):
            raise InputError(f"its member {name!r} is no array; expected what np.savez writes")
    return found


def _interpolation(text: Any) -> Interpolation:
    """What `Candidate.save` noted, as JSON."""
    try:
        record = json.loads(str(text[()]))
    except (ValueError, RecursionError) as error:
        raise InputError(f"its record of an interpolation is damaged: {error}") from None
    return Interpolation.from_dict(record)


def write_archive(path: Any, *, interpolation: Interpolation | None, **values: Any) -> None:
    """Write an ``.npz`` file with all `values` that are not None."""
    if not isinstance(path, (str, Path)) or Path(path).suffix != ".npz":
        raise InputError(f"path is {path!r}; expected a file name that ends in .npz")
    if interpolation is not None:
        values["interpolation"] = json.dumps(interpolation.to_dict())
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in values.items() if value is not None}
    with written(path) as draft, draft.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def _check_widths(file: TextIO, width: int) -> None:
    """Rows longer than the header are refused: with decimal commas they would be read as other numbers."""
    begin = file.tell()
    for place, row in enumerate(csv.reader(file), start=2):
        if any(entry.strip() for entry in row[width:]) and not row[0].lstrip().startswith("#"):
            raise InputError(f"line {place} has {len(row)} entries; the header has {width} (decimal commas?)")
    file.seek(begin)


def _from_table(path: Path, dimension: int, parameter: str, state: str | None) -> FileFields:
    """Columns x (and y), the parameter and perhaps the state, under a header."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = [name.strip() for name in next(csv.reader([file.readline()], skipinitialspace=True), [])]
            axes = [_axis(header, names) for names in _AXES[:dimension]]
            columns = [*axes, _required(header, parameter), *_state_names(header, state)]
            twice = [name for name in columns if header.count(name) > 1]
            if twice:
                raise InputError(f"its header has {twice[0]!r} twice; expected each name once")
            places = [header.index(name) for name in columns]
            _check_widths(file, len(header))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                table = np.loadtxt(file, delimiter=",", usecols=places, ndmin=2, quotechar='"')
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError("there is no such file") from None
    except (OSError, ValueError, Warning, MemoryError, csv.Error) as error:
        raise InputError(f"it cannot be read as a table of numbers with commas: {error}") from None
    u = table[:, dimension + 1 :]
    return FileFields(
        parameter=real_array(table[:, dimension], parameter),
        state=None if not u.shape[1] else u[:, 0] if u.shape[1] == 1 else u,
        points=real_array(table[:, :dimension], "coordinates"),
    )


def _axis(header: list[str], names: tuple[str, ...]) -> str:
    found = [name for name in names if name in header]
    return found[0] if found else _required(header, names[0])
