"""Whether the derivatives that a candidate's functions offer are those of their values: in balls inside the domain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..checks import Array
from ..errors import CandidateError
from ..linalg.accuracy import EPS
from ..mesh.sample import Points, uniform_points, values_at
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.candidate_functions import REPEATED, Functions
from .pointwise import PointwiseResidual, pointwise_residual

# Points that centres are chosen from, how many are, and the radii relative to the distance from the boundary.
DRAWN, CENTRES, RADII = 64, 4, (0.9, 0.25, 0.06)
# Points along a radius (on a line, four times as many), in rules whose differences tell how exact they are.
RULES = (11, 16, 23)
# Of the derivative's size: what is not called an error. Of the rules' differences: what is not.
TOLERANCE, SAFETY = 0.01, 10.0
# Of the largest value: rounding of a function in double precision.
DOUBLE = 64.0 * EPS


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
    the balls, is not. A given residual is not checked where the conductivity is a table or lacks a gradient.

    Raises
    ------
    CandidateError
        They do not.
    """
    exact, functions = pointwise_residual(problem, candidate), candidate.functions
    if exact is None or functions is None or exact.equation.conductivity.gradient_at(exact.first) is None:
        return
    centres, distances = inner_points(exact.mesh, rng)
    found: dict[str, list[Array]] = {}
    for n in RULES:
        balls = inner_balls(centres, distances, n)
        points = Points(exact.mesh, balls.x)
        for name, offered, values, weights in _identities(exact, functions, points, balls):
            found.setdefault(name, []).append(_sides(offered, values, weights, balls))
    for name, sides in found.items():
        _check(f"the {name} of {candidate.name!r}", sides)


def _identities(
    exact: PointwiseResidual, functions: Functions, points: Points, balls: Balls
) -> Iterator[tuple[str, Array, Array, Array]]:
    """Of ``∫ offered psi = ∫ values weights``: what is offered, by name, the values and the weights."""
    state: Any = functions.state
    u, equation = values_at(state, points.x, "state"), exact.equation
    a = equation.conductivity
    if functions.residual is not None and equation.unknown == "source":
        divergence = exact(points) - equation.reaction.at_points(points) * u + equation.source.at_points(points)
        slope: Any = a.gradient_at(points)
        yield "residual", divergence, u, -a.at_points(points) * balls.bend - (slope * balls.slope).sum(axis=0)
        return
    yield "laplacian of the state", values_at(state.laplacian, points.x, "state.laplacian"), u, balls.bend
    if not a.varies:
        return
    gradients: list[Any] = [("state", u, values_at(state.gradient, points.x, "state.gradient", vector=True))]
    if equation.unknown != "conductivity":
        gradients.append(("conductivity", a.at_points(points), a.gradient_at(points)))
    for name, values, offered in gradients:
        for axis, part in enumerate(offered):
            yield f"gradient of the {name} along axis {axis}", part, values, -balls.slope[axis]


def _sides(offered: Array, values: Array, weights: Array, balls: Balls) -> Array:
    """For each ball both sides of an identity, the size of the left one, rounding of the right one, and jumps.

    Jumps: what one jump of what is offered, between two points on a line, adds to the error of the rule at most.
    """
    parts = (offered, values, weights, balls.psi)
    offered, values, weights, psi = (part.reshape(balls.number, -1) for part in parts)
    rounding = REPEATED if np.array_equal(values, values.astype(np.float32)) else DOUBLE
    noise = rounding * np.abs(values).max(axis=1) * np.abs(weights).sum(axis=1)
    jump = np.zeros(balls.number)
    if len(balls.x) == 1:
        jump = (np.abs(np.diff(offered, axis=1)) * np.maximum(psi[:, 1:], psi[:, :-1])).max(axis=1)
    # The weights have the mean zero, so that a constant says nothing.
    by_values = ((values - values.mean(axis=1, keepdims=True)) * weights).sum(axis=1)
    return np.array([(offered * psi).sum(axis=1), by_values, (np.abs(offered) * psi).sum(axis=1), noise, jump])


def _check(what: str, sides: list[Array]) -> None:
    """The two sides are equal by the last quadrature rule, as far as the rules agree with each other."""
    offered, by_values, size, noise, jump = np.array(sides).transpose(1, 0, 2)
    gap = offered - by_values
    # Where the rules agree by chance, they still differ about the sizes of steep functions.
    unsure = np.maximum(np.ptp(gap, axis=0), np.ptp(size, axis=0)) + jump[-1]
    wrong = ~(np.abs(gap[-1]) <= TOLERANCE * size[-1] + SAFETY * unsure + noise[-1])
    if wrong.any():
        i = int(np.argmax(wrong))
        came = f"its mean in a ball is {offered[-1, i]:.4g}, that of the values' {by_values[-1, i]:.4g}"
        raise CandidateError(f"{what} does not belong to its values: {came}")


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
