"""Algorithm 1: the decision, and the baseline whatever a learned candidate does."""

import asyncio
import contextlib
import dataclasses
import os
import threading
import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skfem import Basis, ElementLineP1, ElementTriP1, MeshLine, MeshTri

import femcert as fc
from femcert.selection import guard
from femcert.selection.guard import CandidateFailure, attempt

RULE = fc.OperationalRadius(pde=0.01, optimality=0.1)
BASELINE = fc.Tikhonov(weight=1e-3)


def line(n=20, k=3, m=6, **options):
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, n + 1)), ElementLineP1())
    sensors = fc.PointSensors(basis, np.linspace(0.1, 0.9, m))
    return fc.EllipticSource(basis, parameters=fc.SineSpace(basis, k), sensors=sensors, **options)


@pytest.fixture
def problem():
    return line()


@pytest.fixture
def truth(problem):
    return problem.parameters.field([1.0, -0.5, 0.25])


@pytest.fixture
def data(problem, truth):
    return problem.simulate(truth, noise=0.02, seed=1)


def select(problem, data, learned, rule=RULE, baseline=BASELINE, **options):
    return fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=rule, **options)


def fallback(problem, data, learned, *words, usable=False, **options):
    """Run a selection that must fall back, and check everything that a fallback promises."""
    fresh = BASELINE(line(), data) if type(problem) is fc.EllipticSource else None
    found = select(problem, data, learned, **options)
    assert found.accepted is False
    assert found.reason
    for word in words:
        assert word in found.reason, found.reason
    if not usable:
        assert found.learned is None
        assert found.ratio is None
    assert found.baseline is not None
    if fresh is not None:
        np.testing.assert_allclose(found.parameter, fresh.parameter, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.state, fresh.state, rtol=0, atol=1e-12)
    str(found)
    return found


def good(problem, truth, **options):
    return fc.Candidate(problem.solve(truth), truth, 0.0, **options)


# The decision


def test_algorithm_1_step_by_step(problem, data, truth):
    base = BASELINE(problem, data)
    better = good(problem, truth)
    worse = fc.Candidate.from_coefficients(problem, [3.0, 3.0, 3.0], optimality=0.0)
    for candidate, taken in ((better, True), (worse, False)):
        found = select(problem, data, candidate)
        R_base = fc.certify(problem, data, base, RULE).radius.value
        R_learn = fc.certify(problem, data, candidate, RULE).radius.value
        assert found.accepted is (R_learn <= R_base) is taken
        chosen = candidate if taken else base
        np.testing.assert_array_equal(found.parameter, chosen.parameter)
        np.testing.assert_array_equal(found.state, chosen.state)
        assert found.baseline.radius.value == pytest.approx(R_base, rel=1e-12)
        assert found.learned.radius.value == pytest.approx(R_learn, rel=1e-12)
        assert found.ratio == pytest.approx(R_learn / R_base, rel=1e-12)
        assert ("is within" if taken else "exceeds") in found.reason
        assert f"{R_learn:.4g}" in found.reason
        assert f"{R_base:.4g}" in found.reason


def test_objects_and_callables_decide_alike(problem, data, truth):
    base, other = BASELINE(problem, data), good(problem, truth)
    results = [
        select(problem, data, learned, baseline=baseline, time_limit=limit).to_dict()
        for baseline in (base, BASELINE, lambda p, d: base)
        for learned, limit in ((other, None), (lambda p, d: other, None), (lambda p, d: other, 60.0))
    ]
    assert all(result == results[0] for result in results)
    assert results[0]["accepted"] is True


def test_the_solvers_are_given_problem_and_data(problem, data, truth):
    seen = []

    def learned(p, d):
        seen.append((p.observe(p.solve(truth)), d.values, d.noise_level))
        return good(p, truth)

    assert select(problem, data, learned).accepted
    np.testing.assert_array_equal(seen[0][0], problem.observe(problem.solve(truth)))
    np.testing.assert_array_equal(seen[0][1], data.values)
    assert seen[0][2] == data.noise_level


