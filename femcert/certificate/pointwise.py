"""The strong residual of a candidate's functions at any point, where they offer their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import Array
from ..errors import CandidateError, UncertifiedError
from ..mesh.sample import Points, values_at
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.candidate_functions import REPEATED, Functions, interpolant
from ..problem.states import strong_form
from ..problem.strong import StrongForm
from .sampling import element_envelopes

AtPoints = Callable[[Points], Array]


@dataclass(frozen=True)
class PointwiseResidual:
    """``-div(a grad u) + c u - f`` of a candidate's function u and of the parameter q_h that is handed out.

    The parameter is the finite-element function with the candidate's dof values, also where a rule moved it into the
    class: what q does between the nodes is not handed out.

    Attributes
    ----------
    equation
        The strong form with q_h.
    values
        The residual at points.
    given
        The declared envelope of its absolute value, a number or one for each element.
    moved
        For each element, what the move into the class adds to it at most, ``(elements, 1)``.
    """

    mesh: Any
    equation: StrongForm
    values: AtPoints
    given: float | Array
    moved: Array

    def __call__(self, points: Points) -> Array:
        """Values, ``(points,)``."""
        return self.values(points)

    @property
    def middles(self) -> Points:
        """The middle of every element."""
        return Points(self.mesh, self.mesh.p[:, self.mesh.t].mean(axis=1), np.arange(self.mesh.nelements))

    @property
    def first(self) -> Points:
        """The middle of the first element."""
        return _first(self.mesh)

    @property
    def even_envelope(self) -> bool:
        """Whether one number bounds it on all elements alike."""
        return np.ndim(self.given) == 0

    @property
    def envelopes(self) -> Array:
        """Sure upper bounds of its absolute value, ``(elements, 1)``: as given, plus the computed one of the move."""
        return np.asarray(np.broadcast_to(self.given, len(self.moved))[:, None] + self.moved)

    def check_repeated(self, points: Points, values: Array, rng: np.random.Generator, name: str) -> None:
        """Refuse values at points that are others in another batch: permuted, and joined with the elements' midpoints.

        Up to rounding of the terms that cancel in the residual, in single precision.
        """
        order, middles = rng.permutation(len(values)), self.middles
        x, cells = np.hstack([points.x[:, order], middles.x]), np.concatenate([points.cells[order], middles.cells])
        joined = Points(self.mesh, x, cells)
        again = self.values(joined)[: len(values)]
        # The source is what the terms of the candidate cancel with.
        size = np.abs(values).max() + np.abs(self.equation.source.at_points(joined)).max()
        if not np.abs(again - values[order]).max() <= REPEATED * size:
            raise CandidateError(f"the residual of {name!r} at a point depends on the other points of its batch")


def pointwise_residual(problem: Problem, candidate: Candidate) -> PointwiseResidual | None:
    """The residual of the candidate's functions; None where its interpolant has to do.

    That is where there are no functions, no derivatives of them, no sure envelope, no strong form of one state without
    time, a conductivity that jumps or whose gradient is not known, or a parameter other than a source that was moved
    into the class.

    Raises
    ------
    UncertifiedError
        A residual was given that is not one of the parameter that is handed out, and cannot be made one.
    """
    functions = candidate.functions
    if functions is None or functions.envelope is None or functions.state is None:
        return None
    equation = _strong(problem, candidate)
    if equation is None:
        if functions.residual is not None:
            raise UncertifiedError(
                "residual is a function of x; expected a problem with the strong form of one state, without time"
            )
        return None
    basis = problem.parameters.basis
    stored, q = interpolant(basis, functions.parameter, "parameter"), np.asarray(candidate.parameter, dtype=float)
    moved = stored - q
    if equation.unknown != "source":
        if not np.abs(moved).max() <= REPEATED * np.abs(stored).max():
            return None
        moved = np.zeros_like(moved)
    values = _given(basis, q, equation, functions) or _derived(basis.mesh, equation, functions)
    if values is None:
        if functions.residual is None:
            return None
        raise UncertifiedError(
            f"the residual of {candidate.name!r} belongs to its parameter as a function, not to the interpolant that "
            "is handed out; expected a state with gradient and laplacian"
        )
    envelopes = element_envelopes(basis, moved[:, None])
    return PointwiseResidual(basis.mesh, equation, values, functions.envelope, envelopes)


def _strong(problem: Problem, candidate: Candidate) -> StrongForm | None:
    """The strong form with the candidate's parameter; None with time, of several states, and where there is none."""
    return strong_form(problem.states[0], candidate.parameter) if len(problem.states) == 1 else None


def _given(basis: Any, q: Array, equation: StrongForm, functions: Functions) -> AtPoints | None:
    """``r + q - q_h`` for the given residual r of u and the function q, a source; None without r, or for another q."""
    if functions.residual is None or equation.unknown != "source":
        return None

    def residual(points: Points) -> Array:
        between = values_at(functions.parameter, points.x, "parameter") - points.values(basis, q)
        return values_at(functions.residual, points.x, "residual") + between

    return residual


def _derived(mesh: Any, equation: StrongForm, functions: Functions) -> AtPoints | None:
    """By the derivatives that state and conductivity offer; None if one is missing, as a look at one point shows."""
    u: Any = functions.state
    if equation.divergence_at(u, _first(mesh)) is None:
        return None

    def residual(points: Points) -> Array:
        r = equation.residual_at(u, points)
        assert r is not None
        return r

    return residual


def _first(mesh: Any) -> Points:
    """The middle of the first element."""
    return Points(mesh, mesh.p[:, mesh.t[:, :1]].mean(axis=1), np.zeros(1, dtype=np.int64))
