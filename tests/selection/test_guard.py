"""Candidates that cannot be used, or are late: the baseline, with the reason."""

import threading
import warnings

import numpy as np
import pytest
import zoo
from scipy.sparse import identity
from selector_helpers import BASELINE, OwnError, check_fallback, select
from zoo import solved

import femcert as fc
from femcert.linalg import Factorization, backends
from femcert.selection import guard
from femcert.selection.guard import CandidateFailure

needs_multigrid = pytest.mark.skipif(not backends.is_installed("multigrid"), reason="pyamg is not installed")
LIMITS = pytest.mark.parametrize("limit", [None, 60.0])


# Values


@pytest.mark.parametrize(
    ("state", "parameter", "words"),
    [
        (lambda u: u + 0j, lambda q: q, ("state is complex", "expected real numbers")),
        (lambda u: u, lambda q: q * (1 + 0j), ("parameter is complex",)),
        (lambda u: u[:-1], lambda q: q, ("state has shape (20,)", "expected (21,)")),
        (lambda u: u, lambda q: q[:-1], ("parameter has shape (20,)", "expected (21,)")),
        (lambda u: u[:, None], lambda q: q, ("state has shape (21, 1)",)),
        (lambda u: u, lambda q: np.zeros(0), ("parameter has shape (0,)",)),
        (lambda u: None, lambda q: q, ("has no state",)),
    ],
)
def test_wrong_arrays(problem, data, truth, state, parameter, words):
    candidate = fc.Candidate(state(problem.solve(truth)), parameter(truth), 0.0)
    check_fallback(problem, data, candidate, *words)


def test_a_huge_candidate_overflows_to_the_baseline(problem, data, truth):
    with np.errstate(over="ignore", invalid="ignore"):
        check_fallback(problem, data, fc.Candidate(problem.solve(truth) * 1e200, truth * 1e308, 1e308), usable=True)


def test_a_candidate_of_another_mesh(problem, data):
    for other in (zoo.source(cells=30), zoo.source(zoo.unit_basis("line P1", graded=True))):
        candidate = fc.Candidate.from_coefficients(other, [1.0, -0.5, 0.25], optimality=0.0)
        check_fallback(problem, data, candidate, "was made on another mesh")
    # The same nodes and elements in another mesh object are the same mesh.
    twin = fc.Candidate.from_coefficients(zoo.source(), [1.0, -0.5, 0.25], optimality=0.0)
    assert select(problem, data, twin).accepted


def test_an_optimality_that_is_negative_or_unreported(problem, data, truth):
    check_fallback(problem, data, fc.Candidate(problem.solve(truth), truth, -1.0), "optimality is -1.0", "at least 0")
    silent = fc.Candidate(problem.solve(truth), truth)
    check_fallback(problem, data, silent, "reports none", "optimality=0", status="undecided")
    assert select(problem, data, silent, rule=fc.OperationalRadius(pde=0.01)).accepted
    found = select(problem, data, solved(problem, truth), baseline=silent)
    assert found.status == "undecided"
    assert "cannot be certified" in found.reason


@pytest.mark.parametrize("rule", [fc.ExactRadius(), fc.Dominance()])
def test_rules_that_do_not_look_at_states_compute_them(problem, data, rule):
    whole = [fc.Candidate.from_coefficients(problem, c) for c in ([1.0, 0.5, 0.3], [1.0, -0.4, 0.2])]
    bare = [fc.Candidate(None, each.parameter) for each in whole]
    found = [fc.no_harm(problem, data, baseline=pair[0], learned=pair[1], rule=rule) for pair in (whole, bare)]
    assert found[0].learned is not None
    assert found[0].to_dict() == found[1].to_dict()
    assert fc.certify(problem, data, bare[1], rule).radius == found[0].learned.radius


# Callables


