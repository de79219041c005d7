"""The modulus of continuity on a ball: known exponents, both bounds, brute force on small problems."""

from __future__ import annotations

import numpy as np
import pytest
import zoo

import femcert as fc
from femcert.stability import Modulus


def dense_line(cells, norm="h1", radius=1.0):
    """Source recovery from the state at every node, weighted as an L2 norm."""
    basis = zoo.unit_basis("line P1", cells)
    sensors = fc.MatrixSensors(np.eye(basis.N)[1:-1] / np.sqrt(cells))
    space = fc.FullSpace(basis).within_ball(radius, norm=norm)
    return fc.EllipticSource(basis, parameters=space, sensors=sensors)


def sparse_plane(radius=1.0):
    basis = zoo.square(3)
    points = np.random.default_rng(0).uniform(0.1, 0.9, (7, 2))
    space = fc.FullSpace(basis).within_ball(radius, norm="h1")
    return zoo.source(basis, parameters=space, sensors=points)


@pytest.mark.parametrize(("norm", "exponent", "tolerance"), [("h1", 1 / 3, 0.02), ("h2", 1 / 2, 0.03)])
def test_known_exponents_on_three_meshes(norm, exponent, tolerance):
    found = [Modulus(dense_line(cells, norm)).envelope(1e-5, 1e-3) for cells in (100, 200, 400)]
    for _, p in found:
        assert abs(p - exponent) <= tolerance
    constants = [C * 1e-4**p for C, p in found]
    assert max(constants) <= 1.02 * min(constants)


def test_both_bounds_agree_and_the_envelope_is_above():
    modulus = Modulus(sparse_plane())
    C, p = modulus.envelope(1e-4, 1e-1)
    for eps in np.geomspace(1e-4, 1e-1, 97):
        assert modulus.below(eps) <= modulus.bound(eps) * (1.0 + 1e-9)
        assert modulus.bound(eps) <= C * eps**p
    for bound, eps in zip(modulus([1e-4, 1e-2]), (1e-4, 1e-2), strict=True):
        assert bound.side == "upper"
        assert bound.value <= 1.0011 * modulus.below(eps)


def test_no_parameter_beats_it():
    problem = sparse_plane()
    modulus = Modulus(problem)
    space, rng = problem.parameters, np.random.default_rng(1)
    L, H = space.form("h1"), problem.forward_matrix()
    for eps in (1e-3, 1e-1):
        omega = modulus(eps).value
        hidden = modulus.worst(eps)
        candidates = [hidden, *(rng.standard_normal((20, space.basis.N)) * rng.uniform(0.0, 1.0, (20, space.basis.N)))]
        for e in candidates:
            scale = min(eps / np.linalg.norm(H @ e), modulus.radius / np.sqrt(e @ (L @ e)))
            assert space.norm(scale * e) <= omega * (1.0 + 1e-9)
        assert space.norm(hidden) >= 0.5 * omega


def test_scaling_and_the_ball():
    # omega scales with the ball: omega_{s rho}(s eps) = s omega_rho(eps); the difference of two has twice the radius.
    one, two = Modulus(sparse_plane(1.0)), Modulus(sparse_plane(3.0))
    assert one.radius == 2.0
    assert two(3e-3).value == pytest.approx(3.0 * one(1e-3).value, rel=2e-3)
    assert one(1e-2).value >= one(1e-3).value


def test_without_a_null_space_small_noise_is_lipschitz():
    basis = zoo.unit_basis("line P1", 32)
    sensors = fc.MatrixSensors(np.eye(basis.N)[1:-1])
    problem = fc.EllipticSource(basis, parameters=fc.SineSpace(basis, 5).within_ball(1.0), sensors=sensors)
    constant = fc.stability(problem).constant.value
    assert Modulus(problem)(1e-9).value == pytest.approx(constant * 1e-9, rel=2e-3)


def test_refused():
    problem = sparse_plane()
    modulus = Modulus(problem)
    for deed, word in (
        (lambda: Modulus(zoo.source(problem.basis, parameters=fc.FullSpace, sensors=problem.sensors)), "no ball"),
        (lambda: modulus(0.0), "positive noise levels"),
        (lambda: modulus.envelope(1.0, 0.1), "expected 0 < low < high"),
    ):
        with pytest.raises(fc.InputError, match=word):
            deed()
