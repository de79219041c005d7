"""The forward map of the continuous problem, as far as it is known, and how far that of the mesh can be from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from ..checks import Array
from ..problem.base import Problem
from ..problem.data import Data


class Prediction(NamedTuple):
    """Whitened data of the exact solution for a parameter of the class, and how far each of them may be off."""

    values: Array
    errors: Array


class ExactMap(Protocol):
    """The forward map of the continuous problem, as far as it is known."""

    @property
    def root(self) -> Array:
        """Upper triangular R with ``‖p‖_Q = ‖R c‖``, p the parameter with coordinates c."""

    @property
    def stretch(self) -> float:
        """The largest ``‖B c‖_Q / ‖p‖_Q``, p the parameter with coordinates c: 1 where the columns are the class."""

    def predict(self, coefficients: Array) -> Prediction:
        """Whitened data of the exact solution for the parameter of the class with these coordinates."""

    def distance(self, parameter: Array, coefficients: Array) -> float:
        """An upper bound of ``‖q - p‖_Q``, q a dof vector and p the parameter with these coordinates."""


@dataclass(frozen=True)
class Gap:
    """A forward matrix, and the energy errors of the states behind it.

    Attributes
    ----------
    forward
        ``F`` of the mesh in orthonormal coordinates and whitened data, corrected by the residuals on adjoint states.
    columns, rows
        Guaranteed energy errors of the states of the columns, and of the adjoint states of the (whitened) sensors.
    integrals
        Bound of what quadrature misses of F.
    exact
        The exact map itself, for single parameters.
    problem, whitening
        What it belongs to: the problem, and the matrix that whitens its data.
    """

    forward: Array
    columns: Array
    rows: Array
    exact: ExactMap = field(repr=False, compare=False)
    problem: Problem = field(repr=False, compare=False)
    whitening: Array = field(repr=False, compare=False)
    integrals: float = 0.0

    @property
    def size(self) -> float:
        """``‖eta*‖ ‖eta‖`` (and integrals), an upper bound of the norm of the difference of the two forward maps."""
        return float(np.linalg.norm(self.rows) * np.linalg.norm(self.columns)) + self.integrals


def whitening(problem: Problem, data: Data | None) -> Array:
    """The matrix ``L^-1`` of ``C = L L'``."""
    unit = np.eye(problem.observation_count)
    return unit if data is None else data.whiten(unit)
