"""The entry point: reads the arguments, runs a command, turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from ..errors import FemcertError, InputError
from . import certify, refine, sweep, validate
from .shared import BAD_INPUT, FAILED_CHECK, SUCCESS, UNDECIDED, NotDecidedError, stages_said
from .streams import accept_all_letters, complain, flushed, say

# As shells say it: 128 plus the number of the signal.
INTERRUPTED, TERMINATED = 130, 143


class _Terminated(KeyboardInterrupt):
    """SIGTERM: like Ctrl-C, it passes through everything that deals with failures."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Leave with the exit code for bad input."""
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    accept_all_letters()
    try:
        return int(flushed(_run(arguments)))
    except SystemExit as leaving:
        # The parser's, which has said why.
        raise SystemExit(flushed(leaving.code)) from None


def _run(arguments: Sequence[str] | None) -> int:
    name = "femcert"
    try:
        with _termination_raises():
            options = build_parser().parse_args(arguments)
            name = f"femcert {options.command}"
            with stages_said(options.verbose):
                return int(options.run(options))
    except NotDecidedError as error:
        return _end(name, _one_line(error), UNDECIDED)
    except (InputError, OSError) as error:
        return _end(name, _one_line(error), BAD_INPUT)
    except FemcertError as error:
        return _end(name, f"{type(error).__name__}: {_one_line(error)}", FAILED_CHECK)
    except MemoryError as error:
        return _end(name, f"not enough memory{f': {_one_line(error)}' if str(error) else ''}", BAD_INPUT)
    except _Terminated:
        return _end(name, "terminated", TERMINATED)
    except KeyboardInterrupt:
        return _end(name, "interrupted", INTERRUPTED)


def _end(name: str, message: str, code: int) -> int:
    complain(f"{name}: {message}")
    return code


@contextmanager
def _termination_raises() -> Iterator[None]:
    """Let SIGTERM unwind like Ctrl-C, so that drafts are removed; where somebody else handles it, leave it alone."""
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


def build_parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    parser = _Parser(
        prog="femcert", description="Certified finite-element inverse problems: reconstruct, certify, select."
    )
    parser.add_argument("--version", action=_Version, help="show the version and leave")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    for module in (certify, refine, sweep, validate):
        module.add(commands)
    for command in commands.choices.values():
        command.add_argument(
            "-v", "--verbose", action="count", default=0, help="say what takes how long; twice: in detail"
        )
    return parser


class _Version(argparse.Action):
    """Reads the package metadata only when asked."""

    def __init__(self, option_strings: list[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=options.get("help"))

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from ..selection.selection import package_versions

        say(f"femcert {package_versions()['femcert']}")
        parser.exit(SUCCESS)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