def test_the_baseline_itself_is_accepted(problem, data):
    base = BASELINE(problem, data)
    found = select(problem, data, base, baseline=base)
    assert found.accepted is True
    assert found.ratio == 1.0


def test_an_estimate_that_beats_a_bound_is_called_one(problem, data, truth):
    # Structure outside the class that the sensors hardly see: the paper's rule takes it, and the reason says on what.
    wiggle = truth + 3.0 * np.sin(15 * np.pi * problem.basis.doflocs[0])
    found = select(problem, data, fc.Tikhonov(weight=1e-9))
    assert found.accepted
    assert "estimate" not in found.reason
    found = select(problem, data, fc.Candidate(problem.solve(truth), wiggle, 0.0), rule=fc.OperationalRadius(pde=0.0))
    assert found.accepted
    assert found.learned.radius.side == "estimate"
    assert not found.learned.contains(truth)
    assert found.reason.endswith("it is an estimate, the baseline's is a bound")


def test_the_tolerance_moves_the_limit(problem, data):
    base = BASELINE(problem, data)
    c, _ = problem.parameters.project(base.parameter)
    learned = fc.Candidate.from_coefficients(problem, c * 1.05, optimality=0.0)
    strict = select(problem, data, learned)
    gap = strict.learned.radius.value - strict.baseline.radius.value
    assert gap > 0.0
    assert not strict.accepted
    assert not select(problem, data, learned, tolerance=0.999 * gap).accepted
    loose = select(problem, data, learned, tolerance=1.001 * gap)
    assert loose.accepted
    assert loose.tolerance == pytest.approx(1.001 * gap)
    assert f"tolerance {loose.tolerance:g}" in loose.reason


def test_the_rule_is_recorded_before_anything_runs(problem, data, truth):
    # A candidate that gets hold of the rule: it is frozen, and forcing it does not help.
    rule = fc.OperationalRadius(pde=0.5, bc=2.0, optimality=0.25)

    def polite(p, d):
        with pytest.raises(dataclasses.FrozenInstanceError):
            rule.pde = 0.0
        return good(p, truth)

    found = select(problem, data, polite, rule=rule)
    assert found.rule["weights"] == {"pde": 0.5, "bc": 2.0, "optimality": 0.25}
    assert found.rule["name"] == "OperationalRadius"

    shifted = fc.Candidate(problem.solve(truth) + 0.1 * np.sin(3 * np.pi * problem.basis.doflocs[0]), truth, 5.0)

    def rude(p, d):
        for name in ("pde", "bc", "optimality"):
            object.__setattr__(rule, name, 0.0)
        return shifted

    expected = fc.certify(problem, data, shifted, rule)
    found = fallback(problem, data, rude, usable=True, rule=rule)
    assert rule.pde == 0.0
    assert found.rule["weights"] == {"pde": 0.5, "bc": 2.0, "optimality": 0.25}
    assert found.learned.radius.value == pytest.approx(expected.radius.value, rel=1e-9)


def test_same_rule_for_both(problem, data, truth):
    class Counting(fc.OperationalRadius):
        def total(self, residuals, pde):
            calls.append(self.weights)
            return super().total(residuals, pde)

    calls = []
    select(problem, data, good(problem, truth), rule=Counting(pde=0.3))
    assert len(calls) == 2
    assert calls[0] == calls[1]


def test_nonlinear_selection():
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, 21)), ElementLineP1())
    problem = fc.EllipticCoefficient(
        basis, parameters=fc.SineSpace(basis, 2), sensors=fc.PointSensors(basis, np.linspace(0.1, 0.9, 6)), source=1.0
    )
    truth = problem.parameters.field([0.3, -0.2])
    data = problem.simulate(truth, noise=0.01)
    baseline = fc.GaussNewton(weight=5e-3)
    assert select(problem, data, lambda p, d: good(p, truth), baseline=baseline).accepted
    assert not select(
        problem, data, fc.Candidate.from_coefficients(problem, [2.0, 2.0], optimality=0.0), baseline=baseline
    ).accepted


