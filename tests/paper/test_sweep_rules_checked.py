"""Rules of users: what is no answer for each trial is refused, never counted as an acceptance."""

from operator import attrgetter

import numpy as np
import pytest

import femcert as fc
from femcert.paper.rules import BatchDecision

GRID = {"sensors": [10], "noise": [0.01], "perturbation": [0.1], "mismatch": [0.0], "replications": 4}
ONES, YES = np.ones(4), np.ones(4, bool)


@pytest.mark.parametrize(
    "answer",
    [
        (np.full(4, np.nan),), (-ONES,), (YES[:1],),
        (YES[:, None],), (YES, ONES, np.nan * ONES),
        (YES, ONES, np.ones(5)),
        (YES, ONES, -ONES), None, YES,
    ],
)  # fmt: skip
def test_what_is_no_decision(answer):
    said = BatchDecision(*answer) if isinstance(answer, tuple) else answer
    with pytest.raises(fc.InputError, match="'mine' returned"):
        fc.sweep(grid=GRID, rules={"mine": lambda trials: said})


@pytest.mark.parametrize("part", ["learned.x", "values", "level", "fit.centre"])
def test_a_rule_cannot_change_what_the_next_one_sees(part):
    """Not the candidates, nor the data, nor what was computed from them."""

    def writes(trials):
        attrgetter(part)(trials)[:] = 0.0
        return BatchDecision(YES)

    with pytest.raises(ValueError, match="read-only"):
        fc.sweep(grid=GRID, rules={"mine": writes})
