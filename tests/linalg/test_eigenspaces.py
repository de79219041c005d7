"""Whole eigenspaces with a basis that does not depend on the one that comes from the eigensolver."""

import numpy as np
import pytest
from scipy.sparse import diags, identity

from femcert.errors import SolveError
from femcert.linalg import canonical_eigenpairs, eigenspaces


def functions(size):
    return lambda value, count: np.cos(np.outer(np.arange(size), np.sqrt(np.arange(2.0, count + 4.0))))


def test_any_basis_of_the_space_gives_the_same(monkeypatch):
    values = np.array([1.0, 2.0, 2.0, 2.0, 5.0, 5.0, 7.0, *range(8, 100)])
    n, rng = len(values), np.random.default_rng(0)
    first = canonical_eigenpairs(diags(values), identity(n), 6, functions(n))
    compute = eigenspaces.smallest_eigenpairs

    def turned(*arguments, beyond):
        found, vectors = compute(*arguments, beyond=beyond)
        for start, stop in ((1, 4), (4, 6)):
            if stop <= len(found):
                vectors[:, start:stop] @= np.linalg.qr(rng.standard_normal((stop - start,) * 2))[0]
        return found, vectors

    monkeypatch.setattr(eigenspaces, "smallest_eigenpairs", turned)
    for k in (2, 3, 4, 5, 6):
        found, vectors = canonical_eigenpairs(diags(values), identity(n), k, functions(n))
        np.testing.assert_allclose(found, values[:k], rtol=1e-9)
        np.testing.assert_allclose(vectors, first[1][:, :k], rtol=0, atol=1e-9)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), rtol=0, atol=1e-12)


def test_functions_that_tell_too_little_are_helped_by_the_entries():
    values = np.array([2.0, 2.0, 2.0, *range(3, 80)])
    for useless in (np.zeros, np.ones):
        _, vectors = canonical_eigenpairs(
            diags(values), identity(80), 2, lambda value, count, make=useless: make((80, count))
        )
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(2), rtol=0, atol=1e-12)


def test_a_space_of_too_many_dimensions_is_refused(monkeypatch):
    values = np.r_[np.ones(6), np.arange(2.0, 100.0)]
    found, _ = canonical_eigenpairs(diags(values), identity(104), 1, functions(104))
    assert found == pytest.approx(1.0)
    monkeypatch.setattr(eigenspaces, "MOST_BEYOND", 2)
    with pytest.raises(SolveError, match="the eigenvalue 1 is more than 2-fold"):
        canonical_eigenpairs(diags(values), identity(104), 1, functions(104))
    # With few unknowns everything is computed anyway.
    found, vectors = canonical_eigenpairs(identity(8), identity(8), 7, functions(8))
    np.testing.assert_allclose(found, 1.0)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(7), rtol=0, atol=1e-10)
