"""The stochastic radius of functions: their own residual where they offer derivatives, else that of interpolants."""

import numpy as np
import pytest
import zoo
from function_helpers import PI, Sine, certified, load, square
from skfem import Basis, ElementLineP1, ElementTriP0, ElementTriP1, MeshLine, MeshTri
from zoo import OwnSource, judge_of

import femcert as fc
from femcert.certificate.pointwise import pointwise_residual
from femcert.mesh.locate import interpolation_matrix
from femcert.mesh.sample import uniform_points


class Linear:
    """A conductivity ``1 + x/2`` that knows its gradient."""

    def __call__(self, x):
        return 1.0 + 0.5 * x[0]

    def gradient(self, x):
        return np.concatenate([np.full((1, *x.shape[1:]), 0.5), np.zeros((len(x) - 1, *x.shape[1:]))])


def mean_square(problem, residual):
    """By a rule of order 12 in every element; the values of the interpolant as scikit-fem has them."""
    fine = Basis(problem.basis.mesh, ElementTriP1(), intorder=12)
    x = np.asarray(fine.global_coordinates())
    q = np.asarray(fine.interpolate(load(problem.basis.doflocs)))
    return float(np.sum((residual(x) - q) ** 2 * fine.dx))


@pytest.mark.parametrize(("level", "ripple"), [(2, 0.0), (3, 1e-3), (4, 1e-3), (4, 0.0)])
def test_the_residual_of_the_parameter_that_is_handed_out(level, ripple):
    """u = Sine with a ripple and q its load without: the residual is the ripple's and what is left of q by q_h."""
    problem, u = square(level), Sine(1.0, ripple)
    truth = np.sqrt(mean_square(problem, lambda x: -u.laplacian(x)))
    top = 128.0 * PI**2 * ripple + 30.0 / 4**level
    candidate = fc.Candidate.from_functions(problem, state=u, parameter=load, envelope=6.0 * top)
    pde = certified(problem, candidate, points=100_000, bound="betting").residuals.pde
    assert truth <= pde.value <= 1.05 * truth
    what = "RMS of the functions u and q_h within the declared envelope"
    assert pde.source == f"{what} at 100000 random points, betting"
    assert pde.probability == 0.95


@pytest.mark.parametrize("given", [False, True])
def test_a_parameter_that_is_right_between_the_nodes_only_is_not_certified(given):
    """A function q that solves the equation with u everywhere but at the nodes: its interpolant is off by 5."""
    problem, u = square(3), Sine()
    nodes = problem.basis.doflocs

    def spiky(x):
        x = np.asarray(x)
        near = np.abs(x.reshape(2, 1, -1) - nodes[:, :, None]).max(axis=0).min(axis=0) < 1e-9
        return load(x) + 5.0 * near.reshape(x.shape[1:])

    options = {"residual": lambda x: -u.laplacian(x) - spiky(x)} if given else {}
    state = (lambda x: u(x)) if given else u
    candidate = fc.Candidate.from_functions(problem, state=state, parameter=spiky, envelope=10.0, **options)
    value = certified(problem, candidate, points=4000, bound="betting").residuals.pde.value
    assert 4.5 <= value <= 6.0


def test_an_envelope_of_the_functions_alone_is_not_one():
    """Without a ripple the residual of (u, q) is zero, and so would be its envelope."""
    problem = square(3)
    candidate = fc.Candidate.from_functions(problem, state=Sine(), parameter=load, envelope=1e-6)
    with pytest.raises(fc.UncertifiedError, match=r"is not one: .* with the interpolated parameter"):
        certified(problem, candidate)


@pytest.mark.parametrize("mesh", [MeshLine(np.linspace(0.0, 1.0, 17)), MeshTri().refined(3)])
@pytest.mark.parametrize("reaction", [0.0, 2.0, lambda x: x[0], "per element"])
@pytest.mark.parametrize("conductivity", [1.5, Linear()])
def test_product_rule_and_reaction(mesh, conductivity, reaction):
    """Against central differences of the flux."""
    basis = Basis(mesh, ElementLineP1() if mesh.dim() == 1 else ElementTriP1())
    if isinstance(reaction, str):
        reaction = np.linspace(0.0, 1.0, mesh.nelements)
    sensors = zoo.discs([[0.5] * mesh.dim()], radius=0.2)
    problem = zoo.source(basis, parameters=2, sensors=sensors, conductivity=conductivity, reaction=reaction)
    u = Sine(1.0, 0.1)
    candidate = fc.Candidate.from_functions(problem, state=u, parameter=lambda x: x[0] ** 2, envelope=1e4)
    points = uniform_points(mesh, 30, np.random.default_rng(0))
    x, cells = points.x, points.cells
    found = pointwise_residual(problem, candidate)(points)
    a = conductivity if callable(conductivity) else lambda x: np.full(x.shape[1], conductivity)
    h, expected = 1e-5, -(basis.probes(x) @ basis.doflocs[0] ** 2)
    for i in range(len(x)):
        e = h * np.eye(len(x))[:, [i]]
        expected -= (a(x + e) * u.gradient(x + e)[i] - a(x - e) * u.gradient(x - e)[i]) / (2.0 * h)
    c = reaction(x) if callable(reaction) else reaction[cells] if np.ndim(reaction) else reaction
    np.testing.assert_allclose(found, expected + c * u(x), rtol=1e-6, atol=1e-6)


