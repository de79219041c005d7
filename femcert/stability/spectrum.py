"""Singular values of a small forward map, from its dense matrix, and what rounding may have done to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from ..checks import Array
from ..errors import UncertifiedError
from ..linalg.accuracy import dense_rounding
from ..problem.forward import Linearization, Normal
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


def spectrum(forward: Linearization, normal: Normal, solves: float, error: float = 0.0) -> Spectrum:
    """Of a forward matrix in orthonormal coordinates and whitened data, as `Linearization.normal` gives it.

    `error` is an absolute error of that matrix, a norm, beside the relative one `solves`.

    Raises
    ------
    UncertifiedError
        The smallest singular value is zero to rounding, or the columns of the class are nearly dependent.
    """
    R = forward.parameters.root
    sigma = normal.singular
    rounding, kept = _rounding(forward, sigma, solves, error)
    return Spectrum(sigma, np.asarray(solve_triangular(R, normal.right.T)), rounding, kept)


def _rounding(forward: Linearization, sigma: Array, solves: float, error: float) -> tuple[float, float]:
    k, m = forward.parameters.dimension, forward.observation_count
    # Weyl: errors of the solves behind F and of the SVD move every singular value by at most this.
    rounding = (solves + dense_rounding(m, k)) * sigma[0] + error
    if not sigma[-1] > rounding:
        raise UncertifiedError(
            f"sigma_min = {sigma[-1]:.2g} is zero to rounding (sigma_max = {sigma[0]:.2g}): the sensors do not see "
            "some parameter of the class, C_stab is infinite"
        )
    return float(rounding), gram_kept(forward.parameters)


def gram_kept(space: ParameterSpace) -> float:
    """The part of a norm in Q, just below 1, that rounding in the Gram matrix leaves, seen through ``R^-1``.

    Raises
    ------
    UncertifiedError
        The columns of the class are nearly dependent.
    """
    if not space.kept > 0.5:
        dependence = np.linalg.cond(space.root / np.linalg.norm(space.root, axis=0))
        raise UncertifiedError(
            f"the columns of the parameter space are nearly dependent (condition {dependence:.2g}), so C_stab cannot "
            "be computed to any digit; take an orthogonal basis of the class"
        )
    return space.kept
