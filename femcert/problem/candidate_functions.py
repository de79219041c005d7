"""The functions behind a candidate, and their nodal interpolants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import Array, frozen, number, real_array
from ..errors import CandidateError, InputError
from ..mesh.elements import sampled
from ..mesh.sample import callable_of
from .base import Problem

# Of the largest value: by how much a function may differ when it is evaluated again (networks in single precision).
REPEATED = 1e-5


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


def sampled_state(problem: Problem, state: Any) -> NDArray[Any]:
    """Nodal interpolant of a function, or a column for each function in a list (a vector if there is one)."""
    if not isinstance(state, (list, tuple)):
        return sampled(problem.basis, callable_of(state), "state")
    if not state:
        raise InputError("state is an empty list; expected a function of x, or one for each observation time")
    parts = [sampled(problem.basis, callable_of(f), f"state[{i}]") for i, f in enumerate(state)]
    return np.column_stack(parts) if len(parts) != 1 else parts[0]


def checked_envelope(problem: Problem, envelope: Any) -> Any:
    """`envelope` if it is a number or one for each element, none below 0; or None."""
    if envelope is None or np.ndim(envelope) == 0:
        return None if envelope is None else number(envelope, "envelope", least=0.0)
    values, elements = real_array(envelope, "envelope"), problem.basis.mesh.nelements
    if values.shape != (elements,) or values.min() < 0.0:
        came = f"shape {values.shape}" + (f" and the least value {values.min():g}" if values.size else "")
        raise InputError(f"envelope has {came}; expected a number or ({elements},), one per element, not below 0")
    return frozen(values)


def interpolant(basis: Any, function: Any, name: str) -> Array:
    """Dof values of a function, finite and real."""
    return real_array(sampled(basis, callable_of(function), name), name)


def check_frozen(problem: Problem, candidate: Any) -> None:
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
        now, then = interpolant(basis, function, name), np.asarray(stored, dtype=float)
        if not np.abs(now - then).max() <= REPEATED * np.abs(then).max():
            raise CandidateError(f"the {name} of {candidate.name!r} changed after it was frozen; make it anew")
