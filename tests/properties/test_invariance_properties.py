"""Where a mesh lies, how it is turned and numbered changes nothing beyond rounding."""

from __future__ import annotations

import numpy as np
import posed as pose
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posed import POINTS, STILL, Motion, coefficient, heat, regions, source, tomography
from zoo import PLANE, coefficients

import femcert as fc

places = st.tuples(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0))
turns = st.builds(Motion, angle=st.floats(0.0, 6.28), shift=places, seed=st.integers(0, 1000))
# The disc of an average is a polygon of 24 sides: turned by this much it is itself.
polygon_turns = st.builds(
    lambda turn, shift, seed: Motion(turn * np.pi / 12.0, shift, seed), st.integers(0, 23), places, st.integers(0, 1000)
)
shifts = st.builds(Motion, shift=places, seed=st.one_of(st.none(), st.integers(0, 1000)))
RULES = [pose.RULES[name] for name in ("residual", "paper", "exact", "dominance")]
GUARANTEED = [fc.ResidualRadius(pde_norm="equilibrated"), fc.GuaranteedRadius(), fc.ExactRadius(guarantee="continuous")]
# Solves and sums in another order; sigma_min carries the rounding of sigma_max.
SAME = 1e-7


def check_same(build, name, motion, rules, *, outside=0.05):
    one, other = build(name, STILL), build(name, motion)
    c = coefficients(one.problem, 3)
    data = one.data(c)
    for rule in rules:
        found = [
            fc.no_harm(
                posed.problem,
                data,
                baseline=posed.candidate(0.95 * c),
                learned=posed.candidate(1.01 * c, off=1e-3, outside=outside),
                rule=rule,
            )
            for posed in (one, other)
        ]
        assert found[0].accepted is found[1].accepted
        for side in ("baseline", "learned"):
            first, second = (getattr(selection, side) for selection in found)
            assert second.radius.value == pytest.approx(first.radius.value, rel=SAME), rule
            assert (second.radius.side, second.scope) == (first.radius.side, first.scope)
        if found[0].comparison is not None:
            margin = found[0].comparison.margin
            assert found[1].comparison.margin == pytest.approx(margin, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", ["line P1", "line P2"])
@settings(deadline=None, max_examples=3, derandomize=True)
@given(motion=shifts)
def test_radii_and_decisions_on_a_line(name, motion):
    check_same(source, name, motion, RULES)
    check_same(heat, name, motion, RULES)


@pytest.mark.parametrize("name", PLANE)
@settings(deadline=None, max_examples=2, derandomize=True)
@given(motion=turns, other=polygon_turns)
def test_radii_and_decisions_in_the_plane(name, motion, other):
    check_same(source, name, other, RULES)
    check_same(heat, name, motion, RULES)


@pytest.mark.parametrize("name", ["line P1", "tri P1", "quad Q2"])
@settings(deadline=None, max_examples=2, derandomize=True)
@given(motion=turns)
def test_guaranteed_radii_and_decisions(name, motion):
    if name == "line P1":
        motion = Motion(shift=motion.shift, seed=motion.seed)
    check_same(regions, name, motion, GUARANTEED)


@pytest.mark.parametrize("name", PLANE)
@settings(deadline=None, max_examples=2, derandomize=True)
@given(motion=shifts)
def test_tomography_shifted_and_renumbered(name, motion):
    check_same(tomography, name, motion, RULES)


@pytest.mark.parametrize("name", ["line P2", "tri P1", "quad Q2"])
@settings(deadline=None, max_examples=2, derandomize=True)
@given(motion=turns)
def test_the_coefficient_problem(name, motion):
    if name.startswith("line"):
        motion = Motion(shift=motion.shift, seed=motion.seed)
    check_same(coefficient, name, motion, [fc.ResidualRadius()])


@pytest.mark.parametrize("build", [heat, coefficient])
@settings(deadline=None, max_examples=3, derandomize=True)
@given(motion=turns)
def test_all_singular_values(build, motion):
    one, other = build("tri P1", STILL), build("tri P1", motion)
    c = coefficients(one.problem, 1)
    at = [None if posed.problem.forward else posed.truth(c) for posed in (one, other)]
    first, second = (fc.stability(posed.problem, at=q) for posed, q in zip((one, other), at, strict=True))
    np.testing.assert_allclose(second.singular_values, first.singular_values, rtol=SAME)
    assert second.constant.value == pytest.approx(first.constant.value, rel=SAME)


@pytest.mark.parametrize("method", ["equilibrated", "enriched", "riesz", "indicator"])
@pytest.mark.parametrize("name", ["line P2", *PLANE])
@settings(deadline=None, max_examples=2, derandomize=True)
@given(motion=turns)
def test_dual_norms(name, method, motion):
    if name.startswith("line"):
        motion = Motion(shift=motion.shift, seed=motion.seed)
    one, other = source(name, STILL), source(name, motion)
    c = coefficients(one.problem, 2)
    first, second = (
        fc.dual_norm(posed.problem, posed.candidate(c, off=0.1, outside=0.3), method) for posed in (one, other)
    )
    for side in ("upper", "lower"):
        here, there = getattr(first, side), getattr(second, side)
        assert (here is None) is (there is None)
        if here is not None:
            assert there.value == pytest.approx(here.value, rel=1e-6)
            assert there.side == here.side


@pytest.mark.parametrize("name", ["tri P1", "quad Q2"])
@settings(deadline=None, max_examples=2, derandomize=True)
@given(order=st.permutations(range(len(POINTS[2]))))
def test_the_order_of_the_sensors(name, order):
    one = source(name)
    basis, c = one.problem.basis, coefficients(one.problem, 4)
    other = fc.EllipticSource(
        basis,
        parameters=one.problem.parameters,
        sensors=fc.AverageSensors(basis, POINTS[2][list(order)], radius=0.08),
        conductivity=lambda x: 1.0 + 0.5 * x[0],
    )
    data, candidate = one.data(c), one.candidate(1.1 * c, off=0.01, outside=0.1)
    turned = fc.Data(data.values[list(order)], data.noise_level)
    for rule in RULES:
        first = fc.certify(one.problem, data, candidate, rule).radius.value
        assert fc.certify(other, turned, candidate, rule).radius.value == pytest.approx(first, rel=SAME)
