"""Eigenpairs of symmetric pencils, checked by their residuals; whole eigenspaces with a basis of their own.

An eigensolver returns an eigenvector with any sign, and any basis of an eigenspace of more than one dimension: another
one with other rounding errors, hence with another processor. The first k of its vectors may also cut through a space.
`canonical_eigenpairs` computes the space of the k-th eigenvalue whole, and gives each space the basis that comes
closest to fixed functions W, the polar factor

    V (V' M W) (W' M V V' M W)^-1/2,

which is a smooth function of the space wherever ``V' M W`` is regular; a single vector gets its sign.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from ..errors import SolveError
from .accuracy import EPS, EXACT_TOLERANCE
from .factor import Factorization
from .lanczos import few_eigenpairs, misses

Array = NDArray[np.float64]

RESIDUAL_TOLERANCE = 1e-8
# Up to this size a dense eigenproblem is made by columns.
SMALL = 12
# Columns of a block Krylov space at a time, and for each eigenpair that is wanted.
BLOCK, OVERSAMPLING = 10, 2.6
# The number of eigenvalues computed where one is needed: Lanczos for a single one may stop at a close neighbour.
NEIGHBOURS = 3
# The number of eigenvalues that each restart of Lanczos computes.
AGAIN = 2
# Up to so many eigenpairs all vectors of Lanczos are kept.
FEW = 24
# Inverses of eigenvalues below this part of the largest one are those of infinite eigenvalues.
INFINITE_TOLERANCE = 1e-14
# The residual of Lanczos with an inverse, and the one with which its result, after one inverse step, is a bound.
LANCZOS_TOLERANCE, PAIR_TOLERANCE = 1e-7, 1e-5
# A block that adds less than this part of itself to a Krylov space adds nothing.
SPAN_TOLERANCE = 1e-10
# Of the mean eigenvalue, over the dimension: a shift that hardly moves the smallest one that is not zero.
SHIFT = 1e-6
# Of ``|A| |x|``: what `A x` may be for the eigenvalue zero.
CANCELLED = 1e-6
# Eigenpairs computed beyond those that are wanted: double eigenvalues are common, others are not.
BEYOND, MOST_BEYOND = 2, 128
# Rounding errors of eigenvalues, in parts of trace(A) / trace(M); below so many times that they are taken for zero.
ROUNDING, ZERO = 10.0 * EPS, 1e4
# The least singular value of V' M W, for W of norm one and per dimension, with which W serves. A wave has overlaps of 0
# (by symmetry) or of about 0.1 with modes of its length; those of sines with a constant are not near this number.
REGULAR = 0.025
# Below this no W serves, and seeded random vectors take their place.
FAINT = 1e-4


def smallest_eigenpairs(stiffness: Any, mass: Any, k: int, *, beyond: int = 0) -> tuple[Array, Array]:
    """The `k` smallest eigenvalues, ascending, and `mass`-orthonormal eigenvectors of ``A x = lam M x``.

    Shift-invert Lanczos about a shift just below zero, so that a singular `stiffness` (Neumann) works too;
    small problems, which ARPACK refuses, are solved densely. The signs are those of
    the solver; see `canonical_eigenpairs`.

    Parameters
    ----------
    beyond
        So many more, or as many as there are, not checked.

    Raises
    ------
    SolveError
        Lanczos did not converge, or a relative residual is above `RESIDUAL_TOLERANCE` (see `check_residuals`).
    """
    n, most = stiffness.shape[0], k + beyond
    if n <= max(2 * k + 2, most + 1, 60):
        values, vectors = dense_eigenpairs(stiffness, mass)
        if len(values) < k:
            raise SolveError(f"only {len(values)} of {k} eigenvalues are finite to rounding")
        values, vectors = values[:most], vectors[:, :most]
    else:
        values, vectors = shift_invert(stiffness, mass, most, beyond=beyond)
    check_residuals(stiffness, mass, values[:k], vectors[:, :k])
    return values, vectors


def dense_eigenpairs(stiffness: Any, mass: Any, *, shift: float | None = None) -> tuple[Array, Array]:
    """All eigenpairs of a small symmetric pencil ``A x = lam M x``, ascending, `mass`-orthonormal.

    Computed as ``M x = mu (A + shift M) x`` with ``mu = 1 / (lam + shift)``: so the small eigenvalues have small errors
    even where the large ones are huge (graded meshes). Eigenvalues that are infinite to rounding are left out.
    """
    shift = small_shift(stiffness, mass) if shift is None else shift
    M, shifted = mass.toarray(), (stiffness + shift * mass).toarray()
    # A unit diagonal takes the grading of the mesh out of the rounding errors.
    root = np.sqrt(np.diag(shifted))
    try:
        mu, vectors = eigh(M / np.outer(root, root), shifted / np.outer(root, root))
    except (ValueError, np.linalg.LinAlgError) as error:
        raise SolveError(f"the dense eigensolver failed: {error}") from None
    kept = np.flatnonzero(mu > INFINITE_TOLERANCE * np.abs(mu).max())[::-1]
    if not len(kept):
        raise SolveError("the dense eigensolver failed: the mass matrix is not positive definite")
    return 1.0 / mu[kept] - shift, vectors[:, kept] / root[:, None] / np.sqrt(mu[kept])


def inverse_eigenpair(solve: Any, apply: Any, mass: Any) -> tuple[float, Array]:
    """An estimate of the smallest eigenvalue of ``A x = lam M x``, and its eigenvector with ``x' M x = 1``.

    Lanczos with the inverse of A, which need not be assembled. The residual is part of the result: for the eigenvalue
    nearest to ``1 / nu``, ``1 / lam <= nu + ‖M x - nu A x‖_{A^-1}``. That it is the smallest one is not proved.

    Parameters
    ----------
    solve, apply
        ``A^-1`` and ``A`` on vectors.

    Raises
    ------
    SolveError
        Lanczos did not converge; the message says what was reached.
    """
    n = mass.shape[0]
    if n <= SMALL:
        # ARPACK refuses tiny problems.
        vector = _dense_top(solve, mass)
        return _bounded_below(vector, solve, apply, mass)
    v0 = np.random.default_rng(0).standard_normal(n)
    operator = LinearOperator((n, n), matvec=apply, dtype=np.float64)
    inverse = LinearOperator((n, n), matvec=solve, dtype=np.float64)
    try:
        values, vectors = eigsh(
            operator, k=NEIGHBOURS, M=mass, sigma=0.0, OPinv=inverse, v0=v0, ncv=12, tol=LANCZOS_TOLERANCE
        )
    except ArpackError as error:
        raise SolveError(f"the eigensolver did not converge: {error}") from None
    return _bounded_below(vectors[:, np.argmin(values)], solve, apply, mass)


def _dense_top(solve: Any, mass: Any) -> Array:
    """The leading eigenvector of ``A^-1 M`` for a tiny problem."""
    M = mass.toarray() if hasattr(mass, "toarray") else np.asarray(mass)
    inverse = np.column_stack([solve(column) for column in np.eye(len(M))])
    root = np.linalg.cholesky(M)
    _, vectors = np.linalg.eigh(root.T @ (inverse + inverse.T) @ root / 2.0)
    return np.asarray(np.linalg.solve(root.T, vectors[:, -1]))


def _bounded_below(start: Array, solve: Any, apply: Any, mass: Any) -> tuple[float, Array]:
    # One inverse step takes the noise of large eigenvalues out. Then with x' A x = 1 and nu = x' M x the largest
    # eigenvalue of M x = nu A x is within the residual, in the norm of A^-1, of nu.
    x = solve(mass @ start)
    x = x / np.sqrt(x @ apply(x))
    Mx = mass @ x
    nu = float(x @ Mx)
    residual = Mx - nu * apply(x)
    size = float(np.sqrt(max(residual @ solve(residual), 0.0)))
    if not size <= PAIR_TOLERANCE * nu:
        words = f"has the relative residual {size / nu:.2g}, above {PAIR_TOLERANCE:g}"
        raise SolveError(f"the eigenpair {1.0 / nu:.6g} {words}")
    return 1.0 / (nu + size), x / np.sqrt(nu)


def largest_eigenvalue(apply: Any, mass: Any, solve_mass: Any, *, tolerance: float = EXACT_TOLERANCE) -> float:
    """The largest eigenvalue of ``A x = lam M x`` from the action of A and of ``M^-1``, by Lanczos; from below."""
    n = mass.shape[0]
    start = np.random.default_rng(0).standard_normal(n)
    if n < 6:
        columns = np.column_stack([apply(e) for e in np.eye(n)])
        return float(eigh((columns + columns.T) / 2.0, mass.toarray() if hasattr(mass, "toarray") else mass)[0][-1])
    operator, inverse = (LinearOperator((n, n), matvec=f, dtype=np.float64) for f in (apply, solve_mass))
    try:
        values = eigsh(operator, k=1, M=mass, Minv=inverse, v0=start, tol=tolerance, return_eigenvectors=False)
    except ArpackError as error:
        raise SolveError(f"the eigensolver did not converge: {error}") from None
    return float(values[0])


def dense_largest_eigenpair(stiffness: Array, mass: Array) -> tuple[float, Array]:
    """The largest eigenvalue of a dense symmetric pencil, from above, and its eigenvector with ``x' M x = 1``."""
    n = len(mass)
    A, M = (stiffness + stiffness.T) / 2.0, (mass + mass.T) / 2.0
    try:
        values, vectors = eigh(A, M, subset_by_index=[n - 1, n - 1])
        if not len(values):
            # So it ends where many eigenvalues are the same.
            values, vectors = eigh(A, M)
    except (ValueError, np.linalg.LinAlgError) as error:
        raise SolveError(f"the dense eigensolver failed: {error}") from None
    return float(values[-1]) * (1.0 + 8.0 * n * EPS), vectors[:, -1]


