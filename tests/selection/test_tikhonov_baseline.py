"""Tikhonov against the normal equations, by three routes; the choices of its weight against brute force."""

import numpy as np
import pytest
from scipy.sparse import identity
from zoo import coefficient, heat, laplace, mass, source, square, tomography

import femcert as fc
from femcert.linalg import factorization_count
from femcert.selection import tikhonov
from femcert.selection.ridge import ridge_of_columns, ridge_of_rows
from femcert.selection.weights import choose_weight


def full_problem(level=2, m=8, **options):
    return source(square(level), parameters=fc.FullSpace, sensors=m, **options)


def few_problem(k=4, m=8, **options):
    return source(square(3), parameters=(fc.EigenmodeSpace, k), sensors=m, **options)


def covariance_of(kind, m):
    root = np.random.default_rng(5).standard_normal((m, m))
    return {None: None, "variances": np.linspace(0.1, 4.0, m), "matrix": root @ root.T + 0.1 * np.eye(m)}[kind]


def normal_equations(problem, data, weight):
    """Minimizer of ``(F c + y0 - y)' C^-1 (F c + y0 - y) + weight c' G c`` by dense algebra alone."""
    basis, B = problem.basis, problem.parameters.matrix
    B = B.toarray() if hasattr(B, "toarray") else np.asarray(B)
    K, M = laplace.assemble(basis).toarray(), mass.assemble(basis).toarray()
    free, values = problem.free, problem.boundary.values
    inverse = np.linalg.inv(K[np.ix_(free, free)])
    H = problem.sensors.matrix.toarray()
    states = np.zeros((basis.N, B.shape[1]))
    states[free] = inverse @ (M @ B)[free]
    rest = values.copy()
    rest[free] = -inverse @ (K @ values)[free]
    F, y = H @ states, data.values - H @ rest
    C = np.eye(len(y)) if data.covariance is None else data.covariance
    C = np.diag(C) if C.ndim == 1 else C
    return np.linalg.solve(F.T @ np.linalg.solve(C, F) + weight * B.T @ M @ B, F.T @ np.linalg.solve(C, y))


@pytest.mark.parametrize("kind", [None, "variances", "matrix"])
@pytest.mark.parametrize("make", [few_problem, full_problem], ids=["few", "full"])
@pytest.mark.parametrize("weight", [1e-6, 1e-3, 10.0])
def test_against_the_normal_equations(make, kind, weight):
    problem = make(dirichlet=0.5)
    data = fc.Data(np.random.default_rng(1).standard_normal(8), 0.1, covariance_of(kind, 8))
    found = fc.Tikhonov(weight=weight)(problem, data)
    expected = problem.parameters.field(normal_equations(problem, data, weight))
    np.testing.assert_allclose(found.parameter, expected, rtol=0, atol=1e-7 * np.abs(expected).max())
    np.testing.assert_allclose(found.state, problem.solve(expected), atol=1e-7 * np.abs(found.state).max())
    assert found.name == "baseline"
    # Its optimality is the gradient norm it reached: nothing, against the gradient at zero.
    start = fc.reduced_gradient_norm(problem, data, np.zeros(problem.basis.N), weight=weight)
    assert 0.0 <= found.optimality < 1e-8 * start


@pytest.mark.parametrize("kind", [None, "variances"])
@pytest.mark.parametrize("weight", [1e-5, 1e-2])
@pytest.mark.parametrize("options", [{}, {"dirichlet": 0.5}, {"dirichlet": lambda x: x[0], "mass": "lumped"}])
def test_three_routes_to_one_minimizer(kind, weight, options):
    problem = full_problem(m=9, **options)
    data = fc.Data(np.random.default_rng(2).standard_normal(9), 0.1, covariance_of(kind, 9))
    F, y = data.whiten(problem.forward_matrix()), data.whiten(data.values - problem.offset)
    columns = ridge_of_columns(problem.normal(data), y, problem.parameters).coefficients(weight)
    rows = ridge_of_rows(F, y, problem.parameters).coefficients(weight)
    sparse = tikhonov._from_optimality_system(problem, data, problem.system(), weight)
    size = np.abs(columns).max()
    np.testing.assert_allclose(rows, columns, rtol=0, atol=1e-8 * size)
    np.testing.assert_allclose(sparse.parameter, columns, rtol=0, atol=1e-8 * size)
    assert sparse.optimality < 1e-8


