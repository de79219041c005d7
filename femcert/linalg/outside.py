"""How much of a vector lies outside of a subspace, relative to another norm: proved from above by a count of pivots."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import bmat, csc_matrix, issparse

from ..errors import SolveError, UncertifiedError
from .accuracy import EPS
from .eigen import dense_largest_eigenpair, largest_eigenvalue
from .factor import Factorization
from .inertia import count_negative, diagonal_part

# Up to this many dofs the eigenproblem is solved densely.
MOST_DENSE = 600
# How far above the computed eigenvalue the proof is tried, in parts of it; what makes a seminorm a norm for Lanczos.
MARGINS, SHIFT = (1e-6, 1e-4, 1e-2, 0.5), 1e-9
# The square of the norm of a direction in which it vanishes, in parts of what it would bound.
VANISHING = 1e-12
# Of Lanczos: the count of pivots proves what comes out.
LANCZOS_TOLERANCE = 1e-8


def largest_outside(form: Any, mass: Any, columns: Any) -> float:
    """``sup ‖(I - P) q‖_M / ‖q‖_L``, P the projection on the columns B that is orthogonal in M; from above.

    For theta above its square ``theta L - M + M B G^-1 B' M`` with ``G = B' M B`` is not negative, so that

        ``[[theta L - M, M B], [B' M, -G]]``

    has as many negative eigenvalues as B has columns (Haynsworth); a count of pivots shows it. Directions n of the span
    in which L vanishes, such as constants, would leave a zero among them. Both norms do not change if q loses its part
    along n, so that ``(n' M q)²`` may be added: with n of norm one as a column of B, half of its entry in G.

    Raises
    ------
    UncertifiedError
        L does not bound what lies outside of the span, or rounding hides it.
    """
    B = csc_matrix(columns)
    MB = csc_matrix(mass @ B)
    G = csc_matrix(B.T @ MB)
    G = (G + G.T) / 2.0
    found = _estimate(form, mass, MB, G)
    if not np.isfinite(found):
        raise UncertifiedError("the norm does not bound what lies outside of the span; take a norm, not a seminorm")
    if found == 0.0:
        return 0.0
    MB, G = _weighed(form, B, MB, G, found)
    weights = np.concatenate([diagonal_part(mass), G.diagonal()])
    why = ""
    for margin in MARGINS:
        theta = (1.0 + margin) * found
        corner = csc_matrix(theta * form - mass)
        try:
            bordered = bmat([[(corner + corner.T) / 2.0, MB], [MB.T, -G]])
            negative, error = count_negative(bordered, weights, name="bordered form")
        except SolveError as failure:
            why = str(failure)
            continue
        if negative == B.shape[1] and error < 1e-2 * min(1.0, theta):
            # With rounding the form is not negative up to error W, and W <= M.
            return float(np.sqrt((theta + 4.0 * error * max(1.0, theta)) / (1.0 - error)))
        why = f"{negative - B.shape[1]} directions exceed it, up to rounding of {error:.2g}"
    raise UncertifiedError(f"the part outside of the span could not be bounded: {why}")


def _weighed(form: Any, B: Any, MB: Any, G: Any, theta: float) -> tuple[Any, Any]:
    """The same span with half the Gram matrix where L vanishes to rounding."""
    values, V = eigh(_dense(B.T @ (form @ B)), _dense(G))
    free = theta * values < VANISHING
    return (csc_matrix(MB @ V), csc_matrix(np.diag(np.where(free, 0.5, 1.0)))) if free.any() else (MB, G)


def _estimate(form: Any, mass: Any, MB: Any, G: Any) -> float:
    """The square of it, by an eigensolver."""
    factor = Factorization(G, definite=True, name="Gram matrix of the columns")

    def outside(x: Any) -> Any:
        """``M (I - P) x``."""
        return mass @ x - MB @ factor.solve(np.asarray(MB.T @ x))

    shifted = csc_matrix(form + SHIFT * mass)
    n = form.shape[0]
    if n <= MOST_DENSE:
        found = dense_largest_eigenpair(_symmetric(outside(np.eye(n))), _dense(shifted))[0]
    else:
        inverse = Factorization(shifted, definite=True, name="form of the norm")
        found = largest_eigenvalue(outside, shifted, inverse.solve, tolerance=LANCZOS_TOLERANCE)
    # What only the shift bounds is not bounded; what is rounding of a whole is nothing.
    if found * SHIFT > 0.1:
        return float("inf")
    return found if found > 1e3 * n * EPS * abs(mass).max() / abs(shifted).max() else 0.0


def _symmetric(matrix: Any) -> Any:
    return (matrix + matrix.T) / 2.0


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if issparse(matrix) else matrix
