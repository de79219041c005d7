"""What rounding may add to a computed number, in one place. A number that enters a bound gets it where it is made.

Solves with symmetric positive definite operators of linear problems are measured (`Factorization.energy_errors`), an
absolute error from the residual and the worst case of its rounding, by `gamma`. It is proved where a lower bound of the
operator is (`Factorization.proven`): by the equation, or by a count of pivots for up to some thousand unknowns; and
where factors solve, since what an iteration leaves rests on a Ritz value.

The rest are estimates, multiples of the machine epsilon that are safe by a wide margin for the sizes that occur here,
but not proved: `solve_rounding`, with a condition number from below, for operators that are not symmetric definite,
time steps with factors, linearizations of nonlinear problems, forms of balls; `dense_rounding` for dense algebra.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.sparse.linalg import norm as sparse_norm

Array = NDArray[np.float64]

EPS = float(np.finfo(float).eps)
# A sum, product or root is rounded by at most this, relatively.
UNIT = EPS / 2.0
# Relative energy errors of solves up to here are taken for rounding.
EXACT_TOLERANCE = 1e-10


def gamma(terms: int) -> float:
    """``n u / (1 - n u)``: an inner product of n terms is off by at most this part of the sum of their sizes."""
    return terms * UNIT / (1.0 - terms * UNIT)


def norms_above(columns: Any) -> Array:
    """Euclidean norms of columns, dense or sparse, whose entries are a few operations old; not below the true ones."""
    norm = sparse_norm if issparse(columns) else np.linalg.norm
    return np.asarray(norm(columns, axis=0) * (1.0 + (columns.shape[0] + 8) * EPS))


def solve_rounding(condition: float) -> float:
    """Relative error of a solve with factors, an estimate: ``8 eps kappa`` with the condition number kappa."""
    return 8.0 * EPS * condition


def dense_rounding(rows: int, columns: int) -> float:
    """Relative error of singular values, in parts of the largest, and of orthogonal transformations of a matrix."""
    return float(16.0 * np.sqrt(rows * columns) * EPS)
