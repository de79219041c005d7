"""Files: what may be opened to be read, and results that appear whole or not at all."""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .errors import InputError


def check_regular(path: str | Path, *, most: int | None = None) -> None:
    """Refuse what is there and neither a file nor a directory, or a file of more than `most` bytes.

    Raises
    ------
    InputError
        Without the name of the file, which is the caller's to say.
    """
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise InputError("it is a pipe or a device; expected a file")
    if most is not None and found.st_size > most:
        raise InputError(f"it has {found.st_size:,} bytes; expected at most {most:,}")


@contextmanager
def written(path: str | Path) -> Iterator[Path]:
    """Give a name beside `path` to write to; at the end the file takes its place, after an exception it is removed.

    Raises
    ------
    InputError
        `path` is a directory, or the file cannot be written.
    """
    if not isinstance(path, (str, Path)):
        raise InputError(f"path is a {type(path).__name__}; expected a file name")
    target = Path(path)
    if not target.name or target.is_dir():
        raise InputError(f"{target} is a directory; expected the name of a file")
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield draft
        draft.replace(target)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8; names of files that are not UTF-8 themselves are shown with an escape."""
    with written(path) as draft:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")


def write_csv(path: str | Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write the named columns of `rows`; numbers with all their digits, None as an empty cell."""
    with written(path) as draft, draft.open("w", newline="", encoding="utf-8", errors="backslashreplace") as stream:
        writer = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@contextmanager
def output_directory(folder: Path, names: Iterable[str], inputs: Iterable[Path] = ()) -> Iterator[None]:
    """Make a directory for files of these names, before the work that they need; it goes again if it stays empty.

    Raises
    ------
    InputError
        It cannot be made or written to, a directory stands where a file should go, or a file is among the `inputs`.
    """
    there = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}") from None
    try:
        for name in names:
            _check_place(folder, folder / name)
            _check_apart(folder / name, inputs)
        yield
    finally:
        if not there:
            with suppress(OSError):
                folder.rmdir()


def remove_former(folder: Path, names: Sequence[str]) -> None:
    """Remove files of an earlier run, the last name first: a page never stands beside results of another run."""
    for name in reversed(names):
        try:
            (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"cannot write to {folder}: {error.strerror or error}") from None


def _check_place(folder: Path, path: Path) -> None:
    for parent in reversed([parent for parent in path.parents if parent == folder or folder in parent.parents]):
        if os.path.lexists(parent) and not parent.is_dir():
            raise InputError(f"cannot write {path}: {parent} is not a directory; move it away")
        if parent.exists() and not os.access(parent, os.W_OK | os.X_OK):
            raise InputError(f"cannot write {path}: no permission to write in {parent}")
    if path.is_dir() and not path.is_symlink():
        raise InputError(f"cannot write {path}: it is a directory; move it away")


def _check_apart(path: Path, inputs: Iterable[Path]) -> None:
    """Refuse a path that is an input, by its own name or through a link."""
    for one in (name for given in inputs for name in (given, given.resolve())):
        if os.path.lexists(path) and os.path.lexists(one) and os.path.samestat(path.lstat(), one.lstat()):
            raise InputError(f"cannot write {path}: it is an input of this run; choose another directory")
