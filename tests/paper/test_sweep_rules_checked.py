"""Rules of users: what is no answer for each trial is refused, never counted as an acceptance."""

from functools import partial
from operator import attrgetter

import numpy as np
import pytest

import femcert as fc
from femcert.paper.rules import BatchDecision, weighted

GRID = {"sensors": [10], "noise": [0.01], "perturbation": [0.1], "mismatch": [0.0], "replications": 4}
ONES, YES = np.ones(4), np.ones(4, bool)


@pytest.mark.parametrize(
    "answer",
    [
        (np.full(4, np.nan),), (-ONES,), (np.array(["no"] * 4),), (np.ma.masked_all(4, dtype=bool),), (YES[:1],),
        (np.True_,), (YES[:, None],), (YES, ONES, np.nan * ONES), (YES, ONES, ONES + 0j),
        (YES, np.array(["1"] * 4), ONES), (YES, ONES, np.array([None] * 4)), (YES, ONES, np.ones(5)),
        (YES, ONES, -ONES), (YES, -np.inf * ONES, ONES), None, YES,
    ],
)  # fmt: skip
def test_what_is_no_decision(answer):
    said = BatchDecision(*answer) if isinstance(answer, tuple) else answer
    with pytest.raises(fc.InputError, match="'mine' returned"):
        fc.sweep(grid=GRID, rules={"mine": lambda trials: said})


def test_what_is_one():
    assert fc.sweep(grid=GRID, rules={"mine": lambda trials: BatchDecision(YES)}).outcome("mine").accepted == 4


def test_a_ratio_is_that_of_the_radii():
    class Boastful(BatchDecision):
        @property
        def ratio(self):
            return np.zeros((2, 3))

    rules = {"mine": lambda trials: Boastful(YES, ONES, 2.0 * ONES)}
    assert np.all(fc.sweep(grid=GRID, rules=rules).ratio() == 2.0)


@pytest.mark.parametrize("part", ["learned.x", "values", "level", "fit.centre"])
def test_a_rule_cannot_change_what_the_next_one_sees(part):
    """Not the candidates, nor the data, nor what was computed from them."""

    def writes(trials):
        attrgetter(part)(trials)[:] = 0.0
        return BatchDecision(YES)

    with pytest.raises(ValueError, match="read-only"):
        fc.sweep(grid=GRID, rules={"mine": writes})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("axis", ["noise", "perturbation", "mismatch"])
@pytest.mark.parametrize("value", [1e80, 1e200, 1e308, 1e60, 1e-60, 1e-308])
def test_settings_that_overflow_are_refused_and_others_decided(axis, value):
    grid = {**GRID, axis: [value]}
    if value > 1e70:
        with pytest.raises(fc.InputError, match="the settings lead to"):
            fc.sweep(grid=grid)
    else:
        assert fc.sweep(grid=grid).outcome().trials == 4


@pytest.mark.filterwarnings("error")
def test_a_weight_that_overflows_accepts_nothing():
    rules = {"mine": partial(weighted, pde=1e308)}
    assert fc.sweep(grid={**GRID, "mismatch": [1e6]}, rules=rules).outcome().accepted == 0
