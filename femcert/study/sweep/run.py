"""Runs the sweep chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...problem.checks import count
from ..validation.setup import BASE_SEED
from .draw import draw
from .grid import Grid
from .result import Records, Sweep, record_type
from .rules import RULES, BatchRule
from .setting import Setting, paper_setting
from .trial import Batch, batch

# Trials computed at once: enough for the loops to leave Python, few enough for the cache and for 100 MB.
CHUNK = 4096


def sweep(
    *,
    grid: Grid | None = None,
    seed: int = BASE_SEED,
    setting: Setting | None = None,
    rules: Mapping[str, BatchRule] = RULES,
    chunk: int = CHUNK,
    file: str | PathLike[str] | None = None,
    finished: Callable[[int], None] = lambda trials: None,
) -> Sweep:
    """Draw all trials of a grid and decide each of them by every rule.

    Parameters
    ----------
    grid
        What is varied; default: the paper's 840 regimes with 25 trials each.
    seed
        All random numbers derive from it and from a trial's number, whatever `chunk` is.
    setting
        The inverse problem; default: the paper's.
    rules
        By name; each takes a `Batch` of trials to a `Verdict`.
    chunk
        Trials computed at once. The memory for the linear algebra depends on it alone.
    file
        A ``.npy`` file for the records (about 60 bytes a trial) instead of memory.
    finished
        Called with the number of trials done so far after each chunk.

    Raises
    ------
    InputError
        No rules, or a trial with more sensors than there are places.
    """
    grid, setting = grid or Grid(), setting or paper_setting()
    count(seed, "seed", least=0)
    count(chunk, "chunk")
    if not rules:
        raise InputError("there are no rules; expected at least one")
    if max(grid.sensors) > setting.places:
        raise InputError(f"{max(grid.sensors)} sensors are more than the {setting.places} places to choose from")
    kind = record_type(len(rules))
    records = (
        np.empty(grid.trials, kind)
        if file is None
        else np.lib.format.open_memmap(file, mode="w+", dtype=kind, shape=(grid.trials,))
    )
    for start in range(0, grid.trials, chunk):
        stop = min(start + chunk, grid.trials)
        records[start:stop] = decide(setting, grid, seed, start, stop, rules)
        finished(stop)
    return Sweep(grid=grid, seed=seed, rules=tuple(rules), records=records)


def decide(
    setting: Setting, grid: Grid, seed: int, start: int, stop: int, rules: Mapping[str, BatchRule] = RULES
) -> Records:
    """The records of the trials `start` to `stop - 1`; no number in them depends on where a chunk begins or ends."""
    records = np.empty(stop - start, record_type(len(rules)))
    for rows, trials in batches(setting, grid, seed, start, stop):
        part = np.empty(len(rows), records.dtype)
        part["baseline_error"], part["learned_error"] = trials.baseline.error, trials.learned.error
        for i, rule in enumerate(rules.values()):
            verdict = rule(trials)
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
