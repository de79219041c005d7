"""What is proven about a candidate without its state: the yardstick for radii that use one."""

from __future__ import annotations

import numpy as np

from ..checks import Array
from ..errors import InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.data import Data
from ..problem.linear import LinearProblem
from ..stability import Stability, stability


def split(problem: Problem, candidate: Candidate) -> tuple[Candidate, float]:
    """The candidate with its parameter moved into the admissible class, and how far it was moved.

    The parameter is projected, and shrunk into the ball where the class has one. One that lies in the class to rounding
    stays as it is.
    """
    space, q = problem.parameters, candidate.parameter
    inside = space.nearest(q)
    distance = space.norm(q - inside)
    if distance <= problem.rounding * space.norm(q):
        return candidate, distance
    return Candidate(candidate.state, inside, candidate.optimality, candidate.name), distance


def proven_radius(
    problem: Problem, data: Data, candidate: Candidate, constant: Stability | None
) -> tuple[float, float]:
    """``C (‖F c + y0 - y‖_Y + delta) + ‖q - B c‖_Q`` with ``B c = Pi q``: contains every discrete truth of the class.

    It needs no state, so it is the yardstick for radii that use one; infinite where no proof is known. A constant that
    came from elsewhere proves nothing: C is then computed here, for these sensors and this covariance. The second
    number is what rounding may add to the first. For a nonlinear problem there is none: the truth may lie outside of
    the ball on which a constant is validated.
    """
    if not problem.linear:
        return np.inf, 0.0
    try:
        constant = stability(problem, data=data) if constant is None else constant
    except (InputError, UncertifiedError):
        return np.inf, 0.0
    if constant.constant.side != "upper":
        return np.inf, 0.0
    if constant.levels is not None:
        return _proven_on_ball(problem, data, candidate, constant)
    c, remainder = problem.parameters.project(candidate.parameter)
    response: Array = problem.forward_matrix() @ c
    # A solve may lose a part of what the most visible parameter shows, also where this one shows little.
    most = constant.sigma_max * problem.parameters.norm(candidate.parameter)
    size = most + data.norm(response) + data.norm(data.values)
    misfit = data.norm(response + problem.offset - data.values)
    C = constant.constant.value
    proven = C * (misfit + data.noise_level) + problem.parameters.norm(remainder)
    rounding = problem.rounding * problem.parameters.norm(candidate.parameter)
    error = problem.error(data) * problem.parameters.norm(candidate.parameter)
    return proven, C * (problem.rounding_of(data) * size + error + problem.offset_rounding(data)) + rounding


def _proven_on_ball(
    problem: LinearProblem, data: Data, candidate: Candidate, constant: Stability
) -> tuple[float, float]:
    """``omega(‖H S q' - y‖_Y + delta) + ‖q - q'‖_Q`` with q' the candidate, projected and shrunk into the ball."""
    space = problem.parameters
    if constant.moduli is None or space.ball is None:
        return np.inf, 0.0
    inside = space.nearest(candidate.parameter)
    state = problem.solve(inside)
    misfit = data.norm(problem.predict(state, inside) - data.values)
    most = constant.sigma_max * space.norm(inside)
    eps = misfit + data.noise_level + problem.rounding_of(data) * most + problem.lost_to_rounding(data, state)
    if not eps > 0.0:
        return np.inf, 0.0
    distance = space.norm(candidate.parameter - inside)
    return constant.modulus(eps).value + distance, problem.rounding * space.norm(candidate.parameter)
