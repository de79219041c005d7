"""Baselines of a class with a ball lie in it, and are the minimum there: against SLSQP, by every route and norm."""

import numpy as np
import pytest
import zoo
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, diags

import femcert as fc
from femcert.linalg import factorization_count
from femcert.selection import tikhonov
from femcert.selection.ball import on_sphere

NORMS = ("l2", "h1", "h1-seminorm", "h2", "matrix")
LINE = zoo.unit_basis("line P1", 24)


def norm_of(name, basis):
    return name if name != "matrix" else csr_matrix(diags(np.linspace(0.01, 0.05, basis.N)))


def source(space, **options):
    return zoo.source(space.basis, parameters=space, sensors=9, **options)


def size(problem, q):
    """In the norm of the ball."""
    return np.sqrt(q @ (problem.parameters.form(problem.parameters.ball.norm) @ q))


def smallest(problem, data, weight):
    """The minimizer on the ball by SLSQP, in orthonormal coordinates; and the objective."""
    space = problem.parameters
    B = space.matrix.toarray() if hasattr(space.matrix, "toarray") else np.asarray(space.matrix)
    G = B.T @ (space.weight @ B)
    R = np.linalg.cholesky(G).T
    F = np.linalg.solve(R.T, data.whiten(problem.forward_matrix()).T).T
    y = data.whiten(data.values - problem.offset)
    form = np.linalg.solve(R.T, np.linalg.solve(R.T, B.T @ (space.form(space.ball.norm) @ B)).T)
    scale = np.linalg.norm(F, 2) ** 2

    def objective(x):
        return (np.sum((F @ x - y) ** 2) + weight * x @ x) / scale

    found = minimize(
        objective, np.zeros(len(G)), jac=lambda x: 2.0 * (F.T @ (F @ x - y) + weight * x) / scale, method="SLSQP",
        constraints={
            "type": "ineq", "fun": lambda x: 1.0 - x @ form @ x / space.ball.radius**2,
            "jac": lambda x: -2.0 * form @ x / space.ball.radius**2,
        },
        options={"ftol": 1e-16, "maxiter": 2000},
    )  # fmt: skip
    return B @ np.linalg.solve(R, found.x), lambda q: objective(R @ space.project(q)[0])


