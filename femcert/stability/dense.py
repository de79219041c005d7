"""Singular values of a small forward map, from its dense matrix, and what rounding may have done to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular, svd

from ..checks import Array
from ..errors import InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.data import Data
from ..problem.nonlinear import NonlinearProblem
from ..problem.space import ParameterSpace


@dataclass(frozen=True)
class Spectrum:
    """Of the map from Q to Y.

    Attributes
    ----------
    values
        Singular values, descending, as computed.
    coordinates
        Of the right singular vectors, a column for each; their fields have norm 1 in Q.
    rounding
        What rounding may have moved every singular value by.
    kept
        The part of a singular value that rounding in the norm of Q leaves, just below 1.
    """

    values: Array
    coordinates: Array
    rounding: float
    kept: float

    @property
    def smallest(self) -> float:
        """The smallest singular value, from below."""
        return float(self.kept * (self.values[-1] - self.rounding))


def spectrum(problem: Problem, scaled: Array, at: Any, data: Data | None, error: float = 0.0) -> Spectrum:
    """Of a forward matrix in orthonormal coordinates and whitened data, as `scaled_forward` gives it.

    `error` is an absolute error of that matrix, a norm, beside the relative one of the solves.

    Raises
    ------
    UncertifiedError
        The smallest singular value is zero to rounding, or the columns of the class are nearly dependent.
    """
    R = problem.parameters.root
    _, sigma, Vt = svd(scaled, full_matrices=False)
    rounding, kept = _rounding(problem, sigma, problem.linearize(at).rounding_of(data), error)
    return Spectrum(sigma, np.asarray(solve_triangular(R, Vt.T)), rounding, kept)


def scaled_forward(problem: Problem, at: Any, data: Data | None) -> Array:
    """``L^-1 F R^-1`` with ``G = R' R`` in Q and ``C = L L'`` in Y; of a nonlinear problem the Jacobian at `at`."""
    F = _derivative(problem, at)
    white = F if data is None else data.whiten(F)
    if not np.all(np.isfinite(white)):
        raise UncertifiedError("the forward matrix, in units of the noise, is not finite; choose another unit")
    return np.asarray(solve_triangular(problem.parameters.root, white.T, trans="T").T)


def _derivative(problem: Problem, at: Any) -> Array:
    if problem.linear:
        return problem.linearize().matrix
    if not isinstance(problem, NonlinearProblem):
        raise InputError(f"no forward matrix is known for a {type(problem).__name__}")
    if at is None:
        raise InputError("a nonlinear problem has a stability constant at a parameter only; give at=")
    return problem.jacobian(at)


def _rounding(problem: Problem, sigma: Array, solves: float, error: float) -> tuple[float, float]:
    k, m = problem.parameters.dimension, problem.observation_count
    # Weyl: errors of the solves behind F and of the SVD move every singular value by at most this.
    eps = np.finfo(float).eps
    rounding = (solves + 16.0 * np.sqrt(m * k) * eps) * sigma[0] + error
    if not sigma[-1] > rounding:
        raise UncertifiedError(
            f"sigma_min = {sigma[-1]:.2g} is zero to rounding (sigma_max = {sigma[0]:.2g}): the sensors do not see "
            "some parameter of the class, C_stab is infinite"
        )
    return float(rounding), gram_kept(problem.parameters)


def gram_kept(space: ParameterSpace) -> float:
    """The part of a norm in Q, just below 1, that rounding in the Gram matrix leaves, seen through ``R^-1``.

    Raises
    ------
    UncertifiedError
        The columns of the class are nearly dependent.
    """
    R = space.root
    dependence = np.linalg.cond(R / np.linalg.norm(R, axis=0))
    kept = 1.0 - 4.0 * len(R) * float(np.finfo(float).eps) * dependence**2
    if not kept > 0.5:
        raise UncertifiedError(
            f"the columns of the parameter space are nearly dependent (condition {dependence:.2g}), so C_stab cannot "
            "be computed to any digit; take an orthogonal basis of the class"
        )
    return float(kept)
