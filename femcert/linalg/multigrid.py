"""Conjugate gradients with pyamg's smoothed aggregation: no factors, for matrices whose factors do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh_tridiagonal
from scipy.sparse import csr_matrix, diags

from ..errors import SolveError

Array = NDArray[np.float64]

MOST_STEPS = 400
# For condition numbers.
ROUGH_TOLERANCE = 1e-4
# The last Ritz value is the smallest eigenvalue from above; so much of it is taken for a lower bound.
CAUTION = 0.5
# Where rounding ends a solve, the residual is as large as its own rounding error, and the error this much larger.
UNSEEN = 4.0


class Multigrid:
    """Solves with a sparse symmetric positive definite matrix, each to a known error in its norm.

    With the preconditioner B and the smallest eigenvalue theta of ``B A``, the error of x with residual r is

        ‖A^-1 b - x‖_A² = r' A^-1 r <= r' B r / theta.

    Steps go on until the right side, for the residual computed anew, is below ``(tolerance ‖x‖_A)²``. theta is half of
    the smallest Ritz value of a solve with a random vector, so that the bound is as good as a condition estimate. Where
    rounding ends the progress sooner, an error up to `floor` is accepted, and becomes the `tolerance`.

    Attributes
    ----------
    tolerance
        The largest relative error of any solve so far, or what was asked for if that is larger.
    floor
        Errors at which rounding may end a solve; `Factorization` sets it from the condition number.

    Raises
    ------
    SolveError
        A direction has no positive energy, or the tolerance is not reached.
    """

    def __init__(self, matrix: Any, *, name: str, tolerance: float) -> None:
        diagonal = matrix.diagonal()
        if not np.all(diagonal > 0.0):
            raise SolveError(f"the {name} is singular or not positive definite: a diagonal entry is not positive")
        self.name, self.tolerance, self.floor = name, tolerance, 0.0
        self._aim = tolerance
        # With a unit diagonal neither the unit of the entries nor the grading of the mesh matters.
        self._root = np.sqrt(diagonal)
        scale = diags(1.0 / self._root)
        self._matrix = csr_matrix(scale @ matrix @ scale)
        self._precondition = _preconditioner(self._matrix, self._root, name)
        # Of this run only the Ritz value counts, wherever rounding ends it.
        self._least, self.floor = 1.0, np.inf
        run = self._run(np.random.default_rng(0).standard_normal(len(diagonal)), ROUGH_TOLERANCE**2)
        self._least, self.floor, self.tolerance = CAUTION * run.smallest_ritz_value(), 0.0, tolerance

    def solve(self, right: Array, transposed: bool = False) -> Array:
        """``A^-1 right`` for a vector or columns, each within the tolerance."""
        return self._solve(right, self._aim)

    def rough_solve(self, right: Array, transposed: bool = False) -> Array:
        """``A^-1 right`` to a few digits."""
        return self._solve(right, max(ROUGH_TOLERANCE, self._aim))

    def is_positive(self) -> bool:
        """Whether no direction without energy was met; else there is no object."""
        return True

    def _solve(self, right: Array, tolerance: float) -> Array:
        b = np.asarray(right, dtype=np.float64)
        x = np.empty(b.shape, order="F")
        if b.ndim == 1:
            return self._column(b, tolerance)
        for i in range(b.shape[1]):
            x[:, i] = self._column(b[:, i], tolerance)
        return x

    def _column(self, right: Array, tolerance: float) -> Array:
        with np.errstate(over="ignore"):
            b = right / self._root
        size = float(np.abs(b).max(initial=0.0))
        if not np.isfinite(size):
            return np.full_like(b, np.nan)
        if size == 0.0:
            return np.zeros_like(b)
        return size * self._run(b / size, tolerance).x / self._root

    def _run(self, b: Array, tolerance: float) -> _Run:
        """Conjugate gradients, begun anew with the true residual until that is small, or no longer gets smaller."""
        run, last, before = _Run(np.zeros_like(b)), None, np.inf
        while True:
            r = b - self._matrix @ run.x
            z = self._precondition(r)
            square = self._positive(float(r @ z), allow_zero=True)
            reached = float(np.sqrt(square / self._least / run.energy)) if run.energy > 0.0 else np.inf
            if reached <= tolerance:
                return run
            if last is not None and not reached < 0.5 * before:
                if before < reached:
                    run.x, reached = last, before
                return self._ended(run, reached, tolerance)
            if run.energy > 0.0:
                last, before = run.x, reached
            self._descend(run, r, z, square, tolerance**2 * self._least)

    def _ended(self, run: _Run, reached: float, tolerance: float) -> _Run:
        """The best that rounding allows, if it is no worse than the condition number explains."""
        if not reached <= self.floor:
            words = f"the relative error {tolerance:g}; it ended at {reached:.2g}"
            raise SolveError(f"an iterative solve with the {self.name} did not reach {words}")
        self.tolerance = max(self.tolerance, UNSEEN * reached)
        return run

    def _descend(self, run: _Run, r: Array, z: Array, square: float, target: float) -> None:
        p = z
        for _ in range(MOST_STEPS):
            if square == 0.0:
                return
            Ap = self._matrix @ p
            step = square / self._positive(float(p @ Ap))
            run.x = run.x + step * p
            r = r - step * Ap
            run.energy += step * square
            z = self._precondition(r)
            fresh = self._positive(float(r @ z), allow_zero=True)
            run.steps.append(step)
            run.ratios.append(fresh / square)
            # A quarter, since the residual that is updated and the true one differ by rounding.
            if fresh <= 0.25 * target * run.energy:
                return
            p = z + (fresh / square) * p
            square = fresh

    def _positive(self, value: float, *, allow_zero: bool = False) -> float:
        if not (value > 0.0 or (allow_zero and value == 0.0)):
            raise SolveError(f"the {self.name} is singular or not positive definite: a direction has no energy")
        return value


@dataclass
class _Run:
    """A solve on its way: the iterate, its energy, and the coefficients of the steps."""

    x: Array
    energy: float = 0.0
    steps: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)

    def smallest_ritz_value(self) -> float:
        """The least eigenvalue of the Lanczos matrix of the steps."""
        steps, ratios = np.array(self.steps), np.array(self.ratios)
        main = 1.0 / steps
        main[1:] += ratios[:-1] / steps[:-1]
        beside = np.sqrt(ratios[:-1]) / steps[:-1]
        return float(eigvalsh_tridiagonal(main, beside)[0])


def _preconditioner(matrix: Any, root: Array, name: str) -> Any:
    """A symmetric V-cycle."""
    aggregate = import_module("pyamg").smoothed_aggregation_solver
    try:
        with _seeded():
            levels = aggregate(matrix, B=root[:, None], symmetry="symmetric", coarse_solver="cholesky", max_coarse=50)
        cycle = levels.aspreconditioner(cycle="V").matvec
        # The coarsest matrix is factorized at the first use.
        cycle(root)
    except np.linalg.LinAlgError:
        raise SolveError(f"the {name} is singular or not positive definite: so is a coarse matrix of it") from None
    return cycle


@contextmanager
def _seeded() -> Iterator[None]:
    """For pyamg, which draws from NumPy's global generator: the same every time, and its state is left as it was."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
