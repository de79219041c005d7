"""OperationalRadius with certified weights: numbers of the problem, the same for both candidates, and a theorem."""

from __future__ import annotations

import json

import numpy as np
import pytest
import zoo

import femcert as fc
from femcert import certified_weights

RULE = fc.OperationalRadius(pde="certified", bc="certified", pde_norm="equilibrated")


def problem_and_data():
    points = np.random.default_rng(0).uniform(0.2, 0.8, (8, 2))
    problem = zoo.source(zoo.square(3), sensors=zoo.discs(points, radius=0.1))
    truth = problem.parameters.field([1.0, 0.5, -0.3])
    return problem, problem.simulate(truth, noise=0.02, seed=2, oracle=True), truth


def test_the_radius_is_a_bound_for_any_state():
    problem, data, truth = problem_and_data()
    rng = np.random.default_rng(3)
    for i in range(20):
        q = problem.parameters.field(rng.standard_normal(3))
        u = problem.solve(q) + 10.0 ** rng.uniform(-4, 0) * rng.standard_normal(problem.basis.N)
        if i % 2:
            u = problem.solve(q) + rng.standard_normal()
        certificate = fc.certify(problem, data, fc.Candidate(u, q), RULE)
        assert certificate.radius.side == "upper"
        assert certificate.contains(truth)


def test_weights_are_recorded_as_numbers(tmp_path):
    problem, data, truth = problem_and_data()
    selection = fc.no_harm(
        problem, data, baseline=fc.Tikhonov(weight=1e-6), learned=fc.Candidate(problem.solve(truth), truth), rule=RULE
    )
    weights = certified_weights(problem, data=data)
    assert selection.rule["weights"] == {"pde": weights.pde.value, "bc": weights.bc.value, "optimality": 0.0}
    assert selection.rule["certified"] == ["pde", "bc"]
    selection.save(tmp_path / "s.json")
    assert json.loads((tmp_path / "s.json").read_text())["rule"]["certified"] == ["pde", "bc"]


def test_where_there_is_no_certified_weight_the_baseline_is_kept():
    problem = zoo.own_linear()
    data, learned = zoo.data(problem, noise=0.0), zoo.solved(problem)
    rule = fc.OperationalRadius(pde="certified", pde_norm="riesz")
    selection = fc.no_harm(problem, data, baseline=fc.Tikhonov(weight=1e-6), learned=learned, rule=rule)
    assert not selection.accepted
    assert "not said to be symmetric definite" in selection.reason
    with pytest.raises(fc.UncertifiedError, match="symmetric definite"):
        fc.certify(problem, data, learned, rule)


@pytest.mark.parametrize("options", [{}, {"pde_norm": "equilibrated", "norm": "h1"}])
def test_certified_weights_need_a_dual_norm_in_the_energy(options):
    with pytest.raises(fc.InputError, match="pde='certified' goes with"):
        fc.OperationalRadius(pde="certified", **options)
