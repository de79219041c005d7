"""What may be opened to be read: regular files of a size that can be meant. A pipe or a device may never end."""

from __future__ import annotations

import stat
from pathlib import Path

from .errors import InputError

# Of tables, archives and records; and of files that people write by hand.
MOST_BYTES, MOST_WRITTEN = 1 << 32, 1 << 26


def check_regular(path: str | Path, *, most: int | None = MOST_BYTES) -> None:
    """Refuse what is no file of at most `most` bytes: a pipe, a device, a socket.

    What is missing, a directory or out of reach is left to the reader, which fails at once and says why.

    Raises
    ------
    InputError
        Without the name of the file, which is the caller's to say.
    """
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return
    if stat.S_ISDIR(found.st_mode):
        return
    if not stat.S_ISREG(found.st_mode):
        raise InputError("it is a pipe or a device; expected a file")
    if most is not None and found.st_size > most:
        raise InputError(f"it has {found.st_size:,} bytes; expected at most {most:,}")
