"""A user's own problems, sensors and classes get what they offer, as the shipped ones do."""

import numpy as np
import pytest
import zoo
from skfem import Basis, BilinearForm, ElementLineP1, ElementLineP2, MeshLine
from skfem.helpers import dot, grad

import femcert as fc
from femcert.problem.curvature import conductivity_curvature
from femcert.problem.functions import FunctionClass, Waves
from femcert.problem.sensors import PointLoads

REACTION = 4.0
AT = np.array([0.21, 0.4, 0.55, 0.83])


@BilinearForm
def screened(u, v, w):
    return dot(grad(u), grad(v)) + REACTION * u * v


class TwiceTheParameter(zoo.OwnSource):
    def strong(self, parameter):
        return super().strong(2.0 * np.asarray(parameter))


def own_source(basis, kind=zoo.OwnSource, known=0.0, **given):
    return kind(basis, c=REACTION, known=known, dirichlet=0.0, **given)


class Differences(fc.Sensors):
    """``u(x_i+1) - u(x_i)`` on a line."""

    bounded = True

    def __init__(self, basis, points):
        self.points = points
        self.weights = (np.eye(len(points), k=-1) - np.eye(len(points)))[:, :-1]
        super().__init__(self.weights.T @ fc.PointSensors(basis, points).matrix, basis)

    def representers(self):
        none = fc.PointSensors(self.basis, self.points).representers().means[:, : self.count]
        return fc.Representers(none, none, PointLoads(self.points, self.weights))

    def on(self, basis):
        return Differences(basis, self.points)


class Exponentials(fc.ParameterSpace):
    """``exp(j x)`` on a line."""

    def __init__(self, basis, k):
        self.rates = np.arange(1.0, k + 1.0)
        super().__init__(basis, self.at(basis.doflocs).T)

    def at(self, x):
        return np.exp(self.rates[:, None] * x[0])

    def functions_on(self, mesh):
        waves = Waves(self.at, self.rates.max(), np.exp(self.rates * mesh.p.max()))
        return FunctionClass(waves, mesh, self.root)


def line(n=48, element=ElementLineP1):
    return Basis(MeshLine(np.linspace(0.0, 1.0, n + 1)), element())


def plane():
    return zoo.square(4)


PLACES = {
    "points": lambda: (basis := line(), fc.PointSensors(basis, AT)),
    "points, P2": lambda: (basis := line(12, ElementLineP2), fc.PointSensors(basis, AT)),
    "intervals": lambda: (basis := line(), fc.AverageSensors(basis, AT, radius=0.05)),
    "discs": lambda: (basis := plane(), fc.AverageSensors(basis, np.column_stack([AT, AT[::-1]]), radius=0.1)),
}
SPACES = {"sines": fc.SineSpace, "columns": lambda basis, k: fc.ParameterSpace(basis, fc.SineSpace(basis, k).matrix)}


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("place", PLACES)
def test_a_linear_problem_with_a_strong_form_is_certified_like_an_elliptic_source(place, space):
    basis, sensors = PLACES[place]()
    given = {"parameters": SPACES[space](basis, 2), "sensors": sensors}
    own = fc.stability(own_source(basis, **given), guarantee="continuous")
    shipped = fc.stability(fc.EllipticSource(basis, reaction=REACTION, dirichlet=0.0, **given), guarantee="continuous")
    assert own.constant.value == pytest.approx(shipped.constant.value, rel=1e-9)
    assert (own.constant.side, own.scope) == ("upper", "continuous")


def test_the_constant_is_above_the_exact_one():
    basis, sensors = PLACES["points"]()
    problem = own_source(basis, parameters=fc.SineSpace(basis, 2), sensors=sensors)
    j = np.arange(1, 3)
    # -u'' + 4 u = sin(j pi x) has the solution sin(j pi x) / ((j pi)^2 + 4).
    F = np.sin(np.pi * np.outer(AT, j)) / ((np.pi * j) ** 2 + REACTION)
    truth = largest_gain(F, 0.5 * np.eye(2))
    assert truth <= fc.stability(problem, guarantee="continuous").constant.value <= 1.01 * truth


