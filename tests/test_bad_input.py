"""Bad input: each line of it is an InputError that says what came and what was expected."""

import numpy as np
import pytest
import zoo

import femcert as fc


@pytest.fixture
def basis():
    return zoo.square(2)


@pytest.fixture
def problem(basis):
    return zoo.source(basis, sensors=5)


@pytest.fixture
def data():
    return fc.Data(np.ones(5), 0.1)


def test_a_tolerance_below_zero(problem, data):
    with pytest.raises(fc.InputError, match="tolerance"):
        fc.StoppingRule(problem, data, fc.ResidualRadius(), -1.0)


def things_that_are_nothing(basis, problem, data):
    """None, numbers and lists where an object is wanted: each with a word of the message."""
    candidate = fc.Candidate.from_coefficients(problem, [1.0, 1.0, 1.0])
    rule = fc.ResidualRadius()
    field = np.ones(basis.N)
    return {
        "stability, data of another length": (lambda: fc.stability(problem, data=fc.Data([1.0], 0.1)), "1 values"),
        "stability, a number as data": (lambda: fc.stability(problem, data=3), "data is an int"),
        "stability, bare values as data": (lambda: fc.stability(problem, data=data.values), "data is an ndarray"),
        "stability, no problem": (lambda: fc.stability(None), "problem is a NoneType"),
        "certify, no problem": (lambda: fc.certify(None, data, candidate, rule), "problem is a NoneType"),
        "certify, no data": (lambda: fc.certify(problem, None, candidate, rule), "data is a NoneType"),
        "certify, no candidate": (lambda: fc.certify(problem, data, None, rule), "got a NoneType"),
        "certify, no rule": (lambda: fc.certify(problem, data, candidate, None), "rule is a NoneType"),
        "coefficients, no problem": (lambda: fc.Candidate.from_coefficients(None, [1.0]), "problem is a NoneType"),
        "functions, no problem": (lambda: fc.Candidate.from_functions(None, parameter=1.0), "problem is a NoneType"),
        "a negative weight": (lambda: fc.OperationalRadius(optimality=-1.0), "optimality"),
        "a residual without its envelope": (
            lambda: fc.Candidate.from_functions(problem, parameter=1.0, residual=np.sin), "residual needs"
        ),
        "file, no path": (lambda: fc.Candidate.from_file(problem, None), "path is None"),
        "file, no problem": (lambda: fc.Candidate.from_file(None, "x.npz"), "problem is a NoneType"),
        "load, no path": (lambda: fc.Selection.load(None), "path is a NoneType"),
        "load, a number": (lambda: fc.Selection.load(5), "path is an int"),
        "load, a directory": (lambda: fc.Selection.load("."), "cannot be read"),
        "tomography, no basis": (
            lambda: fc.Tomography(None, parameters=problem.parameters, angles=[0.0], bins=3), "basis is a NoneType"
        ),
        "tomography, no class": (lambda: fc.Tomography(basis, parameters=None, angles=[0.0], bins=3), "parameters is"),
        "one function, not in a list": (lambda: fc.FunctionSpace(basis, lambda x: x[0]), "functions is <function"),
        "no functions": (lambda: fc.FunctionSpace(basis, None), "functions is None"),
        "no region sensors": (lambda: fc.RegionSensors(basis, None), "regions is None"),
        "a number of regions": (lambda: fc.RegionSpace(basis, 3), "regions is 3"),
        "one region, not in a list": (lambda: fc.RegionSpace(basis, "left"), "regions is 'left'"),
        "a list of boundaries": (lambda: fc.BoundarySensors(basis, boundary=["left"], count=2), "boundary is a list"),
        "a negative seed": (lambda: problem.simulate(field, seed=-1), "seed is -1"),
        "a text as seed": (lambda: problem.simulate(field, seed="x"), "seed is 'x'"),
        "no seed": (lambda: problem.simulate(field, seed=None), "seed is None"),
        "a text as noise": (lambda: problem.simulate(field, noise="x"), "noise has type"),
        "bounds of texts": (lambda: fc.GaussNewton(weight=1.0, bounds=("a", "b")), r"bounds is \('a', 'b'\)"),
    }  # fmt: skip


def test_things_that_are_nothing(basis, problem, data):
    for name, (deed, match) in things_that_are_nothing(basis, problem, data).items():
        with pytest.raises(fc.InputError, match=match):
            print(name, deed())
