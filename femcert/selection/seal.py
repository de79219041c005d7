"""JSON files with a seal: the SHA-256 of what they hold, so that one digit that changed is noticed.

The seal is of the values, not of the spaces between them. It finds damage; it does not prove who wrote a file.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError

KEY = "seal"


def seal_of(record: Mapping[str, Any]) -> str:
    """SHA-256 of a record without its seal: as JSON with sorted keys, no spaces, numbers as ``repr`` writes them."""
    content = {key: value for key, value in record.items() if key != KEY}
    text = json.dumps(content, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def sealed_text(record: Mapping[str, Any]) -> str:
    """The record as JSON, its seal at the end."""
    return json.dumps({**record, KEY: seal_of(record)}, allow_nan=False, indent=1)


def parsed(text: str) -> Any:
    """What JSON says, in which no key comes twice and all numbers are finite.

    Raises
    ------
    ValueError
        It is no JSON, or not such (`InputError`).
    """
    return json.loads(text, parse_constant=_finite, parse_float=_finite, object_pairs_hook=_keys_once)


def without_seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record that was sealed.

    Raises
    ------
    InputError
        The seal is missing, or that of other values.
    """
    came = record.get(KEY)
    if came != seal_of(record):
        what = "has no seal" if came is None else "does not match its seal"
        raise InputError(f"it {what}: it was changed after it was saved, or is incomplete")
    return {key: value for key, value in record.items() if key != KEY}


def _keys_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InputError(f"it has the key {twice!r} twice")
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not np.isfinite(value):
        raise InputError(f"it holds {text}; expected finite numbers")
    return value
