"""Noise that is not known: a deviation that is estimated, repeated measurements, outliers."""

from __future__ import annotations

import numpy as np
import pytest
from evidence_helpers import data, fewest, matrix_problem, noisy, on_sphere
from scipy.sparse import csc_matrix
from scipy.stats import f as fisher
from scipy.stats import norm
from scipy.stats import t as student

import femcert as fc

TRIALS = 400
SPAN = {"radius": None, "m": 12, "k": 4}


def unknown(values, **more):
    return fc.Data.gaussian(values, std="unknown", **more)


def test_an_unknown_deviation_on_a_span_is_that_of_linear_regression():
    problem = matrix_problem(**SPAN)
    y, psi = noisy(problem, np.ones(4), 0, 0.3), np.arange(4.0)
    found = fc.evidence(problem, unknown(y))
    interval = found.interval(psi)
    F = problem.forward_matrix()
    c, rest = np.linalg.lstsq(F, y)[:2]
    deviation = np.sqrt(rest[0] / 8 * psi @ np.linalg.solve(F.T @ F, psi))
    assert interval.estimate == pytest.approx(psi @ c, rel=1e-9)
    assert interval.half_length == pytest.approx(student.ppf(0.975, 8) * deviation, rel=1e-8)
    joint = found.interval(psi, simultaneous=True)
    assert joint.half_length == pytest.approx(np.sqrt(4 * fisher.ppf(0.95, 4, 8)) * deviation, rel=1e-8)
    assert interval.limit is None
    assert found.p_value is None
    assert interval.lower.side == "lower"
    # What needs the noise level refuses.
    candidate = fc.Candidate.from_coefficients(problem, c)
    with pytest.raises(fc.UncertifiedError, match="unknown"):
        fc.certify(problem, unknown(y), candidate, fc.ResidualRadius())
    short = matrix_problem(radius=None, m=5, k=4)
    with pytest.raises(fc.UncertifiedError, match="degrees"):
        fc.evidence(short, unknown(np.ones(5)))


@pytest.mark.parametrize("std", [0.02, 0.5])
def test_an_unknown_deviation_on_a_ball_covers_the_worst_truth(std):
    problem = matrix_problem(0, m=12)
    psi = np.random.default_rng(3).standard_normal(15)
    found = fc.evidence(problem, unknown(noisy(problem, np.zeros(15), 0, std)))
    weights = found._known.turn.T @ found._weights(csc_matrix(psi[:, None]), np.zeros(1), 0.05)[0].weights[:, 0]
    truth = on_sphere(problem, problem.forward_matrix().T @ weights - psi)
    covered, lengths = 0, []
    for trial in range(TRIALS):
        interval = found.with_data(unknown(noisy(problem, truth, trial, std))).interval(psi)
        covered += interval.contains(psi @ truth)
        lengths.append(interval.half_length)
    assert covered >= fewest(TRIALS, 0.95, 2)
    known = fc.evidence(problem, data(problem, np.zeros(12), std)).interval(psi)
    assert np.median(lengths) < 3.0 * known.half_length


@pytest.mark.parametrize("kind", ["equal", "any covariance"])
def test_repeated_measurements_show_their_noise(kind):
    problem = matrix_problem(1)
    psi, rng = np.random.default_rng(3).standard_normal(15), np.random.default_rng(0)
    truth = on_sphere(problem, psi)
    root = 0.2 * np.eye(7) if kind == "equal" else np.tril(rng.standard_normal((7, 7))) * 0.2 + 0.1 * np.eye(7)
    covered = 0
    for _ in range(TRIALS):
        Y = problem.forward_matrix() @ truth + rng.standard_normal((6, 7)) @ root.T
        made = fc.Data.repeated(Y, equal=True) if kind == "equal" else fc.Data.repeated(Y, std=0.2)
        covered += fc.evidence(problem, made).interval(psi).contains(psi @ truth)
    assert covered >= fewest(TRIALS, 0.95, 2)
    assert fc.evidence(problem, made).interval(psi).lower.side == "lower"
    if kind == "equal":
        assert 0.0 < fc.evidence(problem, made).p_value <= 1.0
        return
    # Hotelling needs more repeats than readings.
    with pytest.raises(fc.UncertifiedError, match="repeats"):
        fc.evidence(problem, made).interval(psi, simultaneous=True)
    many = fc.Data.repeated(problem.forward_matrix() @ truth + rng.standard_normal((20, 7)) @ root.T, std=0.2)
    assert fc.evidence(problem, many).interval(psi, simultaneous=True).contains(psi @ truth)
    # Weights made for the measured scatter prove nothing.
    guessed = fc.evidence(problem, fc.Data.repeated(Y)).interval(psi)
    assert guessed.lower.side == "estimate"


