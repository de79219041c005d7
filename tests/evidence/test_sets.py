"""What truths may be beside members of a span or ball: remainders, model errors, sizes that samples give."""

from __future__ import annotations

import numpy as np
import pytest
from evidence_helpers import STD, data, fewest, matrix_problem, noisy, span_problem
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.stats import betabinom
from zoo import l_shape

import femcert as fc
from femcert.linalg.outside import largest_outside
from femcert.problem.constraints import conformal_quantile
from femcert.problem.noise import folded_quantile

TRIALS = 400


def test_a_remainder_is_a_ball_of_what_is_orthogonal_to_the_columns():
    problem, tau, std = span_problem(0.7), 0.7, 0.3
    space, T = problem.parameters, problem.forward.apply(np.eye(12)) / 0.3
    psi = np.arange(12.0)
    interval = fc.evidence(problem, data(problem, np.zeros(9), std)).interval(fc.Prediction(psi))
    # The same with an orthonormal basis of the complement, by a general optimizer.
    W = space.weight.toarray()
    Z = np.linalg.svd((W @ space.matrix).T)[2][4:].T
    Z = Z @ np.linalg.inv(np.linalg.cholesky(Z.T @ W @ Z)).T
    A, start = T @ space.matrix, None

    def half(a):
        size = np.linalg.norm(a)
        return float(folded_quantile(tau * np.linalg.norm(Z.T @ (T.T @ a - psi)) / size, 0.05) * size)

    unbiased = {"type": "eq", "fun": lambda a: A.T @ a - space.matrix.T @ psi}
    start = np.linalg.lstsq(A.T, space.matrix.T @ psi)[0]
    found = minimize(half, start, constraints=unbiased, tol=1e-10)
    assert interval.half_length == pytest.approx(found.fun, rel=1e-3)
    # The truth of the class with the largest bias is covered.
    weights = found.x
    w = Z @ (Z.T @ (T.T @ weights - psi))
    truth = space.matrix @ np.full(4, 30.0) + tau * w / np.sqrt(w @ W @ w)
    covered, first = 0, fc.evidence(problem, data(problem, np.zeros(9), std))
    for trial in range(TRIALS):
        new = first.with_data(data(problem, noisy(problem, truth, trial, std), std))
        covered += new.interval(fc.Prediction(psi)).contains(psi @ truth)
    assert covered >= fewest(TRIALS, 0.95)


def test_model_errors_are_counted_beside_the_noise():
    problem = matrix_problem(0)
    psi, E = np.ones(15), np.random.default_rng(1).standard_normal((7, 2))
    first = data(problem, np.zeros(7)).with_model_error(matrix=E, size=0.5)
    found = fc.evidence(problem, first)
    interval, alone = found.interval(psi), fc.evidence(problem, data(problem, np.zeros(7))).interval(psi)
    assert interval.half_length > alone.half_length
    assert 0.0 < interval.model < interval.bias
    assert interval.limit.value <= interval.half_length
    assert first.noise_level == pytest.approx(
        data(problem, np.zeros(7)).noise_level + 0.5 * np.linalg.norm(E / STD, 2), rel=1e-10
    )
    covered, without = 0, 0
    rng = np.random.default_rng(2)
    ball = problem.parameters.ball
    for _ in range(TRIALS):
        w, direction = rng.standard_normal(2), rng.standard_normal(15)
        truth = direction * ball.radius / problem.parameters.ball_norm(direction)
        y = problem.forward_matrix() @ truth + 0.5 * E @ w / np.linalg.norm(w) + STD * rng.standard_normal(7)
        new = found.with_data(first.with_values(y))
        covered += new.interval(psi).contains(psi @ truth)
        assert new.p_value > 1e-4
        without += fc.evidence(problem, data(problem, y)).p_value < 0.05
    assert covered >= fewest(TRIALS, 0.95)
    # Without it the data contradict the class far more often than noise would.
    assert without > 0.5 * TRIALS


@pytest.mark.parametrize("count", [60, 200])
def test_sampled_model_errors_cover_with_the_sum_of_the_levels(count):
    problem = matrix_problem(0)
    rng, psi = np.random.default_rng(3), np.ones(15)
    mixing, mean = rng.standard_normal((7, 3)) * 0.4, np.linspace(0.0, 1.0, 7)

    def errors(n):
        return mean + (rng.standard_t(5, (n, 3)) @ mixing.T) + 0.02 * rng.standard_normal((n, 7))

    truth = np.zeros(15)
    covered, trials = 0, 120
    for _ in range(trials):
        y = errors(1)[0] + STD * rng.standard_normal(7)
        made = data(problem, y).with_model_error(errors(count), confidence=0.9)
        interval = fc.evidence(problem, made).interval(psi)
        assert interval.confidence == pytest.approx(0.85)
        covered += interval.contains(psi @ truth)
    assert covered >= fewest(trials, 0.85, 2)
    assert "60 samples" in interval.claim or "200 samples" in interval.claim


