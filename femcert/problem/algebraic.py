"""What solves that end early leave in the data, relative to what the sensors see of the class."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import identity

from ..linalg import largest_eigenvalue
from ..linalg.accuracy import EXACT_TOLERANCE

if TYPE_CHECKING:
    from .linear import LinearProblem

Array = NDArray[np.float64]

# Up to so many coordinates the forward matrix is dense, and its singular values are computed.
MOST_DENSE = 1500
# What is taken for the largest eigenvalue, over what Lanczos finds of it with solves to four digits.
CAUTION = 1.1
# An error that is larger than all that is seen; finite, so that its product with zero is zero.
NO_DIGITS = 1e30


def error_in_data(problem: LinearProblem, energies: Callable[[Array], Array], solves: float = 1.0) -> float:
    """An r with ``‖H e‖ <= r tol ‖H u‖``, for the states u of the class and the errors e of `solves` solves for each.

    A solve ends at ``‖e‖_A <= tol ‖u‖_A``. So ``‖H e‖ <= eta beta tol ‖q‖_Q``, where eta² is the largest eigenvalue of
    ``H A^-1 H'`` and beta² that of `energies` in Q, a function that applies the matrix of ``‖u‖_A²`` in coordinates.
    What is seen is ``‖H u‖ >= sigma ‖q‖_Q`` with the least singular value sigma of the forward map. Where solves end at
    rounding, and for classes that a ball determines, it is the largest one: r is then relative to the norm of the
    forward map, as rounding errors are. The norm of the data is without weights.

    The forward matrix is made column by column: ``‖H sum c_j e_j‖ <= eta tol sum |c_j| ‖u_j‖_A``, and the square of
    that sum is at most k beta² times the condition number of the Gram matrix of the class. Made row by row, with
    adjoint states, the trace of ``H A^-1 H'`` takes the place of its largest eigenvalue.

    Sensors that are far from the sources, or where states cancel, see little of a state, but all of its error.
    """
    space, H = problem.parameters, problem.sensors.matrix[:, problem.free]
    m, k = H.shape[0], space.dimension
    sights = largest_eigenvalue(lambda y: H @ problem.factor.rough_solve(H.T @ y), identity(m), np.copy, tolerance=1e-2)
    sources = largest_eigenvalue(energies, space.gram, space.solve_gram, tolerance=1e-2)
    by_columns = k <= problem.observation_count
    eta = CAUTION * float(np.sqrt(sights if by_columns else m * sights))
    beta = CAUTION * float(np.sqrt(k * space.dependence * sources if by_columns else sources))
    found = max(eta * beta / max(_seen(problem), 1e-300), _of_offset(problem, eta))
    return float(min(solves * found, NO_DIGITS))


def _of_offset(problem: LinearProblem, eta: float) -> float:
    """The same factor for the data of the zero parameter."""
    right = (problem.source - problem.operator @ problem.boundary.values)[problem.free]
    energy = CAUTION * float(np.sqrt(max(right @ problem.factor.rough_solve(right), 0.0)))
    return eta * energy / max(float(np.linalg.norm(problem.offset)), 1e-300) if right.any() else 0.0


def _seen(problem: LinearProblem) -> float:
    space, m = problem.parameters, problem.observation_count
    if space.dimension <= MOST_DENSE:
        sigma = np.linalg.svd(solve_triangular(space.root, problem.matrix.T, trans="T"), compute_uv=False)
        least = space.dimension <= m and space.ball is None and problem.factor.tolerance > EXACT_TOLERANCE
        return float(sigma[-1] if least else sigma[0])
    # Of the sensors' mean, a lower bound of the largest one.
    row = space.matrix.T @ problem.adjoint(np.full((m, 1), 1.0 / np.sqrt(m)))
    return float(np.sqrt(np.sum(row * space.solve_gram(row))))
