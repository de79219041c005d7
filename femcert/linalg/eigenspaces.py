"""Whole eigenspaces, each with a basis that depends on the space alone.

In an eigenspace of more than one dimension an eigensolver returns any basis, another one with other rounding errors,
and the first k of its vectors may cut through the space. Here the space of the k-th eigenvalue is computed whole, and
each space gets its basis from fixed functions.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import SolveError
from .eigen import Array, check_residuals, small_shift, smallest_eigenpairs

# Eigenvalues so close to each other, relative to their size, or near zero relative to the shift, share an eigenspace.
CLOSE, CLOSE_TO_ZERO = 1e-6, 1e-4
# Eigenpairs computed beyond those that are wanted: double eigenvalues are common, others are not.
BEYOND, MOST_BEYOND = 2, 128
# Of the fixed functions, the first that comes so near to the one with the largest component decides: ratios such as a
# half occur where there is symmetry.
SHARE = 0.618
# A smaller component is not told from rounding errors.
FAINT = 1e-4


def canonical_eigenpairs(
    stiffness: Any, mass: Any, k: int, functions: Callable[[float, int], Array]
) -> tuple[Array, Array]:
    """The `k` smallest eigenpairs like `smallest_eigenpairs`, the same with every backend if that finds all copies.

    Parameters
    ----------
    functions
        ``functions(value, count)`` gives at least `count` columns that are no eigenfunctions and have no symmetry, for
        the space of an eigenvalue: its basis are the components of some of them, orthonormalized in turn.

    Raises
    ------
    SolveError
        As `smallest_eigenpairs`, or the k-th eigenvalue is more than 128-fold.
    """
    values, vectors, spaces = _whole_spaces(stiffness, mass, k)
    for start, stop in spaces:
        if stop - start > 1:
            V = vectors[:, start:stop]
            W = functions(float(values[start:stop].mean()), stop - start)
            vectors[:, start:stop] = V @ _directions(V, mass @ W)
    return values[:k], vectors[:, :k]


def _whole_spaces(stiffness: Any, mass: Any, k: int) -> tuple[Array, Array, list[tuple[int, int]]]:
    """Eigenpairs to beyond the space of the k-th, and where each space up to that one starts and stops."""
    beyond, least = BEYOND, CLOSE_TO_ZERO * small_shift(stiffness, mass)
    while beyond <= MOST_BEYOND:
        values, vectors = smallest_eigenpairs(stiffness, mass, k, beyond=beyond)
        spaces = [space for space in _spaces(values, least) if space[0] < k]
        last = spaces[-1][1]
        # Fewer than were asked for: there are no more.
        if last < len(values) or len(values) < k + beyond:
            if last > k:
                check_residuals(stiffness, mass, values[:last], vectors[:, :last])
            return values, vectors, spaces
        beyond *= 4
    raise SolveError(f"the eigenvalue {values[k - 1]:.6g} is more than {MOST_BEYOND}-fold; its eigenspace is not cut")


def _spaces(values: Array, least: float) -> list[tuple[int, int]]:
    apart = np.diff(values) > np.maximum(CLOSE * np.abs(values[1:]), least)
    edges = [0, *(np.flatnonzero(apart) + 1).tolist(), len(values)]
    return list(pairwise(edges))


def _directions(V: Array, functions: Array) -> Array:
    """Orthonormal coordinates in the basis V, such that their product does not depend on the basis of the space."""
    m = V.shape[1]
    Q = np.zeros((m, 0))
    # Should the functions not tell all directions apart, the entries do.
    for components in (V.T @ functions, V.T):
        least = FAINT * np.linalg.norm(components, axis=0).max()
        while Q.shape[1] < m:
            rest = components - Q @ (Q.T @ components)
            rest = rest - Q @ (Q.T @ rest)
            sizes = np.linalg.norm(rest, axis=0)
            if not sizes.max() > least:
                break
            first = np.argmax(sizes >= SHARE * sizes.max())
            Q = np.column_stack([Q, rest[:, first] / sizes[first]])
    return Q
