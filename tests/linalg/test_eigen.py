"""Eigenpairs: dense against shift-invert, multiple and zero eigenvalues, residual checks; whole eigenspaces."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pencils import line_pencil, line_values
from scipy.linalg import eigh
from scipy.sparse import block_diag, csr_matrix, diags, identity, kron

import femcert as fc
from femcert.linalg import (
    Factorization,
    canonical_eigenpairs,
    dense_eigenpairs,
    dense_largest_eigenpair,
    eigen,
    inverse_eigenpair,
    is_definite,
    lanczos,
    largest_eigenvalue,
    smallest_eigenpairs,
)


def plane_pencil(n, *, neumann=False):
    """Tensor product: Q1 on the unit square."""
    K, M = line_pencil(n, neumann=neumann)
    return (kron(K, M) + kron(M, K)).tocsr(), kron(M, M).tocsr()


@pytest.mark.parametrize("n", [5, 40, 200, 3000])
def test_line_in_closed_form(n):
    """Dense for few dofs, shift-invert for many."""
    k = min(4, n - 1)
    K, M = line_pencil(n)
    values, vectors = smallest_eigenpairs(K, M, k)
    assert values == pytest.approx(line_values(n, np.arange(1, k + 1)), rel=1e-8)
    assert np.allclose(vectors.T @ (M @ vectors), np.eye(k), atol=1e-9)
    nodes = np.arange(1, n) / n
    first = np.sin(np.pi * nodes)
    assert np.allclose(np.abs(vectors[:, 0]), first / np.sqrt(first @ (M @ first)), atol=1e-7)


@pytest.mark.parametrize("n", [6, 24])
@pytest.mark.parametrize("neumann", [False, True])
def test_multiple_eigenvalues_of_the_square(n, neumann):
    """The double ones are both found, with orthogonal vectors that span the right space."""
    K, M = plane_pencil(n, neumann=neumann)
    k = 8
    values, vectors = smallest_eigenpairs(K, M, k)
    single = line_values(n, np.arange(0 if neumann else 1, n if not neumann else n + 1))
    exact = np.sort(np.add.outer(single, single).ravel())[:k]
    assert values == pytest.approx(exact, rel=1e-8, abs=1e-8)
    assert np.allclose(vectors.T @ (M @ vectors), np.eye(k), atol=1e-9)
    if not neumann:
        assert values[1] == pytest.approx(values[2], rel=1e-9)


@pytest.mark.parametrize("copies", [2, 3, 5, 9])
def test_all_copies_of_an_eigenvalue_are_found(copies):
    """Exact copies, which rounding errors must not be needed to tell apart, with every start of the rest."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        exact = np.sort(np.r_[np.ones(copies), np.full(copies, 2.0), rng.uniform(1.5, 30.0, 100)])
        A = diags(rng.permutation(exact)).tocsr()
        for k in (1, copies - 1, copies, copies + 3, 2 * copies + 5):
            values, vectors = eigen.shift_invert(A, identity(len(exact), format="csr"), k)
            assert values == pytest.approx(exact[:k], rel=1e-10)
            assert np.allclose(vectors.T @ vectors, np.eye(k), atol=1e-10)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("n", [4, 30])
def test_zero_eigenvalue(k, n):
    """Alone it has nothing to be compared with but rounding."""
    values, vectors = smallest_eigenpairs(*plane_pencil(n, neumann=True), k)
    assert abs(values[0]) < 1e-8
    assert np.allclose(vectors[0, 0] * vectors[:, 0], 1.0, atol=1e-7)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_tiny_problems(n, seed):
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((2, n, n))
    A, B = A @ A.T, B @ B.T + np.eye(n)
    for k in {1, n}:
        values, vectors = smallest_eigenpairs(csr_matrix(A), csr_matrix(B), k)
        assert np.allclose(values, eigh(A, B, eigvals_only=True)[:k], atol=1e-10 * np.abs(A).max())
        assert vectors.shape == (n, k)


def test_graded_mesh_with_contrast():
    """Eigenvalues over eight orders: the smallest are those of the dense solver, as far as that has digits."""
    rng = np.random.default_rng(0)
    a = 10.0 ** rng.uniform(-1.5, 1.5, 201)
    h = 10.0 ** rng.uniform(-1.5, 0, 201)
    D = diags([np.ones(200), -np.ones(200)], [0, 1], shape=(200, 201))
    K = (D @ diags(a / h) @ D.T).tocsr()
    M = diags(0.5 * (h[:-1] + h[1:])).tocsr()
    assert smallest_eigenpairs(K, M, 5)[0] == pytest.approx(dense_eigenpairs(K, M)[0][:5], rel=1e-8)


