"""What rounding may add to a computed number, in one place.

Relative errors of solves and of dense algebra are allowed for as multiples of the machine epsilon: safe for the sizes
that occur here by a wide margin, but not proved for every processor. A number that enters a bound gets its allowance
where it is made.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

EPS = float(np.finfo(float).eps)
# Relative energy errors of solves up to here are taken for rounding.
EXACT_TOLERANCE = 1e-10


def solve_rounding(condition: float) -> float:
    """Relative error of a solve with factors, ``8 eps kappa`` with the condition number kappa."""
    return 8.0 * EPS * condition


def dense_rounding(rows: int, columns: int) -> float:
    """Relative error of singular values, in parts of the largest, and of orthogonal transformations of a matrix."""
    return float(16.0 * np.sqrt(rows * columns) * EPS)


def norm_kept(root: Array) -> tuple[float, float]:
    """What rounding leaves of a norm ``‖R c‖``, just below 1; the condition number of R with columns of norm 1."""
    dependence = float(np.linalg.cond(root / np.linalg.norm(root, axis=0)))
    return 1.0 - 4.0 * len(root) * EPS * dependence**2, dependence
