"""The section ``sensors``: what is measured. Where, is said there or in the columns of the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from skfem import Basis

from ...errors import InputError
from ...problem import AverageSensors, BoundarySensors, PointSensors, RaySensors, RegionSensors
from ...problem.sensors import Sensors
from ..keys import at_key
from .data import Measurements


def build_sensors(section: Mapping[str, Any], basis: Basis, measured: Measurements) -> Sensors:
    """The sensors of a case."""
    kind = section["kind"]
    options = {name: value for name, value in section.items() if name != "kind"}
    where = {"points": "points", "averages": "points", "regions": "regions"}.get(kind)
    for name, columns in (("points", "x, y"), ("regions", "region")):
        if name != where and getattr(measured, name) is not None:
            came = f"the data have the column {columns}"
            raise InputError(f"{came}, but sensors.kind is {kind!r}; expected other sensors, or data without it")
    if where is None:
        return at_key("sensors", lambda: _without_places(kind, options, basis), list(section))
    places = _places(options.pop(where, None), getattr(measured, where), where)
    if kind == "regions":
        return at_key("sensors.regions", lambda: RegionSensors(basis, places))
    made = AverageSensors if kind == "averages" else PointSensors
    return at_key("sensors", lambda: made(basis, places, **options), [where, *options])


def known_count(section: Mapping[str, Any]) -> int | None:
    """How many values the sensors give, where the section says it alone; at one time."""
    if section["kind"] == "boundary":
        return int(section["count"])
    if section["kind"] != "rays":
        return None
    angles = section["angles"]
    return int(section["bins"]) * (angles if isinstance(angles, int) else len(angles))


def _places(given: Any, measured: Any, name: str) -> Any:
    columns = "columns x, y" if name == "points" else "a column region"
    if (given is None) == (measured is None):
        came = "is missing" if given is None else "is given, and in the data too"
        raise InputError(f"sensors.{name} {came}; expected either a list there or {columns} in data.file")
    return measured if given is None else given


def _without_places(kind: str, options: dict[str, Any], basis: Basis) -> Sensors:
    if kind == "boundary":
        return BoundarySensors(basis, **options)
    angles = options.pop("angles")
    if isinstance(angles, int):
        angles = (180.0 / angles * np.arange(angles)).tolist()
    return RaySensors(basis, angles=angles, **options)