@LIMITS
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("training diverged"), ("ValueError", "training diverged")),
        (OwnError("x" * 2_000_000), ("OwnError", "xxx ...")),
        (OwnError("half a pair \ud800"), ("OwnError",)),
        (SystemExit(3), ("SystemExit",)),
        (MemoryError("no room"), ("MemoryError",)),
        (StopIteration(), ("StopIteration",)),
        (fc.InputError("from inside"), ("InputError", "from inside")),
        (np.linalg.LinAlgError("singular"), ("LinAlgError", "singular")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exceptions(problem, data, error, words, limit, tmp_path):
    def learned(p, d):
        raise error

    found = check_fallback(problem, data, learned, "it raised", *words, time_limit=limit)
    assert len(found.reason) < 1000
    found.save(tmp_path / "selection.json")
    assert fc.Selection.load(tmp_path / "selection.json").reason == found.reason


def test_recursion_warnings_and_wrong_signatures(problem, data):
    def endless(p, d):
        return endless(p, d)

    check_fallback(problem, data, endless, "RecursionError")
    # The test suite turns warnings into errors; to the selector it is one more exception.
    check_fallback(problem, data, lambda p, d: np.log(np.array([-1.0])), "raised RuntimeWarning")
    check_fallback(problem, data, lambda: None, "raised TypeError")


def test_an_interrupt_is_the_user_s(problem, data):
    def learned(p, d):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        select(problem, data, learned)
    # In a thread of its own no user can have interrupted it.
    check_fallback(problem, data, learned, "KeyboardInterrupt", time_limit=60.0)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, ("returned a NoneType", "expected a Candidate")),
        ((np.zeros(21), np.zeros(21)), ("returned a tuple",)),
        (np.zeros(21), ("returned an ndarray",)),
        (fc.Candidate, ("returned the class Candidate",)),
    ],
)
def test_what_is_not_a_candidate(problem, data, result, words):
    check_fallback(problem, data, lambda p, d: result, *words)


@pytest.mark.parametrize("learned", [None, "network.pt", np.zeros(21)])
def test_what_is_neither_candidate_nor_callable(problem, data, learned):
    check_fallback(problem, data, learned, f" {type(learned).__name__}", "expected a Candidate or a callable")


@LIMITS
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
        return solved(p, truth)

    def baseline(p, d):
        if culprit == "baseline":
            rearrange()
        return BASELINE(p, d)

    before = np.geterr(), list(warnings.filters)
    assert select(problem, data, learned, baseline=baseline, time_limit=limit).accepted is not fails
    assert (np.geterr(), list(warnings.filters)) == before


# Time limits


def test_a_time_limit(problem, data, truth):
    release = threading.Event()

    def slow(p, d):
        release.wait(30.0)
        return solved(p, truth)

    check_fallback(problem, data, slow, "ran past the time limit of 0.05 s", time_limit=0.05)
    release.set()
    assert select(problem, data, lambda p, d: solved(p, truth), time_limit=60.0).accepted


def test_a_limit_missed_while_nobody_looked(monkeypatch):
    """Compiled code may keep the interpreter until it is done: the work is over when the limit is looked at."""
    clock = iter([0.0, 0.5])
    monkeypatch.setattr(guard.time, "monotonic", lambda: next(clock))
    with pytest.raises(CandidateFailure, match=r"ran past the time limit of 0.1 s"):
        guard.attempt(lambda: "late", 0.1)


# Solvers that name a backend of their own


@pytest.fixture
def free_choice(monkeypatch):
    monkeypatch.delenv(backends.VARIABLE, raising=False)


def chosen():
    return Factorization(identity(4), definite=True).backend


@needs_multigrid
@LIMITS
def test_a_block_that_is_never_left_is_not_ours(problem, data, truth, limit, free_choice):
    kept = []

    def learned(p, d):
        kept.append(fc.use_backend("multigrid", tolerance=0.05))
        kept[0].__enter__()
        return solved(p, truth)

    assert select(problem, data, learned, time_limit=limit).accepted
    assert backends.named_backend() is None
    assert chosen() == "superlu"


@needs_multigrid
def test_a_block_of_a_late_solver_is_its_own(problem, data, truth, free_choice):
    inside, go, left = threading.Event(), threading.Event(), threading.Event()

    def slow(p, d):
        with fc.use_backend("multigrid", tolerance=0.05):
            inside.set()
            go.wait(30.0)
        left.set()
        return solved(p, truth)

    check_fallback(problem, data, slow, "ran past the time limit", time_limit=0.2)
    assert inside.is_set()
    assert chosen() == "superlu"
    with fc.use_backend("superlu", tolerance=0.01):
        go.set()
        assert left.wait(30.0)
        assert backends.named_backend() == backends.Choice("superlu", 0.01)
    assert backends.named_backend() is None


@needs_multigrid
@LIMITS
def test_a_block_around_the_selection_holds_for_the_solver(problem, data, truth, limit, free_choice):
    seen = []

    def learned(p, d):
        seen.append(chosen())
        return solved(p, truth)

    with fc.use_backend("multigrid"):
        assert select(problem, data, learned, time_limit=limit).accepted
    assert seen == ["multigrid"]
