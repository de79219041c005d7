"""What each rule compares, for candidates inside of the class whose states are solved: the decisions in closed form.

How often that takes the nearer candidate is measured in ``tests/benchmarks/what_rules_compare.py``.
"""

import numpy as np
import pytest
import zoo

import femcert as fc


def source(k=4):
    return zoo.source("line P1", 32, parameters=k, sensors=lambda basis: zoo.averages(basis, 9, radius=0.05))


def heat():
    return zoo.heat("line P1", 32, parameters=4, sensors=9, times=0.01, steps=20)


def tomography():
    return zoo.tomography(zoo.square(3), parameters=4, bins=5)


PROBLEMS = {"source": source, "heat": heat, "tomography": tomography}


def draws(problem, count, noise=0.2):
    """Data with two candidates each, near the truth and near each other."""
    rng, space = np.random.default_rng(5), problem.parameters
    for seed in range(count):
        c = rng.standard_normal(space.dimension)
        data = problem.simulate(space.field(c), noise=noise, seed=seed, oracle=True)
        near = [c + 0.3 * rng.standard_normal(len(c)) for _ in range(2)]
        yield data, c, [
            fc.Candidate.from_coefficients(problem, x, optimality=size, name=name)
            for name, x, size in zip(("baseline", "learned"), near, rng.uniform(0.0, 0.01, 2), strict=True)
        ]


def misfit(problem, data, candidate):
    values = problem.forward_matrix() @ problem.parameters.project(candidate.parameter)[0]
    return np.linalg.norm(values - data.values)


@pytest.mark.parametrize("tolerance", [0.0, 0.5])
@pytest.mark.parametrize("name", PROBLEMS)
def test_residual_radius_is_a_contest_of_misfits(name, tolerance):
    problem, decisions = PROBLEMS[name](), []
    C = fc.stability(problem).constant.value
    for data, _, (baseline, learned) in draws(problem, 24):
        found = fc.no_harm(
            problem, data, baseline=baseline, learned=learned, rule=fc.ResidualRadius(), tolerance=tolerance
        )
        ours, theirs = (misfit(problem, data, c) for c in (learned, baseline))
        assert found.learned.radius.value == pytest.approx(C * (ours + data.noise_level), rel=1e-6)
        assert found.accepted == (C * ours <= C * theirs + tolerance)
        decisions.append(found.accepted)
    assert 0 < sum(decisions) < 24


def test_least_squares_wins_every_contest_whether_it_is_nearer_or_not():
    problem, worse = source(), 0
    F, space = problem.forward_matrix(), problem.parameters
    for data, c, _ in draws(problem, 24):
        answer = np.linalg.lstsq(F, data.values, rcond=None)[0]
        learned = fc.Candidate.from_coefficients(problem, answer)
        for rule in (fc.ResidualRadius(), fc.ExactRadius()):
            found = fc.no_harm(problem, data, baseline=fc.Tikhonov(choose="gcv"), learned=learned, rule=rule)
            assert found.accepted
        worse += found.learned.error(space.field(c)) > found.baseline.error(space.field(c))
    assert worse >= 6


def test_operational_radius_adds_weighted_gradient_norms():
    problem, rule = source(), fc.OperationalRadius(optimality=0.1)
    by_misfit = []
    for data, _, (baseline, learned) in draws(problem, 24, noise=0.02):
        learned = fc.Candidate(learned.state, learned.parameter, 30.0 * learned.optimality)
        found = fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=rule)
        ours, theirs = (misfit(problem, data, c) + 0.1 * c.optimality for c in (learned, baseline))
        assert found.accepted == (ours <= theirs)
        by_misfit.append(found.accepted == (misfit(problem, data, learned) <= misfit(problem, data, baseline)))
    assert not all(by_misfit)


@pytest.mark.parametrize("rule", [fc.StochasticRadius(points=200), fc.GuaranteedRadius()])
def test_others_add_what_they_know_of_the_physics(rule):
    """Sampled or guaranteed, it is not zero for a solved state, and counts as the misfit does."""
    problem = source()
    for data, _, (baseline, learned) in draws(problem, 6):
        found = fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=rule)
        ours, theirs = (
            misfit(problem, data, candidate) + certificate.residuals.pde.value
            for candidate, certificate in ((learned, found.learned), (baseline, found.baseline))
        )
        assert min(found.learned.residuals.pde.value, found.baseline.residuals.pde.value) > 0.0
        assert found.accepted == (ours <= theirs)


def test_exact_radius_compares_distances_from_the_farthest_consistent_parameter():
    """With one coordinate these are an interval about least squares: who is nearer to its middle is accepted."""
    problem = source(k=1)
    F, decisions = problem.forward_matrix()[:, 0], []
    for data, _, (baseline, learned) in draws(problem, 24):
        found = fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=fc.ExactRadius())
        middle = F @ data.values / (F @ F)
        rest = data.values - middle * F
        half = np.sqrt(max(data.noise_level**2 - rest @ rest, 0.0)) / np.linalg.norm(F)
        ours, theirs = (problem.parameters.project(c.parameter)[0][0] for c in (learned, baseline))
        unit = problem.parameters.root[0, 0]
        assert found.learned.radius.value == pytest.approx(unit * (abs(ours - middle) + half), rel=1e-6)
        assert found.accepted == (abs(ours - middle) <= abs(theirs - middle))
        decisions.append(found.accepted)
    assert 0 < sum(decisions) < 24


def test_dominance_compares_distances_from_every_consistent_parameter():
    """With one coordinate: the learned candidate is nearer to both ends of the interval."""
    problem = source(k=1)
    F, decisions = problem.forward_matrix()[:, 0], []
    for data, c, (baseline, learned) in draws(problem, 40):
        found = fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=fc.Dominance())
        middle = F @ data.values / (F @ F)
        rest = data.values - middle * F
        half = np.sqrt(max(data.noise_level**2 - rest @ rest, 0.0)) / np.linalg.norm(F)
        ours, theirs = (problem.parameters.project(c.parameter)[0][0] for c in (learned, baseline))
        assert found.accepted == all(abs(ours - end) <= abs(theirs - end) for end in (middle - half, middle + half))
        assert not found.accepted or abs(ours - c[0]) <= abs(theirs - c[0])
        decisions.append(found.accepted)
    assert 0 < sum(decisions) < 40
