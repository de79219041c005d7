"""A number with its side."""

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from femcert import Bound, FemcertError, InputError


@settings(deadline=None, max_examples=50)
@given(st.floats(min_value=0.0, allow_nan=False), st.sampled_from(["upper", "lower", "estimate"]))
def test_a_bound_is_its_number(value, side):
    bound = Bound(value, side, "test")
    assert float(bound) == bound.value == value
    assert bound.to_dict() == {"value": value, "side": side, "source": "test"}
    assert Bound(**bound.to_dict()) == bound


def test_it_may_be_infinite():
    assert math.isinf(Bound(math.inf, "upper", "nothing is known").value)


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


def test_it_cannot_be_changed():
    bound = Bound(1, "lower", "test")
    assert type(bound.value) is float
    with pytest.raises(dataclasses.FrozenInstanceError):
        bound.value = 2.0


@pytest.mark.parametrize(("side", "sign"), [("upper", "<="), ("lower", ">="), ("estimate", "~")])
def test_it_prints_its_side(side, sign):
    assert str(Bound(0.25, side, "P2")) == f"{sign} 0.25 (P2)"
