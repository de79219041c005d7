"""More sensors, smaller classes and sums of spaces: the stability constant moves the right way."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posed import POINTS, coefficient, heat, regions, source, tomography
from zoo import STRAIGHT

import femcert as fc
from femcert.problem.forward import dense

# Of the arithmetic; where it counts, the constants differ by far more.
ROUNDING = 1e-9


@pytest.mark.parametrize("build", [source, regions, heat, coefficient])
@settings(deadline=None, max_examples=8, derandomize=True)
@given(name=st.sampled_from(STRAIGHT), count=st.integers(4, 6), seed=st.integers(0, 1000))
def test_a_sensor_more_never_increases_the_constant(build, name, count, seed):
    few, more = build(name, count=count), build(name, count=count + 1)
    at = None
    if not few.problem.forward:
        at = few.truth(np.random.default_rng(seed).standard_normal(few.problem.parameters.dimension))
    before, after = (fc.stability(posed.problem, at=at) for posed in (few, more))
    assert after.constant.value <= before.constant.value * (1.0 + ROUNDING)
    assert np.all(after.singular_values >= before.singular_values * (1.0 - ROUNDING))


@settings(deadline=None, max_examples=25, derandomize=True)
@given(seed=st.integers(0, 10**6), count=st.integers(4, 12))
def test_any_functional_more_never_increases_the_constant(seed, count):
    basis = source("line P1").problem.basis
    rows = np.random.default_rng(seed).standard_normal((count + 1, basis.N))
    space = source("line P1").problem.parameters
    made = [
        fc.EllipticSource(basis, parameters=space, sensors=fc.MatrixSensors(rows[:size])) for size in (count, count + 1)
    ]
    before, after = (fc.stability(problem) for problem in made)
    assert after.constant.value <= before.constant.value * (1.0 + ROUNDING)


@pytest.mark.parametrize("name", ["tri P1", "quad Q2"])
def test_an_angle_more_never_increases_the_constant(name):
    angles = (0.0, 35.0, 80.0, 120.0, 150.0)
    found = [fc.stability(tomography(name, angles=angles[:n]).problem).constant.value for n in (2, 3, 4, 5)]
    assert all(after <= before * (1.0 + ROUNDING) for before, after in pairwise(found))


@settings(deadline=None, max_examples=10, derandomize=True)
@given(seed=st.integers(0, 1000))
def test_the_exact_radius_shrinks_with_a_sensor_whose_noise_is_within_the_same_level(seed):
    few, more = source("tri P1", count=5), source("tri P1", count=6)
    rng = np.random.default_rng(seed)
    c = rng.standard_normal(few.problem.parameters.dimension)
    clean = more.problem.observe(more.problem.solve(more.truth(c)))
    level = 0.05 * float(np.linalg.norm(clean))
    noise = rng.standard_normal(clean.size)
    values = clean + noise * (0.9 * level / np.linalg.norm(noise))
    candidate = few.candidate(c + 0.1 * rng.standard_normal(c.size), outside=0.1)
    rule = fc.ExactRadius()
    before = fc.certify(few.problem, fc.Data(values[:5], level), candidate, rule).radius.value
    after = fc.certify(more.problem, fc.Data(values, level), candidate, rule).radius.value
    assert after <= before * (1.0 + ROUNDING)


@settings(deadline=None, max_examples=20, derandomize=True)
@given(seed=st.integers(0, 1000), kept=st.integers(1, 2))
def test_a_part_of_the_class_is_no_less_stable(seed, kept):
    whole = source("quad Q1").problem
    mix = np.random.default_rng(seed).standard_normal((whole.parameters.dimension, kept))
    columns = dense(whole.parameters.matrix) @ mix
    points = POINTS[2]
    basis = whole.basis
    part = fc.EllipticSource(
        basis,
        parameters=fc.problem.space.ParameterSpace(basis, columns),
        sensors=fc.AverageSensors(basis, points, radius=0.08),
        conductivity=lambda x: 1.0 + 0.5 * x[0],
    )
    assert fc.stability(part).constant.value <= fc.stability(whole).constant.value * (1.0 + 1e-8)
