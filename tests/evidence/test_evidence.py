"""Intervals for functionals: they hold, they are the shortest affine ones, and close to the limit of all procedures."""

from __future__ import annotations

import numpy as np
import pytest
from evidence_helpers import STD, best_of, data, fewest, form, matrix_problem, noisy, on_sphere
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.sparse import csc_matrix, csr_matrix
from scipy.special import chdtri
from scipy.stats import norm
from skfem import Basis, ElementLineP1, ElementTriP1, MeshLine
from zoo import l_shape, source

import femcert as fc
from femcert.problem.noise import folded_quantile

TRIALS = 400


def psi_of(problem, seed=3):
    return np.random.default_rng(seed).standard_normal(problem.parameters.dimension)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("std", [0.01, 0.3])
def test_the_worst_truth_of_the_ball_is_covered(seed, std):
    problem = matrix_problem(seed)
    psi = psi_of(problem)
    found = fc.evidence(problem, data(problem, np.zeros(7), std))
    weights = found._weights(csc_matrix(psi[:, None]), np.zeros(1), 0.05)[0].weights[:, 0]
    # The truth with the largest bias of the very weights that are used.
    truth = on_sphere(problem, problem.forward_matrix().T @ (weights / std) - psi)
    covered = 0
    for trial in range(TRIALS):
        interval = found.with_data(data(problem, noisy(problem, truth, trial, std), std)).interval(psi)
        covered += interval.contains(psi @ truth)
    assert covered >= fewest(TRIALS, 0.95, 6)


