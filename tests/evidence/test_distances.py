"""Distances from the truth: they hold, they are made of what a dense computation finds, and close to the best."""

from __future__ import annotations

from functools import cache
from importlib import import_module

import numpy as np
import pytest
from evidence_helpers import STD, data, fewest, form, matrix_problem, noisy, on_sphere, span_problem
from l_shape_truths import blobs, l_shape_problem, readings
from numpy.testing import assert_allclose
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import chdtri
from scipy.stats import chi2, ncx2, norm
from zoo import averages, source, square

import femcert as fc
from femcert.evidence.ridge import NU
from femcert.problem.chi_squares import exceeds, shifted_quantile, weighted_quantile

TRIALS = 400


def map_of(found):
    """W, from whitened data to dof vectors."""
    ridge = found._ridge
    return ridge._fields @ ridge.matrix


def dense_bias(problem, W, std):
    """``sup ‖(I - W T) q‖_Q`` over the ball, and where it is reached."""
    L, M = form(problem), problem.parameters.weight.toarray()
    rest = np.eye(len(L)) - W @ problem.forward_matrix() / std
    values, vectors = eigh(rest.T @ M @ rest, L)
    return problem.parameters.ball.radius * np.sqrt(values[-1]), problem.parameters.ball.radius * vectors[:, -1]


@pytest.mark.parametrize("count", [1, 2, 5, 40, 300])
@pytest.mark.parametrize("zeta", [0.3, 0.05, 1e-6])
def test_equal_weights_give_the_chi_square_quantile(count, zeta):
    assert_allclose(weighted_quantile(np.full(count, 2.5), zeta), 2.5 * chi2.isf(zeta, count), rtol=3e-9)


def test_pairs_of_weights_have_a_closed_form():
    weights = np.array([1.0, 0.3, 0.01, 1e-4, 3.0])
    for x in (0.1, 1.0, 20.0, 60.0):
        parts = [np.exp(-x / 2 / a) * np.prod([a / (a - b) for b in weights if b != a]) for a in weights]
        assert exceeds(np.repeat(weights, 2), x) == pytest.approx(sum(parts), rel=1e-9)


@pytest.mark.parametrize("spread", [0.0, 3.0, 12.0])
def test_weighted_quantiles_against_simulation(spread):
    rng, n = np.random.default_rng(0), 200_000
    weights = np.logspace(-spread, 0.0, 9)
    sums = (rng.standard_normal((n, 9)) ** 2) @ weights
    below = int(np.sum(sums <= weighted_quantile(weights, 0.05)))
    assert abs(below - 0.95 * n) <= 4.0 * np.sqrt(0.05 * 0.95 * n)
    assert weighted_quantile(np.append(weights, [0.0, -1e-18]), 0.05) == weighted_quantile(weights, 0.05)


def test_the_quantile_of_a_shifted_norm():
    for count, shift in ((3, 0.5), (12, 5.0), (30, 100.0)):
        found = shifted_quantile(count, shift, 0.05)
        assert found == pytest.approx(np.sqrt(ncx2.isf(0.05, count, shift**2)), rel=1e-8)
        assert found < np.sqrt(chi2.isf(0.05, count)) + shift


def image(problem, W, std):
    """Roots of the inner product and of the ball, and the error of the centre for a truth of the ball."""
    root = np.linalg.cholesky(problem.parameters.weight.toarray()).T
    lifted = np.linalg.inv(np.linalg.cholesky(form(problem))).T
    rest = W @ problem.forward_matrix() / std - np.eye(len(lifted))
    return root, problem.parameters.ball.radius * root @ rest @ lifted


