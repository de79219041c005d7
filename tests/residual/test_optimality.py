"""Stationarity with bounds, and the first-order conditions in state, adjoint and parameter."""

import numpy as np
import pytest
import zoo
from scipy.optimize import minimize
from skfem import Basis, BilinearForm, ElementLineP1, MeshLine
from skfem.helpers import dot, grad

import femcert as fc
from femcert.linalg import Factorization
from femcert.residual.optimality import curvature, reduced_gradient


def hat_functions(k):
    """Overlapping, so that the Gram matrix is not diagonal."""
    return [lambda x, c=c: np.exp(-8.0 * (x[0] - c) ** 2) for c in np.linspace(0.1, 0.9, k)]


def source(k=4, levels=3, **options):
    functions = (fc.FunctionSpace, hat_functions(k))
    return zoo.source(zoo.square(levels), parameters=functions, sensors=9, dirichlet=lambda x: x[0], **options)


def coefficient():
    return zoo.coefficient(zoo.square(3), parameters=(fc.FunctionSpace, hat_functions(3)), sensors=9, source=5.0)


def cubic():
    """A user's own nonlinear equation, -div((1 + u^2) grad u) = q: R_u is not symmetric."""
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, 21)), ElementLineP1(), intorder=6)
    functions = (fc.FunctionSpace, hat_functions(3))
    return zoo.own_nonlinear(basis, parameters=functions, sensors=[0.2, 0.4, 0.7], dirichlet=0.2)


def transport():
    points = [[0.3, 0.4], [0.6, 0.5]]
    return zoo.own_linear(zoo.square(2), parameters=(fc.FunctionSpace, hat_functions(3)), sensors=points)


PROBLEMS = {"source": source, "coefficient": coefficient, "cubic": cubic, "transport": transport}


def norm_of(name):
    return "h1" if name in ("cubic", "transport") else "energy"


def noisy(problem, seed=1):
    truth = problem.parameters.field(np.linspace(0.5, -0.4, problem.parameters.dimension))
    values = problem.simulate(truth, noise=0.05, seed=seed).values
    return fc.Data(values, 0.1, np.linspace(0.5, 2.0, values.size))


def perturbed(problem, seed, size=0.3):
    rng = np.random.default_rng(seed)
    c = size * rng.standard_normal(problem.parameters.dimension)
    q = problem.parameters.field(c)
    u = problem.boundary.values.copy()
    u[problem.free] += size * rng.standard_normal(len(problem.free))
    z = np.zeros(problem.basis.N)
    z[problem.free] = rng.standard_normal(len(problem.free))
    return u, c, q, z


def objective_minimum(problem, data, weight, bounds):
    """The bounded minimizer by scipy, in the coordinates."""
    low, high = (np.broadcast_to(limit, problem.parameters.dimension) for limit in bounds)
    F, G = data.whiten(problem.forward_matrix()), problem.parameters.gram
    y = data.whiten(data.values - problem.offset)
    found = minimize(
        lambda c: 0.5 * np.sum((F @ c - y) ** 2) + 0.5 * weight * c @ G @ c, np.clip(np.zeros(len(low)), low, high),
        jac=lambda c: F.T @ (F @ c - y) + weight * G @ c, bounds=list(zip(low, high, strict=True)), method="L-BFGS-B",
        options={"ftol": 1e-16, "gtol": 1e-13, "maxiter": 5000},
    )  # fmt: skip
    return found.x


def test_the_projected_gradient_vanishes_at_the_bounded_minimum():
    problem = source()
    data, weight, bounds = noisy(problem), 1e-3, (-0.1, [0.2, 0.3, 0.3, 0.3])
    c = objective_minimum(problem, data, weight, bounds)
    at_bound = np.isclose(c, -0.1, atol=1e-9) | np.isclose(c, [0.2, 0.3, 0.3, 0.3], atol=1e-9)
    assert 0 < at_bound.sum() < 4
    q = problem.parameters.field(c)
    plain = fc.reduced_gradient_norm(problem, data, q, weight=weight)
    found = fc.reduced_gradient_norm(problem, data, q, weight=weight, bounds=bounds)
    assert found < 1e-6 * plain
    # Clipping the coordinates of the step one by one would not see it: the Gram matrix is not diagonal.
    g = reduced_gradient(problem, data, c, weight=weight)
    L = curvature(problem, data, c, weight=weight)
    step = np.clip(-problem.parameters.solve_gram(g) / L, -0.1 - c, np.array([0.2, 0.3, 0.3, 0.3]) - c)
    assert L * problem.parameters.norm(problem.parameters.field(step)) > 0.01 * plain


