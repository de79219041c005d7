"""Case files: a problem and its study in TOML.

.. code-block:: toml

    [mesh]
    file = "l_shape.msh"            # relative to this file; anything that load_mesh reads

    [problem]
    kind = "elliptic-source"        # -div(a grad u) + c u = q
    conductivity = 1.0              # a number, or a table: { inclusion = 5.0, background = 1.0 }
    reaction = 0.0
    source = 1.0                    # q; a number or a table, too
    degree = 1                      # of the state: 1 or 2

    [boundary.dirichlet]            # without it: zero wherever no other condition is named
    outer = 0.0
    [boundary.neumann]
    holes = 0.5
    [boundary.robin]
    rim = [1.0, 0.0]                # alpha and g of a du/dn + alpha u = g

    [study]
    levels = 8
    adaptive = true
    theta = 0.5
    tolerance = 1e-3
    most_dofs = 100000
    norm = "energy"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from skfem import (
    Basis,
    ElementLineP1,
    ElementLineP2,
    ElementQuad1,
    ElementQuad2,
    ElementTriP1,
    ElementTriP2,
    Mesh,
)
from skfem.mesh import MeshLine1, MeshQuad1, MeshTri1

from ..errors import InputError
from ..problem import EllipticSource, RegionSensors, RegionSpace, load_mesh
from ..problem.checks import count, number
from ..problem.mesh import boundary_facets, region_elements
from .keys import as_switch, as_table, as_text, known_keys, parsed_file, required_key
from .level import Case

KINDS = ("elliptic-source",)
_ELEMENTS = {
    MeshLine1: (ElementLineP1, ElementLineP2),
    MeshTri1: (ElementTriP1, ElementTriP2),
    MeshQuad1: (ElementQuad1, ElementQuad2),
}
_SECTIONS = ("mesh", "problem", "boundary", "study")
_PROBLEM = ("kind", "conductivity", "reaction", "source", "degree")
_BOUNDARY = ("dirichlet", "neumann", "robin")
_STUDY = ("levels", "adaptive", "theta", "tolerance", "most_dofs", "norm")

Value = float | dict[str, float]


@dataclass(frozen=True)
class CaseFile:
    """A case file that was read and checked.

    Attributes
    ----------
    mesh
        The first mesh.
    conductivity, reaction, source
        Numbers, or tables by subdomain.
    degree
        Of the state.
    dirichlet, neumann, robin
        Boundary conditions as the problem takes them.
    study
        Options of `refinement_study`.
    """

    mesh: Mesh
    conductivity: Value
    reaction: Value
    source: Value
    degree: int
    dirichlet: Value | None
    neumann: dict[str, float]
    robin: dict[str, tuple[float, float]]
    study: dict[str, Any]

    def build(self, mesh: Mesh | None = None) -> Case:
        """The case on a mesh: the Galerkin state of the source, which is represented exactly."""
        mesh = self.mesh if mesh is None else mesh
        basis = state_basis(mesh, self.degree)
        whole = np.arange(mesh.nelements)
        table = self.source if isinstance(self.source, dict) else {"": self.source}
        space = RegionSpace(basis, list(table) if isinstance(self.source, dict) else [whole])
        problem = EllipticSource(
            basis,
            parameters=space,
            # A problem has sensors; the bounds do not look at them.
            sensors=RegionSensors(basis, [whole]),
            conductivity=self.conductivity,
            reaction=self.reaction,
            dirichlet=self.dirichlet,
            neumann=self.neumann or None,
            robin=self.robin or None,
        )
        return Case(problem, parameter=space.field(list(table.values())))


def read_case(path: str | Path) -> CaseFile:
    """Read and check a case file.

    Raises
    ------
    InputError
        The file or its mesh is missing or damaged, or a key is missing, unknown or of the wrong type; the message names
        file and key.
    """
    if not isinstance(path, (str, Path)):
        raise InputError(f"path is a {type(path).__name__}; expected a file name")
    path = Path(path)
    try:
        return _checked(parsed_file(path), path.parent)
    except InputError as error:
        raise InputError(f"case file '{path}': {error}") from None


def _checked(record: dict[str, Any], folder: Path) -> CaseFile:
    known_keys(record, _SECTIONS, "")
    sections = {name: as_table(record.get(name, {}), name) for name in _SECTIONS}
    known_keys(sections["mesh"], ("file",), "mesh")
    problem, boundary = sections["problem"], sections["boundary"]
    known_keys(problem, _PROBLEM, "problem")
    known_keys(boundary, _BOUNDARY, "boundary")
    kind = required_key(problem, "kind", "problem")
    if kind not in KINDS:
        raise InputError(f"problem.kind is {kind!r}; expected one of {', '.join(map(repr, KINDS))}")
    degree = _checked_degree(problem.get("degree", 1))
    source = required_key(problem, "source", "problem")
    study = _study(sections["study"])
    mesh = load_mesh(folder / as_text(required_key(sections["mesh"], "file", "mesh"), "mesh.file"))
    dirichlet = boundary.get("dirichlet")
    if isinstance(dirichlet, Mapping):
        dirichlet = _conditions(dirichlet, mesh, "dirichlet")
    elif dirichlet is not None:
        dirichlet = number(dirichlet, "boundary.dirichlet")
    robin = as_table(boundary.get("robin", {}), "boundary.robin")
    return CaseFile(
        mesh=mesh,
        conductivity=coefficient_value(problem.get("conductivity", 1.0), mesh, "problem.conductivity"),
        reaction=coefficient_value(problem.get("reaction", 0.0), mesh, "problem.reaction"),
        source=coefficient_value(source, mesh, "problem.source"),
        degree=degree,
        dirichlet=dirichlet,
        neumann=_conditions(as_table(boundary.get("neumann", {}), "boundary.neumann"), mesh, "neumann"),
        robin={name: _pair(pair, mesh, name) for name, pair in robin.items()},
        study=study,
    )


def _study(section: Mapping[str, Any]) -> dict[str, Any]:
    known_keys(section, _STUDY, "study")
    checks = {
        "levels": lambda value: count(value, "study.levels"),
        "adaptive": lambda value: as_switch(value, "study.adaptive"),
        "theta": lambda value: number(value, "study.theta", above=0.0),
        "tolerance": lambda value: number(value, "study.tolerance", least=0.0),
        "most_dofs": lambda value: count(value, "study.most_dofs"),
        "norm": lambda value: as_text(value, "study.norm"),
    }
    return {name: checks[name](value) for name, value in section.items()}


def state_basis(mesh: Mesh, degree: Any) -> Basis:
    """Lagrange elements of degree 1 or 2 on a mesh."""
    return Basis(mesh, _ELEMENTS[type(mesh)][_checked_degree(degree) - 1]())


def _checked_degree(degree: Any) -> int:
    if isinstance(degree, bool) or degree not in (1, 2):
        raise InputError(f"problem.degree is {degree!r}; expected 1 or 2")
    return int(degree)


def coefficient_value(value: Any, mesh: Mesh, name: str) -> Value:
    """A number, or numbers on subdomains that cover the mesh."""
    if not isinstance(value, Mapping):
        return number(value, name)
    covered = np.zeros(mesh.nelements, dtype=int)
    for region in value:
        try:
            covered[region_elements(mesh, region)] += 1
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    if covered.max(initial=0) > 1 or not covered.all():
        missing = np.count_nonzero(covered == 0)
        came = f"leaves out {missing} of {mesh.nelements} elements" if missing else "has subdomains that overlap"
        raise InputError(f"{name} {came}; expected subdomains that cover the mesh once")
    return {region: number(v, f"{name}.{region}") for region, v in value.items()}


def _conditions(table: Mapping[str, Any], mesh: Mesh, kind: str) -> dict[str, float]:
    return {name: number(value, _boundary(mesh, name, kind)) for name, value in table.items()}


def _pair(pair: Any, mesh: Mesh, name: str) -> tuple[float, float]:
    key = _boundary(mesh, name, "robin")
    if not isinstance(pair, list) or len(pair) != 2:
        raise InputError(f"{key} is {pair!r}; expected a pair [alpha, g]")
    return number(pair[0], f"{key}[0]", least=0.0), number(pair[1], f"{key}[1]")


def _boundary(mesh: Mesh, name: str, kind: str) -> str:
    """The key of a boundary condition, once its boundary was found in the mesh."""
    key = f"boundary.{kind}.{name}"
    try:
        boundary_facets(mesh, name)
    except InputError as error:
        raise InputError(f"{key}: {error}") from None
    return key
