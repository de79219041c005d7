"""Whole eigenspaces with a basis that does not depend on the one that comes from the eigensolver."""

import numpy as np
import pytest
from scipy.sparse import diags, identity

from femcert.errors import SolveError
from femcert.linalg import canonical_eigenpairs, eigen


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


def test_functions_that_tell_too_little_are_helped_by_random_ones():
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
    monkeypatch.setattr(eigen, "MOST_BEYOND", 2)
    with pytest.raises(SolveError, match="the eigenvalue 1 is more than 2-fold"):
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