def farthest(problem, W, std, e):
    """The largest distance of a truth of the ball from the centre, for one draw of the noise, by a secular equation."""
    root, B = image(problem, W, std)
    U, s, _ = np.linalg.svd(B)
    v = U.T @ (root @ W @ e)
    low, high = s[0] ** 2, s[0] ** 2 + s[0] * np.linalg.norm(v) + 1e-300
    for _ in range(200):
        nu = (low + high) / 2.0
        outside = np.sum((s * v[: len(s)] / (nu - s**2)) ** 2) > 1.0
        low, high = (nu, high) if outside else (low, nu)
    return float(np.sqrt(high + np.sum(v**2 / (1.0 - np.append(s**2, np.zeros(len(v) - len(s))) / high))))


def dense_length(problem, W, std, nu):
    """One bound for worst case and noise."""
    root, B = image(problem, W, std)
    radius = problem.parameters.ball.radius
    inverse = np.linalg.inv(np.eye(len(B)) - B @ B.T / (nu * radius**2))
    gram = (root @ W).T @ inverse @ (root @ W)
    return np.sqrt(nu * radius**2 + weighted_quantile(np.linalg.eigvalsh((gram + gram.T) / 2.0), 0.05))


@pytest.mark.parametrize("seed", range(3))
def test_one_bound_for_worst_cases_and_noise_holds_for_each_draw(seed):
    """Ascent over ball and model error from the noise never exceeds it."""
    problem, rng = matrix_problem(seed), np.random.default_rng(seed)
    E = rng.standard_normal((7, 2))
    found = fc.evidence(problem, data(problem, np.zeros(7)).with_model_error(matrix=E, size=0.05))
    W, (square, gram, _) = map_of(found), found._ridge._joint
    root, B = image(problem, W, STD)
    N = 0.05 * root @ W @ E / STD
    for e in rng.standard_normal((100, 7)):
        v, most = root @ W @ e, square + e @ gram @ e
        x, w = rng.standard_normal(B.shape[1]), rng.standard_normal(2)
        for _ in range(100):
            x = B.T @ (v + B @ x + N @ w)
            x /= np.linalg.norm(x)
            w = N.T @ (v + B @ x + N @ w)
            w /= np.linalg.norm(w)
        assert np.sum((v + B @ x + N @ w) ** 2) <= most
    noise = np.sqrt(weighted_quantile(np.linalg.eigvalsh((root @ W).T @ (root @ W)), 0.05))
    assert found._ridge.length(found.law) < found._ridge.bias + sum(found._ridge.others) + noise


