"""Forward maps that are a matrix or two functions: everything downstream, and functions that are not what they say."""

import numpy as np
import pytest
import zoo
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import aslinearoperator
from scipy.stats import binom

import femcert as fc

RULES = [fc.ResidualRadius(), fc.ExactRadius(), fc.Dominance(), fc.OperationalRadius(pde=0.0, bc=0.0)]
RNG = np.random.default_rng(5)
F = RNG.standard_normal((12, 5))
G = np.diag([1.0, 2.0, 0.5, 1.0, 4.0])


def gaussian_blur(m, n, width=0.08):
    s, t = np.linspace(0.0, 1.0, m)[:, None], np.linspace(0.0, 1.0, n)
    return np.exp(-((s - t) ** 2) / (2.0 * width**2)) / n


def smoothness(n):
    """``n ∑ (q_i - q_{i-1})² + ∑ q_i² / n``: about the squared H1 norm of a function with these values."""
    D = diags([np.full(n - 1, -1.0), np.ones(n - 1)], [0, 1], shape=(n - 1, n))
    return csr_matrix(n * D.T @ D + diags(np.full(n, 1.0 / n)))


def forms(matrix, **options):
    """The same map in all ways to give it."""
    operator = aslinearoperator(matrix)
    return {
        "dense": fc.ForwardMap(matrix, **options),
        "sparse": fc.ForwardMap(csr_matrix(matrix), **options),
        "functions": fc.ForwardMap((lambda q: matrix @ q, lambda w: matrix.T @ w), **options),
        "operator": fc.ForwardMap((operator.matvec, operator.rmatvec), **options),
    }


@pytest.mark.parametrize("how", ["dense", "sparse", "functions", "operator"])
def test_the_same_certificates_as_matrices(how):
    offset = np.linspace(0.0, 1.0, 12)
    options = {"offset": offset, "gram": G}
    posed = forms(F, **options)[how]
    expected = fc.MatrixProblem(operator=np.eye(12), load=F, observe=np.eye(12), **options)
    np.testing.assert_allclose(posed.forward_matrix(), F, rtol=0, atol=1e-15)
    truth = np.array([1.0, -0.5, 0.3, 0.2, -1.0])
    data = fc.Data(F @ truth + offset + 0.01 * RNG.standard_normal(12), 0.06)
    for solver in (fc.Tikhonov(weight=1e-2), fc.Tikhonov(choose="discrepancy")):
        ours, theirs = solver(posed, data), solver(expected, data)
        np.testing.assert_allclose(ours.parameter, theirs.parameter, rtol=0, atol=1e-8)
        assert ours.state is None
    for rule in RULES:
        found, other = (fc.certify(problem, data, ours, rule) for problem in (posed, expected))
        assert found.radius.value == pytest.approx(other.radius.value, rel=1e-8)
        assert found.contains(truth)
    assert fc.stability(posed).constant.value == pytest.approx(fc.stability(expected).constant.value, rel=1e-8)
    functional = np.array([1.0, 0.0, -1.0, 0.0, 0.0])
    found, other = (fc.evidence(problem, data).interval(functional) for problem in (posed, expected))
    np.testing.assert_allclose([x.value for x in found], [x.value for x in other], rtol=0, atol=1e-8)
    selection = fc.no_harm(
        posed, data, baseline=fc.Tikhonov(weight=10.0), learned=fc.Candidate(None, truth), rule=fc.ExactRadius()
    )
    assert selection.accepted


def test_coverage_on_a_ball_with_a_precision_matrix():
    """More parameters than data; the truth is on the boundary of the ball. Readings that were not made, too."""
    m, n, std, trials = 15, 60, 0.01, 300
    matrix, P = gaussian_blur(m, n), smoothness(n)
    t = np.linspace(0.0, 1.0, n)
    truth = np.where(np.abs(t - 0.45) < 0.25, 1.0 - np.abs(t - 0.45) / 0.25, 0.0)
    space = fc.CoordinateSpace(n, gram=diags(np.full(n, 1.0 / n))).within_ball(np.sqrt(truth @ P @ truth), norm=P)
    # The fifth reading is left out, and predicted.
    kept = np.arange(m) != 4
    problem = fc.ForwardMap(matrix[kept], parameters=space)
    west = np.where(t < 0.5, 2.0 / n, 0.0)
    asked = [west, fc.Prediction(matrix[4], std=std), fc.Prediction(matrix[4])]
    values = [west @ truth, None, matrix[4] @ truth]
    first = fc.evidence(problem, fc.Data.gaussian(matrix[kept] @ truth, std=std))
    rng, inside = np.random.default_rng(0), np.zeros(3, dtype=int)
    for _ in range(trials):
        readings = matrix @ truth + std * rng.standard_normal(m)
        evidence = first.with_data(first.data.with_values(readings[kept]))
        wanted = [readings[4] if value is None else value for value in values]
        inside += [evidence.interval(f).contains(v) for f, v in zip(asked, wanted, strict=True)]
        assert evidence.p_value > 1e-6
    assert np.all(inside >= binom.ppf(0.01 / 3, trials, 0.95))
    interval = first.interval(west)
    # Not more than the whole ball allows without data, and not much above the limit of all procedures.
    assert interval.half_length <= space.ball.radius * np.sqrt(west @ np.linalg.solve(P.toarray(), west))
    assert interval.limit.value <= interval.half_length <= 1.2 * interval.limit.value


