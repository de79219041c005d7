"""One sparse factorization per operator, reused for every right-hand side; SciPy's SuperLU for every matrix."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary, ref

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, diags, issparse
from scipy.sparse.linalg import splu

from ..errors import SolveError, UncertifiedError
from ..timing import stage
from . import backends
from .accuracy import EPS, EXACT_TOLERANCE, gamma, norms_above, solve_rounding
from .backends import Choice, choose
from .cholmod import Cholmod
from .multigrid import Multigrid
from .pardiso import Pardiso

Array = NDArray[np.float64]

# Beyond this estimate of the condition number a solution has no digits left.
SINGULAR_CONDITION = 1e14
# Places of entries are counted in 32 bits.
MOST_ENTRIES = 2**31 - 1
# Of one product with a random vector: beyond it, the two triangles of a matrix are not the same but for rounding.
SYMMETRY_TOLERANCE = 1e-10
# Residual of a solve with a random vector, relative to both of its sides, with which factors serve.
PROBE_TOLERANCE = 1e-8
# An iteration may end, for rounding, at so many times the machine epsilon and the condition number.
FLOOR = 32.0 * EPS
# The estimate of ``‖S^-1‖`` comes from below, rarely by more than a factor of two.
CAUTION = 2.0
# Operations on an entry of a residual beside the products: the difference, and the rest for good measure.
BESIDE = 2
# SciPy hands out the pivots only with a copy of the factors, kept for good; up to so many entries that is cheap.
PIVOTS_READ = 2_000_000


_made = 0


def factorization_count() -> int:
    """How many factorizations this process has made; a difference of two calls measures reuse."""
    return _made


def pivoted_factors(matrix: Any, *, name: str) -> Any:
    """SuperLU factors of a symmetric matrix, with pivots on the diagonal unless one is exactly zero."""
    _check(matrix, name)
    factors = _lu_factors(matrix, symmetric=True, name=name)
    _count()
    return factors


def _check(matrix: Any, name: str) -> None:
    if matrix.shape[0] != matrix.shape[1]:
        raise SolveError(f"the {name} has shape {matrix.shape}; expected a square matrix")
    if not matrix.shape[0]:
        raise SolveError(f"the {name} has no unknowns")
    if np.iscomplexobj(matrix):
        raise SolveError(f"the {name} is complex; expected real numbers")
    if not np.all(np.isfinite(matrix.data)):
        raise SolveError(f"the {name} has NaN or infinite entries")
    if matrix.nnz > MOST_ENTRIES:
        raise SolveError(f"the {name} has {matrix.nnz} entries; expected at most {MOST_ENTRIES}, as the solvers count")


def _count() -> None:
    global _made
    _made += 1


class Factorization:
    """Factors of a sparse matrix, checked for singularity; or, where these would not fit, an iteration in their place.

    Parameters
    ----------
    matrix
        Square sparse matrix.
    definite
        True where the matrix is known to be symmetric positive definite: two to four times faster, and more
        with an optional backend (`femcert.linalg.use_backend`).
    name
        What the matrix is, for error messages.
    to_rounding
        True where the caller accounts for no error but rounding: an iteration then does not end at the tolerance that
        `use_backend` was given, but at the least possible one.

    Attributes
    ----------
    condition
        Estimate of the condition number of the matrix scaled to a unit diagonal, from below but rarely by more than a
        factor of two.
    size
        The largest row sum of the matrix scaled to a unit diagonal.
    least
        A lower bound of the smallest eigenvalue of the matrix A scaled to a unit diagonal, ``x' A x >= least x' D x``.
    proven
        Whether it is one that was given (`bound_least`); else it is an estimate.
    backend
        What solves: ``"superlu"``, ``"pardiso"``, ``"cholmod"`` or ``"multigrid"``.

    Raises
    ------
    SolveError
        The matrix is not square, not finite or singular to rounding, or ``definite=True`` was wrong. A matrix that is
        not symmetric is always refused; an indefinite one always by PARDISO and CHOLMOD, by SuperLU where the factors
        are small enough to read the pivots, else if a seeded random vector shows it.
    """

    def __init__(
        self, matrix: Any, *, definite: bool, name: str = "operator", to_rounding: bool = False
    ) -> None:
        A = csc_matrix(matrix)
        _check(A, name)
        if not A.has_canonical_format:
            # SuperLU sorts and sums where the entries are; these are the caller's.
            A = A.copy()
            A.sum_duplicates()
        # The libraries read the memory as it is.
        A = A.astype(np.float64, copy=False)
        self.name = name
        self.symmetric = definite
        # What overflows fails a check.
        with np.errstate(over="ignore", invalid="ignore"):
            b = np.random.default_rng(0).standard_normal(A.shape[0])
            magnitudes = csc_matrix((np.abs(A.data), A.indices, A.indptr), shape=A.shape)
            size = float(magnitudes.sum(axis=0).max()) or 1.0
            diagonal = magnitudes.diagonal()
            # A zero on the diagonal is no matter of units, and singular or indefinite.
            self._root = root = np.sqrt(diagonal) if np.all(diagonal > 0.0) else np.ones(len(diagonal))
            self.size = float((magnitudes @ (1.0 / root) / root).max()) * (1.0 + len(root) * EPS)
            skew = np.linalg.norm((A @ (b / root) - A.T @ (b / root)) / root)
            if definite and not skew <= SYMMETRY_TOLERANCE * self.size * np.linalg.norm(b):
                raise SolveError(f"the {name} is not symmetric; expected definite=False for it")
            choice = choose(A) if definite else Choice("superlu")
            if to_rounding:
                choice = Choice(choice.name)
            with stage("factorization", f"{name}, {A.shape[0]:,} unknowns, {choice.name}"):
                self._solver = _solver(A, choice, definite, name)
            self.backend = choice.name
            _count()
            self._matrix, self._longest = A, int(np.diff(A.indptr).max())
            self.condition, weak = self._scaled_condition()
            self.least, self.proven = self.size / (CAUTION * self.condition), False
            self._probe(A, b, size)
            if self.tolerance:
                # The state with the largest rounding error; the error at which it ends is part of the tolerance.
                self._solver.solve(self._root * weak)

    @property
    def loss(self) -> float:
        """About the largest relative error of a solve: `rounding`, and ``tol kappa^1/2`` of an iteration."""
        return self.rounding + self.tolerance * float(np.sqrt(self.condition))

    @property
    def rounding(self) -> float:
        """What rounding takes of a solve, ``8 eps kappa`` with the condition number kappa."""
        return solve_rounding(self.condition)

    @property
    def tolerance(self) -> float:
        """Relative energy error at which solves end, but for rounding; 0 where there are factors.

        Where rounding ends an iteration sooner, the largest of these errors so far.
        """
        return float(self._solver.tolerance)

    def exact(self, purpose: str) -> Factorization:
        """Itself, if its solves end at rounding; an `UncertifiedError` for a purpose that knows no other error."""
        if not self.tolerance <= EXACT_TOLERANCE:
            words = f"solves with the {self.name} end at the relative error {self.tolerance:g}"
            raise UncertifiedError(f"{words}; {purpose} needs them to rounding (use_backend with a smaller tolerance)")
        return self

    def gram_from_above(self, gram: Array) -> Array:
        """A symmetric matrix above ``C' A^-1 C``, made of ``gram = C' X`` with X from `solve`.

        The entries of the error are at most ``tol ‖x_i‖_A ‖x_j‖_A``, so that its norm is at most tol times the trace.
        """
        middle = (gram + gram.T) / 2.0
        return np.asarray(middle + 2.0 * self.tolerance * float(np.trace(middle)) * np.eye(len(middle)))

    @property
    def diagonal(self) -> Array:
        """Sizes of the diagonal entries of the matrix; ones where some are zero."""
        return self._root**2

    @cached_property
    def skew(self) -> float:
        """At least the norm of ``A - A'``, scaled to a unit diagonal of A: the largest row sum; 0 for a symmetric A."""
        difference = abs(self._matrix - self._matrix.T)
        return float((difference @ (1.0 / self._root) / self._root).max()) * (1.0 + len(self._root) * EPS)

    def bound_least(self, value: float) -> None:
        """Take a proved `least`, if it is positive."""
        if value > 0.0 and not (self.proven and self.least >= value):
            self.least, self.proven = value, True

    def energy_errors(self, x: Array, right: Array, summed: Array | None = None, terms: int = 0) -> Array:
        """What ``‖x - A^-1 b‖_A`` is at most, for columns x and b, with a symmetric positive definite A.

        With the residual ``r = b - A x`` and the diagonal D of A, ``‖x - A^-1 b‖_A² = r' A^-1 r <= r' D^-1 r / least``.
        What A lacks of symmetry counts as part of r, so that it holds for ``A^-T b`` as well. As computed, r is off by
        at most ``gamma (|A| |x| + |b|)``, which counts likewise; and the norm of ``D^-1/2 |A| D^-1/2`` is at most its
        largest row sum. Where an iteration solves, ``tol ‖x‖_A`` may take the place of what was computed of r.

        Parameters
        ----------
        x, right
            As computed, ``(n, columns)``.
        summed, terms
            Where `right` itself was computed as sums: the sums of the sizes of their terms, and how many there are.
        """
        root = self._root[:, None]
        product = self._matrix @ x
        found = norms_above((right - product) / root) / np.sqrt(self.least)
        if self.tolerance:
            energies = np.sqrt(np.maximum(np.sum(x * product, axis=0), 0.0))
            found = np.minimum(found, self.tolerance / (1.0 - self.tolerance) * energies)
        sizes = norms_above(root * x)
        lost = gamma(self._longest + BESIDE) * (self.size * sizes + norms_above(right / root)) + self.skew * sizes
        if summed is not None:
            lost += gamma(terms) * norms_above(summed / root)
        return np.asarray(found + lost / np.sqrt(self.least))

    def energies(self, x: Array) -> Array:
        """``‖x‖_A`` for columns x."""
        return np.asarray(np.sqrt(np.maximum(np.sum(x * (self._matrix @ x), axis=0), 0.0)))

    def energies_above(self, x: Array) -> Array:
        """Upper bounds of the energy of columns x, whatever the signs of their entries."""
        return np.asarray(np.sqrt(self.size) * norms_above(self._root[:, None] * x))

    def dual_norms_above(self, functionals: Any) -> Array:
        """Upper bounds of ``‖f‖_{A^-1}`` for columns f, dense or sparse, ``(f' D^-1 f / least)^1/2``."""
        scaled = diags(1.0 / self._root) @ functionals if issparse(functionals) else functionals / self._root[:, None]
        return np.asarray(norms_above(scaled) / np.sqrt(self.least))

    def dual_norms(self, functionals: Array) -> Array:
        """The same, sharper, by a solve for each of them: ``‖f‖ <= (f' z)^1/2 + ‖z - A^-1 f‖_A``."""
        z = self.solve(functionals)
        squares = np.sum(functionals * z, axis=0)
        lost = gamma(len(z)) * np.sum(np.abs(functionals) * np.abs(z), axis=0)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0) + lost) + self.energy_errors(z, functionals))

    def rough_solve(self, right: Array) -> Array:
        """``A^-1 right`` to four digits in energy where there is an iteration, for sizes and not for results."""
        return np.asarray(self._solver.rough_solve(right))

    def _probe(self, A: Any, b: Array, size: float) -> None:
        # Solves with a seeded vector show unstable pivots (residual) and a null space (huge solution). The matrix is
        # scaled, so that neither its units nor tiny or huge entries matter.
        if not self.condition < SINGULAR_CONDITION:
            raise SolveError(f"the {self.name} is singular to rounding (condition number {self.condition:.1g})")
        if isinstance(self._solver, Multigrid):
            self._solver.floor = FLOOR * self.condition
        x = self._solver.solve(size * b)
        # An iteration has checked its own residual.
        misfit = 0.0 if self.tolerance else np.linalg.norm((A @ x) / size - b)
        if not misfit <= PROBE_TOLERANCE * (np.linalg.norm(x) + np.linalg.norm(b)):
            raise SolveError(f"the factorization of the {self.name} is not accurate")
        if self.symmetric and not (b @ x > 0.0 and self._solver.is_positive()):
            raise SolveError(f"the {self.name} is not positive definite")

    def _scaled_condition(self) -> tuple[float, Array]:
        # Elimination does not depend on a scaling of rows and columns; neither does this number: ‖S‖ ‖S^-1‖ for
        # S = D^-1/2 A D^-1/2 with the diagonal D of A, the latter by inverse iteration.
        root, growth = self._root, 0.0
        x = np.random.default_rng(1).standard_normal(len(root))
        for step in range(3):
            x = x / np.linalg.norm(x)
            x = root * self._solver.rough_solve(root * x, not self.symmetric and step % 2 == 1)
            length = float(np.linalg.norm(x))
            if not (np.isfinite(length) and length > 0.0):
                return np.inf, x
            growth = max(growth, length)
        return self.size * growth, x / np.linalg.norm(x)

    def solve(self, right: Array) -> Array:
        """``A^-1 right`` for a vector or for columns, all columns at once."""
        return self._solve(right, False)

    def solve_transposed(self, right: Array) -> Array:
        """``A^-T right``."""
        return self._solve(right, not self.symmetric)

    def _solve(self, right: Array, transposed: bool) -> Array:
        shape = np.shape(right)
        if len(shape) not in (1, 2) or shape[0] != len(self._root):
            n = len(self._root)
            raise SolveError(f"a right-hand side has shape {shape}; the {self.name} expects ({n},) or ({n}, columns)")
        result = self._solver.solve(right, transposed)
        if not np.all(np.isfinite(result)):
            raise SolveError(f"a solve with the {self.name} overflowed or met NaN")
        return np.asarray(result)


