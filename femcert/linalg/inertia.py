"""Proved lower bounds of eigenvalues: the signs of the pivots count eigenvalues, and with an allowance for rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix, diags, identity

from ..errors import SolveError
from .accuracy import EPS
from .eigen import block_krylov, largest_eigenvalue, shift_invert, smallest_eigenpairs
from .factor import pivoted_factors

Array = NDArray[np.float64]

# How far below the computed eigenvalue the proof is tried, in parts of it.
MARGINS = (1e-5, 1e-3, 1e-1, 0.5)
# Eigenvalues closer than this, in parts of them, are not separated.
GAP_TOLERANCE = 1e-5
# Of Lanczos for the least part of a diagonal, of which half is used.
DIAGONAL_TOLERANCE = 1e-3
# Columns, and entries of a sparse factor, that are taken at a time.
BATCH, ENTRIES = 16, 100_000


def eigenvalue_lower_bound(stiffness: Any, mass: Any, index: int) -> float:
    """A proved lower bound of the eigenvalue number `index` (from 1, ascending) of ``A x = lam M x``.

    The eigenvalue is computed, then ``A - s M`` is factorized for a shift ``s`` just below it. If `count_negative`
    finds fewer than `index` negative eigenvalues of a matrix within ``delta W`` of it, where ``W <= M`` is the diagonal
    of Gershgorin, then ``A - (s - delta) M`` has fewer than `index` negative eigenvalues, and ``lam >= s - delta``.
    So the rounding errors of the factorization are part of the bound; those of assembling the matrices are not.

    Raises
    ------
    SolveError
        The eigensolver failed, `mass` is not diagonally dominant, or no shift down to half of the eigenvalue worked.
    """
    weights = dominance(mass)
    if weights is None:
        raise SolveError("the mass matrix is not diagonally dominant; no eigenvalue bound is proved for it")
    value = float(smallest_eigenpairs(stiffness, mass, index)[0][-1])
    why = f"it is {value:.4g}, not positive"
    for margin in MARGINS if value > 0.0 else ():
        shift = (1.0 - margin) * value
        try:
            negative, error = count_negative(stiffness - shift * mass, weights, name="shifted stiffness")
        except SolveError as failure:
            why = str(failure)
            continue
        if negative < index and error < 0.5 * shift:
            return shift - error
        why = f"{negative} eigenvalues lie below {shift:.6g}, up to rounding errors of {error:.2g}"
    raise SolveError(f"eigenvalue number {index} could not be bounded from below: {why}")


def least_share(matrix: Any, guess: float) -> float:
    """A proved c with ``A >= c D`` for a symmetric matrix A with the diagonal D, near a guess; 0 if rounding hides it.

    No eigenvalue of ``A - s D`` is negative, up to the rounding errors of its factorization, which count.
    """
    A = csc_matrix(matrix)
    D, skew = A.diagonal(), abs(A - A.T)
    lost = float((np.asarray(skew.sum(axis=1)).ravel() / D).max())
    for part in (1.0, 0.1, 0.01):
        shift = part * guess
        try:
            negative, error = count_negative((A + A.T) / 2.0 - shift * diags(D), D, name="shifted operator")
        except SolveError:
            continue
        if not negative and error + lost < 0.5 * shift:
            return shift - error - lost
    return 0.0


def separated_eigenpairs(
    stiffness: Any, mass: Any, k: int, *, factor: Any, assembled: Any = None, apart: float = 0.0
) -> tuple[Array, Array, float]:
    """The `k` largest eigenpairs of ``M x = theta A x``, descending, with ``x' A x = 1``, and what bounds the rest.

    Parameters
    ----------
    factor
        Of A, with `solve` and `gram_from_above`.
    assembled, apart
        Where A is an operator: a matrix within ``apart M`` of it.

    Returns
    -------
    tuple
        Eigenvalues, eigenvectors, and ``rest``: ``x' M x <= rest x' A x`` for all x with ``x' A v = 0`` for all of the
        eigenvectors v. It is proved by a count of pivots at the widest gap among the last third of the eigenvalues,
        or, where there is no gap, bounds the largest eigenvalue.

    Raises
    ------
    SolveError
        The eigensolver failed, or it missed an eigenvalue.
    """
    assembled = stiffness if assembled is None else assembled
    try:
        values, vectors = block_krylov(stiffness, mass, k, factor)
        return _separated(stiffness, mass, values, vectors, factor, assembled, apart)
    except SolveError:
        # Rarely: too few distinct eigenvalues, or a multiple one that a block found only in part.
        values, vectors = shift_invert(assembled, mass, k, factor)
        return _separated(stiffness, mass, values, vectors, factor, assembled, apart)


def _separated(
    stiffness: Any, mass: Any, values: Array, vectors: Array, factor: Any, assembled: Any, apart: float
) -> tuple[Array, Array, float]:
    if not values[0] > 0.0:
        raise SolveError(f"the smallest eigenvalue is {values[0]:.2g}, not positive")
    # The last ones may not have converged.
    first, last = max(2 * len(values) // 3, 1), int(0.9 * len(values))
    gaps = np.diff(values[first - 1 : last]) / values[first:last]
    found = first + int(np.argmax(gaps)) if len(gaps) and gaps.max() > GAP_TOLERANCE else 0
    below = values[found - 1] if found else (1.0 - 2.0 * GAP_TOLERANCE) * values[0]
    shift = below + 0.9 * (values[found] - below)
    A = csc_matrix(assembled - shift * mass)
    negative, error = count_negative((A + A.T) / 2.0, diagonal_part(mass), name="shifted form")
    error += apart
    if negative != found or not error < 0.5 * shift:
        raise SolveError(f"{negative} eigenvalues lie below {shift:.6g}, {found} were found, to within {error:.2g}")
    vectors /= np.sqrt(values)
    rest = 1.0 / (shift - error)
    rest += _missed(stiffness, mass, vectors[:, :found], rest, factor)
    return 1.0 / values, vectors, rest


def _missed(stiffness: Any, mass: Any, V: Array, rest: float, factor: Any) -> float:
    """What the residuals of eigenvectors V add to a bound beyond them.

    If ``M - rest A`` has as many positive eigenvalues as V has columns, and ``Q = V' (M - rest A) V`` is positive, then
    ``M - rest A <= R Q^-1 R'`` on what is orthogonal to V in A (Haynsworth), where ``R = M V - A V diag(theta)``.
    """
    if not V.shape[1]:
        return 0.0
    k = V.shape[1]
    misfit, gram, Q = np.empty(V.shape, order="F"), np.empty((k, k)), np.empty((k, k))
    for part in (slice(i, i + BATCH) for i in range(0, k, BATCH)):
        AV, MV = stiffness @ V[:, part], mass @ V[:, part]
        misfit[:, part] = MV - AV * np.sum(V[:, part] * MV, axis=0)
        Q[:, part] = V.T @ (MV - rest * AV)
    for part in (slice(i, i + BATCH) for i in range(0, k, BATCH)):
        gram[:, part] = misfit.T @ factor.solve(misfit[:, part])
    gram = factor.gram_from_above(gram)
    try:
        np.linalg.cholesky(Q)
    except np.linalg.LinAlgError:
        raise SolveError("eigenvectors are too inaccurate to separate their eigenvalues from the others") from None
    return max(float(np.trace(np.linalg.solve(Q, gram))), 0.0)


def diagonal_part(mass: Any) -> Array:
    """A diagonal matrix, as a vector, below a positive definite one that is no worse than its diagonal.

    Gershgorin's, or, where rows are not dominant, half of what Lanczos finds to be the least part of the diagonal.
    """
    weights = dominance(mass)
    if weights is not None:
        return weights
    root = 1.0 / np.sqrt(mass.diagonal())
    scaled = diags(root) @ mass @ diags(root)
    top = float(abs(scaled).sum(axis=1).max())
    reflected = diags(np.full(len(root), top)) - scaled
    reach = largest_eigenvalue(
        lambda x: reflected @ x, identity(len(root)), lambda x: x, tolerance=DIAGONAL_TOLERANCE
    )
    least = top - reach
    if not least > 0.0:
        raise SolveError("a mass matrix is not positive definite to rounding")
    return 0.5 * least * np.asarray(mass.diagonal())


def dominance(mass: Any) -> Array | None:
    """By how much each row is diagonally dominant (Gershgorin); None if one is not."""
    weights = np.asarray(2.0 * mass.diagonal() - abs(mass) @ np.ones(mass.shape[0]))
    return weights if np.all(weights > 0.0) else None


def count_negative(matrix: Any, weights: Array, *, name: str = "matrix") -> tuple[int, float]:
    """Negative eigenvalues of a symmetric matrix near `matrix`, and how near it is.

    With pivots ``D`` on the diagonal, ``L D L'`` has as many negative eigenvalues as ``D`` has negative entries
    (Sylvester). It differs from the matrix by rounding only,

        |A - L D L'| <= gamma |L| |U| + |L| |U - D L'|,    gamma = (row length of L + 8) eps,

    entry by entry (Higham, Accuracy and Stability of Numerical Algorithms, theorem 9.3); call the right side ``B``.

    Returns
    -------
    tuple
        The number of negative eigenvalues of ``L D L'``, and ``delta`` with ``-delta W <= A - L D L' <= delta W``,
        ``W = diag(weights)``: the largest ``(B 1)_i / weights_i``.

    Raises
    ------
    SolveError
        The matrix is not finite or not symmetric, a pivot is zero or was moved off the diagonal, or the factors are
        those of another matrix.
    """
    A = csc_matrix(matrix)
    if abs(A - A.T).max() > 0.0:
        raise SolveError(f"the {name} is not exactly symmetric")
    lu = pivoted_factors(A, name=name)
    if not np.array_equal(lu.perm_r, lu.perm_c):
        raise SolveError(f"the {name} met a zero pivot, so that its pivots do not count eigenvalues")
    # From here on in the order of elimination: P A P' = L U.
    # The permutation is copied, since it would keep all of the factors alive.
    L, U, rows = lu.L, lu.U, lu.perm_r.copy()
    del lu
    pivots = U.diagonal()
    if not np.all(np.isfinite(pivots) & (pivots != 0.0)):
        raise SolveError(f"the {name} has a zero or infinite pivot")
    gamma = (np.bincount(L.indices, minlength=len(pivots)) + 8.0) * EPS
    absolute_L, absolute_U = _absolute(L), _absolute(U)
    order = np.argsort(rows)
    # One product shows factors of another matrix; the allowance is for the product as well.
    x = np.random.default_rng(0).standard_normal(len(pivots))
    missed = np.abs((A @ x[rows])[order] - L @ (U @ x))
    longest = np.bincount(U.indices).max()
    allowed = (gamma + EPS * longest) * (absolute_L @ (absolute_U @ np.abs(x)))
    if not np.all(missed <= 2.0 * allowed):
        raise SolveError(f"the factorization of the {name} is not accurate")
    ones = np.ones(len(pivots))
    size = gamma * (absolute_L @ (absolute_U @ ones))
    del absolute_U
    error = size + absolute_L @ _asymmetry(L, U, pivots)
    return int(np.count_nonzero(pivots < 0.0)), float(np.max(error / weights[order]))


def _asymmetry(L: Any, U: Any, pivots: Array) -> Array:
    """``|U - D L'| 1``, a few columns at a time."""
    rows, result = csr_matrix(L), np.zeros(len(pivots))
    # The last columns are the longest ones.
    ends = np.searchsorted(U.indptr, np.arange(ENTRIES, U.nnz, ENTRIES))
    for part in np.split(np.arange(len(pivots)), np.unique(ends)):
        difference = U[:, part] - csc_matrix((rows[part] @ diags(pivots)).T)
        result += np.asarray(abs(difference).sum(axis=1)).ravel()
    return result


def _absolute(matrix: Any) -> Any:
    """Absolute values of the entries, with the same arrays of indices."""
    return type(matrix)((np.abs(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)
