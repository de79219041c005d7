"""The section ``data``: measured values from a CSV file or from the case itself, and their noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...checks import Array
from ...errors import InputError
from ...problem import Data
from ...problem.data import gaussian_radius
from ..keys import at_key
from .table import read_columns

# What a column may be called where the case does not say it.
COLUMNS = {
    "x": ("x",),
    "y": ("y",),
    "time": ("time", "t"),
    "region": ("region",),
    "value": ("value",),
    "deviation": ("deviation", "std", "sigma"),
}


@dataclass(frozen=True)
class Measurements:
    """What the data say, a row for each value.

    Attributes
    ----------
    values, deviations
        With their standard deviations, if these are known.
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


def read_measurements(section: Mapping[str, Any], dimension: int, folder: Path) -> Measurements:
    """Values with what is known of each, from ``data.file`` or ``data.values``."""
    if ("file" in section) == ("values" in section):
        came = "both given" if "file" in section else "both missing"
        raise InputError(f"data.file and data.values are {came}; expected one of them")
    if "values" in section:
        if "columns" in section:
            raise InputError("data.columns is given without data.file; expected both")
        return _with_deviations(Measurements(np.array(section["values"], dtype=float)), section)
    named = section.get("columns", {})
    wanted = {name: (named[name],) if name in named else usual for name, usual in COLUMNS.items()}
    axes = ("x", "y")[:dimension]
    texts = ("region",)
    found = at_key(
        "data.file",
        lambda: read_columns(folder / section["file"], wanted, texts=texts, required={"value", *named}),
    )
    have = [axis for axis in axes if axis in found]
    if have and len(have) < dimension:
        raise InputError(f"data.file has the coordinate {have[0]}, not the other one; expected both or none")
    if dimension == 1 and "y" in found:
        raise InputError("data.file has a column y; the mesh has one dimension, x")
    return _with_deviations(
        Measurements(
            values=found["value"],
            deviations=found.get("deviation"),
            points=np.column_stack([found[axis] for axis in axes]) if have else None,
            regions=found.get("region"),
            times=found.get("time"),
        ).in_order(),
        section,
    )


def _with_deviations(measured: Measurements, section: Mapping[str, Any]) -> Measurements:
    """With the deviations of the case, where the file has none."""
    given, size = section.get("deviation"), measured.values.size
    if given is None:
        if measured.deviations is not None and not np.all(measured.deviations > 0.0):
            raise InputError(f"data.file has the deviation {measured.deviations.min():g}; expected positive ones")
        return measured
    if measured.deviations is not None:
        raise InputError("data.deviation is given, and a column of data.file too; expected one of them")
    if isinstance(given, list) and len(given) != size:
        raise InputError(f"data.deviation has {len(given)} entries; there are {size} values")
    deviations = np.array(np.broadcast_to(np.asarray(given, dtype=float), size))
    return Measurements(measured.values, deviations, measured.points, measured.regions, measured.times)


def build_data(section: Mapping[str, Any], measured: Measurements) -> Data:
    """The data with their noise level and, from standard deviations or a matrix, their covariance."""
    deviations = measured.deviations
    covariance: Any = None if deviations is None else deviations**2
    if "covariance" in section:
        if covariance is not None:
            raise InputError("data.covariance is given, and standard deviations too; expected one of them")
        covariance = section["covariance"]
    level = _noise_level(section, covariance, measured)
    return at_key("data", lambda: Data(measured.values, level, covariance), section)


def noise_words(section: Mapping[str, Any]) -> str:
    """Where the noise level comes from."""
    if "confidence" not in section:
        return "given in the case"
    spread = "covariance" if "covariance" in section else "deviations"
    return f"Gaussian noise with the given {spread} stays below it with probability {section['confidence']:g}"


def _noise_level(section: Mapping[str, Any], covariance: Any, measured: Measurements) -> float:
    """The level that is given; or the one that Gaussian noise of the covariance stays below with ``confidence``."""
    if ("noise_level" in section) == ("confidence" in section):
        came = "both given" if "confidence" in section else "both missing"
        advice = "a level, or with standard deviations a confidence such as 0.95"
        raise InputError(f"data.noise_level and data.confidence are {came}; expected {advice}")
    if "noise_level" in section:
        return float(section["noise_level"])
    if covariance is None:
        raise InputError("data.confidence is given without standard deviations; expected these, or data.noise_level")
    return gaussian_radius(measured.values.size, section["confidence"])