class SharedFactors:
    """Makes factorizations like the class itself, or returns the one of an equal matrix that is still in use.

    Matrices are compared by a digest of their entries, which costs about as much as one product with them. Factors
    that no problem refers to any more are released.
    """

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[Any, ...], Factorization] = WeakValueDictionary()
        # The matrix that came last, by identity, and its digest.
        self._last: tuple[Callable[[], Any], Any] = (lambda: None), None

    def __call__(
        self, matrix: Any, *, definite: bool, name: str = "operator", to_rounding: bool = False
    ) -> Factorization:
        """See `Factorization`."""
        if self._last[0]() is not matrix:
            self._last = ref(matrix), _digest(csc_matrix(matrix))
        choice = choose(matrix) if definite else None
        key = (*self._last[1], definite, to_rounding, choice)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Factorization(matrix, definite=definite, name=name, to_rounding=to_rounding)
        return found


def _digest(A: Any) -> tuple[Any, ...]:
    digest = hashlib.blake2b(digest_size=32)
    for part in (A.data, A.indices, A.indptr):
        digest.update(part)
    return A.shape, A.dtype.str, digest.digest()


def _solver(A: Any, choice: Choice, definite: bool, name: str) -> Any:
    if choice.name == "pardiso":
        return Pardiso(A, name=name)
    if choice.name == "cholmod":
        return Cholmod(A, name=name)
    if choice.name == "multigrid":
        return Multigrid(A, name=name, tolerance=choice.tolerance)
    return _SuperLU(A, symmetric=definite, name=name)


