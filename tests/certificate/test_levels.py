"""Levels of probabilistic rules, for candidates that are made from the data that judge them, as all candidates are.

Random is the noise (for `StochasticRadius`, the points); everything else is fixed before. A level zeta is refuted if
the lower end of the Clopper-Pearson interval of the failures, at 99 %, lies above it.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, chi2, norm
from skfem import Basis, ElementLineP1, ElementQuad1, MeshLine, MeshQuad
from zoo import judge_of

import femcert as fc

ZETA = 0.05


def at_least(failures, trials, confidence=0.99):
    """Lower end of the one-sided Clopper-Pearson interval."""
    return float(beta.ppf(1.0 - confidence, failures, trials - failures + 1)) if failures else 0.0


# The adversary of the normal quantile: least squares against a classical baseline, where noise is all there is.


def tomograph():
    basis = Basis(MeshQuad.init_tensor(*[np.linspace(0.0, 1.0, 17)] * 2), ElementQuad1())
    angles = np.arange(18) * 10.0
    return fc.Tomography(basis, parameters=fc.CosineSpace(basis, 64), angles=angles, bins=20)


def least_squares(problem, data):
    F = data.whiten(problem.forward_matrix())
    c = np.linalg.lstsq(F, data.whiten(data.values - problem.offset), rcond=None)[0]
    return fc.Candidate.from_coefficients(problem, c)


@pytest.mark.parametrize("choose", ["discrepancy", "gcv"])
def test_least_squares_of_noise_is_not_accepted(choose):
    problem, trials = tomograph(), 20
    space, m = problem.parameters, problem.observation_count
    rng = np.random.default_rng(0)
    harmful = wrong = 0
    for _ in range(trials):
        truth = space.field(rng.standard_normal(64) / np.arange(1.0, 65.0))
        clean = problem.observe(problem.solve(truth))
        deviation = np.linalg.norm(clean) / np.sqrt(m)
        values = clean + deviation * rng.standard_normal(m)
        data = fc.Data(values, float(np.sqrt(chi2.ppf(0.95, m))), covariance=np.full(m, deviation**2))
        baseline = fc.Tikhonov(choose=choose)(problem, data)
        learned = least_squares(problem, data)
        found = fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=fc.Dominance(zeta=ZETA))
        worse = space.norm(learned.parameter - truth) > space.norm(baseline.parameter - truth)
        harmful += found.accepted and worse
        # With the quantile of one direction, which is right if that is fixed before the data, it would be, too often.
        A, y, root = whitened(problem, data)
        xl, xb = (root @ space.project(c.parameter)[0] for c in (learned, baseline))
        pinv = np.linalg.pinv(A)
        width = norm.ppf(1.0 - ZETA) * np.linalg.norm(pinv.T @ (xl - xb))
        wrong += worse and (xl - xb) @ (xl + xb) - 2.0 * (xl - xb) @ (pinv @ y) + 2.0 * width <= 0.0
    assert harmful == 0
    assert at_least(wrong, trials) > ZETA


# Random problems.


def random_problem(rng):
    n = int(rng.integers(20, 40))
    basis = Basis(MeshLine(np.sort(np.append(rng.uniform(0.0, 1.0, n - 1), [0.0, 1.0]))), ElementLineP1())
    k = int(rng.choice([1, 2, 4, 8, 12]))
    m = k + int(rng.integers(0, 25))
    sensors = fc.PointSensors(basis, (np.arange(m) + rng.uniform(0.05, 0.95, m)) / m)
    space = [fc.SineSpace, fc.CosineSpace, fc.EigenmodeSpace][rng.integers(3)](basis, k)
    # With a strong reaction all directions are seen nearly alike, and noise has many of them to hide in.
    given = {"dirichlet": float(rng.choice([0.0, 0.3])), "reaction": float(rng.choice([0.0, 3e4]))}
    problem = fc.EllipticSource(basis, parameters=space, sensors=sensors, **given)
    determined = np.linalg.cond(problem.forward_matrix()) < 1e9
    return problem if determined else random_problem(rng)


def measured(problem, rng):
    """A truth of the class and data with Gaussian noise of known covariance, often much of it."""
    k, m = problem.parameters.dimension, problem.observation_count
    c = rng.standard_normal(k) / np.arange(1.0, k + 1.0) ** rng.choice([0.0, 1.0, 2.0])
    clean = problem.forward_matrix() @ c
    variances = (rng.choice([0.03, 0.3, 1.0, 3.0]) * np.abs(clean).max()) ** 2 * rng.uniform(0.5, 2.0, m)
    values = problem.offset + clean + np.sqrt(variances) * rng.standard_normal(m)
    return c, fc.Data(values, float(np.sqrt(chi2.ppf(1.0 - 1e-9, m))), covariance=variances)


def whitened(problem, data):
    F = data.whiten(problem.forward_matrix())
    y = data.whiten(data.values - problem.offset)
    root = problem.parameters.root
    A = np.linalg.solve(root.T, F.T).T
    return A, y, root


def network(problem, data, rng):
    """A network with one hidden layer, its last layer trained on simulated data of random truths."""
    F, k = problem.forward_matrix(), problem.parameters.dimension
    samples = rng.standard_normal((200, k)) / np.arange(1.0, k + 1.0)
    noise = np.sqrt(data.covariance) * rng.standard_normal((200, len(F)))
    inputs = data.whiten((samples @ F.T + noise).T).T
    scale = 1.0 / (1.0 + np.abs(inputs).max())
    W, b = rng.standard_normal((inputs.shape[1], 24)), rng.standard_normal(24)
    hidden = np.tanh(scale * inputs @ W + b)
    last = np.linalg.solve(hidden.T @ hidden + 1e-3 * np.eye(24), hidden.T @ samples)
    return np.tanh(scale * data.whiten(data.values - problem.offset) @ W + b) @ last


def candidates(problem, data, rng):
    """Coefficients of a baseline and of a learned candidate; all of them know the data."""
    A, y, root = whitened(problem, data)
    U, s, Vt = np.linalg.svd(A, full_matrices=False)

    def tikhonov(weight):
        return Vt.T @ (s / (s**2 + weight) * (U.T @ y))

    def gcv():
        weights = s[0] ** 2 * np.geomspace(1e-12, 1.0, 40)
        filters = weights[:, None] / (s**2 + weights[:, None])
        misfit = np.sum((filters * (U.T @ y)) ** 2, axis=1) + y @ y - np.sum((U.T @ y) ** 2)
        return tikhonov(weights[np.argmin(misfit / (len(y) - len(s) + filters.sum(axis=1)) ** 2)])

    exact = tikhonov(0.0)
    # Along the direction in which noise is largest, further to where the noise has already moved the data.
    noisiest = exact + rng.uniform(0.0, 2.0) * (Vt[-1] @ exact) * Vt[-1]
    shrunk = exact - rng.uniform(0.0, 1.0) * (Vt[-1] @ exact) * Vt[-1]
    made = [exact, noisiest, shrunk, gcv(), tikhonov(s[-1] ** 2), tikhonov(s[0] * s[-1]), np.zeros_like(exact)]
    x = [np.linalg.solve(root, value) for value in made] + [network(problem, data, rng)]
    first, second = rng.choice(len(x), 2, replace=False)
    # Every other time least squares, which follows the noise, against something smoother.
    return (x[first], x[second]) if rng.uniform() < 0.5 else (x[rng.integers(2, len(x))], x[0])


def test_the_level_of_dominance_holds_for_candidates_that_know_the_data():
    rng, trials = np.random.default_rng(1), 2000
    harmful = accepted = 0
    for trial in range(trials):
        if trial % 20 == 0:
            problem = random_problem(rng)
        truth, data = measured(problem, rng)
        pair = [fc.Candidate.from_coefficients(problem, c) for c in candidates(problem, data, rng)]
        rule = fc.Dominance(zeta=ZETA)
        comparison = rule.prepare(problem, data).compare(*pair)
        field, norm_of = problem.parameters.field(truth), problem.parameters.norm
        base, learned = (norm_of(c.parameter - field) for c in pair)
        accepted += comparison.accepts(0.0)
        harmful += comparison.accepts(0.0) and learned > base
    assert at_least(harmful, trials) <= ZETA
    assert accepted > 50


def test_the_confidence_ellipsoid_has_its_level():
    """Over all directions at once it is met by chance zeta, neither more nor less."""
    from femcert.evidence.consistent import ConsistentSet

    rng, trials, missed = np.random.default_rng(2), 2000, 0
    for _ in range(trials):
        k = int(rng.integers(1, 6))
        A = rng.standard_normal((k + 3, k))
        x = rng.standard_normal(k)
        noise = rng.standard_normal(k + 3)
        made = ConsistentSet(A, A @ x + noise, 1e3)
        # The direction in which the truth lies farthest outside.
        step = np.linalg.pinv(A) @ noise
        d = -A.T @ (A @ step)
        missed += d @ x > made.confidence_support(d[None], 0.1)[0][0]
    assert at_least(missed, trials) <= 0.1
    assert 1.0 - at_least(trials - missed, trials) >= 0.1


def test_a_trained_operator_and_its_own_noise():
    """A network that was trained on simulated measurements, judged on new ones, against two baselines."""
    rng = np.random.default_rng(3)
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, 33)), ElementLineP1())
    sensors = fc.PointSensors(basis, np.linspace(0.1, 0.9, 9))
    problem = fc.EllipticSource(basis, parameters=fc.SineSpace(basis, 5), sensors=sensors)
    F = problem.forward_matrix()
    deviation = 0.1 * np.abs(F[:, 0]).max()

    def sampler(count, generator):
        return generator.standard_normal((count, 5)) / np.arange(1.0, 6.0) ** 2

    operator = fc.learn.NeuralOperator().fit(problem, sampler=sampler, count=200, noise=0.3, steps=80, quiet=True)
    harmful = trials = 0
    for _ in range(60):
        truth = problem.parameters.field(sampler(1, rng)[0])
        values = problem.observe(problem.solve(truth)) + deviation * rng.standard_normal(9)
        data = fc.Data(values, float(np.sqrt(chi2.ppf(1.0 - 1e-9, 9))), covariance=np.full(9, deviation**2))
        learned = operator(problem, data)
        for choose in ("gcv", "lcurve"):
            baseline = fc.Tikhonov(choose=choose)(problem, data)
            found = fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=fc.Dominance(zeta=ZETA))
            errors = [problem.parameters.norm(c.parameter - truth) for c in (learned, baseline)]
            harmful += found.accepted and errors[0] > errors[1]
            trials += 1
    assert at_least(harmful, trials) <= ZETA


def test_the_sampled_physics_residual_has_its_level():
    """Random points are drawn after the candidate; the bound is below the mean square with probability zeta at most."""
    rng, trials, missed, zeta = np.random.default_rng(4), 1000, 0, 0.2
    for trial in range(trials):
        if trial % 50 == 0:
            problem = random_problem(rng)
        _, data = measured(problem, rng)
        c = candidates(problem, data, rng)[1]
        solved = fc.Candidate.from_coefficients(problem, c)
        state = solved.state.copy()
        state[problem.free] *= 1.0 + 0.1 * rng.standard_normal(len(problem.free))
        candidate = fc.Candidate(state, solved.parameter)
        rule = fc.StochasticRadius(points=20, zeta=zeta, seed=trial, bound="betting")
        bound = judge_of(rule, problem).physics(candidate, None)
        assert (bound.side, bound.probability) == ("upper", 1.0 - zeta)
        field = np.zeros(problem.basis.N)
        residual = problem.residual(state, solved.parameter)[problem.free]
        M = problem.residual_mass
        field[problem.free] = np.linalg.solve(M.toarray(), residual)
        whole = field[problem.free] @ (M @ field[problem.free])
        missed += bound.value < np.sqrt(whole / problem.basis.dx.sum())
    assert at_least(missed, trials) <= zeta
