"""Saving and loading gives back what was there: selections, candidates, certificates, sweeps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from posed import RULES, coefficient, heat, regions, source, tomography
from zoo import coefficients

import femcert as fc

STATELESS = [RULES[name] for name in ("residual", "paper", "exact", "dominance")]
# A constant of the mesh alone, the paper's sampled residual, and rules for which there is only the baseline.
SELECTIONS = [
    (lambda: source("tri P2"), [*STATELESS, fc.StochasticRadius(points=50, zeta=0.05, seed=3)]),
    (lambda: source("line P1", ball=40.0), [fc.ExactRadius(), fc.Dominance()]),
    (lambda: heat("line P2"), [*STATELESS, fc.GuaranteedRadius()]),
    (lambda: tomography("quad Q1"), STATELESS),
    (lambda: coefficient("line P2"), [fc.ResidualRadius(), fc.ExactRadius()]),
    (lambda: regions("tri P1"), [fc.GuaranteedRadius(), fc.ResidualRadius(pde_norm="equilibrated")]),
]
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)


@pytest.mark.parametrize("which", range(len(SELECTIONS)))
@settings(deadline=None, max_examples=3, derandomize=True)
@given(seed=st.integers(0, 1000), name=names, worse=st.floats(0.5, 2.0), tolerance=st.sampled_from([0.0, 0.1, 1e9]))
def test_a_selection_saved_and_loaded_is_the_same(tmp_path_factory, which, seed, name, worse, tolerance):
    build, rules = SELECTIONS[which]
    posed = build()
    c = coefficients(posed.problem, seed)
    data, path = posed.data(c, seed=seed), tmp_path_factory.mktemp("records") / "selection.json"
    good = posed.candidate(worse * c)
    for rule in rules:
        learned = fc.Candidate(good.state, good.parameter, good.optimality, name)
        selection = fc.no_harm(
            posed.problem, data, baseline=posed.candidate(0.9 * c), learned=learned, rule=rule, tolerance=tolerance
        )
        selection.save(path)
        again = fc.Selection.load(path)
        assert again.to_dict() == selection.to_dict()
        assert str(again) == str(selection)
        np.testing.assert_array_equal(again.parameter, selection.parameter)
        np.testing.assert_array_equal(again.state, selection.state)
        text = path.read_bytes()
        again.save(path)
        assert path.read_bytes() == text


@settings(deadline=None, max_examples=20, derandomize=True)
@given(data=st.data())
def test_a_candidate_saved_and_loaded_is_the_same_to_the_last_bit(tmp_path_factory, data):
    posed = data.draw(st.sampled_from([source("tri P1"), heat("line P1"), tomography("quad Q1")]))
    problem = posed.problem
    shape = (int(problem.basis.N), *([len(problem.times)] if isinstance(problem, fc.HeatInitial) else []))
    state = data.draw(arrays(float, shape, elements=numbers)) if problem.states else None
    parameter = data.draw(arrays(float, int(problem.parameters.basis.N), elements=numbers))
    optimality = data.draw(st.none() | st.floats(0.0, 1e300))
    candidate = fc.Candidate(state, parameter, optimality)
    path = tmp_path_factory.mktemp("records") / "candidate.npz"
    candidate.save(path)
    again = fc.Candidate.from_file(problem, path)
    assert again.optimality == candidate.optimality
    for field in ("state", "parameter"):
        here, there = getattr(candidate, field), getattr(again, field)
        assert (here is None) is (there is None)
        assert here is None or here.tobytes() == there.tobytes()
