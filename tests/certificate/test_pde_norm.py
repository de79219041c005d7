"""Rules with a dual norm: certificates, selections and their records, stopping, and what is refused."""


import numpy as np
import pytest
import zoo
from skfem import BilinearForm
from skfem.helpers import dot, grad

import femcert as fc
from femcert.residual import evaluate

METHODS = ["rms", "equilibrated", "enriched", "riesz", "indicator"]
RULES = [fc.ResidualRadius, fc.OperationalRadius]


def source(**options):
    return zoo.source(zoo.square(2), parameters=3, sensors=8, **options)


def heat(scheme="crank-nicolson"):
    return zoo.heat("line P1", 12, sensors=8, times=[0.02, 0.04], scheme=scheme)


def tomography():
    return zoo.tomography("quad Q1", angles=[0.0, 40.0, 80.0], bins=5)


def coefficient():
    return zoo.coefficient(zoo.square(2), parameters=(fc.SineSpace, 2), sensors=8)


def own():
    form = BilinearForm(lambda u, v, w: dot(grad(u), grad(v)) + 3.0 * u * v)
    return zoo.own_linear(zoo.square(2), operator=form, sensors=8, definite=True)


def setting(problem, noise=0.01, seed=1):
    """Noisy data of a truth, and candidates: solved, and with a disturbed state."""
    rng = np.random.default_rng(seed)
    c = 0.5 * rng.standard_normal(problem.parameters.dimension)
    truth = problem.parameters.field(c)
    exact = problem.observe(problem.solve(truth))
    e = rng.standard_normal(exact.size)
    delta = noise * np.linalg.norm(exact)
    data = fc.Data(exact + delta * e / np.linalg.norm(e), delta)
    solved = fc.Candidate.from_coefficients(problem, c, optimality=0.0)
    if solved.state is None:
        return data, solved, solved
    wrong = solved.state + 0.05 * np.abs(solved.state).max() * rng.standard_normal(solved.state.shape)
    return data, solved, fc.Candidate(wrong, solved.parameter, 0.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("norm", ["energy", "h1"])
def test_the_radius_is_the_formula_with_these_components(rule, method, norm):
    problem = source()
    data, _, wrong = setting(problem)
    found = fc.certify(problem, data, wrong, rule(pde_norm=method, norm=norm))
    residuals = evaluate(problem, data, wrong, pde_norm=method, norm=norm)
    assert found.residuals == residuals
    assert found.total == residuals.data.value + residuals.pde.value + residuals.bc.value
    C = found.stability.constant.value
    assert found.radius.value >= C * (found.total + data.noise_level) * (1 - 1e-12)
    if method != "rms":
        assert found.residuals.bc.side == "upper"


POSSIBLE = [(make, method) for make in (source, tomography, coefficient) for method in METHODS]
POSSIBLE += [(heat, "rms"), (heat, "equilibrated"), (own, "rms"), (own, "riesz")]


@pytest.mark.parametrize(("make", "method"), POSSIBLE)
def test_never_below_the_radius_without_physics(make, method):
    problem = make()
    data, *candidates = setting(problem)
    for candidate in candidates:
        without = fc.certify(problem, data, candidate, fc.OperationalRadius(pde=0.0, bc=0.0, pde_norm=method))
        found = fc.certify(problem, data, candidate, fc.OperationalRadius(pde_norm=method))
        assert found.radius.value >= without.radius.value
        assert np.isfinite(found.radius.value)


@pytest.mark.parametrize("make", [heat, tomography, coefficient])
def test_no_harm_with_an_equilibrated_norm(make):
    problem = make()
    data, solved, wrong = setting(problem)
    rule = fc.ResidualRadius(pde_norm="equilibrated")
    chosen = fc.no_harm(problem, data, baseline=solved, learned=wrong, rule=rule)
    assert chosen.accepted == (make is tomography)
    assert {chosen.baseline.residuals.pde.side, chosen.learned.residuals.pde.side} == {"upper"}
    assert chosen.learned.residuals.pde.value >= chosen.baseline.residuals.pde.value


def test_a_heat_trajectory_and_its_states():
    problem = heat()
    data, solved, _ = setting(problem)
    trajectory = fc.Candidate(problem.trajectory(solved.parameter), solved.parameter, 0.0)
    rule = fc.ResidualRadius(pde_norm="equilibrated")
    first, second = (fc.certify(problem, data, each, rule) for each in (solved, trajectory))
    assert first.radius.value == pytest.approx(second.radius.value, rel=1e-9)
    bad = trajectory.state.copy()
    bad[problem.free, 2] *= 1.3
    chosen = fc.no_harm(
        problem, data, baseline=solved, learned=fc.Candidate(bad, solved.parameter, 0.0), rule=rule
    )
    assert not chosen.accepted
    assert "exceeds" in chosen.reason


def test_own_forms():
    problem = own()
    data, solved, wrong = setting(problem)
    riesz = fc.no_harm(problem, data, baseline=solved, learned=wrong, rule=fc.ResidualRadius(pde_norm="riesz"))
    assert not riesz.accepted
    assert riesz.learned.residuals.pde.side == "estimate"
    chosen = fc.no_harm(
        problem, data, baseline=solved, learned=solved, rule=fc.ResidualRadius(pde_norm="equilibrated")
    )
    assert chosen.baseline is None
    assert "use 'riesz'" in chosen.reason


def test_what_is_wrong_with_a_learned_candidate_is_recorded():
    problem = heat()
    data, solved, _ = setting(problem)
    spoiled = np.array(problem.trajectory(solved.parameter))
    spoiled[3, 1] = np.nan
    learned = fc.Candidate(spoiled, solved.parameter, 0.0)
    rule = fc.ResidualRadius(pde_norm="equilibrated")
    chosen = fc.no_harm(problem, data, baseline=solved, learned=learned, rule=rule)
    assert chosen.status == "rejected"
    assert "not usable: it raised InputError: state" in chosen.reason
    chosen = fc.no_harm(problem, data, baseline=solved, learned=solved, rule=fc.ResidualRadius(pde_norm="riesz"))
    assert chosen.status == "undecided"
    assert "'riesz'; a state that depends on time has 'rms' and 'equilibrated'" in chosen.reason


def test_the_exact_exponential_cannot_be_certified_in_space_and_time():
    problem = heat("exact")
    data, solved, _ = setting(problem)
    chosen = fc.no_harm(
        problem, data, baseline=solved, learned=solved, rule=fc.ResidualRadius(pde_norm="equilibrated")
    )
    assert not chosen.accepted
    assert "use 'crank-nicolson', or pde_norm='rms'" in chosen.reason


@pytest.mark.parametrize("method", METHODS)
def test_a_true_parameter_stays_covered(method):
    problem = source()
    data, solved, wrong = setting(problem)
    for candidate in (solved, wrong):
        found = fc.certify(problem, data, candidate, fc.ResidualRadius(pde_norm=method))
        assert found.contains(solved.parameter)


def test_the_stopping_rule_uses_the_norm_of_its_rule():
    problem = source()
    data, _, wrong = setting(problem)
    totals = {m: fc.certify(problem, data, wrong, fc.OperationalRadius(pde_norm=m)).total for m in METHODS}
    assert len({round(total, 12) for total in totals.values()}) == len(METHODS)
    for method, total in totals.items():
        rule = fc.OperationalRadius(pde_norm=method)
        assert fc.StoppingRule(problem, data, rule, total * (1 + 1e-9))(wrong)
        assert not fc.StoppingRule(problem, data, rule, total * (1 - 1e-9))(wrong)
