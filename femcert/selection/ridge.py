"""Ridge regression in an orthogonal frame: one decomposition answers every weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import eigh, solve_triangular

from ..checks import Array
from ..linalg.accuracy import EPS
from ..problem.forward import Normal

# Up to this many coordinates, or as many as there are data, columns are decomposed.
MOST_COLUMNS = 500


@dataclass(frozen=True)
class Ridge:
    """``min ‖F c - y‖² + weight c' G c`` in terms of the singular values of ``F G^(-1/2)``.

    Attributes
    ----------
    sigma
        Singular values that are not zero to rounding.
    beta
        Components of y along the left singular vectors.
    outside
        ``‖y_perp‖²``, the part of y outside the range of F.
    lift
        From filtered components ``s`` to coordinates.
    """

    sigma: Array
    beta: Array
    outside: float
    lift: Lift

    def coefficients(self, weight: float) -> Array:
        """The minimizer."""
        return self.lift(self.beta * self.sigma / (self.sigma**2 + weight))

    def misfit(self, weight: float) -> float:
        """``‖F c - y‖`` at the minimizer; it grows with the weight."""
        kept = self.beta * weight / (self.sigma**2 + weight)
        return float(np.sqrt(kept @ kept + self.outside))

    def size(self, weight: float) -> float:
        """``‖c‖_G`` at the minimizer; it falls with the weight."""
        return float(np.linalg.norm(self.beta * self.sigma / (self.sigma**2 + weight)))


class Metric(Protocol):
    """An inner product of coordinates: that of a class, or of another squared norm."""

    @property
    def gram(self) -> Any:
        """Its matrix G, sparse or dense."""
        ...

    @property
    def root(self) -> Array:
        """Upper triangular R with ``R' R = G``."""
        ...

    def solve_gram(self, right: Array) -> Array:
        """``G^-1 right``."""
        ...


class Lift(Protocol):
    """From components along the right singular vectors to coordinates."""

    def __call__(self, components: Array) -> Array:
        """Coordinates c."""
        ...


def ridge_of_columns(normal: Normal, y: Array, metric: Metric) -> Ridge:
    """For few coordinates: the SVD of ``F R^-1`` with ``G = R' R``."""
    _, U, sigma, Vt = normal
    return _ridge(U, sigma, y, lambda s: solve_triangular(metric.root, Vt[: len(s)].T @ s))


def ridge_of_rows(F: Array, y: Array, metric: Metric) -> Ridge:
    """For many coordinates and few data: the eigenvalues of the ``m x m`` matrix ``F G^-1 F'``, G sparse."""
    X = metric.solve_gram(np.asfortranarray(F.T))
    squares, U = eigh(F @ X)
    order = np.argsort(squares)[::-1]
    sigma, U = np.sqrt(np.maximum(squares[order], 0.0)), U[:, order]
    return _ridge(U, sigma, y, lambda s: X @ (U[:, : len(s)] @ (s / sigma[: len(s)])), squared=True)


def _ridge(U: Array, sigma: Array, y: Array, lift: Lift, *, squared: bool = False) -> Ridge:
    # Forming squares halves the digits, so their rounding level is the root of the other one.
    level = EPS * max(U.shape)
    kept = sigma > (np.sqrt(level) if squared else level) * sigma[0]
    beta = U[:, kept].T @ y
    outside = y - U[:, kept] @ beta
    return Ridge(sigma[kept], beta, float(outside @ outside), lift)
