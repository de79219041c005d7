"""Runs the sweep chunk by chunk: here, on several processors, or on a cluster; in memory or by way of the disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ...problem.checks import count
from ..validation.setup import BASE_SEED
from .chunk import batches, decide
from .grid import Grid
from .job import Job
from .pool import Range, in_processes, in_turn
from .result import Records, Sweep
from .rules import RULES, BatchRule
from .setting import Setting, paper_setting
from .store import Store

__all__ = ["BASE_SEED", "CHUNK", "batches", "decide", "sweep"]

# Trials computed at once: enough for the loops to leave Python, few enough for the cache, for 100 MB, and for several
# workers to have something to do.
CHUNK = 2048


def sweep(
    *,
    grid: Grid | Mapping[str, Any] | None = None,
    seed: int = BASE_SEED,
    setting: Setting | None = None,
    rules: Mapping[str, BatchRule] = RULES,
    chunk: int = CHUNK,
    jobs: int = 1,
    scheduler: str | None = None,
    store: str | PathLike[str] | None = None,
    resume: bool = False,
    file: str | PathLike[str] | None = None,
    finished: Callable[[int], None] = lambda trials: None,
) -> Sweep:
    """Draw all trials of a grid and decide each of them by every rule.

    The result does not depend on `chunk`, `jobs`, `scheduler`, or on how often the sweep was interrupted and resumed:
    not a byte of it.

    Parameters
    ----------
    grid
        What is varied, a `Grid` or its fields such as ``{"noise": (0.0, 0.1), "replications": 100}``; default: the
        paper's 840 regimes with 25 trials each.
    seed
        All random numbers derive from it and from a trial's number.
    setting
        The inverse problem, from any linear problem by `Setting.of`; default: the paper's.
    rules
        By name; each takes a `Batch` of trials to a `Verdict`.
    chunk
        Trials computed at once. The memory for the linear algebra depends on it alone.
    jobs
        Number of processes. They are started anew, so a script that asks for more than one must be importable (``if
        __name__ == "__main__":``) and its rules defined at the top of a module.
    scheduler
        Address of a Dask scheduler whose workers compute the chunks (extra ``distributed``).
    store
        A directory where each finished chunk is kept. A sweep that was killed goes on from there.
    resume
        Go on with what `store` holds.
    file
        A ``.npy`` file for the records (about 60 bytes a trial) instead of memory.
    finished
        Called with the number of trials done so far after each chunk, and at the beginning of a resumed sweep.

    Raises
    ------
    InputError
        No rules, a trial with more sensors than there are places, a rule that cannot be sent to other processes, a
        scheduler that does not answer, or a store that holds another sweep or, without `resume`, any.
    SolveError
        Workers died again and again.
    """
    grid = Grid() if grid is None else Grid.of(grid)
    job = Job(setting or paper_setting(), grid, count(seed, "seed", least=0), rules)
    count(chunk, "chunk")
    _check(job, count(jobs, "jobs"), scheduler, store, resume)
    if store is None:
        records = _empty(job, file)
        done = 0
        for start, part in _computed(job, [(0, grid.trials)], chunk, jobs, scheduler):
            records[start : start + len(part)] = part
            done += len(part)
            finished(done)
    else:
        kept = Store(Path(store), job.manifest(), job.kind, grid.trials, resume=resume)
        done = kept.done
        if done:
            finished(done)
        for start, part in _computed(job, kept.gaps(), chunk, jobs, scheduler):
            kept.add(start, part)
            done += len(part)
            finished(done)
        records = _empty(job, file)
        kept.join(records)
    return Sweep(grid=grid, seed=job.seed, rules=tuple(rules), records=records)


def _check(job: Job, jobs: int, scheduler: str | None, store: Any, resume: bool) -> None:
    if not job.rules:
        raise InputError("there are no rules; expected at least one")
    if max(job.grid.sensors) > job.setting.places:
        came = f"{max(job.grid.sensors)} sensors are more than the {job.setting.places} places to choose from"
        raise InputError(f"{came}; expected fewer")
    if scheduler is not None and jobs > 1:
        raise InputError("there are jobs and a scheduler; expected one of them")
    if resume and store is None:
        raise InputError("resume is set without a store; expected the directory of the sweep to resume")


def _empty(job: Job, file: str | PathLike[str] | None) -> Records:
    if file is None:
        return np.empty(job.grid.trials, job.kind)
    return np.lib.format.open_memmap(file, mode="w+", dtype=job.kind, shape=(job.grid.trials,))


def _computed(
    job: Job, gaps: Iterable[Range], chunk: int, jobs: int, scheduler: str | None
) -> Iterator[tuple[int, Records]]:
    """Pairs of first trial and records, in the order in which they get done."""
    spans = (
        (start, min(start + chunk, end)) for begin, end in gaps for start in range(begin, end, chunk)
    )
    if scheduler is not None:
        from .cluster import on_cluster

        return on_cluster(job, spans, scheduler)
    return in_processes(job, spans, jobs) if jobs > 1 else in_turn(job, spans)
