"""A case file as a whole: whatever is wrong with it is said with its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ...errors import InputError
from ..keys import parsed_file

Made = TypeVar("Made")


def read_file(path: str | Path, read: Callable[[Mapping[str, Any], Path], Made]) -> Made:
    """``read(tables, folder)`` of a TOML file."""
    if not isinstance(path, (str, Path)):
        raise InputError(f"path is a {type(path).__name__}; expected a file name")
    path = Path(path)
    try:
        return read(parsed_file(path), path.parent)
    except InputError as error:
        raise InputError(f"case file '{path}': {error}") from None
