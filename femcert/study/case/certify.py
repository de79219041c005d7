"""Case files of ``femcert certify``: an inverse problem with its data, two candidates for the answer, and a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...certificate import Rule
from ...errors import InputError
from ...problem import Candidate, Data, Problem
from ...selection import Selection, no_harm
from ...timing import stage
from .data import Measurements, build_data, noise_words, read_measurements
from .decision import build_baseline, build_rule, read_candidate
from .equation import build_problem, read_mesh, state_basis
from .file import read_file
from .sensors import build_sensors, known_count
from .spaces import build_space
from .structure import check_structure, definitions

# What a case writes unless it says otherwise.
FILES = ("selection.json", "summary.csv", "fields.vtu", "report.html")


def all_files() -> list[str]:
    """All files that a case may write, the page last."""
    names: list[str] = definitions()["output"]["properties"]["files"]["items"]["enum"]
    return names


@dataclass(frozen=True)
class CertifyCase:
    """A case that was read and built.

    Attributes
    ----------
    problem, data, baseline, candidate, rule, tolerance
        As `no_harm` takes them; the candidate is its `learned`.
    files
        Which files to write.
    inputs
        The files that it was read from, by their keys.
    noise
        Where the noise level comes from, in words.
    """

    problem: Problem
    data: Data
    baseline: Any
    candidate: Candidate
    rule: Rule
    tolerance: float
    files: tuple[str, ...]
    inputs: dict[str, Path]
    noise: str

    def select(self) -> Selection:
        """The decision."""
        return no_harm(
            self.problem,
            self.data,
            baseline=self.baseline,
            learned=self.candidate,
            rule=self.rule,
            tolerance=self.tolerance,
        )


def read_certify_case(path: str | Path) -> CertifyCase:
    """Read a case file and all files that it names, and build what they describe.

    Raises
    ------
    InputError
        A file is missing or damaged, or a key is missing, unknown or of the wrong type, or its value does not fit the
        rest; the message names file and key.
    """
    return read_file(path, _built)


def _built(record: Mapping[str, Any], folder: Path) -> CertifyCase:
    check_structure(record, "certify")
    # What needs no mesh comes first: a mistake there should not cost the time to read one.
    rule = build_rule(record["rule"])
    problem, data = _problem_and_data(record, folder)
    baseline = build_baseline(record.get("baseline"), problem)
    return CertifyCase(
        problem=problem,
        data=data,
        baseline=baseline,
        candidate=read_candidate(record["candidate"], problem, folder),
        rule=rule,
        tolerance=record["rule"].get("tolerance", 0.0),
        files=_in_order(record.get("output", {}).get("files", FILES)),
        inputs={
            f"{section}.{key}": folder / record[section][key]
            for section, key in (("mesh", "file"), ("class", "mesh"), ("data", "file"), ("candidate", "file"))
            if key in record[section]
        },
        noise=noise_words(record["data"]),
    )


def _in_order(files: Any) -> tuple[str, ...]:
    return tuple(name for name in all_files() if name in files)


def _problem_and_data(record: Mapping[str, Any], folder: Path) -> tuple[Problem, Data]:
    mesh = read_mesh(record["mesh"]["file"], folder)
    with stage("problem", f"{mesh.nelements:,} elements"):
        measured = read_measurements(record["data"], mesh.dim(), folder)
        data = build_data(record["data"], measured)
        section = _with_times(record["problem"], measured)
        if (known := known_count(record["sensors"])) is not None:
            # Before they are built: a slip of the keyboard may ask for more than fits into memory.
            _check_count(data, known * len(section.get("times", [1])))
        basis = state_basis(mesh, section.get("degree", 1))
        space = build_space(record["class"], basis, folder)
        sensors = build_sensors(record["sensors"], basis, measured)
        problem = build_problem(section, record.get("boundary", {}), basis, space, sensors)
    _check_count(data, problem.observation_count)
    return problem, data


def _check_count(data: Data, expected: int) -> None:
    if data.values.size != expected:
        raise InputError(f"data: there are {data.values.size} values; the sensors of the case give {expected}")


def _with_times(section: Mapping[str, Any], measured: Measurements) -> dict[str, Any]:
    """The section of the problem, with the times that the data say."""
    if section["kind"] != "heat-initial":
        if measured.times is not None:
            raise InputError(f"data.file has a column of times; a problem of kind {section['kind']!r} has none")
        return dict(section)
    times = section.get("times")
    if times is None and measured.times is None:
        raise InputError("problem.times is missing; expected it, or a column time in data.file")
    if measured.times is None:
        return dict(section)
    if times is not None and (len(times) != len(measured.times) or not np.allclose(times, measured.times, rtol=1e-9)):
        raise InputError(f"problem.times is {times}; the data have {measured.times.tolist()}")
    return {**section, "times": measured.times.tolist()}
