"""Learned callables in a child process: whatever ends it, or is written in it, the parent goes on with the baseline."""

import faulthandler
import importlib
import multiprocessing
import os
import signal
import time

import numpy as np
import pytest
from selector_helpers import check_fallback, select
from zoo import solved

import femcert as fc

pytestmark = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="the system cannot fork"
)


@pytest.mark.parametrize("limit", [None, 60.0, 1e300])
def test_a_result_is_the_same_as_without(problem, data, truth, limit):
    def learned(p, d):
        return solved(p, truth, name="network")

    found = select(problem, data, learned, isolated=True, time_limit=limit)
    assert found.accepted
    assert found.to_dict() == select(problem, data, learned).to_dict()
    assert not found.case.learned.parameter.flags.writeable
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        (lambda: os._exit(3), "its process ended with exit code 3"),
        (lambda: os._exit(0), "its process ended with exit code 0"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "its process ended by the signal SIGSEGV"),
        (lambda: importlib.import_module("ctypes").string_at(0), "its process ended by the signal SIGSEGV"),
        (lambda: exec("raise SystemExit(4)"), "it raised SystemExit: 4"),
        (lambda: 1 / 0, "it raised ZeroDivisionError"),
        (lambda: None, "it returned a NoneType; expected a Candidate"),
        (lambda: np.log(np.array([-1.0])), "it raised RuntimeWarning"),
    ],
    ids=["exit", "exit 0", "signal", "segfault", "SystemExit", "exception", "None", "warning"],
)
def test_whatever_ends_it(problem, data, deed, words):
    def learned(p, d):
        faulthandler.disable()
        return deed()

    check_fallback(problem, data, learned, words, isolated=True)
    assert not multiprocessing.active_children()


def test_a_time_limit_ends_what_never_lets_go(problem, data):
    def learned(p, d):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            pass

    start = time.perf_counter()
    check_fallback(problem, data, learned, "it ran past the time limit of 0.3 s", isolated=True, time_limit=0.3)
    assert time.perf_counter() - start < 10.0
    assert not multiprocessing.active_children()


def test_what_is_written_there_stays_there(problem, data, truth):
    arrays = (data.values, problem.basis.mesh.p, problem.basis.dx, problem.parameters.matrix)
    before = [array.copy() for array in arrays]

    def learned(p, d):
        candidate = solved(p, truth)
        for array in arrays:
            array.flags.writeable = True
            array[...] = 0.0
        p.observe = lambda state: np.zeros(6)
        os.chdir("/")
        return candidate

    here = os.getcwd()
    found = select(problem, data, learned, isolated=True)
    assert found.to_dict() == select(problem, data, solved(problem, truth)).to_dict()
    for array, then in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, then)
    assert os.getcwd() == here


def test_a_result_that_cannot_be_pickled(problem, data, truth):
    def learned(p, d):
        return fc.Candidate.from_functions(p, parameter=lambda x: np.sin(np.pi * x[0]), optimality=0.0)

    words = "its result cannot be pickled, which isolated=True needs", "isolated=False"
    check_fallback(problem, data, learned, *words, isolated=True)
    assert select(problem, data, learned).learned is not None


def test_a_missing_package_says_nothing_of_the_candidate(problem, data):
    found = select(problem, data, lambda p, d: importlib.import_module("no_such_package"), isolated=True)
    assert found.status == "undecided"
    assert "no_such_package" in found.reason


def test_networks_after_threads_of_the_parent(problem, data, truth):
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    large = torch.ones(1500, 1500)
    (large @ large).exp().sum()

    def learned(p, d):
        (large @ large).exp().sum()
        return solved(p, truth)

    assert select(problem, data, learned, isolated=True, time_limit=60.0).accepted
    torch.set_num_threads(threads)


def test_a_system_that_cannot_fork(problem, data, truth, monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    with pytest.raises(fc.InputError, match="can fork"):
        select(problem, data, lambda p, d: solved(p, truth), isolated=True)