def test_tomography_selection():
    basis = Basis(MeshTri().refined(2), ElementTriP1())
    problem = fc.Tomography(basis, parameters=fc.CosineSpace(basis, 3), angles=[0.0, 60.0, 120.0], bins=4)
    truth = problem.parameters.field([1.0, 0.5, 0.2])
    data = problem.simulate(truth, noise=0.01)
    found = select(problem, data, fc.Tikhonov(weight=1e-9))
    assert found.accepted
    assert found.state is None
    assert not select(problem, data, fc.Candidate(None, 2.0 * truth, 0.0)).accepted


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
        fallback(problem, data, candidate, word)
        fallback(problem, data, lambda p, d, c=candidate: c, word)


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


def _shared():
    problem = line()
    truth = problem.parameters.field([1.0, -0.5, 0.25])
    return problem, problem.simulate(truth, noise=0.02, seed=1), truth


SHARED = _shared()


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
    fallback(problem, data, candidate, *words)


def test_a_negative_optimality(problem, data, truth):
    fallback(problem, data, fc.Candidate(problem.solve(truth), truth, -1.0), "optimality is -1.0", "at least 0")


def test_a_huge_candidate_overflows_to_the_baseline(problem, data, truth):
    with np.errstate(over="ignore", invalid="ignore"):
        fallback(problem, data, fc.Candidate(problem.solve(truth) * 1e200, truth * 1e308, 1e308), usable=True)


def test_a_candidate_of_another_mesh(problem, data):
    other = line(n=30)
    wrong_size = fc.Candidate.from_coefficients(other, [1.0, -0.5, 0.25], optimality=0.0)
    fallback(problem, data, wrong_size, "was made on another mesh")
    graded = Basis(MeshLine(np.linspace(0.0, 1.0, 21) ** 1.5), ElementLineP1())
    same_size = fc.EllipticSource(
        graded, parameters=fc.SineSpace(graded, 3), sensors=fc.PointSensors(graded, np.linspace(0.1, 0.9, 6))
    )
    candidate = fc.Candidate.from_coefficients(same_size, [1.0, -0.5, 0.25], optimality=0.0)
    assert candidate.parameter.shape == (problem.basis.N,)
    fallback(problem, data, candidate, "was made on another mesh")
    # The same nodes and elements in another mesh object are the same mesh.
    twin = fc.Candidate.from_coefficients(line(), [1.0, -0.5, 0.25], optimality=0.0)
    assert select(problem, data, twin).accepted


class OwnError(Exception):
    pass


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

    fallback(problem, data, learned, "raised", *words, time_limit=limit)


def test_real_recursion(problem, data):
    def learned(p, d):
        return learned(p, d)

    fallback(problem, data, learned, "RecursionError")


def test_warnings_that_are_errors(problem, data):
    # The test suite turns warnings into errors; to the selector it is one more exception.
    fallback(problem, data, lambda p, d: np.log(np.array([-1.0])), "raised RuntimeWarning")


def test_an_interrupt_is_the_user_s(problem, data):
    def learned(p, d):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        select(problem, data, learned)
    # In a thread of its own no user can have interrupted it.
    fallback(problem, data, learned, "KeyboardInterrupt", time_limit=60.0)


def test_a_time_limit(problem, data, truth):
    release = threading.Event()

    def slow(p, d):
        release.wait(30.0)
        return good(p, truth)

    start = time.perf_counter()
    fallback(problem, data, slow, "ran past the time limit of 0.05 s", time_limit=0.05)
    assert time.perf_counter() - start < 5.0
    release.set()
    # Slow properties of a candidate count too.
    class Slow(fc.Candidate):
        @property
        def state(self):
            time.sleep(0.4)
            return super().state

    fallback(problem, data, Slow(problem.solve(truth), truth, 0.0), "ran past the time limit", time_limit=0.05)
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
        (np.zeros(21), ("returned a ndarray",)),
        ({"state": 1}, ("returned a dict",)),
        (fc.Candidate, ("returned a type",)),
    ],
)
def test_what_is_not_a_candidate(problem, data, result, words):
    fallback(problem, data, lambda p, d: result, *words)


