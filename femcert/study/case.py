"""Case files in TOML. For ``femcert certify``, everything from a mesh to a decision:

.. code-block:: toml

    [case]                          # optional, for the page
    title = "Leak under the fault"
    quantity = "source"
    unit = "W/m2"

    [mesh]
    file = "fault.msh"              # relative to this file; anything that load_mesh reads

    [problem]
    kind = "elliptic-source"        # -div(a grad u) + c u = q, with q unknown
    conductivity = { upper = 1.0, middle = "0.2 + 0.1*x", basement = 3.0 }
    degree = 1                      # of the state: 1 or 2

    [boundary.dirichlet]            # without it: zero wherever no other condition is named
    surface = 0.0
    [boundary.neumann]
    bottom = 0.05
    [boundary.robin]
    sides = [1.0, "0.1*y"]          # alpha and g of a du/dn + alpha u = g

    [class]                         # the sources that we admit
    kind = "eigenmodes"
    modes = 12

    [sensors]
    kind = "averages"               # where: columns x and y of the data
    radius = 0.05

    [class.ball]                    # optional, as are [class.remainder] and [class.bounds]
    radius = 5.0                    # or samples = "truths.npz"
    norm = "h1"
    length = 0.2

    [data]
    file = "data.csv"               # columns x, y, value, and std unless it is said here
    std = 0.01                      # standard deviation, or "unknown"; also relative, covariance, repeats, noise_level
    confidence = 0.95

    [data.model]                    # optional: errors of the model; or matrix and size
    samples = "differences.csv"
    confidence = 0.95

    [regions]                       # optional: what the data refute there is not accepted
    names = ["upper", "middle"]

    [baseline]
    kind = "tikhonov"
    choose = "discrepancy"          # or file = "baseline.vtu", a reconstruction as below

    [candidate]                     # or several: [candidate.pinn], [candidate.operator]
    file = "candidate.vtu"          # fields "parameter" and, if there is one, "state"; or kind, a solver

    [rule]                          # without it: dominance; "calibrated" and "conformal" need samples, and solvers
    kind = "operational"
    pde = 0.1
    tolerance = 0.0

Several experiments that share the unknown: tables ``[[experiment]]``, each with what is its own of ``problem``,
``boundary``, ``sensors`` and ``data``; what all share stays in the tables above.

.. code-block:: toml

    [[experiment]]
    boundary.neumann = { left = 1.0 }
    data = { file = "first.csv" }
    [[experiment]]
    boundary.neumann = { right = 1.0 }
    data = { file = "second.csv" }

For ``femcert refine``, a source that is known, on finer and finer meshes: tables ``mesh``, ``problem`` (with
``source``, a number or a table by subdomain), ``boundary``, and ``study`` with the options of `refinement_study`.

The keys of a table with a ``kind`` are the arguments of the class that `PROBLEMS`, `CLASSES`, `SENSORS`, `BASELINES`,
`SOLVERS` or `RULES` of `kinds` names for it, with the same meaning. A value of a coefficient or a boundary condition is
a number, a formula in x and y, or a table of these by subdomain or boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from skfem import Basis, Mesh

from ..certificate import Rule
from ..checks import kind_of, known_keys, naming, number
from ..errors import InputError
from ..evidence import Functional
from ..problem import Data, EllipticSource, Experiments, Problem, RegionSensors, RegionSpace
from ..problem.sensors import Sensors
from ..problem.space import ParameterSpace
from ..selection import Selection, no_harm
from ..timing import stage
from .answers import baseline_of, candidates_of, made_by, solver_of
from .conditions import boundary_values, coefficient_value, state_basis
from .experiments import Part, experiments_of, said_before, stacked
from .keys import Table, check_choice, parsed_file, shown
from .kinds import CLASSES, RULES, read_mesh
from .level import Case
from .measurements import Measurements
from .outputs import files_for, files_of, labels_of
from .physics import VECTORS
from .refinement import Plan
from .sampled import read_truths
from .truths import BOUNDING, admissible, regions_of

Made = TypeVar("Made")

COEFFICIENTS = frozenset({"conductivity", "reaction", "diffusivity", "source", "capacity", "young"})
SECTIONS = (
    "case", "mesh", "problem", "boundary", "class", "sensors", "data", "experiment", "regions", "baseline", "candidate",
    "rule", "output",
)  # fmt: skip
NEEDED = ("mesh", "problem", "class", "data", "candidate")
REFINED_SECTIONS = ("mesh", "problem", "boundary", "study")


@dataclass(frozen=True)
class CertifyCase:
    """A case that was read and built.

    Attributes
    ----------
    problem, data, baseline, candidate, rule, tolerance, regions
        As `no_harm` takes them; the candidate is its `learned`: one, or several by name, finished or solvers.
    files
        Which files to write, the page last.
    inputs
        The files that it was read from, by their keys.
    noise
        Where the noise level comes from, in words.
    labels
        Title, quantity and unit for the page, as `write_report` takes them.
    """

    problem: Problem
    data: Data
    baseline: Any
    candidate: Any
    rule: Rule | None
    tolerance: float
    regions: list[Functional] | None
    files: tuple[str, ...]
    inputs: dict[str, Path]
    noise: str
    labels: dict[str, Any]

    def select(self) -> Selection:
        """The decision."""
        return no_harm(
            self.problem,
            self.data,
            baseline=self.baseline,
            learned=self.candidate,
            rule=self.rule,
            tolerance=self.tolerance,
            regions=self.regions,
        )


@dataclass(frozen=True)
class RefineCase:
    """A case of ``femcert refine``: a source that is known, and options of the study.

    Attributes
    ----------
    mesh
        The first mesh.
    source
        A number, or numbers by subdomain.
    degree
        Of the state.
    options
        Coefficients and boundary conditions as the problem takes them.
    study
        Options of `refinement_study`.
    """

    mesh: Mesh
    source: float | dict[str, float]
    degree: int
    options: dict[str, Any]
    study: dict[str, Any]

    def build(self, mesh: Mesh | None = None) -> Case:
        """The case on a mesh: the Galerkin state of the source, which is represented exactly."""
        basis = state_basis(self.mesh if mesh is None else mesh, self.degree)
        whole = np.arange(basis.mesh.nelements)
        table = self.source if isinstance(self.source, dict) else {"": self.source}
        space = RegionSpace(basis, list(table) if isinstance(self.source, dict) else [whole])
        # A problem has sensors; the bounds do not look at them.
        sensors = RegionSensors(basis, [whole])
        problem = EllipticSource(basis, parameters=space, sensors=sensors, **self.options)
        return Case(problem, parameter=space.field(list(table.values())))


def read_certify_case(path: str | Path) -> CertifyCase:
    """Read a case file and all files that it names, and build what they describe.

    Parameters
    ----------
    path
        Of the case file.

    Raises
    ------
    InputError
        A file is missing or damaged, or a key is missing, unknown or of the wrong type, or its value does not fit the
        rest; the message names file and key.
    """
    return _read(path, _certify)


def read_case(path: str | Path) -> RefineCase:
    """Read and check a case file of ``femcert refine``.

    Parameters
    ----------
    path
        Of the case file.

    Raises
    ------
    InputError
        The file or its mesh is missing or damaged, or a key is missing, unknown or of the wrong type; the message names
        file and key.
    """
    return _read(path, _refine)


def _read(path: str | Path, build: Callable[[Mapping[str, Any], Path], Made]) -> Made:
    if not isinstance(path, (str, Path)):
        raise InputError(f"path is {kind_of(path)}; expected a file name")
    path = Path(path)
    try:
        return build(parsed_file(path), path.parent)
    except InputError as error:
        raise InputError(f"case file '{path}': {error}") from None


def _checked(record: Mapping[str, Any], sections: tuple[str, ...], needed: tuple[str, ...]) -> None:
    known_keys(record, sections, "")
    for name in needed:
        if name not in record:
            raise InputError(f"section [{name}] is missing")


def _refine(record: Mapping[str, Any], folder: Path) -> RefineCase:
    _checked(record, REFINED_SECTIONS, ("mesh", "problem"))
    file = Table.read(record["mesh"], "mesh", read_mesh)
    section = Table.read(record["problem"], "problem", {"elliptic-source": EllipticSource}, ("source", "degree"))
    study = Table.read(record.get("study", {}), "study", Plan)
    study()
    if "source" not in section.more:
        raise InputError("problem.source is missing")
    source, plain = section.more["source"], "a number or a table of numbers by subdomain"
    for value in source.values() if isinstance(source, dict) else [source]:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"problem.source is {shown(source)}; expected {plain}")
    degree = check_choice(section.more.get("degree", 1), (1, 2), "problem.degree")
    mesh = _mesh(file, folder)
    coefficient_value(source, mesh, "problem.source")
    options = {**_coefficients(section, mesh), **boundary_values(record.get("boundary", {}), mesh, section)}
    return RefineCase(mesh=mesh, source=source, degree=degree, options=options, study=study.values)


def _certify(record: Mapping[str, Any], folder: Path) -> CertifyCase:
    # What needs no mesh comes first: a mistake there should not cost the time to read one.
    parts = []
    for words, each in experiments_of(record):
        with said_before(words):
            _checked(each, SECTIONS, NEEDED)
            parts.append(Part.read(words, each))
    mesh = Table.read(record["mesh"], "mesh", read_mesh)
    admitted = Table.read(record["class"], "class", CLASSES, BOUNDING)
    solver = solver_of(record["baseline"]) if "baseline" in record else None
    candidates = candidates_of(record["candidate"])
    decides = Table.read(record["rule"], "rule", RULES, ("tolerance",)) if "rule" in record else None
    more = {} if decides is None else decides.more
    tolerance = number(more.get("tolerance", 0.0), "rule.tolerance", least=0.0)
    rule: Rule | None = None if decides is None else decides()
    asked = Table.read(record["regions"], "regions", regions_of) if "regions" in record else None
    output = record.get("output", {})
    files_of(output)
    named = [*candidates.values(), *([] if solver is None else [solver])]
    sampled = _sampled_files(admitted, parts, decides, folder)
    problem, data = _problem_and_data(mesh, admitted, parts, folder, several="experiment" in record)
    if rule is not None and decides is not None and "samples" in decides.values:
        samples = read_truths(folder, decides.values["samples"], problem.parameters, "rule.samples")
        rule = cast(Rule, decides(values={**decides.values, "samples": samples}))
    return CertifyCase(
        problem=problem,
        data=data,
        baseline=baseline_of(solver, problem, folder, unknown=any(part.dataset.unknown for part in parts)),
        candidate=made_by(candidates, problem, folder),
        rule=rule,
        tolerance=tolerance,
        regions=None if asked is None else asked(parameters=problem.parameters),
        files=files_for(problem, output),
        inputs={
            f"{table.key}.{key}": folder / table.values[key]
            for table, key in ((mesh, "file"), (admitted, "mesh"), *((each, "file") for each in named))
            if key in table.values
        }
        | sampled
        | {f"{part.words}data.file": folder / part.dataset.file for part in parts if part.dataset.file},
        noise=parts[0].dataset.noise_words(),
        labels=labels_of(record.get("case", {})),
    )


def _sampled_files(admitted: Table, parts: Sequence[Part], rule: Table | None, folder: Path) -> dict[str, Path]:
    """The files of samples and of model errors, by their keys."""
    named = [(f"class.{name}", admitted.more.get(name)) for name in BOUNDING]
    named += [(f"{part.words}data.model", None if part.model is None else part.model.values) for part in parts]
    named.append(("rule", None if rule is None else rule.values))
    found = {
        f"{key}.{name}": folder / values[name]
        for key, values in named
        if isinstance(values, Mapping)
        for name in ("samples", "matrix")
        if isinstance(values.get(name), str)
    }
    tried = found.get("rule.samples")
    for key, file in found.items():
        if tried is not None and key != "rule.samples" and file.resolve() == tried.resolve():
            raise InputError(
                f"rule.samples and {key} are one file; expected truths for the rule that made neither class nor data"
            )
    return found


def _problem_and_data(
    file: Table, admitted: Table, parts: Sequence[Part], folder: Path, *, several: bool
) -> tuple[Problem, Data]:
    mesh, degree = _mesh(file, folder), parts[0].degree
    if any(part.degree != degree for part in parts):
        raise InputError("problem.degree differs between the experiments; expected one for all")
    with stage("problem", f"{mesh.nelements:,} elements"):
        vector = parts[0].section.kind in VECTORS
        basis = state_basis(mesh, degree, vector=vector)
        scalar = vector and parts[0].section.values.get("unknown") == "stiffness"
        space = cache(lambda: admissible(admitted, state_basis(mesh, degree) if scalar else basis, folder))
        found = []
        for part in parts:
            with said_before(part.words):
                found.append(_experiment(part, basis, space, folder))
        if not several:
            return found[0]
        data = stacked([data for _, data in found], [part.dataset for part in parts])
        return Experiments([problem for problem, _ in found], parameters=space()), data


def _experiment(part: Part, basis: Basis, space: Callable[[], ParameterSpace], folder: Path) -> tuple[Problem, Data]:
    """The problem and the data of a part."""
    section, mesh = part.section, basis.mesh
    conditions = boundary_values(part.boundary, mesh, section, vector=section.kind in VECTORS)
    measured = part.dataset.read(mesh.dim(), folder)
    data = part.data(measured, folder)
    values = _with_times(section, measured)
    values = {**values, **_coefficients(section, mesh)}
    if part.sensors is not None:
        if (announced := _announced(part.sensors)) is not None:
            # Before they are built: a slip of the keyboard may ask for more than fits into memory.
            times = values.get("times", [1])
            _check_count(data, announced * (len(times) if isinstance(times, list) else 1))
        conditions["sensors"] = _sensors(part.sensors, basis, measured)
    elif measured.points is not None or measured.regions is not None:
        raise InputError(f"the data have places; a problem of kind {section.kind!r} reads voltages in their order")
    problem: Problem = section(values=values, basis=basis, parameters=space(), **conditions)
    _check_count(data, problem.observation_count)
    return problem, data


def _mesh(table: Table, folder: Path) -> Mesh:
    with naming("mesh.file"):
        return table.make(folder, **table.values)


def _coefficients(section: Table, mesh: Mesh) -> dict[str, Any]:
    return {
        name: coefficient_value(value, mesh, f"problem.{name}")
        for name, value in section.values.items()
        if name in COEFFICIENTS
    }


def _check_count(data: Data, expected: int) -> None:
    if data.values.size != expected:
        raise InputError(f"data: there are {data.values.size} values; the sensors of the case give {expected}")


def _announced(sensors: Table) -> int | None:
    """How many values the sensors give at one time, where their table says it alone."""
    angles, bins = sensors.values.get("angles"), sensors.values.get("bins", 0)
    if isinstance(angles, (int, list)) and not isinstance(angles, bool):
        # None where they are not positive, which the sensors say better.
        return max(bins, 0) * (angles if isinstance(angles, int) else len(angles)) or None
    return sensors.values.get("count") or None


def _with_times(section: Table, measured: Measurements) -> dict[str, Any]:
    """The values of the problem, with the times that the data say."""
    if "times" not in section.arguments:
        if measured.times is not None:
            raise InputError(f"data.file has a column of times; a problem of kind {section.kind!r} has none")
        return section.values
    times = section.values.get("times")
    if measured.times is None:
        if times is None:
            raise InputError("problem.times is missing; expected it, or a column time in data.file")
        return section.values
    if times is not None and (np.shape(times) != measured.times.shape or not np.allclose(times, measured.times, 1e-9)):
        raise InputError(f"problem.times is {times}; the data have {measured.times.tolist()}")
    return {**section.values, "times": measured.times.tolist()}


def _sensors(table: Table, basis: Basis, measured: Measurements) -> Sensors:
    """The sensors; where they are is said in their table, or in the columns of the data."""
    values = dict(table.values)
    for name, columns in (("points", "columns x, y"), ("regions", "a column region")):
        given, found = values.get(name), getattr(measured, name)
        if name not in table.arguments:
            if found is not None:
                came = f"the data have {columns}, but sensors.kind is {table.kind!r}"
                raise InputError(f"{came}; expected other sensors, or data without it")
        elif (given is None) == (found is None):
            came = "is missing" if given is None else "is given, and in the data too"
            raise InputError(f"sensors.{name} {came}; expected either a list there or {columns} in data.file")
        else:
            values[name] = found if given is None else given
    return table(values=values, basis=basis)
