"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import InputError


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` make a draft beside `path`, then rename it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def draft_directory(target: Path) -> Iterator[Path]:
    """A new empty directory inside `target`, removed at the end: a place to build what `publish` moves.

    Raises
    ------
    InputError
        `target` is a file, or cannot be made or written to.
    """
    try:
        target.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=target))
    except OSError as error:
        raise InputError(f"cannot write to {target}: {error.strerror or error}") from None
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def publish(draft: Path, target: Path, *, owned: Iterable[str], last: str) -> None:
    """Rename all files of `draft` into `target`, the file `last` at the end.

    Of the files in `target` only those named in `owned` are ours: what an earlier run left of them and this one did not
    make is removed, so that old and new results never stand side by side. Everything else is left alone.
    """
    made = sorted(str(path.relative_to(draft)) for path in draft.rglob("*") if path.is_file())
    for name in set(owned) - set(made):
        (target / name).unlink(missing_ok=True)
    for name in sorted(made, key=lambda name: name == last):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (draft / name).replace(target / name)
