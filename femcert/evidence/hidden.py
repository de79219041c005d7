"""What the data can hide: truths that are far apart, and that no procedure can tell apart.

If q and -q of a class that is symmetric about its centre differ by less than ``2 z_{1-zeta}`` in the data, no procedure
whose radius is fixed before the data contains both truths with probability ``1 - zeta`` unless its radius is at least
``‖q‖_Q``. For noise within its level, half of the distance of any two consistent truths takes the place of that. Every
number here is evaluated at truths that fulfil all constraints, so that it is a lower bound, however they were found.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..checks import Array
from ..linalg.accuracy import EPS
from ..problem.base import Problem
from ..problem.data import Data
from ..problem.space import ParameterSpace
from ..stability.modulus import Modulus
from ..stability.pencil import Pencils
from .sights import Observed

# Multipliers that are tried, and parts of a direction.
MULTIPLIERS, PARTS = np.geomspace(1e-8, 1e8, 65), np.linspace(0.0, 1.0, 101)
# What rounding may take of a lower bound.
KEPT = 1.0 - 1e-6


def hidden_on_ball(problem: Problem, data: Data, known: Observed, pencils: Pencils, apart: float) -> Array:
    """A truth about the centre, ``‖T q + sum_j T_j x_j‖ <= apart``, of large norm (dof vector)."""
    space = problem.parameters
    assert space.ball is not None
    if not apart > 0.0:
        return np.zeros(space.size)
    m, others = len(known.free), known.sights[1:]
    # Roughly, the other sets move the data like noise.
    form = np.linalg.inv(np.eye(m) + sum((s.radius / apart) ** 2 * s.gram for s in others))
    plain = known.turn is None and not others
    weighed = pencils if plain else pencils.weighed((form + form.T) / 2.0, known.turn)
    q = Modulus(problem, radius=space.ball.radius, pencils=weighed).worst(apart)
    seen = known.turned(data.whiten(known.forward.apply(q[:, None])[:, 0]))
    size = pencils.ball.norm_from_above(space.project(q)[0])
    return q * KEPT * min(space.ball.radius / size, _reach(known, seen, apart))


def _reach(known: Observed, seen: Array, apart: float) -> float:
    """The largest t that is found with ``‖t y - sum_j T_j x_j‖ <= apart`` and ``‖x_j‖ <= r_j``."""
    others = known.sights[1:]
    if not others:
        return apart / max(float(np.linalg.norm(seen)), 1e-300)
    shares = [s.radius**2 for s in others]
    lam, V = np.linalg.eigh(sum(share * s.gram for share, s in zip(shares, others, strict=True)))
    turned, best = V.T @ seen, 0.0
    for nu in MULTIPLIERS * max(float(lam[-1]), 1e-300):
        g = V @ (turned / (np.maximum(lam, 0.0) + nu))
        # x_j = t r_j² T_j' g leaves t nu g.
        limits = [apart / (nu * float(np.linalg.norm(g)))]
        for share, s in zip(shares, others, strict=True):
            limits.append(s.radius / (share * float(np.sqrt(max(g @ s.gram @ g, 0.0))) + 1e-300))
        best = max(best, min(limits))
    return best


def pair_on_ball(
    known: Observed, values: Array, q: Array, seen: Array, level: float, observe: Callable[[Array], Array]
) -> float:
    """Half the distance in Q of two consistent truths ``c ± q``, for noise within its level.

    Parameters
    ----------
    values
        b.
    q, seen
        A direction (dof vector), and what the sensors see of it.
    level, observe
        Of the noise; whitened data of fields.
    """
    space, K, A = known.forward.parameters, known.sights[0].gram, known.free
    assert space.ball is not None
    rho, best = space.ball.radius * KEPT, 0.0
    form = space.ball_form
    square, size = float(q @ (form @ q)), float(seen @ seen)
    if not square > 0.0:
        return 0.0
    assert known.lift is not None
    U, s, Vt = np.linalg.svd(A, full_matrices=True)
    Z, inverse = U[:, len(s) :], (Vt.T / s) @ U[:, : len(s)].T
    lam, V = np.linalg.eigh(Z.T @ K @ Z)
    mu = MULTIPLIERS * max(float(lam[-1]), 1e-300)
    weights = Z @ V @ ((V.T @ (Z.T @ values))[:, None] / (np.maximum(lam, 0.0)[:, None] + mu))
    # Evaluated, since rounding may leave much of the weights where the sensors are blind.
    fields = known.lift(weights)
    fields = fields + known.directions @ (inverse @ (values[:, None] - observe(fields)))
    left, formed = values[:, None] - observe(fields), form @ fields
    for misfit, along, own, x in zip(left.T, q @ formed, np.sum(fields * formed, axis=0), seen @ left, strict=True):
        one = _roots(size, -float(x), float(misfit @ misfit) - (level * KEPT) ** 2)
        other = _roots(square, float(along), float(own) - rho**2)
        best = max(best, min(one[1], other[1]) - max(one[0], other[0]))
    return 0.5 * best * space.norm(q) * KEPT


def _roots(a: float, b: float, c: float) -> tuple[float, float]:
    """Where ``a s² + 2 b s + c <= 0``: between these; nowhere if the first is larger."""
    square = b**2 - a * c
    if square < 0.0 or not a > 0.0:
        return (np.inf, -np.inf) if square < 0.0 or c > 0.0 else (-np.inf, np.inf)
    root = float(np.sqrt(square))
    return (-b - root) / a, (-b + root) / a


def pair_within_bounds(space: ParameterSpace, q: Array) -> float:
    """Half the distance in Q of two truths of a ball within bounds whose difference is a part of ``2 q``.

    The midpoint is the point nearest to the centre, dof by dof, with room for the difference on both sides.
    """
    assert space.ball is not None
    assert space.bounds is not None
    centre = np.zeros(space.size) if space.ball.centre is None else space.ball.centre
    lower, upper = space.bounds.lower, space.bounds.upper
    best = 0.0
    for part in PARTS[1:]:
        room = part * np.abs(q)
        middle = np.clip(centre, lower + room, np.maximum(upper - room, lower + room))
        # In a span only the centre is known to be a member.
        inside = np.array_equal(middle, centre) or space.dimension == space.size
        within = np.all(middle + room <= upper + 4.0 * EPS * np.abs(upper)) if inside else False
        if within and max(space.ball_norm(middle + s * part * q) for s in (1.0, -1.0)) <= space.ball.radius * KEPT:
            best = part
    return best * space.norm(q) * KEPT


def hidden_on_span(known: Observed, apart: float, missed: float = 0.0) -> float:
    """The norm in Q of a truth of a span, with its remainder, that moves the data by `apart` at most.

    With `missed`, what the class misses of the data: ``(x_LS, 0)`` plus and minus that truth both explain them.
    """
    U, s, Vt = np.linalg.svd(known.free, full_matrices=True)
    f = len(s)
    inverse, weakest, rest = (Vt.T / s) @ U[:, :f].T, U[:, f - 1], U[:, f:]
    if not apart > missed:
        return 0.0
    best = 0.0
    for nu in MULTIPLIERS if known.parts else MULTIPLIERS[:1]:
        moved, tau = np.zeros(len(U)), 0.0
        for part in known.parts:
            # x = r T' g / ‖T' g‖ moves the weakest direction, and less and less what the class does not reach.
            K = part.sight.gram
            system = rest.T @ K @ rest
            shift = nu * max(float(np.trace(system)), 1e-300) * np.eye(len(system))
            g = weakest - rest @ np.linalg.solve(system + shift, rest.T @ (K @ weakest))
            moved += part.sight.radius * (K @ g) / (float(np.sqrt(max(g @ K @ g, 0.0))) or 1.0)
            tau += 0.0 if part.systematic else part.sight.radius
        outside = missed + PARTS * float(np.linalg.norm(rest.T @ moved))
        room = np.sqrt(np.maximum(apart**2 - outside**2, 0.0))
        inside = inverse @ (weakest[:, None] * room + np.outer(moved, PARTS))
        sizes = np.hypot(np.linalg.norm(inside, axis=0), PARTS * tau) * (outside <= apart)
        best = max(best, float(sizes.max()))
    return best * KEPT / (1.0 + known.loose / float(s[-1]))
