"""The paper's sweep: its numbers within bands, and dominance without a single unsafe decision."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from femcert import sweep
from femcert.paper import Grid
from femcert.paper import printed as paper
from femcert.paper.rules import dominance
from femcert.paper.setup import BASE_SEED

SEEDS = (BASE_SEED, 1, 2, 3)
SURE, GAUSSIAN = "dominance", "dominance, zeta = 0.05"


@pytest.fixture(scope="module", params=SEEDS)
def result(request):
    """The 21,000 trials for one seed after the other."""
    return sweep(seed=request.param)


def test_the_paper_s_rule_comes_out_as_printed(result):
    found = result.outcome("operational")
    assert found.trials == paper.TRIALS
    assert found.rate("accepted") == pytest.approx(paper.SELECTED / paper.TRIALS, abs=0.005)
    assert found.rate("unsafe") <= 0.0015
    assert found.rate("false_rejections") == pytest.approx(paper.FALSE_REJECTIONS / paper.TRIALS, abs=0.04)
    assert abs(int(result.sufficient().sum()) - paper.SUFFICIENT_REGIMES) <= 6


def test_the_mismatch_table_comes_out_as_printed(result):
    for row, printed in zip(result.mismatches(), paper.MISMATCHES, strict=True):
        assert row.mismatch == printed.mismatch
        assert row.median_ratio == pytest.approx(printed.median_ratio, rel=0.08)
        assert row.median_error_ratio == pytest.approx(printed.median_error_ratio, rel=0.08)
        assert row.accept_rate == pytest.approx(printed.accept_rate, abs=0.02 if row.mismatch == 0.0 else 0.0)
        assert row.false_rejection_rate == pytest.approx(printed.false_rejection_rate, abs=0.04)


def test_the_regime_table_comes_out_as_printed(result):
    for row, printed in zip(result.regimes(), paper.REGIMES, strict=True):
        assert row.regime == printed.regime
        assert row.ratio == pytest.approx(printed.ratio, rel=0.08)
        assert row.accept_rate == pytest.approx(printed.accept_rate, abs=0.06)
        assert row.better_rate == pytest.approx(printed.better_rate, abs=0.03)


def test_dominance_is_never_unsafe_and_accepts_a_tenth(result):
    for noise in result.grid.noise:
        assert result.outcome(SURE, noise=noise).unsafe == 0
    assert result.outcome(SURE).rate("accepted") >= 0.10


def test_without_noise_dominance_is_the_oracle(result):
    """All but the few trials whose sensors do not determine the modes to rounding."""
    found = result.outcome(SURE, noise=0.0)
    assert found.safe > 2000
    assert found.false_rejections <= 0.002 * found.safe


def test_the_gaussian_test_is_unsafe_in_at_most_five_percent(result):
    for noise in result.grid.noise:
        assert result.outcome(GAUSSIAN, noise=noise).rate("unsafe") <= 0.05
    # The sure test knows the norm of the noise that was drawn, which nobody does.
    assert 0.5 * result.outcome(SURE).accepted < result.outcome(GAUSSIAN).accepted <= result.outcome(SURE).accepted


def test_a_smaller_radius_alone_does_not_prove_a_smaller_error(result):
    """The paper's rule and the exact radius are unsafe at times; that is why there is dominance."""
    assert result.outcome("operational").unsafe > 0
    assert result.outcome("exact").unsafe > 100


def test_counts_add_up(result):
    for found in result.outcomes():
        assert found.safe + found.unsafe == found.accepted
        assert found.safe + found.false_rejections <= found.trials
        parts = [result.outcome(found.rule, noise=noise) for noise in result.grid.noise]
        for name in ("trials", "accepted", "safe", "unsafe", "false_rejections", "undecided"):
            assert sum(getattr(part, name) for part in parts) == getattr(found, name)
        # A better candidate is accepted, falsely rejected, or not judged.
        assert found.undecided == result.undecided(found.rule).sum()
        judged = result.better & ~result.undecided(found.rule)
        assert found.safe + found.false_rejections == judged.sum()


# Trials with noise, where the half width decides; small perturbations, so that many are close.
CLOSE = Grid(noise=(0.01, 0.02), mismatch=(0.0,), replications=60)


def narrowed(factor):
    """Dominance with its half width multiplied by a factor."""

    def rule(trials):
        slack = np.where(np.isfinite(trials.fit.slack), trials.fit.slack, 1.0)
        return dominance(replace(trials, fit=replace(trials.fit, slack=factor * slack)))

    return rule


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(narrowed(0.0), id="no half width"),
        pytest.param(narrowed(0.5), id="half of it"),
        pytest.param(lambda trials: replace(dominance(trials), accepted=dominance(trials).margin <= 1.0), id="slack"),
        pytest.param(
            lambda trials: dominance(replace(trials, fit=replace(trials.fit, centre=trials.learned.x))), id="centre"
        ),
    ],
)
def test_a_wrong_dominance_rule_is_caught(wrong):
    found = sweep(grid=CLOSE, rules={"right": dominance, "wrong": wrong})
    assert found.outcome("right").unsafe == 0
    assert found.outcome("right").accepted > 50
    assert found.outcome("wrong").unsafe > 0


def test_the_level_of_the_gaussian_test_matters():
    """A level near 1 is a small set: it accepts more, and is unsafe more often."""
    rules = {str(zeta): partial(dominance, zeta=zeta) for zeta in (0.9999, 0.05, 1e-4)}
    found = sweep(grid=CLOSE, rules=rules)
    counts = [found.outcome(name).accepted for name in rules]
    assert counts[0] > counts[1] >= counts[2]
    assert counts[0] > 0
