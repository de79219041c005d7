"""Measured values: a table of text with a header, or values in the case, and the noise that they have."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..checks import Array, known_keys, naming, nearest, real_array, real_vector
from ..errors import InputError
from ..problem import Data
from .keys import checked_table, checked_text

# What a column may be called where the case does not say it.
COLUMNS = {
    "x": ("x",),
    "y": ("y",),
    "time": ("time", "t"),
    "region": ("region",),
    "value": ("value",),
    "deviation": ("deviation", "std", "sigma"),
}
# Where an entry may be missing.
GAPS = ("value", "deviation")
# The deviation, where nobody knows it.
UNKNOWN = "unknown"
# Of Gaussian data, where the case does not say it.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Measurements:
    """What the data say, a row for each value.

    Attributes
    ----------
    values, deviations
        With their standard deviations, if these are known; NaN where a reading is missing. Of repeated readings the
        values have a column for each repeat.
    points, regions, times
        Where and when, as far as the data say it: coordinates ``(rows, dimension)``, names of subdomains, times.
    """

    values: Array
    deviations: Array | None = None
    points: Array | None = None
    regions: list[str] | None = None
    times: Array | None = None

    def in_order(self) -> Measurements:
        """Time after time, the places of all times in the order of the first; places and times once each.

        Raises
        ------
        InputError
            A place has no value or two of them at some time.
        """
        if self.times is None:
            return self
        times, when = np.unique(self.times, return_inverse=True)
        places = self._places(when)
        names = list(dict.fromkeys(place for place, t in zip(places, when, strict=True) if t == 0))
        row_of: dict[tuple[Any, int], int] = {}
        for row, key in enumerate(zip(places, when.tolist(), strict=True)):
            if key in row_of:
                raise InputError(f"data.file has two values at {_said(key[0])} and time {times[key[1]]:g}")
            row_of[key] = row
        for place, t in {(place, t) for place in {*names, *places} for t in range(len(times))} - {*row_of}:
            raise InputError(f"data.file has no value at {_said(place)} and time {times[t]:g}; expected one at each")
        order = [row_of[name, t] for t in range(len(times)) for name in names]
        first = order[: len(names)]
        return Measurements(
            values=self.values[order],
            deviations=None if self.deviations is None else self.deviations[order],
            points=None if self.points is None else self.points[first],
            regions=None if self.regions is None else [self.regions[i] for i in first],
            times=times,
        )

    def _places(self, when: Any) -> list[Any]:
        if self.points is not None:
            return [tuple(point) for point in self.points.tolist()]
        if self.regions is not None:
            return list(self.regions)
        # Without a place, the n-th value of each time belongs to the n-th sensor.
        return [int(np.count_nonzero(when[:row] == t)) for row, t in enumerate(when)]


def _said(place: Any) -> str:
    return f"sensor {place}" if isinstance(place, int) else str(place)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """The table ``data`` of a case: its keys, and what they come to.

    Attributes
    ----------
    file, columns
        A CSV file, and what its columns are called: a name for some of `COLUMNS`.
    values
        The values themselves, instead of a file; of repeated readings a list for each repeat.
    repeats, equal
        The columns of repeated readings, and whether one deviation is that of all: see `Data.repeated`.
    model
        A table: the errors of the model, as `with_model_error` takes them.
    std, relative, reference, covariance, confidence
        Of Gaussian noise, as `Data.gaussian` takes them, std also ``"unknown"``; standard deviations may be a column
        of the file instead.
    deviation
        Another name for `std`.
    noise_level
        Instead of a confidence: noise within a level, in the norm that deviations or covariance give.
    """

    file: str | None = None
    columns: Any = None
    values: Any = None
    std: Any = None
    relative: Any = None
    reference: Any = None
    deviation: Any = None
    covariance: Any = None
    noise_level: float | None = None
    confidence: float | None = None
    repeats: Any = None
    equal: bool = False
    model: Any = None

    def __post_init__(self) -> None:
        if (self.file is None) == (self.values is None):
            raise InputError(f"file and data.values are {_both_or_none(self.file)}; expected one of them")
        if self.columns is not None:
            if self.file is None:
                raise InputError("columns is given without data.file; expected both")
            known_keys(checked_table(self.columns, "data.columns"), tuple(COLUMNS), "data.columns")
            for name, heading in self.columns.items():
                checked_text(heading, f"data.columns.{name}", "the name of a column")
        self._check_repeats()
        if self.std is not None and self.deviation is not None:
            raise InputError("std and data.deviation are both given, which mean the same; expected one of them")
        for name in ("std", "deviation", "relative"):
            value = getattr(self, name)
            if value is not None and not (name != "relative" and isinstance(value, str) and value == UNKNOWN):
                given = real_array(value, name)
                if given.ndim > 1 or not np.all(given > 0.0):
                    raise InputError(f"{name} is {value}; expected a positive number, or a list of them")
        if self.noise_level is not None:
            for name in ("confidence", "relative", "reference"):
                if getattr(self, name) is not None:
                    raise InputError(f"noise_level and data.{name} are both given; expected one of them")
            if self.unknown:
                raise InputError("noise_level is given, and the deviation is unknown; expected one of them")
        if self.confidence is not None and not 0.0 < self.confidence < 1.0:
            raise InputError(f"confidence is {self.confidence}; expected a number above 0 and below 1")

    def _check_repeats(self) -> None:
        if self.file is None and not self.repeated:
            real_vector(self.values, None, "values")
        if self.repeats is not None:
            if self.file is None:
                raise InputError("repeats is given without data.file; expected both, or lists in data.values")
            if not isinstance(self.repeats, list) or len(self.repeats) < 2:
                raise InputError(f"repeats is {self.repeats!r}; expected the names of at least 2 columns")
            for i, name in enumerate(self.repeats):
                checked_text(name, f"data.repeats[{i}]", "the name of a column")
        if not self.repeated:
            if self.equal:
                raise InputError("equal is given without data.repeats; it is for repeated readings")
            return
        given = [
            name for name in ("relative", "reference", "covariance", "noise_level") if getattr(self, name) is not None
        ]
        given += ["std"] * self.unknown
        if given:
            raise InputError(f"{given[0]} is given, but repeated readings show their noise; expected one of them")

    @property
    def repeated(self) -> bool:
        """Whether there are several readings of each value."""
        nested = isinstance(self.values, list) and any(isinstance(row, list) for row in self.values)
        return self.repeats is not None or nested

    @property
    def unknown(self) -> bool:
        """Whether the deviation is one that the data must show."""
        return UNKNOWN in [value for value in (self.std, self.deviation) if isinstance(value, str)]

    def read(self, dimension: int, folder: Path) -> Measurements:
        """Values with what is known of each, on a mesh of this dimension."""
        if self.file is None:
            # A row for each value, and a column for each repeat.
            return self._with_deviations(Measurements(real_array(self.values, "values").T))
        named = self.columns or {}
        wanted = {name: (named[name],) if name in named else usual for name, usual in COLUMNS.items()}
        axes = ("x", "y")[:dimension]
        with naming("data.file"):
            repeated = {name: (name,) for name in self.repeats or ()}
            required = {*(repeated or ("value",)), *named}
            wanted |= repeated
            found = read_columns(folder / self.file, wanted, texts=("region",), required=required, gaps=GAPS)
        have = [axis for axis in axes if axis in found]
        if have and len(have) < dimension:
            raise InputError(f"data.file has the coordinate {have[0]}, not the other one; expected both or none")
        if dimension == 1 and "y" in found:
            raise InputError("data.file has a column y; the mesh has one dimension, x")
        values = np.column_stack([found[name] for name in self.repeats]) if self.repeats else found["value"]
        missing, deviations = np.isnan(values.reshape(len(values), -1)[:, 0]), found.get("deviation")
        if deviations is not None:
            # Of a reading that is missing it is not used, and may be missing, too.
            deviations = np.where(missing, 1.0, deviations)
            if np.isnan(deviations).any():
                raise InputError("data.file has a value without its deviation; expected both")
        measured = Measurements(
            values=values,
            deviations=deviations,
            points=np.column_stack([found[axis] for axis in axes]) if have else None,
            regions=found.get("region"),
            times=found.get("time"),
        )
        return self._with_deviations(measured.in_order())

    def _with_deviations(self, measured: Measurements) -> Measurements:
        """With the deviations of the case, where the file has none."""
        size, own = len(measured.values), self.deviation if self.std is None else self.std
        name = "data.deviation" if self.std is None else "data.std"
        if own is None:
            if measured.deviations is not None and not np.all(measured.deviations > 0.0):
                raise InputError(f"data.file has the deviation {measured.deviations.min():g}; expected positive ones")
            return measured
        if measured.deviations is not None:
            raise InputError(f"{name} is given, and a column of data.file too; expected one of them")
        if self.unknown:
            return measured
        given = real_array(own, name)
        if given.ndim and given.size != size:
            raise InputError(f"{name} has {given.size} entries; there are {size} values")
        return replace(measured, deviations=np.array(np.broadcast_to(given, size)))

    def data(self, measured: Measurements) -> Data:
        deviations, covariance, values = measured.deviations, self.covariance, measured.values
        if covariance is not None and not (deviations is None and self.relative is None):
            raise InputError("data.covariance is given, and standard deviations too; expected one of them")
        arguments = ("values", "noise_level", "covariance", "relative", "reference", "std", "equal")
        with naming("data", {name: name for name in arguments}):
            if values.ndim > 1:
                return Data.repeated(values.T, std=deviations, equal=self.equal, confidence=self.level)
            if self.unknown:
                return Data.gaussian(
                    values, std=UNKNOWN, relative=self.relative, covariance=covariance, confidence=self.level
                )
            if self.noise_level is not None:
                return Data(values, self.noise_level, covariance if deviations is None else deviations**2)
            if deviations is None and covariance is None and self.relative is None:
                raise InputError("nothing is said of the noise; expected data.std, data.relative or data.noise_level")
            return Data.gaussian(
                values, std=deviations, relative=self.relative, reference=self.reference, covariance=covariance,
                confidence=self.level,
            )  # fmt: skip

    @property
    def level(self) -> float:
        """The confidence of Gaussian data."""
        return CONFIDENCE if self.confidence is None else self.confidence

    def noise_words(self) -> str:
        """Where the noise level comes from."""
        if self.noise_level is not None:
            return "given in the case"
        if self.unknown:
            return "of Gaussian noise whose deviation the data show"
        if self.repeated:
            return f"Gaussian noise with the scatter of the repeats stays below it with probability {self.level:g}"
        spread = "deviations" if self.covariance is None else "covariance"
        return f"Gaussian noise with the given {spread} stays below it with probability {self.level:g}"


def _both_or_none(one: Any) -> str:
    return "both missing" if one is None else "both given"


def read_columns(
    path: Path,
    wanted: Mapping[str, Sequence[str]],
    *,
    texts: Collection[str] = (),
    required: Collection[str] = (),
    gaps: Collection[str] = (),
) -> dict[str, Any]:
    """The wanted columns that the file has: arrays of finite numbers, lists for those in `texts`.

    In those in `gaps` an entry that is empty or ``nan`` is missing, and comes as NaN.

    Parameters
    ----------
    wanted
        For each name what the header may call it. Other columns are left alone.

    Raises
    ------
    InputError
        The file cannot be read, has no header or no rows, a required column is missing, or an entry is no number.
    """
    names, rows = _rows(path)
    found: dict[str, Any] = {}
    for name, headings in wanted.items():
        places = [i for i, heading in enumerate(names) if heading in headings]
        if len(places) > 1:
            raise InputError(f"{path} has {len(places)} columns for {name}: {', '.join(names[i] for i in places)}")
        if places:
            entries = [(line, row[places[0]]) for line, row in rows]
            heading = names[places[0]]
            as_numbers = partial(_numbers, path, heading, gaps=name in gaps)
            found[name] = [text for _, text in entries] if name in texts else as_numbers(entries)
        elif name in required:
            hint = nearest(headings[0], names)
            raise InputError(
                f"{path} has the columns {', '.join(names)}; expected one called {headings[0]!r}{hint}; "
                "rename yours, or name it in the case file under data.columns"
            )
    return found


def header(path: Path) -> list[str]:
    """What the columns of a file are called."""
    return _rows(path)[0]


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
    names = lines[0][1]
    for line, row in lines[1:]:
        if len(row) != len(names):
            raise InputError(f"{path}, line {line}, has {len(row)} entries; the header has {len(names)}")
    return names, lines[1:]


def _delimiter(lines: Sequence[str]) -> str:
    """What is between the entries of the header: commas, semicolons or tabs, whichever it has most."""
    header = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    return max(",;\t", key=header.count)


def _numbers(path: Path, heading: str, entries: list[tuple[int, str]], *, gaps: bool) -> Any:
    values = []
    for line, text in entries:
        if gaps and text.lower() in ("", "nan"):
            values.append(math.nan)
            continue
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
