"""The strong residual of a candidate's functions at any point, where they offer their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate, Functions, callable_of
from ..problem.checks import Array, real_array
from ..problem.coefficients import Coefficient, sampled_at
from ..problem.elliptic import EllipticCoefficient, EllipticSource
from ..problem.heat import HeatInitial
from ..problem.lagrange import sampled
from ..problem.locate import interpolation_matrix
from .sampling import element_envelopes

Cells = NDArray[np.int64]
# Of the largest value: by how much a function may differ when it is evaluated again (networks in single precision).
REPEATED = 1e-5


class PointwiseResidual:
    """``-div(a grad u) + c u - q`` of a candidate's functions u and q.

    By the product rule ``-a laplacian(u) - grad(a) . grad(u) + c u - q``. Where the rule moved the parameter into the
    class, by the dof vector d, the residual is that of the pair ``(u, q - d)``.
    """

    def __init__(self, problem: Problem, functions: Functions, values: Callable[[Array, Cells], Array], moved: Array):
        self._problem, self._values, self._moved = problem, values, moved
        self._given = functions.envelope

    def __call__(self, x: Array, cells: Cells) -> Array:
        """Values at points ``(dimension, points)`` in the given cells."""
        r = self._values(x, cells)
        if self._moved.any():
            r = r + interpolation_matrix(self._problem.parameters.basis, x, cells) @ self._moved
        return r

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
    """
    functions = candidate.functions
    if functions is None or functions.envelope is None or functions.state is None:
        return None
    if isinstance(problem, HeatInitial) or not problem.has_state:
        if functions.residual is not None:
            raise UncertifiedError("residual is a function of x; expected a problem with one state, without time")
        return None
    stored = _interpolant(problem.parameters.basis, functions.parameter, "parameter")
    moved = stored - np.asarray(candidate.parameter, dtype=float)
    if not isinstance(problem, EllipticSource):
        if not np.abs(moved).max() <= REPEATED * np.abs(stored).max():
            return None
        moved = np.zeros_like(moved)
    values = _given_residual(functions) if functions.residual is not None else _derived(problem, functions)
    return None if values is None else PointwiseResidual(problem, functions, values, moved)


def check_frozen(problem: Problem, candidate: Candidate) -> None:
    """Refuse a candidate whose functions no longer are those that its dof values were taken from."""
    functions = candidate.functions
    if functions is None:
        return
    pairs = [(problem.parameters.basis, functions.parameter, candidate.parameter, "parameter")]
    if functions.state is not None and candidate.state is not None:
        states = functions.state if isinstance(functions.state, (list, tuple)) else [functions.state]
        columns = candidate.state.reshape(len(candidate.state), -1).T
        pairs += [(problem.basis, f, column, "state") for f, column in zip(states, columns, strict=True)]
    for basis, function, stored, name in pairs:
        now, then = _interpolant(basis, function, name), np.asarray(stored, dtype=float)
        if not np.abs(now - then).max() <= REPEATED * np.abs(then).max():
            raise UncertifiedError(f"the {name} of {candidate.name!r} changed after it was frozen; make it anew")


def values_at(function: Any, x: Array, name: str, *, vector: bool = False) -> Array:
    """``function(x)`` (or the number), finite and real: ``(points,)`` or, for a vector, ``(dimension, points)``."""
    values = real_array(function(x) if callable(function) else function, name)
    expected = x.shape if vector else x.shape[1:]
    if values.shape not in ((), expected):
        raise InputError(f"{name} returned shape {values.shape} for x of shape {x.shape}; expected {expected}")
    return np.array(np.broadcast_to(values, expected))


def _interpolant(basis: Any, function: Any, name: str) -> Array:
    return real_array(sampled(basis, callable_of(function), name), name)


def _given_residual(functions: Functions) -> Callable[[Array, Cells], Array]:
    return lambda x, cells: values_at(functions.residual, x, "residual")


def _derived(problem: Problem, functions: Functions) -> Callable[[Array, Cells], Array] | None:
    """By the derivatives that state, conductivity and (for a coefficient) parameter offer; None if one is missing."""
    u, q = functions.state, functions.parameter
    if not callable(getattr(u, "laplacian", None)):
        return None
    if isinstance(problem, EllipticSource):
        a: Any = problem._given[0].value
        varies = callable(a)
        # A table or values per element jump: there the residual is no function.
        if _has_gradients(a, u) if varies else not isinstance(a, Mapping) and np.ndim(a) == 0:
            return _source_residual(problem, functions, a, problem._given[1].value)
    if isinstance(problem, EllipticCoefficient) and _has_gradients(q, u):
        return _coefficient_residual(problem, functions)
    return None


def _source_residual(problem: Problem, functions: Functions, a: Any, c: Any) -> Callable[[Array, Cells], Array]:
    u, q = functions.state, functions.parameter

    def residual(x: Array, cells: Cells) -> Array:
        r = -values_at(a, x, "conductivity") * values_at(u.laplacian, x, "state.laplacian")
        if callable(a):
            r -= _dot(a, u, x, "conductivity")
        reaction = _coefficient(problem, c, x, cells, "reaction")
        if reaction.any():
            r += reaction * values_at(callable_of(u), x, "state")
        return r - values_at(callable_of(q), x, "parameter")

    return residual


def _coefficient_residual(problem: EllipticCoefficient, functions: Functions) -> Callable[[Array, Cells], Array]:
    u, q, f = functions.state, functions.parameter, problem._source.value

    def residual(x: Array, cells: Cells) -> Array:
        value, bend = values_at(callable_of(q), x, "parameter"), values_at(u.laplacian, x, "state.laplacian")
        slope = _dot(q, u, x, "parameter")
        flow = np.exp(value) * (bend + slope) if problem.transform == "exp" else value * bend + slope
        return np.asarray(-flow - _coefficient(problem, f, x, cells, "source"))

    return residual


def _has_gradients(*functions: Any) -> bool:
    return all(callable(getattr(f, "gradient", None)) for f in functions)


def _dot(a: Any, u: Any, x: Array, name: str) -> Array:
    """``grad a . grad u``"""
    left = values_at(a.gradient, x, f"{name}.gradient", vector=True)
    return np.asarray((left * values_at(u.gradient, x, "state.gradient", vector=True)).sum(axis=0))


def _coefficient(problem: Problem, value: Coefficient, x: Array, cells: Cells, name: str) -> Array:
    if callable(value):
        return values_at(value, x, name)
    mesh = problem.basis.mesh
    return sampled_at(value, mesh, np.zeros((1, mesh.nelements, 1)), name)[cells, 0]
