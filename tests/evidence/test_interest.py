"""Nuisance coordinates: the intervals are those of the data that the nuisance does not reach."""

from __future__ import annotations

import numpy as np
import pytest
from evidence_helpers import STD, data, fewest, matrix_problem, noisy
from scipy.linalg import null_space
from scipy.sparse import csr_matrix
from zoo import l_shape, source

import femcert as fc


def with_nuisance(seed=0, m=7, k=10, nuisance=2, radius=2.0):
    """A ball of all coordinates but the last ones."""
    problem = matrix_problem(seed, m=m, k=k, radius=radius)
    ball, space = problem.parameters.ball, matrix_problem(seed, m=m, k=k, radius=None).parameters
    part = space.interest(slice(0, k - nuisance), free=True).within_ball(radius, norm=ball.matrix)
    observe = problem.forward_matrix()
    return fc.MatrixProblem(operator=np.eye(k), load=np.eye(k), observe=observe, parameters=part), ball.matrix


@pytest.mark.parametrize("seed", range(4))
def test_free_nuisance_is_what_combinations_of_the_data_do_not_see(seed):
    """The same as eliminating it: data in the null space of its columns, and the ball of the rest."""
    problem, L = with_nuisance(seed)
    y, psi = np.random.default_rng(seed).standard_normal(7), np.random.default_rng(seed + 9).standard_normal(8)
    F = problem.forward_matrix()
    Z = null_space(F[:, 8:].T)
    rest = fc.CoordinateSpace(8).within_ball(2.0, norm=csr_matrix(L.toarray()[:8, :8]))
    apart = fc.MatrixProblem(operator=np.eye(8), load=np.eye(8), observe=Z.T @ F[:, :8], parameters=rest)
    one, other = fc.evidence(problem, data(problem, y)), fc.evidence(apart, data(apart, Z.T @ y))
    left, right = one.interval(psi), other.interval(psi)
    assert left.estimate == pytest.approx(right.estimate, rel=1e-6, abs=1e-8)
    assert left.half_length == pytest.approx(right.half_length, rel=1e-6)
    assert left.limit.value == pytest.approx(right.limit.value, rel=1e-6)
    assert one.p_value == pytest.approx(other.p_value, rel=1e-6)
    assert one.least_norm.value == pytest.approx(other.least_norm.value, rel=1e-6, abs=1e-12)
    assert "8 of 10 coordinates asked for" in left.claim


def test_coverage_with_large_nuisance():
    problem, L = with_nuisance(1)
    space, psi, covered = problem.parameters, np.linspace(-1.0, 1.0, 8), 0
    truth = np.concatenate([0.2 * np.ones(8), [80.0, -50.0]])
    assert 0.0 < space.ball_norm(truth) == pytest.approx(np.sqrt(truth[:8] @ L.toarray()[:8, :8] @ truth[:8]))
    assert space.ball_norm(truth) <= 2.0
    found = fc.evidence(problem, data(problem, np.zeros(7)))
    for trial in range(200):
        interval = found.with_data(data(problem, noisy(problem, truth, trial))).interval(psi)
        covered += interval.contains(psi @ truth[:8])
    assert covered >= fewest(200, 0.95)


def test_functionals_see_the_part_only():
    """Of three modes the first two are asked for: a mean is that of their field, the third is in no interval."""
    basis = l_shape()
    whole = source(basis, parameters=fc.EigenmodeSpace(basis, 3))
    space = whole.parameters.interest([0, 1])
    problem = source(basis, parameters=space)
    c, mean = np.array([0.5, -0.2, 3.0]), fc.Mean(basis, lambda x: x[0] > 0.0)
    field = space.field(np.array([0.5, -0.2, 0.0]))
    assert mean.value(space, space.field(c)) == pytest.approx(mean.value(whole.parameters, field), rel=1e-10)
    y = whole.observe(whole.solve(space.field(c))) + STD * np.random.default_rng(0).standard_normal(6)
    found, all_of_it = (fc.evidence(each, data(each, y)) for each in (problem, whole))
    assert found.interval([1.0, 0.0]).half_length == pytest.approx(all_of_it.interval([1.0, 0.0, 0.0]).half_length)
    assert found.interval(mean).contains(mean.value(space, space.field(c)))
    candidate = fc.Candidate.from_coefficients(problem, c)
    assert not found.refute(candidate, [mean])
    with pytest.raises(fc.InputError, match="coordinates of interest"):
        found.interval([1.0, 0.0, 0.0])


def test_a_ball_of_everything_still_binds_the_nuisance():
    problem = matrix_problem(2)
    part = problem.parameters.interest(np.arange(5))
    asked = fc.MatrixProblem(operator=np.eye(15), load=np.eye(15), observe=problem.forward_matrix(), parameters=part)
    y, psi = noisy(problem, np.zeros(15), 0), np.arange(1.0, 6.0)
    one = fc.evidence(asked, data(asked, y)).interval(psi)
    other = fc.evidence(problem, data(problem, y)).interval(np.concatenate([psi, np.zeros(10)]))
    assert one.half_length == pytest.approx(other.half_length, rel=1e-12)
    assert one.estimate == pytest.approx(other.estimate, rel=1e-9)


def test_what_is_no_part_is_refused():
    space = fc.CoordinateSpace(4)
    for wrong in ([], [7], "name", None, slice(4, 9), [True, False]):
        with pytest.raises(fc.InputError, match="part"):
            space.interest(wrong)
    problem, _ = with_nuisance()
    with pytest.raises(fc.UncertifiedError, match="free"):
        _ = problem.parameters.ball_form


def test_nuisance_that_the_data_do_not_determine_leaves_the_ball():
    problem, L = with_nuisance(3, m=2, nuisance=3)
    largest = 2.0 * np.sqrt(np.linalg.solve(L.toarray()[:7, :7], np.ones(7)).sum())
    interval = fc.evidence(problem, data(problem, np.array([1.0, -1.0]))).interval(np.ones(7))
    assert interval.half_length == pytest.approx(largest, rel=1e-9)
    assert interval.estimate == pytest.approx(0.0, abs=1e-9)
