"""A reconstruction to be judged: a state and a parameter, wherever they come from."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .base import Problem
from .checks import Array, frozen, number, real_array
from .lagrange import same_mesh, sampled

# What np.load raises for a missing, damaged or foreign file; TypeError for a lone array, which is no archive.
_READ_ERRORS = (OSError, ValueError, TypeError, KeyError, EOFError, RuntimeError, MemoryError, BadZipFile, zlib.error)


class Candidate:
    """A pair (state, parameter) of dof vectors, read-only from here on.

    Parameters
    ----------
    state
        Dof values of the state, as the problem's ``solve`` returns them; None where there is no state (tomography).
    parameter
        Dof values of the parameter.
    optimality
        Gradient norm (or another stationarity measure) that the solver reached, the paper's r_opt; None: not known.
    name
        What to call it in tables.
    mesh
        The mesh it was made on, if known: a candidate of another mesh is then refused even if the sizes agree.
    functions
        The functions it was made of, if any.
    training_points
        Points ``(dimension, points)`` that its training saw, if any: a rule that samples refuses to meet them again.
    """

    def __init__(
        self,
        state: Any,
        parameter: Any,
        optimality: float | None = None,
        name: str = "learned",
        *,
        mesh: Any = None,
        functions: Functions | None = None,
        training_points: Any = None,
    ) -> None:
        self._state = None if state is None else _stored(state, "state")
        self._parameter = _stored(parameter, "parameter")
        self._optimality = None if optimality is None else _float(optimality)
        self.name = str(name)
        self._mesh = mesh
        self._functions = functions
        self._training_points = None if training_points is None else _points(training_points)

    @property
    def state(self) -> Array | None:
        """Dof values of the state (read-only), or None."""
        return self._state

    @property
    def parameter(self) -> Array:
        """Dof values of the parameter (read-only)."""
        return self._parameter

    @property
    def optimality(self) -> float | None:
        """Stationarity measure of the solver that made it, or None."""
        return self._optimality

    @property
    def functions(self) -> Functions | None:
        """The functions it was made of, or None."""
        return self._functions

    @property
    def training_points(self) -> Array | None:
        """Points that its training saw, ``(dimension, points)``, or None."""
        return self._training_points

    @property
    def digest(self) -> str:
        """SHA-256 of the dof values of state and parameter, in double precision where they are real."""
        total = hashlib.sha256()
        for values in (self.state, self.parameter):
            array = np.zeros(0) if values is None else np.asarray(values)
            array = array if np.iscomplexobj(array) else array.astype("<f8")
            total.update(f"{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return total.hexdigest()

    def __repr__(self) -> str:
        size = "no state" if self._state is None else f"state {self._state.shape}"
        return f"Candidate({self.name!r}, {size}, parameter {self._parameter.shape})"

    @classmethod
    def from_coefficients(
        cls, problem: Problem, coefficients: Any, *, optimality: float | None = None, name: str = "learned"
    ) -> Candidate:
        """The parameter ``B c`` with the state that the problem's own solver gives it."""
        q = _of_problem(problem).parameters.field(coefficients)
        return cls(_state_of(problem, q), q, optimality, name, mesh=problem.basis.mesh)

    @classmethod
    def from_functions(
        cls,
        problem: Problem,
        *,
        parameter: Any,
        state: Any = None,
        optimality: float | None = None,
        name: str = "learned",
        residual: Any = None,
        envelope: Any = None,
        training_points: Any = None,
    ) -> Candidate:
        """Nodal interpolants of functions of ``x`` (scikit-fem coordinates ``(dimension, points)``).

        Without a `state` the problem's own solver computes it. A heat state is a function for each observation
        time, in a list (or one function, for one time).

        A function is a number, a callable, or an object with a method ``value(x)``. With methods ``gradient(x)``,
        ``(dimension, points)``, and ``laplacian(x)``, as automatic differentiation gives them, and an `envelope`,
        `StochasticRadius` samples the strong residual of the state's own function instead of its interpolant; the
        parameter q is the interpolant q_h there, too, since that is what is handed out.

        Parameters
        ----------
        residual
            The strong residual of the functions u and q at x, for functions without derivatives; needs an `envelope`.
            Of an elliptic source ``q - q_h`` is added to it; for other problems it is refused.
        envelope
            A sure upper bound, on the domain or for each element, of the absolute residual of the function u with the
            interpolant q_h: one of u and q, plus one of ``|q - q_h|`` (on P1 elements of diameter h at most
            ``h²/2 max |D²q|``).
        training_points
            Points that the training saw, ``(dimension, points)``.
        """
        q = sampled(_of_problem(problem).parameters.basis, callable_of(parameter), "parameter")
        if residual is not None and (not callable(residual) or state is None or envelope is None):
            raise InputError("residual needs a callable, the state it belongs to, and envelope=, a bound that is sure")
        if state is None:
            u = _state_of(problem, q)
        elif isinstance(state, (list, tuple)):
            parts = [sampled(problem.basis, callable_of(f), f"state[{i}]") for i, f in enumerate(state)]
            u = np.column_stack(parts) if len(parts) != 1 else parts[0]
        else:
            u = sampled(problem.basis, callable_of(state), "state")
        functions = Functions(state, parameter, residual, _envelope(problem, envelope))
        mesh = problem.basis.mesh
        return cls(u, q, optimality, name, mesh=mesh, functions=functions, training_points=training_points)

    @classmethod
    def from_basis(
        cls,
        problem: Problem,
        basis: Basis,
        *,
        parameter: Any,
        state: Any = None,
        parameter_basis: Basis | None = None,
        tolerance: float | None = None,
        optimality: float | None = None,
        name: str = "learned",
        training_points: Any = None,
    ) -> Candidate:
        """Dof values on another basis, of another mesh perhaps, interpolated at the problem's dofs.

        The same mesh and element, or the same nodes in another order, give the values themselves. What interpolation
        did else is in `interpolation`. Without a `state` the problem's own solver computes it.

        Parameters
        ----------
        basis
            P1, P2, Q1 or Q2 on lines, triangles or quadrilaterals, of the same domain.
        parameter, state
            Dof values on `basis`; a heat state has a column for each time.
        parameter_basis
            The basis of the parameter, where it is another one: piecewise constants, say. These can only become
            piecewise constants, by their values at the centres of the problem's cells.
        tolerance
            How far outside of the other mesh a dof of the problem may lie; it then gets the value at the nearest point
            of the boundary. Default: a quarter of the diameter of the nearest cell, as for a circle made of edges.

        Raises
        ------
        InputError
            A dof lies farther outside, or the values do not fit the basis.
        """
        source = Source(check_basis_of(basis), parameter_basis, _words(basis), tolerance)
        return cls._from_source(problem, source, parameter, state, optimality, name, training_points)

    @classmethod
    def from_points(
        cls,
        problem: Problem,
        points: Any,
        *,
        parameter: Any,
        state: Any = None,
        tolerance: float | None = None,
        optimality: float | None = None,
        name: str = "learned",
        training_points: Any = None,
    ) -> Candidate:
        """Values at scattered points ``(points, dimension)``, interpolated linearly at the problem's dofs.

        Points that are the problem's nodes, in any order, give the values themselves. What interpolation did else is
        in `interpolation`. It works on the convex hull of the points, whatever the domain. Without a `state` the
        problem's own solver computes it.

        Parameters
        ----------
        parameter, state
            A value for each point; a heat state has a column for each time.
        tolerance
            How far outside of the hull a dof of the problem may lie; it then gets the value at the nearest point of
            the hull. Default: the median distance between neighbouring points.

        Raises
        ------
        InputError
            A dof lies farther outside, the points lie on a line, or the values do not fit them.
        """
