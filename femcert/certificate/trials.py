"""What solvers make of simulated measurements of samples: trials, in which the truth is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..checks import Array
from ..errors import FemcertError, UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.data import Data
from ..problem.samples import BATCH

Solver = Callable[[Problem, Data], Candidate]
ROLES = ("baseline", "learned")


def check_solvers(solvers: Mapping[str, Any] | None, who: str) -> dict[str, Solver]:
    """Both solvers, or an `UncertifiedError`: finished candidates say nothing of what further data would make."""
    found = {role: (solvers or {}).get(role) for role in ROLES}
    finished = [role for role, solver in found.items() if isinstance(solver, Candidate) or not callable(solver)]
    if finished:
        names = " and ".join(finished)
        raise UncertifiedError(
            f"{who} runs both solvers on simulated data; expected callables (problem, data) -> Candidate for {names}"
        )
    return found  # type: ignore[return-value]


def answers(
    problem: Problem, data: Data, measured: Array, solvers: Mapping[str, Solver]
) -> Iterator[tuple[slice, dict[str, Array]]]:
    """The parameters that the solvers find for rows of measurements, in batches of rows; NaN where one fails.

    Solvers get data as the real ones are: the same law of the noise, the same readings missing. A solver that raises
    what one may expect of it (a `FemcertError`, a wrong value, an overflow) has failed in this trial; what else it
    raises ends all of them.
    """
    for i in range(0, len(measured), BATCH):
        rows = [data.with_values(row) for row in measured[i : i + BATCH]]
        found = {role: np.array([_answer(solver, problem, row) for row in rows]) for role, solver in solvers.items()}
        yield slice(i, i + len(rows)), found


def _answer(solver: Solver, problem: Problem, data: Data) -> Array:
    try:
        found = check_candidate(problem, solver(problem, data)).parameter
    except (FemcertError, ValueError, ArithmeticError):
        return np.full(problem.parameters.size, np.nan)
    return np.asarray(found, dtype=float)


def norms(problem: Problem, fields: Array) -> Array:
    """``‖q‖_Q`` of rows of dof vectors."""
    squares = np.sum(fields * (problem.parameters.weight @ fields.T).T, axis=1)
    return np.sqrt(np.maximum(squares, 0.0))