def test_wrong_pairs_are_refused(monkeypatch):
    K, M = plane_pencil(20)
    genuine = eigen.shift_invert

    def inaccurate(*arguments, **options):
        values, vectors = genuine(*arguments, **options)
        return values * (1.0 + 1e-6), vectors

    monkeypatch.setattr(eigen, "shift_invert", inaccurate)
    with pytest.raises(fc.SolveError, match=r"an eigenpair has the relative residual .*, above 1e-08"):
        smallest_eigenpairs(K, M, 3)

    def poisoned(*arguments, **options):
        values, vectors = genuine(*arguments, **options)
        return values, vectors * np.nan

    monkeypatch.setattr(eigen, "shift_invert", poisoned)
    with pytest.raises(fc.SolveError, match="relative residual nan"):
        smallest_eigenpairs(K, M, 3)


def graded_pencil(smallest, n):
    """P1 stiffness and mass of the insulated unit interval, with cells growing geometrically from `smallest`."""
    h = np.diff(np.r_[0.0, np.geomspace(smallest, 1.0, n)])
    K = diags([-1.0 / h, np.r_[1.0 / h, 0.0] + np.r_[0.0, 1.0 / h], -1.0 / h], [-1, 0, 1]).tocsr()
    M = diags([h / 6.0, (np.r_[h, 0.0] + np.r_[0.0, h]) / 3.0, h / 6.0], [-1, 0, 1]).tocsr()
    return K, M


@pytest.mark.parametrize("n", [40, 100])
@pytest.mark.parametrize("smallest", [1e-2, 1e-5, 1e-8])
def test_dense_and_sparse_agree_on_graded_lines(smallest, n):
    K, M = graded_pencil(smallest, n)
    values, vectors = dense_eigenpairs(K, M)
    found, sparse = eigen.shift_invert(K, M, 5)
    # Rounding of the terms of x'Kx with |x|^2 <= 2, and, in a sum of n terms, of mu = 1 / (lam + shift) <= 1 / shift.
    shift = eigen.small_shift(K, M)
    rounding = np.finfo(float).eps * (4.0 * abs(K).sum() + n * (found + shift) ** 2 / shift)
    assert np.all(np.abs(values[:5] - found) <= rounding)
    assert np.allclose(vectors[:, :5].T @ (M @ vectors[:, :5]), np.eye(5), atol=1e-9)
    assert np.allclose(np.abs(vectors[:, :5].T @ (M @ sparse)), np.eye(5), atol=1e-6)
    checked, _ = smallest_eigenpairs(K, M, 5)
    assert np.all(np.abs(checked - found) <= rounding)
    # A shift of about the wanted size changes nothing, as the heat equation uses it.
    shifted, _ = dense_eigenpairs(K, M, shift=50.0)
    assert np.all(np.abs(shifted[:5] - found) <= rounding)


@pytest.mark.parametrize("n", [1, 2, 5, 13, 60])
def test_the_least_eigenvalue_from_the_inverse(n):
    rng = np.random.default_rng(n)
    A, M = (X @ X.T + 0.1 * np.eye(n) for X in rng.standard_normal((2, n, n)))
    exact = eigh(A, M, eigvals_only=True)[0]
    value, vector = inverse_eigenpair(lambda x: np.linalg.solve(A, x), lambda x: A @ x, csr_matrix(M))
    assert value <= exact * (1.0 + 1e-9)
    assert value == pytest.approx(exact, rel=1e-5)
    assert vector @ M @ vector == pytest.approx(1.0)
    top = eigh(A, M, eigvals_only=True)[-1]
    most, other = dense_largest_eigenpair(A, M)
    assert top <= most == pytest.approx(top, rel=1e-8)
    assert other @ M @ other == pytest.approx(1.0)
    assert is_definite(1.01 * top * M - A)
    assert not is_definite(0.99 * top * M - A)
    assert not is_definite(np.full((2, 2), np.nan))
    largest = largest_eigenvalue(lambda x: A @ x, csr_matrix(M), lambda x: np.linalg.solve(M, x))
    assert largest == pytest.approx(eigh(A, M, eigvals_only=True)[-1], rel=1e-8)


# Whole eigenspaces, with a basis that does not depend on the one that comes from the eigensolver.


def functions(size):
    return lambda value, count: np.cos(np.outer(np.arange(size), np.sqrt(np.arange(2.0, count + 4.0))))


def test_any_basis_of_the_space_gives_the_same(monkeypatch):
    values = np.array([1.0, 2.0, 2.0, 2.0, 5.0, 5.0, 7.0, *range(8, 100)])
    n, rng = len(values), np.random.default_rng(0)
    first = canonical_eigenpairs(diags(values), identity(n), 6, functions(n))
    compute = eigen.smallest_eigenpairs

    def turned(*arguments, beyond):
        found, vectors = compute(*arguments, beyond=beyond)
        for start, stop in ((1, 4), (4, 6)):
            if stop <= len(found):
                vectors[:, start:stop] @= np.linalg.qr(rng.standard_normal((stop - start,) * 2))[0]
        return found, vectors

    monkeypatch.setattr(eigen, "smallest_eigenpairs", turned)
    for k in (2, 3, 4, 5, 6):
        found, vectors = canonical_eigenpairs(diags(values), identity(n), k, functions(n))
        np.testing.assert_allclose(found, values[:k], rtol=1e-9)
        np.testing.assert_allclose(vectors, first[1][:, :k], rtol=0, atol=1e-9)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), rtol=0, atol=1e-12)


