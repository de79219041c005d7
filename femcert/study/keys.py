"""Tables of a TOML file whose keys are the arguments of what is made from them."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..checks import known_keys, naming, nearest
from ..errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Arguments that are not keys: they come from other tables, or only Python has them.
GIVEN = frozenset({
    "self", "basis", "problem", "parameters", "sensors", "dirichlet", "neumann", "robin", "folder",
    "stability", "checked", "computed", "key", "evidence", "certified", "data",
})  # fmt: skip
# Keys with a name of their own.
CALLED = {"k": "modes", "coarse_mesh": "mesh"}
# Keys that may be missing, since the table of the measurements may say it.
MEASURED = frozenset({"points", "regions", "times"})
# Values that an annotation stands for, and their name. All others are checked where they are used.
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "a text"),
    "bool": ((bool,), "true or false"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
}
MOST_SHOWN = 60


def parsed_file(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not valid TOML: {error}") from None


@dataclass(frozen=True)
class Table:
    """A table whose keys are known, complete, and of the right types; calling it makes what it describes.

    Attributes
    ----------
    key
        Its name in the file.
    make
        Called with the values, and with what comes from elsewhere.
    values
        By their keys, without ``kind`` and those in `more`.
    kind
        The value of ``kind``, or an empty text.
    more
        Values that are not for `make`.
    """

    key: str
    make: Callable[..., Any]
    values: dict[str, Any]
    kind: str
    more: dict[str, Any]

    @classmethod
    def read(cls, value: Any, key: str, make: Any, more: Collection[str] = ()) -> Table:
        """Check a table; `make` may be a mapping from ``kind`` to what is called, and `more` are keys beside it.

        Raises
        ------
        InputError
            It is no table, its kind is missing or unknown, or a key is unknown, missing or of the wrong type.
        """
        table, kind = checked_table(value, key), ""
        if isinstance(make, Mapping):
            if "kind" not in table:
                raise InputError(f"{key}.kind is missing; expected {_listed(make)}")
            kind = check_choice(table["kind"], make, f"{key}.kind")
            make, more = make[kind], ["kind", *more]
        arguments = arguments_of(make)
        known_keys(table, [*more, *arguments], key)
        for name, argument in arguments.items():
            if name in table:
                _check_type(table[name], argument.annotation, f"{key}.{name}")
            elif argument.default is argument.empty and name not in MEASURED:
                raise InputError(f"{key}.{name} is missing")
        values = {name: table[name] for name in arguments if name in table}
        return cls(key, make, values, kind, {name: table[name] for name in more if name in table})

    @property
    def parameters(self) -> Collection[str]:
        """All arguments of what is made, also those that are no keys."""
        return inspect.signature(self.make).parameters

    @property
    def arguments(self) -> Collection[str]:
        """The keys that it may have for `make`."""
        return arguments_of(self.make)

    def __call__(self, *, values: Mapping[str, Any] | None = None, **given: Any) -> Any:
        """Make it, from `values` if these are not those of the file."""
        values = self.values if values is None else values
        arguments = {_ARGUMENTS.get(name, name): value for name, value in values.items()}
        with naming(self.key, {_ARGUMENTS.get(name, name): name for name in self.arguments}):
            return self.make(**given, **arguments)


_ARGUMENTS = {key: argument for argument, key in CALLED.items()}


def arguments_of(make: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The arguments that a table may have, by their keys."""
    parameters = inspect.signature(make).parameters
    return {CALLED.get(name, name): parameter for name, parameter in parameters.items() if name not in GIVEN}


def checked_table(value: Any, key: str) -> Mapping[str, Any]:
    """`value` if it is a table."""
    if not isinstance(value, Mapping):
        raise InputError(f"{key} is {shown(value)}; expected a table")
    return value


def check_choice(value: Any, names: Collection[Any], key: str) -> Any:
    """`value` if it is among the names; else the message has the nearest one."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value not in names:
        hint = nearest(value, names) if isinstance(value, str) else ""
        raise InputError(f"{key} is {shown(value)}; expected {_listed(names)}{hint}")
    return value


def checked_text(value: Any, key: str, what: str = "a text") -> str:
    """`value` if it is a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise InputError(f"{key} is {shown(value)}; expected {what}")
    return value


def _check_type(value: Any, annotation: Any, key: str) -> None:
    """Refuse what is not of the annotated type, where TOML has that type."""
    names = [name for name in str(annotation).split(" | ") if name != "None"]
    if not {*names} <= {*_TYPES}:
        return
    # In Python a bool is a number.
    fits = any(isinstance(value, _TYPES[name][0]) and (name == "bool") == isinstance(value, bool) for name in names)
    if not fits or value == "" or (isinstance(value, (int, float)) and not _is_finite(value)):
        raise InputError(f"{key} is {shown(value)}; expected {' or '.join(_TYPES[name][1] for name in names)}")


def _is_finite(value: float) -> bool:
    # A whole number may be larger than any float.
    return math.isfinite(value) if isinstance(value, float) else abs(value) <= sys.float_info.max


def _listed(names: Collection[Any]) -> str:
    return " or ".join(map(repr, names)) if len(names) == 2 else f"one of {', '.join(map(repr, names))}"


def shown(value: Any) -> str:
    """A value for a message, shortened."""
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + " ..."
