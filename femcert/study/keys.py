"""TOML files and their keys: what is wrong is said with the name of the key."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ..errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Made = TypeVar("Made")


def parsed_file(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not valid TOML: {error}") from None


def known_keys(table: Mapping[str, Any], names: Collection[str], where: str) -> None:
    """Refuse a key that is not among the names; the message has the nearest one."""
    for name in table:
        if name not in names:
            key = f"{where}.{name}" if where else name
            raise InputError(f"unknown key {key!r}; expected one of {', '.join(names)}{nearest(name, names)}")


def nearest(name: Any, names: Collection[str]) -> str:
    """The end of a message: the name that was perhaps meant, or nothing."""
    near = difflib.get_close_matches(str(name), [str(known) for known in names], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def at_key(key: str, make: Callable[[], Made], names: Collection[str] = ()) -> Made:
    """``make()``, where an `InputError` gets the key in front; one that begins with a name of `names` is about it."""
    try:
        return make()
    except OSError as error:
        raise InputError(f"{key}: {error.strerror or error}") from None
    except InputError as error:
        text = str(error)
        if text.startswith(f"{key}."):
            raise
        raise InputError(f"{key}.{text}" if text.split(" ", 1)[0] in names else f"{key}: {text}") from None
