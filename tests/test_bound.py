"""A number with its side."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from femcert import Bound, FemcertError, InputError


@settings(deadline=None, max_examples=50)
@given(st.floats(min_value=0.0, allow_nan=False), st.sampled_from(["upper", "lower", "estimate"]))
def test_a_bound_is_its_number(value, side):
    bound = Bound(value, side, "test")
    assert float(bound) == bound.value == value
    # JSON has no infinity.
    assert bound.to_dict() == {"value": None if math.isinf(value) else value, "side": side, "source": "test"}
    assert Bound.from_dict(bound.to_dict()) == bound


@pytest.mark.parametrize("value", [math.nan, -1.0, -math.inf, -1e-300])
def test_nan_and_negative_values_are_refused(value):
    with pytest.raises(InputError, match=r"expected a number >= 0") as info:
        Bound(value, "upper", "dual norm")
    assert "dual norm" in str(info.value)
    assert isinstance(info.value, ValueError)
    assert isinstance(info.value, FemcertError)


@pytest.mark.parametrize("side", ["", "Upper", "both", None])
def test_an_unknown_side_is_refused(side):
    with pytest.raises(InputError, match="expected one of upper, lower, estimate"):
        Bound(1.0, side, "test")


@pytest.mark.parametrize(
    "value",
    ["a", "1", b"1", None, 1j, [1.0], np.ones(1), np.ones(2), np.array(1.0), True, np.True_, 10**400],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_a_number_is_refused(value):
    with pytest.raises(InputError, match="expected a number"):
        Bound(value, "upper", "test")


@pytest.mark.parametrize("one", ["upper", "lower", "estimate"])
@pytest.mark.parametrize("other", ["upper", "lower", "estimate"])
def test_a_sum_has_the_side_that_its_parts_share(one, other):
    found = Bound(1.0, one, "a") + Bound(0.1, other, "b")
    assert found.side == (one if one == other else "estimate")
    assert found.source == "a + b"
    assert found.value == pytest.approx(1.1, rel=1e-15)


@given(st.floats(0.0, 1e300), st.floats(0.0, 1e300))
def test_sums_are_rounded_to_their_side(a, b):
    exact = Fraction(a) + Fraction(b)
    assert Fraction((Bound(a, "upper", "a") + Bound(b, "upper", "b")).value) >= exact
    assert Fraction((Bound(a, "lower", "a") + Bound(b, "lower", "b")).value) <= exact


@given(st.floats(0.0, 1e150), st.floats(0.0, 1e150))
def test_multiples_are_rounded_to_their_side(a, factor):
    exact = Fraction(a) * Fraction(factor)
    assert Fraction(Bound(a, "upper", "a").scaled(factor).value) >= exact
    assert Fraction(Bound(a, "lower", "a").scaled(factor).value) <= exact


def test_probabilities_of_a_sum_are_the_union_bound():
    found = Bound(1.0, "upper", "a", 0.95) + Bound(2.0, "upper", "b", 0.9)
    assert found.probability == pytest.approx(0.85, rel=1e-12)
    assert (Bound(1.0, "upper", "a", 0.4) + Bound(2.0, "upper", "b", 0.5)).side == "estimate"


def test_an_exact_zero_has_every_side():
    none = Bound(0.0, "upper", "nothing")
    assert (Bound(2.0, "lower", "a") + none) == Bound(2.0, "lower", "a")
    assert (none + none) == none
    assert (Bound(0.0, "lower", "a") + Bound(1.0, "upper", "b")).side == "estimate"


def test_infinite_and_wrong_factors():
    assert Bound(np.inf, "upper", "a").scaled(0.0).value == np.inf
    assert (Bound(np.inf, "upper", "a") + Bound(1.0, "upper", "b")).value == np.inf
    for factor in (-1.0, np.nan):
        with pytest.raises(InputError):
            Bound(1.0, "upper", "a").scaled(factor)