@pytest.mark.parametrize("learned", [None, 3.0, "network.pt", np.zeros(21)])
def test_what_is_neither_candidate_nor_callable(problem, data, learned):
    fallback(problem, data, learned, f"it is a {type(learned).__name__}", "expected a Candidate or a callable")


def test_callables_of_the_wrong_signature(problem, data):
    fallback(problem, data, lambda: None, "raised TypeError")


def test_an_unreported_optimality(problem, data, truth):
    silent = fc.Candidate(problem.solve(truth), truth)
    fallback(problem, data, silent, "UncertifiedError", "reports none")
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
    fallback(problem, data, kind(problem.solve(truth), truth, 0.0), "OwnError", f"no {name} for you")


def test_a_candidate_without_insides(problem, data):
    fallback(problem, data, fc.Candidate.__new__(fc.Candidate), "AttributeError")


def test_properties_of_odd_types(problem, data, truth):
    for name, value in (("state", "u"), ("parameter", [[1.0], [2.0, 3.0]]), ("optimality", "tiny")):
        kind = type("Odd", (fc.Candidate,), {name: property(lambda self, v=value: v)})
        fallback(problem, data, kind(problem.solve(truth), truth, 0.0), "raised")


# Candidates that write where they should not


def cheap(problem):
    """A candidate that no honest selection takes: a large parameter far from the data."""
    return fc.Candidate.from_coefficients(problem, [30.0, -30.0, 30.0], optimality=0.0)


def write(array):
    array[...] = 0.0


def flip(array):
    array.flags.writeable = True


@pytest.mark.parametrize("deed", [write, flip, lambda a: np.copyto(a, 0.0), lambda a: a.setflags(write=True)])
def test_writing_to_the_data(problem, data, truth, deed):
    before = data.values.copy()

    def learned(p, d):
        deed(d.values)
        return good(p, truth)

    fallback(problem, data, learned, "raised ValueError")
    np.testing.assert_array_equal(data.values, before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_values", np.zeros(6)),
        ("_values", None),
        ("_noise_level", 1e9),
        ("_noise_level", np.nan),
        ("_covariance", np.full(6, 1e12)),
    ],
)
@pytest.mark.parametrize("closure", [False, True], ids=["handed", "closure"])
def test_replacing_the_data(problem, truth, name, value, closure):
    data = problem.simulate(truth, noise=0.02, seed=1)
    copy = fc.Data(data.values, data.noise_level)

    def learned(p, d):
        setattr(data if closure else d, name, value)
        return good(p, truth)

    found = select(problem, data, learned)
    assert found.accepted is False
    assert "changed the data" in found.reason
    base = BASELINE(problem, copy)
    np.testing.assert_allclose(found.parameter, base.parameter, atol=1e-12)
    if not closure:
        np.testing.assert_array_equal(data.values, copy.values)
        assert data.noise_level == copy.noise_level


def test_deleting_the_data(problem, data, truth):
    def learned(p, d):
        del d._values
        return good(p, truth)

    fallback(problem, data, learned, "raised AttributeError")


def test_matching_lies_about_the_data(problem, data, truth):
    # Both the original and the copy are changed to what the candidate predicts.
    wrong = cheap(problem)

    def learned(p, d):
        d._values = data._values = p.observe(wrong.state)
        return wrong

    found = select(problem, data, learned)
    assert found.accepted is False
    assert "changed the problem" in found.reason


def zero_sensors(p):
    p.sensors.matrix.data[:] = 0.0


def replace_sensor_data(p):
    p.sensors.matrix.data = np.zeros_like(p.sensors.matrix.data)


def replace_sensors(p):
    p.sensors = fc.MatrixSensors(1e-9 * p.sensors.matrix.toarray())


def replace_observe(p):
    p.observe = lambda state: np.zeros(6)
    p.predict = lambda state, parameter: np.zeros(6)


