"""Whether the derivatives that a candidate's functions offer are those of their values: in balls inside the domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..checks import Array
from ..errors import CandidateError
from ..mesh.sample import uniform_points, values_at
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.candidate_functions import REPEATED, Functions
from ..problem.elliptic import EllipticCoefficient, EllipticSource
from .pointwise import pointwise_residual

# Points that centres are chosen from, how many are, and the radii relative to the distance from the boundary.
DRAWN, CENTRES, RADII = 64, 4, (0.9, 0.25, 0.06)
# Points along a radius (on a line, four times as many), in rules whose differences tell how exact they are.
RULES = (11, 16, 23)
# Of the derivative's size: what is not called an error. Of the rules' differences: what is not.
TOLERANCE, SAFETY = 0.01, 10.0
# Of the largest value: rounding of a function in double precision.
DOUBLE = 64.0 * float(np.finfo(float).eps)


class Balls(NamedTuple):
    """Quadrature of means ``∫ f w`` over balls for ``psi = (1 - |z|²)³`` and its derivatives as weights w.

    Points x and weights are ``(dimension, balls * points)`` or ``(balls * points,)``.
    """

    x: Array
    psi: Array
    slope: Array
    bend: Array
    number: int


def check_derivatives(problem: Problem, candidate: Candidate, rng: np.random.Generator) -> None:
    """Refuse derivatives, or a residual, that do not belong to the values of the functions.

    For psi that vanishes with its gradient outside of a ball, ``∫ psi laplacian(u) = ∫ u laplacian(psi)`` and
    ``∫ psi grad(u) = -∫ u grad(psi)``. So derivatives by the wrong variable or in scaled coordinates are noticed, and
    functions with kinks, whose Laplacian is zero almost everywhere. What is wrong by less than a hundredth, or between
    the balls, is not. A given residual is not checked where conductivity or reaction are tables or lack a gradient.

    Raises
    ------
    CandidateError
        They do not.
    """
    functions = candidate.functions
    if functions is None or pointwise_residual(problem, candidate) is None:
        return
    centres, distances = inner_points(problem.basis.mesh, rng)
    balls = [inner_balls(centres, distances, n) for n in RULES]
    for name, sides in _identities(problem, functions, balls):
        _check(f"the {name} of {candidate.name!r}", sides)


class Sides(NamedTuple):
    """Of an identity in each ball: the integral of what is offered, that of the values, its size, rounding, and jumps.

    Jumps: what one jump of what is offered, between two points on a line, adds to the error of the rule at most.
    """

    offered: Array
    values: Array
    size: Array
    noise: Array
    jump: Array


def _check(what: str, sides: list[Sides]) -> None:
    """The two sides are equal by the last quadrature rule, as far as the rules agree with each other."""
    # Where they agree by chance, they still differ about the sizes of steep functions.
    gaps, sizes = [side.offered - side.values for side in sides], [side.size for side in sides]
    unsure = np.maximum(np.ptp(gaps, axis=0), np.ptp(sizes, axis=0))
    last = sides[-1]
    unsure = unsure + last.jump
    wrong = ~(np.abs(gaps[-1]) <= TOLERANCE * last.size + SAFETY * unsure + last.noise)
    if wrong.any():
        i = int(np.argmax(wrong))
        came = f"its mean in a ball is {last.offered[i]:.4g}, that of the values' {last.values[i]:.4g}"
        raise CandidateError(f"{what} does not belong to its values: {came}")


def _identities(problem: Problem, functions: Functions, balls: list[Balls]) -> list[tuple[str, list[Sides]]]:
    u: Any = functions.state
    a: Any = None
    if isinstance(problem, EllipticSource):
        a = problem._given[0].value
    if isinstance(problem, EllipticSource) and functions.residual is not None:
        c: Any = problem._given[1].value
        tables = any(isinstance(part, Mapping) or np.ndim(part) > 0 for part in (a, c))
        if tables or (callable(a) and not callable(getattr(a, "gradient", None))):
            return []
        return [("residual", [_residual(functions, a, c, ball) for ball in balls])]
    found = [("laplacian of the state", [_laplacian(u, ball) for ball in balls])]
    gradients = [("state", u)] if callable(a) or isinstance(problem, EllipticCoefficient) else []
    gradients += [("conductivity", a)] if callable(a) else []
    for name, function in gradients:
        parts = [_gradient(function, ball) for ball in balls]
        found += [(f"gradient of the {name}", list(same)) for same in zip(*parts, strict=True)]
    return found


def _laplacian(function: Any, ball: Balls) -> Sides:
    values, bend = _value(function, ball), values_at(function.laplacian, ball.x, "state.laplacian")
    return _sides(bend, values, ball.bend, ball)


def _gradient(function: Any, ball: Balls) -> list[Sides]:
    values, slopes = _value(function, ball), values_at(function.gradient, ball.x, "gradient", vector=True)
    return [_sides(slope, values, -weight, ball) for slope, weight in zip(slopes, ball.slope, strict=True)]


def _residual(functions: Functions, a: Any, c: Any, ball: Balls) -> Sides:
    """``∫ r psi = ∫ u (-a laplacian(psi) - grad(a) . grad(psi) + c psi) - q psi``."""
    weights = -values_at(a, ball.x, "conductivity") * ball.bend
    if callable(a):
        weights -= (values_at(a.gradient, ball.x, "conductivity.gradient", vector=True) * ball.slope).sum(axis=0)
    u, q = _value(functions.state, ball), _value(functions.parameter, ball)
    bent = values_at(functions.residual, ball.x, "residual") - values_at(c, ball.x, "reaction") * u + q
    return _sides(bent, u, weights, ball)


def _sides(offered: Array, values: Array, weights: Array, ball: Balls) -> Sides:
    offered, values, weights, psi = (part.reshape(ball.number, -1) for part in (offered, values, weights, ball.psi))
    rounding = REPEATED if np.array_equal(values, values.astype(np.float32)) else DOUBLE
    noise = rounding * np.abs(values).max(axis=1) * np.abs(weights).sum(axis=1)
    jump = np.zeros(ball.number)
    if len(ball.x) == 1:
        jump = (np.abs(np.diff(offered, axis=1)) * np.maximum(psi[:, 1:], psi[:, :-1])).max(axis=1)
    # The weights have the mean zero, so that a constant says nothing.
    values = values - values.mean(axis=1, keepdims=True)
    return Sides(_sum(offered * psi), _sum(values * weights), _sum(np.abs(offered) * psi), noise, jump)


def _sum(parts: Array) -> Array:
    return np.asarray(parts.sum(axis=1))


def _value(function: Any, ball: Balls) -> Array:
    return values_at(function, ball.x, "function")


def inner_points(mesh: Any, rng: np.random.Generator) -> tuple[Array, Array]:
    """Points inside, ``(dimension, points)``, and their distances from the boundary: the farthest, and some others."""
    points = uniform_points(mesh, DRAWN, rng).x
    distance = _distance(mesh, points)
    order = np.argsort(-distance)
    half = CENTRES // 2
    chosen = [*order[:half], *order[half :: DRAWN // CENTRES][: CENTRES - half]]
    return points[:, chosen], distance[chosen]


def _distance(mesh: Any, points: Array) -> Array:
    corners = mesh.p[:, mesh.facets[:, mesh.boundary_facets()]]
    start = corners[:, 0, :, None]
    edge = (corners[:, 1, :, None] if corners.shape[1] > 1 else start) - start
    to = points[:, None, :] - start
    length = (edge**2).sum(axis=0)
    along = np.clip((to * edge).sum(axis=0) / np.where(length > 0.0, length, 1.0), 0.0, 1.0)
    return np.asarray(np.sqrt(((to - along * edge) ** 2).sum(axis=0)).min(axis=0))


def inner_balls(centres: Array, distances: Array, n: int) -> Balls:
    """Balls of some radii around each of the centres, inside of the domain; n points along a radius."""
    dimension = len(centres)
    nodes, weights = np.polynomial.legendre.leggauss(4 * n if dimension == 1 else n)
    if dimension == 1:
        z, w = nodes[None], 0.5 * weights
    else:
        s, angle = 0.5 * (nodes + 1.0), 2.0 * np.pi * (np.arange(2 * n) + 0.5) / (2 * n)
        z = np.array([np.outer(s, np.cos(angle)).ravel(), np.outer(s, np.sin(angle)).ravel()])
        w = np.repeat(weights * s, 2 * n) / (2 * n)
    inside = 1.0 - (z**2).sum(axis=0)
    psi, slope = w * inside**3, -6.0 * w * z * inside**2
    bend = -6.0 * w * (dimension * inside**2 - 4.0 * (1.0 - inside) * inside)
    radii = np.outer(RADII, distances).ravel()[:, None]
    x = np.tile(centres, len(RADII))[:, :, None] + radii * z[:, None, :]
    return Balls(
        x=x.reshape(dimension, -1),
        psi=np.tile(psi, len(radii)),
        slope=(slope[:, None, :] / radii).reshape(dimension, -1),
        bend=(bend / radii**2).ravel(),
        number=len(radii),
    )