@pytest.mark.parametrize("covariance", [None, "variances"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("inner", ["l2", "euclidean"])
def test_tikhonov_is_the_minimum_on_the_ball(norm, inner, covariance):
    open_space = fc.SineSpace(LINE, 5, inner=inner)
    free = source(open_space, dirichlet=0.1)
    truth = free.parameters.field([1.0, -0.6, 0.5, 0.3, -0.2])
    data = free.simulate(truth, noise=0.05, seed=1)
    # So large a level that something in half the ball explains the data.
    data = fc.Data(data.values, 30.0, np.linspace(0.5, 2.0, 9) * 1e-4 if covariance else None)
    weight = 1e-6 * np.linalg.norm(data.whiten(free.forward_matrix()), 2) ** 2
    outside = fc.Tikhonov(weight=weight)(free, data).parameter
    wide = source(open_space.within_ball(1.0, norm=norm_of(norm, LINE)), dirichlet=0.1)
    radius = 0.5 * size(wide, outside)
    problem = source(open_space.within_ball(radius, norm=norm_of(norm, LINE)), dirichlet=0.1)
    found = fc.Tikhonov(weight=weight)(problem, data)
    assert size(problem, found.parameter) == pytest.approx(radius, rel=1e-12)
    expected, objective = smallest(problem, data, weight)
    np.testing.assert_allclose(found.parameter, expected, atol=2e-4 * np.abs(expected).max())
    assert objective(found.parameter) <= objective(expected) * (1.0 + 1e-9)
    # Shrinking the minimizer without the ball is another thing.
    assert objective(found.parameter) < objective(0.5 * outside) * (1.0 - 1e-6)
    # First-order conditions: not so without the ball's normal, nor elsewhere on the sphere.
    unit = np.linalg.norm(data.whiten(free.forward_matrix()), 2) * data.norm(data.values)
    assert found.optimality <= 1e-9 * unit
    assert fc.reduced_gradient_norm(free, data, found.parameter, weight=weight) > 1e-4 * unit
    assert fc.reduced_gradient_norm(problem, data, 0.5 * outside, weight=weight) > 1e-4 * unit
    assert fc.kkt_residual(problem, data, found, weight=weight).parameter.value <= 1e-9 * unit
    assert fc.certify(problem, data, found, fc.ResidualRadius()).residuals.admissibility.value <= 1e-12
    with pytest.raises(fc.InputError, match="on the sphere of its class"):
        fc.reduced_gradient_norm(problem, data, found.parameter, weight=weight, bounds=(-9.0, 9.0))


@pytest.mark.parametrize("norm", NORMS)
def test_a_wide_ball_changes_nothing(norm):
    open_space = fc.SineSpace(LINE, 5)
    free, wide = source(open_space), source(open_space.within_ball(1e6, norm=norm_of(norm, LINE)))
    data = free.simulate(free.parameters.field([1.0, -0.6, 0.5, 0.3, -0.2]), noise=0.05)
    for solver in (fc.Tikhonov(weight=1e-6), *(fc.Tikhonov(choose=choose) for choose in tikhonov.CHOICES)):
        assert np.array_equal(solver(free, data).parameter, solver(wide, data).parameter)
        assert solver(free, data).optimality == solver(wide, data).optimality


@pytest.mark.parametrize("choose", tikhonov.CHOICES)
@pytest.mark.parametrize("norm", NORMS)
def test_a_chosen_weight_respects_the_ball(norm, choose):
    open_space = fc.SineSpace(LINE, 5)
    free = source(open_space)
    data = free.simulate(free.parameters.field([1.0, -0.6, 0.5, 0.3, -0.2]), noise=0.05, seed=2)
    outside = fc.Tikhonov(choose=choose)(free, data).parameter
    wide = source(open_space.within_ball(1.0, norm=norm_of(norm, LINE)))
    problem = source(open_space.within_ball(0.7 * size(wide, outside), norm=norm_of(norm, LINE)))
    found = fc.Tikhonov(choose=choose)(problem, data)
    assert size(problem, found.parameter) <= problem.parameters.ball.radius * (1.0 + 1e-12)
    assert found.optimality <= 1e-8 * np.linalg.norm(free.forward_matrix(), 2) * data.norm(data.values)


@pytest.mark.parametrize("norm", ["l2", "h1", "h2", "matrix"])
def test_the_routes_for_many_coordinates_give_the_same(norm, monkeypatch):
    basis = zoo.square(3)

    def problem_in(radius):
        space = fc.FullSpace(basis).within_ball(radius, norm=norm_of(norm, basis))
        return zoo.source(basis, parameters=space, sensors=8, reaction=0.5)

    wide = problem_in(1e6)
    data = wide.simulate(np.cos(3.0 * basis.doflocs[0]), noise=0.02)
    outside = fc.Tikhonov(weight=1e-7)(wide, data).parameter
    problem = problem_in(0.6 * size(wide, outside))
    columns = fc.Tikhonov(weight=1e-7)(problem, data)
    monkeypatch.setattr("femcert.selection.ball.MOST_COLUMNS", 0)
    monkeypatch.setattr("femcert.selection.tikhonov.MOST_COLUMNS", 0)
    before = factorization_count()
    rows = fc.Tikhonov(weight=1e-7)(problem, data)
    # In the norm of L2 the multiplier adds to the weight, and nothing is factorized again.
    assert norm != "l2" or factorization_count() - before <= 1
    monkeypatch.setattr("femcert.selection.tikhonov.MOST_DENSE_ROWS", 0)
    system = fc.Tikhonov(weight=1e-7)(problem, data)
    for found in (columns, rows, system):
        assert size(problem, found.parameter) == pytest.approx(problem.parameters.ball.radius, rel=1e-9)
        assert found.optimality <= 1e-7 * outside.max() * np.linalg.norm(data.values)
        np.testing.assert_allclose(
            found.parameter, columns.parameter, atol=1e-6 * np.abs(columns.parameter).max()
        )


def test_the_secular_equation_over_many_scales():
    rng = np.random.default_rng(3)
    H, L, y = np.diag(np.geomspace(1e-12, 1.0, 30)), np.diag(np.geomspace(1.0, 1e6, 30)), rng.standard_normal(30)

    def solves(mu):
        return np.linalg.solve(H + mu * L, y), lambda r: np.linalg.solve(H + mu * L, r)

    for radius in np.geomspace(1e-6, 1e6, 7):
        c, mu = on_sphere(solves, L, radius)
        assert c @ L @ c == pytest.approx(radius**2, rel=1e-12)
        np.testing.assert_allclose((H + mu * L) @ c, y, atol=1e-8)


def test_minimizers_of_limited_accuracy_end_at_the_sphere():
    rng = np.random.default_rng(4)
    H, L, y = np.diag(np.geomspace(1e-3, 1.0, 10)), np.eye(10), rng.standard_normal(10)

    def solves(mu):
        inverse = np.linalg.inv(H + mu * L)
        return inverse @ y * (1.0 + 1e-6 * rng.uniform(0.5, 1.0) * rng.choice([-1.0, 1.0])), lambda r: inverse @ r

    exact = on_sphere(lambda mu: (np.linalg.solve(H + mu * L, y), lambda r: np.linalg.solve(H + mu * L, r)), L, 2.0)
    c, mu = on_sphere(solves, L, 2.0, known=1e-5)
    assert c @ c == pytest.approx(4.0, rel=1e-12)
    # Both end within 2e-6 of the sphere. Newton's step for mu has a relative error of that times the slope of the
    # secular equation, which is at most mu plus the largest entry of H over mu.
    assert mu == pytest.approx(exact[1], rel=2e-6 * (1.0 + 1.0 / exact[1]))
    np.testing.assert_allclose(c, exact[0], atol=2e-6 * (1.0 + 1.0 / exact[1]) * 2.0)
    with pytest.raises(fc.SolveError, match="no multiplier"):
        on_sphere(solves, L, 2.0)


def coefficient(**ball):
    space = fc.SineSpace(LINE, 3)
    return zoo.coefficient(
        LINE, parameters=space.within_ball(**ball) if ball else space, sensors=np.linspace(0.05, 0.95, 12)
    )


@pytest.mark.parametrize("bounds", [None, (-0.15, 0.3)])
@pytest.mark.parametrize("norm", NORMS)
def test_gauss_newton_is_a_minimum_on_the_ball(norm, bounds):
    free = coefficient()
    data = free.simulate(free.parameters.field([0.5, -0.3, 0.2]), noise=0.02, seed=1)
    solver = fc.GaussNewton(weight=1e-6, bounds=bounds)
    outside = solver(free, data).parameter
    radius = 0.6 * size(coefficient(radius=1.0, norm=norm_of(norm, LINE)), outside)
    problem = coefficient(radius=radius, norm=norm_of(norm, LINE))
    space, found = problem.parameters, solver(problem, data)
    assert size(problem, found.parameter) == pytest.approx(radius, rel=1e-9)
    low, high = (-np.inf, np.inf) if bounds is None else bounds
    c = space.project(found.parameter)[0]
    assert np.all((low - 1e-7 <= c) & (c <= high + 1e-7))

    def objective(c):
        q = space.field(c)
        misfit = data.norm(problem.observe(problem.solve(q)) - data.values)
        return 1e3 * (misfit**2 + 1e-6 * space.norm(q) ** 2)

    # Without bounds, ones far away: its steps lead to conductivities beyond all numbers.
    best = minimize(
        objective, np.zeros(3), method="SLSQP", bounds=[bounds or (-2.0, 2.0)] * 3,
        constraints={"type": "ineq", "fun": lambda c: 1.0 - (size(problem, space.field(c)) / radius) ** 2},
        options={"ftol": 1e-14, "maxiter": 500, "eps": 1e-7},
    )  # fmt: skip
    np.testing.assert_allclose(c, best.x, atol=2e-3)
    assert objective(c) <= best.fun * (1.0 + 1e-5)
    assert found.optimality <= 1e-5 * np.linalg.norm(problem.jacobian(found.parameter), 2) * data.norm(data.values)
    inside = coefficient(radius=10.0 * radius, norm=norm_of(norm, LINE))
    assert solver(inside, data).parameter == pytest.approx(outside, abs=1e-12)