def replace_residual(p):
    p.residual = lambda state, parameter: np.zeros(p.basis.N)
    p.boundary_defect = lambda state, parameter: 0.0


def fake_forward(p):
    p.__dict__["_forward"] = np.zeros((6, 3))
    p.__dict__["offset"] = np.zeros(6)


def write_forward(p):
    p.forward_matrix()[:] = 1e9


def replace_class(p):
    p.parameters.matrix = 1e9 * p.parameters.matrix
    p.parameters.norm = lambda field: 0.0


def fake_gram(p):
    p.parameters.__dict__["gram"] = 1e-12 * np.eye(3)
    p.parameters.__dict__["root"] = 1e-6 * np.eye(3)


@pytest.mark.parametrize(
    "deed",
    [
        zero_sensors, replace_sensor_data, replace_sensors, replace_observe, replace_residual, fake_forward,
        write_forward, replace_class, fake_gram,
    ],
)  # fmt: skip
def test_changing_the_problem(problem, data, truth, deed):
    before = select(problem, data, good(problem, truth)).to_dict()

    def learned(p, d):
        wrong = cheap(p)
        deed(p)
        return wrong

    fallback(problem, data, learned, usable=True)
    # Nothing of it is left behind.
    assert select(problem, data, good(problem, truth)).to_dict() == before


def write_weight(p):
    p.parameters.weight.data = 1e-20 * p.parameters.weight.data


def write_root(p):
    p.parameters.root[:] *= 1e6


def write_residual_mass(p):
    p.residual_mass.data[:] = 1e20


def write_boundary(p):
    p.boundary.values[:] = 1e3


def replace_operator_data(p):
    p.operator.data = 1e-6 * p.operator.data


@pytest.mark.parametrize("deed", [write_weight, write_root, write_residual_mass, write_boundary, replace_operator_data])
def test_writing_to_what_copies_share(data, truth, deed):
    problem = line()

    def learned(p, d):
        wrong = cheap(p)
        with contextlib.suppress(ValueError):  # read-only
            deed(p)
        return wrong

    # Either the write failed, or went nowhere, or was found out: never accepted.
    fallback(problem, data, learned, usable=True, rule=fc.OperationalRadius(pde=0.01, bc=1.0, optimality=0.0))


def test_a_change_that_moves_only_the_side_is_seen(data):
    # Without the norm of Q nothing can be proven: the radius stays, its claim goes.
    problem = line()

    def learned(p, d):
        result = BASELINE(p, d)
        weight = p.parameters.weight
        weight.data = 1e-20 * weight.data
        return result

    found = select(problem, data, learned)
    if problem.parameters.norm(np.ones(problem.basis.N)) < 0.5:
        assert found.accepted is False
        assert "changed the problem" in found.reason


def test_monkeypatching_through_a_closure(data, truth):
    problem = line()

    def learned(p, d):
        problem.sensors.matrix = 1e-9 * problem.sensors.matrix
        problem.__dict__.pop("_forward", None)
        return cheap(p)

    found = select(problem, data, learned)
    assert found.accepted is False
    assert "changed the problem" in found.reason


def test_the_honest_solver_may_use_the_problem_as_it_likes(problem, data):
    def learned(p, d):
        p.note = "cached"
        F = p.forward_matrix()
        c = np.linalg.solve(F.T @ F + 1e-8 * np.eye(3), F.T @ d.values)
        return fc.Candidate.from_coefficients(p, c, optimality=0.0)

    found = select(problem, data, learned)
    assert found.accepted
    assert not hasattr(problem, "note")


def test_altering_the_baseline_through_a_closure(problem, data, truth):
    base = BASELINE(problem, data)
    before = fc.Candidate(base.state, base.parameter, base.optimality)

    def learned(p, d):
        base._parameter, base._state, base._optimality, base.name = truth, p.solve(truth), 0.0, "mine"
        return cheap(p)

    found = select(problem, data, learned, baseline=base)
    assert found.accepted is False
    np.testing.assert_array_equal(found.parameter, before.parameter)
    np.testing.assert_array_equal(found.state, before.state)
    assert found.baseline.name == "baseline"
    assert found.baseline.radius == fc.certify(problem, data, before, RULE).radius


