"""Candidates: what they store, how they are made, files, and how they are judged to belong to a problem."""

import zipfile
from functools import partial

import numpy as np
import pytest
import zoo
from skfem import Basis, ElementTriP1
from zoo import inside_points, unit_basis

import femcert as fc
from femcert.problem.candidate import check_candidate, plain_copy

source_problem = partial(zoo.source, "tri P1", sensors=inside_points, dirichlet=1.0)
ray_problem = partial(zoo.tomography, parameters=(fc.SineSpace, 3), angles=[0.0, 50.0])


def heat_problem(times):
    return zoo.heat("line P1", 8, parameters=3, sensors=[0.3, 0.6], times=times, steps=10)


def test_arrays_are_copied_and_read_only():
    u, q = np.arange(3.0), np.arange(4.0)
    candidate = fc.Candidate(u, q, name="net")
    u[0] = q[0] = 99.0
    for array in (candidate.state, candidate.parameter):
        assert array[0] == 0.0
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(AttributeError):
        candidate.parameter = q
    assert repr(candidate) == "Candidate('net', state (3,), parameter (4,))"
    assert repr(fc.Candidate(None, q)) == "Candidate('learned', no state, parameter (4,))"


@pytest.mark.parametrize("problem", [source_problem(), heat_problem(0.1), heat_problem([0.05, 0.1])])
def test_from_coefficients(problem):
    candidate = fc.Candidate.from_coefficients(problem, [1.0, -2.0, 0.5], optimality=1e-3)
    assert np.array_equal(candidate.parameter, problem.parameters.field([1.0, -2.0, 0.5]))
    assert np.array_equal(candidate.state, problem.solve(candidate.parameter))
    assert check_candidate(problem, candidate) is candidate
    with pytest.raises(fc.InputError, match=r"coefficients has shape \(2,\)"):
        fc.Candidate.from_coefficients(problem, [1.0, 2.0])


def test_from_functions():
    problem = source_problem()
    x = problem.basis.doflocs
    candidate = fc.Candidate.from_functions(problem, state=lambda x: x[0] ** 2, parameter=lambda x: x[0] - x[1])
    assert np.array_equal(candidate.state, x[0] ** 2)
    assert np.array_equal(candidate.parameter, x[0] - x[1])
    solved = fc.Candidate.from_functions(problem, parameter=2.0)
    assert np.array_equal(solved.state, problem.solve(np.full(problem.basis.N, 2.0)))
    with pytest.raises(fc.InputError, match=r"parameter returned shape \(2, 25\) for x of shape \(2, 25\)"):
        fc.Candidate.from_functions(problem, parameter=lambda x: x)
    with pytest.raises(fc.InputError, match=r"state returned shape \(3,\)"):
        fc.Candidate.from_functions(problem, parameter=1.0, state=lambda x: np.ones(3))


def test_from_functions_of_heat_and_regions():
    problem = heat_problem([0.05, 0.1])
    x = problem.basis.doflocs[0]
    candidate = fc.Candidate.from_functions(problem, parameter=1.0, state=[lambda x: x[0], lambda x: 2 * x[0]])
    assert np.array_equal(candidate.state, np.column_stack([x, 2 * x]))
    one = fc.Candidate.from_functions(heat_problem(0.1), parameter=1.0, state=[lambda x: x[0]])
    assert np.array_equal(one.state, x)
    # A parameter on elements is sampled at their centres.
    basis = unit_basis("tri P1", 4)
    regions = zoo.source(basis, parameters=fc.RegionSpace(basis, [np.arange(5)]))
    centres = basis.mesh.p[:, basis.mesh.t].mean(axis=1)
    assert np.allclose(fc.Candidate.from_functions(regions, parameter=lambda x: x[0]).parameter, centres[0])
    image = fc.Candidate.from_functions(ray_problem(), parameter=lambda x: x[0])
    assert image.state is None


@pytest.mark.parametrize("problem", [source_problem(), heat_problem([0.05, 0.1]), ray_problem()])
def test_files(problem, tmp_path):
    candidate = fc.Candidate.from_coefficients(problem, [1.0, 2.0, 3.0], optimality=0.25)
    path = tmp_path / "net.npz"
    candidate.save(path)
    again = fc.Candidate.from_file(problem, path)
    assert again.name == "net"
    assert again.optimality == 0.25
    assert np.array_equal(again.parameter, candidate.parameter)
    assert (again.state is None) == (candidate.state is None)
    if again.state is not None:
        assert np.array_equal(again.state, candidate.state)
    assert check_candidate(problem, again).name == "net"
    np.savez(path, parameter=candidate.parameter)
    solved = fc.Candidate.from_file(problem, path, name="bare")
    assert (solved.name, solved.optimality) == ("bare", None)
    if problem.states:
        assert np.allclose(solved.state, candidate.state)


def test_bad_files(tmp_path):
    problem, path = source_problem(), tmp_path / "net.npz"
    q = np.zeros(problem.basis.N)

    def refused(message, where=path, **content):
        if content:
            np.savez(where, **content)
        with pytest.raises(fc.InputError, match=message):
            fc.Candidate.from_file(problem, where)

    with pytest.raises(fc.InputError, match=r"ends in \.npz"):
        fc.Candidate(q, q).save(tmp_path / "net.txt")
    refused("expected the name of a file", None)
    refused("no such file", tmp_path / "missing.npz")
    refused("it has 'state'", state=q)
    refused("parameter has shape", parameter=q[:3])
    refused("optimality has 1 NaN", parameter=q, optimality=np.nan)
    refused("state has type", parameter=q, state=np.array(["a"] * 25))
    refused("plain arrays", parameter=np.array([{"evil": 1}], dtype=object))
    with path.open("wb") as file:
        np.save(file, q)
    refused("cannot be read as an .npz archive")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("parameter.npy", b"not an array")
    refused("'parameter' is no array")


def test_candidates_are_checked_against_the_problem():
    problem = source_problem()
    n = problem.basis.N
    q = np.zeros(n)
    nan = np.r_[np.nan, q[1:]]
    for candidate, message in (
        ((q, q), "got a tuple; expected a femcert.Candidate"),
        (fc.Candidate(q[:5], q), r"state has shape \(5,\); expected \(25,\)"),
        (fc.Candidate(nan, q), "state has 1 NaN"),
        (fc.Candidate(q, 1j * q), "parameter is complex"),
        (fc.Candidate(q, q, optimality=-1.0), r"optimality is -1\.0; expected at least 0"),
        (fc.Candidate(None, q, name="net"), "candidate 'net' has no state; expected one"),
    ):
        with pytest.raises(fc.InputError, match=message):
            check_candidate(problem, candidate)
    check_candidate(problem, fc.Candidate(q, q, optimality=0.0))
    check_candidate(ray_problem(), fc.Candidate(None, q))


def test_candidates_of_another_mesh():
    """The same number of dofs, but on other nodes."""
    problem = source_problem()
    mesh = problem.basis.mesh
    other = zoo.source(Basis(mesh.scaled((1.0, 2.0)), ElementTriP1()))
    candidate = fc.Candidate.from_coefficients(other, [1.0, 0.0, 0.0])
    with pytest.raises(fc.InputError, match="candidate 'learned' was made on another mesh than the problem's"):
        check_candidate(problem, candidate)
    copy = plain_copy(candidate)
    assert np.array_equal(copy.parameter, candidate.parameter)
    with pytest.raises(fc.InputError, match="another mesh"):
        check_candidate(problem, copy)
    same = fc.Candidate.from_coefficients(source_problem(), [1.0, 0.0, 0.0])  # the same mesh, made twice
    check_candidate(problem, same)
