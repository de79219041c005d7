"""Truths within bounds: intervals from dual points, never shorter than what feasible truths allow."""

from __future__ import annotations

import numpy as np
import pytest
from evidence_helpers import STD, data, fewest, form, matrix_problem, noisy
from scipy.optimize import minimize
from scipy.sparse import csc_matrix
from scipy.special import chdtri
from zoo import l_shape, source

import femcert as fc


def positive(seed=0, m=5, k=8, **bounds):
    problem = matrix_problem(seed, m=m, k=k, radius=3.0)
    space = problem.parameters.within_bounds(**(bounds or {"lower": 0.0}))
    return fc.MatrixProblem(operator=np.eye(k), load=np.eye(k), observe=problem.forward_matrix(), parameters=space)


def truth_of(problem, seed):
    rng = np.random.default_rng(seed)
    bounds, ball = problem.parameters.bounds, problem.parameters.ball
    q = np.clip(rng.standard_normal(problem.parameters.dimension), bounds.lower, bounds.upper)
    return q * min(1.0, 0.9 * ball.radius / problem.parameters.ball_norm(q))


@pytest.mark.parametrize("bounds", [{"lower": 0.0}, {"lower": -0.2, "upper": 0.5}, {"upper": 0.1}])
@pytest.mark.parametrize("seed", range(4))
def test_dual_bounds_are_the_primal_ones(seed, bounds):
    problem = positive(seed, **bounds)
    space, L = problem.parameters, form(problem)
    psi, truth = np.random.default_rng(seed).standard_normal(8), truth_of(problem, seed)
    y = noisy(problem, truth, seed)
    found = fc.evidence(problem, data(problem, y))
    ends = found._within_bounds(csc_matrix(psi[:, None]), np.zeros((5, 1)), np.array([[-np.inf], [np.inf]]), 0.05)[:, 0]
    T, b, level = problem.forward_matrix() / STD, y / STD, np.sqrt(chdtri(5, 0.05))
    constraints = [
        {"type": "ineq", "fun": lambda q: level**2 - np.sum((T @ q - b) ** 2), "jac": lambda q: -2.0 * T.T @ (T @ q - b)},
        {"type": "ineq", "fun": lambda q: space.ball.radius**2 - q @ L @ q, "jac": lambda q: -2.0 * L @ q},
    ]
    box = list(zip(space.bounds.lower, space.bounds.upper, strict=True))
    for sign, end in ((1.0, ends[1]), (-1.0, -ends[0])):
        options = {"jac": lambda q, s=sign: -s * psi, "constraints": constraints, "bounds": box, "tol": 1e-11}
        primal = minimize(lambda q, s=sign: -s * psi @ q, truth, **options)
        # A point that is feasible to the optimizer's tolerance.
        assert end >= -primal.fun - 1e-5
        assert end <= -primal.fun + 2e-3 * (1.0 + abs(primal.fun))


def test_no_feasible_truth_lies_outside():
    problem = positive(2)
    psi, rng = np.ones(8), np.random.default_rng(0)
    for seed in range(25):
        truth = truth_of(problem, seed)
        e = rng.standard_normal(5)
        y = problem.forward_matrix() @ truth + 0.05 * e / np.linalg.norm(e)
        interval = fc.evidence(problem, fc.Data(y, 0.05)).interval(psi)
        assert interval.contains(psi @ truth)


def test_coverage_and_length_with_positivity():
    problem, free = positive(1), matrix_problem(1, m=5, k=8, radius=3.0)
    psi, truth = np.ones(8), np.zeros(8)
    truth[2] = 0.5
    found, covered, shorter = fc.evidence(problem, data(problem, np.zeros(5))), 0, []
    for trial in range(150):
        y = noisy(problem, truth, trial)
        interval = found.with_data(data(problem, y)).interval(psi)
        covered += interval.contains(psi @ truth)
        shorter.append(interval.half_length / fc.evidence(free, data(free, y)).interval(psi).half_length)
    assert covered >= fewest(150, 0.95)
    assert np.median(shorter) < 0.8
    assert interval.limit is None
    assert "values from 0" in interval.claim


def test_bounds_that_contradict_the_data():
    problem = positive(0, lower=0.0, upper=0.1)
    with pytest.raises(fc.InconsistentError, match="bounds"):
        fc.evidence(problem, data(problem, noisy(problem, -2.0 * np.ones(8), 0))).interval(np.ones(8))
    space = problem.parameters
    for wrong in ({"lower": 1.0, "upper": 0.0}, {"lower": np.zeros(3)}, {"lower": np.nan}):
        with pytest.raises(fc.InputError, match=r"lower"):
            space.within_bounds(**wrong)


def test_positive_sources_on_a_mesh():
    basis = l_shape()
    x = basis.doflocs
    truth = np.exp(-((x[0] + 0.5) ** 2 + (x[1] + 0.5) ** 2) / 0.05)
    lengths = []
    for positive_ in (False, True):
        space = fc.FullSpace(basis).within_ball(3.0, norm="h1")
        space = space.within_bounds(lower=0.0) if positive_ else space
        problem = source(basis, parameters=space, sensors=12)
        y = noisy(problem, truth, 0, 1e-3)
        interval = fc.evidence(problem, data(problem, y, 1e-3)).interval(lambda x: x[0] > 0.3)
        assert interval.contains(fc.Mean(basis, lambda x: x[0] > 0.3).value(space, truth))
        lengths.append(interval.half_length)
    assert lengths[1] < 0.8 * lengths[0]
