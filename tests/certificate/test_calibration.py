"""The threshold of a score: its harm rate is at most what is allowed, as often as is said."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom, norm

import femcert as fc
from femcert.certificate.calibration import fewest_trials, harm_bound, lowest_threshold
from femcert.certificate.scores import Pairs, Prior

REPEATS = 1000


def test_the_bound_is_that_of_clopper_and_pearson():
    for trials in (1, 59, 200):
        for harmed in range(0, trials, 7):
            bound = float(harm_bound(harmed, trials, 0.95))
            # The rate at which so few would be seen in 5 % of the cases.
            assert binom.cdf(harmed, trials, bound) == pytest.approx(0.05, rel=1e-8)
        assert float(harm_bound(trials, trials, 0.95)) == 1.0
    assert_allclose(harm_bound(np.arange(3), 100, 0.9), [harm_bound(i, 100, 0.9) for i in range(3)])


def test_fewer_than_59_trials_prove_no_rate_of_5_percent():
    assert fewest_trials(0.05, 0.95) == 59
    for harm, confidence in ((0.05, 0.95), (0.1, 0.9), (0.01, 0.99), (0.5, 0.5)):
        n = fewest_trials(harm, confidence)
        assert float(harm_bound(0, n, confidence)) <= harm
        assert n == 1 or float(harm_bound(0, n - 1, confidence)) > harm


def test_the_last_threshold_before_the_first_that_fails():
    rng = np.random.default_rng(0)
    scores, worse = rng.standard_normal(150), rng.random(150) < 0.3
    found = lowest_threshold(scores, worse, scores, 0.05, 0.95)
    expected = None
    for t in sorted(scores, reverse=True):
        if float(harm_bound(int(np.sum(worse & (scores >= t))), 150, 0.95)) > 0.05:
            break
        expected = t
    assert found == expected
    assert lowest_threshold(scores, np.ones(150, bool), scores[:1] - 10.0, 0.05, 0.95) is None
    assert lowest_threshold(scores, np.zeros(150, bool), scores, 0.05, 0.95) == scores.min()
    # Trials that failed are never accepted, and their scores are no thresholds.
    scores[:20] = -np.inf
    assert np.isfinite(lowest_threshold(scores, np.zeros(150, bool), scores, 0.05, 0.95))


@pytest.mark.parametrize(("trials", "share"), [(59, 0.3), (200, 0.1), (200, 0.5), (500, 0.3)])
def test_the_harm_rate_is_kept_as_often_as_is_said(trials, share):
    """Scores N(0, 1) for the worse, N(1, 1) for the better: the harm rate of a threshold is known."""
    failed = 0
    for seed in range(REPEATS):
        rng = np.random.default_rng([seed, trials])
        worse = rng.random(2 * trials) < share
        scores = rng.standard_normal(2 * trials) + ~worse
        t = lowest_threshold(scores[trials:], worse[trials:], scores[:trials], 0.05, 0.95)
        failed += t is not None and share * norm.sf(t) > 0.05
    assert failed <= binom.ppf(0.9975, REPEATS, 0.05)


def gaussian_pairs(seed, t=40, n=10_000, k=4, m=3):
    """Pairs of random differences d of candidates, with Gaussian truths; and the exact posterior of g / 2."""
    rng = np.random.default_rng(seed)
    root, T, centre = rng.standard_normal((k, k)), rng.standard_normal((m, k)), rng.standard_normal(k)
    truths = centre + rng.standard_normal((n, k)) @ root.T
    q = centre + rng.standard_normal((t, k)) @ root.T
    values, d, sizes = q @ T.T + rng.standard_normal((t, m)), rng.standard_normal((t, k)), rng.standard_normal(t)
    pairs = Pairs(values, d @ truths.T, sizes, np.zeros(t), np.zeros(t))
    C = root @ root.T
    gain = C @ T.T @ np.linalg.inv(np.eye(m) + T @ C @ T.T)
    mean = centre + (values - T @ centre) @ gain.T
    deviation = np.sqrt(np.sum(d * (d @ (C - gain @ T @ C)), axis=1))
    return pairs, Prior(truths @ T.T, np.arange(n)), (np.sum(d * mean, axis=1) - sizes / 2.0) / deviation


def test_scores_are_posterior_means_over_deviations():
    pairs, prior, exact = gaussian_pairs(0)
    assert_allclose(prior.gaussian(pairs), exact, atol=0.15)
    # The prior of the samples near the data is another one; it orders alike.
    assert np.corrcoef(prior.near(pairs), exact)[0, 1] > 0.9
    # The full likelihood of three data: the exponent is 6 / 3 of one half, twice the noise.
    assert np.corrcoef(prior.weighted(pairs), exact)[0, 1] > 0.9
    for score in (prior.gaussian, prior.near, prior.weighted):
        # A pair does not depend on which others are scored with it.
        assert_allclose(score(pairs[np.arange(7)]), score(pairs)[:7], rtol=1e-8, atol=1e-8)


def test_equal_candidates_have_the_score_zero():
    pairs, prior, _ = gaussian_pairs(1, n=100)
    same = Pairs(pairs.values, 0.0 * pairs.inner, 0.0 * pairs.sizes, pairs.misfits, pairs.margins)
    for score in (prior.gaussian, prior.near, prior.weighted):
        assert np.all(score(same) == 0.0)


def test_surprise_is_that_of_the_gaussian():
    pairs, prior, _ = gaussian_pairs(2)
    away = prior.surprise(pairs.values)
    # Chi-square with three degrees of freedom, for data like those of the truths.
    assert 2.0 < np.mean(away) < 4.2
    assert prior.surprise(pairs.values[:1] + 100.0)[0] > 100.0


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"samples": np.ones((3, 2)), "sampler": lambda rng: np.ones(2)},
        {"samples": np.ones((3, 2)), "harm": 1.0},
        {"samples": np.ones((3, 2)), "harm": 0.0},
        {"samples": np.ones((3, 2)), "confidence": 1.0},
        {"samples": np.ones((3, 2)), "seed": -1},
        {"sampler": lambda rng: np.ones(2), "trials": 0},
    ],
)
def test_options_are_checked(options):
    with pytest.raises(fc.InputError):
        fc.Calibrated(**options)
