"""Stiffness and mass of the unit interval, with eigenvalues in closed form."""

import numpy as np
from scipy.sparse import diags


def line_pencil(n, *, neumann=False):
    """P1 with n cells, on the inner nodes or on all."""
    m = n + 1
    K = diags([-np.ones(n), np.r_[1.0, 2.0 * np.ones(m - 2), 1.0], -np.ones(n)], [-1, 0, 1]).tocsr() * n
    M = diags([np.ones(n), np.r_[2.0, 4.0 * np.ones(m - 2), 2.0], np.ones(n)], [-1, 0, 1]).tocsr() / (6 * n)
    keep = slice(None) if neumann else slice(1, -1)
    return K[keep][:, keep].tocsr(), M[keep][:, keep].tocsr()


def line_values(n, j):
    """Discrete eigenvalues: 6/h² (1 - cos) / (2 + cos), cos = cos(j pi h)."""
    cos = np.cos(j * np.pi / n)
    return 6.0 * n**2 * (1.0 - cos) / (2.0 + cos)
