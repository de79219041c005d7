"""Runs a learned solver so that its accidents do not reach the selection.

It runs in this process, so this is no protection from code that means harm.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any

import numpy as np

from ..linalg.backends import VARIABLE
from ..problem.base import Problem
from ..problem.candidate import Candidate, plain_copy
from ..problem.data import Data
from ..timing import context_apart

# Of an error message that goes into the record.
MOST_CHARACTERS = 500


class CandidateFailure(Exception):
    """Why a learned candidate cannot be used; the message is the reason that the selection records."""


def guarded(solver: Any, problem: Problem, data: Data, *, time_limit: float | None) -> Candidate:
    """The candidate itself, or what the callable ``solver(problem, data)`` returns, as a plain frozen copy.

    The solver gets copies of problem and data, so what it assigns to them goes nowhere.

    Raises
    ------
    CandidateFailure
        It raised, ran past the limit, returned something else than a candidate, or changed the data.
    """
    handed = Data(data.values, data.noise_level, data.covariance)

    def run() -> Candidate:
        result = solver
        if not isinstance(solver, Candidate):
            if not callable(solver):
                raise CandidateFailure(f"it is a {type(solver).__name__}; expected a Candidate or a callable")
            result = solver(problem.isolated(), handed)
        if not isinstance(result, Candidate):
            raise CandidateFailure(f"it returned a {type(result).__name__}; expected a Candidate")
        copied = plain_copy(result)
        if not _equal(data, handed):
            raise CandidateFailure("it changed the data")
        return copied

    result: Candidate = attempt(run, time_limit)
    return result


def _equal(first: Any, second: Any) -> bool:
    return all(np.array_equal(getattr(first, n), getattr(second, n)) for n in ("values", "noise_level", "covariance"))


def attempt(work: Callable[[], Any], time_limit: float | None) -> Any:
    """``work()``, with any exception and a missed time limit turned into a `CandidateFailure`.

    With a limit the work runs in a daemon thread that is abandoned when the limit has passed; compiled code that does
    not let go of the interpreter is judged late, when it does. With and without a limit it runs in a copy of the
    context: a `use_backend` block that is open here holds for it, and one that it opens does not hold here.
    """
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["result"] = work()
        except BaseException as error:  # noqa: BLE001  (a candidate may fail in any way)
            outcome["text"] = _described(error)
            outcome["error"] = error

    if time_limit is None:
        with _surroundings_restored():
            copy_context().run(run)
    else:
        start = time.monotonic()
        thread = threading.Thread(target=context_apart().run, args=(run,), daemon=True, name="learned candidate")
        with _surroundings_restored():
            thread.start()
            thread.join(min(time_limit, threading.TIMEOUT_MAX))
        if thread.is_alive() or time.monotonic() - start > time_limit:
            raise CandidateFailure(f"it ran past the time limit of {time_limit:g} s")
    if "error" in outcome:
        error = outcome["error"]
        # Without a thread of its own an interrupt is the user's.
        if isinstance(error, CandidateFailure) or (isinstance(error, KeyboardInterrupt) and time_limit is None):
            raise error
        raise CandidateFailure(f"it raised {outcome['text']}") from error
    return outcome["result"]


@contextmanager
def _surroundings_restored() -> Iterator[None]:
    """Undo what the work did to numpy's error handling, warning filters, working directory and `FEMCERT_BACKEND`."""
    here, backend = _working_directory(), os.environ.get(VARIABLE)
    try:
        with np.errstate(), warnings.catch_warnings():
            yield
    finally:
        if here is not None and _working_directory() != here:
            with suppress(OSError):
                os.chdir(here)
        if backend is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = backend


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return None


def _described(error: BaseException) -> str:
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001  (its own __str__ may fail)
        text = type(error).__name__
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + " ..."
