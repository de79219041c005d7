"""Candidates that write where they should not: the decision does not change."""

import contextlib

import numpy as np
import pytest
from selector_helpers import BASELINE, RULE, check_fallback, good, line, select

import femcert as fc

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

    check_fallback(problem, data, learned, "raised ValueError")
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

    check_fallback(problem, data, learned, "raised AttributeError")


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

    check_fallback(problem, data, learned, usable=True)
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
    check_fallback(problem, data, learned, usable=True, rule=fc.OperationalRadius(pde=0.01, bc=1.0, optimality=0.0))


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


@pytest.mark.parametrize(
    "array",
    [lambda p: p.basis.mesh.p, lambda p: p.basis.doflocs, lambda p: p.basis.element_dofs, lambda p: p.basis.dx],
)
def test_writing_to_the_mesh_and_the_basis(problem, data, truth, array):
    before = array(problem).copy()

    def learned(p, d):
        candidate = good(p, truth)
        array(p)[...] = 0
        return candidate

    check_fallback(problem, data, learned, "it changed the mesh or the basis in place")
    np.testing.assert_array_equal(array(problem), before)

    def failing(p, d):
        array(p)[...] = 0
        raise RuntimeError("halfway")

    check_fallback(problem, data, failing, "halfway")
    np.testing.assert_array_equal(array(problem), before)
