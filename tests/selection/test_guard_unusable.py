"""Candidates that cannot be used, or only look honest while they are watched: the baseline, with the reason."""

import asyncio
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selector_helpers import SHARED, OwnError, check_fallback, good, line, select
from skfem import Basis, ElementLineP1, MeshLine

import femcert as fc

# Candidates that cannot be used


def spoil(vector, value):
    result = np.array(vector, dtype=complex if isinstance(value, complex) else float)
    result[len(result) // 2] = value
    return result


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_anywhere(problem, data, truth, value):
    u, q = problem.solve(truth), truth
    for candidate, word in (
        (fc.Candidate(spoil(u, value), q, 0.0), "state has 1 NaN or infinite entries"),
        (fc.Candidate(u, spoil(q, value), 0.0), "parameter has 1 NaN or infinite entries"),
        (fc.Candidate(u, q, value), "optimality has 1 NaN or infinite entries"),
    ):
        check_fallback(problem, data, candidate, word)
        check_fallback(problem, data, lambda p, d, c=candidate: c, word)


@settings(deadline=None, max_examples=40)
@given(
    where=st.sampled_from(["state", "parameter", "optimality"]),
    index=st.integers(0, 20),
    value=st.sampled_from([np.nan, np.inf, -np.inf]),
    kind=st.sampled_from([np.float64, np.float32]),
    tolerance=st.sampled_from([0.0, 1e300]),
)
def test_a_nan_is_never_accepted(where, index, value, kind, tolerance):
    problem, data, truth = SHARED
    parts = {"state": problem.solve(truth).astype(kind), "parameter": truth.astype(kind), "optimality": 0.0}
    if where == "optimality":
        parts[where] = value
    else:
        parts[where][index] = value
    found = select(problem, data, fc.Candidate(**parts), tolerance=tolerance)
    assert found.accepted is False
    assert np.all(np.isfinite(found.parameter))


@pytest.mark.parametrize(
    ("state", "parameter", "words"),
    [
        (lambda u: u + 0j, lambda q: q, ("state is complex", "expected real numbers")),
        (lambda u: u, lambda q: q * (1 + 0j), ("parameter is complex",)),
        (lambda u: u[:-1], lambda q: q, ("state has shape (20,)", "expected (21,)")),
        (lambda u: u, lambda q: q[:-1], ("parameter has shape (20,)", "expected (21,)")),
        (lambda u: u[:, None], lambda q: q, ("state has shape (21, 1)",)),
        (lambda u: u, lambda q: np.float64(1.0), ("parameter has shape (",)),
        (lambda u: u, lambda q: np.zeros(0), ("parameter has shape (0,)",)),
        (lambda u: None, lambda q: q, ("has no state",)),
    ],
)
def test_wrong_arrays(problem, data, truth, state, parameter, words):
    candidate = fc.Candidate(state(problem.solve(truth)), parameter(truth), 0.0)
    check_fallback(problem, data, candidate, *words)


def test_a_negative_optimality(problem, data, truth):
    check_fallback(problem, data, fc.Candidate(problem.solve(truth), truth, -1.0), "optimality is -1.0", "at least 0")


def test_a_huge_candidate_overflows_to_the_baseline(problem, data, truth):
    with np.errstate(over="ignore", invalid="ignore"):
        check_fallback(problem, data, fc.Candidate(problem.solve(truth) * 1e200, truth * 1e308, 1e308), usable=True)


def test_a_candidate_of_another_mesh(problem, data):
    other = line(n=30)
    wrong_size = fc.Candidate.from_coefficients(other, [1.0, -0.5, 0.25], optimality=0.0)
    check_fallback(problem, data, wrong_size, "was made on another mesh")
    graded = Basis(MeshLine(np.linspace(0.0, 1.0, 21) ** 1.5), ElementLineP1())
    same_size = fc.EllipticSource(
        graded, parameters=fc.SineSpace(graded, 3), sensors=fc.PointSensors(graded, np.linspace(0.1, 0.9, 6))
    )
    candidate = fc.Candidate.from_coefficients(same_size, [1.0, -0.5, 0.25], optimality=0.0)
    assert candidate.parameter.shape == (problem.basis.N,)
    check_fallback(problem, data, candidate, "was made on another mesh")
    # The same nodes and elements in another mesh object are the same mesh.
    twin = fc.Candidate.from_coefficients(line(), [1.0, -0.5, 0.25], optimality=0.0)
    assert select(problem, data, twin).accepted


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("not even a message")


@pytest.mark.parametrize("limit", [None, 60.0])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("training diverged"), ("ValueError", "training diverged")),
        (OwnError("custom"), ("OwnError", "custom")),
        (SystemExit(3), ("SystemExit",)),
        (MemoryError("no room"), ("MemoryError",)),
        (RecursionError("deep"), ("RecursionError",)),
        (AssertionError(), ("AssertionError",)),
        (StopIteration(), ("StopIteration",)),
        (GeneratorExit(), ("GeneratorExit",)),
        (asyncio.CancelledError(), ("CancelledError",)),
        (fc.InputError("from inside"), ("InputError", "from inside")),
        (np.linalg.LinAlgError("singular"), ("LinAlgError", "singular")),
        (Mute(), ("Mute",)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exceptions(problem, data, error, words, limit):
    def learned(p, d):
        raise error

    check_fallback(problem, data, learned, "raised", *words, time_limit=limit)


def test_real_recursion(problem, data):
    def learned(p, d):
        return learned(p, d)

    check_fallback(problem, data, learned, "RecursionError")


def test_warnings_that_are_errors(problem, data):
    # The test suite turns warnings into errors; to the selector it is one more exception.
    check_fallback(problem, data, lambda p, d: np.log(np.array([-1.0])), "raised RuntimeWarning")


def test_an_interrupt_is_the_user_s(problem, data):
    def learned(p, d):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        select(problem, data, learned)
    # In a thread of its own no user can have interrupted it.
    check_fallback(problem, data, learned, "KeyboardInterrupt", time_limit=60.0)


def test_a_time_limit(problem, data, truth):
    release = threading.Event()

    def slow(p, d):
        release.wait(30.0)
        return good(p, truth)

    start = time.perf_counter()
    check_fallback(problem, data, slow, "ran past the time limit of 0.05 s", time_limit=0.05)
    assert time.perf_counter() - start < 5.0
    release.set()
    # Slow properties of a candidate count too.
    class Slow(fc.Candidate):
        @property
        def state(self):
            time.sleep(0.4)
            return super().state

    check_fallback(problem, data, Slow(problem.solve(truth), truth, 0.0), "ran past the time limit", time_limit=0.05)
    assert select(problem, data, lambda p, d: good(p, truth), time_limit=60.0).accepted


@pytest.mark.parametrize("limit", [0.0, -1.0, np.nan, "soon"])
def test_bad_time_limits(problem, data, truth, limit):
    with pytest.raises(fc.InputError, match="time_limit"):
        select(problem, data, good(problem, truth), time_limit=limit)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, ("returned a NoneType", "expected a Candidate")),
        ((np.zeros(21), np.zeros(21)), ("returned a tuple",)),
        (np.zeros(21), ("returned an ndarray",)),
        ({"state": 1}, ("returned a dict",)),
        (fc.Candidate, ("returned the class Candidate",)),
    ],
)
def test_what_is_not_a_candidate(problem, data, result, words):
    check_fallback(problem, data, lambda p, d: result, *words)


