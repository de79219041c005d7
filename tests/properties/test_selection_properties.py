"""The baseline itself is accepted, a NaN never is, and the same input always gives the same selection."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import posed as pose
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posed import coefficient, heat, regions, source, tomography
from zoo import coefficients

import femcert as fc

HERE = Path(__file__).parent
RULES = {**pose.RULES, "stochastic": fc.StochasticRadius(points=50, zeta=0.05, seed=3)}
CONTINUOUS = {
    "equilibrated": fc.ResidualRadius(pde_norm="equilibrated"),
    "guaranteed": fc.GuaranteedRadius(),
    "recomputed": fc.GuaranteedRadius(state="recomputed"),
    "exact, continuous": fc.ExactRadius(guarantee="continuous"),
    "dominance, continuous": fc.Dominance(guarantee="continuous"),
}
STATELESS = {name: RULES[name] for name in ("residual", "paper", "exact", "dominance")}
NONLINEAR = {name: RULES[name] for name in ("residual", "paper", "operational", "stochastic")}
POSED = {
    "source tri P2": (lambda: source("tri P2"), RULES),
    "heat line P1": (lambda: heat("line P1"), STATELESS),
    "tomography quad Q1": (lambda: tomography("quad Q1"), STATELESS),
    "coefficient line P2": (lambda: coefficient("line P2"), NONLINEAR),
    "regions line P1": (lambda: regions("line P1"), CONTINUOUS),
    "regions quad Q1": (lambda: regions("quad Q1"), CONTINUOUS),
}


def bits(selection):
    """A selection as text: equal text, equal selection, to the last bit."""
    return json.dumps(selection.to_dict(), sort_keys=True)


def twin(candidate, name="learned"):
    return fc.Candidate(candidate.state, candidate.parameter, candidate.optimality, name)


@pytest.mark.parametrize("name", POSED)
@settings(deadline=None, max_examples=3, derandomize=True)
@given(seed=st.integers(0, 1000), off=st.floats(0.0, 1.0), outside=st.floats(0.0, 1.0), noise=st.floats(1e-3, 0.1))
def test_a_candidate_equal_to_the_baseline_is_accepted_and_twice_the_same(name, seed, off, outside, noise):
    build, rules = POSED[name]
    posed = build()
    c = coefficients(posed.problem, seed)
    data = posed.data(c, noise=noise, seed=seed)
    baseline = posed.candidate(0.9 * c, off=off, outside=outside)
    for rule in rules.values():
        first, second = (
            fc.no_harm(posed.problem, data, baseline=baseline, learned=twin(baseline), rule=rule) for _ in range(2)
        )
        assert first.accepted, (rule, first.reason)
        assert first.ratio == 1.0
        assert bits(first) == bits(second)
        np.testing.assert_array_equal(first.parameter, baseline.parameter)


@pytest.mark.parametrize("name", POSED)
@settings(deadline=None, max_examples=3, derandomize=True)
@given(
    bad=st.sampled_from([np.nan, np.inf, -np.inf]),
    seed=st.integers(0, 1000),
    place=st.integers(0, 10**6),
    where=st.sampled_from(["state", "parameter"]),
    kind=st.sampled_from([np.float64, np.float32]),
)
def test_a_nan_in_a_field_is_never_accepted(name, bad, seed, place, where, kind):
    build, rules = POSED[name]
    posed = build()
    c = coefficients(posed.problem, seed)
    data, baseline = posed.data(c, seed=seed), posed.candidate(0.5 * c)
    good = posed.candidate(c)
    fields = {"state": good.state, "parameter": good.parameter}
    if fields[where] is None:
        where = "parameter"
    broken = fields[where].astype(kind)
    broken.flat[place % broken.size] = bad
    learned = fc.Candidate(**{**fields, where: broken}, optimality=0.0)
    for rule in rules.values():
        found = fc.no_harm(posed.problem, data, baseline=baseline, learned=learned, rule=rule, tolerance=1e300)
        assert found.accepted is False
        assert f"{where} has 1 NaN or infinite entries" in found.reason
        np.testing.assert_array_equal(found.parameter, baseline.parameter)


@pytest.mark.parametrize("bad", [np.nan, -1.0])
@pytest.mark.parametrize("name", POSED)
def test_a_nan_as_optimality_is_never_accepted(name, bad):
    build, rules = POSED[name]
    posed = build()
    c = coefficients(posed.problem)
    data, baseline, good = posed.data(c), posed.candidate(0.5 * c), posed.candidate(c)
    for rule in rules.values():
        found = fc.no_harm(
            posed.problem, data, baseline=baseline, learned=fc.Candidate(good.state, good.parameter, bad), rule=rule,
            tolerance=1e300,
        )  # fmt: skip
        assert found.accepted is False
        assert "optimality" in found.reason


@pytest.mark.parametrize("where", ["state", "parameter"])
@settings(deadline=None, max_examples=6, derandomize=True)
@given(cut=st.floats(0.0, 0.9), bad=st.sampled_from([np.nan, np.inf]))
def test_a_function_that_is_nan_somewhere_is_never_accepted(where, cut, bad):
    posed = source("tri P1")
    c = coefficients(posed.problem)
    data, baseline = posed.data(c), posed.candidate(0.5 * c)

    def learned(problem, data):
        functions = {"state": lambda x: 0.0 * x[0], "parameter": lambda x: np.sin(x[0])}
        whole = functions[where]
        functions[where] = lambda x: np.where(x[0] > cut, bad, whole(x))
        return fc.Candidate.from_functions(problem, **functions, optimality=0.0)

    for rule in RULES.values():
        found = fc.no_harm(posed.problem, data, baseline=baseline, learned=learned, rule=rule, tolerance=1e300)
        assert found.accepted is False


def test_a_nan_in_the_baseline_is_an_error_and_no_selection():
    posed = source("line P1")
    c = coefficients(posed.problem)
    good = posed.candidate(c)
    broken = fc.Candidate(good.state, np.full_like(good.parameter, np.nan), 0.0)
    for rule in RULES.values():
        with pytest.raises(fc.SolveError, match="baseline"):
            fc.no_harm(posed.problem, posed.data(c), baseline=broken, learned=good, rule=rule)


def outcome():
    """The texts of selections by all rules on freshly built problems; also run by another process."""
    texts = []
    for name, (build, rules) in POSED.items():
        posed = build()
        c = coefficients(posed.problem, 5)
        data = posed.data(c)
        for rule in rules.values():
            pair = {"baseline": posed.candidate(0.8 * c), "learned": posed.candidate(c, off=1e-4, outside=1e-3)}
            texts.append(name + bits(fc.no_harm(posed.problem, data, **pair, rule=rule)))
    return texts


def test_another_process_with_another_hash_seed_selects_the_same_to_the_last_bit():
    code = "import json, test_selection_properties as t; print(json.dumps(t.outcome()))"
    path = os.pathsep.join([str(HERE), *sys.path])
    ran = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": path},
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    for here, there in zip(outcome(), json.loads(ran.stdout), strict=True):
        assert here == there