@pytest.mark.parametrize("std", [0.01, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_the_length_is_that_of_a_dense_computation(seed, std):
    problem = matrix_problem(seed)
    found = fc.evidence(problem, data(problem, np.zeros(7), std))
    W, ridge = map_of(found), found._ridge
    bias, _ = dense_bias(problem, W, std)
    assert bias <= ridge.bias <= bias * (1.0 + 1e-3)
    gram = W.T @ problem.parameters.weight @ W
    quantile = np.sqrt(weighted_quantile(np.linalg.eigvalsh(gram), 0.05))
    # Less than the sum of worst case and noise, and no less than what noise and worst case together come to.
    assert ridge.length(found.law) <= ridge.bias + quantile * (1.0 + 1e-6)
    draws = np.random.default_rng(seed).standard_normal((400, 7))
    assert fewest(400, 0.95) <= sum(farthest(problem, W, std, e) <= ridge.length(found.law) for e in draws)
    assert ridge.length(found.law) <= 1.01 * min(
        dense_length(problem, W, std, nu) for nu in (bias / problem.parameters.ball.radius) ** 2 * np.array(NU)
    )
    # The centre is a ridge regression.
    mu, T, L = ridge.chosen[0] * ridge.chosen[1][0, 0], problem.forward_matrix() / std, form(problem)
    assert_allclose(W, np.linalg.solve(T.T @ T + mu * L, T.T), rtol=1e-7, atol=1e-9 * np.abs(W).max())
    # And the best one.
    totals = []
    for other in mu * np.geomspace(1e-2, 1e2, 41):
        V = np.linalg.solve(T.T @ T + other * L, T.T)
        noise = np.sqrt(weighted_quantile(np.linalg.eigvalsh(V.T @ problem.parameters.weight @ V), 0.05))
        totals.append(dense_bias(problem, V, std)[0] + noise)
    assert ridge.length(found.law) <= min(totals) * 1.01


@pytest.mark.parametrize("std", [0.02, 0.3])
@pytest.mark.parametrize("seed", range(2))
def test_the_worst_truth_of_the_ball_is_covered(seed, std):
    problem = matrix_problem(seed, centre=np.linspace(0.0, 1.0, 15))
    first = fc.evidence(problem, data(problem, np.zeros(7), std))
    truth = dense_bias(problem, map_of(first), std)[1] + problem.parameters.ball.centre
    upper, rng, covered, near = first.best_radius[1].value, np.random.default_rng(5), 0, 0
    for trial in range(TRIALS):
        y = noisy(problem, truth, trial, std)
        found = first.with_data(data(problem, y, std))
        distance = problem.parameters.norm(np.asarray(found.centre) - truth)
        near += distance <= upper
        # Of a candidate that was made from the data and the truth, too: one event for all of them.
        learned = truth + rng.choice([0.1, 1.0]) * (truth - np.asarray(found.centre))
        covered += problem.parameters.norm(learned - truth) <= found.radius(learned).value
    assert near >= fewest(TRIALS, 0.95, 4)
    assert found.best_radius[1].value == pytest.approx(upper, rel=1e-6)
    assert covered >= near


@pytest.mark.parametrize("std", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_lower_value_is_what_the_data_can_hide(seed, std):
    problem = matrix_problem(seed)
    T, L, radius, apart = problem.forward_matrix() / std, form(problem), problem.parameters.ball.radius, norm.ppf(0.95)
    lower, upper = fc.evidence(problem, data(problem, np.zeros(7), std)).best_radius
    assert (lower.side, upper.side) == ("lower", "upper")
    # Two quadratic constraints: the dual has no gap.
    duals = []
    for share in np.linspace(0.0, 1.0, 2001)[1:-1]:
        top = eigh(np.eye(15), share * T.T @ T / apart**2 + (1.0 - share) * L / radius**2, subset_by_index=[14, 14])
        duals.append(np.sqrt(top[0][0]))
    assert lower.value <= min(duals)
    assert lower.value == pytest.approx(min(duals), rel=3e-3)
    assert 1.0 <= upper.value / lower.value <= 2.0


def test_a_seminorm_bounds_all_but_constants():
    space = fc.FullSpace(square(2)).within_ball(1.5, norm="h1-seminorm")
    problem = source(square(2), parameters=space, sensors=averages(square(2), 9, radius=0.1))
    std = 1e-3
    first = fc.evidence(problem, data(problem, np.zeros(9), std))
    W, T, L = map_of(first), problem.forward_matrix() / std, space.ball_form.toarray()
    # Constants are reproduced, so that the bias is that on what is orthogonal to them in L.
    ones = np.ones(space.size)
    assert_allclose(W @ (T @ ones), ones, rtol=1e-6)
    rest, M = np.eye(len(L)) - W @ T, space.weight.toarray()
    V = np.linalg.svd(ones[None])[2][1:].T
    top, vectors = eigh(V.T @ rest.T @ M @ rest @ V, V.T @ L @ V)
    bias = 1.5 * np.sqrt(top[-1])
    assert bias <= first._ridge.bias <= 1.01 * bias
    truth, covered = 40.0 + 1.5 * V @ vectors[:, -1], 0
    for trial in range(200):
        found = first.with_data(data(problem, noisy(problem, truth, trial, std), std))
        covered += problem.parameters.norm(np.asarray(found.centre) - truth) <= found.radius(found.centre).value
    assert covered >= fewest(200, 0.95)
    assert first.best_radius[0].value > 0.0


def test_directions_that_nothing_sees_have_no_radius():
    basis = square(2)
    space = fc.FullSpace(basis).within_ball(1.5, norm="h1-seminorm")
    difference = np.zeros((1, basis.N))
    difference[0, [3, 7]] = 1.0, -1.0
    problem = fc.MatrixProblem(
        operator=np.eye(basis.N), load=np.eye(basis.N), observe=difference, parameters=space, gram=None
    )
    with pytest.raises(fc.UncertifiedError, match=r"determine|bounded"):
        fc.evidence(problem, data(problem, [0.3], 0.01)).best_radius  # noqa: B018


def test_model_errors_enlarge_the_radius_and_are_covered():
    problem, E = matrix_problem(0), np.random.default_rng(1).standard_normal((7, 2))
    made = data(problem, np.zeros(7)).with_model_error(matrix=E, size=0.5)
    first = fc.evidence(problem, made)
    alone = fc.evidence(problem, data(problem, np.zeros(7)))
    W, M = map_of(first), problem.parameters.weight.toarray()
    image = W @ (E / STD)
    assert first._ridge.others[0] == pytest.approx(0.5 * np.sqrt(eigh(image.T @ M @ image)[0][-1]), rel=1e-6)
    for one, other in zip(first.best_radius, alone.best_radius, strict=True):
        assert one.value > other.value
    worst, rng, covered = dense_bias(problem, W, STD)[1], np.random.default_rng(2), 0
    w = eigh(image.T @ M @ image)[1][:, -1] * 0.5
    for trial in range(TRIALS):
        sign = rng.choice([-1.0, 1.0])
        found = first.with_data(made.with_values(noisy(problem, worst, trial) + sign * E @ w))
        covered += problem.parameters.norm(np.asarray(found.centre) - worst) <= found.radius(found.centre).value
    assert covered >= fewest(TRIALS, 0.95)


def test_on_a_span_the_radius_is_that_of_the_ellipsoid():
    problem = span_problem()
    space, y = problem.parameters, np.random.default_rng(1).standard_normal(9)
    found = fc.evidence(problem, data(problem, y, 0.3))
    R = np.linalg.cholesky(space.gram).T
    A = problem.forward_matrix() @ np.linalg.inv(R) / 0.3
    x = np.linalg.lstsq(A, y / 0.3, rcond=None)[0]
    candidate = space.field([1.0, -0.5, 0.3, 0.2])
    p, level = R @ [1.0, -0.5, 0.3, 0.2], np.sqrt(chdtri(4, 0.05))
    bound = {"type": "ineq", "fun": lambda z: level**2 - np.sum((A @ (z - x)) ** 2)}
    rng = np.random.default_rng(0)
    best = max(
        -minimize(lambda z: -np.linalg.norm(z - p), x + 0.1 * rng.standard_normal(4), constraints=bound, tol=1e-12).fun
        for _ in range(6)
    )
    assert found.radius(candidate).value == pytest.approx(best, rel=1e-6)
    assert found.best_radius[1].value == pytest.approx(level / np.linalg.svd(A)[1][-1], rel=1e-9)
    assert found.best_radius[0].value == pytest.approx(norm.ppf(0.95) / np.linalg.svd(A)[1][-1], rel=1e-5)
    # An outlier does not make it smaller, and the misfit is tested apart.
    outlier = y.copy()
    outlier[3] += 30.0
    other = found.with_data(data(problem, outlier, 0.3))
    assert other.best_radius[1].value == pytest.approx(found.best_radius[1].value)
    assert other.p_value < 1e-6


@pytest.mark.parametrize("tau", [0.1, 1.0])
def test_a_remainder_is_covered_in_the_worst_direction(tau):
    problem, std = span_problem(tau), 0.3
    space, first = problem.parameters, fc.evidence(problem, data(problem, np.zeros(9), std))
    T, W, B = problem.forward.apply(np.eye(12)) / std, space.weight.toarray(), space.matrix
    Z = np.linalg.svd((W @ B).T)[2][4:].T
    Z = Z @ np.linalg.inv(np.linalg.cholesky(Z.T @ W @ Z)).T
    inverse = B @ np.linalg.pinv(T @ B)
    image = inverse @ T @ Z
    w = tau * Z @ eigh(image.T @ W @ image)[1][:, -1]
    truth, covered = B @ np.array([1.0, 2.0, -1.0, 0.5]) + w, 0
    for trial in range(TRIALS):
        found = first.with_data(data(problem, noisy(problem, truth, trial, std), std))
        centre = np.asarray(found.centre)
        covered += space.norm(centre - truth) <= found.radius(centre).value
    assert covered >= fewest(TRIALS, 0.95, 2)
    lower, upper = first.best_radius
    assert tau <= lower.value <= upper.value
    orthonormal = B @ np.linalg.inv(np.linalg.cholesky(B.T @ W @ B)).T
    assert lower.value >= 0.999 * norm.ppf(0.95) / np.linalg.svd(T @ orthonormal)[1][-1]


@pytest.mark.parametrize("seed", range(3))
def test_for_a_noise_level_the_radius_holds_for_sure(seed):
    problem, rng = matrix_problem(seed), np.random.default_rng(seed)
    space, L = problem.parameters, form(problem)
    for _ in range(25):
        direction, e = rng.standard_normal(15), rng.standard_normal(7)
        truth = direction * space.ball.radius / space.ball_norm(direction)
        y = problem.forward_matrix() @ truth + 0.1 * e / np.linalg.norm(e)
        found = fc.evidence(problem, fc.Data(y, 0.1))
        lower, upper = found.best_radius
        assert space.norm(np.asarray(found.centre) - truth) <= upper.value
        exact = fc.certify(problem, fc.Data(y, 0.1), fc.Candidate(None, direction), fc.ExactRadius()).radius.value
        assert found.radius(direction).value <= exact * (1.0 + 1e-9)
        assert found.radius(direction).value >= space.norm(direction - truth)
        assert (upper.probability, lower.side) == (1.0, "lower")
        assert lower.value <= upper.value
    # Half the distance of two points of the intersection, by a general optimizer.
    F, rho = problem.forward_matrix(), space.ball.radius

    def inside(z):
        pair = z.reshape(2, 15)
        misfits, sizes = np.sum((pair @ F.T - y) ** 2, axis=1), np.sum((pair @ L) * pair, axis=1)
        return np.concatenate([0.01 - misfits, rho**2 - sizes])

    start = np.concatenate([truth, 0.9 * truth])
    diameter = -minimize(
        lambda z: -np.linalg.norm(z[:15] - z[15:]), start, constraints={"type": "ineq", "fun": inside}
    ).fun
    assert lower.value <= 0.5 * max(diameter, 2.0 * lower.value)
    assert lower.value >= 0.5 * 0.5 * diameter
    empty = fc.evidence(problem, fc.Data(100.0 * y, 1e-3))
    with pytest.raises(fc.InconsistentError):
        empty.radius(truth)


def test_what_is_not_known_is_an_estimate():
    problem = matrix_problem(0, m=12)
    y = noisy(problem, np.ones(15) * 0.1, 0)
    unknown = fc.evidence(problem, fc.Data.gaussian(y, std="unknown")).best_radius
    exact = fc.evidence(problem, data(problem, y)).best_radius
    assert [bound.side for bound in unknown] == ["estimate", "upper"]
    assert unknown[1].value > exact[1].value
    relative = fc.evidence(problem, fc.Data.gaussian(y, relative=0.02, std=STD)).best_radius
    assert [bound.side for bound in relative] == ["estimate", "estimate"]
    about = fc.evidence(problem, fc.Data.gaussian(y, relative=0.02, std=STD, reference=0.5)).best_radius
    assert [bound.side for bound in about] == ["estimate", "upper"]
    repeats = fc.Data.repeated(y + STD * np.random.default_rng(0).standard_normal((30, 12)), std=STD)
    assert fc.evidence(problem, repeats).best_radius[1].side == "upper"


@pytest.mark.parametrize(("law", "trials"), [("unknown", 40), ("relative", 150), ("repeats", 150)])
def test_coverage_where_the_deviation_is_estimated(law, trials):
    problem = matrix_problem(1, m=12)
    truth = on_sphere(problem, np.random.default_rng(0).standard_normal(15))
    rng, exact, covered, first = np.random.default_rng(1), problem.forward_matrix() @ truth, 0, None
    for _ in range(trials):
        e = rng.standard_normal((20, 12))
        if law == "unknown":
            made = fc.Data.gaussian(exact + 0.1 * e[0], std="unknown")
        elif law == "relative":
            scale = np.hypot(0.05 * exact, 0.02)
            made = fc.Data.gaussian(exact + scale * e[0], relative=0.05, std=0.02, reference=1.0)
        else:
            made = fc.Data.repeated(exact + 0.1 * e, std=0.1)
        first = first or fc.evidence(problem, made)
        found = first.with_data(made)
        covered += problem.parameters.norm(np.asarray(found.centre) - truth) <= found.radius(found.centre).value
    assert covered >= fewest(trials, 0.95, 3)


def test_bounds_leave_less_to_hide():
    problem = matrix_problem(0)
    space = problem.parameters.within_bounds(lower=0.0)
    bounded = fc.MatrixProblem(operator=np.eye(15), load=np.eye(15), observe=problem.forward_matrix(), parameters=space)
    free, within = (fc.evidence(each, data(each, np.zeros(7))).best_radius for each in (problem, bounded))
    assert 0.0 < within[0].value < free[0].value
    assert within[1].value == pytest.approx(free[1].value, rel=1e-9)


@pytest.mark.parametrize("combined", [False, True])
def test_weighed_pencils_against_a_dense_eigenproblem(combined, monkeypatch):
    problem, rng = matrix_problem(2), np.random.default_rng(0)
    made = data(problem, np.zeros(7))
    turn = np.linalg.qr(rng.standard_normal((7, 4)))[0].T * 3.0 if combined else None
    root = rng.standard_normal((4 if combined else 7,) * 2)
    S, T = root @ root.T + np.eye(len(root)), problem.forward_matrix() / STD
    seen = T if turn is None else turn @ T
    exact = eigh(seen.T @ S @ seen + 0.7 * form(problem), problem.parameters.weight.toarray())[0][0]
    pencils = fc.evidence(problem, made)._pencils
    least, x = pencils.weighed(S, turn).least(0.7)
    assert exact * (1.0 - 1e-3) <= least <= exact
    assert np.linalg.norm(pencils.weighed(S, turn).observe(x[:, None])) ** 2 == pytest.approx(x @ seen.T @ S @ seen @ x)
    if not combined:
        # With fewer combinations of the data than there are, still from below.
        monkeypatch.setattr(import_module("femcert.stability.pencil"), "MOST_MODES", 5)
        fewer = fc.evidence(problem, made)._pencils.weighed(S).least(0.7)[0]
        assert 0.0 < fewer <= exact


def test_missing_readings_are_as_if_there_were_no_sensors():
    problem, y = matrix_problem(0), noisy(matrix_problem(0), np.ones(15) * 0.1, 0)
    y[[1, 4]] = np.nan
    kept = ~np.isnan(y)
    rows, space = problem.forward_matrix()[kept], problem.parameters
    less = fc.MatrixProblem(operator=np.eye(15), load=np.eye(15), observe=rows, parameters=space)
    one, other = fc.evidence(problem, data(problem, y)), fc.evidence(less, data(less, y[kept]))
    assert_allclose(np.asarray(one.centre), np.asarray(other.centre), rtol=1e-6, atol=1e-9)
    assert_allclose([b.value for b in one.best_radius], [b.value for b in other.best_radius], rtol=1e-6)


@cache
def l_shape():
    """The source on the L-shape in a ball that contains most of the blobs."""
    return l_shape_problem(lambda b: fc.FullSpace(b).within_ball(1.8, norm="h1"), refined=3)


def l_shape_data(problem, count, noise):
    """Blobs, and readings of each."""
    truths, std = blobs(problem.basis, count, 0), noise * 0.0125
    exact = readings(problem, truths)
    return truths, exact + std * np.random.default_rng(0).standard_normal(exact.shape), std


def test_the_centre_is_a_baseline():
    problem = l_shape()
    _, (y,), std = l_shape_data(problem, 1, 0.05)
    found = fc.evidence(problem, data(problem, y, std))
    centre = found.centre
    assert isinstance(centre, fc.Candidate)
    assert_allclose(centre.state, problem.solve(centre.parameter))
    assert np.asarray(centre).shape == (problem.basis.N,)
    assert found.radius(centre).value == found.radius(centre.parameter).value == found.best_radius[1].value
    selection = fc.no_harm(problem, data(problem, y, std), baseline=centre, learned=centre, rule=fc.ExactRadius())
    assert selection.accepted


@pytest.mark.parametrize(("noise", "most"), [(0.01, 1.15), (0.05, 1.35)])
def test_blobs_on_the_l_shape_are_covered_by_radii_close_to_the_best(noise, most):
    problem = l_shape()
    truths, values, std = l_shape_data(problem, 100, noise)
    first, covered, errors = fc.evidence(problem, data(problem, np.zeros(33), std)), 0, []
    lower, upper = first.best_radius
    for truth, y in zip(truths, values, strict=True):
        found = first.with_data(data(problem, y, std))
        errors.append(problem.parameters.norm(np.asarray(found.centre) - truth))
        covered += errors[-1] <= found.radius(found.centre).value
    assert covered == 100
    assert upper.value <= most * lower.value
    # The error of a typical truth is below that of the worst one.
    assert upper.value >= 1.5 * np.median(errors)


def test_a_sensor_on_the_boundary_does_not_make_the_radius_small():
    # Its reading is zero for every truth, so that a multiplier near zero costs no noise; rounding hides the bias there.
    x = np.linspace(0.0, 0.9, 5)
    space = fc.FullSpace(square(4)).within_ball(3.0, norm="h1", length=0.7)
    problem = source(square(4), parameters=space, sensors=np.array([(a, b) for a in x for b in x]))
    found = fc.evidence(problem, fc.Data.gaussian(np.zeros(25), std=1e-3))
    lower, upper = found.best_radius
    assert 0.5 < lower.value <= upper.value < 3.0 + 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_more_data_than_coordinates(seed):
    """The order of the data is nothing to the radius, and it is not made of what rounding leaves of zeros.

    ``T L^-1 T'`` is singular: for small multipliers the map to the centre is large where all that it gives cancels.
    """
    rng = np.random.default_rng(seed)
    F, P = 100.0 * rng.standard_normal((9, 5)), csr_matrix(np.diag([1.0, 2.0, 3.0, 2.0, 1.0]))
    space, truth = fc.CoordinateSpace(5).within_ball(4.0, norm=P), np.array([1.0, -0.5, 0.2, 0.4, -0.1])
    values, found = F @ truth + rng.standard_normal(9), []
    for order in (np.arange(9), rng.permutation(9), rng.permutation(9)):
        problem = fc.ForwardMap(F[order], parameters=space)
        evidence = fc.evidence(problem, fc.Data.gaussian(values[order], std=1.0))
        found.append(evidence.radius(evidence.centre).value)
    assert found == pytest.approx(found[:1] * 3, rel=1e-5)
    # Not less than what the noise alone moves the centre by in one direction, but for what a centre may shrink.
    assert found[0] >= 1.9 / np.linalg.svd(F, compute_uv=False)[-1]