@pytest.mark.parametrize("learned", [None, 3.0, "network.pt", np.zeros(21)])
def test_what_is_neither_candidate_nor_callable(problem, data, learned):
    check_fallback(problem, data, learned, f" {type(learned).__name__}", "expected a Candidate or a callable")


@pytest.mark.parametrize(("given", "words"), [(np.zeros(2), "an ndarray"), (fc.Dominance, "the class Dominance")])
def test_what_is_no_rule_is_said_in_english(problem, data, given, words):
    with pytest.raises(fc.InputError, match=f"rule is {words}; expected a rule such as Dominance"):
        fc.no_harm(problem, data, baseline=fc.Tikhonov(weight=1e-3), learned=fc.Tikhonov(weight=1e-2), rule=given)


def test_callables_of_the_wrong_signature(problem, data):
    check_fallback(problem, data, lambda: None, "raised TypeError")


def test_an_unreported_optimality(problem, data, truth):
    silent = fc.Candidate(problem.solve(truth), truth)
    assert check_fallback(problem, data, silent, "reports none", "optimality=0").status == "undecided"
    assert select(problem, data, silent, rule=fc.OperationalRadius(pde=0.01)).accepted


def test_an_unreported_optimality_of_the_baseline(problem, data, truth):
    silent = fc.Candidate(problem.solve(truth), truth)
    found = select(problem, data, good(problem, truth), baseline=silent)
    assert found.accepted is False
    assert "cannot be certified" in found.reason
    assert found.baseline is None


# Candidates that look honest while they are watched


class Shifting(fc.Candidate):
    """Shows a good pair the first time it is asked, and something else later."""

    def __init__(self, first, later):
        super().__init__(first.state, first.parameter, 0.0)
        self._later, self._asked = later, 0

    @property
    def parameter(self):
        self._asked += 1
        return super().parameter if self._asked == 1 else self._later


def test_what_was_certified_is_what_is_returned(problem, data, truth):
    candidate = Shifting(good(problem, truth), truth + 100.0)
    found = select(problem, data, candidate)
    assert found.accepted
    np.testing.assert_array_equal(found.parameter, truth)
    np.testing.assert_array_equal(found.parameter, found.parameter)
    assert found.learned.error(truth) == 0.0


@pytest.mark.parametrize("name", ["state", "parameter", "optimality", "name", "_mesh"])
def test_properties_that_raise(problem, data, truth, name):
    def explode(self):
        raise OwnError(f"no {name} for you")

    kind = type("Secretive", (fc.Candidate,), {name: property(explode, lambda self, value: None)})
    check_fallback(problem, data, kind(problem.solve(truth), truth, 0.0), "OwnError", f"no {name} for you")


def test_a_candidate_without_insides(problem, data):
    check_fallback(problem, data, fc.Candidate.__new__(fc.Candidate), "AttributeError")


def test_properties_of_odd_types(problem, data, truth):
    for name, value in (("state", "u"), ("parameter", [[1.0], [2.0, 3.0]]), ("optimality", "tiny")):
        kind = type("Odd", (fc.Candidate,), {name: property(lambda self, v=value: v)})
        check_fallback(problem, data, kind(problem.solve(truth), truth, 0.0), "raised")


@pytest.mark.parametrize("rule", [fc.ExactRadius(), fc.Dominance()])
def test_rules_that_do_not_look_at_states_compute_them(problem, data, rule):
    whole = [fc.Candidate.from_coefficients(problem, c) for c in ([1.0, 0.5, 0.3], [1.0, -0.4, 0.2])]
    bare = [fc.Candidate(None, each.parameter) for each in whole]
    found = [fc.no_harm(problem, data, baseline=pair[0], learned=pair[1], rule=rule) for pair in (whole, bare)]
    assert found[0].learned is not None
    assert found[0].to_dict() == found[1].to_dict()
    assert fc.certify(problem, data, bare[1], rule).radius == found[0].learned.radius
