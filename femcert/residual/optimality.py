"""Stationarity of a reconstruction for a Tikhonov objective."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..problem.base import Problem
from ..problem.checks import Array, number
from ..problem.data import Data
from ..problem.linear import LinearProblem
from ..problem.nonlinear import NonlinearProblem


def reduced_gradient(problem: Problem, data: Data, coefficients: Array, *, weight: float = 0.0) -> Array:
    """``F' (F c + y0 - y) + weight G c`` (or J' instead of F'), the derivative of the objective in the coordinates.

    The objective is ``½ ‖H u - y‖_Y² + ½ weight ‖q‖_Q²``.
    """
    if not isinstance(problem, (LinearProblem, NonlinearProblem)):
        raise InputError(f"no gradient is known for a {type(problem).__name__}")
    c = np.asarray(coefficients)
    gradient = problem.misfit_gradient(problem.parameters.field(c), data)
    return np.asarray(gradient + weight * (problem.parameters.gram @ c))


def reduced_gradient_norm(problem: Problem, data: Data, parameter: Any, *, weight: float = 0.0) -> float:
    """Dual norm ``(g' G^-1 g)^(1/2)`` of the reduced gradient at a parameter's projection on the class.

    With an orthonormal basis this is the paper's r_opt, the Euclidean gradient norm of the ridge objective.
    """
    number(weight, "weight", least=0.0)
    c, _ = problem.parameters.project(problem.check_parameter(parameter))
    g = reduced_gradient(problem, problem.check_data(data), c, weight=weight)
    square = float(g @ problem.parameters.solve_gram(g))
    return float(np.sqrt(max(square, 0.0)))
