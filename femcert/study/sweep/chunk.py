"""A range of trials, computed at once: a pure function of the sweep and the range."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
        yield rows, batch(setting, draws, rows, grid.values(start + rows))


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
    parts = {"accepted": verdict.accepted, "baseline": verdict.baseline, "learned": verdict.learned}
    for part, values in parts.items():
        if values is None and part != "accepted":
            continue
        if type(values) is not np.ndarray or values.shape != (count,):
            raise InputError(f"the rule {name!r} returned {part} of the wrong shape; expected an array ({count},)")
        if np.isnan(values).any() if part != "accepted" else values.dtype != np.bool_:
            what = "NaN" if part != "accepted" else f"values of type {values.dtype}"
            raise InputError(f"the rule {name!r} returned {what} as {part}; expected numbers, or True and False")
    return verdict
