"""Sampled fields as polynomials on the elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from skfem import ElementLineP1, ElementLineP2, ElementQuad1, ElementQuad2, ElementTriP1, ElementTriP2

from ..checks import Array
from ..mesh.sample import Sampler

_NODAL = {
    (2, 1): ElementLineP1, (2, 2): ElementLineP2, (3, 1): ElementTriP1, (3, 2): ElementTriP2,
    (4, 1): ElementQuad1, (4, 2): ElementQuad2,
}  # fmt: skip


def nodal_fit(sampler: Sampler, degree: int) -> tuple[Any, Array]:
    """A Lagrange element, and the matrix ``(nodes, points)`` from samples to the nodal values of the best fit."""
    elem = _NODAL[sampler.mesh.t.shape[0], degree]()
    phi, _ = sampler.table(elem)
    return elem, np.linalg.solve((phi * sampler.W) @ phi.T, phi * sampler.W)