def is_definite(matrix: Array) -> bool:
    """Whether a dense symmetric matrix is positive definite, beyond what rounding may hide."""
    A = (matrix + matrix.T) / 2.0
    least = 8.0 * len(A) * EPS * float(np.abs(np.diag(A)).max())
    try:
        np.linalg.cholesky(A - least * np.eye(len(A)))
    except np.linalg.LinAlgError:
        return False
    return bool(np.all(np.isfinite(A)))


def small_shift(stiffness: Any, mass: Any) -> float:
    """Tiny against the smallest nonzero eigenvalue, but enough to make ``A + shift M`` positive definite."""
    return float(SHIFT * stiffness.diagonal().sum() / mass.diagonal().sum() / stiffness.shape[0])


def shift_invert(
    stiffness: Any, mass: Any, k: int, factor: Any = None, *, beyond: int = 0
) -> tuple[Array, Array]:
    """Lanczos for the `k` smallest eigenpairs, ascending, not checked; by the `factor` of a definite stiffness.

    Of the last ones, `beyond` the first ``k - beyond``, the values matter only.

    From one start vector Lanczos finds one copy of a multiple eigenvalue, and others only by rounding errors, hence on
    some processors. So it starts again beyond what it found, until nothing there is smaller.
    """
    own = factor is None
    shift = -small_shift(stiffness, mass) if own else 0.0
    if own:
        factor = Factorization(stiffness - shift * mass, definite=True, name="shifted stiffness")
    rng, n, wanted = np.random.default_rng(0), stiffness.shape[0], k - beyond

    def lanczos(count: int, V: Array) -> tuple[Array, Array]:
        def beyond(x: Array) -> Array:
            return np.asarray(x - V @ (V.T @ (mass @ x)))

        inverse = LinearOperator(stiffness.shape, matvec=lambda b: beyond(factor.solve(b)), dtype=np.float64)
        start = beyond(rng.standard_normal(n))
        try:
            return eigsh(stiffness, k=count, M=mass, sigma=shift, OPinv=inverse, v0=start)
        except ArpackError as error:
            raise SolveError(f"the eigensolver did not converge for {k} eigenpairs: {error}") from None

    none = np.zeros((n, 0))
    # Solves that end before rounding ask for restarts.
    few = k <= FEW and own and not factor.tolerance
    found = few_eigenpairs(stiffness, mass, factor.solve, none, wanted, k - wanted, rng) if few else None
    if found is not None and _converged(stiffness, mass, found[0][:wanted], found[1][:, :wanted]):
        least = 1.0 / (found[0][wanted - 1] - shift)
        if misses(mass, factor.solve, found[1], least, rng) is False:
            return found[0], _signed(found[1], mass)
        values, vectors = found[0][:wanted], found[1][:, :wanted]
    else:
        values, vectors = lanczos(k, none)
    while vectors.shape[1] + AGAIN < n:
        pairs = few_eigenpairs(stiffness, mass, factor.solve, vectors, AGAIN, 0, rng) if few else None
        more, others = pairs or lanczos(AGAIN, vectors)
        missed = more < values.max() if len(values) >= k else np.ones(len(more), dtype=bool)
        if not missed.any():
            break
        values, vectors = np.append(values, more[missed]), np.column_stack([vectors, others[:, missed]])
    order = np.argsort(values)[:k]
    return values[order], _signed(vectors[:, order], mass)


