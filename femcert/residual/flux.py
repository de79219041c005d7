"""Fluxes with continuous normal components, and what a bound needs to know of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from skfem import Basis

from ..checks import Array, real_vector
from ..errors import InputError
from ..mesh.sample import Sampler
from .hierarchy import Space, bubble_fields
from .patches import Patches


@dataclass(frozen=True)
class ElementFlux:
    """A flux of a scikit-fem H(div) space (``ElementTriRT0`` and siblings), or on lines a continuous P1 or P2 function.

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
        sampled = Basis(self.basis.mesh, self.basis.elem, quadrature=rule).interpolate(self.dofs)
        if len(sampler.X) == 1:
            return np.asarray(sampled)[None], np.asarray(sampled.grad)[0]
        if getattr(sampled, "div", None) is None:
            raise InputError(f"{type(self.basis.elem).__name__} has no divergence; expected an H(div) element")
        return np.asarray(sampled), np.asarray(sampled.div)

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

    patches: Patches
    gamma: Array
    inside: Array
    degree: int
    space: Space
    stream: Array | None = None
    _base: tuple[Sampler, Array, Array] | None = field(default=None, repr=False, compare=False)

    @property
    def trace_degree(self) -> int:
        """Along the facets."""
        return 1 if self.stream is None else int(self.space.elem.degree) - 1

    def outward(self) -> Array:
        """Outward normal component times length at both ends of local facets, ``(local facets, 2, elements)``."""
        patches = self.patches
        t2f = patches.mesh.t2f
        return np.array(
            [[patches.signs[l] * self.gamma[patches.ends[l, k], t2f[l]] for k in (0, 1)] for l in range(len(t2f))]
        )

    def at(self, sampler: Sampler) -> tuple[Array, Array]:
        """Values and divergence."""
        if self._base is None or self._base[0] is not sampler:
            # All but the stream function is kept for the next question with the same points.
            object.__setattr__(self, "_base", (sampler, *self._without_stream(sampler)))
        assert self._base is not None
        _, values, divergence = self._base
        if self.stream is None:
            return values, divergence
        slope = sampler.gradients(self.space, self.stream)
        # In place, for the arrays are large: the second component becomes the first one of the flux.
        np.add(values[0], slope[1], out=slope[1])
        np.subtract(values[1], slope[0], out=slope[0])
        return slope[::-1], divergence

    def _without_stream(self, sampler: Sampler) -> tuple[Array, Array]:
        vertices = len(self.patches.local)
        values, divergence = self._on_triangles(sampler) if vertices == 3 else self._on_quadrilaterals(sampler)
        if self.inside.any():
            fields, divergences = bubble_fields(vertices, self.degree, sampler.X)
            J, d = sampler.jacobian, sampler.determinant
            if d.shape[1] == 1:
                scaled = self.inside / d
                for i in (0, 1):
                    values[i] += (J[i, 0] * scaled) @ fields[:, 0] + (J[i, 1] * scaled) @ fields[:, 1]
                return values, divergence + scaled @ divergences
            first, second = self.inside @ fields[:, 0], self.inside @ fields[:, 1]
            for i in (0, 1):
                values[i] += (J[i, 0] * first + J[i, 1] * second) / d
            divergence = divergence + (self.inside @ divergences) / d
        return values, divergence

    def _on_triangles(self, sampler: Sampler) -> tuple[Array, Array]:
        mesh = self.patches.mesh
        twice = sampler.determinant[:, 0]
        x = mesh.p[:, mesh.t]
        shapes, _ = sampler.table(mesh.elem())
        G = self.outward()
        # At vertex i the normal components on its two facets determine the vector.
        G /= twice
        values = np.empty((2, mesh.nelements, shapes.shape[1]))
        for axis in (0, 1):
            y = x[axis]
            corner = np.empty((mesh.nelements, 3))
            corner[:, 0] = G[0, 0] * (y[0] - y[2]) + G[2, 0] * (y[0] - y[1])
            corner[:, 1] = G[0, 1] * (y[1] - y[2]) + G[1, 0] * (y[1] - y[0])
            corner[:, 2] = G[1, 1] * (y[2] - y[0]) + G[2, 1] * (y[2] - y[1])
            np.matmul(corner, shapes, out=values[axis])
        return values, (G[0, 0] + G[0, 1] + G[1, 0] + G[1, 1] + G[2, 0] + G[2, 1])[:, None]

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