def test_it_does_not_vanish_elsewhere():
    problem = source()
    data, weight, bounds = noisy(problem), 1e-3, (-0.1, 0.3)
    c = objective_minimum(problem, data, weight, bounds)
    best = problem.parameters.field(c)
    rng = np.random.default_rng(2)
    for _ in range(20):
        other = np.clip(c + 0.1 * rng.standard_normal(4), -0.1, 0.3)
        q = problem.parameters.field(other)
        found = fc.reduced_gradient_norm(problem, data, q, weight=weight, bounds=bounds)
        # A strongly convex objective (with the constant `weight`): so far from the minimum it is at least this.
        assert found >= 0.5 * weight * problem.parameters.norm(q - best)
        assert found <= fc.reduced_gradient_norm(problem, data, q, weight=weight) * (1.0 + 1e-12)
    # A point outside the box is not stationary, whatever its gradient.
    free = fc.Tikhonov(weight=weight)(problem, data)
    narrow = (-0.01, 0.01)
    assert fc.reduced_gradient_norm(problem, data, free.parameter, weight=weight) < 1e-10
    assert fc.reduced_gradient_norm(problem, data, free.parameter, weight=weight, bounds=narrow) > 1e-3


def test_gauss_newton_with_active_bounds_and_overlapping_functions():
    problem = coefficient()
    data, weight, bounds = noisy(problem), 1e-3, (-0.1, 0.2)
    found = fc.GaussNewton(weight=weight, bounds=bounds)(problem, data)
    c, _ = problem.parameters.project(found.parameter)
    assert np.any(np.isclose(c, -0.1, atol=1e-4) | np.isclose(c, 0.2, atol=1e-4))
    plain = fc.reduced_gradient_norm(problem, data, found.parameter, weight=weight)
    assert found.optimality < 1e-3 * plain
    again = fc.reduced_gradient_norm(problem, data, found.parameter, weight=weight, bounds=bounds)
    assert again == pytest.approx(found.optimality, rel=1e-3, abs=1e-9 * plain)


def test_the_full_space_with_bounds():
    problem = zoo.source(zoo.square(3), parameters=fc.FullSpace, sensors=[[0.3, 0.4], [0.6, 0.5]])
    data, q = fc.Data([0.05, 0.02], 0.0), np.clip(problem.basis.doflocs[0], 0.2, 0.7)
    plain = fc.reduced_gradient_norm(problem, data, q)
    assert 0.0 < fc.reduced_gradient_norm(problem, data, q, bounds=(0.2, 0.7)) < plain


@pytest.mark.parametrize(
    ("bounds", "match"),
    [
        ((1.0, 0.0), "expected low < high"),
        ((0.0,), r"expected a pair \(low, high\)"),
        ((np.zeros(3), 1.0), r"low has shape \(3,\); expected a number or \(4,\)"),
        (("a", "b"), "expected numbers"),
    ],
)
def test_wrong_bounds(bounds, match):
    problem = source()
    with pytest.raises(fc.InputError, match=match):
        fc.reduced_gradient_norm(problem, noisy(problem), np.zeros(problem.basis.N), bounds=bounds)


@pytest.mark.parametrize("name", PROBLEMS)
def test_zero_at_the_solution_and_linear_growth(name):
    problem = PROBLEMS[name]()
    data, weight = noisy(problem), 1e-2
    solver = fc.Tikhonov(weight=weight) if problem.forward else fc.GaussNewton(weight=weight, tolerance=1e-14)
    best = solver(problem, data)
    solved = fc.kkt_residual(problem, data, best, weight=weight, norm=norm_of(name))
    size = fc.kkt_residual(
        problem, data, fc.Candidate.from_coefficients(problem, np.zeros(problem.parameters.dimension)), weight=weight,
        norm=norm_of(name),
    ).total.value  # fmt: skip
    assert solved.total.value < 1e-6 * size
    assert solved.total.side == "lower"
    u, _, q, _ = perturbed(problem, 3, size=1.0)
    u = u - problem.boundary.values

    def moved(t):
        candidate = fc.Candidate(best.state + t * u, best.parameter + t * q)
        return fc.kkt_residual(problem, data, candidate, weight=weight, norm=norm_of(name)).total.value

    growth = [moved(t) / t for t in (1e-4, 2e-4)]
    assert growth[0] > 1e-3
    assert growth[1] == pytest.approx(growth[0], rel=0.01)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("bounds", [None, (-0.2, 0.2)])
