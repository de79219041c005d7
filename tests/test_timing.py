"""Stages: quiet unless asked, and durations that add up."""

import logging
from time import perf_counter, sleep

import numpy as np
import pytest
from scipy.sparse import identity

from femcert.linalg import Factorization
from femcert.timing import LOGGER, collected, stage


def test_nested_stages_add_up_to_the_whole():
    start = perf_counter()
    with collected() as timings, stage("outer"):
        sleep(0.01)
        for _ in range(2):
            with stage("inner"):
                sleep(0.01)
    whole = perf_counter() - start
    assert list(timings.seconds) == ["inner", "outer"]
    assert timings.seconds["inner"] >= 0.02
    assert timings.seconds["outer"] >= 0.01
    assert sum(timings.seconds.values()) <= whole


def test_a_stage_that_fails_is_counted_and_the_next_one_is_not_inside_it():
    begun = []
    with collected(begun.append) as timings:
        with pytest.raises(ValueError, match="no"), stage("broken"), stage("inside"):
            raise ValueError("no")
        with stage("next"):
            pass
    assert set(timings.seconds) == {"broken", "inside", "next"}
    assert begun == ["broken", "next"]


def test_the_library_is_quiet(capfd):
    Factorization(identity(3, format="csc"), definite=True, name="matrix").solve(np.ones(3))
    assert capfd.readouterr() == ("", "")
    assert any(isinstance(handler, logging.NullHandler) for handler in LOGGER.handlers)


def test_main_stages_are_said_at_info_and_all_at_debug(caplog):
    with caplog.at_level(logging.DEBUG, "femcert"), stage("main", "3 parts"):
        Factorization(identity(3, format="csc"), definite=True, name="matrix")
    said = [(record.levelname, record.getMessage().partition(":")[0]) for record in caplog.records]
    assert said == [
        ("DEBUG", "main (3 parts) ..."),
        ("DEBUG", "  factorization (matrix, 3 unknowns, superlu) ..."),
        ("DEBUG", "  factorization (matrix, 3 unknowns, superlu)"),
        ("INFO", "main (3 parts)"),
    ]
