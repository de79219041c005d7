"""Functions along boundary facets: values, derivatives and integrals, exact for polynomials."""

from __future__ import annotations

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray
from skfem import Basis

from ..checks import Array, number, real_array
from ..errors import InputError
from ..mesh.elements import degree
from ..problem.boundary import Value
from ..problem.polynomial import known_degree, unknown

# Gauss points on an edge: the rule is exact for the square of the polynomial through all samples.
POINTS = 14


class Edges:
    """Gauss points on the given facets: straight edges in 2D, single points in 1D.

    Attributes
    ----------
    x
        Coordinates, ``(dimension, facets, points)``.
    length, weights
        Of the facets ``(facets,)``, and of the rule ``(facets, points)``; 1 for a point.
    arc
        Distance of the points from the first end, ``(facets, points)``.
    """

    def __init__(self, basis: Basis, facets: NDArray[np.int64]) -> None:
        mesh = basis.mesh
        self.basis = basis
        self.facets = facets
        self.ends = mesh.p[:, mesh.facets[:, facets]]
        self.flat = mesh.dim() == 1
        self._t, w = (np.zeros(1), np.array([2.0])) if self.flat else legendre.leggauss(POINTS)
        along = self.ends[:, -1] - self.ends[:, 0]
        self.length = np.ones(len(facets)) if self.flat else np.hypot(*along)
        part = 0.5 * (1.0 + self._t)
        self.x = self.ends[:, 0, :, None] + along[:, :, None] * part
        self.arc = self.length[:, None] * part
        self.weights = self.length[:, None] * (0.5 * w)

    def trace(self, dofs: Array) -> tuple[Array, Array]:
        """A finite-element function at the points, and its derivative along the edge."""
        nodes = self.basis.mesh.facets[:, self.facets]
        ends = dofs[self.basis.nodal_dofs[0, nodes]]
        t = self._t
        if self.flat:
            return ends[0][:, None], np.zeros((len(self.facets), 1))
        first, last = ends[0][:, None], ends[1][:, None]
        values = 0.5 * (first * (1.0 - t) + last * (1.0 + t))
        slopes = np.broadcast_to(0.5 * (last - first), values.shape)
        if degree(self.basis) == 2:
            bump = dofs[self.basis.facet_dofs[0, self.facets]][:, None] - 0.5 * (first + last)
            values, slopes = values + bump * (1.0 - t**2), slopes - 2.0 * bump * t
        return values, slopes * (2.0 / self.length[:, None])

    def sample(self, value: Value, name: str) -> Array:
        """A number or a function of x at the points."""
        shape = self.weights.shape
        if not callable(value):
            return np.full(shape, number(value, name))
        values = real_array(value(self.x), name)
        if values.shape not in ((), shape):
            raise InputError(f"{name} returned shape {values.shape}; expected {shape}")
        return np.array(np.broadcast_to(values, shape))

    def doubts(self, value: Value, name: str, spare: int = 0) -> list[str]:
        """Why the samples, times a polynomial of degree `spare`, do not give an integral: nothing if they do.

        The samples of a number, at single points, and of a polynomial of known degree are all there is to know.
        """
        known = known_degree(value)
        if self.flat or (known is not None and max(2 * known, known + spare) < 2 * POINTS):
            return []
        return [unknown(name) if known is None else f"the degree of the {name} is too high for the rule along edges"]

    def slope(self, values: Array) -> Array:
        """Derivative along the edge of the polynomial through all samples."""
        if self.flat:
            return np.zeros_like(values)
        coefficients = np.linalg.solve(legendre.legvander(self._t, POINTS - 1), values.T)
        slopes = legendre.legval(self._t, legendre.legder(coefficients))
        return np.asarray(slopes) * (2.0 / self.length[:, None])

    def at_ends(self, values: Array) -> Array:
        """The polynomial through all samples at both ends of each edge, ``(facets, 2)``."""
        if self.flat:
            return np.repeat(values, 2, axis=1)
        coefficients = np.linalg.solve(legendre.legvander(self._t, POINTS - 1), values.T)
        return np.asarray(legendre.legval(np.array([-1.0, 1.0]), coefficients))

    def integral(self, values: Array) -> Array:
        """Integral over each facet; in 1D the value."""
        return np.asarray(np.sum(self.weights * values, axis=1))

    def apexes(self) -> tuple[NDArray[np.int64], Array]:
        """The element at each edge, and its corners off the edge, ``(dimension, corners, facets)``."""
        mesh = self.basis.mesh
        elements = mesh.f2t[0, self.facets]
        corners = mesh.t[:, elements]
        on_edge = np.any(corners[:, None] == mesh.facets[:, self.facets][None], axis=1)
        # A stable sort puts the corners off the edge first.
        order = np.argsort(on_edge, axis=0, kind="stable")[: len(corners) - 2]
        return elements, mesh.p[:, np.take_along_axis(corners, order, axis=0)]