def _converged(stiffness: Any, mass: Any, values: Array, vectors: Array) -> bool:
    """Whether the residuals are below their tolerance; in the norm in which Lanczos ends they may have been smaller."""
    try:
        check_residuals(stiffness, mass, values, vectors)
    except SolveError:
        return False
    return True


def _signed(vectors: Array, mass: Any) -> Array:
    """With signs that do not depend on how they were found: by their products with a random vector."""
    products = vectors.T @ (mass @ np.random.default_rng(0).standard_normal(len(vectors)))
    return np.asarray(vectors * np.where(products < 0.0, -1.0, 1.0))


def block_krylov(stiffness: Any, mass: Any, k: int, factor: Any) -> tuple[Array, Array]:
    """About the `k` smallest eigenpairs, ascending, by Rayleigh and Ritz on a block Krylov space of ``A^-1 M``.

    Three times faster than Lanczos, since blocks of right-hand sides are solved at once; not checked, the last pairs
    are not accurate, and with few distinct eigenvalues there are fewer of them.
    """
    n = mass.shape[0]
    steps = min(int(np.ceil(OVERSAMPLING * k / BLOCK)), n // BLOCK)
    Q = np.empty((n, steps * BLOCK), order="F")
    block, size = np.random.default_rng(0).standard_normal((n, BLOCK)), 0
    for _ in range(steps):
        grown = _orthonormal(factor.solve(mass @ block), mass, Q[:, :size])
        if grown is None:
            break
        block = Q[:, size : size + BLOCK] = grown
        size += BLOCK
    if not size:
        raise SolveError("the block Krylov space is empty to rounding")
    Q = Q[:, :size]
    projected = np.hstack([Q.T @ (stiffness @ Q[:, i : i + BLOCK]) for i in range(0, size, BLOCK)])
    values, vectors = np.linalg.eigh((projected + projected.T) / 2.0)
    return values[:k], Q @ vectors[:, :k]


def _orthonormal(block: Array, mass: Any, Q: Array) -> Array | None:
    """What a block adds to a space with the basis Q, orthonormal; None if that is nothing to rounding."""
    # Columns that are nearly the same after a solve, such as constants in a seminorm, are told apart first.
    block = np.linalg.qr(block)[0]
    size = float(np.linalg.norm(block))
    for _ in range(2):
        block = block - Q @ (Q.T @ (mass @ block))
        if not np.linalg.norm(block) > SPAN_TOLERANCE * size:
            return None
        try:
            root = np.linalg.cholesky(block.T @ (mass @ block))
        except np.linalg.LinAlgError:
            return None
        block = np.asarray(np.linalg.solve(root, block.T).T)
        size = 0.0
    return block


def check_residuals(stiffness: Any, mass: Any, values: Array, vectors: Array) -> None:
    """Raise `SolveError` where ``‖A x - lam M x‖ > tol (‖A x‖ + lam_k ‖M x‖)`` and above rounding for some pair."""
    Ax, Mx = stiffness @ vectors, mass @ vectors
    residual = np.linalg.norm(Ax - Mx * values, axis=0)
    scale = np.linalg.norm(Ax, axis=0) + abs(values[-1]) * np.linalg.norm(Mx, axis=0)
    # For the eigenvalue zero alone both terms are rounding errors; those of A x are of this size.
    scale += CANCELLED * np.linalg.norm(abs(stiffness) @ abs(vectors), axis=0)
    worst = float(np.max(residual / scale))
    if not worst <= RESIDUAL_TOLERANCE:
        raise SolveError(f"an eigenpair has the relative residual {worst:.2g}, above {RESIDUAL_TOLERANCE:g}")


def canonical_eigenpairs(
    stiffness: Any, mass: Any, k: int, functions: Callable[[float, int], Array]
) -> tuple[Array, Array]:
    """The `k` smallest eigenpairs like `smallest_eigenpairs`, the same with every backend and processor.

    Eigenvalues share a space where neighbours are within ``(r lam)^1/2`` of each other, r being the rounding error of
    an eigenvalue. An eigenvector with a neighbour at that distance is known to ``r / (r lam)^1/2 = (r / lam)^1/2``; a
    vector of a merged space is an eigenvector up to the same. Any other threshold makes one of both larger.

    Parameters
    ----------
    functions
        ``functions(value, count)`` gives at least `count` columns that have no symmetry (but for the first), for a
        space with the eigenvalue `value`. The first `count` neighbours among them that tell all directions of the space
        apart fix its basis.

    Raises
    ------
    SolveError
        As `smallest_eigenpairs`, or the k-th eigenvalue is more than 128-fold.
    """
    values, vectors, spaces = _whole_spaces(stiffness, mass, k)
    for start, stop in spaces:
        V = vectors[:, start:stop]
        W = functions(float(values[start:stop].mean()), stop - start)
        vectors[:, start:stop] = V @ _polar_factor(V, mass, W)
    return values[:k], vectors[:, :k]


def _whole_spaces(stiffness: Any, mass: Any, k: int) -> tuple[Array, Array, list[tuple[int, int]]]:
    """Eigenpairs to beyond the space of the k-th, and where each space up to that one starts and stops."""
    beyond, rounding = BEYOND, ROUNDING * float(stiffness.diagonal().sum() / mass.diagonal().sum())
    while beyond <= MOST_BEYOND:
        values, vectors = smallest_eigenpairs(stiffness, mass, k, beyond=beyond)
        spaces = [space for space in _spaces(values, rounding) if space[0] < k]
        last = spaces[-1][1]
        # Fewer than were asked for: there are no more.
        if last < len(values) or len(values) < k + beyond:
            if last > k:
                check_residuals(stiffness, mass, values[:last], vectors[:, :last])
            return values, vectors, spaces
        beyond *= 4
    raise SolveError(f"the eigenvalue {values[k - 1]:.6g} is more than {MOST_BEYOND}-fold; its eigenspace is not cut")


def _spaces(values: Array, rounding: float) -> list[tuple[int, int]]:
    apart = np.diff(values) > np.sqrt(rounding * np.maximum(values[1:], ZERO * rounding))
    edges = [0, *(np.flatnonzero(apart) + 1).tolist(), len(values)]
    return list(pairwise(edges))


def _polar_factor(V: Array, mass: Any, functions: Array) -> Array:
    """Orthogonal Q, such that the product V Q does not depend on the basis V of the space."""
    m, best = V.shape[1], (0.0, np.eye(V.shape[1]))
    for W in (functions, np.random.default_rng(0).standard_normal((len(V), m))):
        norms = np.sqrt(np.sum(W * (mass @ W), axis=0))
        components = (mass @ V).T @ W / np.where(norms > 0.0, norms, 1.0)
        for start in range(components.shape[1] - m + 1):
            left, sizes, right = np.linalg.svd(components[:, start : start + m])
            if sizes[-1] >= REGULAR / m:
                return np.asarray(left @ right)
            if sizes[-1] > best[0]:
                best = (float(sizes[-1]), left @ right)
        if best[0] > FAINT / m:
            break
    return best[1]
