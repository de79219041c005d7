"""Counting eigenvalues by pivots: against dense algebra, closed forms, and factors that lie."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pencils import line_pencil, line_values
from scipy.linalg import eigh
from scipy.sparse import csr_matrix, identity, kron, random_array

import femcert as fc
from femcert.linalg import eigenvalue_lower_bound, inertia


@pytest.mark.parametrize("n", [2, 3, 10, 100, 2000])
@pytest.mark.parametrize("neumann", [False, True])
def test_line_in_closed_form(n, neumann):
    K, M = line_pencil(n, neumann=neumann)
    for index in range(1 + neumann, min(4, K.shape[0] + 1)):
        exact = line_values(n, index - neumann)
        # 1e-5 is the margin; on fine lines rounding, also that of the matrices, takes a little more.
        assert (1.0 - 2e-5) * exact < eigenvalue_lower_bound(K, M, index) < exact


def test_double_eigenvalue_with_diagonal_mass():
    K = line_pencil(12)[0] / 12
    square = (kron(K, identity(11)) + kron(identity(11), K)).tocsr()
    values = np.add.outer(*[2.0 - 2.0 * np.cos(np.arange(1, 12) * np.pi / 12)] * 2)
    for index, exact in enumerate(np.sort(values.ravel())[:6], start=1):
        assert (1.0 - 2e-5) * exact < eigenvalue_lower_bound(square, identity(121).tocsr(), index) < exact


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 25), st.integers(0, 2**32 - 1))
def test_against_dense(n, seed):
    """Pivots may be tiny without a search for large ones: then delta says how little the count means."""
    rng = np.random.default_rng(seed)
    A = random_array((n, n), density=0.3, rng=rng).toarray() - 0.5 * np.eye(n)
    A = A + A.T + np.diag(rng.standard_normal(n))
    weights = 10.0 ** rng.uniform(-2, 2, n)
    negative, delta = inertia.count_negative(csr_matrix(A), weights)
    values = eigh(A, np.diag(weights), eigvals_only=True)
    slack = delta + 1e-12 * np.abs(values).max()
    assert np.sum(values < -slack) <= negative <= np.sum(values < slack)


def test_delta_covers_what_the_factors_miss(monkeypatch):
    """``A - L D L'`` in extended precision; no weight is mistaken for another."""
    kept = []
    genuine = inertia.pivoted_factors
    monkeypatch.setattr(inertia, "pivoted_factors", lambda *a, **k: kept.append(genuine(*a, **k)) or kept[-1])
    rng = np.random.default_rng(0)
    for _ in range(30):
        A = random_array((30, 30), density=0.15, rng=rng).toarray() * rng.standard_normal((30, 30))
        A = A + A.T + np.diag(10.0 ** rng.uniform(-7, 0, 30))
        weights = 10.0 ** rng.uniform(-4, 4, 30)
        delta = inertia.count_negative(csr_matrix(A), weights)[1]
        p = np.argsort(kept[-1].perm_r)
        L, D = kept[-1].L.toarray().astype(np.longdouble), np.diag(kept[-1].U.diagonal()).astype(np.longdouble)
        missed = (A[np.ix_(p, p)] - L @ D @ L.T).astype(float)
        values = eigh(missed, np.diag(weights[p]), eigvals_only=True)
        assert np.abs(values).max() <= delta <= 1e4 * np.abs(values).max()


def test_rounding_errors_are_paid_for(monkeypatch):
    K, M = line_pencil(30)
    monkeypatch.setattr(inertia, "count_negative", lambda *_, **__: (0, 0.25))
    assert eigenvalue_lower_bound(K, M, 1) == pytest.approx((1.0 - 1e-5) * line_values(30, 1) - 0.25, rel=1e-9)
    monkeypatch.setattr(inertia, "count_negative", lambda *_, **__: (0, 8.0))
    with pytest.raises(fc.SolveError, match=r"up to rounding errors of 8"):
        eigenvalue_lower_bound(K, M, 1)


@pytest.mark.parametrize(
    ("A", "message"),
    [
        ([[1.0, 2.0], [0.0, 1.0]], "not exactly symmetric"),
        ([[0.0, 1.0], [1.0, 0.0]], "zero pivot|singular"),
        ([[1.0, 1.0], [1.0, 1.0]], "zero|singular"),
        ([[1.0, 0.0], [0.0, np.nan]], "NaN"),
    ],
)
def test_refused(A, message):
    with pytest.raises(fc.SolveError, match=message):
        inertia.count_negative(csr_matrix(A), np.ones(2))


class Lying:
    """Factors of another matrix."""

    def __init__(self, factors):
        self.perm_r, self.perm_c, self.U = factors.perm_r, factors.perm_c, factors.U
        self.L = factors.L.copy()
        self.L.data *= 1.0 + 1e-9


def test_wrong_factors_are_refused(monkeypatch):
    K, M = line_pencil(50)
    genuine = inertia.pivoted_factors
    monkeypatch.setattr(inertia, "pivoted_factors", lambda *a, **k: Lying(genuine(*a, **k)))
    with pytest.raises(fc.SolveError, match="not accurate"):
        inertia.count_negative(K, np.ones(49))
    with pytest.raises(fc.SolveError, match="could not be bounded from below: the factorization"):
        eigenvalue_lower_bound(K, M, 1)


def test_no_bound_without_a_positive_eigenvalue_or_a_dominant_mass():
    K, M = line_pencil(20, neumann=True)
    with pytest.raises(fc.SolveError, match="could not be bounded"):
        eigenvalue_lower_bound(K, M, 1)
    with pytest.raises(fc.SolveError, match="not diagonally dominant"):
        eigenvalue_lower_bound(K, K, 1)


@pytest.mark.parametrize("factor", [1.02, 1.3, 1.9, 5.0])
def test_a_missed_eigenvalue_is_found_out(monkeypatch, factor):
    K, M = line_pencil(30)
    monkeypatch.setattr(inertia, "smallest_eigenpairs", lambda *_: (np.array([factor * line_values(30, 1)]), None))
    if factor < 2.0:
        assert 0.5 * line_values(30, 1) < eigenvalue_lower_bound(K, M, 1) < line_values(30, 1)
    else:
        with pytest.raises(fc.SolveError, match="1 eigenvalues lie below"):
            eigenvalue_lower_bound(K, M, 1)
