"""Factorizations, mass solves and eigensolvers: the only room that calls ``scipy.sparse.linalg``.

Every result is checked (pivots, residuals) before it leaves this room.
"""

from .backends import installed_backends, package_of, use_backend
from .eigen import (
    dense_eigenpairs,
    dense_largest_eigenpair,
    inverse_eigenpair,
    is_definite,
    largest_eigenvalue,
    smallest_eigenpairs,
)
from .eigenspaces import canonical_eigenpairs
from .factor import Factorization, factorization_count
from .inertia import diagonal_part, eigenvalue_lower_bound, separated_eigenpairs
from .mass import solve_mass

__all__ = [
    "Factorization",
    "canonical_eigenpairs",
    "dense_eigenpairs",
    "dense_largest_eigenpair",
    "diagonal_part",
    "eigenvalue_lower_bound",
    "factorization_count",
    "installed_backends",
    "inverse_eigenpair",
    "is_definite",
    "largest_eigenvalue",
    "package_of",
    "separated_eigenpairs",
    "smallest_eigenpairs",
    "solve_mass",
    "use_backend",
]