def test_with_a_solved_state_it_is_the_reduced_gradient(name, bounds):
    problem = PROBLEMS[name]()
    data = noisy(problem)
    k = problem.parameters.dimension
    candidate = fc.Candidate.from_coefficients(problem, np.linspace(0.2, -0.1, k))
    found = fc.kkt_residual(problem, data, candidate, weight=0.1, bounds=bounds, norm=norm_of(name))
    reduced = fc.reduced_gradient_norm(problem, data, candidate.parameter, weight=0.1, bounds=bounds)
    assert reduced > 1e-4
    assert found.parameter.value == pytest.approx(reduced, rel=1e-7)
    assert found.state.value < 1e-9
    assert found.adjoint.value < 1e-9
    assert found.total.value == pytest.approx(reduced, rel=1e-7)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_three_parts_are_derivatives_of_the_lagrangian(name):
    problem = PROBLEMS[name]()
    data, weight = noisy(problem), 0.05
    u, c, q, z = perturbed(problem, 4)
    found = fc.kkt_residual(problem, data, fc.Candidate(u, q), weight=weight, adjoint=z, norm=norm_of(name))

    def lagrangian(u, c, z):
        q = problem.parameters.field(c)
        value = 0.5 * data.norm(problem.observe(u) - data.values) ** 2 + 0.5 * weight * problem.parameters.norm(q) ** 2
        return value - problem.residual(u, q) @ z

    def derivative(f, size):
        h = 1e-5
        return np.array([(f(h * e) - f(-h * e)) / (2.0 * h) for e in np.eye(size)])

    free, n = problem.free, len(problem.free)

    def along(step):
        full = np.zeros(problem.basis.N)
        full[free] = step
        return full

    in_u = derivative(lambda s: lagrangian(u + along(s), c, z), n)
    in_z = derivative(lambda s: lagrangian(u, c, z + along(s)), n)
    in_c = derivative(lambda s: lagrangian(u, c + s, z), len(c))
    one = BilinearForm(lambda u, v, w: dot(grad(u), grad(v)) + u * v).assemble(problem.basis)
    if norm_of(name) == "energy":
        one = problem.operator if problem.forward else problem.derivatives(u, q)[0]
    K = one[free][:, free].toarray()
    expected = [np.sqrt(g @ np.linalg.solve(K, g)) for g in (in_z, in_u)]
    expected.append(np.sqrt(in_c @ problem.parameters.solve_gram(in_c)))
    values = [found.state.value, found.adjoint.value, found.parameter.value]
    np.testing.assert_allclose(values, expected, rtol=1e-5)
    assert found.total.value == pytest.approx(np.linalg.norm(expected), rel=1e-5)


def test_the_adjoint_residual_of_a_wrong_adjoint():
    problem = source()
    data = noisy(problem)
    u, _, q, z = perturbed(problem, 5)
    candidate = fc.Candidate(u, q)
    solved = fc.kkt_residual(problem, data, candidate, weight=0.1)
    assert solved.adjoint.value < 1e-10
    assert solved.state.value > 0.1
    zero = fc.kkt_residual(problem, data, candidate, weight=0.1, adjoint=np.zeros(problem.basis.N))
    given = fc.kkt_residual(problem, data, candidate, weight=0.1, adjoint=z)
    # In the energy norm a functional is as large as its Riesz representative.
    A = problem.operator[problem.free][:, problem.free]
    pull = (problem.sensors.matrix.T @ ((problem.observe(u) - data.values) / np.linspace(0.5, 2.0, 9)))[problem.free]
    riesz = Factorization(A, definite=True).solve(pull)
    assert zero.adjoint.value == pytest.approx(np.sqrt(riesz @ (A @ riesz)), rel=1e-9)
    moved = riesz + z[problem.free]
    assert given.adjoint.value == pytest.approx(np.sqrt(moved @ (A @ moved)), rel=1e-9)
    assert given.state == zero.state == solved.state


def test_missed_boundary_values_count():
    problem = source()
    data = noisy(problem)
    exact = fc.Candidate.from_coefficients(problem, [0.1, 0.2, -0.1, 0.3])
    u = exact.state + np.random.default_rng(6).standard_normal(problem.basis.N)
    found = fc.kkt_residual(problem, data, fc.Candidate(u, exact.parameter), weight=0.1)
    error = u - exact.state
    assert (found.state.side, found.total.side) == ("estimate", "estimate")
    assert found.state.value == pytest.approx(np.sqrt(error @ (problem.operator @ error)), rel=1e-9)


def test_a_parameter_outside_the_class_is_projected():
    problem = source()
    data = noisy(problem)
    q = np.random.default_rng(7).standard_normal(problem.basis.N)
    inside = problem.parameters.field(problem.parameters.project(q)[0])
    u = problem.boundary.values
    first, second = (fc.kkt_residual(problem, data, fc.Candidate(u, p), weight=0.1) for p in (q, inside))
    assert first.total.value == pytest.approx(second.total.value, rel=1e-10)


def test_what_has_no_such_conditions():
    heat = zoo.heat(zoo.square(2), sensors=[[0.3, 0.4]], times=0.1, steps=3)
    for problem, m in ((heat, 1), (zoo.tomography(parameters=2, angles=[0, 90], bins=3), 6)):
        candidate = fc.Candidate.from_coefficients(problem, [1.0, 0.0])
        data = fc.Data(np.zeros(m), 0.0)
        with pytest.raises(fc.UncertifiedError, match=r"reduced_gradient_norm|one state equation"):
            fc.kkt_residual(problem, data, candidate, weight=0.1)
        free = fc.reduced_gradient_norm(problem, data, candidate.parameter, weight=0.1)
        bounded = fc.reduced_gradient_norm(problem, data, candidate.parameter, weight=0.1, bounds=(-0.1, 1.2))
        assert 0.0 < bounded <= free * (1.0 + 1e-14)
    problem = transport()
    candidate = fc.Candidate.from_coefficients(problem, [1.0, 0.0, 0.0])
    with pytest.raises(fc.UncertifiedError, match="norm='h1'"):
        fc.kkt_residual(problem, fc.Data([0.0, 0.0], 0.0), candidate, weight=0.1)
