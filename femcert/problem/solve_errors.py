"""What solves leave in the data of a linear problem: measured by residuals, in the energy norm, as absolute errors."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, diags

from ..checks import Array
from ..linalg import EPS, Factorization, least_share
from ..linalg.accuracy import gamma
from .data import Data
from .forward import BATCH, ROUNDING, SizedMap, dense
from .gram import largest_sum

# Where errors are a larger part of the readings than this, each sensor is worth a solve.
SHARP = 1e-7
# A proved lower bound of the operator is taken if it is not a smaller part than this of what was estimated. To count
# pivots instead is worth a factorization up to so many unknowns, and each sensor a solve.
FAR, MOST_COUNTED = 1e-2, 5000
# What rounding in the assembly may take of an operator with a unit diagonal, in parts of its largest row sum.
ASSEMBLED = 128.0 * EPS


def bound_least(factor: Factorization, operator: Any, share: float = 0.0) -> None:
    """Tell the factors of an operator what is proved of it: that ``A >= share D``, or what a count of pivots shows."""
    if factor.proven:
        return
    if share < FAR * factor.least and operator.shape[0] <= MOST_COUNTED:
        share = max(share, least_share(operator, factor.least))
    share -= ASSEMBLED * factor.size
    if share >= FAR * factor.least:
        factor.bound_least(share)


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
        return self.factor.dual_norms_above(self._sensors.T)

    @cached_property
    def sharp_sights(self) -> Array:
        """The same, by a solve for each of them."""
        H = self._sensors
        parts = [H[i : i + BATCH].T for i in range(0, H.shape[0], BATCH)]
        return np.minimum(self.sights, np.hstack([self.factor.dual_norms(dense(part)) for part in parts]))

    def sights_for(self, error: float, size: float) -> Array:
        """`sharp_sights` where they are cheap, or states with this energy error matter to data of this size."""
        cheap = len(self.factor.diagonal) <= MOST_COUNTED or "sharp_sights" in vars(self)
        matters = cheap or float(np.linalg.norm(self.sights)) * error > SHARP * size
        return self.sharp_sights if matters else self.sights


class MeasuredMap(SizedMap):
    """A linear map through states whose solves are measured, where `measured` says so; else as `SizedMap` has it.

    A subclass gives `read` and `pull` with energy errors as sizes where they are measured, and the weights
    `state_readings` and `state_loads` for where they are not.
    """

    @property
    @abstractmethod
    def measured(self) -> bool:
        """Whether `solve_errors` knows what solves leave; else it is an estimate."""

    @property
    @abstractmethod
    def solve_errors(self) -> SolveErrors:
        """What solves leave in the data."""

    @property
    @abstractmethod
    def state_readings(self) -> Array:
        """What a state of size one may add to each reading."""

    @property
    @abstractmethod
    def state_loads(self) -> Array:
        """For every coordinate what it may add to adjoint states of size one."""

    @property
    def rounding(self) -> float:
        """What sums and products lose; where solves are not measured, also what the condition number says."""
        return ROUNDING if self.measured else max(ROUNDING, self.solve_rounding)

    def rounding_of(self, data: Data | None) -> float:
        """`rounding`, in the norm of the data."""
        return self.rounding * (1.0 if data is None else data.spread)

    def corrected_rounding(self, data: Data | None) -> float:
        """See `Linearization.corrected_rounding`: what the condition number says, an estimate."""
        return max(self.rounding_of(data), self.solve_rounding * (1.0 if data is None else data.spread))

    @property
    def relative(self) -> float:
        """See `SizedMap.relative`; measured errors are absolute."""
        return 1.0 if self.measured else super().relative

    @property
    def readings(self) -> Array:
        """What a state may add to each reading: for its energy error, or, where that is not known, its size."""
        return self._at_times(self.solve_errors.sights) if self.measured else self.state_readings

    def _at_times(self, weights: Array) -> Array:
        """The weights of sensors, for all observations."""
        return weights

    @property
    def loads(self) -> Any:
        """What a parameter may add to an adjoint state: one number for norm one in Q, or one for each column."""
        return self.solve_errors.load if self.measured else self.state_loads

    def pulled(self, weights: Array) -> tuple[Array, Array]:
        """See `Linearization.pulled`."""
        if not self.measured:
            return super().pulled(weights)
        values, sizes = self.pull(weights)
        return values, sizes * self.loads

    @cached_property
    def forward_sizes(self) -> tuple[Array, float]:
        """See `SizedMap.forward_sizes`."""
        F, weights, sizes = self._sized
        if not self.measured:
            return super().forward_sizes
        if not np.ndim(sizes):
            return weights, float(sizes)
        sharp = self.solve_errors.sights_for(float(np.linalg.norm(sizes)), float(np.linalg.norm(F)))
        return self._at_times(sharp), largest_sum(self.parameters, sizes)


def _longest(matrix: Any) -> int:
    """The most entries in a row."""
    return int(np.diff(csr_matrix(matrix).indptr).max(initial=0))


def norm_above(matrix: Any, rows: Array, columns: Array) -> float:
    """At least the norm of ``D^-1/2 |matrix| W^-1/2``, with the diagonals of D and W: from its row and column sums."""
    scaled = diags(rows**-0.5) @ abs(matrix) @ diags(columns**-0.5)
    return float(np.sqrt(scaled.sum(axis=0).max() * scaled.sum(axis=1).max()))
