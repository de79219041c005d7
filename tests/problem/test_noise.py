"""Gaussian data: standard deviations, relative errors, missing readings, systematic errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import femcert as fc


def test_relative_errors_about_a_reference_cover():
    rng = np.random.default_rng(0)
    truth, reference = np.array([1.0, 0.2, 3.0, 0.0]), np.array([1.5, 0.1, 2.5, 0.05])
    spread = np.hypot(0.1 * truth, 0.02)
    problem = fc.MatrixProblem(operator=np.eye(4), load=np.eye(4), observe=np.eye(4))
    psi, covered = np.array([1.0, -1.0, 0.5, 1.0]), 0
    for _ in range(400):
        y = truth + spread * rng.standard_normal(4)
        data = fc.Data.gaussian(y, relative=0.1, std=0.02, reference=reference)
        interval = fc.evidence(problem, data).interval(psi)
        covered += interval.contains(psi @ truth)
    assert covered >= 0.93 * 400
    assert interval.lower.side == "lower"
    assert interval.limit is None
    # Weights from the measured values themselves prove nothing.
    guess = fc.evidence(problem, fc.Data.gaussian(y, relative=0.1, std=0.02)).interval(psi)
    assert guess.lower.side == guess.upper.side == "estimate"
    # Other values with the same reference: other deviations, the same weights.
    other = data.with_values(2.0 * y)
    assert other.weighs_like(data)
    assert np.all(other.law.deviations >= data.law.deviations)
    for wrong in ({"relative": 0.6, "std": 0.1}, {"relative": 0.1}, {}, {"std": 0.1, "covariance": np.ones(4)}):
        with pytest.raises(fc.InputError, match=r"relative|deviation|noise|covariance"):
            fc.Data.gaussian(0.0 * y, **wrong)


@pytest.mark.filterwarnings("error")
def test_a_relative_error_of_a_missing_reading_is_nothing():
    data = fc.Data.gaussian([0.5, np.nan, 0.4], relative=0.1)
    np.testing.assert_allclose(data.whiten(np.array([0.5, np.nan, 0.4])), 10.0)


def test_a_deviation_of_zero_is_called_so():
    with pytest.raises(fc.InputError, match="std is 0 for some reading"):
        fc.Data.gaussian([1.0, 2.0], std=[0.1, 0.0])
    # That of a reading which is missing is not asked for.
    assert fc.Data.gaussian([1.0, np.nan], std=[0.1, 0.0]).count == 1


@pytest.mark.parametrize("covariance", [None, "matrix"])
def test_missing_readings_are_left_out(covariance):
    rng = np.random.default_rng(0)
    C = 0.01 * (np.eye(5) + 0.3 * np.ones((5, 5)))
    observe = rng.standard_normal((5, 3))
    y = observe @ np.ones(3) + 0.05 * rng.standard_normal(5)
    kept = [0, 2, 3, 4]
    gap = y.copy()
    gap[1] = np.nan
    law = {"std": 0.1} if covariance is None else {"covariance": C}
    short = law if covariance is None else {"covariance": C[np.ix_(kept, kept)]}
    whole = fc.MatrixProblem(operator=np.eye(3), load=np.eye(3), observe=observe)
    part = fc.MatrixProblem(operator=np.eye(3), load=np.eye(3), observe=observe[kept])
    one, other = fc.Data.gaussian(gap, **law), fc.Data.gaussian(y[kept], **short)
    psi = np.arange(3.0)
    assert one.count == 4
    for question in (lambda e: e.interval(psi).estimate, lambda e: e.interval(psi).half_length, lambda e: e.p_value):
        assert_allclose(question(fc.evidence(whole, one)), question(fc.evidence(part, other)), rtol=1e-10)
    radii = []
    # What was decomposed for other missing readings is not used again.
    for problem, data in ((whole, fc.Data.gaussian(y, **law)), (whole, one), (part, other)):
        baseline = fc.Tikhonov(weight=1e-3)(problem, data)
        radii.append(fc.certify(problem, data, baseline, fc.ExactRadius()).radius.value)
    assert_allclose(radii[1], radii[2], rtol=1e-8)
    assert abs(radii[0] - radii[1]) > 1e-3 * radii[1]
    with pytest.raises(fc.InputError, match="missing"):
        fc.Data.gaussian(np.full(3, np.nan), std=0.1)


def test_model_errors_of_data():
    data = fc.Data.gaussian(np.ones(6), std=0.5)
    samples = 1.0 + np.random.default_rng(0).standard_normal((40, 6))
    found = data.with_model_error(samples, confidence=0.9)
    assert found.confidence == pytest.approx(0.85)
    assert_allclose(found.values, 1.0 - samples[:20].mean(axis=0))
    assert_allclose(found.with_values(np.zeros(6)).values, -samples[:20].mean(axis=0))
    assert found.noise_level > data.noise_level
    assert "40 samples" in str(found)
    fixed = data.with_model_error(matrix=np.ones((6, 1)), size=0.2)
    assert fixed.noise_level == pytest.approx(data.noise_level + 0.2 * np.sqrt(6.0) / 0.5)
    for wrong in ({}, {"matrix": np.ones((5, 1)), "size": 1.0}, {"samples": samples[:, :2]}, {"samples": samples[:6]}):
        with pytest.raises(fc.InputError, match=r"model|shape|samples"):
            data.with_model_error(**wrong)
    with pytest.raises(fc.InputError, match="already"):
        fixed.with_model_error(samples)
