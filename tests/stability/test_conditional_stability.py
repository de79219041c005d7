"""Conditional stability in certificates: an exponent below one, an envelope, and radii that contain the truth."""

from __future__ import annotations

import numpy as np
import pytest
import zoo

import femcert as fc


def problem_on(basis, count=9, radius=5.0):
    rng = np.random.default_rng(0)
    points = rng.uniform(0.15, 0.85, (count, basis.mesh.dim()))
    sensors = fc.AverageSensors(basis, points, radius=0.08)
    return fc.EllipticSource(basis, parameters=fc.FullSpace(basis).within_ball(radius, norm="h1"), sensors=sensors)


BASES = {"line": lambda: zoo.unit_basis("line P1", 40), "triangles": lambda: zoo.square(3)}


def in_ball(problem, rng):
    x = problem.basis.doflocs
    q = sum(rng.standard_normal() * np.cos((j + 1) * x[0] + rng.uniform(0, 6)) for j in range(4))
    size = np.sqrt(q @ (problem.parameters.form("h1") @ q))
    return q * (rng.uniform(0.2, 1.0) * problem.parameters.ball.radius / size)


@pytest.mark.parametrize("name", BASES)
def test_the_truth_is_inside(name):
    problem = problem_on(BASES[name]())
    rng = np.random.default_rng(1)
    for seed in range(8):
        truth = in_ball(problem, rng)
        data = problem.simulate(truth, noise=0.05, seed=seed, oracle=True)
        outside = 10.0 * truth, fc.Tikhonov(weight=1e-4)(problem, data).parameter
        for i, q in enumerate((in_ball(problem, rng), truth, *outside)):
            certificate = fc.certify(problem, data, fc.Candidate(problem.solve(q), q), fc.ResidualRadius())
            # A candidate outside the ball is covered only if its radius happens to reach.
            assert certificate.radius.side == "upper" or i > 1
            assert certificate.contains(truth) or certificate.radius.side == "estimate"


def test_exponent_envelope_and_modulus():
    problem = problem_on(BASES["triangles"]())
    data = problem.simulate(in_ball(problem, np.random.default_rng(0)), noise=0.05)
    found = fc.stability(problem, data=data)
    low, high = found.levels
    assert (low, high) == (data.noise_level, 100.0 * data.noise_level)
    assert 0.0 < found.exponent < 1.0
    assert found.sigma_min == 0.0
    assert found.condition == np.inf
    assert len(found.singular_values) == problem.sensors.count + 1
    for eps in np.geomspace(low, high, 41):
        assert found.modulus(eps).value <= found.radius(eps) * (1.0 + 1e-12)
    assert found.radius(10.0 * high) == found.modulus(10.0 * high).value
    assert problem.parameters.norm(found.weakest) == pytest.approx(1.0)


def test_refused():
    problem = problem_on(BASES["line"]())
    free = zoo.source(problem.basis, parameters=fc.FullSpace, sensors=problem.sensors)
    wrong = [(problem, levels, "levels") for levels in ((1.0,), (1e-2, 1e-3), (0.0, 1.0), "wide")]
    wrong += [(problem, None, "depends on the noise"), (free, None, "within_ball"), (free, (1e-4, 1e-2), "with a ball")]
    for posed, levels, word in wrong:
        with pytest.raises(fc.InputError, match=word):
            fc.stability(posed, levels=levels)


def test_noise_levels_ask_for_the_modulus_where_the_data_alone_would_do():
    basis = BASES["triangles"]()
    sensors = fc.AverageSensors(basis, np.random.default_rng(0).uniform(0.15, 0.85, (9, 2)), radius=0.08)
    space = fc.EigenmodeSpace(basis, 5).within_ball(1.0, norm="h1")
    problem = fc.EllipticSource(basis, parameters=space, sensors=sensors)
    plain, found = fc.stability(problem), fc.stability(problem, levels=(1e-5, 1e-1))
    assert (plain.exponent, plain.levels) == (1.0, None)
    assert found.levels == (1e-5, 1e-1)
    assert np.allclose(found.singular_values, plain.singular_values, rtol=1e-6)
    for eps in (1e-4, 1e-2):
        # Two parameters of the ball are at most C eps apart; where the ball cuts in, less.
        assert found.modulus(eps).value <= min(plain.constant.value * eps, 2.0) * (1.0 + 1e-3)