def test_what_a_problem_does_not_offer_is_refused():
    basis, sensors = PLACES["points"]()
    given = {"parameters": fc.SineSpace(basis, 2), "sensors": sensors}
    bare = given | {"sensors": fc.MatrixSensors(sensors.matrix)}
    for problem, word in (
        (fc.LinearProblem(basis, operator=screened, dirichlet=0.0, definite=True, **given), "LinearProblem does not"),
        (own_source(basis, TwiceTheParameter, **given), "not the parameter"),
        (own_source(basis, known=1.0, **given), "known source"),
        (own_source(basis, **bare), "MatrixSensors does not offer"),
    ):
        with pytest.raises(fc.UncertifiedError, match=word):
            fc.stability(problem, guarantee="continuous")


def largest_gain(F, gram):
    """``1 / sigma_min`` of a forward matrix of functions with a Gram matrix."""
    R = np.linalg.cholesky(gram).T
    return 1.0 / np.linalg.svd(F @ np.linalg.inv(R), compute_uv=False)[-1]


def test_sensors_of_the_users_own():
    j = np.arange(1, 4)
    for basis in (line(40), line(20, ElementLineP2)):
        problem = zoo.source(basis, parameters=3, sensors=Differences(basis, AT), dirichlet=0.0)
        # -u'' = sin(j pi x) has the solution sin(j pi x) / (j pi)^2.
        F = np.diff(np.sin(np.pi * np.outer(AT, j)), axis=0) / (np.pi * j) ** 2
        truth = largest_gain(F, 0.5 * np.eye(3))
        found = fc.stability(problem, guarantee="continuous").constant.value
        assert truth <= found <= 1.1 * truth


def test_a_class_of_functions_of_the_users_own():
    for basis in (line(64), line(24, ElementLineP2)):
        space = Exponentials(basis, 2)
        problem = zoo.source(basis, parameters=space, sensors=AT, dirichlet=0.0)
        r = space.rates
        F = -(np.exp(np.outer(AT, r)) - 1.0 - AT[:, None] * (np.exp(r) - 1.0)) / r**2
        total = r[:, None] + r
        truth = largest_gain(F, (np.exp(total) - 1.0) / total)
        found = fc.stability(problem, guarantee="continuous").constant.value
        assert truth <= found <= 1.1 * truth


def test_readings_of_functions():
    basis, waves = line(30), fc.SineSpace(line(30), 3).waves
    x = AT[:, None]
    values, errors = fc.PointSensors(basis, AT).of_functions(waves.at, waves.steepness)
    assert np.array_equal(values, waves.at(x.T).T)
    assert not errors.any()
    read = {
        "differences": (Differences(basis, AT), np.diff(values, axis=0)),
        "region": (fc.RegionSensors(basis, [np.arange(10)]), None),
    }
    j = np.arange(1, 4) * np.pi
    means = (1.0 - np.cos(j / 3)) / j * 3
    for sensors, expected in read.values():
        values, errors = sensors.of_functions(waves.at, waves.steepness)
        scale = waves.amplitudes
        exact = means * waves.at(np.array([[0.5 / 3]]))[:, 0] / np.sin(0.5 * j / 3) if expected is None else expected
        assert np.all(np.abs(values - exact) <= errors[:, None] * scale + 1e-13 * scale)
    assert fc.MatrixSensors(sensors.matrix).of_functions(waves.at, waves.steepness) is None


class OwnCoefficient(fc.NonlinearProblem):
    """A user's own problem that says how its Jacobian changes."""

    def curvature_at(self, point, data):
        return conductivity_curvature(point, self.basis, data, exponential=True)


def test_a_nonlinear_problem_that_knows_its_curvature_is_validated():
    basis = line(24)
    given = {"parameters": fc.SineSpace(basis, 2), "sensors": fc.PointSensors(basis, AT), "dirichlet": 0.0}
    shipped = fc.EllipticCoefficient(basis, source=10.0, **given)
    mine = OwnCoefficient(basis, **zoo.conductivity_forms(10.0), linear_in_state=True, definite=True, **given)
    own, other = (fc.validated(problem, np.zeros(basis.N)) for problem in (mine, shipped))
    assert own.valid
    assert own.constant.value == pytest.approx(other.constant.value, rel=1e-9)
    assert own.radius == pytest.approx(other.radius, rel=1e-9)
