"""Of a linear problem without offset, data, state and parameter times s have a radius times s."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posed import RULES, heat, regions, source, tomography
from zoo import coefficients

import femcert as fc

DUAL = {
    "equilibrated": fc.ResidualRadius(pde_norm="equilibrated"),
    "certified": fc.OperationalRadius(pde="certified", bc="certified", pde_norm="equilibrated"),
    "guaranteed": fc.GuaranteedRadius(),
    "recomputed": fc.GuaranteedRadius(state="recomputed"),
    "exact, continuous": fc.ExactRadius(guarantee="continuous"),
}
POSED = {
    "source line P2": (lambda: source("line P2"), RULES),
    "source tri P1": (lambda: source("tri P1"), RULES),
    "heat quad Q1": (lambda: heat("quad Q1"), RULES),
    "tomography tri P2": (lambda: tomography("tri P2"), RULES),
    "regions line P1": (lambda: regions("line P1"), RULES | DUAL),
    "regions quad Q2": (lambda: regions("quad Q2"), RULES | DUAL),
}
factors = st.builds(lambda sign, power: sign * 10.0**power, st.sampled_from([-1.0, 1.0]), st.floats(-6.0, 6.0))


def scaled(candidate, s):
    state = None if candidate.state is None else s * candidate.state
    return fc.Candidate(state, s * candidate.parameter, abs(s) * candidate.optimality)


@pytest.mark.parametrize("name", POSED)
@settings(deadline=None, max_examples=3, derandomize=True)
@given(s=factors, seed=st.integers(0, 1000), off=st.floats(0.0, 0.5), outside=st.floats(0.0, 0.5))
def test_data_and_parameter_times_s_scale_the_radius(name, s, seed, off, outside):
    build, rules = POSED[name]
    posed = build()
    problem, c = posed.problem, coefficients(posed.problem, seed)
    data, candidate = posed.data(c, seed=seed), posed.candidate(1.1 * c, off=off, outside=outside)
    times = fc.Data(s * data.values, abs(s) * data.noise_level)
    for rule in rules.values():
        one = fc.certify(problem, data, candidate, rule)
        other = fc.certify(problem, times, scaled(candidate, s), rule)
        assert other.radius.value == pytest.approx(abs(s) * one.radius.value, rel=1e-7)
        assert (other.radius.side, other.scope) == (one.radius.side, one.scope)


@pytest.mark.parametrize("name", POSED)
@settings(deadline=None, max_examples=3, derandomize=True)
@given(s=factors, seed=st.integers(0, 1000))
def test_scaling_changes_no_decision(name, s, seed):
    posed = POSED[name][0]()
    problem, c = posed.problem, coefficients(posed.problem, seed)
    data = posed.data(c, seed=seed)
    times = fc.Data(s * data.values, abs(s) * data.noise_level)
    baseline, learned = posed.candidate(0.9 * c), posed.candidate(c, outside=0.01 * (seed % 3))
    for rule in RULES.values():
        one = fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=rule)
        other = fc.no_harm(problem, times, baseline=scaled(baseline, s), learned=scaled(learned, s), rule=rule)
        assert one.accepted is other.accepted
        if one.comparison is not None:
            assert other.comparison.margin == pytest.approx(s**2 * one.comparison.margin, rel=1e-6)


@settings(deadline=None, max_examples=8, derandomize=True)
@given(s=st.floats(-3.0, 3.0).map(lambda power: 10.0**power), seed=st.integers(0, 1000))
def test_a_covariance_scales_like_the_square_and_its_level_not_at_all(s, seed):
    posed = source("line P1")
    problem, c = posed.problem, coefficients(posed.problem, seed)
    rng = np.random.default_rng(seed)
    variances = rng.uniform(0.5, 2.0, problem.observation_count) * 1e-6
    clean = problem.observe(problem.solve(posed.truth(c)))
    values, level = clean + rng.standard_normal(clean.size) * np.sqrt(variances), 6.0
    candidate = posed.candidate(1.1 * c, off=0.01, outside=0.1)
    # The paper's pde residual is in units of the state, the data in those of the noise.
    for rule in (fc.OperationalRadius(pde=0.0, bc=0.0), fc.ExactRadius()):
        one = fc.certify(problem, fc.Data(values, level, covariance=variances), candidate, rule)
        times = fc.Data(s * values, level, covariance=s**2 * variances)
        other = fc.certify(problem, times, scaled(candidate, s), rule)
        assert other.radius.value == pytest.approx(s * one.radius.value, rel=1e-7)


@settings(deadline=None, max_examples=8, derandomize=True)
@given(power=st.integers(-6, 6), seed=st.integers(0, 1000))
def test_on_a_ball_its_radius_scales_too(power, seed):
    s, c = 2.0**power, coefficients(source("line P2").problem, seed)
    small, large = source("line P2", ball=40.0), source("line P2", ball=40.0 * s)
    data, candidate = small.data(c, seed=seed), small.candidate(1.1 * c, outside=0.1)
    times = fc.Data(s * data.values, s * data.noise_level)
    one = fc.certify(small.problem, data, candidate, fc.ExactRadius())
    other = fc.certify(large.problem, times, scaled(candidate, s), fc.ExactRadius())
    assert other.radius.value == pytest.approx(s * one.radius.value, rel=1e-6)


@pytest.mark.parametrize("rule", RULES)
@settings(deadline=None, max_examples=6, derandomize=True)
@given(power=st.integers(-12, 12))
def test_units_do_not_change_what_is_accepted(rule, power):
    """A candidate three times the truth, in units from tiny to huge."""
    posed = source("line P1")
    problem, s = posed.problem, 10.0**power
    c = coefficients(problem, 1)
    data = posed.data(c)
    data = fc.Data(s * data.values, s * data.noise_level)
    learned = scaled(posed.candidate(3.0 * c), s)
    selection = fc.no_harm(problem, data, baseline=fc.Tikhonov(weight=1e-2), learned=learned, rule=RULES[rule])
    assert not selection.accepted
    error = problem.parameters.norm(learned.parameter / s - posed.truth(c))
    assert selection.learned.radius.side != "upper" or selection.learned.radius.value / s >= error
