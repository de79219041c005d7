"""The exact radius: the farthest consistent parameter, below every other radius and never below the truth."""

from __future__ import annotations

import numpy as np
import pytest
import zoo
from skfem import Basis, ElementLineP1, MeshLine

import femcert as fc

# Cells along a side.
ELEMENTS = {"line P1": 12, "line P2": 8, "tri P1": 8, "tri P2": 4, "quad Q1": 8}


def source(name="tri P1", k=4, m=9, ball=None, **options):
    basis = zoo.unit_basis(name, ELEMENTS[name])
    space = fc.EigenmodeSpace(basis, k)
    if ball is not None:
        space = space.within_ball(ball, norm="h1")
    return zoo.source(basis, parameters=space, sensors=zoo.inside_points(basis, m, seed=0), **options)


def full(radius, **options):
    """Six sensors of the whole space."""
    return zoo.source(zoo.square(3), parameters=lambda b: fc.FullSpace(b).within_ball(radius, norm="h1"), **options)


def observed(problem, truth, level, seed, *, covariance=None, size=1.0):
    """Data with noise of exactly `size` times the noise level."""
    rng = np.random.default_rng(seed)
    clean = problem.predict(problem.solve(truth), truth)
    noise = rng.standard_normal(clean.size)
    root = np.ones(clean.size) if covariance is None else np.sqrt(covariance)
    noise *= size * level / np.linalg.norm(noise / root) if level else 0.0
    return fc.Data(clean + noise, level, covariance)


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize("level", [0.0, 1e-6, 1e-2, 10.0])
def test_the_truth_is_inside_and_the_residual_radius_outside(name, level):
    problem = source(name, dirichlet=0.5)
    space = problem.parameters
    rng = np.random.default_rng(5)
    for seed in range(20):
        truth = space.field(rng.standard_normal(space.dimension))
        covariance = None if seed % 2 else rng.uniform(0.5, 2.0, 9)
        data = observed(problem, truth, level, seed, covariance=covariance, size=rng.choice([0.0, 0.5, 1.0]))
        for scale in (0.0, 1e-3, 1.0):
            c = space.project(truth)[0] + scale * rng.standard_normal(space.dimension)
            outside = scale * rng.standard_normal(space.basis.N) * (seed % 3 == 0)
            q = space.field(c) + outside
            candidate = fc.Candidate(problem.solve(q), q)
            found = fc.certify(problem, data, candidate, fc.ExactRadius())
            assert found.contains(truth)
            assert (found.radius.side, found.scope) == ("upper", "discrete")
            residual = fc.certify(problem, data, candidate, fc.ResidualRadius())
            assert found.radius.value <= residual.radius.value * (1.0 + 1e-9) + 1e-12


def test_it_is_attained():
    problem = source()
    space = problem.parameters
    truth = space.field([1.0, -0.5, 0.25, 0.1])
    data = observed(problem, truth, 0.05, 1)
    q = space.field([0.9, -0.4, 0.2, 0.0]) + 0.1 * np.sin(9.0 * problem.basis.doflocs[0])
    judge = fc.ExactRadius().prepare(problem, data)
    found = judge.certify(fc.Candidate(problem.solve(q), q))
    value, witness = judge.evidence.farthest(q)
    assert found.radius.value == value
    # A parameter of the class that explains the data, and is as far away as the radius says.
    assert data.norm(problem.observe(problem.solve(witness)) - data.values) <= 0.05 * (1.0 + 1e-9)
    assert space.norm(witness - q) == pytest.approx(value, rel=1e-9)


def test_brute_force_with_offset_and_covariance():
    problem = source(k=2, m=5, dirichlet=0.5)
    space = problem.parameters
    truth = space.field([1.0, -1.0])
    data = observed(problem, truth, 0.3, 3, covariance=np.array([0.5, 1.0, 2.0, 1.0, 0.7]))
    q = space.field([0.3, 0.4])
    found = fc.certify(problem, data, fc.Candidate(problem.solve(q), q), fc.ExactRadius()).radius.value
    F = data.whiten(problem.forward_matrix())
    y = data.whiten(data.values - problem.offset)
    centre = np.linalg.lstsq(F, y, rcond=None)[0]
    slack = np.sqrt(0.3**2 - np.linalg.norm(F @ centre - y) ** 2)
    angles = np.linspace(0, 2 * np.pi, 20001)
    _, s, Vt = np.linalg.svd(F, full_matrices=False)
    edge = centre + (slack / s * np.column_stack([np.cos(angles), np.sin(angles)])) @ Vt
    distances = [space.norm(space.field(c) - q) for c in edge[::20]] + [0.0]
    assert max(distances) == pytest.approx(found, rel=1e-5)
    assert max(distances) <= found * (1.0 + 1e-12)


