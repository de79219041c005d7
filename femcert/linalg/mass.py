"""Solves with a mass matrix by conjugate gradients: well conditioned, so no factorization is spent on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SolveError

Array = NDArray[np.float64]
# Of the residual, in the preconditioned norm; and the steps within which conjugate gradients reach it.
MASS_TOLERANCE = 1e-13
MOST_STEPS = 400


def solve_mass(mass: Any, right: Array, *, tolerance: float = MASS_TOLERANCE, most: int = MOST_STEPS) -> Array:
    """``mass^-1 right`` for all columns at once, by conjugate gradients with the diagonal as preconditioner.

    The condition number of a diagonally scaled Lagrange mass matrix depends on the element only, not on
    the mesh, so the number of steps is bounded; a diagonal (lumped) matrix takes one step.

    Raises
    ------
    SolveError
        A diagonal entry is not positive, or the residual did not fall below `tolerance`.
    """
    diagonal = mass.diagonal()
    if not np.all(diagonal > 0.0):
        raise SolveError("a mass matrix has a diagonal entry that is not positive")
    inverse = (1.0 / diagonal)[:, None]
    b = right.reshape(len(diagonal), -1)
    x = inverse * b
    r = b - mass @ x
    z = inverse * r
    p = z
    # Norms are taken in the preconditioned inner product, which is the scale of the solution.
    target = tolerance**2 * np.sum(b * inverse * b, axis=0)
    rz = np.sum(r * z, axis=0)
    for _ in range(most):
        active = ~(rz <= target)  # so written, NaN stays active and fails below
        if not active.any():
            return x.reshape(right.shape)
        Mp = mass @ p
        curvature = np.sum(p * Mp, axis=0)
        step = np.divide(rz, curvature, out=np.zeros_like(rz), where=active & (curvature > 0.0))
        x = x + step * p
        r = r - step * Mp
        z = inverse * r
        fresh = np.sum(r * z, axis=0)
        p = z + np.divide(fresh, rz, out=np.zeros_like(rz), where=active) * p
        rz = fresh
    raise SolveError(f"the mass matrix solve did not reach {tolerance:g} in {most} steps")
