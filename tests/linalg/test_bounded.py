"""Projection on a box in the norm of a matrix, against scipy and its own optimality conditions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from scipy.sparse import csr_matrix
from skfem import Basis, BilinearForm, ElementTriP1, ElementTriP2, MeshTri

from femcert.linalg import bounded_step


def random_program(seed, k):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((k, k)) + 0.1 * np.eye(k)
    low = np.where(rng.uniform(size=k) < 0.2, -np.inf, -rng.uniform(size=k))
    high = np.where(rng.uniform(size=k) < 0.2, np.inf, low + rng.uniform(0.1, 2.0, size=k))
    high = np.where(np.isfinite(low), high, rng.uniform(size=k))
    return root.T @ root + 1e-3 * np.eye(k), rng.standard_normal(k) * 10.0 ** rng.uniform(-3, 3), low, high


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 12), units=st.floats(-6.0, 6.0), sparse=st.booleans())
def test_against_bounded_least_squares(seed, k, units, sparse):
    G, g, low, high = random_program(seed, k)
    scale = 10.0 ** (units * np.linspace(-1.0, 1.0, k))
    scaled = G * np.outer(scale, scale)
    d = bounded_step(csr_matrix(scaled) if sparse else scaled, g * scale, low / scale, high / scale) * scale
    assert np.all((low - 1e-12 <= d) & (d <= high + 1e-12))
    R = np.linalg.cholesky(G).T
    expected = lsq_linear(R, -np.linalg.solve(R.T, g), bounds=(low, high), method="bvls", tol=1e-14, max_iter=1000).x
    np.testing.assert_allclose(d, expected, atol=1e-7 * (1.0 + np.abs(expected).max()))


@pytest.mark.parametrize("element", [ElementTriP1, ElementTriP2])
def test_a_mass_matrix_with_many_bounds(element):
    basis = Basis(MeshTri().refined(4), element())
    M = BilinearForm(lambda u, v, w: u * v).assemble(basis)
    g = M @ np.random.default_rng(0).standard_normal(basis.N)
    low, high = -0.5 + np.zeros(basis.N), 0.3 + np.zeros(basis.N)
    d = bounded_step(M, g, low, high)
    r = M @ d + g
    assert np.all((low <= d) & (d <= high))
    tiny = 1e-11 * np.abs(g).max()
    assert np.all(r[d < high] >= -tiny)
    assert np.all(r[d > low] <= tiny)
    assert 10 < np.sum((low < d) & (d < high)) < basis.N - 10


def test_without_a_bound_in_the_way_it_is_the_newton_step():
    G, g, _, _ = random_program(1, 5)
    wide = np.full(5, 1e9)
    np.testing.assert_allclose(bounded_step(G, g, -wide, wide), -np.linalg.solve(G, g), rtol=1e-9)
    np.testing.assert_allclose(bounded_step(G, g, -wide * np.inf, wide * np.inf), -np.linalg.solve(G, g), rtol=1e-9)


def test_a_stationary_point_does_not_move_at_all():
    G = np.array([[2.0, 1.0], [1.0, 2.0]])
    # Held at the low bound by a positive derivative; G^-1 g would move the second coordinate, which is free.
    step = bounded_step(G, np.array([1.0, 0.0]), np.array([0.0, -1.0]), np.array([1.0, 1.0]))
    np.testing.assert_array_equal(step, [0.0, 0.0])
