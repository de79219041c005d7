"""The classical baseline for nonlinear problems: regularized least squares by a trust-region Gauss-Newton method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from ..checks import Array, count, number, real_vector
from ..errors import InputError, SolveError
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.data import Data
from ..problem.forward import dense
from ..residual.optimality import Limits, check_bounds, coordinate_limits, curvature, projected_norm, reduced_gradient
from .ball import Inverse, ball_form, on_sphere, semidefinite_root

MOST_COORDINATES = 2000
# How close to the sphere of a ball is on it. A cost known to a tolerance gives its minimizer to the root of that only.
CLOSE = 1e-8
# Of the largest gradient that a misfit of this size could have: above it a point is no minimum.
NOT_STATIONARY = 1e-4


@dataclass(frozen=True, kw_only=True)
class GaussNewton:
    """``min ½ ‖H u(q) - y‖_Y² + ½ weight ‖q - q0‖_Q²`` over the admissible class, from ``start``.

    A callable ``(problem, data) -> Candidate``. Levenberg-Marquardt (trust region) steps with the Jacobian by adjoint
    or forward solves; default tolerances are the paper's. Where the class has a ball ``‖q‖_L <= rho``, the minimum is
    taken on that ball: ``½ mu ‖q‖_L²`` is added with the multiplier mu that brings an outer minimizer to the sphere.

    Parameters
    ----------
    weight
        Regularization weight (the paper's lambda) > 0.
    start
        Coordinates to start from; default zero. The penalty is about zero unless `reference` says otherwise.
    reference
        Coordinates of q0.
    bounds
        ``(low, high)`` for the coordinates, numbers or vectors.
    tolerance, evaluations
        Stopping tolerance of step, cost and gradient, and the largest number of evaluations.
    """

    weight: float
    start: Any = None
    reference: Any = None
    bounds: tuple[Any, Any] | None = None
    tolerance: float = 1e-10
    evaluations: int = 300

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", number(self.weight, "weight", above=0.0))
        object.__setattr__(self, "tolerance", number(self.tolerance, "tolerance", above=0.0))
        count(self.evaluations, "evaluations")
        check_bounds(self.bounds)

    def __call__(self, problem: Problem, data: Data) -> Candidate:
        """The reconstruction; its optimality is the (projected) gradient norm of the objective.

        Raises
        ------
        SolveError
            The method did not converge within the allowed evaluations.
        """
        if problem.forward is not None:
            raise InputError(f"GaussNewton solves nonlinear problems; for a {type(problem).__name__} use Tikhonov")
        k = problem.parameters.dimension
        if k > MOST_COORDINATES:
            raise InputError(f"the class has {k} coordinates; GaussNewton takes at most {MOST_COORDINATES}")
        problem.check_data(data)
        space, limits = problem.parameters, coordinate_limits(self.bounds, k)
        start = np.clip(np.zeros(k) if self.start is None else real_vector(self.start, k, "start"), *limits)
        objective = _Objective(problem, data, self.weight, self.reference, limits)
        try:
            scale = float(np.linalg.norm(objective.misfit(start, 0.0))) or 1.0
        except InputError as error:
            raise InputError(f"the start {start.tolist()} is not possible, give start=...: {error}") from None

        def solves(mu: float) -> tuple[Array, Inverse]:
            nonlocal start
            # The next multiplier goes on from here.
            start = self._minimizer(objective, start, mu, scale)
            return start, objective.inverse(start, mu)

        ball = space.ball_about_zero
        radius = np.inf if ball is None else ball.radius
        c, mu = on_sphere(solves, objective.form, radius, close=CLOSE, known=self.tolerance**0.5)
        g = objective.gradient(c, mu)
        bend = curvature(problem, data, c, weight=self.weight)
        optimality = projected_norm(space, c, g, limits, curvature=bend)
        self._check_stationary(float(np.sqrt(bend)), float(np.linalg.norm(objective.misfit(c, 0.0))), scale, optimality)
        return Candidate.from_coefficients(problem, c, optimality=optimality, name="baseline")

    def _minimizer(self, objective: _Objective, start: Array, mu: float, scale: float) -> Array:
        t = self.tolerance
        # Divided by its first size, so that the tolerances mean the same in any units.
        result = least_squares(
            lambda c: objective.tried(c, mu) / scale,
            start,
            jac=lambda c: objective.jacobian(c, mu) / scale,
            bounds=objective.limits,
            x_scale="jac",
            xtol=t,
            ftol=t,
            gtol=t,
            max_nfev=self.evaluations,
        )
        if not result.success:
            raise SolveError(
                f"Gauss-Newton did not converge in {self.evaluations} evaluations (gradient {result.optimality:.2g}); "
                "try a larger weight, fewer coordinates, another start, bounds, or more evaluations"
            )
        return np.asarray(result.x)

    def _check_stationary(self, steepness: float, size: float, scale: float, optimality: float) -> None:
        """Refuse a point where the steps became short although the gradient is not small."""
        most = steepness * size
        share = max(NOT_STATIONARY, 10.0 * self.tolerance)
        if not (optimality <= share * most or size <= 1e-6 * scale):
            raise SolveError(
                f"Gauss-Newton stopped where the gradient is not zero ({optimality:.2g} of at most {most:.2g}); "
                "try another start, bounds, or a larger weight"
            )


class _Objective:
    """``½ ‖H u - y‖_Y² + ½ weight ‖q - q0‖_Q² + ½ mu ‖q‖_L²``, as rows whose squares are summed.

    Attributes
    ----------
    form, limits
        L of the ball of the class, zero without one; and the bounds of the coordinates.
    """

    def __init__(self, problem: Problem, data: Data, weight: float, reference: Any, limits: Limits) -> None:
        self._problem, self._data, self.limits = problem, data, limits
        space, k = problem.parameters, problem.parameters.dimension
        self._centre = np.zeros(k) if reference is None else real_vector(reference, k, "reference")
        self._root = np.sqrt(weight) * space.root
        self.form = np.zeros((k, k)) if space.ball is None else dense(ball_form(space))
        self._ball = np.zeros((0, k)) if space.ball is None else semidefinite_root(self.form)

    def misfit(self, c: Array, mu: float) -> Array:
        """The rows."""
        problem, data = self._problem, self._data
        predicted = problem.linearize(problem.parameters.field(c)).predicted
        penalty = self._root @ (c - self._centre)
        return np.concatenate([data.whiten(predicted - data.values), penalty, np.sqrt(mu) * (self._ball @ c)])

    def tried(self, c: Array, mu: float) -> Array:
        """The rows; infinite at an impossible parameter (a negative conductivity), where a step is to be shortened."""
        try:
            return self.misfit(c, mu)
        except (InputError, SolveError):
            return np.full(self._data.values.size + len(self._root) + len(self._ball), np.inf)

    def jacobian(self, c: Array, mu: float) -> Array:
        """Their derivative."""
        J = self._data.whiten(self._problem.linearize(self._problem.parameters.field(c)).matrix)
        return np.vstack([J, self._root, np.sqrt(mu) * self._ball])

    def gradient(self, c: Array, mu: float) -> Array:
        """Of the objective."""
        penalty = self._root.T @ (self._root @ (c - self._centre)) + mu * (self.form @ c)
        return reduced_gradient(self._problem, self._data, c) + penalty

    def inverse(self, c: Array, mu: float) -> Inverse:
        """Of the Gauss-Newton matrix on the coordinates that are at no bound, zero on the others."""
        free = (self.limits[0] < c) & (c < self.limits[1])

        def apply(right: Array) -> Array:
            J, result = self.jacobian(c, mu)[:, free], np.zeros(len(c))
            result[free] = np.linalg.solve(J.T @ J, right[free])
            return result

        return apply