def test_the_routes_are_taken_by_size(monkeypatch):
    taken = []
    for name in ("ridge_of_columns", "ridge_of_rows", "_from_optimality_system"):
        function = getattr(tikhonov, name)
        monkeypatch.setattr(tikhonov, name, lambda *a, _f=function, _n=name: (taken.append(_n), _f(*a))[1])
    data = fc.Data(np.random.default_rng(2).standard_normal(8), 0.1)
    few, wide = few_problem(), full_problem(level=5)
    assert wide.parameters.dimension > 500 > few.parameters.dimension
    expected = [fc.Tikhonov(weight=1e-3)(problem, data).parameter for problem in (few, wide)]
    assert taken == ["ridge_of_columns", "ridge_of_rows"]
    monkeypatch.setattr(tikhonov, "MOST_DENSE_ROWS", 5)
    sparse = fc.Tikhonov(weight=1e-3)(wide, data)
    assert taken[2:] == ["_from_optimality_system"]
    np.testing.assert_allclose(sparse.parameter, expected[1], atol=1e-8 * np.abs(expected[1]).max())
    with pytest.raises(fc.InputError, match=r"choose='gcv' is not available .* give weight"):
        fc.Tikhonov(choose="gcv")(wide, data)
    with pytest.raises(fc.InputError, match="vector of variances"):
        fc.Tikhonov(weight=1e-3)(wide, fc.Data(data.values, 0.1, np.eye(8)))
    later = heat(wide.basis, parameters=wide.parameters, sensors=wide.sensors, times=0.1, steps=2)
    monkeypatch.setattr(tikhonov, "MOST_DENSE_ENTRIES", 5)
    with pytest.raises(fc.InputError, match="take fewer sensors"):
        fc.Tikhonov(weight=1e-3)(later, data)


def test_a_full_space_makes_no_dense_square_matrix():
    import tracemalloc

    problem = full_problem(level=6, m=10)
    n = problem.basis.N
    data = problem.simulate(np.ones(n), noise=0.01)
    tracemalloc.start()
    before = factorization_count()
    fc.Tikhonov(weight=1e-6)(problem, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.2 * 8 * n * n
    # The operator (by then factorized for the data) and the Gram matrix.
    assert factorization_count() - before <= 1


def test_tomography_and_heat():
    images = tomography(square(3, kind="quad"), parameters=6, angles=[0, 45, 90, 135], bins=6)
    for problem in (images, heat(square(3, kind="quad"), parameters=4, steps=10)):
        truth = problem.parameters.field(np.arange(1.0, problem.parameters.dimension + 1))
        data = problem.simulate(truth)
        found = fc.Tikhonov(weight=1e-14)(problem, data)
        np.testing.assert_allclose(found.parameter, truth, atol=1e-6)
        assert (found.state is None) == (problem is images)
        F, G = problem.forward_matrix(), problem.parameters.gram
        c = np.linalg.solve(F.T @ F + 0.1 * G, F.T @ data.values)
        strong = fc.Tikhonov(weight=0.1)(problem, data)
        np.testing.assert_allclose(strong.parameter, problem.parameters.field(c), atol=1e-9)
        assert strong.optimality < 1e-9


@pytest.mark.parametrize("make", [few_problem, lambda: full_problem(level=5)], ids=["few", "full"])
@pytest.mark.parametrize("kind", [None, "variances", "matrix"])
def test_the_discrepancy_principle_reaches_the_noise_level(make, kind):
    problem = make()
    x = problem.basis.doflocs
    exact = problem.observe(problem.solve(problem.parameters.field(problem.parameters.project(10 * x[0] * x[1])[0])))
    C = covariance_of(kind, 8)
    rng = np.random.default_rng(3)
    e = 0.02 * np.linalg.norm(exact) * rng.standard_normal(8)
    level = fc.Data(exact, 0.0, C).norm(e)
    data = fc.Data(exact + e, level, C)
    found = fc.Tikhonov(choose="discrepancy")(problem, data)
    assert data.norm(problem.observe(found.state) - data.values) == pytest.approx(level, rel=1e-8)


def test_the_discrepancy_principle_has_no_answer():
    problem = few_problem(k=3)
    y = np.random.default_rng(4).standard_normal(8)
    F = problem.forward_matrix()
    outside = np.linalg.norm(y - F @ np.linalg.lstsq(F, y, rcond=None)[0])
    for level in (0.0, 0.99 * outside):
        with pytest.raises(fc.InputError, match=rf"noise level above {outside:.4g}"):
            fc.Tikhonov(choose="discrepancy")(problem, fc.Data(y, level))
    with pytest.raises(fc.InputError, match=rf"not below the norm {np.linalg.norm(y):.4g}"):
        fc.Tikhonov(choose="discrepancy")(problem, fc.Data(y, 1.01 * np.linalg.norm(y)))
    fc.Tikhonov(choose="discrepancy")(problem, fc.Data(y, 1.01 * outside))


def noisy_line(noise, seed=0, k=12, m=25):
    problem = source(cells=60, parameters=k, sensors=np.linspace(0.03, 0.97, m))
    truth = problem.parameters.field(2.0 / np.arange(1, k + 1) ** 2)
    return problem, truth, problem.simulate(truth, noise=noise, seed=seed)


def brute_force(problem, data, weights):
    """Misfit, size of the parameter and trace of I - A for each weight, by normal equations."""
    F, G, y = problem.forward_matrix(), problem.parameters.gram, data.values
    rows = []
    for weight in weights:
        inverse = np.linalg.inv(F.T @ F + weight * G)
        c = inverse @ F.T @ y
        rows.append((np.linalg.norm(F @ c - y), np.sqrt(c @ G @ c), len(y) - np.trace(F @ inverse @ F.T)))
    return np.array(rows).T


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [0.001, 0.05])
def test_gcv_minimizes_its_score(noise, seed):
    problem, truth, data = noisy_line(noise, seed)
    ridge = tikhonov._ridge(problem, data)
    chosen = choose_weight(ridge, "gcv", noise_level=0.0, observations=25)
    weights = np.geomspace(1e-12, 1.0, 3001)
    misfit, _, trace = brute_force(problem, data, weights)
    score = (misfit / trace) ** 2
    reached, _, rest = brute_force(problem, data, [chosen])
    assert (reached / rest) ** 2 <= score.min() * (1.0 + 1e-6)
    found = fc.Tikhonov(choose="gcv")(problem, data)
    error = problem.parameters.norm(found.parameter - truth)
    best = min(problem.parameters.norm(fc.Tikhonov(weight=w)(problem, data).parameter - truth) for w in weights[::100])
    assert error < 5.0 * best


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [0.001, 0.05])
def test_the_lcurve_finds_the_corner(noise, seed):
    problem, truth, data = noisy_line(noise, seed)
    ridge = tikhonov._ridge(problem, data)
    chosen = choose_weight(ridge, "lcurve", noise_level=0.0, observations=25)
    logs = np.linspace(2 * np.log(ridge.sigma[-1]) - 5.0, 2 * np.log(ridge.sigma[0]) + 2.0, 4001)
    misfit, size, _ = brute_force(problem, data, np.exp(logs))
    x, y = np.log(misfit), np.log(size)
    dx, dy = np.gradient(x, logs), np.gradient(y, logs)
    curvature = (dx * np.gradient(dy, logs) - dy * np.gradient(dx, logs)) / (dx**2 + dy**2) ** 1.5
    at_choice = np.interp(np.log(chosen), logs, curvature)
    assert at_choice >= 0.95 * curvature[20:-20].max()
    found = fc.Tikhonov(choose="lcurve")(problem, data)
    zero = problem.parameters.norm(truth)
    assert problem.parameters.norm(found.parameter - truth) < 0.5 * zero


