"""A range of trials, computed at once: a pure function of the sweep and the range."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...selection.guard import CandidateFailure, attempt
from .draw import draw
from .grid import Grid
from .result import Records, record_type
from .rules import RULES, BatchRule, Verdict
from .setting import Setting
from .trial import Batch, batch

# Squares and products of anything smaller are numbers.
LARGEST = 1e70


def decide(
    setting: Setting, grid: Grid, seed: int, start: int, stop: int, rules: Mapping[str, BatchRule] = RULES
) -> Records:
    """The records of the trials `start` to `stop - 1`; no number in them depends on where a chunk begins or ends."""
    records = np.empty(stop - start, record_type(len(rules)))
    for rows, trials in batches(setting, grid, seed, start, stop):
        part = np.empty(len(rows), records.dtype)
        part["baseline_error"], part["learned_error"] = trials.baseline.error, trials.learned.error
        for i, (name, rule) in enumerate(rules.items()):
            verdict = _checked(name, _decided(name, rule, trials), len(rows))
            part["accepted"][:, i] = verdict.accepted
            part["undecided"][:, i] = verdict.undecided
            part["ratio"][:, i] = verdict.ratio
        records[rows] = part
    return records


def batches(
    setting: Setting, grid: Grid, seed: int, start: int, stop: int
) -> Iterator[tuple[NDArray[np.int64], Batch]]:
    """The trials `start` to `stop - 1` by their number of sensors, with their positions after `start`."""
    draws = draw(seed, start, stop, places=setting.places, dimension=setting.dimension)
    sensors = grid.values(np.arange(start, stop)).sensors
    for m in np.unique(sensors):
        rows = np.flatnonzero(sensors == m)
        with np.errstate(over="ignore", invalid="ignore"):
            trials = batch(setting, draws, rows, grid.values(start + rows))
        _check_sizes(trials)
        _freeze(trials)
        yield rows, trials


def _check_sizes(trials: Batch) -> None:
    """Refuse numbers whose squares overflow."""
    both = (trials.baseline, trials.learned)
    sizes = [trials.level, *(part for c in both for part in (c.data, c.optimality, c.error))]
    largest = float(np.max(sizes))
    if not largest <= LARGEST:
        came = f"the settings lead to data, residuals or errors of {largest:.3g}"
        raise InputError(f"{came}; expected at most {LARGEST:g}, with less noise, say, or mismatch")


def _freeze(part: Any) -> None:
    """No rule can change what the next one sees."""
    for field in fields(part):
        value = getattr(part, field.name)
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        elif is_dataclass(value):
            _freeze(value)


def _decided(name: str, rule: BatchRule, trials: Batch) -> Any:
    """What a rule says; where it fails, the message says which one."""
    try:
        return attempt(lambda: rule(trials), None)
    except CandidateFailure as error:
        text = " ".join(str(error).split()).removeprefix("it ")
        raise InputError(f"the rule {name!r} {text}") from error.__cause__


def _checked(name: str, verdict: Any, count: int) -> Verdict:
    """What a rule said, if it is one answer for each trial: anything else must not pass for an acceptance."""
    if not isinstance(verdict, Verdict):
        raise InputError(f"the rule {name!r} returned a {type(verdict).__name__}; expected a Verdict")
    parts = {name: getattr(verdict, name) for name in ("accepted", "baseline", "learned", "decided")}
    for part, values in parts.items():
        if values is None and part != "accepted":
            continue
        if type(values) is not np.ndarray or values.shape != (count,):
            raise InputError(f"the rule {name!r} returned {part} of the wrong shape; expected an array ({count},)")
        flags = part in ("accepted", "decided")
        kinds = "b" if flags else "fiu"
        nan = values.dtype.kind == "f" and bool(np.isnan(values).any())
        if values.dtype.kind not in kinds or nan:
            what = "NaN" if nan else f"values of type {values.dtype}"
            raise InputError(f"the rule {name!r} returned {what} as {part}; expected numbers, or True and False")
        if not flags and np.any(values < 0):
            raise InputError(f"the rule {name!r} returned {values.min():g} as {part}; expected radii of at least 0")
    # Of a subclass, too, the ratio is that of the radii.
    found = Verdict(verdict.accepted, verdict.baseline, verdict.learned, decided=verdict.decided)
    if np.any(found.accepted & found.undecided):
        raise InputError(f"the rule {name!r} accepts where it decides nothing; expected a baseline with a radius there")
    return found
