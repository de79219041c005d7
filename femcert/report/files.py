"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import InputError

# No space left, over the quota, file too large.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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
        `target` is a file, or cannot be made or written to, or the disk is full.
    """
    there = target.exists()
    try:
        target.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=target))
    except OSError as error:
        raise InputError(f"cannot write to {target}: {error.strerror or error}") from None
    try:
        yield draft
    except OSError as error:
        # Of a write that fails for this, the system does not say where.
        if error.errno not in FULL or error.filename is not None:
            raise
        raise InputError(f"cannot write to {target}: {error.strerror}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        if not there:
            # Only if nothing came of it: a directory with files in it stays.
            with suppress(OSError):
                target.rmdir()


def check_free(target: Path, names: Iterable[str]) -> None:
    """Make sure that files of these names can be put below `target` and replaced there.

    Raises
    ------
    InputError
        A directory stands where a file should go, a file where a directory should be, or a directory is not writable.
    """
    for name in names:
        path = target / name
        folders = [folder for folder in reversed(path.parents) if folder == target or target in folder.parents]
        for folder in folders:
            if os.path.lexists(folder) and not folder.is_dir():
                raise InputError(f"cannot write {path}: {folder} is not a directory; move it away")
            if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
                raise InputError(f"cannot write {path}: no permission to write in {folder}")
        if path.is_dir() and not path.is_symlink():
            raise InputError(f"cannot write {path}: it is a directory; move it away")


def check_apart(target: Path, names: Iterable[str], inputs: Iterable[Path]) -> None:
    """Make sure that none of these names below `target` is an input, which the output would replace.

    Raises
    ------
    InputError
        One is, by its own path or through a link.
    """
    given = [path for path in inputs for path in (path, path.resolve()) if os.path.lexists(path)]
    for name in names:
        path = target / name
        for one in given:
            if os.path.lexists(path) and os.path.samestat(path.lstat(), one.lstat()):
                raise InputError(f"cannot write {path}: it is an input of this run; choose another directory")


def publish(draft: Path, target: Path, *, owned: Iterable[str], last: str) -> None:
    """Rename all files of `draft` into `target`, each of them whole, the file `last` at the end.

    Of the files in `target` only those named in `owned` are ours: what an earlier run left of them goes first, `last`
    before all others, so that it never stands beside results of another run. Everything else is left alone.

    Raises
    ------
    InputError
        A file cannot be put in its place.
    """
    made = sorted(str(path.relative_to(draft)) for path in draft.rglob("*") if path.is_file())
    former = sorted({*made, *owned}, key=lambda name: (name != last, name))
    check_free(target, former)
    try:
        for name in former:
            (target / name).unlink(missing_ok=True)
        for name in sorted(made, key=lambda name: name == last):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / name).replace(target / name)
    except OSError as error:
        raise InputError(f"cannot write to {target}: {error.strerror or error}") from None
