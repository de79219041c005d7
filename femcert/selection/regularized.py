"""Tikhonov's minimum with bounds or a total variation, on the ball of the class where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_matrix, identity, issparse

from ..checks import Array
from ..errors import InputError, SolveError
from ..problem.constraints import Bounds
from ..problem.space import ParameterSpace
from .ball import ball_form
from .penalty import variation
from .ridge import Metric
from .splitting import Found, Splitting, Term, box, total_variation

# How close to the sphere the minimizer on a ball is brought, from inside, and how often a multiplier is tried.
CLOSE, MOST_TRIES = 1e-3, 60
# How close the misfit comes to the noise level, and how far the weight is looked for, as logarithms.
NEAR_LEVEL, STEP, MOST_STEPS = 1e-3, 2.0, 15
# Relative change of the misfit over a step of the weight below which nothing but constants is left.
SAME = 1e-6
# Gradients this much smaller than those of one mesh cell are none.
FLAT = 1e-6


def bounds_of(space: ParameterSpace, given: Any) -> Bounds | None:
    """Those of the class and those that are given, both of them; None where nothing is bounded."""
    found = space.bounds
    if given is not None:
        more = space.within_bounds(*given).bounds
        assert more is not None
        lower = more.lower if found is None else np.maximum(more.lower, found.lower)
        upper = more.upper if found is None else np.minimum(more.upper, found.upper)
        if not np.all(lower <= upper):
            raise InputError("bounds leave nothing of those of the class; expected some values that both allow")
        found = Bounds(lower, upper)
    bounded = found is not None and bool(np.any(np.isfinite(found.lower)) or np.any(np.isfinite(found.upper)))
    return found if bounded else None


def regularized(
    F: Array,
    y: Array,
    space: ParameterSpace,
    metric: Metric | None,
    weight: float | None,
    bounds: Bounds | None,
    noise_level: float,
) -> tuple[Array, float]:
    """Coordinates of the minimizer, and how far it is from stationary.

    Parameters
    ----------
    F, y
        Whitened.
    metric
        Of the squared norm that is the penalty; None: the total variation.
    weight
        None, for the total variation: by the discrepancy principle, without regard to ball and bounds.
    """
    exact = issparse(space.matrix) and space.dimension == space.size
    exact = exact and (space.matrix != identity(space.size, format="csr")).nnz == 0

    def feasible(c: Array) -> Array:
        return np.clip(c, bounds.lower, bounds.upper) if exact and bounds is not None else c

    objective = Splitting(F, y, space, feasible)
    start = objective.ridge()
    typical = _typical(space, start) if metric is None else 0.0
    if weight is None:
        free = Splitting(F, y, space, lambda c: c)
        weight = _by_discrepancy(free, space, start, typical, noise_level)
    zero = csr_matrix((space.dimension, space.dimension)) if issparse(space.gram) else np.zeros_like(space.gram)
    penalty = zero if metric is None else weight * metric.gram
    terms = [total_variation(space, 0.5 * weight, typical)] if metric is None else []
    if bounds is not None:
        terms.append(box(space, bounds.lower, bounds.upper, 1e-2 * objective.curvature))
    ball = space.ball_about_zero
    found = objective.minimize(penalty, terms, start)
    if ball is None or space.shrinkage(space.field(found.coefficients)) == 1.0:
        return found.coefficients, found.optimality
    form = ball_form(space)
    share = space.norm(space.field(found.coefficients)) / space.ball_norm(space.field(found.coefficients))
    first = 1e-3 * objective.curvature * share**2
    found, mu = _on_sphere(objective, penalty, terms, found, form, ball.radius, first)
    c, size = found.coefficients, space.ball_norm(space.field(found.coefficients))
    # The normal of the sphere belongs to the ball, up to how far c is inside.
    slack = mu * size * (ball.radius - size)
    return c, objective.certificate(c, penalty + mu * form, terms, found.multipliers, slack)[0]


def _typical(space: ParameterSpace, c: Array) -> float:
    """A size of gradients, or jumps: that of some parameter, or much less than its values where it is constant."""
    D, sizes, d = variation(space)
    steepest = float(np.abs(D).max() * np.abs(c).max() / sizes.max())
    return max(float(np.linalg.norm(D @ c) / np.linalg.norm(sizes) * np.sqrt(d)), FLAT * steepest) or 1.0


def _on_sphere(
    objective: Splitting, penalty: Any, terms: Sequence[Term], found: Found, form: Any, radius: float, mu: float
) -> tuple[Found, float]:
    """The minimizer with ``½ mu ‖q‖_L²`` added, mu such that it comes to lie on the sphere, or just inside; and mu.

    The first mu is given.
    """

    def size(c: Array) -> float:
        return float(np.sqrt(max(float(c @ (form @ c)), 0.0)))

    low, high = 0.0, np.inf
    for _ in range(MOST_TRIES):
        found = objective.minimize(penalty + mu * form, terms, found.coefficients, multipliers=found.multipliers)
        reached = size(found.coefficients)
        if (1.0 - CLOSE) * radius <= reached <= radius:
            return found, mu
        low, high = (mu, high) if reached > radius else (low, mu)
        mu = 4.0 * mu if np.isinf(high) else high / 4.0 if low == 0.0 else float(np.sqrt(low * high))
    raise SolveError(f"no multiplier brings the result into the ball of radius {radius:g}, within the bounds")


def _by_discrepancy(
    objective: Splitting, space: ParameterSpace, start: Array, typical: float, noise_level: float
) -> float:
    """The weight of the total variation with which ``‖F c - y‖`` is the noise level."""
    zero = csr_matrix((space.dimension, space.dimension)) if issparse(space.gram) else np.zeros_like(space.gram)
    known: dict[float, float] = {}
    last = Found(start, np.inf, np.inf, ())

    def excess(log: float) -> float:
        nonlocal last
        if log not in known:
            term = total_variation(space, 0.5 * float(np.exp(log)), typical)
            last = objective.minimize(zero, [term], last.coefficients, multipliers=last.multipliers or None)
            known[log] = float(np.log(max(objective.misfit(last.coefficients), 1e-300) / noise_level))
        return known[log]

    D, sizes, d = variation(space)
    total = float(sizes @ np.linalg.norm((D @ start).reshape(-1, d), axis=1))
    low = high = float(np.log(noise_level**2 / total)) if noise_level > 0.0 and total > 0.0 else 0.0
    for _ in range(MOST_STEPS):
        if excess(low) < 0.0:
            break
        low -= STEP
    for _ in range(MOST_STEPS):
        if excess(high) > 0.0 or (high - STEP in known and abs(excess(high) - known[high - STEP]) < SAME):
            break
        high += STEP
    if not (excess(low) < 0.0 < excess(high)):
        raise InputError(
            f"no weight of the total variation gives a misfit of the noise level {noise_level:.4g}: constants explain "
            "the data as well, or nothing does; give weight=..."
        )
    # The misfit is known to a part only, so that the last digits of the weight mean nothing.
    return float(np.exp(brentq(excess, low, high, xtol=NEAR_LEVEL)))
