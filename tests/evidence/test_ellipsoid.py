"""The farthest point of an ellipsoid: closed forms, hard cases on purpose, brute force, invariances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from femcert.evidence.ellipsoid import farthest, farthest_axes, support

K = 4
coordinate = st.one_of(st.just(0.0), st.floats(-10.0, 10.0).filter(lambda v: abs(v) > 1e-6))
offsets = arrays(float, K, elements=coordinate)
singulars = arrays(float, K, elements=st.one_of(st.just(1.0), st.just(0.5), st.floats(1e-3, 1e3)))
slacks = st.one_of(st.just(0.0), st.floats(1e-6, 1e3))


def distance(point, offset):
    return np.linalg.norm(point - offset, axis=-1)


def check(singular, offset, slack, rtol=1e-12):
    """Bound from above and point from below agree, and the point is in the ellipsoid."""
    upper, point = farthest(np.asarray(singular, float), np.asarray(offset, float), slack)
    inside = np.sqrt(np.sum((np.asarray(singular) * point) ** 2, axis=-1))
    assert np.all(inside <= slack * (1.0 + 1e-13))
    assert np.all(upper >= distance(point, offset) * (1.0 - 1e-15))
    np.testing.assert_allclose(distance(point, offset), upper, rtol=rtol)
    return upper


def test_interval():
    assert check([2.0], [-3.0], 1.0) == pytest.approx(3.5, rel=1e-14)
    assert check([2.0], [0.0], 1.0) == pytest.approx(0.5, rel=1e-14)


def test_sphere():
    assert check([0.5, 0.5, 0.5], [1.0, -2.0, 2.0], 3.0) == pytest.approx(9.0, rel=1e-14)


@pytest.mark.parametrize("along", [1.0, -4.0, 0.1])
def test_offset_on_the_longest_axis(along):
    assert check([1.0, 2.0, 5.0], [along, 0.0, 0.0], 1.5) == pytest.approx(1.5 + abs(along), rel=1e-14)


def test_offset_on_the_shorter_axis_is_the_hard_case():
    """Half axes 1 and 1/2, b = (0, t): for t < 3/2 the maximizer leaves the axis, value (1 + t² / (1 - 1/4))^(1/2)."""
    for t in (0.0, 0.3, 1.2, 1.4999):
        expected = np.sqrt(1.0 + t**2 + t**2 * 0.25 / 0.75)
        assert check([1.0, 2.0], [0.0, t], 1.0) == pytest.approx(expected, rel=1e-13)
    for t in (1.5, 1.5001, 4.0):
        assert check([1.0, 2.0], [0.0, t], 1.0) == pytest.approx(t + 0.5, rel=1e-13)


@pytest.mark.parametrize("tiny", [1e-3, 1e-8, 1e-14, 1e-100, 1e-200, 5e-324])
def test_nearly_hard(tiny):
    expected = np.sqrt(1.0 + 0.3**2 * 4.0 / 3.0)
    assert check([1.0, 2.0], [tiny, 0.3], 1.0) == pytest.approx(expected, rel=2.0 * tiny + 1e-13)
    assert check([1.0, 2.0], [tiny, 1.5], 1.0) == pytest.approx(2.0, rel=2.0 * tiny + 1e-13)


def test_several_smallest_singular_values():
    upper = check([1.0, 1.0, 1.0, 3.0], [0.0, 0.0, 0.0, 0.2], 2.0)
    assert upper == pytest.approx(np.sqrt(4.0 + 0.04 + 0.04 * (4.0 / 9.0) / (4.0 - 4.0 / 9.0)), rel=1e-13)
    assert check([1.0, 1.0, 7.0], [3.0, 4.0, 0.0], 2.0) == pytest.approx(7.0, rel=1e-13)


@pytest.mark.parametrize("gap", [1e-16, 1e-12, 1e-6])
def test_nearly_equal_singular_values(gap):
    assert check([1.0, 1.0 + gap], [0.0, 1.0], 1.0) == pytest.approx(2.0, abs=3.0 * gap + 1e-13)


def test_no_slack_is_a_point():
    assert check([1.0, 2.0], [3.0, 4.0], 0.0) == pytest.approx(5.0, rel=1e-14)
    assert check([1.0, 2.0], [0.0, 0.0], 0.0) == 0.0


@pytest.mark.parametrize("slack", [0.0, 1.0])
def test_a_zero_singular_value_is_a_cylinder(slack):
    upper, point = farthest(np.array([[1.0, 0.0], [1.0, 2.0]]), np.array([3.0, 0.0]), slack)
    assert upper[0] == np.inf
    assert upper[1] == pytest.approx(3.0 + slack)
    assert np.all(np.isfinite(point))
    assert farthest_axes(np.array([np.inf, 1.0]), np.zeros(2))[0] == np.inf


def test_shapes_broadcast():
    rng = np.random.default_rng(0)
    s, b, e = rng.uniform(0.1, 1.0, (5, 1, 3)), rng.normal(size=(2, 3)), rng.uniform(size=(5, 2))
    upper, point = farthest(s, b, e)
    assert upper.shape == (5, 2)
    assert point.shape == (5, 2, 3)
    for i in range(5):
        for j in range(2):
            assert upper[i, j] == farthest(s[i, 0], b[j], e[i, j])[0]
    assert farthest(np.ones((0, 3)), np.ones(3), 1.0)[0].shape == (0,)


def test_ten_thousand_of_all_scales():
    rng = np.random.default_rng(1)
    n, k = 10_000, 10
    s, b = np.exp(rng.normal(0.0, 5.0, (n, k))), rng.normal(size=(n, k)) * np.exp(rng.normal(0.0, 10.0, (n, 1)))
    b[rng.random((n, k)) < 0.3] = 0.0
    check(s, b, np.exp(rng.normal(0.0, 10.0, n)), rtol=1e-11)


@pytest.mark.parametrize("unit", [1e-290, 1e-100, 1e100, 1e290])
def test_units(unit):
    s, b = np.array([1.0, 2.0, 4.0]), np.array([0.1, -0.5, 2.0])
    expected = farthest(s, b, 1.5)[0]
    assert farthest(s, b * unit, 1.5 * unit)[0] == pytest.approx(unit * expected, rel=1e-13)
    assert farthest(s * unit, b, 1.5 * unit)[0] == pytest.approx(expected, rel=1e-13)
    assert farthest(s * unit, b / unit, 1.5)[0] == pytest.approx(expected / unit, rel=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_random_points_of_the_ellipsoid(seed):
    """None is farther, and the best of many steps of ascent is as far."""
    rng = np.random.default_rng(seed)
    k = seed + 1
    s, b = rng.uniform(0.2, 3.0, k), rng.normal(size=k)
    if seed == 3:
        b[np.argmin(s)] = 0.0
    upper = check(s, b, 1.3)
    w = rng.normal(size=(2000, k))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    a = 1.3 / s
    for _ in range(300):
        assert np.all(distance(a * w, b) <= upper)
        # The linearization of a convex function is maximized by its gradient, normalized: a step never goes down.
        w = a * (a * w - b)
        w /= np.linalg.norm(w, axis=1, keepdims=True)
    assert distance(a * w, b).max() == pytest.approx(float(upper), rel=1e-6)


@settings(max_examples=200, deadline=None)
@given(singulars, offsets, slacks)
def test_between_simple_bounds(s, b, e):
    upper = check(s, b, e, rtol=1e-9)
    longest, size = e / s.min(), np.linalg.norm(b)
    assert upper <= (longest + size) * (1.0 + 1e-13)
    assert upper >= np.hypot(longest, size) * (1.0 - 1e-13)
    assert upper <= farthest(s, b, 2.0 * e)[0] * (1.0 + 1e-13)
    assert upper <= farthest(s / 2.0, b, e)[0] * (1.0 + 1e-13)


@settings(max_examples=100, deadline=None)
@given(singulars, offsets, offsets, slacks)
def test_lipschitz_and_convex_in_the_offset(s, b, c, e):
    values = [float(farthest(s, p, e)[0]) for p in (b, c, (b + c) / 2.0)]
    room = 1e-12 * (1.0 + sum(values))
    assert abs(values[0] - values[1]) <= np.linalg.norm(b - c) + room
    assert values[2] <= (values[0] + values[1]) / 2.0 + room


def test_support_by_hand():
    value, point = support(np.array([1.0, 2.0]), np.array([3.0, 8.0]), 2.0)
    assert value == pytest.approx(10.0, rel=1e-14)
    np.testing.assert_allclose(point, [1.2, 0.8], rtol=1e-14)


def test_support_along_zero_singular_values():
    s = np.array([1.0, 0.0])
    value, point = support(s, np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), 2.0)
    assert value[0] == pytest.approx(2.0)
    assert value[1] == np.inf
    assert value[2] == 0.0
    assert np.all(np.isfinite(point))


@settings(max_examples=100, deadline=None)
@given(singulars, offsets, offsets, slacks)
def test_support_is_reached_and_subadditive(s, d, c, e):
    (value, other, both), points = support(s, np.stack([d, c, d + c]), e)
    assert value == pytest.approx(float(d @ points[0]), rel=1e-12)
    assert np.linalg.norm(s * points[0]) <= e * (1.0 + 1e-13)
    assert both <= (value + other) * (1.0 + 1e-13)
    # Farther than any extent: ‖z - b‖ >= (z - b) . u for the unit vector u along -b.
    size = np.linalg.norm(d)
    if size > 0.0:
        assert farthest(s, d, e)[0] >= (size + support(s, d / size, e)[0]) * (1.0 - 1e-12)
