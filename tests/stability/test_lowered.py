"""Singular values from below: of 2,000 random small matrices known up to a quadratic form, and of forward maps."""

from __future__ import annotations

import numpy as np
import pytest
from test_continuous_guarantee import exact_matrix, on_line, on_square

from femcert.problem.forward import dense
from femcert.problem.insert import cut_at_sensors
from femcert.residual.block_chunk import Columns
from femcert.residual.block_errors import largest
from femcert.stability.continuous import continuous_error
from femcert.stability.lowered import lowered_values
from femcert.stability.source_errors import SourceErrors, source_equation


def lowered(A, G):
    return lowered_values(*np.linalg.svd(A, full_matrices=False)[1:], G)


def random_block(seed):
    """A matrix, a quadratic form, and matrices that differ from it by no more."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 6))
    m = k + int(rng.integers(0, 4))
    A = rng.standard_normal((m, k)) * 10.0 ** rng.uniform(-3, 0, k)
    half = rng.standard_normal((k, k)) * 10.0 ** rng.uniform(-2, 0, k)
    half *= rng.uniform(0.0, 1.5) * np.linalg.svd(A, compute_uv=False)[-1] / np.linalg.norm(half, 2)
    # ‖D x‖ <= ‖half x‖ for D = U half with ‖U‖ <= 1.
    units = [rng.standard_normal((m, k)) for _ in range(4)]
    return A, half.T @ half, [A + U @ half / np.linalg.norm(U, 2) for U in units], half


def test_2000_random_blocks():
    sharper = 0
    for seed in range(2000):
        A, G, others, half = random_block(seed)
        found = lowered(A, G)
        exact = [np.linalg.svd(F, compute_uv=False) for F in others]
        # The worst one for the smallest singular vector takes away from it what it can.
        value, v = (part[-1] for part in np.linalg.svd(A)[1:])
        away = A @ v / value
        seen = half @ v
        if seen.any():
            worst = A - np.outer(away, seen / np.linalg.norm(seen)) @ half
            exact.append(np.linalg.svd(worst, compute_uv=False))
        for values in exact:
            assert np.all(found <= values * (1.0 + 1e-9) + 1e-14 * values[0])
        weyl = np.linalg.svd(A, compute_uv=False) - np.sqrt(largest(G))
        assert np.all(found >= weyl - 1e-12 * np.linalg.norm(A))
        assert np.all(np.diff(found) <= 0.0)
        sharper += found[-1] > weyl[-1] + 0.01 * value
    assert sharper >= 1000


def test_two_directions():
    """The S-lemma leaves nothing: the bound is the minimum over the circle."""
    angles = np.linspace(0.0, np.pi, 20001)
    x = np.array([np.cos(angles), np.sin(angles)])
    for seed in range(100):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((3, 2))
        half = rng.standard_normal((2, 2))
        half *= 0.6 * np.linalg.svd(A, compute_uv=False)[-1] / np.linalg.norm(half, 2)
        least = float(np.min(np.linalg.norm(A @ x, axis=0) - np.linalg.norm(half @ x, axis=0)))
        assert 0.999 * least <= lowered(A, half.T @ half)[-1] <= least + 1e-6


def test_small_singular_values_keep_their_digits():
    A = np.diag([1.0, 1e-6, 1e-10])
    G = np.diag([1e-4, 1e-16, 1e-24])
    np.testing.assert_allclose(lowered(A, G)[-1], 1e-10 - 1e-12, rtol=1e-5)
    np.testing.assert_array_equal(lowered(A, np.zeros((3, 3))), np.diag(A))
    # The same in all directions: Weyl.
    np.testing.assert_allclose(lowered(np.diag([3.0, 2.0]), 0.25 * np.eye(2)), [2.5, 1.5], rtol=1e-9)
    assert lowered(np.diag([3.0, 2.0]), 9.0 * np.eye(2))[-1] < 0.0


@pytest.mark.parametrize("element", ["tri P1", "tri P2", "quad Q1", "quad Q2"])
def test_the_forward_map_of_the_square_in_every_direction(element):
    """Sines and averages in closed form: the whole quadratic form, not just its largest value."""
    for n in (4, 8, 16):
        problem = on_square(n, element)
        gap = continuous_error(problem, None)
        F = exact_matrix(problem.parameters.frequencies)
        missed = F - gap.centre
        least = np.linalg.eigvalsh(gap.spread - missed.T @ missed)[0]
        assert least >= -1e-9 * gap.size**2
        # Far less than what single bounds say.
        assert gap.size <= 0.7 * np.linalg.norm(gap.rows) * np.linalg.norm(gap.columns)
        assert np.linalg.norm(F - gap.forward, 2) >= 0.3 * np.linalg.norm(missed, 2)
        for c in np.random.default_rng(n).standard_normal((5, 5)):
            predicted = gap.exact.predict(np.linalg.solve(gap.exact.root, c))
            assert np.linalg.norm(predicted.values - F @ c) <= predicted.size <= 1.01 * gap.size * np.linalg.norm(c)


def sensor_errors(problem, weights):
    """Errors of the adjoint states of combinations of sensors."""
    equation = source_equation(problem)
    if equation.sensors.representers().loads is not None:
        problem = cut_at_sensors(problem)
        (equation,) = problem.states
    errors = SourceErrors(problem, equation, homogeneous=True)
    states = np.zeros((equation.basis.N, len(weights)))
    states[equation.free] = equation.system().factor.solve((weights @ dense(equation.sensors.matrix)).T[equation.free])
    return errors.errors(weights, Columns(states, errors.constants, errors.densities(weights))).blocks[0]


def test_adjoint_states_for_others():
    """The errors of any combination of sensors, against Green's functions of averages on a line and a finer mesh."""
    rng = np.random.default_rng(0)
    problem, fine = on_square(8, "tri P1"), on_square(32, "tri P1")
    errors = sensor_errors(problem, np.eye(16))
    states = np.zeros((fine.basis.N, 16))
    states[fine.free] = fine.factor.solve(fine.sensors.matrix.T.toarray()[fine.free])
    e = states - problem.basis.probes(fine.basis.doflocs) @ errors.states
    E = e.T @ (fine.operator @ e)
    assert np.linalg.eigvalsh(errors.total - E)[0] >= -1e-10 * np.trace(E)
    assert np.trace(errors.total) <= 2.0 * np.trace(E)
    for weights in rng.standard_normal((3, 2, 16)):
        two = sensor_errors(problem, weights)
        assert np.linalg.eigvalsh(two.total - weights @ E @ weights.T)[0] >= 0.0
    line, _ = on_line(20, "line P1", reaction=40.0)
    assert np.all(sensor_errors(line, np.eye(16)).single > 0.0)
