"""Eigenpairs of symmetric pencils, checked by their residuals and deterministic in sign."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from ..errors import SolveError
from .factor import Factorization

Array = NDArray[np.float64]

RESIDUAL_TOLERANCE = 1e-8


def smallest_eigenpairs(stiffness: Any, mass: Any, k: int) -> tuple[Array, Array]:
    """The `k` smallest eigenvalues, ascending, and `mass`-orthonormal eigenvectors of ``A x = lam M x``.

    Shift-invert Lanczos about a shift just below zero, so that a singular `stiffness` (Neumann) works too;
    small problems, which ARPACK refuses, are solved densely. Each vector's largest entry is positive.

    Raises
    ------
    SolveError
        Lanczos did not converge, or ``‖A x - lam M x‖ > 1e-8 (‖A x‖ + lam_k ‖M x‖)`` and above rounding for some pair.
    """
    n = stiffness.shape[0]
    if n <= max(2 * k + 2, 60):
        values, vectors = dense_eigenpairs(stiffness, mass)
        if len(values) < k:
            raise SolveError(f"only {len(values)} of {k} eigenvalues are finite to rounding")
        values, vectors = values[:k], vectors[:, :k]
    else:
        values, vectors = _shift_invert(stiffness, mass, k)
    _check_residuals(stiffness, mass, values, vectors)
    return values, _with_fixed_signs(vectors)


def dense_eigenpairs(stiffness: Any, mass: Any, *, shift: float | None = None) -> tuple[Array, Array]:
    """All eigenpairs of a small symmetric pencil ``A x = lam M x``, ascending, `mass`-orthonormal.

    Computed as ``M x = mu (A + shift M) x`` with ``mu = 1 / (lam + shift)``: so the small eigenvalues have small errors
    even where the large ones are huge (graded meshes). Eigenvalues that are infinite to rounding are left out.
    """
    shift = _small_shift(stiffness, mass) if shift is None else shift
    M, shifted = mass.toarray(), (stiffness + shift * mass).toarray()
    # A unit diagonal takes the grading of the mesh out of the rounding errors.
    root = np.sqrt(np.diag(shifted))
    try:
        mu, vectors = eigh(M / np.outer(root, root), shifted / np.outer(root, root))
    except (ValueError, np.linalg.LinAlgError) as error:
        raise SolveError(f"the dense eigensolver failed: {error}") from None
    kept = np.flatnonzero(mu > 1e-14 * np.abs(mu).max())[::-1]
    if not len(kept):
        raise SolveError("the dense eigensolver failed: the mass matrix is not positive definite")
    return 1.0 / mu[kept] - shift, vectors[:, kept] / root[:, None] / np.sqrt(mu[kept])


def _small_shift(stiffness: Any, mass: Any) -> float:
    """Tiny against the smallest nonzero eigenvalue, but enough to make ``A + shift M`` positive definite."""
    return float(1e-6 * stiffness.diagonal().sum() / mass.diagonal().sum() / stiffness.shape[0])


def _shift_invert(stiffness: Any, mass: Any, k: int) -> tuple[Array, Array]:
    shift = -_small_shift(stiffness, mass)
    factor = Factorization(stiffness - shift * mass, definite=True, name="shifted stiffness")
    inverse = LinearOperator(stiffness.shape, matvec=factor.solve, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(stiffness.shape[0])
    try:
        values, vectors = eigsh(stiffness, k=k, M=mass, sigma=shift, OPinv=inverse, v0=start)
    except ArpackError as error:
        raise SolveError(f"the eigensolver did not converge for {k} eigenpairs: {error}") from None
    order = np.argsort(values)
    return values[order], vectors[:, order]


def _check_residuals(stiffness: Any, mass: Any, values: Array, vectors: Array) -> None:
    Ax, Mx = stiffness @ vectors, mass @ vectors
    residual = np.linalg.norm(Ax - Mx * values, axis=0)
    scale = np.linalg.norm(Ax, axis=0) + abs(values[-1]) * np.linalg.norm(Mx, axis=0)
    # For the eigenvalue zero alone both terms are rounding errors; those of A x are of this size.
    scale += 1e-6 * np.linalg.norm(abs(stiffness) @ abs(vectors), axis=0)
    worst = float(np.max(residual / scale))
    if not worst <= RESIDUAL_TOLERANCE:
        raise SolveError(f"an eigenpair has the relative residual {worst:.2g}, above {RESIDUAL_TOLERANCE:g}")


def _with_fixed_signs(vectors: Array) -> Array:
    # The first entry within a hair of the largest decides, so that symmetric modes do not flip by rounding.
    size = np.abs(vectors)
    leading = np.argmax(size >= size.max(axis=0) * (1.0 - 1e-6), axis=0)
    return vectors * np.sign(vectors[leading, np.arange(vectors.shape[1])])
