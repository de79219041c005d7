"""What solves that end early leave in the data, relative to what the sensors see of the class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import issparse

from ..linalg import largest_eigenvalue
from ..linalg.factor import EXACT

if TYPE_CHECKING:
    from .linear import LinearProblem

Array = NDArray[np.float64]

# Up to so many coordinates the forward matrix is dense, and its singular values are computed.
MOST_DENSE = 1500
# An error that is larger than all that is seen; finite, so that its product with zero is zero.
NO_DIGITS = 1e30


def error_in_data(problem: LinearProblem, energies: Any, solves: float = 1.0) -> float:
    """An r with ``‖H e‖ <= r tol ‖H u‖``, for the states u of the class and the errors e of `solves` solves for each.

    A solve ends at ``‖e‖_A <= tol ‖u‖_A``. So ``‖H e‖ <= eta beta tol ‖q‖_Q``, where eta² is the largest eigenvalue of
    ``H A^-1 H'`` and beta² that of `energies` in Q: a matrix above ``‖u‖_A²`` in the coordinates, or a function that
    applies it. What is seen is ``‖H u‖ >= sigma ‖q‖_Q`` with the least singular value sigma of the forward map. Where
    solves end at rounding, and for classes that a ball determines, it is the largest one: r is then relative to the
    norm of the forward map, as rounding errors are. The norm of the data is without weights.

    The forward matrix is made column by column: ``‖H sum c_j e_j‖ <= eta tol sum |c_j| ‖u_j‖_A``, and its square at
    most k times the form of the diagonal of `energies`. Made row by row, with adjoint states, the trace of
    ``H A^-1 H'`` takes the place of its largest eigenvalue.

    Sensors that are far from the sources, or where states cancel, see little of a state, but all of its error.
    """
    sights = problem.factor.gram_bound(problem.sensors.matrix[:, problem.free].T)
    by_columns = problem.parameters.dimension <= problem.observation_count
    eta = float(np.sqrt(_largest_row(sights) if by_columns else sights.diagonal().sum()))
    found = eta * np.sqrt(_largest(problem, energies, by_columns)) / max(_seen(problem), 1e-300)
    return float(min(solves * max(found, _of_offset(problem, eta)), NO_DIGITS))


def _of_offset(problem: LinearProblem, eta: float) -> float:
    """The same factor for the data of the zero parameter."""
    size = float(np.linalg.norm(problem.offset))
    right = problem.source - problem.operator @ problem.boundary.values
    square = _largest_row(problem.factor.gram_bound(right[problem.free][:, None]))
    return eta * float(np.sqrt(square)) / max(size, 1e-300) if square > 0.0 else 0.0


def _largest_row(matrix: Any) -> float:
    """At least the largest eigenvalue of a symmetric matrix (Gershgorin)."""
    return float(abs(matrix).sum(axis=1).max())


def _largest(problem: LinearProblem, energies: Any, by_columns: bool) -> float:
    """At least the largest eigenvalue of a matrix in the coordinates, in the norm of Q; of k times its diagonal."""
    space, k = problem.parameters, problem.parameters.dimension
    if k > MOST_DENSE:
        apply = energies if callable(energies) else energies.dot
        largest = 1.1 * largest_eigenvalue(apply, space.gram, space.solve_gram, tolerance=1e-3)
        # Columns of a local class are nearly independent; how nearly, the condition number of their Gram matrix says.
        return k * space.dependence * largest if by_columns else largest
    dense = energies(np.eye(k)) if callable(energies) else energies
    dense = dense.toarray() if issparse(dense) else dense
    if by_columns:
        dense = k * np.diag(np.diag(dense))
    half = solve_triangular(space.root, dense, trans="T")
    return _largest_row(solve_triangular(space.root, half.T, trans="T"))


def _seen(problem: LinearProblem) -> float:
    space, m = problem.parameters, problem.observation_count
    if space.dimension <= MOST_DENSE:
        sigma = np.linalg.svd(solve_triangular(space.root, problem.forward_matrix().T, trans="T"), compute_uv=False)
        least = space.dimension <= m and space.ball is None and problem.factor.tolerance > EXACT
        return float(sigma[-1] if least else sigma[0])
    # Of the sensors' mean, a lower bound of the largest one.
    row = space.matrix.T @ problem.adjoint_response(np.full((m, 1), 1.0 / np.sqrt(m)))
    return float(np.sqrt(np.sum(row * space.solve_gram(row))))