def test_a_map_on_a_finite_element_class():
    """A matrix of another code on a basis of scikit-fem: fields, regions and pictures are known."""

    basis = zoo.unit_basis("line P1", 40)
    matrix = gaussian_blur(20, basis.N, 0.03)
    space = fc.FullSpace(basis).within_ball(8.0, norm="h1")
    problem = fc.ForwardMap(matrix, parameters=space)
    truth = np.sin(2.0 * np.pi * basis.doflocs[0])
    data = fc.Data.gaussian(matrix @ truth + 0.002 * np.random.default_rng(1).standard_normal(20), std=0.002)
    left = fc.Mean(basis, lambda x: x[0] < 0.5)
    assert fc.evidence(problem, data).interval(left).contains(left.value(space, truth))
    assert "a matrix, from 41 parameters to 20 data" in str(problem)


def test_what_functions_lose_is_counted():
    single = F.astype(np.float32)
    pair = (lambda q: single @ q.astype(np.float32), lambda w: single.T @ w.astype(np.float32))
    with pytest.raises(fc.InputError, match="give accuracy="):
        fc.ForwardMap(pair, size=5)
    problem = fc.ForwardMap(pair, size=5, accuracy=1e-6)
    q = np.array([0.3, -0.1, 0.7, 0.2, 0.9])
    exact = single.astype(float) @ q
    data = fc.Data(exact, 0.0)
    candidate = fc.Candidate(None, np.linalg.lstsq(problem.matrix, data.values, rcond=None)[0])
    certificate = fc.certify(problem, data, candidate, fc.ExactRadius())
    assert certificate.error(q) <= certificate.radius.value <= 1e-3
    # Entries may be off by the rounding of single precision, which `error` must cover.
    lost = np.linalg.norm(np.asarray(problem.matrix) - single.astype(float), 2)
    assert lost <= problem.error(None)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ((lambda q: F @ q, lambda w: 2.0 * F.T @ w), {"size": 5}, r"adjoint is not that of apply.*\(F x\) . w = "),
        ((lambda q: F @ q + 1.0, lambda w: F.T @ w), {"size": 5}, "apply is not linear"),
        ((lambda q: np.abs(F @ q), lambda w: F.T @ w), {"size": 5}, "apply is not linear"),
        ((lambda q: F @ q, lambda w: F.T @ w), {}, "give size=, gram= or parameters="),
        ((lambda q: F @ q, lambda w: w), {"size": 5}, r"what adjoint returns has shape \(12,\); expected \(5,\)"),
        ((lambda q: np.full(3, np.nan), lambda w: w), {"size": 3}, "what apply returns has"),
        (lambda q: q, {}, "the map is one function"),
        (np.ones(3), {}, "the map has shape"),
        (np.full((2, 2), np.inf), {}, "the map has"),
        (F, {"size": 4}, "size is 4, but the matrix has 5 columns"),
        (F, {"parameters": fc.CoordinateSpace(4)}, "parameters have 4 dofs, but the matrix has 5 columns"),
        (F, {"parameters": fc.CoordinateSpace(5), "gram": np.eye(5)}, "both parameters and gram came"),
        (F, {"offset": [1.0]}, r"offset has shape \(1,\)"),
        (F, {"accuracy": 0.0}, "accuracy is 0"),
    ],
)
def test_maps_that_are_refused(given, options, message):
    with pytest.raises(fc.InputError, match=message):
        fc.ForwardMap(given, **options)


def test_pylops():
    pylops = pytest.importorskip("pylops")
    operator = pylops.Smoothing1D(5, 40)
    problem = fc.ForwardMap((operator.matvec, operator.rmatvec), size=40)
    q = np.sin(np.linspace(0.0, 3.0, 40))
    np.testing.assert_allclose(problem.predict(None, q), operator @ q, atol=1e-14)


def test_linear_operators_come_as_they_are():
    given = aslinearoperator(F)
    for options in ({}, {"size": 5}, {"parameters": fc.CoordinateSpace(5, gram=G)}):
        np.testing.assert_allclose(fc.ForwardMap(given, **options).matrix, F, rtol=1e-12)
    with pytest.raises(fc.InputError, match="5 columns; expected 6"):
        fc.ForwardMap(given, parameters=fc.CoordinateSpace(6))
