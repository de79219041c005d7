"""Intervals for truths like samples: they hold for every law of truths; the posterior is the one of the textbooks."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from evidence_helpers import STD, data, fewest_conformal, form, matrix_problem
from l_shape_truths import blobs, deviation, discs, l_shape_basis, l_shape_problem, means, readings
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from scipy.sparse import csc_matrix
from scipy.stats import multivariate_normal

import femcert as fc
from femcert.evidence.conformal import Posterior
from femcert.evidence.sights import observed

TRUTHS, SAMPLES = 120, 400


def psi_of(k, n=3, seed=3):
    return np.random.default_rng(seed).standard_normal((k, n))


def posterior_of(problem, made, psi):
    return Posterior(observed(problem.forward, made), csc_matrix(psi))


def dense_posterior(problem, mu, psi, b, free=None, covariance=0.0):
    """By the covariance of functionals and data together; free directions have a huge variance."""
    T = problem.forward_matrix() / STD
    prior = mu * np.linalg.inv(form(problem)) + (0.0 if free is None else free)
    S = np.eye(len(T)) + T @ prior @ T.T + covariance
    gain = psi.T @ prior @ T.T @ np.linalg.inv(S)
    return gain @ b, np.sqrt(np.diag(psi.T @ prior @ psi - gain @ T @ prior @ psi))


def test_it_is_the_posterior_at_the_most_likely_scale():
    problem = matrix_problem(0)
    made, psi = data(problem, np.zeros(7)), psi_of(15)
    posterior = posterior_of(problem, made, psi)
    T = problem.forward_matrix() / STD
    K = T @ np.linalg.solve(form(problem), T.T)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((8, 15)) @ np.linalg.inv(np.linalg.cholesky(form(problem))) @ T.T
    rows += rng.standard_normal((8, 7))
    means_, deviations = posterior(rows)
    scales = posterior.scale(rows @ posterior._basis)
    for b, mean, spread, mu in zip(rows, means_, deviations, scales, strict=True):
        found = minimize_scalar(
            lambda t, b=b: -multivariate_normal.logpdf(b, cov=np.eye(7) + 10.0**t * K),
            bracket=(np.log10(mu) - 1.0, np.log10(mu) + 0.01),
        )
        assert mu == pytest.approx(max(10.0**found.x, posterior.least), rel=1e-4)
        expected = dense_posterior(problem, mu, psi, b)
        assert_allclose(mean, expected[0], rtol=1e-8, atol=1e-10)
        assert_allclose(spread, expected[1], rtol=1e-8)


def test_weak_data_have_a_scale_above_zero():
    problem = matrix_problem(1)
    posterior = posterior_of(problem, data(problem, np.zeros(7)), psi_of(15))
    _, spread = posterior(np.zeros((2, 7)))
    assert np.all(spread > 0.0)
    K = problem.forward_matrix() @ np.linalg.solve(form(problem), problem.forward_matrix().T) / STD**2
    # Then a truth moves the best seen combination of the data by as much as noise does.
    assert posterior.least * np.linalg.norm(K, 2) == pytest.approx(1.0)
    assert posterior.scale(np.zeros((1, 7)))[0] == pytest.approx(posterior.least)


def test_a_model_error_is_noise_and_free_directions_have_no_prior():
    problem = matrix_problem(2)
    E = np.random.default_rng(1).standard_normal((7, 2))
    made, psi = data(problem, np.zeros(7)).with_model_error(matrix=E, size=0.3), psi_of(15)
    posterior, b = posterior_of(problem, made, psi), np.arange(7.0)
    mu = posterior.scale(posterior.known.turned(b)[None] @ posterior._basis)[0]
    expected = dense_posterior(problem, mu, psi, b, covariance=0.3**2 / 2.0 * E @ E.T / STD**2)
    assert_allclose(posterior(b[None])[0][0], expected[0], rtol=1e-8)
    assert_allclose(posterior(b[None])[1][0], expected[1], rtol=1e-8)
    # A span without a ball: least squares, whatever the scale.
    span = matrix_problem(2, m=9, k=4, radius=None)
    flat, b = posterior_of(span, data(span, np.zeros(9)), np.eye(4)), np.arange(9.0)
    A = span.forward_matrix() / STD
    assert_allclose(flat(b[None])[0][0], np.linalg.lstsq(A, b)[0], rtol=1e-9)
    assert_allclose(flat(b[None])[1][0], np.sqrt(np.diag(np.linalg.inv(A.T @ A))), rtol=1e-9)


def heavy(k, count, seed):
    """Truths of no Gaussian law, far outside of the ball at times."""
    rng = np.random.default_rng(seed)
    return rng.standard_t(2, (count, 1)) * (rng.random((count, k)) < 0.2) * 5.0


@pytest.mark.parametrize(
    "kind", ["ball", "centre", "span", "remainder", "relative", "model", "missing", "reading", "values"]
)
def test_coverage_is_exact_over_sets_of_samples(kind):
    """With 19 samples the largest score is the quantile: 95 % of further ones lie below it, on average over sets."""
    trials, k, m = 200, 15, 7
    options = {"span": {"m": 7, "k": 3, "radius": None}, "remainder": {"m": 7, "k": 3, "radius": None}}
    problem = matrix_problem(4, **options.get(kind, {}))
    k = problem.parameters.dimension
    if kind == "centre":
        problem = matrix_problem(4, centre=np.ones(k))
    F, rng = problem.forward_matrix(), np.random.default_rng(0)
    psi = fc.Prediction(psi_of(k)[:, 0], std=2.0 if kind == "reading" else None)
    fields = heavy(k, 20 * trials, 1)
    exact, std, errors = fields @ F.T, np.full((20 * trials, m), STD), np.zeros((20 * trials, m))
    more = {}
    if kind == "relative":
        std, more = np.hypot(0.1 * np.abs(exact), STD), {"relative": 0.1, "reference": 1.0}
    if kind == "model":
        errors = np.sin(3.0 * exact)
    y = exact + errors + std * rng.standard_normal(exact.shape)
    if kind == "values":
        # Nobody has told the library of this model and this noise.
        y = exact + np.sin(3.0 * exact) + 0.3 * rng.standard_t(2, exact.shape) * (1.0 + np.abs(exact))
    reading = psi.std * rng.standard_normal(trials)
    covered = 0
    for trial in range(trials):
        values, one = y[20 * trial].copy(), slice(20 * trial + 1, 20 * trial + 20)
        values[2 if kind == "missing" else m :] = np.nan
        made = fc.Data.gaussian(values, std=STD, **more)
        if kind == "model":
            made = made.with_model_error(matrix=np.eye(m), size=1.0)
        more_of = {"model": {"errors": errors[one]}, "values": {"values": y[one]}}.get(kind, {})
        samples = fc.Samples(fields[one], seed=trial, **more_of)
        interval = fc.evidence(problem, made).interval(psi, samples=samples)
        covered += interval.contains(psi.row @ fields[20 * trial] + reading[trial])
    assert fewest_conformal(trials, 10**6, 0.95, 8) <= covered < trials


@cache
def l_shape(kind, noise):
    """Problem, evidence of 5 % or 1 % noise, further truths."""
    basis = l_shape_basis(4)
    train, unit = kind(basis, 500, 1), fc.FullSpace(basis).within_ball(1.0)
    radius = float(np.quantile([unit.ball_norm(q) for q in train], 0.975))
    problem = l_shape_problem(lambda b: fc.FullSpace(b).within_ball(radius))
    std = deviation(problem, train, noise)
    return problem, fc.evidence(problem, fc.Data.gaussian(readings(problem, train[:1])[0], std=std))


@pytest.mark.parametrize("noise", [0.01, 0.05])
@pytest.mark.parametrize("kind", [blobs, discs])
def test_two_claims_side_by_side(kind, noise):
    problem, found = l_shape(kind, noise)
    basis, space, std = problem.basis, problem.parameters, float(np.sqrt(found.data.covariance[0]))
    asked, truths = means(basis), kind(basis, TRUTHS, 3)
    samples = fc.Samples(kind(basis, SAMPLES, 2))
    values = truths @ np.array([each.weights(space) for each in asked]).T
    y = readings(problem, truths) + std * np.random.default_rng(4).standard_normal((TRUTHS, 33))
    alone, together, lengths = np.zeros(len(asked)), 0, []
    for row, value in zip(y, values, strict=True):
        new = found.with_data(found.data.with_values(row))
        intervals = [new.interval(each, samples=samples) for each in asked]
        inside = [interval.contains(x) for interval, x in zip(intervals, value, strict=True)]
        table = new.table(asked, samples=samples)
        together += all(interval.contains(x) for interval, x in zip(table, value, strict=True))
        alone += inside
        lengths.append([interval.half_length for interval in intervals])
    assert np.all(alone >= fewest_conformal(TRUTHS, SAMPLES, 0.95, 24))
    assert together >= fewest_conformal(TRUTHS, SAMPLES, 0.95, 24)
    mean, every = np.mean(lengths), np.mean([found.interval(each).half_length for each in asked])
    assert mean <= {(blobs, 0.01): 0.018, (blobs, 0.05): 0.06, (discs, 0.01): 0.03}.get((kind, noise), 0.06)
    # What a truth of the ball may do is much more than what such truths do.
    assert every >= 2.0 * mean
    assert_allclose(every, {blobs: 0.091 if noise < 0.02 else 0.134, discs: 0.28}[kind], rtol=0.1)


def test_a_sampled_ball_does_not_count_and_its_number_does_not_matter():
    problem = matrix_problem(0)
    samples = heavy(15, 60, 0)
    norm = problem.parameters.ball.matrix
    space = problem.parameters.within_ball(samples=heavy(15, 40, 5), confidence=0.9, norm=norm)
    sampled = fc.MatrixProblem(operator=np.eye(15), load=np.eye(15), observe=problem.forward_matrix(), parameters=space)
    psi = psi_of(15)[:, 0]
    one, other = (fc.evidence(p, data(p, np.ones(7))).interval(psi, samples=samples) for p in (problem, sampled))
    assert one.confidence == other.confidence == pytest.approx(0.95)
    assert one.half_length == pytest.approx(other.half_length, rel=1e-9)


def test_given_measurements_take_the_place_of_simulated_ones():
    problem = matrix_problem(0)
    values = np.ones(7)
    values[2] = np.nan
    made, drawn = fc.Data.gaussian(values, std=STD), fc.Samples(heavy(15, 60, 0))
    given = np.nan_to_num(drawn.measurements(problem, made))
    found, psi = fc.evidence(problem, made), psi_of(15)[:, 0]
    one, other = (found.interval(psi, samples=each) for each in (drawn, fc.Samples(drawn.fields, values=given)))
    # The last kept quantile is that of other samples.
    again = found.interval(psi, samples=fc.Samples(drawn.fields, values=2.0 * given))
    assert (one.lower.value, one.upper.value) == (other.lower.value, other.upper.value)
    assert again.half_length != other.half_length
    assert other.claim == "in 95 % of measurements of truths like the 60 samples, measured as they are (discrete)"


@pytest.mark.parametrize(
    "made",
    [
        fc.Data(np.ones(7), 0.1),
        fc.Data.gaussian(np.ones(7), std="unknown"),
        fc.Data.gaussian(np.ones(7), relative=0.1, std=STD),
        fc.Data.gaussian(np.ones(7), std=STD).leaving_out([1], 1),
        fc.Data.repeated(np.random.default_rng(0).standard_normal((9, 7)), std=1.0),
        fc.Data.repeated(np.random.default_rng(0).standard_normal((9, 7)), equal=True),
    ],
)
def test_without_a_law_that_was_fixed_before_nothing_is_simulated(made):
    problem = matrix_problem(0)
    with pytest.raises(fc.UncertifiedError, match="simulated from a law"):
        fc.evidence(problem, made).interval(psi_of(15)[:, 0], samples=heavy(15, 60, 0))
    # Their weights depend on the data, so that the scores of samples and data are not alike.
    samples = fc.Samples(heavy(15, 60, 0), values=np.ones((60, 7)))
    with pytest.raises(fc.UncertifiedError, match="simulated from a law"):
        fc.evidence(problem, made).interval(psi_of(15)[:, 0], samples=samples)


def test_what_is_refused():
    problem = matrix_problem(0)
    found, psi = fc.evidence(problem, data(problem, np.ones(7))), psi_of(15)[:, 0]
    with pytest.raises(fc.InputError, match="18 samples give no quantile at 95 %; expected at least 19"):
        found.interval(psi, samples=heavy(15, 18, 0))
    with pytest.raises(fc.InputError, match="fixed before"):
        found.interval(psi, samples=heavy(15, 40, 0), simultaneous=True)
    with pytest.raises(fc.InputError, match="samples have 14 dofs; expected 15"):
        found.interval(psi, samples=heavy(14, 40, 0))
    with pytest.raises(fc.InputError, match="row for each sample"):
        found.interval(psi, samples=np.ones(15))
    with pytest.raises(fc.InputError, match="errors has shape"):
        found.interval(psi, samples=fc.Samples(heavy(15, 40, 0), np.ones((40, 3))))
    with pytest.raises(fc.InputError, match="row for each sample"):
        fc.Samples(heavy(15, 40, 0), np.ones((39, 7)))
    with pytest.raises(fc.InputError, match="values has shape"):
        found.interval(psi, samples=fc.Samples(heavy(15, 40, 0), values=np.ones((40, 3))))
    with pytest.raises(fc.InputError, match="samples have 14 dofs; expected 15"):
        found.interval(psi, samples=fc.Samples(heavy(14, 40, 0), values=np.ones((40, 7))))
    with pytest.raises(fc.InputError, match="both values and errors"):
        fc.Samples(heavy(15, 40, 0), np.ones((40, 7)), values=np.ones((40, 7)))
    with pytest.raises(fc.InputError, match="samples have measured values"):
        fc.Samples(heavy(15, 40, 0), values=np.ones((40, 7))).readings(problem, found.data)
    wrong = data(problem, np.ones(7)).with_model_error(matrix=np.eye(7), size=1.0)
    with pytest.raises(fc.UncertifiedError, match="model error, the samples none"):
        fc.evidence(problem, wrong).interval(psi, samples=heavy(15, 40, 0))
