"""Algorithm 1: the decision, the baseline, the stability constant, repetition."""


import numpy as np
import pytest
import zoo
from selector_helpers import BASELINE, RULE, OwnError, select
from zoo import solved

import femcert as fc

# The decision


def test_algorithm_1_step_by_step(problem, data, truth):
    base = BASELINE(problem, data)
    better = solved(problem, truth)
    worse = fc.Candidate.from_coefficients(problem, [3.0, 3.0, 3.0], optimality=0.0)
    for candidate, taken in ((better, True), (worse, False)):
        found = select(problem, data, candidate)
        R_base = fc.certify(problem, data, base, RULE).radius.value
        R_learn = fc.certify(problem, data, candidate, RULE).radius.value
        assert found.accepted is (R_learn <= R_base) is taken
        chosen = candidate if taken else base
        np.testing.assert_array_equal(found.parameter, chosen.parameter)
        np.testing.assert_array_equal(found.state, chosen.state)
        assert found.baseline.radius.value == pytest.approx(R_base, rel=1e-12)
        assert found.learned.radius.value == pytest.approx(R_learn, rel=1e-12)
        assert found.ratio == pytest.approx(R_learn / R_base, rel=1e-12)
        assert ("is within" if taken else "exceeds") in found.reason
        assert f"{R_learn:.4g}" in found.reason
        assert f"{R_base:.4g}" in found.reason


def test_objects_and_callables_decide_alike(problem, data, truth):
    base, other = BASELINE(problem, data), solved(problem, truth)
    results = [
        select(problem, data, learned, baseline=baseline, time_limit=limit).to_dict()
        for baseline in (base, BASELINE, lambda p, d: base)
        for learned, limit in ((other, None), (lambda p, d: other, None), (lambda p, d: other, 60.0))
    ]
    assert all(result == results[0] for result in results)
    assert results[0]["accepted"] is True


def test_an_estimate_that_beats_a_bound_is_called_one(problem, data, truth):
    # Structure outside the class that the sensors hardly see: the paper's rule takes it, and the reason says on what.
    wiggle = truth + 3.0 * np.sin(15 * np.pi * problem.basis.doflocs[0])
    found = select(problem, data, fc.Tikhonov(weight=1e-9))
    assert found.accepted
    assert "estimate" not in found.reason
    learned = fc.Candidate(problem.solve(truth), wiggle, 0.0)
    assert not select(problem, data, learned, rule=fc.OperationalRadius(pde=0.0)).accepted
    found = select(problem, data, learned, rule=fc.OperationalRadius(pde=0.0, covered=False))
    assert found.accepted
    assert found.learned.radius.side == "estimate"
    assert not found.learned.contains(truth)
    assert "it is an estimate, the baseline's is a bound" in found.reason


def test_the_tolerance_moves_the_limit(problem, data):
    base = BASELINE(problem, data)
    c, _ = problem.parameters.project(base.parameter)
    learned = fc.Candidate.from_coefficients(problem, c * 1.05, optimality=0.0)
    strict = select(problem, data, learned)
    gap = strict.learned.radius.value - strict.baseline.radius.value
    assert gap > 0.0
    assert not strict.accepted
    assert not select(problem, data, learned, tolerance=0.999 * gap).accepted
    loose = select(problem, data, learned, tolerance=1.001 * gap)
    assert loose.accepted
    assert loose.tolerance == pytest.approx(1.001 * gap)
    assert f"tolerance {loose.tolerance:g}" in loose.reason


# The baseline


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OwnError("own words"), fc.SolveError),
        (MemoryError("own words"), fc.SolveError),
        (SystemExit("own words"), fc.SolveError),
        (fc.InputError("own words"), fc.InputError),
        (fc.SolveError("own words"), fc.SolveError),
        (KeyboardInterrupt("own words"), KeyboardInterrupt),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_a_baseline_that_raises(problem, data, truth, error, kind):
    def baseline(p, d):
        raise error

    with pytest.raises(kind, match="own words"):
        select(problem, data, solved(problem, truth), baseline=baseline)


@pytest.mark.parametrize(
    ("baseline", "match"),
    [
        (None, "baseline is a"),
        (lambda p, d: None, "baseline is not usable"),
        (lambda p, d: fc.Candidate(np.full(21, np.nan), np.zeros(21)), "21 NaN"),
        (lambda p, d: fc.Candidate(np.zeros(3), np.zeros(21)), "shape"),
        (fc.GaussNewton(weight=1.0), "use Tikhonov"),
    ],
)
def test_an_unusable_baseline(problem, data, truth, baseline, match):
    with pytest.raises((fc.SolveError, fc.InputError), match=match):
        select(problem, data, solved(problem, truth), baseline=baseline)


# Stability


def test_an_infinite_constant_leaves_the_baseline():
    problem = zoo.source("tri P1", parameters=2, sensors=zoo.blind)
    data = zoo.data(problem)
    found = select(problem, data, solved(problem))
    assert found.accepted is False
    assert found.status == "undecided"
    assert "C_stab is infinite" in found.reason
    assert found.baseline is None
    assert found.learned is None
    assert found.ratio is None
    np.testing.assert_array_equal(found.parameter, BASELINE(problem, data).parameter)
    assert "C_stab is infinite" in str(found)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("problem", None),
        ("data", [1.0]),
        *(("rule", value) for value in ("dominance", np.zeros(2), fc.Dominance)),
        *(("tolerance", value) for value in (-0.1, np.nan)),
        *(("time_limit", value) for value in (0.0, -1.0, np.nan, np.inf, "soon", True)),
    ],
)
def test_bad_arguments(problem, data, truth, name, value):
    arguments = {"problem": problem, "data": data, "rule": RULE, name: value}
    with pytest.raises(fc.InputError, match=name):
        fc.no_harm(baseline=BASELINE, learned=solved(problem, truth), **arguments)
