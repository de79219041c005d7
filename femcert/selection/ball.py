"""Baselines on a ball: the norm of the ball gets a weight of its own, the multiplier that brings the result into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, qr, solve_triangular
from scipy.optimize import brentq
from scipy.sparse import csr_matrix

from ..checks import Array
from ..errors import SolveError
from ..linalg import Factorization
from ..problem.data import Data
from ..problem.forward import LinearMap, dense
from ..problem.space import ParameterSpace
from .ridge import MOST_COLUMNS, Metric, Ridge

# How close to the sphere is on it; how many multipliers are tried, and how many that come no closer.
CLOSE, MOST_STEPS, MOST_IDLE = 1e-10, 100, 10

Inverse = Callable[[Array], Array]
Solves = Callable[[float], tuple[Array, Inverse]]


def ball_form(space: ParameterSpace) -> Any:
    """L with ``‖q‖² = c' L c`` in the norm of the ball, for ``q = B c``."""
    assert space.ball is not None
    return space.matrix.T @ (space.ball_form @ space.matrix)


def on_sphere(
    solves: Solves, form: Any, radius: float, *, close: float = CLOSE, known: float = 0.0
) -> tuple[Array, float]:
    """The minimizer of an objective J subject to ``c' L c <= radius²``, and its multiplier.

    The first-order conditions are ``J'(c) + mu L c = 0`` with ``mu >= 0``, zero where c is inside. So c minimizes
    ``J(c) + ½ mu c' L c``, and where that is outside for mu = 0, mu solves the secular equation ``1 / ‖c(mu)‖_L =
    1 / radius``. For a quadratic J its left side grows and is concave: Newton's method, from below, does not overshoot.

    Parameters
    ----------
    solves
        ``solves(mu)`` is c(mu), and the inverse of the second derivative of ``J + ½ mu c' L c`` as a function.
    close
        Relative distance from the sphere at which the iteration ends; the rest is scaled away.
    known
        Relative accuracy of c(mu): within it the iteration also ends where it comes no closer to the sphere.
    """
    mu, nearest, idle = 0.0, (np.inf, np.zeros(0), 0.0), 0
    for _ in range(MOST_STEPS):
        c, inverse = solves(mu)
        slope = np.asarray(form @ c)
        size = float(np.sqrt(max(float(c @ slope), 0.0)))
        excess = size / radius - 1.0
        if mu == 0.0 and excess <= 0.0:
            return c, mu
        idle += 1
        if abs(excess) < nearest[0]:
            nearest, idle = (abs(excess), c / (1.0 + excess), mu), 0
        if nearest[0] <= close or (nearest[0] <= known and idle >= MOST_IDLE):
            return nearest[1:]
        mu = max(mu + excess * size**2 / float(slope @ inverse(slope)), 0.0)
    raise SolveError(f"no multiplier brings the result into the ball of radius {radius:g}; its norm is {size:.9g}")


def whitened(forward: LinearMap, data: Data) -> tuple[Array, Array]:
    """F and y with ``‖F c - y‖ = ‖H u - data‖_Y``."""
    return data.whiten(forward.matrix), data.whiten(data.values - forward.offset)


def ridge_in_ball(ridge: Ridge, forward: LinearMap, data: Data, weight: float, metric: Metric) -> Array:
    """The minimizer of ``‖F c - y‖² + weight c' G c`` in the ball of the class; G of the class or of another norm."""
    space, c = forward.parameters, ridge.coefficients(weight)
    ball = space.ball_about_zero
    if ball is None or space.shrinkage(space.field(c)) == 1.0:
        return c
    radius = ball.radius
    if metric is space and ball.norm == space.inner == "l2":
        # The multiplier adds to the weight, for which one decomposition serves.
        most = float(np.linalg.norm(ridge.beta * ridge.sigma)) / radius
        root = brentq(lambda t: ridge.size(np.exp(t)) - radius, np.log(weight), np.log(max(most, weight)), xtol=1e-13)
        c = ridge.coefficients(float(np.exp(root)))
        return c * space.shrinkage(space.field(c))
    form = ball_form(space)
    route = _by_columns if len(c) <= max(forward.observation_count, MOST_COLUMNS) else _by_dual
    return on_sphere(route(*whitened(forward, data), metric, form, weight), form, radius)[0]


def _by_columns(F: Array, y: Array, metric: Metric, form: Any, weight: float) -> Solves:
    """For few coordinates: the factors of all rows, ``T' T = F' F + weight G + mu L``."""
    penalty = np.vstack([F, np.sqrt(weight) * metric.root])
    root = semidefinite_root(form)

    def solves(mu: float) -> tuple[Array, Inverse]:
        Q, T = qr(np.vstack([penalty, np.sqrt(mu) * root]), mode="economic")
        inverse = lambda r: solve_triangular(T, solve_triangular(T, r, trans="T"))  # noqa: E731
        return solve_triangular(T, Q[: len(y)].T @ y), inverse

    return solves


def _by_dual(F: Array, y: Array, metric: Metric, form: Any, weight: float) -> Solves:
    """For many coordinates and few data: factors of the sparse ``P = weight G + mu L`` and of ``I + F P^-1 F'``."""

    def solves(mu: float) -> tuple[Array, Inverse]:
        P = Factorization(csr_matrix(weight * metric.gram + mu * form), definite=True, name="penalty", to_rounding=True)
        X = P.solve(np.asfortranarray(F.T))
        S = cho_factor(np.eye(len(y)) + F @ X)
        return X @ cho_solve(S, y), lambda r: P.solve(r) - X @ cho_solve(S, X.T @ r)

    return solves


def semidefinite_root(form: Any) -> Array:
    """W with ``W' W = L``; negative eigenvalues are rounding."""
    L = dense(form)
    values, vectors = np.linalg.eigh((L + L.T) / 2.0)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