SHARED_ARRAYS = {
    "residual mass": lambda p: p.residual_mass.data,
    "boundary values": lambda p: p.boundary.values,
    "boundary mass": lambda p: p.boundary.mass.data,
    "free dofs": lambda p: p.free,
    "prescribed dofs": lambda p: p.boundary.prescribed,
    "offset": lambda p: p.offset,
    "gram": lambda p: p.parameters.gram,
    "root": lambda p: p.parameters.root,
    "weight": lambda p: p.parameters.weight.data,
    "space": lambda p: p.parameters.matrix,
    "sensors": lambda p: p.sensors.matrix.data,
    "forward": lambda p: p.forward_matrix(),
    "operator": lambda p: p.operator.data,
    "load": lambda p: p.load.data,
    "source": lambda p: p.source,
}


@pytest.mark.parametrize("level", [0.0, 1.0])
@pytest.mark.parametrize("name", SHARED_ARRAYS)
def test_no_array_of_the_problem_can_be_written_to(truth, name, level):
    problem = line(dirichlet=level)
    data = problem.simulate(truth, noise=0.02, seed=1)
    plain = select(problem, data, cheap(problem)).to_dict()
    tried = []

    def learned(p, d):
        wrong = cheap(p)
        with pytest.raises(ValueError, match="read-only"):
            SHARED_ARRAYS[name](p)[...] = 0
        tried.append(name)
        return wrong

    # With the caches of the original made, and not yet made.
    for fresh in (problem, line(dirichlet=level)):
        assert select(fresh, data, learned).to_dict() == plain
    assert tried == [name, name]


# Candidates that are late, loud or untidy


def test_a_late_result_is_no_result(problem, data, truth):
    """A loop that computes all the time it is given, and returns something good in the end."""

    def busy(p, d):
        end = time.perf_counter() + 0.5
        while time.perf_counter() < end:
            pass
        return good(p, truth)

    fallback(problem, data, busy, "ran past the time limit of 0.1 s", time_limit=0.1)


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

    found = fallback(problem, data, learned, "it raised Awkward", time_limit=limit)
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


# The baseline


@pytest.mark.parametrize(
    "error", [ValueError("x"), OwnError("x"), AttributeError("x"), MemoryError("x"), SystemExit(1), AssertionError("x")]
)
def test_a_baseline_that_raises(problem, data, truth, error):
    def baseline(p, d):
        raise error

    with pytest.raises(fc.SolveError, match=f"the baseline failed: it raised {type(error).__name__}"):
        select(problem, data, good(problem, truth), baseline=baseline)


@pytest.mark.parametrize("error", [fc.InputError("own words"), fc.SolveError("own words")])
def test_a_baseline_with_its_own_words(problem, data, truth, error):
    def baseline(p, d):
        raise error

    with pytest.raises(type(error), match=r"^own words$"):
        select(problem, data, good(problem, truth), baseline=baseline)


def test_a_baseline_interrupted(problem, data, truth):
    def baseline(p, d):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        select(problem, data, good(problem, truth), baseline=baseline)


@pytest.mark.parametrize(
    ("baseline", "match"),
    [
        (lambda p, d: None, "the baseline is not usable: got a NoneType"),
        (lambda p, d: fc.Candidate(np.full(21, np.nan), np.zeros(21)), "the baseline is not usable: state has 21 NaN"),
        (lambda p, d: fc.Candidate(np.zeros(3), np.zeros(21)), r"state has shape \(3,\)"),
        (fc.GaussNewton(weight=1.0), "use Tikhonov"),
    ],
)
def test_an_unusable_baseline(problem, data, truth, baseline, match):
    with pytest.raises((fc.SolveError, fc.InputError), match=match):
        select(problem, data, good(problem, truth), baseline=baseline)


