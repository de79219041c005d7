"""Case files of ``femcert refine``: a problem with a known source, and options of the study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from skfem import Mesh

from ...problem import EllipticSource, RegionSensors, RegionSpace
from ..level import Case
from .equation import coefficients, read_mesh, state_basis
from .file import read_file
from .structure import check_structure
from .values import boundary_values


@dataclass(frozen=True)
class CaseFile:
    """A case file that was read and checked.

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
        mesh = self.mesh if mesh is None else mesh
        basis = state_basis(mesh, self.degree)
        whole = np.arange(mesh.nelements)
        table = self.source if isinstance(self.source, dict) else {"": self.source}
        space = RegionSpace(basis, list(table) if isinstance(self.source, dict) else [whole])
        # A problem has sensors; the bounds do not look at them.
        sensors = RegionSensors(basis, [whole])
        problem = EllipticSource(basis, parameters=space, sensors=sensors, **self.options)
        return Case(problem, parameter=space.field(list(table.values())))


def read_case(path: str | Path) -> CaseFile:
    """Read and check a case file.

    Raises
    ------
    InputError
        The file or its mesh is missing or damaged, or a key is missing, unknown or of the wrong type; the message names
        file and key.
    """
    return read_file(path, _checked)


def _checked(record: Mapping[str, Any], folder: Path) -> CaseFile:
    check_structure(record, "refine")
    mesh = read_mesh(record["mesh"]["file"], folder)
    options = coefficients(record["problem"], mesh)
    return CaseFile(
        mesh=mesh,
        source=options.pop("source"),
        degree=record["problem"].get("degree", 1),
        options={**options, **boundary_values(record.get("boundary", {}), mesh)},
        study=dict(record.get("study", {})),
    )
