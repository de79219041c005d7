"""The strong residual of a candidate's functions at any point, where they offer their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import Array, real_array
from ..errors import CandidateError, InputError, UncertifiedError
from ..mesh.elements import degree
from ..mesh.locate import interpolation_matrix
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.candidate_functions import REPEATED, Functions, callable_of, interpolant
from ..problem.coefficients import at_points
from ..problem.elliptic import EllipticCoefficient, EllipticSource
from ..problem.heat import HeatInitial
from .sampling import element_envelopes

Cells = NDArray[np.int64]


class PointwiseResidual:
    """``-div(a grad u) + c u - q_h`` of a candidate's function u and of the parameter q_h that is handed out.

    The parameter is the finite-element function with the candidate's dof values, also where a rule moved it into the
    class: what q does between the nodes is not handed out. By the product rule ``-a laplacian(u) - grad(a) . grad(u) +
    c u - q_h``.
    """

    def __init__(self, problem: Problem, candidate: Candidate, values: Callable[[Array, Cells], Array], moved: Array):
        assert candidate.functions is not None
        self._problem, self._values, self._moved = problem, values, moved
        self._parameter, self._given = candidate.parameter, candidate.functions.envelope

    def __call__(self, x: Array, cells: Cells) -> Array:
        """Values at points ``(dimension, points)`` in the given cells."""
        return self._values(x, cells)

    def check_repeated(self, x: Array, cells: Cells, values: Array, rng: np.random.Generator, name: str) -> None:
        """Refuse values at points that are others in another batch: permuted, and joined with the elements' midpoints.

        Up to rounding of the terms that cancel in the residual, in single precision.
        """
        mesh, order = self._problem.basis.mesh, rng.permutation(len(values))
        joined = np.hstack([x[:, order], mesh.p[:, mesh.t].mean(axis=1)])
        again = self._values(joined, np.concatenate([cells[order], np.arange(mesh.nelements)]))[: len(values)]
        size = np.abs(values).max() + self._largest_load(x, cells)
        if not np.abs(again - values[order]).max() <= REPEATED * size:
            raise CandidateError(f"the residual of {name!r} at a point depends on the other points of its batch")

    def _largest_load(self, x: Array, cells: Cells) -> float:
        """Largest value at points of what the candidate's terms cancel with: the source."""
        if isinstance(self._problem, EllipticCoefficient):
            f = at_points(self._problem._source.value, self._problem.basis.mesh, x, cells, "source")
            return float(np.abs(f).max())
        return float(np.abs(self._parameter).max())

    @property
    def even_envelope(self) -> bool:
        """Whether one number bounds it on all elements alike."""
        return not isinstance(self._given, np.ndarray)

    @property
    def envelopes(self) -> Array:
        """Sure upper bounds of its absolute value, ``(elements, 1)``: as given, plus the computed one of the move."""
        cells = self._problem.basis.mesh.nelements
        given = np.broadcast_to(np.asarray(self._given, dtype=float), (cells,))[:, None]
        return np.asarray(given + element_envelopes(self._problem.parameters.basis, self._moved[:, None]))


def pointwise_residual(problem: Problem, candidate: Candidate) -> PointwiseResidual | None:
    """The residual of the candidate's functions; None where its interpolant has to do.

    That is where there are no functions, no derivatives of them, no sure envelope, a conductivity that jumps or whose
    gradient is not known, or a parameter of a nonlinear problem that was moved into the class.

    Raises
    ------
    UncertifiedError
        A residual was given that is not one of the parameter that is handed out, and cannot be made one.
    """
    functions = candidate.functions
    if functions is None or functions.envelope is None or functions.state is None:
        return None
    if isinstance(problem, HeatInitial) or not problem.has_state:
        if functions.residual is not None:
            raise UncertifiedError("residual is a function of x; expected a problem with one state, without time")
        return None
    stored = interpolant(problem.parameters.basis, functions.parameter, "parameter")
    moved = stored - np.asarray(candidate.parameter, dtype=float)
    if not isinstance(problem, EllipticSource):
        if not np.abs(moved).max() <= REPEATED * np.abs(stored).max():
            return None
        moved = np.zeros_like(moved)
    values = _given(problem, candidate, functions) or _derived(problem, candidate, functions)
    if values is None and functions.residual is not None:
        raise UncertifiedError(
            f"the residual of {candidate.name!r} belongs to its parameter as a function, not to the interpolant that "
            "is handed out; expected a state with gradient and laplacian"
        )
    return None if values is None else PointwiseResidual(problem, candidate, values, moved)


