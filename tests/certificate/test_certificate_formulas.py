"""eta, R_delta, R_op, the certified level, the stopping rule, coverage and sharpness, by hand."""

import dataclasses

import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st

import femcert as fc
from femcert.residual import evaluate

RULES = [
    (fc.ResidualRadius(), (1.0, 1.0, 0.0)),
    (fc.OperationalRadius(), (1.0, 1.0, 0.0)),
    (fc.OperationalRadius(pde=0.25, bc=3.0, optimality=0.5), (0.25, 3.0, 0.5)),
    (fc.OperationalRadius(pde=0.0, bc=0.0, optimality=0.0), (0.0, 0.0, 0.0)),
]

# Large enough that the class explains random data: else nothing is certified.
LEVEL = 3.75


def line(k=4, m=9, **options):
    return zoo.source("line P1", parameters=k, sensors=m, **options)


def arbitrary(problem, seed=0, optimality=0.125):
    rng = np.random.default_rng(seed)
    u = problem.solve(problem.parameters.field(rng.standard_normal(problem.parameters.dimension)))
    return fc.Candidate(u + 0.1 * rng.standard_normal(u.size), rng.standard_normal(u.size), optimality)


@pytest.mark.parametrize(("rule", "weights"), RULES)
@pytest.mark.parametrize("covariance", [None, np.linspace(0.5, 2.0, 9)], ids=["plain", "weighted"])
def test_the_radius_by_hand(rule, weights, covariance):
    problem = line()
    data = fc.Data(np.random.default_rng(1).standard_normal(9), LEVEL, covariance)
    candidate = arbitrary(problem)
    found = fc.certify(problem, data, candidate, dataclasses.replace(rule, covered=False))
    parts = evaluate(problem, data, candidate)
    a_pde, a_bc, a_opt = weights
    eta = parts.data.value + a_pde * parts.pde.value + a_bc * parts.bc.value + a_opt * 0.125
    sigma = np.sqrt(
        np.linalg.eigvalsh(
            np.linalg.solve(
                problem.parameters.gram,
                problem.forward_matrix().T
                @ np.diag(1.0 / (np.ones(9) if covariance is None else covariance))
                @ problem.forward_matrix(),
            )
        )[0]
    )
    assert found.total == pytest.approx(eta, rel=1e-14)
    assert found.radius.value == pytest.approx((eta + LEVEL) / sigma, rel=1e-8)
    assert found.noise_level == LEVEL
    assert found.name == "learned"
    assert found.residuals == parts
    assert type(rule).__name__ == found.radius.source
    # It is called a bound exactly if it is no smaller than the bound that needs no state.
    c, remainder = problem.parameters.project(candidate.parameter)
    misfit = data.norm(problem.forward_matrix() @ c - data.values)
    proven = (misfit + LEVEL) / sigma + problem.parameters.norm(remainder)
    assert abs(proven / found.radius.value - 1.0) > 1e-3
    covered = proven < found.radius.value
    assert (found.radius.side, found.scope) == (("upper", "discrete") if covered else ("estimate", "estimate"))


@pytest.mark.parametrize(("rule", "weights"), RULES)
def test_the_covered_radius_by_hand(rule, weights):
    # Residuals are those of the projected parameter, and its distance from the class is added.
    problem = line()
    data = fc.Data(np.random.default_rng(1).standard_normal(9), LEVEL)
    candidate = arbitrary(problem)
    c, remainder = problem.parameters.project(candidate.parameter)
    inside = fc.Candidate(candidate.state, problem.parameters.field(c), candidate.optimality)
    assert rule.covered
    found = fc.certify(problem, data, candidate, rule)
    within = fc.certify(problem, data, inside, dataclasses.replace(rule, covered=False))
    outside = problem.parameters.norm(remainder)
    assert outside > 0.1
    assert found.total == pytest.approx(within.total, rel=1e-12)
    radius = fc.stability(problem).radius(within.total + LEVEL) + outside
    proven = fc.stability(problem).radius(data.norm(problem.forward_matrix() @ c - data.values) + LEVEL) + outside
    covered = proven <= radius
    assert found.radius.value == pytest.approx(radius, rel=1e-8)
    assert found.radius.side == ("upper" if covered else "estimate")
    assert found.residuals.admissibility.value == pytest.approx(outside)
    # In the class there is nothing to add.
    assert fc.certify(problem, data, inside, rule).radius.value == pytest.approx(within.radius.value, rel=1e-12)


def test_an_exponent_below_one():
    problem = line()
    given = dataclasses.replace(fc.stability(problem), exponent=0.5, constant=fc.Bound(7.0, "upper", "by hand"))
    data = fc.Data(np.zeros(9), 0.25)
    found = fc.certify(problem, data, arbitrary(problem), fc.ResidualRadius(stability=given, covered=False))
    assert found.radius.value == pytest.approx(7.0 * np.sqrt(found.total + 0.25), rel=1e-14)
    assert found.stability is given


