"""Linear programs over second-order cones: Clarabel, an optional package, imported when it is first needed.

Nothing here is a bound: who needs one evaluates the dual point himself, whatever the solver did to find it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import bmat, csc_matrix, diags, issparse

from ..errors import MissingPackageError, SolveError
from .factor import pivoted_factors

Array = NDArray[np.float64]

MOST_STEPS = 200


@dataclass(frozen=True)
class Block:
    """One constraint ``right - matrix x`` in a cone.

    Attributes
    ----------
    matrix, right
        Sparse or dense ``(n, size)``, and ``(n,)``.
    round
        Whether the cone is ``{ (t, u) : ‖u‖ <= t }``; else it is that of numbers that are not negative.
    """

    matrix: Any
    right: Array
    round: bool


@dataclass(frozen=True)
class Solution:
    """What the solver found: approximations, to be checked.

    Attributes
    ----------
    point
        x.
    duals
        One vector for each block, in the dual cone up to rounding: ``sum A_i' z_i = g``, or zero if `infeasible`.
    infeasible
        Whether the solver says that no x fulfils the constraints: then ``sum z_i . b_i < 0``.
    """

    point: Array
    duals: list[Array]
    infeasible: bool


class ConeProgram:
    """``max g . x`` subject to constraints in cones, for many g.

    Parameters
    ----------
    blocks
        The constraints.
    tolerance
        Of gap and residuals, relative.
    """

    def __init__(self, blocks: Sequence[Block], *, tolerance: float) -> None:
        self._tolerance = tolerance
        self._solver_package = load_clarabel()
        self._ends = np.cumsum([len(block.right) for block in blocks])[:-1]
        self._matrix = csc_matrix(bmat([[csc_matrix(block.matrix)] for block in blocks]))
        self._right = np.concatenate([block.right for block in blocks])
        package = self._solver_package
        self._cones = [
            (package.SecondOrderConeT if block.round else package.NonnegativeConeT)(len(block.right))
            for block in blocks
        ]
        self._solver: Any = None

    def maximize(self, objective: Array) -> Solution:
        """The solver's answer for one g."""
        if self._solver is None:
            self._solver = self._made(-objective)
        else:
            self._solver.update(q=-objective)
        found = self._solver.solve()
        point, dual = np.array(found.x), np.array(found.z)
        if not (np.all(np.isfinite(point)) and np.all(np.isfinite(dual))):
            point, dual = np.zeros_like(point), np.zeros_like(dual)
        return Solution(point, np.split(dual, self._ends), "PrimalInfeasible" in str(found.status))

    def _made(self, cost: Array) -> Any:
        package, size = self._solver_package, self._matrix.shape[1]
        settings = package.DefaultSettings()
        settings.verbose, settings.presolve_enable = False, False
        settings.max_iter, settings.max_threads = MOST_STEPS, 1
        settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = self._tolerance
        return package.DefaultSolver(csc_matrix((size, size)), cost, self._matrix, self._right, self._cones, settings)


def load_clarabel() -> Any:
    """The module ``clarabel``, or a `MissingPackageError` that says how to install it."""
    try:
        return import_module("clarabel")
    except ImportError as error:
        raise MissingPackageError(f"Clarabel cannot be imported ({error}); pip install 'femcert[bounds]'") from None


def root_of(form: Any, name: str) -> Any:
    """R with ``R' R`` near a symmetric positive definite matrix, sparse where that is."""
    if not issparse(form):
        try:
            return np.linalg.cholesky(form).T
        except np.linalg.LinAlgError:
            raise SolveError(f"the {name} is not positive definite to rounding") from None
    factors = pivoted_factors(csc_matrix(form), name=name)
    pivots, order = factors.U.diagonal(), factors.perm_c
    if not (np.array_equal(factors.perm_r, order) and np.all(pivots > 0.0)):
        raise SolveError(f"the {name} is not positive definite to rounding")
    return csc_matrix(csc_matrix(diags(np.sqrt(pivots)) @ factors.L.T)[:, order])