def test_sensors_that_see_nothing():
    # Sensors on the Dirichlet boundary read zero whatever the source is.
    problem = source(parameters=2, sensors=lambda basis: fc.BoundarySensors(basis, count=2))
    data = fc.Data([0.1, 0.2], 0.01)
    np.testing.assert_array_equal(fc.Tikhonov(weight=1.0)(problem, data).parameter, 0.0)
    for choose in ("gcv", "lcurve", "discrepancy"):
        with pytest.raises(fc.InputError, match="see no parameter"):
            fc.Tikhonov(choose=choose)(problem, data)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "either weight"),
        ({"weight": 1.0, "choose": "gcv"}, "either weight"),
        *(({"weight": value}, "weight") for value in (0.0, -1.0, np.nan)),
        ({"choose": "best"}, "discrepancy, gcv, lcurve"),
    ],
)
def test_bad_options(options, match):
    with pytest.raises(fc.InputError, match=match):
        fc.Tikhonov(**options)


def test_not_for_nonlinear_problems():
    with pytest.raises(fc.InputError, match="use GaussNewton"):
        fc.Tikhonov(weight=1.0)(coefficient(sensors=2), fc.Data([0.0, 0.0], 0.1))


@pytest.mark.parametrize("noise_level", [0.0, 0.1])
@pytest.mark.parametrize("choose", ["discrepancy", "gcv", "lcurve"])
def test_no_weight_for_zero_data(choose, noise_level):
    for problem in (few_problem(), full_problem()):
        with pytest.raises(fc.InputError, match="the data are zero, or the class cannot change them"):
            fc.Tikhonov(choose=choose)(problem, fc.Data(np.zeros(8), noise_level))
        # With a weight zero data are data like others.
        found = fc.Tikhonov(weight=1e-3)(problem, fc.Data(np.zeros(8), noise_level))
        assert not found.parameter.any()


def test_as_many_sensors_as_dofs():
    """Every node is a sensor: by the sparse optimality system, with no dense matrix of that size."""
    import tracemalloc

    problem = source("tri P1", 59, parameters=fc.FullSpace, sensors=lambda b: fc.MatrixSensors(identity(b.N)))
    n = problem.basis.N
    data = problem.simulate(np.ones(n), noise=0.01)
    tracemalloc.start()
    found = {weight: fc.Tikhonov(weight=weight)(problem, data) for weight in (1e-6, 1e-2)}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.2 * 8 * n * n
    for weight, candidate in found.items():
        start = fc.reduced_gradient_norm(problem, data, np.zeros(n), weight=weight)
        left = fc.reduced_gradient_norm(problem, data, candidate.parameter, weight=weight)
        assert left < 1e-8 * start
        assert candidate.optimality == pytest.approx(left, abs=1e-10 * start)
    with pytest.raises(fc.InputError, match=r"give weight="):
        fc.Tikhonov(choose="gcv")(problem, data)
