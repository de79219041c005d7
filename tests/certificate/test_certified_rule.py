"""OperationalRadius with certified weights: numbers of the problem, the same for both candidates, and a theorem."""

from __future__ import annotations

import json

import numpy as np
import pytest
from skfem import Basis, BilinearForm, ElementTriP1, MeshTri
from skfem.helpers import dot, grad

import femcert as fc
from femcert import certified_weights

RULE = fc.OperationalRadius(pde="certified", bc="certified", pde_norm="equilibrated")


def problem_and_data():
    basis = Basis(MeshTri().refined(3), ElementTriP1())
    space = fc.SineSpace(basis, 3)
    points = np.random.default_rng(0).uniform(0.2, 0.8, (8, 2))
    problem = fc.EllipticSource(basis, parameters=space, sensors=fc.AverageSensors(basis, points, radius=0.1))
    truth = space.field([1.0, 0.5, -0.3])
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


def test_one_weight_certified_one_given():
    problem, data, truth = problem_and_data()
    rule = fc.OperationalRadius(pde="certified", bc=2.0, pde_norm="equilibrated").prepare(problem, data).rule
    assert rule.bc == 2.0
    assert rule.pde == certified_weights(problem, data=data).pde.value
    assert fc.StoppingRule(problem, data, RULE, 1e9)(fc.Candidate(problem.solve(truth), truth))


def test_where_there_is_no_certified_weight_the_baseline_is_kept():
    basis = Basis(MeshTri().refined(2), ElementTriP1())

    @BilinearForm
    def transport(u, v, w):
        return dot(grad(u), grad(v)) + u.grad[0] * v

    space = fc.SineSpace(basis, 2)
    sensors = fc.PointSensors(basis, [[0.3, 0.4], [0.6, 0.5], [0.5, 0.7]])
    problem = fc.LinearProblem(basis, operator=transport, parameters=space, sensors=sensors)
    data = problem.simulate(space.field([1.0, 0.0]))
    rule = fc.OperationalRadius(pde="certified", pde_norm="riesz")
    learned = fc.Candidate.from_coefficients(problem, [1.0, 0.0])
    selection = fc.no_harm(problem, data, baseline=fc.Tikhonov(weight=1e-6), learned=learned, rule=rule)
    assert not selection.accepted
    assert "not said to be symmetric definite" in selection.reason
    with pytest.raises(fc.UncertifiedError, match="symmetric definite"):
        fc.certify(problem, data, learned, rule)


@pytest.mark.parametrize("options", [{}, {"pde_norm": "equilibrated", "norm": "h1"}])
def test_certified_weights_need_a_dual_norm_in_the_energy(options):
    with pytest.raises(fc.InputError, match="pde='certified' goes with"):
        fc.OperationalRadius(pde="certified", **options)
