"""Truths within bounds: intervals from dual points, never shorter than what feasible truths allow."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from evidence_helpers import STD, data, fewest, form, matrix_problem, noisy
from scipy.optimize import linprog, minimize
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


BOUNDS = [{"lower": 0.0}, {"lower": -0.2, "upper": 0.5}, {"upper": 0.1}]


def constraints(problem, values):
    """The cones of truths that explain the data, as functions that are not negative, with gradients."""
    T, b, square, L = problem.forward_matrix() / STD, values / STD, chdtri(5, 0.05), form(problem)
    rho = problem.parameters.ball.radius
    return [
        {"type": "ineq", "fun": lambda q: square - np.sum((T @ q - b) ** 2), "jac": lambda q: -2.0 * T.T @ (T @ q - b)},
        {"type": "ineq", "fun": lambda q: rho**2 - q @ L @ q, "jac": lambda q: -2.0 * L @ q},
    ]


def ascended(problem, values, psi, start):
    """The largest value of ``psi . q`` that a general optimizer reaches from a feasible start."""
    bounds = problem.parameters.bounds
    box = list(zip(bounds.lower, bounds.upper, strict=True))
    options = {"jac": lambda q: -psi, "constraints": constraints(problem, values), "bounds": box, "tol": 1e-11}
    return -minimize(lambda q: -psi @ q, start, **options).fun


def between_planes(problem, values, psi):
    """The largest value of ``psi . q`` between planes that touch the cones (linear programs), from above."""
    space, L = problem.parameters, form(problem)
    T, b, level, rho = problem.forward_matrix() / STD, values / STD, np.sqrt(chdtri(5, 0.05)), space.ball.radius
    most = rho / np.sqrt(np.linalg.eigvalsh(L)[0])
    lower, upper = np.maximum(space.bounds.lower, -most), np.minimum(space.bounds.upper, most)
    rows, right = [T[0]], [1e6]
    for _ in range(400):
        q = linprog(-psi, np.array(rows), np.array(right), bounds=np.stack([lower, upper], axis=1)).x
        misfit, size = T @ q - b, np.sqrt(q @ L @ q)
        normal = misfit / np.linalg.norm(misfit)
        rows += [T.T @ normal, L @ q / size]
        right += [level + normal @ b, rho]
        if np.linalg.norm(misfit) <= level * (1.0 + 1e-7) and size <= rho * (1.0 + 1e-7):
            return psi @ q
    raise AssertionError("no convergence")


def strict_end(problem, values, psi):
    """The upper end of the library at 95 %, from a dual point."""
    found = fc.evidence(problem, data(problem, values))
    level = found.law.size(5, 0.05)
    return found._strict.ends(csc_matrix(psi[:, None]), found._values, level, np.zeros((5, 1)))[1, 0]


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("seed", range(4))
def test_dual_bounds_are_the_primal_ones(seed, bounds):
    problem = positive(seed, **bounds)
    psi, truth = np.random.default_rng(seed).standard_normal(8), truth_of(problem, seed)
    y = noisy(problem, truth, seed)
    for sign in (1.0, -1.0):
        end, primal = strict_end(problem, y, sign * psi), ascended(problem, y, sign * psi, truth)
        # Points are feasible to the tolerance of the optimizer.
        assert -1e-5 <= end - primal <= 1e-5


@pytest.mark.parametrize("bounds", BOUNDS)
def test_no_ascent_from_feasible_starts_exceeds_a_dual_bound(bounds):
    """100 starts, brought back into the set exactly; the gap is at most 1e-6."""
    problem = positive(5, **bounds)
    space, psi, truth = problem.parameters, np.random.default_rng(5).standard_normal(8), truth_of(problem, 5)
    y = noisy(problem, truth, 5)
    cones = constraints(problem, y)

    def inside(q):
        q = np.clip(q, space.bounds.lower, space.bounds.upper)
        share = next(t for t in (0.0, *np.geomspace(1e-14, 1.0, 200)) if all(
            cone["fun"](truth + (1.0 - t) * (q - truth)) >= 0.0 for cone in cones))  # fmt: skip
        return truth + (1.0 - share) * (q - truth)

    end, reached = strict_end(problem, y, psi), []
    for seed in range(100):
        start = inside(truth_of(problem, 1000 + seed))
        bounds_ = list(zip(space.bounds.lower, space.bounds.upper, strict=True))
        options = {"jac": lambda q: -psi, "constraints": cones, "bounds": bounds_, "tol": 1e-10}
        reached.append(psi @ inside(minimize(lambda q: -psi @ q, start, **options).x))
    assert max(reached) <= end <= max(reached) + 1e-6 * (1.0 + abs(end))


@pytest.mark.parametrize("bounds", BOUNDS)
def test_a_second_solver_finds_the_same_bounds(bounds):
    problem = positive(6, **bounds)
    psi, y = np.random.default_rng(6).standard_normal(8), noisy(problem, truth_of(problem, 6), 6)
    assert strict_end(problem, y, psi) == pytest.approx(between_planes(problem, y, psi), abs=1e-5)


def test_model_error_and_centre_count():
    """The same truths in other words: an error of the model is a coordinate more, and a centre moves all."""
    plain = positive(7)
    E, psi = np.random.default_rng(7).standard_normal((5, 2)) * 0.1, np.arange(1.0, 9.0)
    y = noisy(plain, truth_of(plain, 7), 7)
    wide = fc.evidence(plain, data(plain, y).with_model_error(matrix=E, size=1.0))
    ends = wide._strict.ends(csc_matrix(psi[:, None]), wide._values, wide.law.size(5, 0.05), np.zeros((5, 1)))
    largest = -np.inf
    for angle in np.linspace(0.0, 2.0 * np.pi, 41):
        # Some of the errors that are possible, each known.
        shifted = y - E @ (np.cos(angle), np.sin(angle))
        if _possible(plain, shifted):
            largest = max(largest, ascended(plain, shifted, psi, truth_of(plain, 7)))
    assert largest <= ends[1, 0] <= largest + 0.02 * abs(largest)
    centre = np.full(8, 0.1)
    space = plain.parameters.within_ball(3.0, norm=plain.parameters.ball.matrix, centre=centre)
    moved = fc.MatrixProblem(operator=np.eye(8), load=np.eye(8), observe=plain.forward_matrix(), parameters=space)
    about = fc.evidence(moved, data(moved, y)).interval(psi)
    shifted = plain.parameters.within_bounds(lower=-centre)
    zero = fc.MatrixProblem(operator=np.eye(8), load=np.eye(8), observe=plain.forward_matrix(), parameters=shifted)
    same = fc.evidence(zero, data(zero, y - plain.forward_matrix() @ centre)).interval(psi)
    assert about.lower.value == pytest.approx(same.lower.value + psi @ centre, abs=1e-6)
    assert about.upper.value == pytest.approx(same.upper.value + psi @ centre, abs=1e-6)


def _possible(problem, values):
    found = fc.evidence(problem, data(problem, values))
    try:
        found._strict.ends(csc_matrix(np.ones((8, 1))), found._values, found.law.size(5, 0.05), np.zeros((5, 1)))
    except fc.InconsistentError:
        return False
    return True


@pytest.mark.parametrize("seed", range(4))
def test_the_limit_is_that_of_two_truths(seed):
    """Affine intervals are valid, of fixed length, and so not below it; wide bounds leave the limit of the ball."""
    free = matrix_problem(seed, m=5, k=8, radius=3.0)
    psi = np.random.default_rng(seed).standard_normal(8)
    problems = (free, positive(seed, lower=-50.0), positive(seed))
    limits = [fc.evidence(problem, data(problem, np.zeros(5))).interval(psi) for problem in problems]
    ball, wide, sharp = (each.limit.value for each in limits)
    assert wide == pytest.approx(ball, rel=1e-4)
    assert 0.0 < sharp <= ball
    assert sharp <= limits[0].half_length


def test_what_the_bounds_say_themselves_is_exact():
    problem = positive(3, lower=0.0, upper=0.25)
    interval = fc.evidence(problem, data(problem, np.zeros(5), std=1e3)).interval(np.eye(8)[0])
    assert interval.lower.value == 0.0
    assert interval.upper.value == pytest.approx(0.25, rel=1e-12)
    assert interval.upper.value >= 0.25


def test_clarabel_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    problem = positive(0)
    with pytest.raises(fc.InputError, match=r"femcert\[bounds\]"):
        fc.evidence(problem, data(problem, np.zeros(5))).interval(np.ones(8))


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
    assert interval.limit.value > 0.0
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
