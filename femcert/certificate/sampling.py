"""Where a residual is sampled: random points, how likely each element is, and what a sample can be at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skfem.mesh import MeshLine1, MeshTri1

from ..checks import Array
from ..mesh.elements import degree
from ..problem.base import Problem

# Largest sum of |basis functions| on the reference element: sup |f| <= factor * max |nodal values|.
_LEBESGUE = {("line", 2): 1.25, ("tri", 2): 5.0 / 3.0, ("quad", 2): 1.25**2}
# Share of the points that stays uniform where indicators only guess: no weight exceeds its inverse.
FLOOR = 0.5
NEARLY_ZERO = 1e-12


@dataclass(frozen=True)
class Plan:
    """How points are drawn, fixed before they are: an element (and a time) by its probability, uniform inside of it.

    With the shares ``w = |K| / |Omega|`` (over the number of times), the weighted square ``(w / p) f(x)²`` has the mean
    square of f as its mean, and is at most ``max (w / p) B_K²`` where ``|f| <= B_K`` on the element.

    Attributes
    ----------
    probability
        p, of each element and time, ``(elements, times)``.
    weight
        w / p; 1 for uniform points.
    envelope
        Sure upper bound of a weighted square.
    """

    probability: Array
    weight: Array
    envelope: float

    @classmethod
    def uniform(cls, mesh: Any, bounds: Array) -> Plan:
        """Points uniform on the domain and over the times; ``|f| <= bounds`` on each element and time."""
        w = _shares(mesh, bounds)
        return cls(w, np.ones(w.shape), float(np.max(bounds) ** 2))

    @classmethod
    def importance(cls, mesh: Any, bounds: Array, indicators: Array | None = None) -> Plan:
        """Points where the residual is large.

        Without indicators ``p ~ w B_K²``: of all choices this has the smallest envelope, the mean ``sum w B_K²`` of the
        bounds instead of their maximum. With indicators (guesses of the mean squares), half of the points stay uniform.
        """
        w = _shares(mesh, bounds)
        large = bounds**2 if indicators is None else indicators
        if not large.max() > 0.0:
            return cls.uniform(mesh, bounds)
        # Where the bound is (nearly) zero, hardly a point falls; no weight overflows.
        large = w * np.maximum(large / large.max(), NEARLY_ZERO)
        p = large / large.sum()
        if indicators is not None:
            p = FLOOR * w + (1.0 - FLOOR) * p
        weight = w / p
        return cls(p, weight, float(np.max(weight * bounds**2)))

    def draw(
        self, mesh: Any, number_of_points: int, rng: np.random.Generator
    ) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
        """Independent points, the cells they lie in, and their times."""
        p = self.probability.ravel()
        cells, columns = divmod(rng.choice(p.size, size=number_of_points, p=p / p.sum()), self.probability.shape[1])
        return points_in(mesh, cells, rng), cells, columns


def element_envelopes(basis: Any, values: Array) -> Array:
    """A sure upper bound of ``|f|`` on each element, for finite-element functions with these dof values (columns)."""
    shape = "line" if isinstance(basis.mesh, MeshLine1) else "tri" if isinstance(basis.mesh, MeshTri1) else "quad"
    largest = np.abs(values)[basis.element_dofs].max(axis=0)
    return np.asarray(_LEBESGUE.get((shape, degree(basis)), 1.0) * largest)


def envelope(problem: Problem, values: Array) -> float:
    """A sure upper bound of ``|f|`` for a finite-element function with these dof values."""
    return float(element_envelopes(problem.basis, values).max())


def uniform_points(mesh: Any, number_of_points: int, rng: np.random.Generator) -> tuple[Array, NDArray[np.int64]]:
    """Independent points, uniform on the mesh, and the cells they lie in."""
    points, cells, _ = Plan.uniform(mesh, np.zeros((mesh.nelements, 1))).draw(mesh, number_of_points, rng)
    return points, cells


def points_in(mesh: Any, cells: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """A point in each of the cells, uniform inside of it: a quadrilateral is two triangles."""
    x, size = _simplices(mesh)
    piece = np.zeros(len(cells), dtype=np.int64)
    if len(size) == 2:
        piece = (rng.random(len(cells)) * size.sum(axis=0)[cells] >= size[0, cells]).astype(np.int64)
    corner = x[:, :, piece, cells]
    s = rng.random((x.shape[1] - 1, len(cells)))
    if len(s) == 2:
        s = np.where(s.sum(axis=0) > 1.0, 1.0 - s, s)
    return np.asarray(corner[:, 0] + np.einsum("dij,ij->dj", corner[:, 1:] - corner[:, :1], s))


def _simplices(mesh: Any) -> tuple[Array, Array]:
    """Corners ``(dimension, corner, piece, cell)`` and sizes ``(piece, cell)`` of the simplices of the mesh."""
    p, t = mesh.p, mesh.t
    corners = np.stack([t[[0, 1, 2]], t[[0, 2, 3]]], axis=1) if len(t) == 4 else t[:, None, :]
    x = p[:, corners]
    edges = x[:, 1:] - x[:, :1]
    size = np.abs(edges[0, 0] if mesh.dim() == 1 else edges[0, 0] * edges[1, 1] - edges[0, 1] * edges[1, 0])
    return x, size


def _shares(mesh: Any, bounds: Array) -> Array:
    size = _simplices(mesh)[1].sum(axis=0)
    return np.asarray(np.repeat((size / size.sum())[:, None], bounds.shape[1], axis=1) / bounds.shape[1])
