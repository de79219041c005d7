"""Cases in which a level, a probability or a bound was once on the wrong side."""

import numpy as np
import pytest
from evidence_helpers import STD, data, matrix_problem, noisy
from scipy.stats import chi2

import femcert as fc
from femcert.problem.chi_squares import weighted_quantile
from femcert.problem.splitting import at_level, thinned


@pytest.mark.parametrize(("small", "zeta"), [(0.003, 0.2), (0.01, 0.4), (0.01, 0.9)])
def test_quantile_of_one_large_and_many_small_weights(small: float, zeta: float) -> None:
    rng, n = np.random.default_rng(0), 100_000
    drawn = rng.standard_normal(n) ** 2 + small * rng.chisquare(1000, n)
    found = weighted_quantile(np.append(1.0, np.full(1000, small)), zeta)
    # Four standard deviations of a share; levels above one half may be missed on the safe side.
    assert np.mean(drawn > found) <= zeta + 2.0 / np.sqrt(n)
    assert zeta > 0.5 or np.mean(drawn > found) >= zeta - 2.0 / np.sqrt(n)


@pytest.mark.parametrize("zeta", [0.2, 0.01])
def test_another_level_keeps_the_share_of_sensors_that_were_left_out(zeta: float) -> None:
    law = at_level(data(None, np.zeros(7)).leaving_out([2], 1), zeta).law
    assert law.factor(3, zeta) == pytest.approx(np.sqrt(chi2.isf(zeta / 14.0, 3)), rel=1e-9)


def test_a_one_sided_bound_pays_for_sensors_that_were_left_out() -> None:
    problem, d = matrix_problem(), np.arange(15.0)
    y = noisy(problem, np.zeros(15), 0)
    without = np.where(np.arange(7) == 2, np.nan, y)
    picked = fc.evidence(problem, data(problem, y).leaving_out([2], 1)).least_along(d, zeta=0.05)[0]
    plain = fc.evidence(problem, data(problem, without)).least_along(d, zeta=0.05 / 14.0)[0]
    assert picked == pytest.approx(plain, rel=1e-9)


def test_other_values_of_a_part_of_the_data_have_its_noise() -> None:
    options = fc.Data.gaussian(np.ones(3), std=STD)
    for part in thinned(options, 1.0, 0):
        assert part.with_values(np.zeros(3)).covariance == pytest.approx(2.0 * STD**2)


def test_outliers_of_noise_of_unknown_size_are_refused() -> None:
    problem = matrix_problem(m=30, k=3, radius=None)
    y = noisy(problem, np.ones(3), 1, std=100.0)
    with pytest.raises(fc.UncertifiedError, match="standard deviation"):
        fc.evidence(problem, fc.Data.gaussian(y, std="unknown")).outliers()


def test_distances_with_missing_readings() -> None:
    problem = matrix_problem()
    y = np.where(np.arange(7) == 2, np.nan, noisy(problem, np.zeros(15), 0))
    lower, upper = fc.evidence(problem, data(problem, y)).best_radius
    assert 0.0 < lower.value <= upper.value


@pytest.mark.parametrize("seed", range(6))
def test_more_precise_sensors_than_coordinates(seed: int) -> None:
    # Gram matrices of the sensors are singular, and what rounding leaves of them weighs more than the noise.
    problem, std = matrix_problem(seed, m=6, k=2), 1e-5
    found = fc.evidence(problem, data(problem, noisy(problem, np.full(2, 0.1), seed, std), std))
    interval, (lower, upper) = found.interval(np.ones(2)), found.best_radius
    assert interval.limit.value <= interval.half_length
    assert lower.value <= upper.value
    T = problem.observation.toarray() / std
    spread = np.linalg.eigvalsh(np.linalg.inv(T.T @ T))
    # No linear estimate has less noise than least squares but for its bias, which the length counts.
    assert found._ridge.length(found.law) >= 0.9 * np.sqrt(weighted_quantile(spread, 0.05))


@pytest.mark.parametrize("seed", range(6))
def test_consistent_pairs_where_sensors_say_the_same_twice(seed: int) -> None:
    # The data have large parts that no coordinate explains: half the distance of two truths is at most the radius.
    problem = matrix_problem(seed, m=6, k=1, radius=0.014)
    y = noisy(problem, np.zeros(1), seed, 0.27)
    found = fc.evidence(problem, fc.Data(y, 1.02 * float(np.linalg.norm(y))))
    lower, upper = found.best_radius
    assert lower.value <= upper.value
