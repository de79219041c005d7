"""Candidates that are late, loud or untidy."""

import threading
import time
import warnings

import numpy as np
import pytest
from scipy.sparse import identity
from selector_helpers import BASELINE, check_fallback, good, select

import femcert as fc
from femcert.linalg import Factorization, backends, use_backend
from femcert.selection import guard
from femcert.selection.guard import CandidateFailure
from femcert.timing import collected, stage

needs_multigrid = pytest.mark.skipif(not backends.is_installed("multigrid"), reason="pyamg is not installed")

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


@pytest.mark.parametrize("limit", [None, 60.0])
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("culprit", ["learned", "baseline"])
def test_error_handling_and_warnings_are_restored(problem, data, truth, culprit, fails, limit):
    def rearrange():
        np.seterr(all="raise")
        warnings.resetwarnings()
        warnings.simplefilter("ignore")

    def learned(p, d):
        if culprit == "learned":
            rearrange()
        if fails:
            raise ValueError("after all that")
        return good(p, truth)

    def baseline(p, d):
        if culprit == "baseline":
            rearrange()
        return BASELINE(p, d)

    before = np.geterr(), list(warnings.filters)
    assert select(problem, data, learned, baseline=baseline, time_limit=limit).accepted is not fails
    assert (np.geterr(), list(warnings.filters)) == before


# Solvers that name a backend of their own


@pytest.fixture
def free_choice(monkeypatch):
    monkeypatch.delenv(backends.VARIABLE, raising=False)


def chosen():
    return Factorization(identity(4), definite=True).backend


@needs_multigrid
@pytest.mark.parametrize("limit", [None, 60.0])
def test_a_block_that_is_never_left_is_not_ours(problem, data, truth, limit, free_choice):
    kept = []

    def learned(p, d):
        kept.append(use_backend("multigrid", tolerance=0.05))
        kept[0].__enter__()
        return good(p, truth)

    assert select(problem, data, learned, time_limit=limit).accepted
    assert backends.named_backend() is None
    assert chosen() == "superlu"


@needs_multigrid
def test_a_block_of_a_late_solver_is_its_own(problem, data, truth, free_choice):
    inside, go, left = threading.Event(), threading.Event(), threading.Event()

    def slow(p, d):
        with use_backend("multigrid", tolerance=0.05):
            inside.set()
            go.wait(30.0)
        left.set()
        return good(p, truth)

    check_fallback(problem, data, slow, "ran past the time limit", time_limit=0.2)
    assert inside.is_set()
    assert chosen() == "superlu"
    with use_backend("superlu", tolerance=0.01):
        go.set()
        assert left.wait(30.0)
        assert backends.named_backend() == backends.Choice("superlu", 0.01)
    assert backends.named_backend() is None


@needs_multigrid
@pytest.mark.parametrize("limit", [None, 60.0])
def test_a_block_around_the_selection_holds_for_the_solver(problem, data, truth, limit, free_choice):
    seen = []

    def learned(p, d):
        seen.append(chosen())
        return good(p, truth)

    with use_backend("multigrid"):
        assert select(problem, data, learned, time_limit=limit).accepted
    assert seen == ["multigrid"]


def test_stages_of_a_late_solver_count_for_nobody(problem, data, truth):
    go, left = threading.Event(), threading.Event()

    def slow(p, d):
        with stage("first"):
            go.wait(30.0)
        left.set()
        return good(p, truth)

    with collected() as timings:
        check_fallback(problem, data, slow, "ran past the time limit", time_limit=0.05)
        go.set()
        assert left.wait(30.0)
    assert "first" not in timings.seconds
