"""The classical baseline for nonlinear problems: regularized least squares by a trust-region Gauss-Newton method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from ..errors import InputError, SolveError
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.checks import Array, count, number, real_vector
from ..problem.data import Data
from ..problem.nonlinear import NonlinearProblem
from ..residual.optimality import curvature, reduced_gradient
from ..residual.projected import check_bounds, coordinate_limits, projected_norm

MOST_COORDINATES = 2000
# Of the largest gradient that a misfit of this size could have: above it a point is no minimum.
NOT_STATIONARY = 1e-4


@dataclass(frozen=True, kw_only=True)
class GaussNewton:
    """``min ½ ‖H u(q) - y‖_Y² + ½ weight ‖q - q0‖_Q²`` over the admissible class, from ``start``.

    A callable ``(problem, data) -> Candidate``. Levenberg-Marquardt (trust region) steps with the Jacobian by adjoint
    or forward solves; default tolerances are the paper's.

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
        if not isinstance(problem, NonlinearProblem):
            raise InputError(f"GaussNewton solves nonlinear problems; for a {type(problem).__name__} use Tikhonov")
        k = problem.parameters.dimension
        if k > MOST_COORDINATES:
            raise InputError(f"the class has {k} coordinates; GaussNewton takes at most {MOST_COORDINATES}")
        problem.check_data(data)
        root = np.sqrt(self.weight) * problem.parameters.root
        centre = np.zeros(k) if self.reference is None else real_vector(self.reference, k, "reference")
        field = problem.parameters.field

        def misfit(c: Array) -> Array:
            predicted = problem.observe(problem.linearize(field(c)).state)
            return np.concatenate([data.whiten(predicted - data.values), root @ (c - centre)])

        def tried(c: Array) -> Array:
            # A trial step into impossible parameters (a negative conductivity) is one to shorten, not the end.
            try:
                return misfit(c)
            except (InputError, SolveError):
                return np.full(data.values.size + k, np.inf)

        def jacobian(c: Array) -> Array:
            return np.vstack([data.whiten(problem.jacobian(field(c))), root])

        low, high = coordinate_limits(self.bounds, k)
        start = np.clip(np.zeros(k) if self.start is None else real_vector(self.start, k, "start"), low, high)
        try:
            scale = float(np.linalg.norm(misfit(start))) or 1.0
        except InputError as error:
            raise InputError(f"the start {start.tolist()} is not possible, give start=...: {error}") from None
        t = self.tolerance
        # Divided by its first size, so that the tolerances mean the same in any units.
        result = least_squares(
            lambda c: tried(c) / scale,
            start,
            jac=lambda c: jacobian(c) / scale,
            bounds=(low, high),
            x_scale="jac",
            xtol=t,
            ftol=t,
            gtol=t,
            max_nfev=self.evaluations,
        )
        if not result.success:
            raise SolveError(
                f"Gauss-Newton did not converge in {self.evaluations} evaluations (gradient {result.optimality:.2g})"
            )
        c = np.asarray(result.x)
        g = reduced_gradient(problem, data, c) + root.T @ (root @ (c - centre))
        bend = curvature(problem, data, c, weight=self.weight)
        optimality = projected_norm(problem.parameters, c, g, (low, high), curvature=bend)
        self._check_stationary(float(np.sqrt(bend)), float(np.linalg.norm(misfit(c))), scale, optimality)
        return Candidate.from_coefficients(problem, c, optimality=optimality, name="baseline")

    def _check_stationary(self, steepness: float, size: float, scale: float, optimality: float) -> None:
        """Refuse a point where the steps became short although the gradient is not small."""
        most = steepness * size
        share = max(NOT_STATIONARY, 10.0 * self.tolerance)
        if not (optimality <= share * most or size <= 1e-6 * scale):
            raise SolveError(
                f"Gauss-Newton stopped where the gradient is not zero ({optimality:.2g} of at most {most:.2g}); "
                "try another start, bounds, or a larger weight"
            )
