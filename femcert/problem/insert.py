"""A line cut at more points, and a source problem on it: the same equation, the same functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from skfem import Basis

from ..errors import UncertifiedError
from ..mesh.locate import interpolation_matrix
from ..mesh.refine import with_vertices
from ..mesh.sample import Sampler
from .boundary import Part
from .elliptic import EllipticSource
from .sensors import PointSensors
from .space import ParameterSpace
from .strong import Field, Given


def cut_at_sensors(problem: EllipticSource) -> EllipticSource:
    """The problem on a line with a vertex at (or within rounding of) every point sensor.

    Its parameters are the same finite-element functions, its boundary conditions the same, its mass consistent.

    Raises
    ------
    UncertifiedError
        The line has several pieces.
    """
    assert isinstance(problem.sensors, PointSensors)
    basis, space = problem.basis, problem.parameters
    mesh = basis.mesh
    if mesh.nvertices != mesh.nelements + 1:
        raise UncertifiedError("a continuous guarantee for PointSensors needs a line in one piece")
    fine, parents = with_vertices(mesh, problem.sensors.points[:, 0])
    essential, natural = problem.boundary.dirichlet, problem.boundary.natural
    regions = {name: np.flatnonzero(np.isin(parents, cells)) for name, cells in (mesh.subdomains or {}).items()}
    ends = {part.name: _same_ends(mesh, fine, part) for part in (*essential, *natural)}
    fine = fine.with_subdomains(regions).with_boundaries(ends)
    state = Basis(fine, basis.elem, quadrature=(basis.X, basis.W))
    parameter = state if space.basis.elem is basis.elem else Basis(
        fine, space.basis.elem, quadrature=(space.basis.X, space.basis.W)
    )  # fmt: skip
    home = np.zeros(parameter.N, dtype=np.int64)
    home[parameter.element_dofs] = parents
    equation = problem.strong(np.zeros(space.basis.N))
    return EllipticSource(
        state,
        parameters=ParameterSpace(
            parameter,
            interpolation_matrix(space.basis, parameter.doflocs, home) @ space.matrix,
            inner=space.inner,
        ),
        sensors=PointSensors(state, problem.sensors.points),
        conductivity=_on_pieces(equation.conductivity, mesh, parents),
        reaction=_on_pieces(equation.reaction, mesh, parents),
        dirichlet={part.name: part.value for part in essential},
        robin={part.name: (part.coefficient, part.value) for part in natural},
    )


def _same_ends(mesh: Any, fine: Any, part: Part) -> NDArray[np.int64]:
    """The facets of the finer line that a boundary condition is on: facets of a line are its vertices."""
    return np.flatnonzero(np.isin(fine.p[0], mesh.p[0, mesh.facets[0, part.facets]]))


def _on_pieces(field: Given | Field, mesh: Any, parents: NDArray[np.int64]) -> Any:
    """A coefficient on the pieces: functions are one already, and numbers go from the elements to their pieces."""
    assert isinstance(field, Given)
    if field.varies:
        return field.value
    return np.broadcast_to(field.at(Sampler(mesh, 0))[:, 0], mesh.nelements)[parents]
