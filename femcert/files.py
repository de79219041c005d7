"""What may be opened to be read: a pipe or a device may never end."""

from __future__ import annotations

import stat
from pathlib import Path

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