def test_repeats_that_are_none():
    for wrong in ([1.0, 2.0], [[1.0, 2.0]], [[1.0, 2.0], [1.0, 3.0]]):
        with pytest.raises(fc.InputError, match=r"repeats|same"):
            fc.Data.repeated(wrong)
    with pytest.raises(fc.InputError, match="equal"):
        fc.Data.repeated([[1.0, 2.0], [1.1, 3.0]], equal=True, std=0.1)


@pytest.mark.parametrize("ball", [True, False])
def test_outliers_are_named_and_nobody_else(ball):
    problem = matrix_problem(0, m=14, k=6) if ball else matrix_problem(radius=None, m=14, k=4)
    truth = 0.3 * np.ones(problem.parameters.dimension)
    named, found = 0, 0
    for trial in range(TRIALS):
        y = noisy(problem, truth, trial)
        evidence = fc.evidence(problem, data(problem, y))
        named += len(evidence.outliers().indices) > 0
        y[3] += 8.0 * 0.05
        found += 3 in fc.evidence(problem, data(problem, y)).outliers().indices
    assert named <= TRIALS - fewest(TRIALS, 0.95, 2)
    assert found > 0.5 * TRIALS


def test_studentized_residuals_on_a_span():
    problem = matrix_problem(**SPAN)
    y = noisy(problem, np.ones(4), 0)
    F = problem.forward_matrix()
    rest = np.eye(12) - F @ np.linalg.pinv(F)
    expected = np.abs(rest @ y) / 0.05 / np.sqrt(np.diag(rest))
    found = fc.evidence(problem, data(problem, y)).outliers()
    np.testing.assert_allclose(found.strength, expected / norm.ppf(1.0 - 0.05 / 24.0), rtol=1e-6)


def test_leaving_out_outliers_counts_the_choice():
    problem = matrix_problem(**SPAN)
    psi, truth = np.arange(4.0), np.ones(4)
    covered, kept = 0, 0
    for trial in range(TRIALS):
        y = noisy(problem, truth, trial)
        y[5] += 0.4
        plain = fc.evidence(problem, data(problem, y))
        found = plain.without_outliers(most=2)
        assert found.confidence == pytest.approx(0.95)
        covered += found.interval(psi).contains(psi @ truth)
        kept += plain.interval(psi).contains(psi @ truth)
    assert covered >= fewest(TRIALS, 0.95)
    assert kept < 0.9 * TRIALS
    # Also where nothing is left out the choice has its price.
    y = noisy(problem, truth, 0)
    dearer = fc.evidence(problem, data(problem, y)).without_outliers().interval(psi)
    assert dearer.half_length > plain.interval(psi).half_length
    for wrong in ([1, 2, 3], [99]):
        with pytest.raises(fc.InputError, match="at most 2"):
            data(problem, y).leaving_out(wrong, 2)
    with pytest.raises(fc.UncertifiedError, match="Gaussian"):
        fc.Data(y, 0.1).leaving_out([0], 1)


def test_an_outlier_does_not_shrink_an_interval():
    problem = matrix_problem(0)
    psi = np.random.default_rng(3).standard_normal(15)
    lengths = []
    for size in (0.0, 6.0, 60.0):
        y = noisy(problem, np.zeros(15), 0)
        y[2] += size * 0.05
        found = fc.evidence(problem, data(problem, y))
        lengths.append(found.interval(psi).half_length)
    assert lengths[0] == lengths[1] == lengths[2]
    assert found.p_value < 1e-6
