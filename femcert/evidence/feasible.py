"""What data, noise level and class leave open, as a set of coordinates, and what it means for parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ..checks import Array, required
from ..errors import InconsistentError, InputError, SolveError, UncertifiedError
from ..problem.base import Problem
from ..problem.data import Data
from ..problem.forward import dense
from ..problem.space import Split
from ..stability import Stability, stability
from ..stability.continuous import MapError
from ..stability.spectrum import gram_kept
from ..stability.validity import validated
from .consistent import ConsistentSet, inconsistent

# Beyond this many coordinates the set is not made; on a ball the modulus of continuity takes its place.
MOST_COORDINATES = 1500
# How often a radius enters its own bound, and by how much it must get smaller to do so again.
MOST_ROUNDS, CLOSER = 20, 0.9999
# A ball bounds the class if its form is at least this part of its largest value; below, that is rounding.
BOUNDING = 1e-10
# Rounding of a few small matrices.
UPWARD = 1.0 + 1e-9


@dataclass(frozen=True)
class Feasible:
    """The parameters of a class that are consistent with the data, in coordinates that are orthonormal in Q.

    Attributes
    ----------
    consistent
        The set of coordinates.
    scope
        ``"discrete"`` or ``"continuous"``.
    origin
        The coordinates that are the origin of the set: of the candidate about which it was made, or zero.
    stretch
        The largest norm of a dof vector over that of the function it stands for, at least 1: distances cover both.
    root
        Upper triangular R with ``x = R c``.
    outside
        ``(parameter, coordinates) -> ‖q - q'‖_Q`` from above, for the parameter of the class with these coordinates.
    """

    problem: Problem = field(repr=False)
    data: Data = field(repr=False)
    consistent: ConsistentSet = field(repr=False)
    scope: str
    root: Array = field(repr=False)
    outside: Callable[[Array, Array], float] = field(repr=False, compare=False)
    origin: Array | float = field(default=0.0, repr=False)
    stretch: float = 1.0

    def coordinates(self, parameter: Array, c: Array | None = None) -> tuple[Array, float]:
        """Of the projection on the class, from the origin, and the distance ``‖q_perp‖_Q`` from it, from above.

        With the coordinates c of the projection in the columns of the class, where they are known already.
        """
        c = self.problem.parameters.project(parameter)[0] if c is None else c
        return np.asarray(self.root @ c - self.origin), self.outside(parameter, c)

    def field(self, coordinates: Array) -> Array:
        """The parameter with these coordinates (dof vector)."""
        return self.problem.parameters.field(solve_triangular(self.root, coordinates + self.origin))

    @cached_property
    def constant(self) -> Stability | None:
        """The stability constant of the same problem; None where there is none, as on a ball without noise."""
        try:
            return stability(self.problem, data=self.data)
        except (InputError, SolveError, UncertifiedError):
            return None

    def farthest(self, parameter: Array, split: Split | None = None) -> tuple[float, Array]:
        """Upper bound of the distance to every consistent parameter, and one that is (nearly) so far away."""
        split = split or self.problem.parameters.split(parameter)
        x, outside = self.coordinates(parameter, split.coordinates)
        upper, point = self.consistent.farthest(x[None])
        size = split.size
        # On the mesh the projection is orthogonal in Q; rounding leaves that to a part of the parameter's size.
        inside = self.stretch * float(upper[0])
        both = np.hypot(inside, outside) if self.scope == "discrete" else inside + outside
        distance = both + self.problem.rounding * (size + float(np.linalg.norm(x)))
        return float(distance / gram_kept(self.problem.parameters)), self.field(point[0])


def discrete_set(problem: Problem, data: Data) -> Feasible:
    """``{ c : ‖F c + y0 - y‖_Y <= delta }``, in the ball if there is one, for the discretized problem."""
    forward = required(problem.forward, "the consistent set", "data that depend linearly on the parameter", problem)
    A = forward.normal(data)
    origin = _origin(problem)
    y = data.whiten(data.values - forward.offset) - A.matrix @ origin
    errors = {"rounding": forward.rounding_of(data), "lost": forward.offset_rounding(data)}
    errors["error"] = forward.error(data)
    consistent = ConsistentSet(A, y, data.noise_level, **errors, **_ball(problem))
    root = problem.parameters.root
    return Feasible(problem, data, consistent, "discrete", root, partial(_discrete_distance, problem), origin)


def continuous_set(problem: Problem, data: Data, constant: Stability, at: Array) -> Feasible:
    """The same for the equation itself, about a candidate with the coordinates x of its part in the class.

    With the exact map F, ``‖(F - A) e‖ <= (e'Ge)^1/2`` for the known matrix A, a consistent parameter at ``x + e`` has
    ``‖A e + F x - y‖ <= delta + s``, ``s = (e'Ge)^1/2``. ``F x`` is known but for its errors. With ``b = y - F x`` and
    ``e = A^+ (A e - b) + A^+ b``, ``s <= g (delta + s) + ‖G^1/2 A^+ b‖`` for ``g = ‖G^1/2 A^+‖``; besides ``s <=
    ‖G^1/2‖ ‖e‖`` and ``‖e‖ <= r`` for a first radius r. The farthest e of that set is a better one, and so on.

    Parameters
    ----------
    constant
        With guarantee ``"continuous"``.
    at
        Coordinates of the candidate's part in the class, in the columns of the space.
    """
    gap = constant.gap
    assert gap is not None
    c, root = at, gap.exact.root
    predicted = gap.exact.predict(c)
    y = data.whiten(data.values) - predicted.values
    level = data.noise_level + predicted.size
    rounding = problem.linearize().corrected_rounding(data)
    errors = {"rounding": rounding, "lost": rounding * data.norm(data.values)}
    radius = constant.radius(float(np.linalg.norm(y)) + level + errors["lost"])
    for _ in range(MOST_ROUNDS):
        lost = rounding * float(np.linalg.norm(gap.centre)) * radius + errors["lost"]
        beside = min(gap.size * radius, _spread(gap, y, level + lost))
        consistent = ConsistentSet(gap.centre, y, level + beside, **errors)
        smaller = float(consistent.farthest(np.zeros((1, len(c))))[0][0])
        if not smaller < CLOSER * radius:
            break
        radius = smaller
    origin, stretch = np.asarray(root @ c), max(1.0, gap.exact.interpolation_norm)
    return Feasible(problem, data, consistent, "continuous", root, gap.exact.distance, origin, stretch)


def _spread(gap: MapError, values: Array, level: float) -> float:
    """Upper bound of ``(e'Ge)^1/2`` over ``‖A e - values‖ <= level + (e'Ge)^1/2``; infinite if none is known."""
    sizes, vectors = np.linalg.eigh((gap.spread + gap.spread.T) / 2.0)
    root = np.sqrt(np.maximum(sizes, 0.0))[:, None] * vectors.T
    seen = root @ np.linalg.pinv(gap.centre)
    share = float(np.linalg.norm(seen, 2))
    if not share < 1.0:
        return np.inf
    return UPWARD * (share * level + float(np.linalg.norm(seen @ values))) / (1.0 - share)


def linearized_set(problem: Problem, data: Data, at: Array) -> Feasible:
    """Of a nonlinear problem: ``{ q : ‖J (q - q0) + F(q0) - y‖_Y <= delta + L rho² / 2 }`` in the ball, q0 = `at`.

    It contains all consistent parameters of the class if the class has a ball that lies in the one of radius rho on
    which the linearization at q0 is validated: Taylor's formula bounds the rest by the Lipschitz constant L.

    Raises
    ------
    UncertifiedError
        The class has no ball, or the validated one is smaller.
    """
    space = problem.parameters
    if space.ball is None:
        raise UncertifiedError(
            "a nonlinear problem is linearized, which holds on a small ball only; expected a class that lies in it: "
            "parameters=space.within_ball(radius), or ResidualRadius(), which is an estimate"
        )
    centre = space.nearest(at)
    reach = _diameter(problem, centre)
    validity = validated(problem, centre, data=data, radius=reach)
    if not validity.valid:
        raise UncertifiedError(f"the linearization is not validated on the whole class: {validity.reason}")
    state = problem.solve(centre)
    predicted = problem.predict(state, centre)
    rest = 0.5 * validity.lipschitz.value * reach**2
    A = problem.linearize(centre).normal(data)
    origin = _origin(problem)
    y = data.whiten(data.values - predicted) + A.matrix @ (space.root @ space.project(centre)[0] - origin)
    lost = problem.lost_to_rounding(data, state, centre)
    errors = {"rounding": problem.linearize(centre).rounding_of(data), "lost": lost}
    consistent = ConsistentSet(A, y, data.noise_level + rest, **errors, **_ball(problem))
    return Feasible(problem, data, consistent, "discrete", space.root, partial(_discrete_distance, problem), origin)


def is_large_ball(problem: Problem) -> bool:
    """Whether the class is a ball with too many coordinates for the consistent set."""
    return problem.parameters.ball is not None and problem.parameters.dimension > MOST_COORDINATES


def check_explained(problem: Problem, data: Data, constant: Stability | None = None) -> None:
    """Refuse data that no parameter of the class explains: every upper radius takes for granted that the truth does.

    With a dense forward matrix by the consistent set itself; on a ball in a larger class by a lower bound of the misfit
    from the lifted sensors of the modulus, if `constant` has one. Elsewhere nothing is checked: radii are estimates for
    a nonlinear problem, and for a large class without a ball.

    Raises
    ------
    InconsistentError
        No parameter of the class explains the data within the noise level.
    """
    space, forward = problem.parameters, problem.forward
    if forward is None:
        return
    assert not is_large_ball(problem) or constant is not None
    if space.dimension <= MOST_COORDINATES:
        try:
            discrete_set(problem, data)
        except InconsistentError:
            raise
        except UncertifiedError:
            # Not bounded, but not empty.
            return
    elif space.ball is not None and constant is not None and constant.moduli is not None:
        rounding = forward.corrected_rounding(data) * data.norm(data.values) + forward.offset_rounding(data)
        level = data.noise_level + rounding
        centre = space.ball.centre
        about = 0.0 if centre is None else forward.apply(centre[:, None])[:, 0]
        least = constant.moduli.least_misfit(data.values - forward.offset - about, space.ball.radius, level)
        if least > level:
            raise inconsistent(data.noise_level, least - rounding)


def check_explained_continuously(problem: Problem, data: Data, constant: Stability) -> None:
    """The same for the equation itself; `constant` has the guarantee ``"continuous"``."""
    gap, space = constant.gap, problem.parameters
    assert gap is not None
    x = np.linalg.lstsq(gap.centre, data.whiten(data.values) - gap.exact.predict(np.zeros(space.dimension)).values)[0]
    continuous_set(problem, data, constant, solve_triangular(gap.exact.root, x))


def _discrete_distance(problem: Problem, parameter: Array, coefficients: Array) -> float:
    space = problem.parameters
    return space.norm(parameter - np.asarray(space.matrix @ coefficients))


def _ball(problem: Problem) -> dict[str, Any]:
    """Form and radius of the ball in orthonormal coordinates; nothing without a ball."""
    space = problem.parameters
    if space.ball is None:
        return {}
    B = space.matrix
    L = dense(B.T @ (space.ball_form @ B))
    half = solve_triangular(space.root, L, trans="T")
    form = solve_triangular(space.root, half.T, trans="T")
    # Negative eigenvalues are rounding.
    values, vectors = np.linalg.eigh((form + form.T) / 2.0)
    return {"form": (vectors * np.maximum(values, 0.0)) @ vectors.T, "radius": space.ball.radius}


def _origin(problem: Problem) -> Array:
    """Coordinates of the centre of the ball; zero without one."""
    space = problem.parameters
    centre = None if space.ball is None else space.ball.centre
    return np.zeros(space.dimension) if centre is None else np.asarray(space.root @ space.project(centre)[0])


def _diameter(problem: Problem, centre: Array) -> float:
    """Upper bound of ``‖q - q0‖_Q`` over the ball of the class: ``(rho + ‖q0‖_L) / lam_min^(1/2)``."""
    space = problem.parameters
    assert space.ball is not None
    values = np.linalg.eigvalsh(_ball(problem)["form"])
    least = float(values[0])
    if not least > BOUNDING * float(values[-1]):
        raise UncertifiedError(f"a ball in the norm {space.ball.norm!r} does not bound the parameters of the class")
    return (space.ball.radius + space.ball_norm(centre)) / float(np.sqrt(least)) * (1.0 + 1e-9)
