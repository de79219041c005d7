"""Runs a learned solver such that its failures do not affect the selection.

It runs in this process, whose memory it can write to; `femcert.selection.isolated` gives it one of its own.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import numpy as np

from ..checks import kind_of
from ..problem.base import Problem
from ..problem.candidate import Candidate, plain_copy
from ..problem.data import Data
from ..timing import context_apart

# Of an error message that goes into the record.
MOST_CHARACTERS = 500


class CandidateFailure(Exception):
    """Why a learned candidate cannot be used; the message is the reason that the selection records."""


def usable(solver: Any, problem: Problem, data: Data) -> Candidate:
    """The candidate itself, or what the callable ``solver(problem, data)`` returns, as a plain frozen copy.

    Raises
    ------
    CandidateFailure
        It is no candidate, or returned something else.
    """
    result = solver
    if not isinstance(solver, Candidate):
        if not callable(solver):
            raise CandidateFailure(f"it is {kind_of(solver)}; expected a Candidate or a callable")
        result = solver(problem, data)
    if not isinstance(result, Candidate):
        raise CandidateFailure(f"it returned {kind_of(result)}; expected a Candidate")
    return plain_copy(result)


def attempt(work: Callable[[], Any], time_limit: float | None) -> Any:
    """``work()``, with any exception and a missed time limit turned into a `CandidateFailure`.

    With a limit the work runs in a daemon thread that is abandoned when the limit has passed; compiled code that
    holds the interpreter is judged late, when it releases it. With and without a limit it runs in a copy of the
    context: a `use_backend` block that is open here holds for it, and one that it opens does not hold here. The same
    goes for numpy's error handling and the filters of warnings.
    """
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["result"] = work()
        except BaseException as error:  # noqa: BLE001  (a candidate may fail in any way)
            outcome["text"] = _described(error)
            outcome["error"] = error

    if time_limit is None:
        with np.errstate(), warnings.catch_warnings():
            copy_context().run(run)
    else:
        start = time.monotonic()
        thread = threading.Thread(target=context_apart().run, args=(run,), daemon=True, name="learned candidate")
        with np.errstate(), warnings.catch_warnings():
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


def _described(error: BaseException) -> str:
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001  (its own __str__ may fail)
        text = type(error).__name__
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + " ..."