def test_a_space_of_too_many_dimensions_is_refused(monkeypatch):
    values = np.r_[np.ones(6), np.arange(2.0, 100.0)]
    found, _ = canonical_eigenpairs(diags(values), identity(104), 1, functions(104))
    assert found == pytest.approx(1.0)
    monkeypatch.setattr(eigen, "MOST_BEYOND", 2)
    with pytest.raises(fc.SolveError, match="the eigenvalue 1 is more than 2-fold"):
        canonical_eigenpairs(diags(values), identity(104), 1, functions(104))
    # With few unknowns everything is computed anyway.
    found, vectors = canonical_eigenpairs(identity(8), identity(8), 7, functions(8))
    np.testing.assert_allclose(found, 1.0)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(7), rtol=0, atol=1e-10)


def test_components_that_tie_decide_nothing(monkeypatch):
    """The eigenspace of two unit vectors, whose components in W are all of the same size."""
    values = np.array([1.0, 1.0, *range(2, 70)])
    rng, compute = np.random.default_rng(0), eigen.smallest_eigenpairs
    W = np.zeros((70, 4))
    W[:2] = [[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0]]
    found = []
    for _ in range(20):
        turn = np.linalg.qr(rng.standard_normal((2, 2)))[0]

        def turned(*arguments, beyond, turn=turn):
            numbers, vectors = compute(*arguments, beyond=beyond)
            vectors[:, :2] @= turn
            return numbers, vectors

        with monkeypatch.context() as patch:
            patch.setattr(eigen, "smallest_eigenpairs", turned)
            noisy = W * (1.0 + 2.0**-52 * rng.integers(-2, 3, W.shape))
            found.append(canonical_eigenpairs(diags(values), identity(70), 2, lambda v, c, noisy=noisy: noisy)[1])
    for other in found:
        np.testing.assert_allclose(other, found[0], rtol=0, atol=1e-13)


@pytest.mark.parametrize("split", [1e-12, 1e-9, 1e-5, 1e-3])
def test_signs_of_single_vectors_come_from_the_functions(split):
    """Far apart, or so close that they share a space: never by the signs of the solver."""
    values = np.array([1.0, 1.0 + split, *range(2, 70)])
    W = functions(70)(1.0, 2)
    _, vectors = canonical_eigenpairs(diags(values), identity(70), 1 if split > 1e-6 else 2, functions(70))
    assert np.all(np.sum(vectors * W[:, : vectors.shape[1]], axis=0) > 0.0)


def test_few_eigenpairs_take_few_solves():
    """And what they leave out is seen."""
    K, M = plane_pencil(24)
    factor, solves = Factorization(K, definite=True), []

    def solve(b):
        solves.append(b.shape)
        return factor.solve(b)

    none, rng = np.zeros((K.shape[0], 0)), np.random.default_rng(0)
    values, vectors = lanczos.few_eigenpairs(K, M, solve, none, 1, 0, rng)
    assert len(solves) <= 25
    exact = np.sort(np.add.outer(*[line_values(24, np.arange(1, 24))] * 2).ravel())
    assert values == pytest.approx(exact[:1], rel=1e-10)
    assert lanczos.misses(M, solve, vectors, 1.0 / exact[0], rng) is False
    assert lanczos.misses(M, solve, vectors, 1.0 / exact[1], rng) is True


@pytest.mark.parametrize("copies", [2, 3])
def test_several_insulated_components(copies):
    """As many zero eigenvalues as there are components; the others keep their digits."""
    K, M = plane_pencil(12, neumann=True)
    values = np.sort(np.add.outer(*[line_values(12, np.arange(13))] * 2).ravel())
    K, M = (block_diag([part] * copies, format="csr") for part in (K, M))
    exact = np.repeat(values, copies)
    for k in range(1, 23):
        found, vectors = smallest_eigenpairs(K, M, k, beyond=2)
        assert found[:k] == pytest.approx(exact[:k], rel=1e-8, abs=1e-8)
        assert np.allclose(vectors[:, :k].T @ (M @ vectors[:, :k]), np.eye(k), atol=1e-9)


def test_a_missed_copy_is_seen_beside_close_neighbours():
    """A vector between both eigenspaces does not count as one of the smaller eigenvalue, from nearly every start."""
    exact = np.r_[1.0, np.full(2, 1.001), np.linspace(2.0, 90.0, 100)]
    unit, none = identity(len(exact), format="csr"), np.zeros((len(exact), 0))
    starts = map(np.random.default_rng, range(100))
    seen = [lanczos.misses(unit, lambda b: b / exact, none, 1.0, rng) for rng in starts]
    assert seen.count(True) >= 95