def test_a_problem_of_the_user_with_its_strong_form():
    basis = square(3).basis
    sensors = fc.AverageSensors(basis, [[0.5, 0.5], [0.3, 0.4]], radius=0.2)
    problem, u = OwnSource(basis, parameters=fc.EigenmodeSpace(basis, 2), sensors=sensors), Sine(1.0, 0.1)
    candidate = fc.Candidate.from_functions(problem, state=u, parameter=load, envelope=1e3)
    points = uniform_points(basis.mesh, 30, np.random.default_rng(0))
    expected = -u.laplacian(points.x) + 2.0 * u(points.x) - points.values(basis, candidate.parameter) - 1.5
    np.testing.assert_allclose(pointwise_residual(problem, candidate)(points), expected, rtol=1e-10, atol=1e-10)
    assert "functions" in certified(problem, candidate).residuals.pde.source
    given = fc.Candidate.from_functions(
        problem, state=lambda x: u(x), parameter=load, envelope=1e3,
        residual=lambda x: -u.laplacian(x) + 2.0 * u(x) - load(x) - 1.5,
    )  # fmt: skip
    np.testing.assert_allclose(pointwise_residual(problem, given)(points), expected, rtol=1e-10, atol=1e-10)
    assert "functions" in certified(problem, given).residuals.pde.source


@pytest.mark.parametrize("transform", ["exp", "identity"])
def test_the_residual_of_a_conductivity(transform):
    basis = zoo.square(3)
    problem = zoo.coefficient(basis, parameters=fc.FullSpace, sensors=1, source=3.0, transform=transform)
    u, q = Sine(1.0, 0.1), Linear()
    candidate = fc.Candidate.from_functions(problem, state=u, parameter=lambda x: q(x), envelope=1e4)
    points = uniform_points(basis.mesh, 30, np.random.default_rng(0))
    x, found = points.x, pointwise_residual(problem, candidate)(points)
    # A linear function is its own interpolant.
    a = np.exp(q(x)) if transform == "exp" else q(x)
    slope = np.sum(q.gradient(x) * u.gradient(x), axis=0) * (a if transform == "exp" else 1.0)
    np.testing.assert_allclose(found, -a * u.laplacian(x) - slope - 3.0, rtol=1e-10)
    # Its parameter elsewhere in the class: the functions say nothing about that pair.
    moved = fc.Candidate(candidate.state, candidate.parameter + 0.1, functions=candidate.functions)
    assert pointwise_residual(problem, moved) is None


@pytest.mark.parametrize("name", zoo.PLANE)
def test_the_gradient_of_a_conductivity_is_that_of_its_interpolant(name):
    """A wave of q that no node sees does not count; against differences inside of the cells."""
    basis = zoo.unit_basis(name, 4)
    problem = zoo.coefficient(basis, parameters=fc.FullSpace, sensors=1, transform="identity")
    u = Sine()
    q = lambda x: 1.0 + x[0] * x[1] + np.sin(8.0 * PI * x[0])  # noqa: E731
    candidate = fc.Candidate.from_functions(problem, state=u, parameter=q, envelope=1e4)
    points = uniform_points(basis.mesh, 40, np.random.default_rng(0))
    x, cells = points.x, points.cells
    found = pointwise_residual(problem, candidate)(points)
    h, slope = 1e-6, np.zeros((2, 40))
    for i in range(2):
        e = h * np.eye(2)[:, [i]]
        ahead, back = (interpolation_matrix(basis, x + s * e, cells) @ candidate.parameter for s in (1.0, -1.0))
        slope[i] = (ahead - back) / (2.0 * h)
    value = interpolation_matrix(basis, x, cells) @ candidate.parameter
    expected = -value * u.laplacian(x) - np.sum(slope * u.gradient(x), axis=0) - 1.0
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_a_residual_that_belongs_to_a_function_q_is_refused_for_a_conductivity():
    basis = zoo.square(2)
    problem = zoo.coefficient(basis, parameters=fc.FullSpace, sensors=1)
    u = Sine()
    options = {"parameter": Linear(), "residual": lambda x: 0.0 * x[0], "envelope": 1e4}
    given = fc.Candidate.from_functions(problem, state=lambda x: u(x), **options)
    with pytest.raises(fc.UncertifiedError, match="not to the interpolant that is handed out"):
        pointwise_residual(problem, given)
    # With derivatives of the state it is not needed, and not used.
    points = uniform_points(basis.mesh, 10, np.random.default_rng(0))
    derived = fc.Candidate.from_functions(problem, state=u, **options)
    assert np.abs(pointwise_residual(problem, derived)(points)).max() > 1.0
    # On elements the conductivity jumps, and the residual is no function.
    constants = Basis(basis.mesh, ElementTriP0())
    jumping = zoo.coefficient(basis, parameters=fc.FullSpace(constants), sensors=1)
    plain = fc.Candidate.from_functions(jumping, state=u, parameter=Linear(), envelope=1e4)
    assert pointwise_residual(jumping, plain) is None