def _lu_factors(matrix: Any, *, symmetric: bool, name: str) -> Any:
    """SuperLU factors of a finite square matrix; `symmetric`: with pivots on the diagonal, unless one is exactly zero.

    Raises
    ------
    SolveError
        A pivot vanishes, or the factors do not fit in memory: they are not begun where an estimate says so.
    """
    needed, free = backends.factor_bytes(matrix, "superlu"), backends.free_bytes()
    if needed > free:
        size = f"about {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free"
        raise SolveError(f"the factors of the {name} ({matrix.shape[0]} unknowns) would take {size}")
    options: dict[str, Any] = {"permc_spec": "COLAMD"}
    if symmetric:
        options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    try:
        return splu(matrix, **options)
    except RuntimeError as error:
        raise SolveError(f"the {name} ({matrix.shape[0]} unknowns) is singular: {error}") from None
    except MemoryError:
        raise SolveError(f"the factors of the {name} ({matrix.shape[0]} unknowns) do not fit in memory") from None


class _SuperLU:
    """LU factors of a sparse matrix; the fill-reducing ordering of ``A + A'`` where it is symmetric."""

    # Of the relative error of a solve, what is not rounding.
    tolerance = 0.0

    def __init__(self, matrix: Any, *, symmetric: bool, name: str) -> None:
        self._lu = _lu_factors(matrix, symmetric=symmetric, name=name)

    def solve(self, right: Array, transposed: bool = False) -> Array:
        """``A^-1 right`` or ``A^-T right``."""
        return np.asarray(self._lu.solve(np.asfortranarray(right, dtype=np.float64), "T" if transposed else "N"))

    rough_solve = solve

    def is_positive(self) -> bool:
        """Whether the pivots are positive, as far as they are read."""
        # Pivots on the diagonal have the signs of the eigenvalues (Sylvester); only a zero one is moved off it.
        if not np.array_equal(self._lu.perm_r, self._lu.perm_c):
            return False
        return self._lu.nnz > PIVOTS_READ or bool(np.all(self._lu.U.diagonal() > 0.0))
