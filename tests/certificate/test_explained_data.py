"""An upper radius takes for granted that the class explains the data; every rule checks that it can."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import zoo
from scipy.optimize import minimize_scalar

import femcert as fc
from femcert.stability import Modulus

RULES = {
    "residual": fc.ResidualRadius(),
    "operational": fc.OperationalRadius(pde=0.1, bc=0.1),
    "certified": fc.OperationalRadius(pde="certified", bc="certified", pde_norm="equilibrated"),
    "stochastic": fc.StochasticRadius(points=50),
    "exact": fc.ExactRadius(),
    "exact, continuous": fc.ExactRadius(guarantee="continuous"),
    "guaranteed": fc.GuaranteedRadius(),
    "dominance": fc.Dominance(),
}


@pytest.fixture(scope="module")
def problem():
    points = np.random.default_rng(0).uniform(0.2, 0.8, (2, 12))
    return zoo.source(zoo.square(3, 2), parameters=2, sensors=zoo.discs(points, radius=0.1))


def measured(problem, seed, *, claimed):
    """Data with noise whose norm is said to be `claimed` times what it is."""
    truth = problem.parameters.field([1.0, 0.5])
    clean = problem.observe(problem.solve(truth))
    noise = 0.05 * np.abs(clean).max() * np.random.default_rng(seed).standard_normal(clean.size)
    return fc.Data(clean + noise, claimed * float(np.linalg.norm(noise)))


@pytest.mark.parametrize("name", RULES)
def test_a_noise_level_that_is_too_small_is_noticed_by_every_rule(problem, name):
    candidate = fc.Candidate.from_coefficients(problem, [1.0, 0.5])
    for seed in range(2):
        data = measured(problem, seed, claimed=0.3)
        with pytest.raises(fc.InconsistentError) as found:
            fc.certify(problem, data, candidate, RULES[name])
        assert data.noise_level < found.value.level <= data.noise_level / 0.3
        selection = fc.no_harm(problem, data, baseline=candidate, learned=candidate, rule=RULES[name])
        assert not selection.accepted
        assert "explains the data" in selection.reason
        certificate = fc.certify(problem, measured(problem, seed, claimed=1.0), candidate, RULES[name])
        assert certificate.radius.side == "upper"


@pytest.mark.parametrize("name", ["guaranteed", "exact, continuous", "residual"])
def test_a_rule_looks_at_the_data_that_it_is_prepared_for(problem, name):
    good, bad = measured(problem, 0, claimed=1.0), measured(problem, 0, claimed=0.3)
    RULES[name].prepare(problem, good)
    with pytest.raises(fc.InconsistentError):
        RULES[name].prepare(problem, bad)


def test_a_constant_that_is_given_does_not_switch_the_check_off(problem):
    data = measured(problem, 0, claimed=0.3)
    candidate = fc.Candidate.from_coefficients(problem, [1.0, 0.5])
    for rule, guarantee in ((fc.ResidualRadius, "discrete"), (fc.GuaranteedRadius, "continuous")):
        constant = fc.stability(problem, data=data, guarantee=guarantee)
        with pytest.raises(fc.InconsistentError):
            fc.certify(problem, data, candidate, rule(stability=constant))


# On a ball.


def on_ball(refined, radius, norm="h1"):
    points = np.random.default_rng(0).uniform(0.2, 0.8, (2, 7))
    space = fc.FullSpace(zoo.square(refined)).within_ball(radius, norm=norm)
    return zoo.source(zoo.square(refined), parameters=space, sensors=zoo.discs(points, radius=0.1))


def least_misfit(problem, data):
    """The same number from the dual problem in the space of the data."""
    space = problem.parameters
    F = data.whiten(problem.forward_matrix())
    L = space.form(space.ball.norm).toarray()
    y = data.whiten(data.values - problem.offset)
    if space.ball.norm == "h1-seminorm":
        # Constants are free: one value is set to zero, and what they do to the data is projected out.
        seen = F.sum(axis=1) / np.linalg.norm(F.sum(axis=1))
        F, L = F[:, 1:], L[1:, 1:]
        F, y = F - np.outer(seen, seen @ F), y - seen * (seen @ y)
    G = F @ np.linalg.solve(L, F.T)

    def dual(log):
        lam = np.exp(log)
        return -(y @ np.linalg.solve(np.eye(len(y)) + G / lam, y) - lam * space.ball.radius**2)

    best = minimize_scalar(dual, bounds=(-60.0, 10.0), method="bounded", options={"xatol": 1e-10})
    return np.sqrt(max(-best.fun, 0.0))


@pytest.mark.parametrize("norm", ["l2", "h1", "h1-seminorm", "h2"])
@pytest.mark.parametrize("factor", [0.2, 0.9])
def test_the_least_misfit_on_a_ball(norm, factor):
    problem = on_ball(4, 1.0, norm)
    field = problem.parameters.basis.project(lambda x: np.sin(3.0 * x[0]) + x[1])
    size = np.sqrt(field @ (problem.parameters.form(norm) @ field))
    values = problem.observe(problem.solve(field / (factor * size)))
    values = values + 0.01 * np.abs(values).max() * np.random.default_rng(1).standard_normal(7)
    data = fc.Data(values, 1e-9, covariance=np.linspace(1.0, 2.0, 7))
    expected = least_misfit(problem, data)
    found = Modulus(problem, data=data).least_misfit(data.values - problem.offset, 1.0, 1e-9)
    assert found <= max(expected * (1.0 + 1e-6), 1e-9)
    assert found >= 0.9 * expected


@pytest.mark.parametrize("rule", [fc.ExactRadius(), fc.ResidualRadius()], ids=["exact", "residual"])
def test_a_ball_that_is_too_small_in_a_large_class(rule):
    """With 4,225 coordinates, where the consistent set itself is not made."""
    wide, narrow = on_ball(6, 3.0), on_ball(6, 0.3)
    truth = wide.parameters.basis.project(lambda x: 1.0 + np.cos(2.0 * x[0]))
    data = wide.simulate(truth, noise=0.01)
    data = fc.Data(data.values, 2.0 * data.noise_level)
    candidate = fc.Candidate(wide.solve(truth), truth)
    assert fc.certify(wide, data, candidate, rule).radius.side == "upper"
    with pytest.raises(fc.InconsistentError, match="explains the data"):
        fc.certify(narrow, data, candidate, rule)
    given = dataclasses.replace(rule, stability=fc.stability(narrow, data=data))
    with pytest.raises(fc.InconsistentError, match="explains the data"):
        fc.certify(narrow, data, candidate, given)


def test_a_baseline_that_notices_it_first_does_not_hide_what_is_wrong(problem):
    data = measured(problem, 0, claimed=0.3)
    learned = fc.Candidate.from_coefficients(problem, [1.0, 0.5])
    with pytest.raises(fc.InconsistentError, match="explains the data"):
        fc.no_harm(problem, data, baseline=fc.Tikhonov(choose="discrepancy"), learned=learned, rule=fc.ResidualRadius())