def test_a_parameter_moved_into_the_class_moves_the_residual():
    problem = square(3)
    u = Sine()
    candidate = fc.Candidate.from_functions(problem, state=u, parameter=lambda x: load(x) + 5.0, envelope=6.0)
    inside, distance = judge_of(fc.StochasticRadius(), problem).moved(candidate)
    assert distance > 0.5
    points = uniform_points(problem.basis.mesh, 200, np.random.default_rng(0))
    x, cells = points.x, points.cells
    exact = pointwise_residual(problem, inside)
    moved = candidate.parameter - inside.parameter
    expected = -u.laplacian(x) - problem.basis.probes(x) @ inside.parameter
    np.testing.assert_allclose(exact(points), expected, atol=1e-9)
    # The envelope grows by what the move can add.
    assert np.all(exact.envelopes[cells, 0] >= np.abs(expected))
    assert exact.envelopes.max() <= 6.0 + np.abs(moved).max() + 1e-12
    data = fc.Data(np.zeros(6), 0.1)
    found = fc.certify(problem, data, candidate, fc.StochasticRadius(points=500))
    assert "functions" in found.residuals.pde.source


def test_importance_with_functions():
    """A residual that lives in a corner; the envelope by element, or one number for all."""
    problem = square(4)
    mesh = problem.basis.mesh

    def residual(x):
        return 10.0 * np.exp(-(x[0] ** 2 + x[1] ** 2) / 0.01)

    far = np.sqrt((mesh.p**2).sum(axis=0))[mesh.t].min(axis=0)
    by_element = 10.0 * np.exp(-(np.maximum(far - 0.07, 0.0) ** 2) / 0.01) + 1e-6
    excess = {}
    for name, envelope in (("number", 10.0), ("elements", by_element)):
        candidate = fc.Candidate.from_functions(
            problem, state=lambda x: 0.0 * x[0], parameter=lambda x: -residual(x), residual=residual, envelope=envelope
        )
        for sampling in ("uniform", "importance"):
            found = certified(problem, candidate, points=2000, bound="bernstein", sampling=sampling)
            excess[name, sampling] = found.residuals.pde.value
    # The state is zero: what is left is the parameter that is handed out, an element away from its function.
    field = np.asarray(problem.basis.interpolate(candidate.parameter))
    truth = np.sqrt(np.sum(field**2 * problem.basis.dx))
    assert truth == pytest.approx(np.sqrt(100.0 * PI * 0.005 / 4.0), rel=0.1)
    assert truth <= excess["elements", "importance"] < excess["number", "uniform"]
    assert excess["number", "uniform"] == pytest.approx(excess["elements", "uniform"], rel=1e-4)
    assert truth <= excess["number", "importance"]
    assert excess["elements", "importance"] - truth <= 0.3 * (excess["elements", "uniform"] - truth)


@pytest.mark.parametrize("case", ["no laplacian", "no envelope", "jumping conductivity", "no gradient", "no state"])
def test_else_the_interpolant(case):
    jumping = {"conductivity": np.where(np.arange(128) < 64, 1.0, 2.0)} if case == "jumping conductivity" else {}
    if case == "no gradient":
        jumping = {"conductivity": lambda x: 1.0 + x[0]}
    problem = square(3, **jumping)
    u = Sine()
    candidate = fc.Candidate.from_functions(
        problem, state={"no laplacian": lambda x: u(x), "no state": None}.get(case, u), parameter=load,
        envelope=None if case == "no envelope" else 1e4,
    )  # fmt: skip
    assert pointwise_residual(problem, candidate) is None
    plain = fc.Candidate(candidate.state, candidate.parameter)
    assert certified(problem, candidate).to_dict() == certified(problem, plain).to_dict()


def test_heat_states_have_their_interpolants():
    problem = zoo.heat()
    options = {"parameter": Sine(), "envelope": 1e4}
    states = [Sine(0.9), Sine(0.8)]
    found = certified(problem, fc.Candidate.from_functions(problem, state=states, **options))
    assert "functions" not in found.residuals.pde.source
    states[1].scale = 0.7
    candidate = fc.Candidate.from_functions(problem, state=states, **options)
    states[1].scale = 0.6
    with pytest.raises(fc.UncertifiedError, match="the state of 'learned' changed after it was frozen"):
        certified(problem, candidate)
    timed = fc.Candidate.from_functions(problem, state=[Sine(), Sine()], residual=lambda x: x[0], **options)
    with pytest.raises(fc.UncertifiedError, match="without time"):
        certified(problem, timed)