@pytest.mark.parametrize("baseline", [None, 1.0, "tikhonov"])
def test_no_baseline(problem, data, truth, baseline):
    with pytest.raises(fc.InputError, match=r"baseline is a .*; expected a Candidate or a callable"):
        select(problem, data, good(problem, truth), baseline=baseline)


# Stability


def test_an_infinite_constant_leaves_the_baseline():
    basis = Basis(MeshTri().refined(3), ElementTriP1())
    # Two sensors that see the same thing: rank one.
    row = fc.PointSensors(basis, [[0.4, 0.4]]).matrix.toarray()
    problem = fc.EllipticSource(
        basis, parameters=fc.SineSpace(basis, 2), sensors=fc.MatrixSensors(np.vstack([row, 2.0 * row]))
    )
    truth = problem.parameters.field([1.0, 1.0])
    data = problem.simulate(truth, noise=0.01)
    found = select(problem, data, good(problem, truth))
    assert found.accepted is False
    assert "C_stab is infinite" in found.reason
    assert found.baseline is None
    assert found.learned is None
    assert found.ratio is None
    np.testing.assert_array_equal(found.parameter, BASELINE(problem, data).parameter)
    assert "C_stab is infinite" in str(found)


def test_more_coordinates_than_sensors():
    problem = line(k=7, m=6)
    data = fc.Data(np.ones(6), 0.1)
    with pytest.raises(fc.InputError, match=r"k = 7 .* m = 6 .*C_stab is infinite"):
        select(problem, data, fc.Candidate.from_coefficients(problem, np.zeros(7), optimality=0.0))


# Repetition, cost


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 1000), k=st.integers(1, 4))
def test_selection_is_deterministic(seed, k):
    results = []
    for _ in range(2):
        problem = line(k=k)
        rng = np.random.default_rng(seed)
        data = problem.simulate(problem.parameters.field(rng.standard_normal(k)), noise=0.1, seed=seed)
        learned = fc.Candidate.from_coefficients(problem, rng.standard_normal(k), optimality=0.1)
        for rule in (RULE, fc.StochasticRadius(points=30, seed=seed)):
            results.append(select(problem, data, learned, rule=rule).to_dict())
    assert results[:2] == results[2:]


@settings(deadline=None, max_examples=15)
@given(scale=st.floats(1e-3, 1e3), seed=st.integers(0, 100))
def test_the_decision_does_not_depend_on_units(scale, seed):
    problem, _, truth = SHARED
    rng = np.random.default_rng(seed)
    data = problem.simulate(truth, noise=0.05, seed=seed)
    c = rng.standard_normal(3)
    one = select(problem, data, fc.Candidate.from_coefficients(problem, c, optimality=0.1))
    many = select(
        problem,
        fc.Data(scale * data.values, scale * data.noise_level),
        fc.Candidate.from_coefficients(problem, scale * c, optimality=0.1 * scale),
    )
    assert many.accepted == one.accepted
    assert many.ratio == pytest.approx(one.ratio, rel=1e-8)


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("problem", None, "problem is a NoneType; expected one such as EllipticSource"),
        ("data", [1.0], "data is a list"),
        ("rule", "best", "rule is a str; expected a rule"),
        ("tolerance", -0.1, "tolerance is -0.1; expected at least 0"),
        ("tolerance", np.nan, "tolerance has 1 NaN"),
    ],
)
def test_bad_arguments(problem, data, truth, name, value, match):
    arguments = {"problem": problem, "data": data, "rule": RULE, "tolerance": 0.0, name: value}
    with pytest.raises(fc.InputError, match=match):
        fc.no_harm(baseline=BASELINE, learned=good(problem, truth), **arguments)


def test_attempt_passes_results_and_reasons():
    assert attempt(lambda: 5, None) == 5
    assert attempt(lambda: 5, 10.0) == 5
    with pytest.raises(CandidateFailure, match="exactly this"):
        attempt(_fail, None)


def _fail():
    raise CandidateFailure("exactly this")
