"""Other norms, total variation and bounds: against normal equations, closed forms and other optimizers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import lsq_linear, minimize
from scipy.sparse import csr_matrix, diags
from skfem import Basis, ElementLineP0, ElementLineP1, ElementTriP0, MeshLine
from zoo import l_shape, source, unit_basis

import femcert as fc
from femcert.problem.noise import Bounded
from femcert.residual.optimality import projected_norm
from femcert.selection.penalty import SquaredNorm, variation
from femcert.selection.splitting import Splitting, box, total_variation

# What the splitting may leave of the objective, twice.
GAP = 2e-4


def problem_of(space=fc.FullSpace, basis=None, sensors=9):
    return source(basis or l_shape(1), parameters=space, sensors=sensors)


def data_of(problem, std=0.01, seed=0, truth=None):
    q = np.sin(2.0 * problem.parameters.basis.doflocs[0]) if truth is None else truth
    exact = problem.observe(problem.solve(q))
    return fc.Data.gaussian(exact + std * np.random.default_rng(seed).standard_normal(len(exact)), std=std)


def whitened(problem, data):
    return data.whiten(problem.forward_matrix()), data.whiten(data.values - problem.offset)


def denoising(basis, values, space=None):
    """Readings of the coordinates themselves."""
    n = basis.N
    space = fc.FullSpace(basis) if space is None else space
    problem = fc.MatrixProblem(operator=np.eye(n), load=np.eye(n), observe=np.eye(n), parameters=space)
    return problem, fc.Data(values, 0.1)


@pytest.mark.parametrize("level", [1, 4])
@pytest.mark.parametrize("penalty", ["h1", "h2", "matrix"])
def test_another_norm_against_the_normal_equations(penalty, level):
    problem = problem_of(basis=l_shape(level))
    data, space = data_of(problem), problem.parameters
    P = {"h1": space.form("h1"), "h2": space.form("h2"), "matrix": space.form("h1") + diags(space.weight.diagonal())}[
        penalty
    ]
    found = fc.Tikhonov(weight=0.3, penalty=P if penalty == "matrix" else penalty)(problem, data)
    F, y = whitened(problem, data)
    expected = np.linalg.solve(F.T @ F + 0.3 * P.toarray(), F.T @ y)
    assert_allclose(found.parameter, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
    assert found.optimality < 1e-7 * fc.reduced_gradient_norm(problem, data, 0.0 * expected)


def test_the_norm_of_a_ball_gives_its_length_to_the_penalty():
    problem = problem_of(lambda b: fc.FullSpace(b).within_ball(1e6, norm="h1", length=0.2))
    data, space = data_of(problem), problem.parameters
    F, y = whitened(problem, data)
    expected = np.linalg.solve(F.T @ F + 0.3 * space.form("h1", 0.2).toarray(), F.T @ y)
    found = fc.Tikhonov(weight=0.3, penalty="h1")(problem, data)
    assert_allclose(found.parameter, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("choose", ["discrepancy", "gcv", "lcurve"])
@pytest.mark.parametrize("space", [fc.FullSpace, lambda b: fc.CosineSpace(b, 5)])
def test_weights_are_chosen_for_another_norm(choose, space):
    problem = problem_of(space)
    data = data_of(problem)
    found = fc.Tikhonov(choose=choose, penalty="h1")(problem, data)
    misfit = data.norm(problem.observe(found.state) - data.values)
    if choose == "discrepancy":
        assert misfit == pytest.approx(data.noise_level, rel=1e-6)
    assert misfit < data.norm(data.values)
    assert found.optimality < 1e-6 * fc.reduced_gradient_norm(problem, data, np.zeros(problem.parameters.size))


@pytest.mark.parametrize("bounds", [None, (0.0, None)])
@pytest.mark.parametrize("penalty", ["l2", "h1", "tv"])
def test_on_the_sphere_of_a_ball(penalty, bounds):
    problem = problem_of(lambda b: fc.FullSpace(b).within_ball(0.4, norm="h1", length=0.5))
    data, space = data_of(problem, truth=1.0 + problem_of().basis.doflocs[0]), problem.parameters
    found = fc.Tikhonov(weight=0.1, penalty=penalty, bounds=bounds)(problem, data)
    size = space.ball_norm(found.parameter)
    assert 0.999 * 0.4 <= size <= 0.4 * (1.0 + 1e-12)
    J, c = objective_of(problem, data, 0.1, penalty), found.parameter
    # No other member of the class nearby, or far away, is better.
    rng = np.random.default_rng(0)
    for step in np.geomspace(1e-4, 1.0, 60):
        other = c + step * size * rng.standard_normal() * space.nearest(space.solve_gram(rng.standard_normal(len(c))))
        other = other if bounds is None else np.maximum(other, 0.0)
        assert J(other * min(1.0, 0.4 / space.ball_norm(other))) >= J(c) * (1.0 - 2e-3)


def objective_of(problem, data, weight, penalty):
    F, y = whitened(problem, data)
    space = problem.parameters
    if penalty == "tv":
        D, sizes, d = variation(space)
        size = lambda c: float(sizes @ np.linalg.norm((D @ c).reshape(-1, d), axis=1))  # noqa: E731
    else:
        P = space.gram if penalty == "l2" else SquaredNorm(space, penalty).gram
        size = lambda c: float(c @ (P @ c))  # noqa: E731
    return lambda c: float(np.sum((F @ c - y) ** 2)) + weight * size(c)


@pytest.mark.parametrize("penalty", ["l2", "h1"])
@pytest.mark.parametrize("weight", [0.01, 1.0])
def test_bounds_against_least_squares_with_bounds(penalty, weight):
    problem = problem_of()
    data, space = data_of(problem), problem.parameters
    low, high = np.full(space.size, -0.3), np.linspace(0.2, 0.6, space.size)
    found = fc.Tikhonov(weight=weight, penalty=penalty, bounds=(low, high))(problem, data)
    F, y = whitened(problem, data)
    P = (space.gram if penalty == "l2" else space.form("h1")).toarray()
    root = np.linalg.cholesky(P).T
    expected = lsq_linear(
        np.vstack([F, np.sqrt(weight) * root]), np.concatenate([y, np.zeros(space.size)]), bounds=(low, high), tol=1e-14
    )
    J = objective_of(problem, data, weight, penalty)
    assert np.all((found.parameter >= low) & (found.parameter <= high))
    assert np.any(found.parameter == low)
    assert J(found.parameter) <= J(expected.x) * (1.0 + GAP)
    # The optimality is at least that of the projected gradient with the same curvature.
    c = found.parameter
    objective = Splitting(F, y, space, lambda x: x)
    g = F.T @ (F @ c - y) + weight * P @ c
    step = projected_norm(space, c, g, (low, high), curvature=objective.curvature)
    assert step <= found.optimality * (1.0 + 1e-9)
    assert found.optimality < 0.05 * fc.reduced_gradient_norm(problem, data, 0.0 * c)


def test_bounds_of_a_span_and_of_its_class():
    problem = problem_of(lambda b: fc.CosineSpace(b, 4).within_bounds(-0.2, None))
    data, space = data_of(problem), problem.parameters
    found = fc.Tikhonov(weight=0.1, bounds=(None, 0.4))(problem, data)
    assert found.parameter.min() >= -0.2 - 1e-3
    assert found.parameter.max() <= 0.4 + 1e-3
    J, B = objective_of(problem, data, 0.1, "l2"), np.asarray(space.matrix)
    constraints = [{"type": "ineq", "fun": lambda c: B @ c + 0.2}, {"type": "ineq", "fun": lambda c: 0.4 - B @ c}]
    start = space.project(np.full(space.size, 0.1))[0]
    expected = minimize(J, start, constraints=constraints, method="SLSQP", options={"ftol": 1e-14, "maxiter": 500})
    c = space.project(found.parameter)[0]
    assert_allclose(J(c), expected.fun, rtol=2e-3)
    with pytest.raises(fc.InputError, match="leave nothing"):
        fc.Tikhonov(weight=0.1, bounds=(None, -0.5))(problem, data)


def test_bounds_that_do_not_hold_anything_change_nothing():
    problem = problem_of()
    data = data_of(problem)
    plain = fc.Tikhonov(weight=0.1)(problem, data)
    wide = fc.Tikhonov(weight=0.1, bounds=(-100.0, 100.0))(problem, data)
    norm = problem.parameters.norm
    assert norm(wide.parameter - plain.parameter) < 0.02 * norm(plain.parameter)
    none = fc.Tikhonov(weight=0.1, bounds=(None, None))(problem, data)
    assert np.array_equal(none.parameter, plain.parameter)


@pytest.mark.parametrize("weight", [0.5, 2.0, 30.0])
def test_a_step_loses_height_and_keeps_its_edge(weight):
    # n readings of 0, then n of 1: both sides move by weight / (2 n), until they meet.
    n = 10
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, 2 * n + 1)), ElementLineP0())
    right = basis.doflocs[0] > 0.5
    problem, data = denoising(basis, right.astype(float))
    found = fc.Tikhonov(weight=weight, penalty="tv")(problem, data).parameter
    loss = min(weight / (2.0 * n), 0.5)
    assert_allclose(found, np.where(right, 1.0 - loss, loss), atol=2e-3)


def test_jumps_count_with_the_size_of_their_facets():
    # A square of one triangulation: the jump around the middle has the length of its boundary.
    basis = Basis(unit_basis("tri P1", 8).mesh, ElementTriP0())
    inside = np.max(np.abs(basis.doflocs - 0.5), axis=0) < 0.25
    D, sizes, d = variation(fc.FullSpace(basis))
    assert float(sizes @ np.linalg.norm((D @ inside.astype(float)).reshape(-1, d), axis=1)) == pytest.approx(2.0)
    wide = Basis(MeshLine(np.linspace(0.0, 1.0, 9)), ElementLineP0())
    D, sizes, d = variation(fc.FullSpace(wide))
    assert float(sizes @ np.abs(D @ (wide.doflocs[0] > 0.4))) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["line P1", "line P2", "tri P1", "tri P2", "quad Q1", "quad Q2"])
def test_the_total_variation_of_a_slope(name):
    space = fc.FullSpace(unit_basis(name))
    D, sizes, d = variation(space)
    slope = 3.0 * space.basis.doflocs[0] - 4.0 * (space.basis.doflocs[1] if d == 2 else 0.0)
    total = float(sizes @ np.linalg.norm((D @ slope).reshape(-1, d), axis=1))
    assert total == pytest.approx(5.0 if d == 2 else 3.0)
    K = space.form("h1-seminorm").toarray()
    assert_allclose((D.T @ D).toarray(), K, atol=1e-10 * np.abs(K).max())


@pytest.mark.parametrize("weight", [0.1, 10.0])
@pytest.mark.parametrize("space", [fc.FullSpace, lambda b: fc.CosineSpace(b, 6)])
def test_total_variation_against_a_smoothed_one(space, weight):
    problem = problem_of(space)
    data = data_of(problem, truth=(problem.basis.doflocs[0] > 0.0).astype(float))
    found = fc.Tikhonov(weight=weight, penalty="tv")(problem, data)
    F, y = whitened(problem, data)
    D, sizes, d = variation(problem.parameters)
    D = D.toarray() if hasattr(D, "toarray") else D
    J = objective_of(problem, data, weight, "tv")
    c = problem.parameters.project(found.parameter)[0]

    def smoothed(x, beta):
        z = (D @ x).reshape(-1, d)
        length = np.sqrt(np.sum(z**2, axis=1) + beta**2)
        value = np.sum((F @ x - y) ** 2) + weight * sizes @ length
        return value, 2.0 * F.T @ (F @ x - y) + weight * D.T @ ((sizes / length)[:, None] * z).ravel()

    x = np.zeros_like(c)
    for beta in np.geomspace(1e-1, 1e-5, 9):
        x = minimize(smoothed, x, args=(beta,), jac=True, method="BFGS", options={"maxiter": 400}).x
    assert J(c) <= J(x) * (1.0 + GAP)
    assert J(c) >= J(x) * (1.0 - 0.01)


@pytest.mark.parametrize("weight", [0.3, 3.0])
def test_the_optimality_bounds_the_proximal_step_of_the_total_variation(weight):
    problem = problem_of()
    data, space = data_of(problem), problem.parameters
    found = fc.Tikhonov(weight=weight, penalty="tv")(problem, data)
    F, y = whitened(problem, data)
    objective, c = Splitting(F, y, space, lambda x: x), found.parameter
    G, L = space.gram.toarray(), objective.curvature
    # The point of the proximal step: denoising of a gradient step, to many digits.
    there = c - np.linalg.solve(G, F.T @ (F @ c - y)) / L
    root = np.sqrt(L) * np.linalg.cholesky(G).T
    denoised = Splitting(root, root @ there, space, lambda x: x)
    term = total_variation(space, 0.5 * weight, 1.0)
    p = denoised.minimize(csr_matrix(G.shape), [term], c, wanted=1e-11).coefficients
    assert L * space.norm(c - p) <= found.optimality * (1.0 + 1e-3)


def test_total_variation_finds_a_block_better_than_a_norm_does():
    basis = unit_basis("tri P1", 16)
    problem = fc.Tomography(basis, parameters=fc.FullSpace(basis), angles=np.arange(0.0, 180.0, 30.0), bins=12)
    truth = (np.max(np.abs(basis.doflocs - np.array([[0.4], [0.6]])), axis=0) < 0.2).astype(float)
    exact = problem.predict(None, truth)
    data = fc.Data.gaussian(exact + 0.002 * np.random.default_rng(0).standard_normal(len(exact)), std=0.002)
    norm, errors = problem.parameters.norm, {}
    for penalty in ("l2", "tv"):
        found = fc.Tikhonov(choose="discrepancy", penalty=penalty)(problem, data)
        misfit = data.norm(problem.predict(None, found.parameter) - data.values)
        assert misfit == pytest.approx(data.noise_level, rel=1e-2)
        errors[penalty] = norm(found.parameter - truth)
    assert errors["tv"] < 0.6 * errors["l2"]
    positive = fc.Tikhonov(choose="discrepancy", penalty="tv", bounds=(0.0, 1.0))(problem, data).parameter
    assert positive.min() >= 0.0
    assert positive.max() <= 1.0


def test_the_certificate_of_a_bad_point_is_large():
    problem = problem_of()
    data, space = data_of(problem), problem.parameters
    F, y = whitened(problem, data)
    objective = Splitting(F, y, space, lambda x: x)
    term = box(space, np.zeros(space.size), np.full(space.size, np.inf), 1.0)
    zero = np.zeros(space.size)
    penalty = csr_matrix((space.size, space.size))
    optimality, gap = objective.certificate(zero + 1.0, penalty, [term], [zero])
    # Multipliers zero: the dual norm of the gradient.
    g = F.T @ (F @ (zero + 1.0) - y)
    assert optimality == pytest.approx(np.sqrt(g @ space.solve_gram(g)))
    assert gap > 0.1


@pytest.mark.parametrize(
    "options", [{"penalty": "tv"}, {"penalty": "tv", "bounds": (-1.0, 2.0)}, {"bounds": (0.5, None)}]
)
@pytest.mark.parametrize("level", [0.0, 1.0])
def test_data_of_constants(options, level):
    problem = problem_of()
    data = fc.Data(problem.observe(problem.solve(np.full(problem.basis.N, level))), 0.1)
    found = fc.Tikhonov(weight=1e-6, **options)(problem, data).parameter
    if "penalty" in options:
        # No total variation, and no misfit.
        assert_allclose(found, level, atol=1e-2)
    assert found.min() >= options.get("bounds", (-np.inf,))[0]


def test_sensors_that_see_nothing():
    n = 4
    blind = fc.MatrixProblem(operator=np.eye(n), load=np.eye(n), observe=np.zeros((2, n)))
    with pytest.raises(fc.InputError, match="see no parameter"):
        fc.Tikhonov(weight=1.0, bounds=(0.0, None))(blind, fc.Data(np.ones(2), 0.1))


def test_no_weight_of_the_total_variation_explains_the_noise():
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, 11)), ElementLineP1())
    values = np.full(11, 2.0) + 0.01 * np.sin(9.0 * basis.doflocs[0])
    problem, data = denoising(basis, values)
    data._law = Bounded(1.0)
    with pytest.raises(fc.InputError, match="constants explain"):
        fc.Tikhonov(choose="discrepancy", penalty="tv")(problem, data)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"penalty": "l1"}, "penalty"),
        ({"penalty": np.eye(3)}, "penalty"),
        ({"bounds": 1.0}, "bounds"),
        ({"penalty": "tv", "weight": None, "choose": "gcv"}, "discrepancy"),
    ],
)
def test_refused_options(options, said):
    with pytest.raises(fc.InputError, match=said):
        fc.Tikhonov(**{"weight": 1.0, **options})


def test_refused_problems():
    problem = problem_of()
    data = data_of(problem)
    with pytest.raises(fc.InputError, match="matrix of the norm"):
        fc.Tikhonov(weight=1.0, penalty=csr_matrix(np.eye(3)))(problem, data)
    with pytest.raises(fc.InputError, match="lower exceeds upper"):
        fc.Tikhonov(weight=1.0, bounds=(1.0, 0.0))(problem, data)
    matrices = fc.MatrixProblem(operator=np.eye(3), load=np.eye(3), observe=np.eye(3))
    with pytest.raises(fc.InputError, match="total variation"):
        fc.Tikhonov(weight=1.0, penalty="tv")(matrices, fc.Data(np.ones(3), 0.1))
