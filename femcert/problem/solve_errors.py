"""What solves leave in the data of a linear problem: measured by residuals, in the energy norm, as absolute errors."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, diags

from ..checks import Array
from ..linalg import Factorization
from ..linalg.accuracy import gamma
from .forward import BATCH, dense

# Where errors are a larger part of the readings than this, each sensor is worth a solve.
SHARP = 1e-7


class SolveErrors:
    """Of ``A u = l q``, ``y = H u`` with a symmetric positive definite A.

    The error e of a state changes a reading by ``|h_i e| <= ‖h_i‖_{A^-1} ‖e‖_A``, and the error of the adjoint state
    ``A^-1 h_i`` the reading of a parameter by ``‖e‖_A ‖l q‖_{A^-1}``: what is measured of solves
    (`femcert.linalg.Factorization.energy_errors`) times norms that are bounded without solves, ``f' D^-1 f / least``
    in place of ``f' A^-1 f``. For sensors that are points the bound is large by about 1 / h; where that matters, they
    get a solve each.

    Parameters
    ----------
    factor
        Of A.
    load, sensors
        l, from the dofs of the parameter, and H; on the unknowns of A.
    weight
        A diagonal matrix below that of the norm of the parameter, as a vector.
    """

    def __init__(self, factor: Factorization, load: Any, sensors: Any, weight: Array) -> None:
        self.factor, self._load, self._sensors, self._weight = factor, abs(load).tocsr(), csr_matrix(sensors), weight

    def of_states(self, u: Array, right: Array, summed: Array) -> Array:
        """The energy errors of columns, and what the sums of their readings may lose."""
        read = gamma(_longest(self._sensors)) * self.factor.energies_above(u)
        return np.asarray(self.factor.energy_errors(u, right, summed, _longest(self._load)) + read)

    def of_fields(self, u: Array, right: Array, fields: Any) -> Array:
        """`of_states` for the states of parameters."""
        return self.of_states(u, right, dense(self._load @ abs(fields)))

    def of_adjoints(self, z: Array, right: Array, weights: Array) -> Array:
        """The same for the adjoint states of sensor weights and their products with loads, sums over all dofs."""
        paired = gamma(len(z)) * np.sqrt(self.factor.least) * self.factor.energies_above(z)
        summed = dense(abs(self._sensors).T @ np.abs(weights))
        return np.asarray(self.factor.energy_errors(z, right, summed, _longest(self._sensors.T)) + paired)

    @cached_property
    def load(self) -> float:
        """``‖l q‖_{A^-1} <= load ‖q‖_Q``."""
        return norm_above(self._load, self.factor.diagonal, self._weight) / float(np.sqrt(self.factor.least))

    @cached_property
    def sights(self) -> Array:
        """``‖h_i‖_{A^-1}`` of the sensors, from above and without a solve."""
        return self.factor.dual_norms_above(dense(self._sensors.T))

    @cached_property
    def sharp_sights(self) -> Array:
        """The same, by a solve for each of them."""
        H = self._sensors
        parts = [H[i : i + BATCH].T for i in range(0, H.shape[0], BATCH)]
        return np.minimum(self.sights, np.hstack([self.factor.dual_norms(dense(part)) for part in parts]))

    def sights_for(self, error: float, size: float) -> Array:
        """`sights`, or `sharp_sights` where states with this energy error matter to data of this size."""
        known = "sharp_sights" in vars(self) or float(np.linalg.norm(self.sights)) * error > SHARP * size
        return self.sharp_sights if known else self.sights


def _longest(matrix: Any) -> int:
    """The most entries in a row."""
    return int(np.diff(csr_matrix(matrix).indptr).max(initial=0))


def norm_above(matrix: Any, rows: Array, columns: Array) -> float:
    """At least the norm of ``D^-1/2 |matrix| W^-1/2``, with the diagonals of D and W: from its row and column sums."""
    scaled = diags(rows**-0.5) @ abs(matrix) @ diags(columns**-0.5)
    return float(np.sqrt(scaled.sum(axis=0).max() * scaled.sum(axis=1).max()))