def test_conformal_quantiles_have_their_level_for_any_law():
    rng, n, trials = np.random.default_rng(0), 40, 1000
    kept = 0
    for _ in range(trials):
        scores = rng.standard_cauchy(n + 1) ** 2
        kept += scores[-1] <= conformal_quantile(scores[:n], 0.9)
    assert abs(kept / trials - 0.9 - 0.01) < 0.04
    # Not wider than necessary: of n + 1 exchangeable scores this rank is exceeded by one tenth.
    assert betabinom.mean(1, n + 1 - 4, 4) == pytest.approx(37 / 41)
    with pytest.raises(fc.InputError, match="at least 9"):
        conformal_quantile(np.ones(8), 0.9)


def test_balls_and_remainders_of_samples():
    basis = l_shape()
    x, rng = basis.doflocs, np.random.default_rng(0)
    samples = np.exp(-((x[0] - rng.uniform(-0.9, -0.1, (60, 1))) ** 2 + (x[1] + 0.5) ** 2) / 0.1)
    full = fc.FullSpace(basis)
    ball = full.within_ball(samples=samples, confidence=0.9, norm="h1", length=0.3)
    sizes = np.sort([np.sqrt(q @ (full.form("h1", 0.3) @ q)) for q in samples])
    assert ball.ball.radius == pytest.approx(sizes[54], rel=1e-12)
    assert (ball.alpha, ball.ball.samples) == (pytest.approx(0.1), 60)
    assert "60 samples" in str(ball)
    span = fc.EigenmodeSpace(basis, 6).with_remainder(samples=samples, confidence=0.9)
    outside = np.sort([span.norm(span.project(q)[1]) for q in samples])
    assert span.remainder.size == pytest.approx(outside[54], rel=1e-12)
    sensors = fc.AverageSensors(basis, np.array([[-0.5, -0.5], [0.5, -0.5], [-0.5, 0.5]]), radius=0.2)
    problem = fc.EllipticSource(basis, parameters=ball, sensors=sensors)
    made = fc.Data.gaussian(np.zeros(3), std=0.01)
    assert fc.evidence(problem, made).interval(fc.Mean(basis)).confidence == pytest.approx(0.85)
    for wrong in ({"radius": 1.0, "samples": samples}, {}, {"samples": samples[:, :3]}, {"samples": samples[:5]}):
        with pytest.raises(fc.InputError, match=r"samples|neither"):
            full.within_ball(**wrong)


@pytest.mark.parametrize("norm", ["h1", "h2", "h1-seminorm", "l2"])
@pytest.mark.parametrize("refined", [1, 3])
def test_what_a_ball_leaves_outside_of_a_span(norm, refined):
    basis = l_shape(refined)
    modes = fc.CosineSpace(basis, 6) if refined == 1 else fc.EigenmodeSpace(basis, 5)
    if norm == "h1-seminorm":
        modes = fc.FunctionSpace(basis, [lambda x: 1.0 + 0.0 * x[0], lambda x: x[0], lambda x: x[1]])
    form, M, B = modes.form(norm).toarray(), modes.weight.toarray(), np.asarray(modes.matrix)
    P = B @ np.linalg.solve(B.T @ M @ B, B.T @ M)
    rest = np.eye(len(M)) - P
    shift = 1e-9 if norm == "h1-seminorm" else 0.0
    exact = np.sqrt(eigh(rest.T @ M @ rest, form + shift * M, eigvals_only=True)[-1])
    found = largest_outside(modes.form(norm), modes.weight, B)
    assert exact * (1.0 - 1e-7) <= found <= exact * (1.0 + 1e-3)
    tau = modes.with_remainder(3.0, norm=norm).remainder.size
    assert tau == pytest.approx(3.0 * found)


def test_a_seminorm_does_not_bound_constants_outside_of_the_span():
    basis = l_shape()
    with pytest.raises(fc.UncertifiedError, match="bound"):
        fc.EigenmodeSpace(basis, 3).with_remainder(1.0, norm="h1-seminorm")


def test_rules_that_do_not_count_a_remainder_say_so():
    problem = span_problem(0.1)
    made = data(problem, np.zeros(9))
    candidate = fc.Candidate.from_coefficients(problem, np.zeros(4))
    with pytest.raises(fc.UncertifiedError, match="remainder"):
        fc.certify(problem, made, candidate, fc.ResidualRadius())


def test_radii_carry_the_probability_of_noise_and_class():
    problem = matrix_problem(radius=None, m=9, k=4)
    candidate = fc.Candidate.from_coefficients(problem, np.zeros(4))
    for confidence in (0.9, 0.99):
        made = fc.Data.gaussian(0.01 * np.ones(9), std=0.05, confidence=confidence)
        assert fc.certify(problem, made, candidate, fc.ResidualRadius()).radius.probability == pytest.approx(confidence)
    guessed = fc.Data.gaussian(0.01 * np.ones(9), std=0.05, relative=0.01)
    assert fc.certify(problem, guessed, candidate, fc.ResidualRadius()).radius.side == "estimate"
