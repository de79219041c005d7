"""What rounding leaves of norms of a class, and what the norm of a parameter says of its coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import issparse

from ..checks import Array
from ..linalg import diagonal_part
from ..linalg.accuracy import gamma
from ..mesh.elements import mass_share

if TYPE_CHECKING:
    from .space import ParameterSpace


def norm_kept(space: ParameterSpace) -> float:
    """A part below 1 with ``‖B c‖_Q >= kept ‖R c‖`` and ``‖R c‖ >= kept ‖B c‖_Q``, rounding in G and R included.

    ``|B' W B - R' R| <= e d d'`` with ``d_i² = G_ii``: e is what is computed of the difference, and what sums may lose
    of it, by `femcert.linalg.accuracy.gamma`; long sums are made in blocks, which lose less. Seen through ``R^-1`` it
    is at most ``e ‖|R^-1|' d‖²``.
    """
    R, B, k = space.root, space.matrix, space.dimension
    gram, longest = _summed(B, space.weight @ B)
    d, rows = np.sqrt(np.diag(gram)), np.asarray(abs(space.weight).sum(axis=1)).ravel()
    squares: Any = abs(B).power(2) if issparse(B) else B**2
    sizes, terms = np.asarray(squares.T @ rows).ravel(), int(space.weight.getnnz(axis=1).max()) + longest
    lost = float((np.abs(gram - R.T @ R) / np.outer(d, d)).max())
    lost += gamma(terms) * float((sizes / d**2).max()) + gamma(4 * k)
    reach = float(np.linalg.norm(np.abs(solve_triangular(R, np.eye(k))).T @ d))
    part = lost * reach**2 * (1.0 + gamma(4 * k) * reach)
    return float(np.sqrt(1.0 - part)) if part < 1.0 else 0.0


def _summed(B: Any, other: Any) -> tuple[Array, int]:
    """``B' other``, dense, and how often a term of its sums is rounded at most."""
    if issparse(B):
        return np.asarray((B.T @ other).toarray()), int(B.getnnz(axis=0).max())
    size = int(np.sqrt(len(B))) + 1
    blocks = [B[i : i + size].T @ other[i : i + size] for i in range(0, len(B), size)]
    return np.asarray(np.sum(blocks, axis=0)), size + len(blocks)


def weight_below(space: ParameterSpace) -> Array:
    """A diagonal matrix below the weight W of the norm, as a vector; proved for fields, by `mass_share`."""
    if space.basis is not None and space.inner == "l2":
        return mass_share(space.basis) * np.asarray(space.weight.diagonal())
    return diagonal_part(space.weight)


def largest_sum(space: ParameterSpace, sizes: Array) -> float:
    """At least ``sum_j sizes_j |c_j|`` of all coordinates with ``‖B c‖_Q <= 1``."""
    if not issparse(space.gram):
        inverse = solve_triangular(space.root, np.eye(space.dimension))
        # States near the end of the floats have infinite errors.
        with np.errstate(over="ignore"):
            return float(np.linalg.norm(np.abs(inverse).T @ sizes))
    same = space.size == space.dimension and abs(space.gram - space.weight).max() == 0.0
    return float(np.linalg.norm(sizes / np.sqrt(weight_below(space) if same else diagonal_part(space.gram))))
