"""Tables of what was asked: as text, as HTML, as files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..files import write_text

Rows = Sequence[Sequence[str]]


def text_table(head: Sequence[str], rows: Rows, words: str) -> str:
    """Columns side by side, and a last line for whom they hold."""
    table = [head, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join([*lines, words])


def html_table(head: Sequence[str], rows: Rows, words: str) -> str:
    """The same as an HTML table; the first cell of a row is its name."""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        f"<tr><th>{escape(name)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for name, *cells in rows
    )
    return f"<table><caption>{escape(words)}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def save_table(path: str | Path, records: Sequence[dict[str, Any]], html: Callable[[], str]) -> None:
    """Write records as CSV or JSON, or what `html` makes, by the ending of the file's name."""
    if not isinstance(path, (str, Path)):
        raise InputError(f"path is a {type(path).__name__}; expected a file name")
    writers = {".csv": lambda: _csv(records), ".json": lambda: json.dumps(records, indent=1), ".html": html}
    ending = Path(path).suffix
    if ending not in writers:
        raise InputError(f"path ends in {ending!r}; expected one of {', '.join(writers)}")
    write_text(path, writers[ending]())


def finite(value: float | None) -> float | None:
    """For JSON, which has no infinite numbers."""
    return None if value is None or not np.isfinite(value) else float(value)


def _csv(records: Sequence[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()
