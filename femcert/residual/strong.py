"""The paper's physics residual: root mean square of the discrete strong residual."""

from __future__ import annotations

import numpy as np

from ..checks import Array
from ..linalg import solve_mass
from ..problem.base import Problem


def strong_field(problem: Problem, state: Array, parameter: Array) -> Array:
    """L2 representative ``M^-1 r`` of the weak residual, on the free dofs (columns for several times).

    On a uniform line with P1 and lumped mass this is the finite-difference residual ``q - K u`` at the grid points.
    """
    r = problem.residual(state, parameter)
    return solve_mass(problem.residual_mass, r[problem.free])


def strong_rms(problem: Problem, state: Array, parameter: Array) -> float:
    """``(r' M^-1 r / 1' M 1)^(1/2)`` over the free dofs, and the mean square over times.

    The mean is weighted by the mass, so that it approximates ``‖N(u, q)‖_L2 / |Omega|^(1/2)`` on any mesh; on a uniform
    grid with lumped mass it is the plain RMS over the grid points that the paper uses. The measure ``1' M 1`` is that
    of the free dofs, smaller than ``|Omega|`` on a coarse mesh, so this may be larger than the mean over all of Omega.
    """
    r = problem.residual(state, parameter)[problem.free].reshape(len(problem.free), -1)
    field = solve_mass(problem.residual_mass, r)
    measure = float(problem.residual_mass.sum())
    return float(np.sqrt(max(np.einsum("ij,ij->", r, field), 0.0) / (measure * r.shape[1])))
