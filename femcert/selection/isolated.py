"""Runs a learned solver in a process of its own: it may crash, exit or write to memory without effect on the caller.

The process is a fork of this one. Problem, data and solver are there as they are, without pickling, and every write
of its own goes to its copy of the memory; only the result is pickled and sent back. This is protection from accidents,
not from malicious code.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

from ..errors import InputError, MissingPackageError
from .guard import CandidateFailure, attempt

# In seconds: what the system takes at most as the time to wait.
LONGEST_WAIT = 1e6


def in_child(work: Callable[[], Any], time_limit: float | None) -> Any:
    """``work()`` in a child process; the same as `attempt`, and whatever ends the process is a `CandidateFailure`.

    Parameters
    ----------
    work
        What to run; its result must be one that can be pickled.
    time_limit
        Seconds after which the process is killed; None: no limit.

    Raises
    ------
    InputError
        The system cannot fork.
    CandidateFailure
        The work raised, ended its process, ran past the limit, or returned what cannot be pickled.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        raise InputError("isolated=True needs a system that can fork (Linux, macOS); expected isolated=False here")
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(writer, work), daemon=True, name="learned candidate")
    try:
        with warnings.catch_warnings():
            # That threads of this process are not in the child, and are not waited for.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        writer.close()
        if not wait([reader, process.sentinel], None if time_limit is None else min(time_limit, LONGEST_WAIT)):
            raise CandidateFailure(f"it ran past the time limit of {time_limit:g} s")
        return _received(reader, process)
    finally:
        process.kill()
        process.join()
        reader.close()


def _send(writer: Connection, work: Callable[[], Any]) -> None:
    """In the child: the result, or why there is none and whether a package is missing."""
    torch = sys.modules.get("torch")
    if torch is not None:
        # The threads of OpenMP did not come along; a pool of them would be waited for without end.
        torch.set_num_threads(1)
    try:
        found: Any = ("result", attempt(work, None))
    except CandidateFailure as failure:
        missing = isinstance(failure.__cause__, (ImportError, MissingPackageError))
        found = ("missing", str(failure.__cause__)) if missing else ("failure", str(failure))
    try:
        attempt(lambda: writer.send(found), None)
    except CandidateFailure as failure:
        words = f"its result cannot be pickled, which isolated=True needs: {failure}"
        writer.send(("failure", f"{words}; expected functions at the top level of a module, or isolated=False"))


def _received(reader: Connection, process: Any) -> Any:
    try:
        kind, content = reader.recv() if reader.poll() else (None, None)
    except EOFError:
        kind = None
    if kind == "result":
        return content
    if kind == "missing":
        raise CandidateFailure(content) from MissingPackageError(content)
    if kind == "failure":
        raise CandidateFailure(content)
    process.join()
    code = process.exitcode
    ended = f"by the signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    raise CandidateFailure(f"its process ended {ended}")
