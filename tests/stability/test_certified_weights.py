"""Certified weights: no state of the discrete problem does more to the data, and some does as much."""

from __future__ import annotations

import numpy as np
import pytest
import zoo

import femcert as fc
from femcert import certified_weights

CASES = {
    "triangles": lambda: zoo.square(3),
    "quadrilaterals": lambda: zoo.square(3, 1, "quad"),
    "line": lambda: zoo.unit_basis("line P2", 16),
}


def problem_on(basis, **options):
    points = np.random.default_rng(0).uniform(0.25, 0.75, (4, basis.mesh.dim()))
    sensors = fc.AverageSensors(basis, points, radius=0.1)
    return zoo.source(basis, parameters=fc.FullSpace, sensors=sensors, **options)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("covariance", [None, np.diag([1.0, 4.0, 0.25, 9.0])])
def test_no_state_does_more(name, covariance):
    problem = problem_on(CASES[name](), conductivity=2.0, reaction=1.0)
    data = fc.Data(np.zeros(4), 0.1, covariance)
    weights = certified_weights(problem, data=data)
    rng = np.random.default_rng(1)
    q = rng.standard_normal(problem.basis.N)
    right = problem.solve(q)
    worst = 0.0
    for i in range(30):
        u = right + rng.standard_normal(problem.basis.N)
        if i % 3 == 0:
            u[problem.boundary.prescribed] = 0.0
        if i % 5 == 0:
            u = right + 0.3
        r = fc.dual_norm(problem, fc.Candidate(u, q), "riesz").lower.value
        bc = fc.boundary_norm(problem, u, norm="h1").value
        effect = data.norm(problem.observe(u) - problem.observe(right))
        worst = max(worst, effect / (weights.pde.value * r + weights.bc.value * bc))
    assert 0.3 <= worst <= 1.0


def test_the_physics_weight_is_attained():
    problem = problem_on(CASES["triangles"]())
    weights = certified_weights(problem)
    # The state with the largest data for its energy: the adjoint state of the leading left singular vector.
    H = problem.sensors.matrix[:, problem.free]
    z = problem.factor.solve(H.T.toarray())
    values, vectors = np.linalg.eigh(H @ z)
    u = np.zeros(problem.basis.N)
    u[problem.free] = z @ vectors[:, -1]
    energy = np.sqrt(u @ (problem.operator @ u))
    assert np.linalg.norm(problem.observe(u)) == pytest.approx(weights.pde.value * energy, rel=1e-6)
    assert weights.pde.value == pytest.approx(np.sqrt(values[-1]), rel=1e-6)


def test_heat_weights():
    basis = CASES["line"]()
    sensors = fc.AverageSensors(basis, np.array([[0.3], [0.6]]), radius=0.1)
    problem = zoo.heat(basis, parameters=2, sensors=sensors, times=[0.1, 0.2], steps=4, scheme="backward-euler")
    weights = certified_weights(problem)
    rng = np.random.default_rng(0)
    M = problem.mass
    for _ in range(20):
        u = rng.standard_normal((basis.N, 2))
        size = np.sqrt(max(np.einsum("ij,ij->j", u, M @ u)))
        assert np.linalg.norm(problem.observe(u)) <= weights.pde.value * size


def test_refused():
    own = zoo.own_linear(zoo.square(3), parameters=fc.FullSpace, sensors=[[0.3, 0.4]])
    for problem, word in ((own, "not said to be symmetric definite"), (zoo.tomography(), "not for a Tomography")):
        with pytest.raises(fc.UncertifiedError, match=word):
            certified_weights(problem)


def test_a_stability_knows_its_weights():
    problem = problem_on(CASES["triangles"]())
    modes = zoo.source(problem.basis, parameters=2, sensors=problem.sensors)
    found = fc.stability(modes)
    assert found.weights == certified_weights(modes)
    with pytest.raises(fc.UncertifiedError, match="loaded from a file"):
        fc.Stability.from_dict(found.to_dict()).weights  # noqa: B018
