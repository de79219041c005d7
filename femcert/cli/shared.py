"""What the commands share: exit codes, kinds of arguments, the progress bar."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..timing import LOGGER

SUCCESS, FAILED_CHECK, BAD_INPUT, UNDECIDED = 0, 1, 2, 3


class NotDecidedError(Exception):
    """Nothing could be decided, and there is nothing to return; the message says why."""


def whole(text: str, least: int = 1) -> int:
    """A whole number of at least `least`."""
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, came {text!r}")
    return value


def seed(text: str) -> int:
    """A whole number that is not negative."""
    return whole(text, 0)


def directory(text: str) -> Path:
    """The name of a directory, which need not exist."""
    if not text.strip():
        raise argparse.ArgumentTypeError("expected the name of a directory, came nothing")
    return Path(text)


def progress(total: int, quiet: bool, unit: str = "step") -> Any:
    """A progress bar on stderr, if that is a terminal and stages are not said there."""
    from tqdm import tqdm

    # None: no bar unless stderr is a terminal.
    hidden = True if quiet or sys.stderr is None or LOGGER.isEnabledFor(logging.INFO) else None
    return tqdm(total=total, disable=hidden, file=sys.stderr, unit=unit, leave=False)


@contextmanager
def stages_said(verbosity: int) -> Iterator[None]:
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
