"""Fluxes with continuous normal components, and what a bound needs to know of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from skfem import Basis

from ..errors import InputError
from ..problem.checks import Array, real_vector
from ..problem.sampling import Sampler
from .bubbles import bubble_fields
from .hierarchy import Space
from .stars import Stars


class Flux(Protocol):
    """A vector field on the mesh that can be sampled. Whether it is conforming is checked, not believed."""

    def at(self, sampler: Sampler) -> tuple[Array, Array]:
        """Values ``(dimension, elements, points)`` and divergence ``(elements, points)``."""

    @property
    def trace_degree(self) -> int:
        """Degree of the normal component along a facet."""


@dataclass(frozen=True)
class ElementFlux:
    """A flux of a scikit-fem H(div) space (``ElementTriRT0`` and its siblings), or on lines a continuous P1 or P2 function.

    Parameters
    ----------
    basis
        Basis of the flux on the whole mesh.
    dofs
        Its degrees of freedom.
    """

    basis: Basis
    dofs: Array

    def __post_init__(self) -> None:
        if not isinstance(self.basis, Basis):
            raise InputError(f"basis is a {type(self.basis).__name__}; expected a skfem.Basis of an H(div) element")
        object.__setattr__(self, "dofs", real_vector(self.dofs, self.basis.N, "the flux"))

    def at(self, sampler: Sampler) -> tuple[Array, Array]:
        """Values and divergence."""
        rule = (sampler.X, sampler.W)
        field = Basis(self.basis.mesh, self.basis.elem, quadrature=rule).interpolate(self.dofs)
        if len(sampler.X) == 1:
            return np.asarray(field.value)[None], np.asarray(field.grad)[0]
        if getattr(field, "div", None) is None:
            raise InputError(f"{type(self.basis.elem).__name__} has no divergence; expected an H(div) element")
        return np.asarray(field.value), np.asarray(field.div)

    @property
    def trace_degree(self) -> int:
        """At most the degree of the element."""
        return int(self.basis.elem.maxdeg)


@dataclass(frozen=True)
class FacetFlux:
    """A flux given by linear normal components on the facets, bubbles inside the elements, and a stream function.

    ``p = p_1 + J (bubbles) / |det J| + curl s``: p_1 has the given normal components (linear on triangles, on
    quadrilaterals linear between opposite sides of the reference square, under Piola's map), the bubbles have none, and
    the curl of a continuous function has continuous ones. So p is conforming by construction.

    Attributes
    ----------
    gamma
        Normal component times length at both ends of each facet, ``(2, facets)``, along the normal out of side 0.
    inside
        Coefficients of `bubble_fields` of degree `degree`, ``(elements, fields)``.
    space, stream
        Continuous space and dofs of the stream function s; ``curl s = (s_y, -s_x)``; None for none.
    """

    stars: Stars
    gamma: Array
    inside: Array
    degree: int
    space: Space
    stream: Array | None = None

    @property
    def trace_degree(self) -> int:
        """Along the facets."""
        return 1 if self.stream is None else int(self.space.elem.degree) - 1

    def outward(self) -> Array:
        """Outward normal component times length at the local vertices of local facets, ``(local facets, 2, elements)``."""
        t2f = self.stars.mesh.t2f
        return np.array(
            [[self.stars.signs[l] * self.gamma[self.stars.ends[l, k], t2f[l]] for k in (0, 1)] for l in range(len(t2f))]
        )

    def at(self, sampler: Sampler) -> tuple[Array, Array]:
        """Values and divergence."""
        vertices = len(self.stars.local)
        values, divergence = self._on_triangles(sampler) if vertices == 3 else self._on_quadrilaterals(sampler)
        if self.inside.any():
            fields, divergences = bubble_fields(vertices, self.degree, sampler.X)
            first, second = self.inside @ fields[:, 0], self.inside @ fields[:, 1]
            J, d = sampler.jacobian, sampler.determinant
            for i in (0, 1):
                values[i] += (J[i, 0] * first + J[i, 1] * second) / d
            divergence = divergence + (self.inside @ divergences) / d
        if self.stream is not None:
            slope = sampler.gradients(self.space, self.stream)
            values[0] += slope[1]
            values[1] -= slope[0]
        return values, divergence

    def _on_triangles(self, sampler: Sampler) -> tuple[Array, Array]:
        mesh = self.stars.mesh
        twice = sampler.determinant[:, 0]
        x = mesh.p[:, mesh.t]
        shapes, _ = sampler.table(mesh.elem())
        G = self.outward()
        # At vertex i the normal components on its two facets determine the vector.
        corner = np.zeros((2, 3, mesh.nelements))
        for l, (i, j) in enumerate(self.stars.local):
            apex = 3 - i - j
            corner[:, i] -= G[l, 0] * (x[:, apex] - x[:, i])
            corner[:, j] -= G[l, 1] * (x[:, apex] - x[:, j])
        corner /= twice
        values = np.array([component.T @ shapes for component in corner])
        return values, (G.sum(axis=(0, 1)) / twice)[:, None]

    def _on_quadrilaterals(self, sampler: Sampler) -> tuple[Array, Array]:
        # Components of the Piola pull-back, linear between opposite facets: 0 bottom, 1 right, 2 top, 3 left.
        (X, Y), J = sampler.X, sampler.jacobian
        bottom, right, top, left = self.outward()[..., None]
        west, east = -(left[0] * (1 - Y) + left[1] * Y), right[0] * (1 - Y) + right[1] * Y
        south, north = -(bottom[0] * (1 - X) + bottom[1] * X), top[1] * (1 - X) + top[0] * X
        first, second = west * (1 - X) + east * X, south * (1 - Y) + north * Y
        # With the absolute value of the determinant outward flows stay outward, also if the map reverses orientation.
        d = sampler.determinant
        values = np.array([(J[i, 0] * first + J[i, 1] * second) / d for i in (0, 1)])
        return values, (east - west + north - south) / d
