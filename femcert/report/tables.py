"""Rows as CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write the named columns of `rows`; numbers with all their digits, None as an empty cell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Names may come from files whose names are not UTF-8.
    with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as stream:
        writer = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
