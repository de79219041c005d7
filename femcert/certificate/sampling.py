"""Where a residual is sampled: how likely a random point is in each element, and what a sample can be at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import Array
from ..mesh.elements import degree
from ..mesh.sample import Points, cell_shares, points_in

# Largest sum of |basis functions| on the reference element, sup |f| <= factor * max |nodal values|, by vertices of an
# element and degree; 1 for the others.
_LEBESGUE = {(2, 2): 1.25, (3, 2): 5.0 / 3.0, (4, 2): 1.25**2}
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

    def draw(self, mesh: Any, count: int, rng: np.random.Generator) -> tuple[Points, NDArray[np.int64]]:
        """Independent points, and their times."""
        p = self.probability.ravel()
        cells, columns = divmod(rng.choice(p.size, size=count, p=p / p.sum()), self.probability.shape[1])
        return points_in(mesh, cells, rng), columns


def element_envelopes(basis: Any, values: Array) -> Array:
    """A sure upper bound of ``|f|`` on each element, for finite-element functions with these dof values (columns)."""
    largest = np.abs(values)[basis.element_dofs].max(axis=0)
    return np.asarray(_LEBESGUE.get((len(basis.mesh.t), degree(basis)), 1.0) * largest)


def _shares(mesh: Any, bounds: Array) -> Array:
    return np.asarray(np.repeat(cell_shares(mesh)[:, None], bounds.shape[1], axis=1) / bounds.shape[1])
