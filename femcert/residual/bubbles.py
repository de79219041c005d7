"""Vector fields on the reference element without normal component on its boundary: they change only a divergence."""

from __future__ import annotations

from functools import cache

import numpy as np

from ..checks import Array
from ..mesh.sample import Sampler
from .patches import LOCAL_FACETS

_CORNERS = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


def bubble_fields(vertices: int, degree: int, X: Array) -> tuple[Array, Array]:
    """Fields ``(fields, 2, points)`` and divergences ``(fields, points)`` at reference points.

    On the triangle ``lam_i lam_j t_ij`` with the tangent t_ij, whose divergence is ``lam_i - lam_j``, and for degree 2
    also ``lam_i lam_j (lam_i - lam_j) t_ij``: together all polynomials of this degree with mean zero. On the square
    ``(x (1-x) P(y), 0)`` and its siblings: all polynomials of this degree in each variable with mean zero.
    """
    return _on_triangle(degree, X) if vertices == 3 else _on_square(degree, X)


def fit_matrix(sampler: Sampler, degree: int) -> Array:
    """``(points, fields)``: coefficients of bubble fields from samples of the divergence they should have."""
    _, divergence = bubble_fields(sampler.mesh.t.shape[0], degree, sampler.X)
    root = np.sqrt(sampler.W)
    return np.asarray((np.linalg.pinv((divergence * root).T, rcond=1e-10) * root).T)


def _on_triangle(degree: int, X: Array) -> tuple[Array, Array]:
    lam = np.array([1.0 - X[0] - X[1], X[0], X[1]])
    fields, divergences = [], []
    for i, j in LOCAL_FACETS[3]:
        a, b = lam[i], lam[j]
        tangent = _CORNERS[:, j] - _CORNERS[:, i]
        fields.append(np.outer(tangent, a * b))
        divergences.append(a - b)
        if degree == 2:
            fields.append(np.outer(tangent, a * b * (a - b)))
            divergences.append(a**2 + b**2 - 4.0 * a * b)
    return np.array(fields), np.array(divergences)


def _on_square(degree: int, X: Array) -> tuple[Array, Array]:
    legendre = [np.polynomial.legendre.legval(2.0 * X - 1.0, row) for row in np.eye(degree + 1)]
    bubbles = [(X * (1 - X), 1 - 2 * X), (X * (1 - X) * (0.5 - X), 0.5 - 3 * X + 3 * X**2)][:degree]
    fields, divergences = [], []
    for value, slope in bubbles:
        for P in legendre:
            zero = np.zeros_like(X[0])
            fields += [np.array([value[0] * P[1], zero]), np.array([zero, value[1] * P[0]])]
            divergences += [slope[0] * P[1], slope[1] * P[0]]
    return np.array(fields), np.array(divergences)


@cache
def bubble_count(vertices: int, degree: int) -> int:
    """How many fields there are."""
    return len(bubble_fields(vertices, degree, np.full((2, 1), 0.25))[0])
