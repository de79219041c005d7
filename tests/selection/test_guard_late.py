"""Candidates that are late, loud or untidy."""

import os
import time
import warnings

import numpy as np
import pytest
from selector_helpers import BASELINE, check_fallback, good, select

import femcert as fc
from femcert.selection import guard
from femcert.selection.guard import CandidateFailure

# Candidates that are late, loud or untidy


def test_a_late_result_is_no_result(problem, data, truth):
    """A loop that computes all the time it is given, and returns something good in the end."""

    def busy(p, d):
        end = time.perf_counter() + 0.5
        while time.perf_counter() < end:
            pass
        return good(p, truth)

    check_fallback(problem, data, busy, "ran past the time limit of 0.1 s", time_limit=0.1)


def test_a_limit_missed_while_nobody_looked(monkeypatch):
    """Compiled code may keep the interpreter until it is done: the work is over when the limit is looked at."""
    clock = iter([0.0, 0.5])
    monkeypatch.setattr(guard.time, "monotonic", lambda: next(clock))
    with pytest.raises(CandidateFailure, match=r"ran past the time limit of 0.1 s"):
        guard.attempt(lambda: "late", 0.1)


@pytest.mark.parametrize("limit", [np.float32(30.0), np.int64(30), 30, 1e10, 1e300])
def test_time_limits_of_any_kind(problem, data, truth, limit):
    assert select(problem, data, lambda p, d: good(p, truth), time_limit=limit).accepted


@pytest.mark.parametrize("limit", ["5", True, [5.0], np.datetime64("2026-01-01"), np.inf])
def test_time_limits_that_are_no_numbers(problem, data, truth, limit):
    with pytest.raises(fc.InputError, match="time_limit"):
        select(problem, data, lambda p, d: good(p, truth), time_limit=limit)


class Awkward(Exception):
    """An error that cannot be printed, or not in a page."""

    def __init__(self, text):
        self.text = text

    def __str__(self):
        if isinstance(self.text, BaseException):
            raise self.text
        return self.text


@pytest.mark.parametrize("limit", [None, 60.0])
@pytest.mark.parametrize(
    "text", [SystemExit(3), KeyboardInterrupt(), RecursionError(), "x" * 2_000_000, 5, "half a pair \ud800"],
    ids=["exit", "interrupt", "recursion", "long", "no text", "surrogate"],
)  # fmt: skip
def test_errors_with_awkward_words(problem, data, tmp_path, text, limit):
    def learned(p, d):
        raise Awkward(text)

    found = check_fallback(problem, data, learned, "it raised Awkward", time_limit=limit)
    assert len(found.reason) < 1000
    found.save(tmp_path / "selection.json")
    assert fc.Selection.load(tmp_path / "selection.json").reason == found.reason


def rearrange(directory):
    os.chdir(directory)
    np.seterr(all="raise")
    warnings.resetwarnings()
    warnings.simplefilter("ignore")


@pytest.mark.parametrize("limit", [None, 60.0])
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("culprit", ["learned", "baseline"])
def test_the_surroundings_are_restored(problem, data, truth, tmp_path, culprit, fails, limit):
    def learned(p, d):
        if culprit == "learned":
            rearrange(tmp_path)
        if fails:
            raise ValueError("after all that")
        return good(p, truth)

    def baseline(p, d):
        if culprit == "baseline":
            rearrange(tmp_path)
        return BASELINE(p, d)

    before = os.getcwd(), np.geterr(), list(warnings.filters)
    assert select(problem, data, learned, baseline=baseline, time_limit=limit).accepted is not fails
    assert (os.getcwd(), np.geterr(), list(warnings.filters)) == before


def test_a_deleted_working_directory(problem, data, truth, tmp_path, monkeypatch):
    def into_nowhere(p, d):
        (tmp_path / "lost").mkdir()
        os.chdir(tmp_path / "lost")
        (tmp_path / "lost").rmdir()
        return good(p, truth)

    here = os.getcwd()
    assert select(problem, data, into_nowhere).accepted
    assert os.getcwd() == here
    # And from nowhere, where there is nothing to restore.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert select(problem, data, lambda p, d: good(p, truth)).accepted
