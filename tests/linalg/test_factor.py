"""Factorizations: solutions against dense algebra, reuse, and refusal of what cannot be solved."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import block_diag, csr_matrix, diags, identity, random_array
from skfem import BilinearForm, asm
from skfem.helpers import dot, grad
from zoo import unit_basis

import femcert as fc
from femcert.linalg import Factorization, factor

stiffness = BilinearForm(lambda u, v, w: dot(grad(u), grad(v)))
mass = BilinearForm(lambda u, v, w: u * v)
convection = BilinearForm(lambda u, v, w: grad(u)[0] * v)


def inner(A, basis):
    free = basis.complement_dofs(basis.get_dofs())
    return A[free][:, free]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 30), st.integers(0, 2**32 - 1), st.booleans())
def test_against_dense(n, seed, definite):
    rng = np.random.default_rng(seed)
    A = random_array((n, n), density=0.3, rng=rng).toarray()
    A = A @ A.T + np.eye(n) if definite else A + (2.0 + n) * np.eye(n)
    found = Factorization(csr_matrix(A), definite=definite)
    for right in (rng.standard_normal(n), rng.standard_normal((n, 3))):
        assert np.allclose(found.solve(right), np.linalg.solve(A, right), rtol=1e-9, atol=1e-12)
        assert np.allclose(found.solve_transposed(right), np.linalg.solve(A.T, right), rtol=1e-9, atol=1e-12)


def test_transposed_solves_of_convection():
    basis = unit_basis("tri P1", 8)
    A = inner(asm(stiffness, basis) + 5.0 * asm(convection, basis), basis)
    found = Factorization(A, definite=False)
    b = np.random.default_rng(0).standard_normal(A.shape[0])
    assert np.allclose(A @ found.solve(b), b, atol=1e-12)
    assert np.allclose(A.T @ found.solve_transposed(b), b, atol=1e-12)
    assert not np.allclose(found.solve(b), found.solve_transposed(b), atol=1e-3)


@pytest.mark.parametrize("definite", [True, False])
@pytest.mark.parametrize("n", [4, 20, 60])
@pytest.mark.parametrize("element", ["tri P1", "tri P2"])
def test_pure_neumann_is_singular(n, element, definite):
    """Its pivots are rounding errors, not zeros."""
    if element == "tri P2" and n == 60:
        n = 40
    with pytest.raises(fc.SolveError, match=r"the Laplacian.* is singular"):
        Factorization(asm(stiffness, unit_basis(element, n)), definite=definite, name="Laplacian")


@pytest.mark.parametrize("definite", [True, False])
def test_exactly_singular(definite):
    for A in (np.zeros((3, 3)), np.diag([1.0, 0.0]), np.ones((2, 2))):
        with pytest.raises(fc.SolveError, match="singular"):
            Factorization(csr_matrix(A), definite=definite)


def test_badly_scaled_is_not_singular():
    """Rows and columns may have any scale; dependence counts, whatever the scale."""
    for power in (1e10, 1e16, 1e100):
        scale = diags([1.0, power, 3.0])
        A = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]])
        factor = Factorization(scale @ A @ scale, definite=True)
        assert factor.solve(scale @ A @ np.ones(3)) == pytest.approx(np.array([1.0, 1 / power, 1 / 3]))
        assert factor.condition == pytest.approx(Factorization(csr_matrix(A), definite=True).condition)
        A[2, 2] = 2.0 / 3.0 + 1e-15
        with pytest.raises(fc.SolveError, match="singular"):
            Factorization(scale @ A @ scale, definite=True)


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 60), st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3))
def test_one_negative_eigenvalue_is_found(n, seed, size):
    """Whatever its place and size, among n - 1 positive ones."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    values = 0.5 + rng.random(n)
    values[rng.integers(n)] = -size
    A = (Q * values) @ Q.T
    with pytest.raises(fc.SolveError, match="not positive definite"):
        Factorization(csr_matrix(0.5 * (A + A.T)), definite=True)
    Factorization(csr_matrix(0.5 * (A + A.T)), definite=False)


def test_helmholtz_is_indefinite():
    """Below the first eigenvalue 2 pi² it is definite, above it is not; a zero pivot is not definite either."""
    basis = unit_basis("tri P1", 16)
    K, M = inner(asm(stiffness, basis), basis), inner(asm(mass, basis), basis)
    Factorization(K - 19.0 * M, definite=True)
    with pytest.raises(fc.SolveError, match="not positive definite"):
        Factorization(K - 21.0 * M, definite=True)
    swap = csr_matrix([[0.0, 1.0], [1.0, 0.0]])
    for A in (swap, block_diag([0.01 * identity(20), swap])):
        with pytest.raises(fc.SolveError, match="not positive definite"):
            Factorization(A, definite=True)


def test_large_factors_are_probed_only(monkeypatch):
    monkeypatch.setattr(factor, "PIVOTS_READ", 0)
    assert Factorization(identity(5), definite=True).solve(np.ones(5)).tolist() == [1.0] * 5
    with pytest.raises(fc.SolveError, match="not positive definite"):
        Factorization(-identity(5), definite=True)


def test_inaccurate_factors_are_refused(monkeypatch):
    class Sloppy:
        def __init__(self, lu):
            self.solve = lambda right, *_: lu.solve(right) * (1.0 + 1e-6)

    genuine = factor.splu
    monkeypatch.setattr(factor, "splu", lambda A, **options: Sloppy(genuine(A, **options)))
    with pytest.raises(fc.SolveError, match="the factorization of the operator is not accurate"):
        Factorization(identity(5), definite=False)


@pytest.mark.parametrize("scale", [1e-304, 1e-200, 1.0, 1e200, 1e300])
@pytest.mark.parametrize("definite", [False, True])
def test_the_unit_of_the_entries_does_not_matter(scale, definite):
    """Neither the checks nor the condition number; and no overflow on the way, which would be a warning."""
    basis = unit_basis("tri P1", 8)
    K = inner(asm(stiffness, basis), basis)
    plain = Factorization(K, definite=definite)
    found = Factorization(scale * K, definite=definite)
    assert found.condition == pytest.approx(plain.condition, rel=1e-6)
    b = np.random.default_rng(0).standard_normal(K.shape[0])
    assert np.allclose(found.solve(scale * b), plain.solve(b), rtol=1e-10, atol=0.0)
    with pytest.raises(fc.SolveError, match="not positive definite"):
        Factorization(-scale * K, definite=True)
    with pytest.raises(fc.SolveError, match="not symmetric"):
        Factorization(scale * (K + inner(asm(convection, basis), basis)), definite=True)


def test_the_condition_number():
    """Of a line with n cells, 4 / (2 - 2 cos(pi / n)), whatever its diagonal is scaled to."""
    for n in (10, 100, 1000):
        A = diags([-np.ones(n - 2), 2.0 * np.ones(n - 1), -np.ones(n - 2)], [-1, 0, 1]).tocsr()
        D = diags(10.0 ** np.random.default_rng(0).uniform(-6.0, 6.0, n - 1))
        exact = 4.0 / (2.0 - 2.0 * np.cos(np.pi / n))
        for matrix in (A, D @ A @ D):
            found = Factorization(matrix, definite=True).condition
            assert 0.4 * exact < found < 1.1 * exact
