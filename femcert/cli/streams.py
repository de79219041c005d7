"""What is printed. A stream that cannot take it does not change what was done, nor how the process ends."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import Any

from ..errors import InputError
from .shared import BAD_INPUT


def accept_all_letters() -> None:
    """Let the streams show what their encoding does not have, such as a file name that is not UTF-8, as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(*lines: Any) -> None:
    """Print lines; where there are results, after all files are in their place.

    A reader that leaves early, as ``head`` does, has what it wanted.

    Raises
    ------
    InputError
        The output cannot be written: the disk is full.
    """
    try:
        _write(sys.stdout, "".join(f"{line}\n" for line in lines))
    except OSError as error:
        raise InputError(f"cannot print: {error.strerror or error}; what goes to files is complete") from None


def complain(text: str) -> None:
    """Print a line on stderr, if there is one that takes it."""
    with suppress(OSError):
        _write(sys.stderr, f"{text}\n")


def flushed(code: Any) -> Any:
    """The exit code, after everything is printed that can be: at its own end Python would change the code."""
    try:
        _write(sys.stdout, "")
    except OSError as error:
        complain(f"femcert: cannot print: {error.strerror or error}")
        code = code or BAD_INPUT
    with suppress(OSError):
        _write(sys.stderr, "")
    return code


def _write(stream: Any, text: str) -> None:
    """Write and flush; a stream that fails once is silent from then on. There is none where it was closed before."""
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _silence(stream)
    except OSError:
        _silence(stream)
        raise


def _silence(stream: Any) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
