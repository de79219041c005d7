"""The shape of a case file, from ``schema.json``: which keys there are and what kind of value each takes.

The schema is the one place that names them; editors can use it too. Here it is applied with messages that name the key,
say what was expected, and the nearest name. Of JSON Schema this knows what that file uses, no more.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..keys import known_keys, nearest

SCHEMA = Path(__file__).with_name("schema.json")
# The names of TOML for the types of JSON.
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "object": ((Mapping,), "a table"),
    "array": ((list,), "a list"),
    "string": ((str,), "a text"),
    "boolean": ((bool,), "true or false"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
}
_LIMITS = {"minimum": "of at least", "exclusiveMinimum": "above", "maximum": "of at most", "exclusiveMaximum": "below"}
MOST_SHOWN = 60


@cache
def definitions() -> dict[str, Any]:
    """The definitions of the schema; ``"certify"`` and ``"refine"`` describe whole files."""
    record: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    return record


def check_structure(record: Mapping[str, Any], command: str) -> None:
    """Refuse a file whose keys and kinds of values are not those of ``femcert <command>``.

    Raises
    ------
    InputError
        With the key, what came and what was expected.
    """
    _check(record, definitions()[command], "")


def _check(value: Any, schema: Mapping[str, Any], key: str) -> None:
    if "$ref" in schema:
        schema = definitions()[schema["$ref"].rpartition("/")[2]]
    if "oneOf" in schema:
        schema = _of_kind(_typed(value, {"type": "object"}, key), schema["oneOf"], key)
    if "anyOf" in schema:
        _check_any(value, schema, key)
    elif "const" not in schema:
        _check_one(value, schema, key)


def _of_kind(table: Mapping[str, Any], options: list[dict[str, Any]], key: str) -> dict[str, Any]:
    """The description of a table of this ``kind``."""
    kinds = {option["properties"]["kind"]["const"]: option for option in options}
    if "kind" not in table:
        raise InputError(f"{key}.kind is missing; expected one of {_listed(kinds)}")
    check_choice(table["kind"], kinds, f"{key}.kind")
    return kinds[table["kind"]]


def check_choice(value: Any, names: Collection[Any], key: str) -> None:
    """Refuse a value that is not among the names; the message has the nearest one."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value not in names:
        expected = " or ".join(map(repr, names)) if len(names) == 2 else f"one of {_listed(names)}"
        hint = nearest(value, names) if isinstance(value, str) else ""
        raise InputError(f"{key} is {shown(value)}; expected {expected}{hint}")


def _check_any(value: Any, schema: Mapping[str, Any], key: str) -> None:
    for option in schema["anyOf"]:
        if "enum" in option and value in option["enum"]:
            return
        if "type" in option and _is_a(value, option["type"]):
            _check(value, option, key)
            return
    raise InputError(f"{key} is {shown(value)}; expected {schema['description']}")


def _check_one(value: Any, schema: Mapping[str, Any], key: str) -> None:
    if "enum" in schema:
        check_choice(value, schema["enum"], key)
        return
    _typed(value, schema, key)
    if schema["type"] == "object":
        _check_table(value, schema, key)
    elif schema["type"] == "array":
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf):
            raise InputError(f"{key} is {shown(value)}; expected {schema['description']}")
        for i, item in enumerate(value):
            _check(item, schema["items"], f"{key}[{i}]")
    elif schema["type"] == "string" and len(value) < schema.get("minLength", 0):
        raise InputError(f"{key} is empty; expected {_words(schema)}")
    elif schema["type"] == "string" and not _fits(value, schema):
        raise InputError(f"{key} is {shown(value)}; expected {_words(schema)}")
    elif schema["type"] in ("number", "integer"):
        _check_limits(value, schema, key)


def _fits(text: str, schema: Mapping[str, Any]) -> bool:
    return len(text) <= schema.get("maxLength", math.inf) and bool(re.search(schema.get("pattern", ""), text))


def _check_table(table: Mapping[str, Any], schema: Mapping[str, Any], key: str) -> None:
    properties, more = schema.get("properties", {}), schema["additionalProperties"]
    if more is False:
        known_keys(table, properties, key)
    for name in schema.get("required", ()):
        if name not in table:
            raise InputError(f"{key}.{name} is missing" if key else f"section [{name}] is missing")
    for name, value in table.items():
        _check(value, properties.get(name, more), f"{key}.{name}" if key else name)


def _check_limits(value: float, schema: Mapping[str, Any], key: str) -> None:
    inside = (
        schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf)
        and schema.get("exclusiveMinimum", -math.inf) < value < schema.get("exclusiveMaximum", math.inf)
    )  # fmt: skip
    # A whole number may be larger than any float.
    if not (inside and abs(value) <= sys.float_info.max):
        raise InputError(f"{key} is {shown(value)}; expected {_words(schema)}")


def _typed(value: Any, schema: Mapping[str, Any], key: str) -> Any:
    if not _is_a(value, schema["type"]):
        raise InputError(f"{key} is {shown(value)}; expected {_words(schema)}")
    return value


def _is_a(value: Any, name: str) -> bool:
    # To Python a switch is a number.
    return isinstance(value, _TYPES[name][0]) and (name == "boolean" or not isinstance(value, bool))


def _words(schema: Mapping[str, Any]) -> str:
    limits = [f"{word} {schema[name]:g}" for name, word in _LIMITS.items() if name in schema]
    word = _TYPES[schema["type"]][1]
    if schema["type"] == "number" and not limits:
        word = "a finite number"
    return str(schema.get("description") or " ".join([word, " and ".join(limits)]).strip())


def _listed(names: Collection[Any]) -> str:
    return ", ".join(map(repr, names))


def shown(value: Any) -> str:
    """A value for a message, shortened."""
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + " ..."