def plain_copy(candidate: Candidate) -> Candidate:
    """A `Candidate` with the values that this one (perhaps of a subclass) shows now, and will show for good."""
    return Candidate(
        candidate.state,
        candidate.parameter,
        candidate.optimality,
        str(candidate.name),
        mesh=candidate._mesh,
        functions=candidate.functions,
        training_points=candidate.training_points,
    )


def check_candidate(problem: Problem, candidate: Any) -> Candidate:
    """`candidate` if it belongs to `problem`: right type, right mesh, right shapes, finite and real."""
    if not isinstance(candidate, Candidate):
        raise InputError(f"got a {type(candidate).__name__}; expected a femcert.Candidate")
    if candidate._mesh is not None and not same_mesh(candidate._mesh, problem.basis.mesh):
        raise InputError(f"candidate {candidate.name!r} was made on another mesh than the problem's")
    problem.check_parameter(candidate.parameter)
    if candidate.optimality is not None:
        number(candidate.optimality, "optimality", least=0.0)
    if candidate.state is not None:
        problem.check_state(candidate.state)
    elif problem.has_state:
        raise InputError(f"candidate {candidate.name!r} has no state; expected one, or use Candidate.from_coefficients")
    return candidate


def _of_problem(problem: Any) -> Problem:
    if not isinstance(problem, Problem):
        raise InputError(f"problem is a {type(problem).__name__}; expected one such as EllipticSource")
    return problem


def _npz_path(path: Any) -> Path:
    if not isinstance(path, (str, Path)) or Path(path).suffix != ".npz":
        raise InputError(f"path is {path!r}; expected a file name that ends in .npz")
    return Path(path)


def _state_of(problem: Problem, parameter: Array) -> Array | None:
    return problem.solve(parameter) if problem.has_state else None


def _points(points: Any) -> Array:
    array = real_array(points, "training_points")
    if array.ndim not in (1, 2):
        raise InputError(f"training_points has shape {array.shape}; expected (dimension, points)")
    return frozen(np.atleast_2d(array))


def _float(optimality: Any) -> float:
    value = _stored(optimality, "optimality")
    if value.ndim or np.iscomplexobj(value):
        raise InputError(f"optimality is {optimality!r}; expected a number")
    return float(value)


def _stored(values: Any, name: str) -> NDArray[Any]:
    # NaN, complex or misshapen values are refused by the problem that judges the candidate, so that `no_harm`
    # can record them as its reason; here only what is no array of numbers at all.
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is not an array of numbers: {error}") from None
    if array.dtype.kind not in "iufc" or np.ma.is_masked(values):
        came = "masked entries" if np.ma.is_masked(values) else f"type {array.dtype}"
        raise InputError(f"{name} has {came}; expected numbers")
    return frozen(array)
