"""Columns of numbers from a CSV file with a header; what is between them are commas, semicolons or tabs."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ..keys import nearest


def read_columns(
    path: Path, wanted: Mapping[str, Sequence[str]], *, texts: Collection[str] = (), required: Collection[str] = ()
) -> dict[str, Any]:
    """The wanted columns that the file has: arrays of finite numbers, lists for those in `texts`.

    Parameters
    ----------
    wanted
        For each name what the header may call it. Other columns are left alone.

    Raises
    ------
    InputError
        The file cannot be read, has no header or no rows, a required column is missing, or an entry is no number.
    """
    header, rows = _rows(path)
    found: dict[str, Any] = {}
    for name, headings in wanted.items():
        places = [i for i, heading in enumerate(header) if heading in headings]
        if len(places) > 1:
            raise InputError(f"{path} has {len(places)} columns for {name}: {', '.join(header[i] for i in places)}")
        if places:
            entries = [(line, row[places[0]]) for line, row in rows]
            heading = header[places[0]]
            found[name] = [text for _, text in entries] if name in texts else _numbers(path, heading, entries)
        elif name in required:
            hint = nearest(headings[0], header)
            raise InputError(f"{path} has the columns {', '.join(header)}; expected one called {headings[0]!r}{hint}")
    return found


def _rows(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and the other lines with their numbers; empty lines and those that begin with ``#`` do not count."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            written = list(stream)
        reader = csv.reader(written, delimiter=_delimiter(written), strict=True)
        lines = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise InputError(f"{path} is too large for the memory") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is no CSV file in UTF-8: {error}") from None
    except ValueError as error:
        # Of a name that no file can have.
        raise InputError(f"{str(path)!r} cannot be read: {error}") from None
    lines = [(line, row) for line, row in lines if any(row) and not row[0].startswith("#")]
    if len(lines) < 2:
        raise InputError(f"{path} has {len(lines)} lines; expected a header and at least one row")
    header = lines[0][1]
    for line, row in lines[1:]:
        if len(row) != len(header):
            raise InputError(f"{path}, line {line}, has {len(row)} entries; the header has {len(header)}")
    return header, lines[1:]


def _delimiter(lines: Sequence[str]) -> str:
    """What is between the entries of the header: commas, semicolons or tabs, whichever it has most."""
    header = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    return max(",;\t", key=header.count)


def _numbers(path: Path, heading: str, entries: list[tuple[int, str]]) -> Any:
    values = []
    for line, text in entries:
        try:
            # What Python reads as digits, tables do not: 1_000.
            value = float(text) if "_" not in text else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            hint = ", with a decimal point" if "," in text else ""
            raise InputError(f"{path}, line {line}: {heading} is {text!r}; expected a finite number{hint}")
        values.append(value)
    return np.array(values)
