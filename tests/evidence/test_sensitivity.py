"""Intervals over the radius of the ball: nested, or the best ones of each radius."""

from __future__ import annotations

import numpy as np
import pytest
from evidence_helpers import data, fewest, form, matrix_problem, noisy, on_sphere
from numpy.testing import assert_allclose
from zoo import l_shape, source

import femcert as fc

RADII = np.geomspace(0.2, 20.0, 25)


def case(seed=0, std=0.05, **options):
    problem = matrix_problem(seed, **options)
    psi = np.random.default_rng(3).standard_normal(15)
    truth = 0.7 * on_sphere(problem, psi) + (0.3 * options["centre"] if "centre" in options else 0.0)
    return problem, psi, fc.evidence(problem, data(problem, noisy(problem, truth, seed, std), std))


@pytest.mark.parametrize("centre", [None, np.linspace(0.0, 1.0, 15)])
@pytest.mark.parametrize("seed", range(3))
def test_at_the_radius_of_the_class_it_is_the_interval(seed, centre):
    problem, psi, found = case(seed, centre=centre) if centre is not None else case(seed)
    interval = found.interval(psi)
    for weights in ("fixed", "best"):
        at = found.sensitivity(psi, [problem.parameters.ball.radius], weights=weights)
        assert_allclose([at.lower[0], at.upper[0]], [interval.lower.value, interval.upper.value], rtol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_best_weights_are_those_of_another_class(seed):
    _, psi, found = case(seed)
    best = found.sensitivity(psi, RADII[::8], weights="best")
    for i, radius in enumerate(best.radii):
        other = matrix_problem(seed, radius=float(radius))
        interval = fc.evidence(other, found.data).interval(psi)
        assert_allclose([best.lower[i], best.upper[i]], [interval.lower.value, interval.upper.value], rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_fixed_weights_are_nested_and_no_shorter(seed):
    _, psi, found = case(seed)
    fixed, best = (found.sensitivity(psi, RADII, weights=name) for name in ("fixed", "best"))
    assert np.all(np.diff(fixed.lower) < 0.0)
    assert np.all(np.diff(fixed.upper) > 0.0)
    assert np.all(fixed.upper - fixed.lower >= (best.upper - best.lower) * (1.0 - 1e-6))


def test_the_band_reaches_the_value_at_the_breakdown():
    problem, psi, found = case(std=0.01)
    middle = found.interval(psi).estimate
    for value in (0.0, 0.5 * middle, 2.0 * middle):
        broken = found.breakdown(psi, value).value
        at = found.sensitivity(psi, [broken], value=value)
        assert at.breakdown.value == broken
        assert min(abs(at.lower[0] - value), abs(at.upper[0] - value)) < 1e-6 * abs(middle)
        assert f"unless the norm exceeds {broken:.3g}" in at.message
        assert ("above" in at.message) == (middle > value)
    assert "either side" in found.sensitivity(psi, value=middle).message
    assert problem.parameters.ball.radius in (at.radius, 2.0)


def test_a_radius_that_is_chosen_afterwards_is_covered_by_fixed_weights():
    # The norm of the truth is the least favourable choice: all larger radii contain its interval.
    problem, psi, found = case()
    truth = 3.0 * on_sphere(problem, psi)
    size = float(np.sqrt(truth @ form(problem) @ truth))
    radii = np.array([size, 1.5 * size, 3.0 * size])
    covered = 0
    for trial in range(150):
        at = found.with_data(data(problem, noisy(problem, truth, trial))).sensitivity(psi, radii)
        covered += bool(np.all((at.lower <= psi @ truth) & (psi @ truth <= at.upper)))
    assert covered >= fewest(150, 0.95)


def test_free_directions_and_model_errors_do_not_grow_with_the_radius():
    problem = source(
        l_shape(), parameters=lambda basis: fc.FullSpace(basis).within_ball(1.0, norm="h1-seminorm"), sensors=12
    )
    made = data(problem, problem.observe(problem.solve(np.ones(problem.basis.N))), 0.01)
    found = fc.evidence(problem, made.with_model_error(matrix=0.01 * np.ones((12, 1)), size=1.0))
    mean = fc.Mean(problem.basis)
    at = found.sensitivity(mean, [1e-6, 1.0])
    interval = found.interval(mean)
    assert_allclose([at.lower[1], at.upper[1]], [interval.lower.value, interval.upper.value], rtol=1e-7)
    # A constant: model and noise are left.
    assert at.upper[0] - at.lower[0] > 2.0 * interval.model
    assert at.lower[0] < 1.0 < at.upper[0]


def test_a_radius_is_a_number_also_where_that_of_the_class_came_from_samples():
    def space(basis):
        fields = np.random.default_rng(0).uniform(0.2, 1.0, (40, 1)) * np.cos(basis.doflocs[0])
        return fc.FullSpace(basis).within_ball(samples=fields, norm="h1", length=0.5)

    problem = source(l_shape(), parameters=space, sensors=12)
    found = fc.evidence(problem, data(problem, np.full(12, 0.05), 0.01))
    assert "like the samples" in found.assumption
    assert found.confidence == pytest.approx(0.90)
    at = found.sensitivity(fc.Mean(problem.basis), [1.0, 2.0])
    assert at.confidence == pytest.approx(0.95)
    assert at.claim == "for every truth with H1 norm (length 0.5) at most the radius (discrete)"


def test_a_noisy_reading_has_no_breakdown():
    _, psi, found = case()
    at = found.sensitivity(fc.Prediction(psi, std=0.5), RADII)
    assert at.breakdown is None
    assert np.all(at.upper - at.lower > 2.0 * 1.95 * 0.5)
    assert "over the radius" in at.message


def test_refused():
    _, psi, found = case()
    with pytest.raises(fc.InputError, match="weights"):
        found.sensitivity(psi, weights="all")
    with pytest.raises(fc.InputError, match="radii"):
        found.sensitivity(psi, [0.0, 1.0])
    span = matrix_problem(radius=None, m=9, k=4)
    with pytest.raises(fc.UncertifiedError, match="ball"):
        fc.evidence(span, data(span, np.ones(9))).sensitivity(np.ones(4))