@pytest.mark.parametrize("k", [4, 30])
def test_on_a_ball(k):
    # With more coordinates than observations only the ball bounds them.
    problem = source(k=k, ball=3.0)
    space, rng = problem.parameters, np.random.default_rng(2)
    L = space.form("h1")
    for seed in range(10):
        c = rng.standard_normal(k) / (1.0 + np.arange(k))
        truth = space.field(c)
        truth = truth * min(1.0, 3.0 / np.sqrt(truth @ (L @ truth)))
        data = observed(problem, truth, 1e-3, seed)
        candidate = fc.Tikhonov(weight=1e-6)(problem, data)
        found = fc.certify(problem, data, candidate, fc.ExactRadius())
        assert found.contains(truth)
        # Never above the radius of the class without the ball, nor above the ball's diameter around it.
        assert found.radius.value <= space.norm(candidate.parameter) + 3.0
        if k == 4:
            plain = source(k=k)
            without = fc.certify(plain, data, candidate, fc.ExactRadius())
            assert found.radius.value <= without.radius.value * (1.0 + 1e-9)


def test_a_large_class_on_a_ball_takes_the_modulus(monkeypatch):
    problem = full(5.0)
    truth = np.prod(np.sin(np.pi * problem.basis.doflocs), axis=0)
    data = observed(problem, truth, 1e-3, 0)
    candidate = fc.Tikhonov(weight=1e-6)(problem, data)
    small = fc.certify(problem, data, candidate, fc.ExactRadius())
    monkeypatch.setattr("femcert.certificate.exact.MOST_COORDINATES", 10)
    large = fc.certify(problem, data, candidate, fc.ExactRadius())
    assert small.contains(truth)
    assert large.contains(truth)
    assert small.radius.value <= large.radius.value * (1.0 + 1e-9)


def test_inconsistent_evidence_is_named():
    problem = source()
    truth = problem.parameters.field([1.0, 0.5, 0.2, 0.1])
    rng = np.random.default_rng(0)
    clean = problem.observe(problem.solve(truth))
    data = fc.Data(clean + 0.1 * rng.standard_normal(9), 1e-3)
    candidate = fc.Candidate(problem.solve(truth), truth)
    with pytest.raises(fc.InconsistentError, match="model error, wrong noise level or wrong class") as caught:
        fc.certify(problem, data, candidate, fc.ExactRadius())
    level = caught.value.level
    F = problem.forward_matrix()
    rest = data.values - F @ np.linalg.lstsq(F, data.values, rcond=None)[0]
    assert level == pytest.approx(np.linalg.norm(rest), rel=1e-8)
    fc.certify(problem, fc.Data(data.values, level * 1.001), candidate, fc.ExactRadius())
    selection = fc.no_harm(problem, data, baseline=fc.Tikhonov(weight=1e-6), learned=candidate, rule=fc.ExactRadius())
    assert not selection.accepted
    assert "no parameter of the class explains the data" in selection.reason


def test_refused():
    problem = source(k=12)
    data = fc.Data(np.zeros(9), 1.0)
    zero = fc.Candidate.from_coefficients(problem, np.zeros(12))
    with pytest.raises(fc.UncertifiedError, match="12 coordinates and there are 9 observations"):
        fc.certify(problem, data, zero, fc.ExactRadius())
    with pytest.raises(fc.InputError, match="guarantee"):
        fc.ExactRadius(guarantee="surely")


def coefficient(radius, **options):
    basis = zoo.unit_basis("line P1", 32)
    space = fc.SineSpace(basis, 2)
    if radius is not None:
        space = space.within_ball(radius, norm="l2")
    return zoo.coefficient(basis, parameters=space, sensors=np.linspace(0.05, 0.95, 19), source=10.0, **options)


