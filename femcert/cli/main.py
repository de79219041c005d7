"""The entry point: reads the arguments, runs a command, prints what it says, turns errors into a line and a code."""

from __future__ import annotations

import argparse
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, NoReturn

from ..errors import FemcertError, InputError
from ..timing import LOGGER
from .commands import BAD_INPUT, FAILED_CHECK, UNDECIDED, Ended, NotDecidedError, add_commands
from .start import add_starting_commands

# As shells say it: 128 plus the number of the signal.
INTERRUPTED, TERMINATED = 130, 143


class _Terminated(KeyboardInterrupt):
    """SIGTERM: like Ctrl-C, it passes through everything that deals with failures."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Leave with the exit code for bad input."""
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    parser = _Parser(
        prog="femcert", description="Certified finite-element inverse problems: reconstruct, certify, select."
    )
    parser.add_argument(
        "--version", action="version", version=f"femcert {version('femcert')}", help="show the version and leave"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    add_commands(commands)
    add_starting_commands(commands)
    for command in commands.choices.values():
        command.add_argument("--quiet", action="store_true", help="no progress bar and no output but what went wrong")
        command.add_argument(
            "-v", "--verbose", action="count", default=0, help="say what takes how long; twice: in detail"
        )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What an encoding does not have, such as a file name that is not UTF-8, is shown as an escape.
            stream.reconfigure(errors="backslashreplace")
    options = argparse.Namespace(command="", quiet=False, verbose=0)
    try:
        with _termination_raises():
            build_parser().parse_args(arguments, options)
            with _stages_said(options.verbose):
                ended = options.run(options)
    except SystemExit as leaving:
        # The parser's, which has said why.
        raise SystemExit(_printed("femcert", Ended(int(leaving.code or 0)), quiet=True)) from None
    except NotDecidedError as error:
        ended = _failed(UNDECIDED, error)
    except (InputError, OSError) as error:
        ended = _failed(BAD_INPUT, error)
    except FemcertError as error:
        ended = _failed(FAILED_CHECK, error, f"{type(error).__name__}: ")
    except MemoryError as error:
        ended = _failed(BAD_INPUT, error, "not enough memory: " if str(error) else "not enough memory")
    except _Terminated as error:
        ended = _failed(TERMINATED, error, "terminated")
    except KeyboardInterrupt as error:
        ended = _failed(INTERRUPTED, error, "interrupted")
    return _printed(f"femcert {options.command}".strip(), ended, quiet=options.quiet)


def _failed(code: int, error: BaseException, prefix: str = "") -> Ended:
    return Ended(code, failure=prefix + " ".join(str(error).split()))


def _printed(name: str, ended: Ended, *, quiet: bool) -> int:
    """The exit code, after everything is printed: at its own end Python would change the code of what is left."""
    complaints = [*ended.complaints, *([f"{name}: {ended.failure}"] if ended.failure else [])]
    _write(sys.stderr, complaints)
    failed = _write(sys.stdout, [] if quiet else ended.said)
    if failed is None:
        return ended.code
    reason = f"cannot print: {failed.strerror or failed}; what goes to files is complete"
    _write(sys.stderr, [f"{name}: {reason}"])
    return ended.code or BAD_INPUT


def _write(stream: Any, lines: Sequence[Any]) -> OSError | None:
    """Write lines and flush; what went wrong, unless the reader has left, as ``head`` does after its last line.

    A stream that fails once is silent from then on. There is none where it was closed before.
    """
    try:
        if stream is not None:
            stream.write("".join(f"{line}\n" for line in lines))
            stream.flush()
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        return None if isinstance(error, BrokenPipeError) else error
    return None


@contextmanager
def _termination_raises() -> Iterator[None]:
    """Let SIGTERM unwind like Ctrl-C, so that workers end; where somebody else handles it, leave it alone."""
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def terminate(*_: Any) -> NoReturn:
        raise _Terminated

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def _stages_said(verbosity: int) -> Iterator[None]:
    """Say stages and their durations on stderr: with 1 the main ones, with 2 all of them and when they begin."""
    if not verbosity:
        yield
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    former = LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO if verbosity == 1 else logging.DEBUG)
    try:
        yield
    finally:
        LOGGER.setLevel(former)
        LOGGER.removeHandler(handler)
