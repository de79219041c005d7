"""References in more than double precision."""

import numpy as np


def refined_solves(A, factor, right):
    """Columns of ``A^-1 right`` in more than double precision."""
    A, b = A.tocoo(), right.astype(np.longdouble)
    x = factor.solve(right).astype(np.longdouble)
    for _ in range(6):
        r = b.copy()
        np.subtract.at(r, A.row, A.data.astype(np.longdouble)[:, None] * x[A.col])
        x = x + factor.solve(r.astype(float))
    return x
