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


@dataclass(frozen=True)
class Functions:
    """The functions of x that a candidate was made of, for rules that look between the nodes.

    Attributes
    ----------
    state, parameter
        As given to `Candidate.from_functions`.
    residual
        A function of x: the strong residual of the pair, ``-div(a grad u) + c u - q`` for an elliptic source; or None.
    envelope
        A sure upper bound of ``|residual|``, a number or one for each element; or None.
    """

    state: Any
    parameter: Any
    residual: Any = None
    envelope: float | Array | None = None


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
        `StochasticRadius` samples the strong residual of the functions themselves instead of their interpolants.

        Parameters
        ----------
        residual
            The strong residual as a function of x, for functions without derivatives; needs an `envelope`.
        envelope
            A sure upper bound of ``|residual|`` on the domain: a number, or one for each element.
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
    def from_file(cls, problem: Problem, path: str | Path, *, name: str | None = None) -> Candidate:
        """Arrays ``parameter`` and, optionally, ``state``, ``optimality``, ``training_points`` from an ``.npz`` file.

        Without a ``state`` the problem's own solver computes it. No pickled object is ever loaded.
        """
        path = _npz_path(path)
        _of_problem(problem)
        try:
            # np.load would leave a damaged file open.
            with path.open("rb") as file:
                archive = np.load(file, allow_pickle=False)
                if not isinstance(archive, np.lib.npyio.NpzFile):
                    raise ValueError("it holds a single array")
                arrays = {key: archive[key] for key in archive.files}
        except _READ_ERRORS as error:
            raise InputError(f"{path} cannot be read as an .npz archive of plain arrays: {error}") from None
        if "parameter" not in arrays:
            raise InputError(f"{path} holds {sorted(arrays)}; expected an array 'parameter'")
        q = problem.check_parameter(arrays["parameter"])
        u = arrays["state"] if "state" in arrays else _state_of(problem, q)
        optimality = number(arrays["optimality"], "optimality") if "optimality" in arrays else None
        seen = arrays.get("training_points")
        return cls(u, q, optimality, name or path.stem, mesh=problem.basis.mesh, training_points=seen)

    def save(self, path: str | Path) -> None:
        """Write an ``.npz`` file that `from_file` reads."""
        path = _npz_path(path)
        arrays: dict[str, Any] = {"parameter": self._parameter}
        if self._state is not None:
            arrays["state"] = self._state
        if self._optimality is not None:
            arrays["optimality"] = np.array(self._optimality)
        if self._training_points is not None:
            arrays["training_points"] = self._training_points
        np.savez_compressed(path, **arrays)


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


def callable_of(function: Any) -> Any:
    """`function` itself, or its method ``value`` where it cannot be called."""
    return function if callable(function) else getattr(function, "value", function)


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


def _envelope(problem: Problem, envelope: Any) -> Any:
    if envelope is None or np.ndim(envelope) == 0:
        return None if envelope is None else number(envelope, "envelope", least=0.0)
    values, elements = real_array(envelope, "envelope"), problem.basis.mesh.nelements
    if values.shape != (elements,) or values.min() < 0.0:
        came = f"shape {values.shape} and the least value {values.min():g}"
        raise InputError(f"envelope has {came}; expected a number or ({elements},), one per element, not below 0")
    return frozen(values)


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
