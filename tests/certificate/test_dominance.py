"""Dominance: no consistent truth is farther from the learned candidate than from the baseline."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
import zoo
from scipy.stats import chi2

import femcert as fc


def source(k=4, m=9, ball=None):
    space = fc.EigenmodeSpace(zoo.square(3), k)
    if ball is not None:
        space = space.within_ball(ball, norm="h1")
    return zoo.source(zoo.square(3), parameters=space, sensors=m, dirichlet=0.2)


def observed(problem, truth, level, seed, *, size=1.0, covariance=None):
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(problem.observation_count)
    noise *= size * level / np.linalg.norm(noise) if level else 0.0
    root = 1.0 if covariance is None else np.sqrt(covariance)
    return fc.Data(problem.observe(problem.solve(truth)) + noise * root, level, covariance)


def pair(problem, truth, rng, scale):
    """A baseline and a learned candidate, both off the truth."""
    space, c = problem.parameters, problem.parameters.project(truth)[0]
    made = [c + s * rng.standard_normal(c.size) for s in (scale, scale * rng.choice([0.2, 1.0]))]
    return [
        fc.Candidate.from_coefficients(problem, x, name=n) for x, n in zip(made, ("baseline", "learned"), strict=True)
    ], space


def select(problem, data, baseline, learned, rule=None, **options):
    rule = rule or fc.Dominance()
    return fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=rule, **options)


def difference(space, baseline, learned, truth):
    return space.norm(learned.parameter - truth) ** 2 - space.norm(baseline.parameter - truth) ** 2


def consistent_truths(problem, data, rng, count):
    F = data.whiten(problem.forward_matrix())
    y = data.whiten(data.values - problem.offset)
    centre = np.linalg.lstsq(F, y, rcond=None)[0]
    slack = np.sqrt(max(data.noise_level**2 - np.linalg.norm(F @ centre - y) ** 2, 0.0))
    _, s, Vt = np.linalg.svd(F, full_matrices=False)
    w = rng.standard_normal((count, len(s)))
    w /= np.linalg.norm(w, axis=1)[:, None]
    return centre + (slack / s * w) @ Vt


@pytest.mark.parametrize("outside", [0.0, 0.3])
@pytest.mark.parametrize("covariance", [None, np.linspace(0.5, 2.0, 9)], ids=["plain", "weighted"])
def test_the_margin_is_the_worst_case(outside, covariance):
    problem = source()
    rng = np.random.default_rng(4)
    for seed in range(10):
        truth = problem.parameters.field(rng.standard_normal(4))
        data = observed(problem, truth, 0.02, seed, covariance=covariance)
        (baseline, learned), space = pair(problem, truth, rng, 0.3)
        q = learned.parameter + outside * np.sin(8.0 * problem.basis.doflocs[0])
        learned = fc.Candidate(problem.solve(q), q)
        found = select(problem, data, baseline, learned).comparison
        sampled = [
            difference(space, baseline, learned, space.field(c)) for c in consistent_truths(problem, data, rng, 400)
        ]
        assert max(sampled) <= found.margin * (1.0 + 1e-9) + 1e-10
        # The field that is reported explains the data, and is where the margin is reached.
        assert data.norm(problem.observe(problem.solve(found.truth)) - data.values) <= 0.02 * (1.0 + 1e-8)
        assert difference(space, baseline, learned, found.truth) == pytest.approx(found.margin, rel=1e-7, abs=1e-9)
        assert found.probability is None


def test_accepted_is_never_worse_and_often_accepted():
    problem = source()
    rng = np.random.default_rng(0)
    accepted = better = 0
    for seed in range(300):
        truth = problem.parameters.field(rng.standard_normal(4))
        data = observed(problem, truth, 0.002, seed, size=rng.choice([0.0, 0.7, 1.0]))
        (baseline, learned), space = pair(problem, truth, rng, 0.5)
        errors = [space.norm(c.parameter - truth) for c in (baseline, learned)]
        found = select(problem, data, baseline, learned)
        better += errors[1] <= errors[0]
        if found.accepted:
            accepted += 1
            assert errors[1] <= errors[0]
        assert found.accepted == (found.comparison.margin <= 0.0)
        assert ("no farther from every consistent truth" in found.reason) == found.accepted
    assert accepted >= 0.3 * better


def test_without_noise_it_knows_the_truth():
    problem = source()
    rng = np.random.default_rng(1)
    for seed in range(40):
        truth = problem.parameters.field(rng.standard_normal(4))
        data = observed(problem, truth, 0.0, seed)
        (baseline, learned), space = pair(problem, truth, rng, 0.5)
        errors = [space.norm(c.parameter - truth) for c in (baseline, learned)]
        assert select(problem, data, baseline, learned).accepted == (errors[1] <= errors[0])


def test_a_smaller_radius_is_not_enough():
    # The exact radius prefers the candidate in the middle of the consistent set, whatever the truth is.
    problem = source()
    space, rng = problem.parameters, np.random.default_rng(7)
    contradicted = 0
    for seed in range(60):
        truth = space.field(rng.standard_normal(4))
        data = observed(problem, truth, 0.01, seed)
        (baseline, learned), _ = pair(problem, truth, rng, 0.05)
        by_radius = select(problem, data, baseline, learned, fc.ExactRadius())
        by_dominance = select(problem, data, baseline, learned)
        worse = space.norm(learned.parameter - truth) > space.norm(baseline.parameter - truth)
        contradicted += by_radius.accepted and worse
        assert not (by_dominance.accepted and worse)
        if by_dominance.accepted:
            assert by_radius.learned.radius.value <= by_radius.baseline.radius.value * (1.0 + 1e-9)
    assert contradicted > 0


def test_a_ball_accepts_more():
    plain, ball = source(), source(ball=8.0)
    space, rng = ball.parameters, np.random.default_rng(3)
    L = space.form("h1")
    counts = [0, 0]
    for seed in range(60):
        truth = space.field(rng.standard_normal(4))
        truth = truth * 7.0 / np.sqrt(truth @ (L @ truth))
        data = observed(ball, truth, 0.05, seed)
        (baseline, learned), _ = pair(plain, truth, rng, 1.0)
        found = [select(problem, data, baseline, learned) for problem in (plain, ball)]
        assert found[1].comparison.margin <= found[0].comparison.margin + 1e-9
        worse = space.norm(learned.parameter - truth) > space.norm(baseline.parameter - truth)
        for i in range(2):
            assert not (found[i].accepted and worse)
            counts[i] += found[i].accepted
    assert counts[1] > counts[0]


def test_the_tolerance_is_a_distance():
    problem = source()
    rng = np.random.default_rng(2)
    truth = problem.parameters.field(rng.standard_normal(4))
    data = observed(problem, truth, 0.01, 0)
    (learned, baseline), space = pair(problem, truth, rng, 0.3)
    margin = select(problem, data, baseline, learned).comparison.margin
    assert margin > 0.0
    assert not select(problem, data, baseline, learned, tolerance=0.999 * np.sqrt(margin)).accepted
    loose = select(problem, data, baseline, learned, tolerance=1.001 * np.sqrt(margin))
    assert loose.accepted
    errors = [space.norm(c.parameter - truth) for c in (baseline, learned)]
    assert errors[1] <= errors[0] + loose.tolerance


def test_the_gaussian_test_by_hand_and_its_level():
    problem = source()
    F, space, rng = problem.forward_matrix(), problem.parameters, np.random.default_rng(5)
    variance = np.linspace(0.5, 2.0, 9) * 1e-6
    truth = space.field([1.0, -0.5, 0.3, 0.2])
    c = space.project(truth)[0]
    # Candidates that do not depend on the noise, the learned one a little worse: acceptance is an error.
    baseline = fc.Candidate.from_coefficients(problem, c + np.array([0.02, 0.0, 0.0, 0.0]))
    learned = fc.Candidate.from_coefficients(problem, c - np.array([0.0, 0.0205, 0.0, 0.0]))
    assert space.norm(learned.parameter - truth) > space.norm(baseline.parameter - truth)
    d = space.root @ (space.project(learned.parameter)[0] - space.project(baseline.parameter)[0])
    clean, accepted, trials = problem.observe(problem.solve(truth)), 0, 200
    for zeta in (0.05, 0.3):
        accepted = 0
        rule = fc.Dominance(zeta=zeta)
        for _ in range(trials):
            values = clean + np.sqrt(variance) * rng.standard_normal(9)
            data = fc.Data(values, 6.0, variance)
            found = select(problem, data, baseline, learned, rule)
            accepted += found.accepted
        # At most zeta, up to four standard deviations of the count.
        assert accepted / trials <= zeta + 4.0 * np.sqrt(zeta / trials)
        assert found.comparison.probability == 1.0 - zeta
        assert "confidence" in found.reason
    A = data.whiten(F) @ np.linalg.inv(space.root)
    x = np.linalg.lstsq(A, data.whiten(data.values - problem.offset), rcond=None)[0]
    width = np.sqrt(chi2.isf(0.3, 4)) * np.linalg.norm(np.linalg.pinv(A).T @ d)
    sizes = [space.norm(candidate.parameter) ** 2 for candidate in (learned, baseline)]
    assert found.comparison.margin == pytest.approx(sizes[0] - sizes[1] - 2.0 * d @ x + 2.0 * width, rel=1e-8)


def test_a_candidate_outside_of_the_class_is_charged_for_it():
    problem = source()
    truth = problem.parameters.field([1.0, 0.3, -0.2, 0.1])
    data = observed(problem, truth, 1e-4, 0)
    baseline = fc.Tikhonov(weight=1e-6)(problem, data)
    q = truth + np.sin(25.0 * problem.basis.doflocs[0]) * np.sin(23.0 * problem.basis.doflocs[1])
    found = select(problem, data, baseline, fc.Candidate(problem.solve(truth), q))
    assert not found.accepted
    assert found.learned.contains(truth)
    assert found.comparison.margin > 0.0


def test_refused():
    problem = source()
    data = fc.Data(np.zeros(9), 1.0)
    zero = fc.Candidate.from_coefficients(problem, np.zeros(4))
    with pytest.raises(fc.InputError, match="zeta"):
        fc.Dominance(zeta=1.5)
    found = select(problem, data, zero, zero, fc.Dominance(zeta=0.1))
    assert found.status == "undecided"
    assert "covariance" in found.reason
    with pytest.raises(fc.InputError, match="discrete"):
        fc.Dominance(zeta=0.1, guarantee="continuous")
    wide = source(k=12)
    zero = fc.Candidate.from_coefficients(wide, np.zeros(12))
    found = select(wide, data, zero, zero)
    assert found.status == "undecided"
    assert "12 coordinates" in found.reason


def test_the_gaussian_test_is_refused_where_the_data_do_not_determine_the_class():
    # What no sensor sees has no deviation, but nobody knows it: the ball must not be forgotten.
    basis = zoo.unit_basis("line P1", 40)
    space = fc.SineSpace(basis, 12).within_ball(3.0, norm="l2")
    problem = zoo.source(basis, parameters=space, sensors=5)
    F, rng = problem.forward_matrix(), np.random.default_rng(0)
    q = space.field(rng.standard_normal(12))
    c = space.project(q * 2.5 / space.norm(q))[0]
    sd = 0.01 * np.linalg.norm(F @ c) / np.sqrt(5.0)
    data = fc.Data(F @ c + sd * rng.standard_normal(5), 5.0, np.full(5, sd**2))
    baseline, learned = (fc.Candidate.from_coefficients(problem, x) for x in (c, np.linalg.pinv(F) @ F @ c))
    for rule in (fc.Dominance(zeta=0.05), fc.Dominance()):
        assert not select(problem, data, baseline, learned, rule).accepted
    assert "determine the class" in select(problem, data, baseline, learned, fc.Dominance(zeta=0.05)).reason
    curved = zoo.coefficient(basis, parameters=space, sensors=5)
    found = select(curved, data, baseline, learned, fc.Dominance(zeta=0.05))
    assert "linear problems" in found.reason


def test_the_state_that_is_handed_out_is_that_of_the_parameter():
    problem = source()
    truth = problem.parameters.field([1.0, 0.3, -0.2, 0.1])
    data = observed(problem, truth, 1e-5, 0)
    baseline = fc.Candidate.from_coefficients(problem, [0.5, 0.3, -0.2, 0.1])
    nonsense = fc.Candidate(7.0 * problem.solve(truth) + 1.0, truth)
    for rule in (fc.Dominance(), fc.ExactRadius()):
        found = select(problem, data, baseline, nonsense, rule)
        assert found.accepted
        assert found.state == pytest.approx(problem.solve(truth))
    judged = select(problem, data, baseline, nonsense, fc.ResidualRadius())
    assert not judged.accepted


def test_a_large_class_is_refused(monkeypatch):
    monkeypatch.setattr(import_module("femcert.evidence.feasible"), "MOST_COORDINATES", 3)
    problem = source(ball=8.0)
    data = fc.Data(np.zeros(9), 1.0)
    zero = fc.Candidate.from_coefficients(problem, np.zeros(4))
    found = select(problem, data, zero, zero)
    assert not found.accepted
    assert "not made for 4 coordinates" in found.reason
