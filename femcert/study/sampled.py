"""What a case learns from samples, truths and errors of the model from files, and solvers that rules try on them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from skfem import Basis

from ..certificate import Calibrated, ConformalRadius
from ..checks import Array, naming, real_array
from ..errors import InputError
from ..learn import NeuralOperator
from ..mesh.elements import degree
from ..mesh.read import read_raw
from ..mesh.transfer import PointCloud, Transfer
from ..problem import Candidate, Data, Problem, Samples
from ..problem.candidate_files import read_arrays
from ..problem.candidate_meshes import MeshFields
from ..problem.space import ParameterSpace
from ..timing import stage
from .keys import checked_text
from .measurements import header, read_columns

# What an archive of truths may have, and what the header of a table calls coordinates.
FIELDS, POINTS, ERRORS = "fields", "points", "errors"
AXES = ("x", "y")
MESHES = (".vtu", ".vtk", ".xdmf", ".xmf")


def read_truths(folder: Path, file: Any, space: ParameterSpace, key: str) -> Samples:
    """The samples in a file: a truth for each row of an array, for each column of a table or for each field on a mesh.

    Those that are not on the dofs of the class are interpolated there.
    """
    path = folder / checked_text(file, key, "the name of a file")
    with stage("samples"), naming(key):
        if path.suffix.lower() == ".npz":
            found = read_arrays(path, lambda names: (FIELDS, POINTS, ERRORS))
            if FIELDS not in found:
                raise InputError(f"it has no array {FIELDS!r}; expected a truth in each row of it")
            rows = real_array(found[FIELDS], FIELDS)
            if POINTS in found:
                rows = _from_points(space.basis, found[POINTS], rows.T)
        elif path.suffix.lower() == ".csv":
            rows, found = _from_table(path, space.basis), {}
        elif path.suffix.lower() in MESHES:
            rows, found = _from_mesh(path, space.basis), {}
        else:
            raise InputError(f"its ending is {path.suffix!r}; expected .npz, .csv, {', '.join(MESHES)}")
        if rows.ndim != 2 or rows.shape[1] != space.size:
            raise InputError(f"{FIELDS} has shape {rows.shape}; expected (n, {space.size}), a truth in each row")
        return Samples(rows, errors=found.get(ERRORS))


def _from_points(target: Basis, points: Any, columns: Array) -> Array:
    cloud = PointCloud(points, target.mesh.dim())
    move = Transfer(cloud.basis, target, words=cloud.words, tolerance=cloud.spacing)
    return move(cloud.nodal(columns, FIELDS), FIELDS)[0].T


def _from_table(path: Path, target: Basis) -> Array:
    names, axes = header(path), AXES[: target.mesh.dim()]
    found = read_columns(path, {name: (name,) for name in names}, required=axes)
    truths = [name for name in names if name not in axes]
    if not truths:
        raise InputError(f"{path} has the columns {', '.join(names)}; expected one for each truth beside these")
    points = np.column_stack([found[axis] for axis in axes])
    return _from_points(target, points, np.column_stack([found[name] for name in truths]))


def _from_mesh(path: Path, target: Basis) -> Array:
    fields = MeshFields(read_raw(path))
    if not fields.names:
        raise InputError("it has no fields; expected one for each truth")
    home, columns = fields.columns(sorted(fields.names), cellwise=degree(target) == 0)
    words = f"a mesh of {home.mesh.nvertices} nodes"
    return Transfer(home, target, words=words)(columns.reshape(home.N, -1), FIELDS)[0].T


def read_rows(folder: Path, given: Any, name: str) -> Array:
    """A matrix: lists, the array of that name in an archive, or the rows of a table under a header."""
    if not isinstance(given, str):
        return real_array(given, name)
    path = folder / checked_text(given, name, "the name of a file")
    with naming(name):
        if path.suffix.lower() == ".npz":
            found = read_arrays(path, lambda names: (name, ERRORS))
            if not found:
                raise InputError(f"it has no array {name!r}")
            return real_array(found.get(name, found.get(ERRORS)), name)
        if path.suffix.lower() == ".csv":
            names = header(path)
            columns = read_columns(path, {heading: (heading,) for heading in names})
            return np.column_stack([columns[heading] for heading in names])
        raise InputError(f"its ending is {path.suffix!r}; expected .npz or .csv")


def with_model_error(
    data: Data,
    folder: Path,
    *,
    samples: Any = None,
    confidence: float = 0.95,
    matrix: Any = None,
    size: float | None = None,
) -> Data:
    """`Data.with_model_error`; samples and matrix are files or lists, in the order of the values."""
    found = {name: given for name, given in (("samples", samples), ("matrix", matrix)) if given is not None}
    rows = {name: read_rows(folder, given, name) for name, given in found.items()}
    return data.with_model_error(rows.get("samples"), confidence=confidence, matrix=rows.get("matrix"), size=size)


def calibrated(*, samples: str, harm: float = 0.05, confidence: float = 0.95) -> Calibrated:
    """`Calibrated` on the truths of a file, which are read when the class is known."""
    return Calibrated(samples=samples, harm=harm, confidence=confidence)


def conformal(*, samples: str, confidence: float = 0.95) -> ConformalRadius:
    """`ConformalRadius` on the truths of a file."""
    return ConformalRadius(samples=samples, confidence=confidence)


@dataclass(frozen=True)
class LinearMap:
    """A solver: the dof vector ``matrix @ values + offset`` of measured values.

    Attributes
    ----------
    matrix, offset
        ``(N, m)`` and ``(N,)``.
    name
        Of its candidates.
    """

    matrix: Array
    offset: Array
    name: str

    def __call__(self, problem: Problem, data: Data) -> Candidate:
        """The candidate, with the state that the equation gives it."""
        q = problem.check_parameter(self.matrix @ data.values + self.offset)
        return Candidate(problem.solve(q) if problem.states else None, q, None, self.name, mesh=problem.mesh)


def linear_map(problem: Problem, folder: Path, key: str, *, file: str, name: str | None = None) -> LinearMap:
    """From an archive with ``matrix`` and, if it has one, ``offset``."""
    path, shape = folder / file, (problem.parameters.size, problem.observation_count)
    with naming(key):
        found = read_arrays(path, lambda names: ("matrix", "offset"))
        if "matrix" not in found:
            raise InputError(f"it has no array 'matrix'; expected one of shape {shape}")
        matrix = real_array(found["matrix"], "matrix")
        offset = real_array(found.get("offset", np.zeros(shape[0])), "offset")
        if matrix.shape != shape or offset.shape != shape[:1]:
            came = f"matrix has shape {matrix.shape}, offset {offset.shape}"
            raise InputError(f"{came}; expected {shape}, a row per dof and a column per value, and {shape[:1]}")
    return LinearMap(matrix, offset, path.stem if name is None else name)


def operator(folder: Path, key: str, *, file: str, name: str | None = None) -> NeuralOperator:
    """A `NeuralOperator` that was saved."""
    with naming(key):
        return NeuralOperator.load(folder / file, name=Path(file).stem if name is None else name)