@pytest.mark.parametrize("std", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_no_other_affine_weights_are_shorter(seed, std):
    problem = matrix_problem(seed)
    psi, L, radius = psi_of(problem), form(problem), problem.parameters.ball.radius
    T = problem.forward_matrix() / std
    interval = fc.evidence(problem, data(problem, np.zeros(7), std)).interval(psi)

    def half(a):
        rest = T.T @ a - psi
        size = max(np.linalg.norm(a), 1e-12)
        bias = radius * np.sqrt(rest @ np.linalg.solve(L, rest))
        return float(folded_quantile(bias / size, 0.05) * size)

    rng = np.random.default_rng(0)
    found = best_of(half, [0.1 * std * rng.standard_normal(7) for _ in range(6)])
    assert interval.half_length <= found * (1.0 + 1e-6)
    assert interval.half_length == pytest.approx(found, rel=1e-3)


@pytest.mark.parametrize("std", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_limit_is_the_largest_value_that_the_data_cannot_tell_from_its_negative(seed, std):
    problem = matrix_problem(seed)
    psi, L, radius = psi_of(problem), form(problem), problem.parameters.ball.radius
    T, apart = problem.forward_matrix() / std, norm.ppf(0.95)
    interval = fc.evidence(problem, data(problem, np.zeros(7), std)).interval(psi)
    constraints = [
        {"type": "ineq", "fun": lambda q: apart**2 - np.sum((T @ q) ** 2), "jac": lambda q: -2.0 * T.T @ (T @ q)},
        {"type": "ineq", "fun": lambda q: radius**2 - q @ L @ q, "jac": lambda q: -2.0 * L @ q},
    ]
    found = minimize(lambda q: -psi @ q, np.zeros(len(psi)), jac=lambda q: -psi, constraints=constraints, tol=1e-12)
    assert interval.limit.side == "lower"
    assert interval.limit.value <= -found.fun * (1.0 + 1e-6)
    assert interval.limit.value == pytest.approx(-found.fun, rel=1e-4)
    # Armstrong and Kolesar: at most 1.19 for 95 %; and never below the limit.
    assert 1.0 <= interval.half_length / interval.limit.value <= 1.20


def test_without_bias_it_is_the_interval_of_least_squares():
    problem = matrix_problem(radius=None, m=9, k=4)
    psi, truth = np.arange(1.0, 5.0), np.ones(4)
    y = noisy(problem, truth, 0)
    interval = fc.evidence(problem, data(problem, y)).interval(psi)
    A = problem.forward_matrix() / STD
    covariance = np.linalg.inv(A.T @ A)
    assert interval.deviation == pytest.approx(np.sqrt(psi @ covariance @ psi), rel=1e-10)
    assert interval.estimate == pytest.approx(psi @ np.linalg.lstsq(A, y / STD)[0], rel=1e-10)
    assert interval.half_length == pytest.approx(norm.ppf(0.975) * interval.deviation, rel=1e-9)
    assert interval.limit.value == pytest.approx(norm.ppf(0.95) * interval.deviation, rel=1e-6)
    # All functionals at once: Scheffe's factor.
    joint = fc.evidence(problem, data(problem, y)).interval(psi, simultaneous=True)
    assert joint.half_length == pytest.approx(np.sqrt(chdtri(4, 0.05)) * interval.deviation, rel=1e-9)


def test_simultaneous_intervals_hold_for_functionals_that_are_chosen_by_the_noise():
    problem = matrix_problem(1)
    truth, A = on_sphere(problem, psi_of(problem)), problem.forward_matrix()
    found, covered = fc.evidence(problem, data(problem, np.zeros(7))), 0
    alone = 0
    for trial in range(200):
        y = noisy(problem, truth, trial)
        # The functional that this noise moves most.
        psi = A.T @ (y - A @ truth)
        new = found.with_data(data(problem, y))
        covered += new.interval(psi, simultaneous=True).contains(psi @ truth)
        alone += new.interval(psi).contains(psi @ truth)
    assert covered >= fewest(200, 0.95)
    # What the choice does to an interval for a functional that was fixed before.
    assert alone < 0.8 * 200


def test_a_table_is_wider_than_its_rows_alone_and_covers_together():
    problem = matrix_problem(2)
    rows = [psi_of(problem, seed) for seed in range(5)]
    truth = on_sphere(problem, rows[0])
    found = fc.evidence(problem, data(problem, np.zeros(7)))
    together = 0
    for trial in range(200):
        table = found.with_data(data(problem, noisy(problem, truth, trial))).table(rows)
        together += all(interval.contains(psi @ truth) for psi, interval in zip(rows, table, strict=True))
    assert together >= fewest(200, 0.95)
    assert all(a.half_length > found.interval(psi).half_length for a, psi in zip(table, rows, strict=True))
    assert table.confidence == pytest.approx(0.95)


def test_a_noise_level_gives_an_interval_for_sure():
    problem = matrix_problem(0)
    psi = psi_of(problem)
    truth = on_sphere(problem, psi)
    rng = np.random.default_rng(0)
    for _ in range(50):
        e = rng.standard_normal(7)
        y = problem.forward_matrix() @ truth + 0.1 * e / np.linalg.norm(e)
        interval = fc.evidence(problem, fc.Data(y, 0.1)).interval(psi)
        assert interval.contains(psi @ truth)
        assert interval.confidence == 1.0


def test_directions_that_nothing_bounds():
    problem = source(
        l_shape(), parameters=lambda basis: fc.FullSpace(basis).within_ball(1.0, norm="h1-seminorm"), sensors=12
    )
    basis = problem.basis
    found = fc.evidence(problem, data(problem, np.zeros(12), 0.01))
    assert np.isfinite(found.interval(fc.Mean(basis)).half_length)
    # A constant more is seen, so that truths of any mean are covered.
    truth = 50.0 + np.sin(np.pi * basis.doflocs[0]) / 10.0
    y = problem.forward.apply(truth[:, None])[:, 0]
    west = fc.Mean(basis, lambda x: x[0] < 0.0)
    assert found.with_data(data(problem, y, 0.01)).interval(west).contains(west.value(problem.parameters, truth))
    # Sensors that see no constant leave the mean open, and differences not.
    blind = fc.MatrixProblem(
        operator=np.eye(3), load=np.eye(3), observe=[[1.0, -1.0, 0.0]], parameters=None
    ).parameters.within_ball(1.0, norm=fc_chain())
    seen = fc.MatrixProblem(operator=np.eye(3), load=np.eye(3), observe=[[1.0, -1.0, 0.0]], parameters=blind)
    open_, closed = fc.evidence(seen, data(seen, [0.3], 0.01)).table([np.ones(3), [0.0, 1.0, -1.0]])
    assert np.isfinite(closed.half_length)
    assert open_.half_length > 1e3 * closed.half_length


def fc_chain():
    """Differences of neighbours, and next to nothing of the mean."""
    D = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    return csr_matrix(D.T @ D + 1e-8 * np.eye(3))


def test_the_prediction_of_a_noisy_reading():
    problem = matrix_problem(0)
    psi, truth = psi_of(problem), on_sphere(matrix_problem(0), psi_of(problem))
    found = fc.evidence(problem, data(problem, np.zeros(7)))
    covered, rng = 0, np.random.default_rng(1)
    for trial in range(TRIALS):
        new = found.with_data(data(problem, noisy(problem, truth, trial)))
        interval = new.interval(fc.Prediction(psi, std=0.8))
        covered += interval.contains(psi @ truth + 0.8 * rng.standard_normal())
    assert covered >= fewest(TRIALS, 0.95)
    exact = found.interval(fc.Prediction(psi))
    assert exact.half_length < interval.half_length < exact.half_length + 1.96 * 0.8
    assert interval.limit is None


@pytest.mark.parametrize("law", ["gaussian", "level"])
def test_p_values_are_at_least_uniform_and_the_least_norm_is_at_most_that_of_the_truth(law):
    problem = matrix_problem(3)
    truth = 0.8 * on_sphere(problem, psi_of(problem))
    small, above = 0, 0
    for trial in range(TRIALS):
        y = noisy(problem, truth, trial)
        level = float(np.linalg.norm(y - problem.forward_matrix() @ truth))
        made = data(problem, y) if law == "gaussian" else fc.Data(y, level)
        found = fc.evidence(problem, made)
        small += found.p_value < 0.05
        above += found.least_norm.value > 0.8 * problem.parameters.ball.radius
    assert small <= TRIALS - fewest(TRIALS, 0.95) if law == "gaussian" else small == 0
    assert above <= TRIALS - fewest(TRIALS, 0.95) if law == "gaussian" else above == 0


def test_least_norm_and_misfit_are_those_of_ridge_regression():
    problem = matrix_problem(1)
    y = 40.0 * np.ones(7)
    found = fc.evidence(problem, data(problem, y))
    T, L, b = problem.forward_matrix() / STD, form(problem), y / STD
    K = T @ np.linalg.solve(L, T.T)

    def ridge(mu):
        a = np.linalg.solve(K + np.eye(7) * mu, b)
        q = np.linalg.solve(L, T.T @ a)
        return np.sqrt(q @ L @ q), np.linalg.norm(T @ q - b)

    grid = [ridge(mu) for mu in np.geomspace(1e-8, 1e8, 40001)]
    level = np.sqrt(chdtri(7, 0.05))
    least = min(size for size, misfit in grid if misfit <= level)
    assert found.least_norm.value == pytest.approx(least, rel=1e-3)
    assert found.least_norm.value <= least
    misfit = min(misfit for size, misfit in grid if size <= problem.parameters.ball.radius)
    assert found._misfit == pytest.approx(misfit, rel=1e-3)
    assert found.p_value < 1e-6


def test_the_breakdown_is_the_radius_at_which_the_interval_reaches_the_value():
    problem = matrix_problem(0)
    psi = psi_of(problem)
    truth = on_sphere(problem, psi)
    found = fc.evidence(problem, data(problem, noisy(problem, truth, 0, 0.01), 0.01))
    interval = found.interval(psi)
    broken = found.breakdown(psi, 0.0)
    assert broken.side == "lower"
    # The same weights at another radius: bias grows with it.
    size, unit = interval.deviation, interval.bias / problem.parameters.ball.radius
    reached = folded_quantile(broken.value * unit / size, 0.05) * size
    assert reached == pytest.approx(abs(interval.estimate), rel=1e-5)
    assert found.breakdown(psi, interval.estimate).value == 0.0
    # Truths of a smaller norm on the other side of the value are rarely contradicted.
    other = truth - psi * (psi @ truth) / (psi @ psi)
    norm_of = np.sqrt(other @ form(problem) @ other)
    wrong = sum(
        fc_broken.value > norm_of
        for fc_broken in (
            found.with_data(data(problem, noisy(problem, other, trial, 0.01), 0.01)).breakdown(psi, 0.0)
            for trial in range(200)
        )
    )
    assert wrong <= 200 - fewest(200, 0.95)


def test_other_data_give_what_a_new_evidence_gives():
    problem = matrix_problem(0)
    psi, y = psi_of(problem), noisy(problem, np.ones(15), 1)
    first = fc.evidence(problem, data(problem, np.zeros(7)))
    first.interval(psi)
    again, fresh = first.with_data(data(problem, y)), fc.evidence(problem, data(problem, y))
    assert again.interval(psi).estimate == fresh.interval(psi).estimate
    with pytest.raises(fc.InputError, match="noise"):
        first.with_data(data(problem, y, 0.1))


def test_the_centre_of_a_ball_moves_with_everything():
    centre = np.linspace(0.0, 2.0, 15)
    about, zero = matrix_problem(0, centre=centre), matrix_problem(0)
    psi, y = psi_of(zero), noisy(zero, np.ones(15), 0)
    moved = y + zero.forward_matrix() @ centre
    one, other = fc.evidence(zero, data(zero, y)).interval(psi), fc.evidence(about, data(about, moved)).interval(psi)
    assert_allclose(other.estimate, one.estimate + psi @ centre, rtol=1e-9)
    assert_allclose(other.half_length, one.half_length, rtol=1e-9)


def test_the_class_does_not_depend_on_the_unit_of_length():
    intervals = []
    for scale in (1.0, 1000.0):
        mesh = l_shape().mesh
        basis = Basis(mesh.scaled(scale), ElementTriP1())
        space = fc.FullSpace(basis).within_ball(1.3 * scale, norm="h1", length=0.2 * scale)
        points = scale * np.array([[-0.5, -0.5], [-0.5, 0.4], [0.5, -0.5], [-0.2, -0.7]])
        sensors = fc.AverageSensors(basis, points, radius=0.1 * scale)
        problem = fc.EllipticSource(basis, parameters=space, sensors=sensors, conductivity=scale**2)
        made = data(problem, [0.01, 0.02, 0.01, 0.02], 1e-3)
        intervals.append(fc.evidence(problem, made).interval(lambda x: x[0] < 0.0))
    one, other = intervals
    assert_allclose([one.estimate, one.half_length], [other.estimate, other.half_length], rtol=1e-8)



@settings(max_examples=40, deadline=None)
@given(st.floats(0.0, 50.0), st.floats(1e-9, 0.5))
def test_the_folded_quantile(shift, zeta):
    c = float(folded_quantile(shift, zeta))
    outside = norm.sf(c - shift) + norm.cdf(-c - shift)
    assert outside <= zeta * (1.0 + 1e-9)
    assert outside >= zeta * (1.0 - 1e-6)


def test_regions_and_refutation():
    basis = l_shape()
    problem = source(basis, parameters=lambda b: fc.FullSpace(b).within_ball(3.0), sensors=30)
    truth = np.exp(-((basis.doflocs[0] + 0.5) ** 2 + (basis.doflocs[1] + 0.5) ** 2) / 0.1)
    std = 1e-3
    y = noisy(problem, truth, 0, std)
    found = fc.evidence(problem, data(problem, y, std))
    west = fc.Mean(basis, lambda x: (x[0] < 0) & (x[1] < 0), name="south-west")
    regions = [west, fc.Value(basis, [0.5, -0.5], radius=0.4)]
    good = fc.Candidate(problem.solve(truth), truth, name="truth")
    invented = truth + 8.0 * np.exp(-((basis.doflocs[0] - 0.5) ** 2 + (basis.doflocs[1] + 0.5) ** 2) / 0.03)
    bad = fc.Candidate(problem.solve(invented), invented, name="invented")
    assert not found.refute(good, regions)
    refuted = found.refute(bad, regions)
    assert refuted
    assert [interval.name for interval in refuted.refuted] == ["about (0.5, -0.5)"]
    assert "the data allow" in refuted.reason
    with pytest.raises(fc.InputError, match="another mesh"):
        found.interval(fc.Mean(l_shape(1)))
    with pytest.raises(fc.InputError, match="no element"):
        found.interval(lambda x: x[0] > 5.0)


def test_what_cannot_be_asked():
    wide = matrix_problem(radius=None)
    with pytest.raises(fc.UncertifiedError, match="ball"):
        fc.evidence(wide, data(wide, np.zeros(7)))
    problem = matrix_problem(radius=None, m=9, k=4)
    found = fc.evidence(problem, data(problem, np.zeros(9)))
    for question in (lambda: found.least_norm, lambda: found.breakdown(np.ones(4), 0.0)):
        with pytest.raises(fc.UncertifiedError, match="ball"):
            question()
    with pytest.raises(fc.InputError, match="guarantee"):
        fc.evidence(problem, data(problem, np.zeros(9)), guarantee="certain")
    with pytest.raises(fc.InputError, match="functionals"):
        found.table([])


def test_a_region_without_elements_is_called_by_its_name():
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, 5)), ElementLineP1())
    for region in (lambda x: x[0] > 2.0, []):
        with pytest.raises(fc.InputError, match="the region 'lung' has no element"):
            fc.Mean(basis, np.array(region, int) if region == [] else region, name="lung")


def test_a_table_says_that_the_data_contradict_the_class(tmp_path):
    # As many data as coordinates, so that the class cannot explain noise that is ten times as large as stated.
    problem = matrix_problem(1, m=15, k=5)
    truth = on_sphere(problem, psi_of(problem))
    right = fc.evidence(problem, data(problem, noisy(problem, truth, 2, STD))).table([np.ones(5)])
    wrong = fc.evidence(problem, data(problem, noisy(problem, truth, 2, 10.0 * STD))).table([np.ones(5)])
    assert "contradict" not in str(right)
    assert "the data contradict class, model or noise (p-value" in str(wrong)
    wrong.save(tmp_path / "table.csv")
    assert "contradict" in (tmp_path / "table.csv").read_text(encoding="utf-8")
