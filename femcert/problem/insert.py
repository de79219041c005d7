"""A line cut at more points, and a source problem on it: the same equation, the same functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from skfem import Basis

from ..checks import required
from ..errors import UncertifiedError
from ..mesh.locate import interpolation_matrix
from ..mesh.refine import with_vertices
from .base import Problem
from .boundary import Part
from .elliptic import EllipticSource
from .space import ParameterSpace
from .states import strong_form


def cut_at_sensors(problem: Problem) -> EllipticSource:
    """The problem on a line with a vertex at (or within rounding of) every point that its sensors read.

    Its equation is the strong form that the problem offers, its parameters are the same finite-element functions, its
    mass is consistent; a known source beside the unknown one is left out.

    Raises
    ------
    UncertifiedError
        The line has several pieces, or the sensors or a coefficient are known on the given mesh only.
    """
    who, (equation,) = "the mesh cut at the sensors", problem.states
    basis, space, sensors = equation.basis, problem.parameters, equation.sensors
    strong = required(strong_form(equation, np.zeros(space.basis.N)), who, "the strong form of an equation", problem)
    found = required(sensors.representers(), who, "sensors with representers", sensors)
    loads = required(found.loads, who, "point sensors", sensors)
    mesh = basis.mesh
    if mesh.nvertices != mesh.nelements + 1:
        raise UncertifiedError("a continuous guarantee for PointSensors needs a line in one piece")
    fine, parents = with_vertices(mesh, loads.points)
    essential, natural = strong.boundary.dirichlet, strong.boundary.natural
    regions = {name: np.flatnonzero(np.isin(parents, cells)) for name, cells in (mesh.subdomains or {}).items()}
    ends = {part.name: _same_ends(mesh, fine, part) for part in (*essential, *natural)}
    fine = fine.with_subdomains(regions).with_boundaries(ends)
    state = Basis(fine, basis.elem, quadrature=(basis.X, basis.W))
    parameter = state if space.basis.elem is basis.elem else Basis(
        fine, space.basis.elem, quadrature=(space.basis.X, space.basis.W)
    )  # fmt: skip
    home = np.zeros(parameter.N, dtype=np.int64)
    home[parameter.element_dofs] = parents
    a: Any = strong.conductivity.on_pieces(mesh, parents)
    c: Any = strong.reaction.on_pieces(mesh, parents)
    return EllipticSource(
        state,
        parameters=ParameterSpace(
            parameter,
            interpolation_matrix(space.basis, parameter.doflocs, home) @ space.matrix,
            inner=space.inner,
        ),
        sensors=required(sensors.on(state), who, "sensors that can be made on another mesh", sensors),
        conductivity=required(a, who, "a conductivity as given", problem),
        reaction=required(c, who, "a reaction as given", problem),
        dirichlet={part.name: part.value for part in essential},
        robin={part.name: (part.coefficient, part.value) for part in natural},
    )


def _same_ends(mesh: Any, fine: Any, part: Part) -> NDArray[np.int64]:
    """The facets of the finer line that a boundary condition is on: facets of a line are its vertices."""
    return np.flatnonzero(np.isin(fine.p[0], mesh.p[0, mesh.facets[0, part.facets]]))
