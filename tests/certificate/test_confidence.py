"""Upper confidence bounds of a mean: by hand, coverage over 10,000 repetitions, and how tight they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import femcert as fc
from femcert.certificate import bernstein, betting, hoeffding
from femcert.paper.experiments import residual_field

BOUNDS = {"hoeffding": hoeffding, "bernstein": bernstein, "betting": betting}
REPETITIONS, ZETA = 10_000, 0.05
GRID = np.linspace(0.0, 1.0, 2000)

# Squares of five residual fields on a fine grid.
FIELDS = {
    "the paper's": residual_field(GRID) ** 2,
    "smooth": np.sin(np.pi * GRID) ** 2,
    "a spike seen by 1 % of points": np.where(np.arange(2000) < 20, 1.0, 1e-4),
    "two values": np.where(np.arange(2000) < 1000, 0.0, 4.0),
    "heavy": (GRID + 1e-3) ** -0.9,
}


def drawn(field, points, repetitions, seed):
    squares = FIELDS[field]
    rng = np.random.default_rng(seed)
    return squares[rng.integers(squares.size, size=(repetitions, points))], squares.mean(), squares.max()


@pytest.mark.parametrize(
    ("field", "points"), [(f, m) for f in FIELDS for m in (10, 100)] + [("a spike seen by 1 % of points", 500)]
)
def test_coverage(field, points):
    samples, mean, B = drawn(field, points, REPETITIONS, seed=1)
    for name, bound in BOUNDS.items():
        tops = bound(samples, B, ZETA)
        assert tops.shape == (REPETITIONS,)
        assert np.mean(tops >= mean) >= 1.0 - ZETA, name


def test_coverage_at_another_level_where_bounds_are_tight():
    """Half of the samples at 0, half at B, zeta = 0.3: a bound that cheats shows here."""
    samples, mean, B = drawn("two values", 100, REPETITIONS, seed=2)
    for name, bound in BOUNDS.items():
        failed = np.sum(bound(samples, B, 0.3) < mean)
        assert failed <= binom.ppf(1.0 - 1e-4, REPETITIONS, 0.3), name
        if name == "betting":
            assert failed > 0.05 * REPETITIONS


def test_betting_is_at_most_half_of_hoeffding_on_the_paper_s_field():
    samples, mean, B = drawn("the paper's", 500, 400, seed=3)
    excess = {name: np.mean(bound(samples, B, ZETA) - mean) for name, bound in BOUNDS.items()}
    assert excess["betting"] <= 0.42 * excess["hoeffding"]
    assert excess["betting"] < excess["bernstein"] < 0.8 * excess["hoeffding"]


def test_a_rare_spike_that_was_not_drawn_is_paid_for():
    """All samples are zero: whatever share the spike may have, the mean is below the bound as it must be."""
    for M in (10, 100, 1000):
        zeros = np.zeros(M)
        # A share p stays unseen with probability (1 - p)^M, so no valid bound is below 1 - zeta^(1/M).
        least = 1.0 - ZETA ** (1.0 / M)
        for bound in BOUNDS.values():
            assert bound(zeros, 1.0, ZETA) >= least
        assert betting(np.zeros(M), 1.0, ZETA) <= 2.7 * least


def test_bernstein_by_hand():
    x = np.array([0.0, 1.0, 0.5, 0.5] * 50)
    L = np.log(40.0)
    expected = 0.5 + np.sqrt(2.0 * np.var(x, ddof=1) * L / 200) + 7.0 * 2.0 * L / (3.0 * 199)
    assert bernstein(x, 2.0, 0.05) == pytest.approx(expected, rel=1e-14)
    assert bernstein(np.array([0.3]), 2.0, 0.05) == 2.0


def test_betting_by_hand():
    """The bound is where the largest capital is 1/zeta, with the bets as documented, one after the other."""
    x, zeta = np.random.default_rng(0).beta(1.0, 4.0, 60), 0.1
    top = betting(3.0 * x, 3.0, zeta) / 3.0

    def richest(m):
        capital, best, total, spread, s2 = 1.0, 1.0, 0.0, 0.0, 0.25
        for t, value in enumerate(x, start=1):
            bet = min(np.sqrt(2.0 * np.log(1.0 / zeta) / (len(x) * s2)), 0.75 / (1.0 - m))
            capital *= 1.0 + bet * (m - value)
            best = max(best, capital)
            total += value
            spread += (value - (0.5 + total) / (t + 1)) ** 2
            s2 = (0.25 + spread) / (t + 1)
        return best

    assert richest(top) >= 1.0 / zeta > richest(top - 1e-8)
    capitals = [richest(m) for m in np.linspace(0.0, 0.999, 300)]
    assert np.all(np.diff(capitals) >= 0.0)


@settings(deadline=None, max_examples=60)
@given(
    x=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40),
    zeta=st.floats(1e-6, 0.9),
    scale=st.floats(1e-3, 1e3),
)
def test_properties(x, zeta, scale):
    x = np.array(x)
    for name, bound in BOUNDS.items():
        top = bound(x, 1.0, zeta)
        assert isinstance(top, float)
        assert top >= (x.mean() - 1e-9 if zeta < 0.3 else 0.0)
        assert top <= 1.0 or name == "hoeffding"
        assert bound(scale * x, scale, zeta) == pytest.approx(scale * top, rel=1e-6)
        assert bound(x, 1.0, 0.5 * zeta) >= top - 1e-9 or name == "betting"
        rows = bound(np.array([[x, x]]), 1.0, zeta)
        assert rows.shape == (1, 2)
        assert np.allclose(rows, top, rtol=1e-12)


def test_nothing_to_bound():
    for bound in BOUNDS.values():
        assert bound(np.zeros(5), 0.0, 0.05) == 0.0


@pytest.mark.parametrize("bound", BOUNDS.values())
@pytest.mark.parametrize(
    ("samples", "envelope", "zeta", "match"),
    [
        ([0.5, 1.5], 1.0, 0.05, "the samples lie between 0.5 and 1.5; expected between 0 and 1"),
        ([-0.5, 0.5], 1.0, 0.05, "the samples lie between -0.5 and 0.5"),
        ([np.nan, 0.5], 1.0, 0.05, "samples has 1 NaN"),
        ([], 1.0, 0.05, "expected one sample at least"),
        (0.5, 1.0, 0.05, "expected one sample at least"),
        ([0.5], np.inf, 0.05, "envelope"),
        ([0.5], -1.0, 0.05, "envelope"),
        ([0.5], 1.0, 0.0, "zeta is 0"),
        ([0.5], 1.0, 1.0, "zeta is 1"),
    ],
)
def test_bad_input(bound, samples, envelope, zeta, match):
    with pytest.raises(fc.InputError, match=match):
        bound(samples, envelope, zeta)


@pytest.mark.parametrize("unit", [1.0, 1e150, 1e290])
def test_coverage_in_any_unit(unit):
    samples = (np.random.default_rng(7).random((4000, 50)) < 0.3).astype(float)
    for name, bound in BOUNDS.items():
        tops = bound(unit * samples, unit, ZETA)
        assert np.mean(tops >= 0.3 * unit) >= 1.0 - ZETA, name
        np.testing.assert_allclose(tops, unit * bound(samples, 1.0, ZETA), rtol=1e-12, err_msg=name)
