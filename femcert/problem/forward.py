"""From the coordinates of a class to data, linearized: what every rule, baseline and constant needs of a problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import issparse

from ..checks import Array, frozen
from ..errors import InputError, UncertifiedError
from ..linalg.accuracy import EPS
from .gram import largest_sum

if TYPE_CHECKING:
    from .curvature import Curvature
    from .data import Data
    from .space import ParameterSpace
    from .together import Chain

# Columns per batch of right-hand sides: enough for the solver, few enough for memory at 1e6 dofs.
BATCH = 16
# Sums, products and solves with a mass matrix (they stop at 1e-13) lose at most this, relatively.
ROUNDING = 1e-12
# By how much apply and adjoint may differ on a random vector, relative to the entries: solves that end early.
ADJOINT_TOLERANCE = 1e-4


class Normal(NamedTuple):
    """A forward matrix in orthonormal coordinates and whitened data, ``A = U S V'``: decomposed once for all rules.

    Attributes
    ----------
    matrix
        A, ``(m, k)``.
    left, singular, right
        U, the diagonal of S (descending) and V', as `numpy.linalg.svd` gives them without full matrices.
    """

    matrix: Array
    left: Array
    singular: Array
    right: Array


def normal_of(matrix: Array) -> Normal:
    """The singular value decomposition of a matrix."""
    return Normal(matrix, *np.linalg.svd(matrix, full_matrices=False))


class Linearization(ABC):
    """``data = J c + offset`` for the coordinates c of a class: near a parameter, or everywhere (`LinearMap`).

    A subclass gives `apply` and `offset`, and `adjoint` where there is one; the rest follows. Errors are stated here
    once, in the norms of Q and Y, so that those who use J need not know how it was made.

    Attributes
    ----------
    parameters
        The admissible class.
    observation_count
        Length m of the data vector.
    at
        The parameter (dof vector) about which it was made; None: it holds everywhere.
    chain
        Where it is ``-H A^-1 C``, its parts; `Experiments` solve those with one A together.
    """

    parameters: ParameterSpace
    observation_count: Any
    at: Array | None = None
    chain: Chain | None = None
    _normal: tuple[Data | None, Normal] | None = None

    @property
    def everywhere(self) -> bool:
        """Whether nothing is left out, at any parameter: the problem is linear."""
        return self.at is None

    @property
    @abstractmethod
    def offset(self) -> Array:
        """``y0``: data of the coordinates zero, by the linearization."""

    @property
    def predicted(self) -> Array:
        """Data of the parameter about which it was made; of the coordinates zero where it holds everywhere."""
        return self.offset if self.at is None else self.offset + self.matrix @ self.parameters.project(self.at)[0]

    @abstractmethod
    def apply(self, fields: Any) -> Array:
        """``J`` for columns of parameter dofs, sparse or dense: a column of data for each."""

    def adjoint(self, weights: Array) -> Array:
        """``J'`` for columns of sensor weights: functionals on the parameter's dofs."""
        unit = np.eye(self.parameters.size)
        return np.asarray(self.apply(unit).T @ weights)

    @cached_property
    def matrix(self) -> Array:
        """``J``, ``(m, k)``, by k applications of `apply` or m of `adjoint`, whichever are fewer."""
        k, m, B = self.parameters.dimension, self.observation_count, self.parameters.matrix
        if k <= m:
            return frozen(np.hstack([self.apply(B[:, j : j + BATCH]) for j in range(0, k, BATCH)]))
        unit = np.eye(m)
        J = np.hstack([B.T @ self.adjoint(unit[:, i : i + BATCH]) for i in range(0, m, BATCH)]).T
        # An adjoint that is not one would make a matrix of something else.
        c = np.random.default_rng(0).standard_normal(k)
        read = self.apply(np.asarray(B @ c)[:, None])[:, 0]
        if not np.abs(J @ c - read).max() <= ADJOINT_TOLERANCE * (np.abs(J) @ np.abs(c)).max():
            name = type(self).__name__
            raise InputError(f"the adjoint of a {name} is not that of apply: they differ on a random vector")
        return frozen(J)

    def curvature(self, data: Data | None) -> Curvature | None:
        """What bounds the part that the linearization leaves out; None where nothing is known, or nothing left out."""
        return None

    def rounding_of(self, data: Data | None) -> float:
        """What the solves behind J may lose to rounding, relative to ``‖J c‖_Y``; Euclidean without data."""
        return ROUNDING * (1.0 if data is None else data.spread)

    def corrected_rounding(self, data: Data | None) -> float:
        """`rounding_of`, for readings that are corrected by residuals of states: sums of large terms that cancel."""
        return self.rounding_of(data)

    def error(self, data: Data | None) -> float:
        """What rounding may have moved J by, as a norm from Q to Y, beside `rounding_of`; 0: no more."""
        return 0.0

    def pulled(self, weights: Array) -> tuple[Array, Array]:
        """`adjoint`, and by how much the reading of a field of norm one in Q may be off beside `rounding_of`."""
        return self.adjoint(weights), np.zeros(weights.shape[1])

    @property
    def reading_errors(self) -> Array:
        """What rounding may have moved each datum by, for a parameter of norm one in Q."""
        return np.full(self.observation_count, self.error(None))

    def offset_rounding(self, data: Data) -> float:
        """What rounding may leave in ``y - offset``, in the norm of Y; 0 where there is no offset."""
        if not self.offset.any():
            return 0.0
        return self.offset_tolerance * data.norm_of_errors(np.abs(self.offset) + np.abs(data.values))

    # What an offset may have lost, relative to itself: it came as numbers, each rounded a few times.
    offset_tolerance: float = 4.0 * EPS

    def exact(self, purpose: str) -> Linearization:
        """Itself, if its solves end at rounding; an `UncertifiedError` for a purpose that knows no other error."""
        return self

    def scaled(self, data: Data | None) -> Array:
        """``L^-1 J R^-1`` with ``G = R' R`` in Q and ``C = L L'`` in Y: in orthonormal coordinates, whitened.

        Raises
        ------
        UncertifiedError
            In units of the noise the entries leave the range of floats.
        """
        white = self.matrix if data is None else data.whiten(self.matrix)
        if not np.all(np.isfinite(white)):
            raise UncertifiedError("the forward matrix, in units of the noise, is not finite; choose another unit")
        return np.asarray(solve_triangular(self.parameters.root, white.T, trans="T").T)

    def normal(self, data: Data | None) -> Normal:
        """`scaled`, decomposed; the latest one is kept, so that rules, constants and baselines share it."""
        if self._normal is not None and _same_weights(self._normal[0], data):
            return self._normal[1]
        found = normal_of(self.scaled(data))
        self._normal = data, found
        return found


def _same_weights(one: Data | None, other: Data | None) -> bool:
    if one is None or other is None:
        known = other if one is None else one
        return known is None or (known.covariance is None and known.count == known.values.size)
    return one.weighs_like(other)


class LinearMap(Linearization):
    """What a linear problem is: its own linearization, at every parameter.

    Put it before `Problem` among the bases of a class: ``class Blur(LinearMap, Problem)``. Claims take `apply` for the
    map up to `rounding_of`, by default 1e-12 of its norm; where `apply` loses more (an iteration that ends early,
    single precision), override `rounding_of`, or `error` for an absolute error.
    """

    def linearize(self, at: Any = None) -> LinearMap:
        """Itself; `at` does not matter."""
        return self

    @property
    def forward(self) -> LinearMap:
        """Itself."""
        return self

    def forward_matrix(self) -> Array:
        """`matrix`."""
        return self.matrix


class SizedMap(LinearMap):
    """A linear map through states, whose rounding errors are relative to the states and not to what is read of them.

    A subclass gives `read` and `pull`, and the weights `readings` and `loads`.
    """

    # What a solve takes of the digits of a state; 0 where nothing is solved.
    solve_rounding: float = 0.0

    @property
    def relative(self) -> float:
        """What rounding may take of states, in parts of what `read` and `pull` give as their sizes."""
        return max(ROUNDING, self.solve_rounding)

    @abstractmethod
    def read(self, fields: Any) -> tuple[Array, Array]:
        """`apply`, and for every column the largest value of its state."""

    @abstractmethod
    def pull(self, weights: Array) -> tuple[Array, Array]:
        """`adjoint`, and for every column the largest value of its adjoint state."""

    @property
    @abstractmethod
    def readings(self) -> Array:
        """``sum_j |H_ij|`` for every datum: what a state of size one may add to it."""

    @property
    @abstractmethod
    def loads(self) -> Array:
        """``sum_i |l B|_ij`` for every coordinate, the same for adjoint states."""

    def apply(self, fields: Any) -> Array:
        """See `Linearization.apply`."""
        return self.read(fields)[0]

    def adjoint(self, weights: Array) -> Array:
        """See `Linearization.adjoint`."""
        return self.pull(weights)[0]

    @cached_property
    def _sized(self) -> tuple[Array, Array, Array]:
        """F, and a and b such that rounding may have moved ``F_ij`` by a part of ``a_i b_j``."""
        k, m, B = self.parameters.dimension, self.observation_count, self.parameters.matrix
        if k <= m:
            parts = [self.read(B[:, j : j + BATCH]) for j in range(0, k, BATCH)]
            return frozen(np.hstack([F for F, _ in parts])), self.readings, np.hstack([size for _, size in parts])
        unit = np.eye(m)
        rows = [self.pull(unit[:, i : i + BATCH]) for i in range(0, m, BATCH)]
        F = np.hstack([B.T @ values for values, _ in rows]).T
        return frozen(F), np.hstack([size for _, size in rows]), self.loads

    @property
    def matrix(self) -> Array:
        """``F``, ``(observations, dimension)``: from coordinates to data, computed once.

        By k forward or m adjoint solves, whichever is fewer, all with the one factorization.
        """
        return self._sized[0]

    @cached_property
    def forward_sizes(self) -> tuple[Array, float]:
        """A weight for each reading, and a number: their product bounds what rounding may move a reading by.

        For a parameter of norm one in Q.
        """
        _, weights, sizes = self._sized
        return self.relative * weights, largest_sum(self.parameters, sizes)

    @property
    def reading_errors(self) -> Array:
        """See `Linearization.reading_errors`."""
        weights, size = self.forward_sizes
        return size * weights

    def error(self, data: Data | None) -> float:
        """What rounding may have moved the forward map by, as a norm from Q to Y.

        Errors of states are relative to states, which may be far above what the sensors read of them: where modes have
        decayed, or readings cancel. The forward matrix is made for it.
        """
        weights, size = self.forward_sizes
        return size * (float(np.linalg.norm(weights)) if data is None else data.norm_of_errors(weights))


def dense(columns: Any) -> Array:
    """`columns` as a dense array, whether sparse or not."""
    return columns.toarray() if issparse(columns) else np.asarray(columns)
