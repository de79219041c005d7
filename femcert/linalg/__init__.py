"""Factorizations, mass solves and eigensolvers: the only room that calls ``scipy.sparse.linalg``.

Every result is checked (pivots, residuals) before it leaves this room.
"""

from .accuracy import EPS, dense_rounding, solve_rounding
from .backends import installed_backends, package_of, use_backend
from .bounded import bounded_step
from .eigen import (
    canonical_eigenpairs,
    dense_eigenpairs,
    dense_largest_eigenpair,
    inverse_eigenpair,
    is_definite,
    largest_eigenvalue,
    smallest_eigenpairs,
)
from .factor import Factorization, SharedFactors, factorization_count
from .inertia import diagonal_part, eigenvalue_lower_bound, least_share, separated_eigenpairs
from .mass import solve_mass

__all__ = [
    "EPS",
    "Factorization",
    "SharedFactors",
    "bounded_step",
    "canonical_eigenpairs",
    "dense_eigenpairs",
    "dense_largest_eigenpair",
    "dense_rounding",
    "diagonal_part",
    "eigenvalue_lower_bound",
    "factorization_count",
    "installed_backends",
    "inverse_eigenpair",
    "is_definite",
    "largest_eigenvalue",
    "least_share",
    "package_of",
    "separated_eigenpairs",
    "smallest_eigenpairs",
    "solve_mass",
    "solve_rounding",
    "use_backend",
]
