"""Proved lower bounds of eigenvalues: the signs of the pivots count eigenvalues, and rounding is paid for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, diags

from ..errors import SolveError
from .eigen import smallest_eigenpairs
from .factor import lu_factors

Array = NDArray[np.float64]

# How far below the computed eigenvalue the proof is tried, in parts of it.
MARGINS = (1e-5, 1e-3, 1e-1, 0.5)


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
    weights = 2.0 * mass.diagonal() - abs(mass) @ np.ones(mass.shape[0])
    if not np.all(weights > 0.0):
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
    lu = lu_factors(A, symmetric=True, name=name)
    if not np.array_equal(lu.perm_r, lu.perm_c):
        raise SolveError(f"the {name} met a zero pivot, so that its pivots do not count eigenvalues")
    # From here on in the order of elimination: P A P' = L U.
    L, U = lu.L.tocsr(), lu.U.tocsr()
    pivots = U.diagonal()
    if not np.all(np.isfinite(pivots) & (pivots != 0.0)):
        raise SolveError(f"the {name} has a zero or infinite pivot")
    gamma = (np.diff(L.indptr) + 8.0) * np.finfo(float).eps
    absolute_L, absolute_U = abs(L), abs(U)
    order = np.argsort(lu.perm_r)
    # One product shows factors of another matrix; the allowance is for the product as well.
    x = np.random.default_rng(0).standard_normal(len(pivots))
    missed = np.abs((A @ x[lu.perm_r])[order] - L @ (U @ x))
    allowed = (gamma + np.finfo(float).eps * np.diff(U.indptr).max()) * (absolute_L @ (absolute_U @ np.abs(x)))
    if not np.all(missed <= 2.0 * allowed):
        raise SolveError(f"the factorization of the {name} is not accurate")
    ones = np.ones(len(pivots))
    asymmetry = abs(U - diags(pivots) @ L.T)
    error = gamma * (absolute_L @ (absolute_U @ ones)) + absolute_L @ (asymmetry @ ones)
    return int(np.count_nonzero(pivots < 0.0)), float(np.max(error / weights[order]))
