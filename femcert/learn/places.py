"""Points inside a mesh and on its boundary, with what the equation says there: coefficients, normals, fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate.pointwise import values_at
from ..checks import Array
from ..mesh.locate import interpolation_matrix, reference_points, scatter
from ..mesh.sample import Sampler
from ..problem.boundary import BoundaryConditions
from ..problem.strong import Field, Given

# Step of the difference quotient for the gradient of a coefficient without one, relative to the extent of the mesh.
STEP = 1e-3


@dataclass(frozen=True)
class Place:
    """Points ``x`` ``(dimension, points)`` and the cells they lie in; ``time`` for each of them, or None."""

    mesh: Any
    x: Array
    cells: NDArray[np.int64]
    time: Array | None = None

    @property
    def rows(self) -> Array:
        """The inputs of a network: a row for each point, the time last."""
        return np.column_stack([*self.x] if self.time is None else [*self.x, self.time])

    def coefficient(self, given: Given | Field) -> Array:
        """A coefficient of the equation at the points."""
        assert isinstance(given, Given)
        if callable(given.value):
            return values_at(given.value, self.x, given.name)
        return np.asarray(given.at(Sampler(self.mesh, 0))[self.cells, 0])

    def coefficient_gradient(self, given: Given | Field) -> Array:
        """Its gradient: its own ``gradient(x)`` where it has one, else a central difference of order four.

        Zero for numbers, tables and values per element: inside of the elements, jumps between them are not seen.
        """
        assert isinstance(given, Given)
        function: Any = given.value
        if not callable(function):
            return np.zeros(self.x.shape)
        if callable(getattr(function, "gradient", None)):
            return values_at(function.gradient, self.x, f"{given.name}.gradient", vector=True)
        step = STEP * float(np.ptp(self.mesh.p, axis=1).max())

        def at(move: Array) -> Array:
            return values_at(function, self.x + move[:, None], given.name)

        moves = step * np.eye(len(self.x))
        return np.array([(8.0 * (at(e) - at(-e)) - (at(2.0 * e) - at(-2.0 * e))) / (12.0 * step) for e in moves])

    def values_matrix(self, basis: Any) -> Any:
        """``phi_j(x_i)``, sparse ``(points, dofs)``."""
        return interpolation_matrix(basis, self.x, self.cells)

    def gradient_matrices(self, basis: Any) -> list[Any]:
        """``d phi_j / d x_k (x_i)`` inside of the cells, a sparse matrix for each k."""
        X = reference_points(self.mesh, self.x[:, :, None], self.cells)
        shape, dim, n = self.mesh.elem(), len(self.x), len(self.cells)
        slopes = [_reference_slope(shape, X, i) for i in range(len(self.mesh.t))]
        corners = self.mesh.p[:, self.mesh.t[:, self.cells]]
        jacobian = np.einsum("icn,cjn->nij", corners, np.array(slopes))
        inverse = np.linalg.inv(jacobian)
        functions = [_reference_slope(basis.elem, X, i) for i in range(basis.Nbfun)]
        local = np.array([np.einsum("nji,jn->in", inverse, slope) for slope in functions])
        return [scatter(basis, [(np.arange(n), self.cells, local[:, k])], n) for k in range(dim)]


@dataclass(frozen=True)
class Edge:
    """Points on a part of the boundary: ``u = value``, or ``a du/dn + coefficient u = value``."""

    place: Place
    normal: Array
    value: Array
    coefficient: Array


def essential_edge(mesh: Any, conditions: BoundaryConditions, count: int, rng: np.random.Generator) -> Edge | None:
    """About `count` random points on the Dirichlet boundary, None where there is none."""
    return _edge(mesh, [(part.facets, part.value, 0.0) for part in conditions.dirichlet], count, rng)


def natural_edge(mesh: Any, conditions: BoundaryConditions, count: int, rng: np.random.Generator) -> Edge | None:
    """About `count` random points on the rest of the boundary; where nothing is prescribed, the flux is zero."""
    parts: list[Any] = [(part.facets, part.value, part.coefficient) for part in conditions.natural]
    named = [part.facets for part in (*conditions.dirichlet, *conditions.natural)]
    insulated = np.setdiff1d(mesh.boundary_facets(), np.concatenate(named) if named else [])
    return _edge(mesh, [*parts, (insulated, 0.0, 0.0)], count, rng)


def _edge(mesh: Any, parts: list[Any], count: int, rng: np.random.Generator) -> Edge | None:
    parts = [part for part in parts if len(part[0])]
    if not parts:
        return None
    sizes = np.array([_lengths(mesh, facets).sum() for facets, _, _ in parts])
    pieces = []
    for (facets, value, coefficient), share in zip(parts, sizes / sizes.sum(), strict=True):
        place, normal = _on_facets(mesh, facets, max(round(share * count), 1), rng)
        values = [values_at(given, place.x, "a boundary value") for given in (value, coefficient)]
        pieces.append((place.x, place.cells, normal, *values))
    x, cells, normal, value, coefficient = (np.concatenate(part, axis=-1) for part in zip(*pieces, strict=True))
    return Edge(Place(mesh, x, cells), normal, value, coefficient)


def _lengths(mesh: Any, facets: Any) -> Array:
    if mesh.dim() == 1:
        return np.ones(len(facets))
    start, end = mesh.p[:, mesh.facets[:, facets]].transpose(1, 0, 2)
    return np.asarray(np.linalg.norm(end - start, axis=0))


def _on_facets(mesh: Any, facets: Any, count: int, rng: np.random.Generator) -> tuple[Place, Array]:
    """Random points on facets with the outer normal; on a line all end points."""
    if mesh.dim() == 1:
        chosen = np.asarray(facets)
        x = mesh.p[:, mesh.facets[0, chosen]]
        normal = np.ones_like(x)
    else:
        length = _lengths(mesh, facets)
        chosen = rng.choice(facets, size=count, p=length / length.sum())
        start, end = mesh.p[:, mesh.facets[:, chosen]].transpose(1, 0, 2)
        x = start + rng.random(count) * (end - start)
        normal = np.stack([end[1] - start[1], start[0] - end[0]]) / _lengths(mesh, chosen)
    cells = mesh.f2t[0, chosen]
    inside = mesh.p[:, mesh.t[:, cells]].mean(axis=1)
    outward = np.sign(((x - inside) * normal).sum(axis=0))
    return Place(mesh, x, cells), normal * outward


def _reference_slope(element: Any, X: Array, i: int) -> Array:
    """Gradient of a local basis function at reference points, ``(dimension, points)``."""
    slope = np.asarray(element.lbasis(X, i)[1], dtype=float)
    return np.array(np.broadcast_to(slope, X.shape))[:, :, 0]