def test_optimality_must_be_reported_where_it_is_weighed():
    problem = line()
    data = fc.Data(np.zeros(9), 0.1)
    silent = arbitrary(problem, optimality=None)
    with pytest.raises(fc.UncertifiedError, match=r"reports none; give Candidate\(\.\.\., optimality=\.\.\.\)"):
        fc.certify(problem, data, silent, fc.OperationalRadius(optimality=0.1))
    found = fc.certify(problem, data, silent, fc.OperationalRadius())
    assert not found.residuals.reported
    assert found.residuals.optimality.source.startswith("gradient of the data misfit")


def test_an_overflowing_radius_is_no_radius():
    problem = line()
    huge = dataclasses.replace(fc.stability(problem), constant=fc.Bound(np.inf, "upper", "nothing known"))
    with pytest.raises(fc.UncertifiedError, match="is inf"):
        fc.certify(problem, fc.Data(np.zeros(9), 0.1), arbitrary(problem), fc.ResidualRadius(stability=huge))


@settings(deadline=None, max_examples=25)
@given(st.floats(0.0, 1e6), st.sampled_from(RULES), st.integers(0, 5))
def test_certified_level_and_stopping_rule_agree(level, ruled, seed):
    rule, _ = ruled
    problem, data = SHARED
    candidate = arbitrary(problem, seed)
    found = fc.certify(problem, data, candidate, rule)
    stop = fc.StoppingRule(problem, data, rule, level)
    assert found.certified_at(level) == (found.total <= level) == stop(candidate)
    # The tolerance itself still certifies, a hair below does not.
    assert fc.StoppingRule(problem, data, rule, found.total)(candidate)
    assert found.certified_at(found.total)
    below = float(np.nextafter(found.total, 0.0))
    assert not fc.StoppingRule(problem, data, rule, below)(candidate)
    assert not found.certified_at(below)


SHARED = (line(), fc.Data(np.linspace(-1.0, 1.0, 9), LEVEL))


def test_the_stopping_rule_needs_no_stability():
    # Ten unknowns and three sensors: no radius, but a training loop can still stop.
    problem = line(k=8, m=3)
    candidate = fc.Candidate.from_coefficients(problem, np.ones(8))
    stop = fc.StoppingRule(problem, fc.Data(problem.observe(candidate.state), 0.0), fc.ResidualRadius(), 1e-6)
    assert stop(candidate)
    with pytest.raises(fc.InputError, match="C_stab is infinite"):
        fc.certify(problem, stop.data, candidate, fc.ResidualRadius())


def test_error_coverage_and_sharpness():
    problem, data = SHARED
    candidate = arbitrary(problem)
    found = fc.certify(problem, data, candidate, fc.ResidualRadius())
    truth = problem.parameters.field([1.0, 0.0, -1.0, 0.5])
    M = problem.parameters.weight.toarray()
    d = candidate.parameter - truth
    assert found.error(truth) == pytest.approx(np.sqrt(d @ M @ d), rel=1e-12)
    assert found.sharpness(truth) == pytest.approx(found.radius.value / np.sqrt(d @ M @ d), rel=1e-12)
    assert found.sharpness(candidate.parameter) == np.inf
    assert found.contains(candidate.parameter)
    direction = problem.parameters.field([1.0, 0.0, 0.0, 0.0])
    for factor in (1.0 - 1e-9, 1.0 + 1e-9):
        edge = candidate.parameter + factor * found.radius.value * direction
        assert found.contains(edge) == (factor < 1.0)
    with pytest.raises(fc.InputError, match=r"shape \(3,\)"):
        found.contains(np.zeros(3))


def test_a_given_stability_is_used_for_all_candidates():
    problem = zoo.coefficient("line P1", parameters=(fc.SineSpace, 3), sensors=8)
    truth = problem.parameters.field([0.3, -0.2, 0.1])
    data = problem.simulate(truth, noise=0.01, seed=1)
    at_truth = fc.stability(problem, at=truth)
    other = fc.Candidate.from_coefficients(problem, [0.0, 0.1, 0.0])
    fixed = fc.certify(problem, data, other, fc.ResidualRadius(stability=at_truth))
    own = fc.certify(problem, data, other, fc.ResidualRadius())
    assert fixed.stability is at_truth
    assert fixed.radius.value == pytest.approx(at_truth.constant.value * (fixed.total + data.noise_level), rel=1e-14)
    assert own.stability.sigma_min == pytest.approx(fc.stability(problem, at=other.parameter).sigma_min)
    assert own.stability.sigma_min != pytest.approx(at_truth.sigma_min, rel=1e-3)
    assert {fixed.radius.side, own.radius.side} == {"estimate"}
    assert fc.ResidualRadius(stability=at_truth).to_dict()["stability"] == "given"
