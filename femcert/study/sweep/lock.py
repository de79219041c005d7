"""One process at a time in a directory, also after one that was killed."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ...errors import InputError

LOCK = ".lock"


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep the directory to this process; a directory that was made for it and stays empty is removed again.

    The lock is a file that only one process can make, with the owner's host, number and start. One that was killed
    leaves it behind, which on the same machine is noticed.

    Raises
    ------
    InputError
        Another process works there, or the directory cannot be written to.
    """
    path, new = directory / LOCK, not directory.exists()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _take(path)
    except OSError as error:
        raise InputError(f"cannot write to {directory}: {error.strerror or error}") from None
    try:
        yield
    finally:
        # Whoever moved the directory away took the lock along.
        path.unlink(missing_ok=True)
        if new:
            with suppress(OSError):
                directory.rmdir()


def lives(process: int) -> bool:
    """Whether a process of this machine runs; True where that cannot be asked."""
    if os.name == "nt":
        # There signal 0 is no question but Ctrl-C.
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _take(path: Path) -> None:
    owner = json.dumps({"host": platform.node(), "process": os.getpid(), "start": _start(os.getpid())})
    with _alone(path.parent):
        while not _create(path, owner):
            _remove_abandoned(path)


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """One of those that come at the same time to a machine's directory, where its system can say; else all of them.

    Of three that find an abandoned lock, one could move away the lock of the second while the third makes its own.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    stream = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
    finally:
        os.close(stream)


def _create(path: Path, text: str) -> bool:
    """Make a file that is not there."""
    try:
        return _create_at_once(path, text)
    except FileExistsError:
        return False
    except (AttributeError, OSError):
        # The system or the disk has no files without a name.
        pass
    try:
        stream = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    try:
        with os.fdopen(stream, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        # On a full disk; an empty lock would stay there for good.
        path.unlink(missing_ok=True)
        raise
    return True


def _create_at_once(path: Path, text: str) -> bool:
    """Give a name to a file that is whole: a process that is killed in between leaves nothing, and no empty file."""
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        stream = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o644)
        with os.fdopen(stream, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            # With a directory, links in the path of the source are followed.
            os.link(f"/proc/self/fd/{stream}", path, src_dir_fd=directory)
    finally:
        os.close(directory)
    return True


def _remove_abandoned(path: Path) -> None:
    """Move away the lock of a process that is gone; refuse that of any other."""
    aside = path.with_name(f"{path.name}-{os.getpid()}-{os.urandom(4).hex()}")
    with suppress(FileNotFoundError):
        text = path.read_text(encoding="utf-8", errors="replace")
        owner = _owner(text)
        if not _is_gone(owner):
            who = f"process {owner.get('process')} on {owner.get('host')}" if owner else "somebody"
            raise InputError(f"{path.parent} is in use by {who}; wait for it, or remove {path} if nobody runs there")
        path.rename(aside)
        try:
            # Another one may have taken the lock over in between: it gets its own back.
            now = aside.read_text(encoding="utf-8", errors="replace")
            if now != text:
                _create(path, now)
        finally:
            aside.unlink(missing_ok=True)


def _owner(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_gone(owner: dict[str, Any]) -> bool:
    process = owner.get("process")
    if owner.get("host") != platform.node() or not isinstance(process, int):
        return False
    # Numbers are given again, above all in containers.
    return not lives(process) or _start(process) != owner.get("start")


def _start(process: int) -> str:
    """When a process began, as far as the system tells: nothing else with its number began then. A dead one: never."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return ""
    return f"{fields[19]} {boot}" if len(fields) > 19 and fields[0] not in "ZX" else ""
