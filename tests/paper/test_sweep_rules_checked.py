"""Rules of users: what is no answer for each trial is refused, never counted as an acceptance."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import femcert as fc
from femcert.paper.rules import BatchDecision, weighted

GRID = {"sensors": [10], "noise": [0.01], "perturbation": [0.1], "mismatch": [0.0], "replications": 4}


@pytest.mark.parametrize(
    "answer",
    [
        lambda n: BatchDecision(np.full(n, np.nan)),
        lambda n: BatchDecision(np.full(n, -1.0)),
        lambda n: BatchDecision(np.array(["no"] * n)),
        lambda n: BatchDecision(np.ma.masked_all(n, dtype=bool)),
        lambda n: BatchDecision(np.array([True])),
        lambda n: BatchDecision(np.True_),
        lambda n: BatchDecision(np.ones((n, 1), bool)),
        lambda n: BatchDecision(np.ones(n, bool), np.ones(n), np.full(n, np.nan)),
        lambda n: BatchDecision(np.ones(n, bool), np.ones(n), np.ones(n, complex)),
        lambda n: BatchDecision(np.ones(n, bool), np.array(["1"] * n), np.ones(n)),
        lambda n: BatchDecision(np.ones(n, bool), np.ones(n), np.array([None] * n)),
        lambda n: BatchDecision(np.ones(n, bool), np.ones(n), np.ones(n + 1)),
        lambda n: BatchDecision(np.ones(n, bool), np.ones(n), -np.ones(n)),
        lambda n: BatchDecision(np.ones(n, bool), np.full(n, -np.inf), np.ones(n)),
        lambda n: np.ones(n, bool),
        lambda n: None,
    ],
)
def test_what_is_no_decision(answer):
    with pytest.raises(fc.InputError, match="the rule 'mine' returned"):
        fc.sweep(grid=GRID, rules={"mine": lambda trials: answer(len(trials.values))})


def test_what_is_one():
    found = fc.sweep(grid=GRID, rules={"mine": lambda trials: BatchDecision(np.ones(len(trials.values), bool))})
    assert found.outcome("mine").accepted == 4


def test_a_ratio_is_that_of_the_radii():
    class Boastful(BatchDecision):
        @property
        def ratio(self):
            return np.zeros((2, 3))

    def rule(trials):
        ones = np.ones(len(trials.values))
        return Boastful(ones > 0.0, ones, 2.0 * ones)

    assert np.all(fc.sweep(grid=GRID, rules={"mine": rule}).ratio() == 2.0)


def test_a_rule_cannot_change_what_the_next_one_sees():
    """Not the candidates, nor the data, nor what was computed from them."""
    parts = {
        "learned": lambda trials: trials.learned.x,
        "values": lambda trials: trials.values,
        "level": lambda trials: trials.level,
        "centre": lambda trials: trials.fit.centre,
    }
    for part in parts.values():

        def writes(trials, part=part):
            part(trials)[:] = 0.0
            return BatchDecision(np.ones(len(trials.values), bool))

        with pytest.raises(ValueError, match="read-only"):
            fc.sweep(grid=GRID, rules={"mine": writes})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("axis", ["noise", "perturbation", "mismatch"])
@pytest.mark.parametrize("value", [1e80, 1e200, 1e308])
def test_settings_that_overflow_are_refused(axis, value):
    with pytest.raises(fc.InputError, match=r"the settings lead to data, residuals or errors of .*; expected at most"):
        fc.sweep(grid={**GRID, axis: [value]})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("axis", ["noise", "perturbation", "mismatch"])
@pytest.mark.parametrize("value", [1e60, 1e-60, 1e-308])
def test_settings_that_do_not_are_decided(axis, value):
    assert fc.sweep(grid={**GRID, axis: [value]}).outcome().trials == 4


@pytest.mark.filterwarnings("error")
def test_a_weight_that_overflows_accepts_nothing():
    rules = {"mine": partial(weighted, pde=1e308)}
    assert fc.sweep(grid={**GRID, "mismatch": [1e6]}, rules=rules).outcome().accepted == 0
