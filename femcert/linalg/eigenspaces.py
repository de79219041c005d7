"""Whole eigenspaces, each with a basis that depends on the space alone.

An eigensolver returns an eigenvector with any sign, and any basis of an eigenspace of more than one dimension: another
one with other rounding errors, hence with another processor. The first k of its vectors may also cut through a space.
Here the space of the k-th eigenvalue is computed whole, and each space gets the basis that comes closest to fixed
functions W, the polar factor

    V (V' M W) (W' M V V' M W)^-1/2,

which is a smooth function of the space wherever ``V' M W`` is regular; a single vector gets its sign.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import SolveError
from .eigen import Array, check_residuals, smallest_eigenpairs

# Eigenpairs computed beyond those that are wanted: double eigenvalues are common, others are not.
BEYOND, MOST_BEYOND = 2, 128
# Rounding errors of eigenvalues, in parts of trace(A) / trace(M); below so many times that they are taken for zero.
ROUNDING, ZERO = 10.0 * float(np.finfo(float).eps), 1e4
# The least singular value of V' M W, for W of norm one and per dimension, with which W serves. A wave has overlaps of 0
# (by symmetry) or of about 0.1 with modes of its length; those of sines with a constant are not near this number.
REGULAR = 0.025
# Below this no W serves, and seeded random vectors take their place.
FAINT = 1e-4


def canonical_eigenpairs(
    stiffness: Any, mass: Any, k: int, functions: Callable[[float, int], Array]
) -> tuple[Array, Array]:
    """The `k` smallest eigenpairs like `smallest_eigenpairs`, the same with every backend and processor.

    Eigenvalues share a space where neighbours are within ``(r lam)^1/2`` of each other, r being the rounding error of
    an eigenvalue. An eigenvector with a neighbour at that distance is known to ``r / (r lam)^1/2 = (r / lam)^1/2``; a
    vector of a merged space is an eigenvector up to the same. Any other threshold makes one of both larger.

    Parameters
    ----------
    functions
        ``functions(value, count)`` gives at least `count` columns that have no symmetry (but for the first), for a
        space with the eigenvalue `value`. The first `count` neighbours among them that tell all directions of the space
        apart fix its basis.

    Raises
    ------
    SolveError
        As `smallest_eigenpairs`, or the k-th eigenvalue is more than 128-fold.
    """
    values, vectors, spaces = _whole_spaces(stiffness, mass, k)
    for start, stop in spaces:
        V = vectors[:, start:stop]
        W = functions(float(values[start:stop].mean()), stop - start)
        vectors[:, start:stop] = V @ _polar_factor(V, mass, W)
    return values[:k], vectors[:, :k]


def _whole_spaces(stiffness: Any, mass: Any, k: int) -> tuple[Array, Array, list[tuple[int, int]]]:
    """Eigenpairs to beyond the space of the k-th, and where each space up to that one starts and stops."""
    beyond, rounding = BEYOND, ROUNDING * float(stiffness.diagonal().sum() / mass.diagonal().sum())
    while beyond <= MOST_BEYOND:
        values, vectors = smallest_eigenpairs(stiffness, mass, k, beyond=beyond)
        spaces = [space for space in _spaces(values, rounding) if space[0] < k]
        last = spaces[-1][1]
        # Fewer than were asked for: there are no more.
        if last < len(values) or len(values) < k + beyond:
            if last > k:
                check_residuals(stiffness, mass, values[:last], vectors[:, :last])
            return values, vectors, spaces
        beyond *= 4
    raise SolveError(f"the eigenvalue {values[k - 1]:.6g} is more than {MOST_BEYOND}-fold; its eigenspace is not cut")


def _spaces(values: Array, rounding: float) -> list[tuple[int, int]]:
    apart = np.diff(values) > np.sqrt(rounding * np.maximum(values[1:], ZERO * rounding))
    edges = [0, *(np.flatnonzero(apart) + 1).tolist(), len(values)]
    return list(pairwise(edges))


def _polar_factor(V: Array, mass: Any, functions: Array) -> Array:
    """Orthogonal Q, such that the product V Q does not depend on the basis V of the space."""
    m, best = V.shape[1], (0.0, np.eye(V.shape[1]))
    for W in (functions, np.random.default_rng(0).standard_normal((len(V), m))):
        norms = np.sqrt(np.sum(W * (mass @ W), axis=0))
        components = (mass @ V).T @ W / np.where(norms > 0.0, norms, 1.0)
        for start in range(components.shape[1] - m + 1):
            left, sizes, right = np.linalg.svd(components[:, start : start + m])
            if sizes[-1] >= REGULAR / m:
                return np.asarray(left @ right)
            if sizes[-1] > best[0]:
                best = (float(sizes[-1]), left @ right)
        if best[0] > FAINT / m:
            break
    return best[1]
