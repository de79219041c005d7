"""Singular values of a matrix that is known up to a quadratic form, from below."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from ..checks import Array
from ..linalg.accuracy import EPS
from ..residual.block_errors import largest

# Values of t that are tried, relative to a first guess, and how often the best ones are looked at more closely.
TRIED, ROUNDS = np.geomspace(1e-4, 1e4, 17), 3
UNIT = EPS


def lowered_values(values: Array, right: Array, spread: Array) -> Array:
    """Lower bounds of the singular values of F, descending, where ``‖(F - A) x‖² <= x' G x`` for all x.

    From ``‖A x‖² <= (1 + t) ‖F x‖² + (1 + 1/t) x'Gx`` for any t > 0, with the i-th largest eigenvalue,

        sigma_i(F)² >= lam_i(A'A - (1 + 1/t) G) / (1 + t),

    for the smallest one the S-lemma says that the best t is as good as ``min_x (‖A x‖ - (x'Gx)^1/2) / ‖x‖`` gets. So a
    direction that A sees well may be uncertain. Weyl's ``sigma_i(A) - ‖G‖^1/2`` is the case of a G that is the same in
    all directions; the larger one counts.

    Parameters
    ----------
    values, right
        Singular values of A, descending, and right singular vectors (rows).
    spread
        G.

    Returns
    -------
    Array
        They may be negative, and then say nothing.
    """
    size = float(np.sqrt(largest(spread)))
    weyl = values - size
    if not (size > 0.0 and values[-1] > 0.0):
        return weyl
    # In units of A's own singular values, so that small ones keep their digits.
    turned = right @ spread @ right.T
    relative = turned / np.outer(values, values)
    guess = float(np.sqrt(largest(relative)))
    if not guess < 1.0:
        return weyl
    t = guess * TRIED
    for _ in range(ROUNDS):
        found = np.array([_smallest(values, relative, one) for one in t])
        best = int(np.argmax(found))
        low, high = t[max(best - 1, 0)], t[min(best + 1, len(t) - 1)]
        t = np.append(np.geomspace(low, high, 9), t[best])
    one = float(t[-1])
    gram = np.diag(values**2) - (1.0 + 1.0 / one) * turned
    slack = len(values) * UNIT * (values[0] ** 2 + (1.0 + 1.0 / one) * size**2)
    all_values = np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[::-1] - slack, 0.0) / (1.0 + one))
    result = np.maximum(weyl, all_values)
    result[-1] = max(result[-1], _smallest(values, relative, one))
    return np.asarray(np.maximum.accumulate(result[::-1])[::-1])


def _smallest(values: Array, relative: Array, t: float) -> float:
    """``(lam_min(S² - (1 + 1/t) S R S) / (1 + t))^1/2`` from below, S = diag(values); 0 where it is not positive.

    It is ``1 / ((1 + t)^1/2 ‖L^-1 S^-1‖)`` with ``L L' = I - (1 + 1/t) R``.
    """
    k = len(values)
    B = np.eye(k) - (1.0 + 1.0 / t) * (relative + relative.T) / 2.0
    least = float(np.linalg.eigvalsh(B)[0])
    slack = 8.0 * k * UNIT * (1.0 + (1.0 + 1.0 / t) * float(np.trace(relative)))
    if not least > 2.0 * slack:
        return 0.0
    try:
        L = cholesky(B - slack * np.eye(k), lower=True)
    except LinAlgError:
        return 0.0
    norm = float(np.linalg.norm(solve_triangular(L, np.diag(1.0 / values), lower=True), 2))
    return (1.0 - 8.0 * k * UNIT / (least - slack)) / (norm * float(np.sqrt(1.0 + t)))