def values_at(function: Any, x: Array, name: str, *, vector: bool = False) -> Array:
    """``function(x)`` (or the number), finite and real: ``(points,)`` or, for a vector, ``(dimension, points)``."""
    values = real_array(function(np.array(x)) if callable(function) else function, name)
    expected = x.shape if vector else x.shape[1:]
    if values.shape not in ((), expected):
        raise InputError(f"{name} returned shape {values.shape} for x of shape {x.shape}; expected {expected}")
    return np.array(np.broadcast_to(values, expected))


def _handed_out(problem: Problem, candidate: Candidate, x: Array, cells: Cells) -> Array:
    """The parameter at points in the given cells."""
    return np.asarray(interpolation_matrix(problem.parameters.basis, x, cells) @ candidate.parameter)


def _given(problem: Problem, candidate: Candidate, functions: Functions) -> Callable[[Array, Cells], Array] | None:
    """``r + q - q_h`` for the given residual r of u and the function q; None without one, or for another equation."""
    if functions.residual is None or not isinstance(problem, EllipticSource):
        return None

    def residual(x: Array, cells: Cells) -> Array:
        between = values_at(callable_of(functions.parameter), x, "parameter")
        between -= _handed_out(problem, candidate, x, cells)
        return values_at(functions.residual, x, "residual") + between

    return residual


def _derived(problem: Problem, candidate: Candidate, functions: Functions) -> Callable[[Array, Cells], Array] | None:
    """By the derivatives that state and conductivity offer; None if one is missing."""
    u = functions.state
    if not callable(getattr(u, "laplacian", None)):
        return None
    if isinstance(problem, EllipticSource):
        a: Any = problem._given[0].value
        varies = callable(a)
        # A table or values per element jump: there the residual is no function.
        if _has_gradients(a, u) if varies else not isinstance(a, Mapping) and np.ndim(a) == 0:
            return _source_residual(problem, candidate, a, problem._given[1].value)
    # A parameter that is constant on elements jumps, too.
    if isinstance(problem, EllipticCoefficient) and _has_gradients(u) and degree(problem.parameters.basis) > 0:
        return _coefficient_residual(problem, candidate)
    return None


def _source_residual(problem: Problem, candidate: Candidate, a: Any, c: Any) -> Callable[[Array, Cells], Array]:
    u: Any = candidate.functions.state  # type: ignore[union-attr]

    def residual(x: Array, cells: Cells) -> Array:
        r = -values_at(a, x, "conductivity") * values_at(u.laplacian, x, "state.laplacian")
        if callable(a):
            slope = values_at(a.gradient, x, "conductivity.gradient", vector=True)
            r -= _dot(slope, u, x)
        reaction = at_points(c, problem.basis.mesh, x, cells, "reaction")
        if reaction.any():
            r += reaction * values_at(callable_of(u), x, "state")
        return r - _handed_out(problem, candidate, x, cells)

    return residual


def _coefficient_residual(problem: EllipticCoefficient, candidate: Candidate) -> Callable[[Array, Cells], Array]:
    """``-div(a grad u) - f`` with ``a = exp(q_h)`` or q_h, which is continuous: its divergence is a function."""
    u: Any = candidate.functions.state  # type: ignore[union-attr]
    f, basis, q = problem._source.value, problem.parameters.basis, candidate.parameter

    def residual(x: Array, cells: Cells) -> Array:
        value, bend = _handed_out(problem, candidate, x, cells), values_at(u.laplacian, x, "state.laplacian")
        slope = _dot(gradients(basis, q, x, cells), u, x)
        flow = np.exp(value) * (bend + slope) if problem.transform == "exp" else value * bend + slope
        return np.asarray(-flow - at_points(f, problem.basis.mesh, x, cells, "source"))

    return residual


def gradients(basis: Any, values: Array, x: Array, cells: Cells) -> Array:
    """Gradients, ``(dimension, points)``, of the finite-element function with these dof values in the given cells."""
    local = basis.mapping.invF(x[:, :, None], tind=cells)
    total = np.zeros(x.shape)
    for i, dofs in enumerate(basis.element_dofs):
        shape = basis.elem.gbasis(basis.mapping, local, i, tind=cells)[0].grad
        total += np.asarray(values)[dofs[cells]] * np.asarray(shape)[:, :, 0]
    return total


def _has_gradients(*functions: Any) -> bool:
    return all(callable(getattr(f, "gradient", None)) for f in functions)


def _dot(left: Array, u: Any, x: Array) -> Array:
    """``left . grad u``"""
    return np.asarray((left * values_at(u.gradient, x, "state.gradient", vector=True)).sum(axis=0))
