"""Bad input: each line of it is an InputError that says what came and what was expected."""

import numpy as np
import pytest
from skfem import Basis, ElementTriP1, MeshTri

import femcert as fc


@pytest.fixture
def basis():
    mesh = MeshTri().refined(2).with_boundaries({"left": lambda x: x[0] < 1e-9, "right": lambda x: x[0] > 1 - 1e-9})
    return Basis(mesh, ElementTriP1())


@pytest.fixture
def points():
    return np.random.default_rng(0).uniform(0.1, 0.9, (5, 2))


@pytest.fixture
def problem(basis, points):
    return fc.EllipticSource(basis, parameters=fc.SineSpace(basis, 3), sensors=fc.PointSensors(basis, points))


@pytest.fixture
def data():
    return fc.Data(np.ones(5), 0.1)


def raises_input_error(came, expected):
    """An InputError, which is also a ValueError, that names both."""
    return pytest.raises(fc.InputError, match=rf"(?s){came}.*expected {expected}")


def test_data_of_another_length(problem):
    with pytest.raises(fc.InputError, match=r"data has 4 values; the problem has 5 observations"):
        problem.check_data(fc.Data(np.ones(4), 0.1))
    with pytest.raises(fc.InputError, match=r"data has 4 values; the problem has 5 observations"):
        fc.Tikhonov(weight=1.0)(problem, fc.Data(np.ones(4), 0.1))


def test_more_coordinates_than_sensors(basis, points):
    problem = fc.EllipticSource(basis, parameters=fc.SineSpace(basis, 6), sensors=fc.PointSensors(basis, points))
    data = fc.Data(np.ones(5), 0.1)
    baseline = fc.Tikhonov(weight=1.0)(problem, data)
    rule = fc.ResidualRadius()
    for ask in (
        lambda: fc.stability(problem),
        lambda: fc.certify(problem, data, baseline, rule),
    ):
        with raises_input_error(r"k = 6 coordinates but .* only m = 5 observations, so C_stab is infinite", "k <= m"):
            ask()


def test_an_unknown_conductivity_that_is_not_positive(basis, points):
    problem = fc.EllipticCoefficient(
        basis, parameters=fc.FullSpace(basis), sensors=fc.PointSensors(basis, points), transform="identity", source=1.0
    )
    with raises_input_error("the conductivity takes the value -1", "positive values everywhere"):
        problem.solve(-np.ones(basis.N))


def test_a_candidate_on_another_mesh(problem, data):
    finer = Basis(problem.basis.mesh.refined(1), ElementTriP1())
    other = fc.EllipticSource(
        finer, parameters=fc.SineSpace(finer, 3), sensors=fc.PointSensors(finer, [[0.3, 0.3], [0.6, 0.5], [0.4, 0.7]])
    )
    candidate = fc.Candidate.from_coefficients(other, [1.0, 1.0, 1.0])
    with pytest.raises(fc.InputError, match="candidate 'learned' was made on another mesh than the problem's"):
        fc.certify(problem, data, candidate, fc.ResidualRadius())
    # Where the mesh is not known the sizes tell.
    bare = fc.Candidate(candidate.state, candidate.parameter)
    with raises_input_error(r"parameter has shape \(81,\)", r"\(25,\)"):
        fc.certify(problem, data, bare, fc.ResidualRadius())
    with pytest.raises(fc.InputError, match="parameters live on another mesh"):
        fc.EllipticSource(problem.basis, parameters=fc.SineSpace(finer, 3), sensors=problem.sensors)


@pytest.mark.parametrize("name", ["pde", "bc", "optimality"])
def test_negative_weights_of_a_rule(name):
    with raises_input_error(f"the weight {name} is -1.0", "at least 0"):
        fc.OperationalRadius(**{name: -1.0})


def test_negative_weights_of_a_baseline():
    for make in (fc.Tikhonov, fc.GaussNewton):
        with raises_input_error("weight is -1.0", "more than 0"):
            make(weight=-1.0)
        with raises_input_error("weight is 0.0", "more than 0"):
            make(weight=0.0)


def test_a_tolerance_below_zero(problem, data):
    baseline = fc.Tikhonov(weight=1.0)
    with raises_input_error("tolerance is -1e-09", "at least 0"):
        fc.no_harm(problem, data, baseline=baseline, learned=baseline, rule=fc.ResidualRadius(), tolerance=-1e-9)
    with raises_input_error("tolerance is -1.0", "at least 0"):
        fc.StoppingRule(problem, data, fc.ResidualRadius(), -1.0)


@pytest.mark.parametrize("zeta", [0.0, 1.0, -0.5, 2.0])
def test_zeta_outside_the_open_interval(zeta):
    with raises_input_error(f"zeta is {zeta}", "a probability strictly between 0 and 1"):
        fc.StochasticRadius(zeta=zeta)


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
