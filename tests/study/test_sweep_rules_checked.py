"""Rules of users: what is no answer for each trial is refused, never counted as an acceptance."""

from __future__ import annotations

import numpy as np
import pytest

import femcert as fc
from femcert.study.sweep.rules import Verdict

GRID = {"sensors": [10], "noise": [0.01], "perturbation": [0.1], "mismatch": [0.0], "replications": 4}


@pytest.mark.parametrize(
    "answer",
    [
        lambda n: Verdict(np.full(n, np.nan)),
        lambda n: Verdict(np.full(n, -1.0)),
        lambda n: Verdict(np.array(["no"] * n)),
        lambda n: Verdict(np.ma.masked_all(n, dtype=bool)),
        lambda n: Verdict(np.array([True])),
        lambda n: Verdict(np.True_),
        lambda n: Verdict(np.ones((n, 1), bool)),
        lambda n: Verdict(np.ones(n, bool), np.ones(n), np.full(n, np.nan)),
        lambda n: np.ones(n, bool),
        lambda n: None,
    ],
)
def test_what_is_no_verdict(answer):
    with pytest.raises(fc.InputError, match="the rule 'mine' returned"):
        fc.sweep(grid=GRID, rules={"mine": lambda trials: answer(len(trials.values))})


def test_what_is_one():
    found = fc.sweep(grid=GRID, rules={"mine": lambda trials: Verdict(np.ones(len(trials.values), bool))})
    assert found.outcome("mine").accepted == 4
