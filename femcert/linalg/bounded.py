"""Projection on a box in the norm of a Gram matrix: a quadratic program with bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import diags, issparse

from ..errors import SolveError
from .factor import Factorization

Array = NDArray[np.float64]

MOST_STEPS = 200
MOST_HALVINGS = 40
# How far a point may be from the projection of its gradient step, relative to gradient and step.
STEP_TOLERANCE = 1e-12
# Armijo's rule: the share of the predicted decrease with which a step is taken.
SUFFICIENT = 1e-4


def bounded_step(gram: Any, gradient: Array, low: Array, high: Array) -> Array:
    """The minimizer d of ``½ d' G d + g' d`` over ``low <= d <= high``, for G symmetric positive definite.

    In other words the point of the box that is nearest to ``-G^-1 g`` in the norm of G; clipping each coordinate of
    ``-G^-1 g`` is that only for a diagonal G. By projected Newton steps (Bertsekas, Projected Newton methods for
    optimization problems with simple constraints, 1982), each of which solves with the rows of G that no bound holds.

    Raises
    ------
    SolveError
        The steps did not reach `STEP_TOLERANCE`.
    """
    # A unit diagonal makes all coordinates of one size, whatever their units.
    root = np.sqrt(gram.diagonal())
    G = (diags(1.0 / root) @ gram @ diags(1.0 / root)).tocsr() if issparse(gram) else gram / np.outer(root, root)
    bottom, top = low, high
    g, low, high = gradient / root, low * root, high * root
    inside = _solve(G, -g)
    if np.all((low <= inside) & (inside <= high)):
        return inside / root
    d = np.clip(np.zeros_like(g), low, high)
    for _ in range(MOST_STEPS):
        r = G @ d + g
        move = float(np.abs(d - np.clip(d - r, low, high)).max())
        if not move > STEP_TOLERANCE * max(float(np.abs(g).max()), float(np.abs(d).max())):
            return np.where(d <= low, bottom, np.where(d >= high, top, d / root))
        # Bounds that are nearly reached are held too, or steps would be cut to nothing before they are.
        held = ((d - low <= move) & (r > 0.0)) | ((high - d <= move) & (r < 0.0))
        step = -r
        step[~held] = -_solve(G[~held][:, ~held], r[~held])
        d = _descend(G, d, step, low, high, r, held)
    raise SolveError(f"the projection on the bounds did not converge in {MOST_STEPS} steps")


def _solve(G: Any, right: Array) -> Array:
    if not right.size:
        return right
    if issparse(G):
        return Factorization(G, definite=True, name="Gram matrix").solve(right)
    return np.asarray(np.linalg.solve(G, right))


def _descend(G: Any, d: Array, step: Array, low: Array, high: Array, r: Array, held: NDArray[np.bool_]) -> Array:
    """The first of ``clip(d + step), clip(d + step / 2), ...`` that lowers the objective enough (Armijo's rule)."""
    length = 1.0
    for _ in range(MOST_HALVINGS):
        trial = np.clip(d + length * step, low, high)
        move = trial - d
        gain = -float(r @ move + 0.5 * (move @ (G @ move)))
        wanted = -length * float(r[~held] @ step[~held]) - float(r[held] @ move[held])
        if gain >= SUFFICIENT * wanted:
            return trial
        length *= 0.5
    return trial
