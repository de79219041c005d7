"""The sections ``mesh``, ``problem`` and ``boundary``: what is solved, and on what."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skfem import (
    Basis,
    Mesh,
)

from ...errors import InputError
from ...mesh import load_mesh
from ...mesh.elements import lagrange
from ...problem import EllipticCoefficient, EllipticSource, HeatInitial, Problem, Tomography
from ...problem.sensors import Sensors
from ...problem.space import ParameterSpace
from ...problem.tomography import RaySensors
from ...timing import stage
from ..keys import at_key
from .structure import check_choice
from .values import boundary_values, coefficient_value

_CLASSES: dict[str, Any] = {
    "elliptic-source": EllipticSource,
    "elliptic-coefficient": EllipticCoefficient,
    "heat-initial": HeatInitial,
}
_COEFFICIENTS = ("conductivity", "reaction", "diffusivity", "source")
# Which boundary conditions a problem does not know.
_FOREIGN = {"heat-initial": ("neumann",), "tomography": ("dirichlet", "neumann", "robin")}


def read_mesh(file: str, folder: Path, key: str = "mesh.file") -> Mesh:
    """The mesh in a file, whose name is relative to the folder of the case."""
    with stage("mesh"):
        return at_key(key, lambda: load_mesh(folder / file))


def state_basis(mesh: Mesh, degree: Any) -> Basis:
    """Lagrange elements of degree 1 or 2 on a mesh."""
    check_choice(degree, (1, 2), "problem.degree")
    return Basis(mesh, lagrange(mesh, degree))


def coefficients(section: Mapping[str, Any], mesh: Mesh) -> dict[str, Any]:
    """The options of a problem from its section; coefficients are read on the mesh, all else is taken as it is."""
    return {
        name: coefficient_value(value, mesh, f"problem.{name}") if name in _COEFFICIENTS else value
        for name, value in section.items()
        if name not in ("kind", "degree")
    }


def build_problem(
    section: Mapping[str, Any],
    boundary: Mapping[str, Any],
    basis: Basis,
    space: ParameterSpace,
    sensors: Sensors,
) -> Problem:
    """The inverse problem of a case."""
    kind, mesh = section["kind"], basis.mesh
    for name in _FOREIGN.get(kind, ()):
        if name in boundary:
            raise InputError(f"boundary.{name} is given; a problem of kind {kind!r} has no such condition")
    if kind == "tomography":
        if not isinstance(sensors, RaySensors):
            raise InputError("sensors.kind does not fit; an image is seen by 'rays'")
        return at_key("problem", lambda: _tomography(basis, space, sensors))
    options = {**coefficients(section, mesh), **boundary_values(boundary, mesh)}
    return at_key("problem", lambda: _CLASSES[kind](basis, parameters=space, sensors=sensors, **options), section)


def _tomography(basis: Basis, space: ParameterSpace, sensors: RaySensors) -> Problem:
    return Tomography(
        basis, parameters=space, angles=sensors.angles, bins=sensors.bins, spacing=sensors.spacing, rule=sensors.rule
    )