def test_nonlinear_on_a_validated_ball_or_not_at_all():
    problem = coefficient(0.004)
    space = problem.parameters
    rng = np.random.default_rng(0)
    for seed in range(10):
        c = rng.standard_normal(2)
        truth = space.field(0.004 * rng.uniform() * c / space.norm(space.field(c)))
        data = observed(problem, truth, 1e-5, seed)
        candidate = fc.Candidate.from_coefficients(problem, 0.5 * space.project(truth)[0])
        found = fc.certify(problem, data, candidate, fc.ExactRadius())
        assert found.contains(truth)
        assert (found.radius.side, found.scope) == ("upper", "discrete")
        assert found.radius.value <= 0.01
        assert fc.no_harm(problem, data, baseline=candidate, learned=candidate, rule=fc.Dominance()).accepted
    truth = space.field([0.001, 0.0])
    for unbounded in (coefficient(None), coefficient(5.0)):
        data = observed(unbounded, truth, 1e-5, 0)
        with pytest.raises(fc.UncertifiedError, match=r"ball|validated"):
            fc.certify(unbounded, data, fc.Candidate.from_coefficients(unbounded, [0.0, 0.0]), fc.ExactRadius())


def test_a_nonlinear_ball_counts():
    problem = coefficient(0.001)
    space = problem.parameters
    data = observed(problem, space.field([0.0005, 0.0]), 1e-3, 0)
    zero = fc.Candidate.from_coefficients(problem, [0.0, 0.0])
    # The noise says nothing; the class still does.
    assert fc.certify(problem, data, zero, fc.ExactRadius()).radius.value == pytest.approx(0.001, rel=1e-4)
    far = observed(coefficient(None), space.field([1.0, 0.0]), 1e-5, 0)
    with pytest.raises(fc.InconsistentError, match="no parameter of the class"):
        fc.certify(problem, far, zero, fc.ExactRadius())


def test_without_noise_a_large_ball_has_no_radius(monkeypatch):
    monkeypatch.setattr("femcert.certificate.exact.MOST_COORDINATES", 10)
    problem = full(50.0)
    truth = problem.basis.doflocs[0] ** 2
    data = fc.Data(problem.observe(problem.solve(truth)), 0.0)
    learned = zoo.solved(problem, 1e3 * problem.basis.doflocs[0])
    found = fc.no_harm(
        problem, data, baseline=zoo.solved(problem, truth), learned=learned, rule=fc.ExactRadius()
    )
    assert not found.accepted


def test_never_above_the_residual_radius_on_balls():
    # The dual of two multipliers has a gap there; the other bound then counts.
    rng = np.random.default_rng(0)
    basis = zoo.unit_basis("line P1", 32)
    for seed in range(12):
        matrix = np.array(fc.SineSpace(basis, 3).matrix)
        matrix[:, 1] = matrix[:, 0] + 10.0 ** rng.uniform(-4, -1) * matrix[:, 1]
        space = fc.ParameterSpace(basis, matrix).within_ball(0.2, norm="l2")
        problem = zoo.source(basis, parameters=space, sensors=np.linspace(0.2, 0.8, 1 + seed % 3))
        data = fc.Data(np.zeros(problem.observation_count), 1e-3)
        candidate = zoo.solved(problem, rng.uniform(0.0, 3.0) * np.ones(basis.N))
        exact, residual = (fc.certify(problem, data, candidate, r()) for r in (fc.ExactRadius, fc.ResidualRadius))
        assert exact.radius.value <= residual.radius.value * (1.0 + 1e-9)
        assert exact.contains(np.zeros(basis.N))


def test_a_seminorm_does_not_bound_a_nonlinear_class():
    basis = Basis(MeshLine(np.linspace(0, 1, 8)), ElementLineP1())
    space = fc.CoarseSpace(basis, MeshLine(np.linspace(0, 1, 4))).within_ball(1e-9, norm="h1-seminorm")
    sensors = fc.PointSensors(basis, np.linspace(0.05, 0.95, 19))
    problem = fc.EllipticCoefficient(basis, parameters=space, sensors=sensors, source=1.0)
    truth, zero = 0.5 * np.ones(basis.N), np.zeros(basis.N)
    data = fc.Data(problem.predict(problem.solve(truth), truth), 1e-6)
    with pytest.raises(fc.UncertifiedError, match="does not bound the parameters"):
        fc.certify(problem, data, fc.Candidate(problem.solve(zero), zero), fc.ExactRadius())


@pytest.mark.parametrize("level", [0.0, 1e-3])
def test_blind_sensors_leave_the_ball(level):
    basis = zoo.square(3)
    H = np.zeros((1, basis.N))
    H[0, basis.get_dofs().flatten()[0]] = 1.0
    problem = full(1.0, sensors=fc.MatrixSensors(H))
    zero = np.zeros(basis.N)
    found = fc.certify(problem, fc.Data([0.0], level), fc.Candidate(zero, zero), fc.ExactRadius())
    assert found.radius.value == pytest.approx(1.0, rel=1e-3)
