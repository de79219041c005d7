"""Runs the sweep chunk by chunk: here, on several processors, or on a cluster; in memory or by way of the disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ...checks import count
from ...errors import InputError
from ..validation.setup import BASE_SEED
from .chunk import batches, decide
from .grid import Grid
from .job import Job
from .lock import locked
from .pool import Range, in_processes, in_turn
from .result import Records, Sweep
from .rules import RULES, BatchRule
from .setting import Setting, paper_setting
from .store import Store, check_room

__all__ = ["BASE_SEED", "CHUNK", "batches", "decide", "sweep"]

# Trials computed at once: enough for the loops to leave Python, few enough for the cache, for 100 MB, and for several
# workers to have something to do.
CHUNK = 2048
# 50 GB of linear algebra for the paper's setting.
MOST_AT_ONCE = 1_048_576
# What a file of results can hold.
MOST_SEED = 2**63 - 1

FileName = str | PathLike[str] | None
Compute = Callable[[Iterable[Range]], Iterator[tuple[int, Records]]]


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
    file: FileName = None,
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
        No rules, a trial with more sensors than there are places, settings whose numbers overflow, a rule that fails or
        cannot be sent to other processes, a scheduler that does not answer, too little room, or a store that holds
        another sweep, is used by another process or, without `resume`, holds any.
    SolveError
        Workers died again and again.
    """
    grid = Grid() if grid is None else Grid.of(grid)
    job = Job(paper_setting() if setting is None else setting, grid, count(seed, "seed", least=0), rules)
    _check(job, count(chunk, "chunk"), count(jobs, "jobs"), scheduler, store, resume, file, finished)

    def computed(gaps: Iterable[Range]) -> Iterator[tuple[int, Records]]:
        spans = ((start, min(start + chunk, end)) for begin, end in gaps for start in range(begin, end, chunk))
        return _computed(job, spans, jobs, scheduler)

    if store is None:
        records = _in_memory(job, computed, file, finished)
    else:
        records = _by_way_of_the_disk(job, computed, Path(store), resume, file, finished)
    return Sweep(grid=grid, seed=job.seed, rules=tuple(rules), records=records)


def _check(
    job: Job, chunk: int, jobs: int, scheduler: str | None, store: Any, resume: bool, file: Any, finished: Any
) -> None:
    if job.seed > MOST_SEED:
        raise InputError(f"seed is {job.seed}; expected at most {MOST_SEED}")
    if min(chunk, job.grid.trials) > MOST_AT_ONCE:
        raise InputError(f"chunk is {chunk:,}; expected at most {MOST_AT_ONCE:,} trials at once")
    for name, value in (("store", store), ("file", file)):
        if value is not None and not isinstance(value, (str, PathLike)):
            raise InputError(f"{name} is {value!r}; expected a path")
    if not callable(finished):
        raise InputError(f"finished is {finished!r}; expected a function of the number of trials")
    if scheduler is not None and jobs > 1:
        raise InputError("there are jobs and a scheduler; expected one of them")
    if resume and store is None:
        raise InputError("resume is set without a store; expected the directory of the sweep to resume")


def _in_memory(job: Job, computed: Compute, file: FileName, finished: Callable[[int], None]) -> Records:
    records, done = _empty(job, file), 0
    for start, part in computed([(0, job.grid.trials)]):
        records[start : start + len(part)] = part
        done += len(part)
        finished(done)
    return records


def _by_way_of_the_disk(
    job: Job, computed: Compute, store: Path, resume: bool, file: FileName, finished: Callable[[int], None]
) -> Records:
    with locked(store):
        kept = Store(store, job.manifest(), job.kind, job.grid.trials, resume=resume)
        _check_file(job, file)
        done = kept.done
        if done:
            finished(done)
        for start, part in computed(kept.gaps()):
            kept.add(start, part)
            done += len(part)
            finished(done)
        records = _empty(job, file)
        kept.join(records)
    return records


def _check_file(job: Job, file: FileName) -> int:
    """Size of the records, if there is room for them: where they go to, or in memory."""
    size = job.grid.trials * job.kind.itemsize
    if file is None:
        if size > _memory():
            came = f"{job.grid.trials:,} trials need {size / 1e9:,.1f} GB of memory"
            raise InputError(f"{came}; there are {_memory() / 1e9:,.1f} GB, give file= to keep them on disk")
        return size
    if not Path(file).parent.is_dir() or Path(file).is_dir():
        raise InputError(f"cannot write {file}: expected the name of a file in a directory that exists")
    check_room(Path(file).parent, size)
    return size


def _memory() -> float:
    """Of this machine, in bytes; infinite where it does not tell."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _empty(job: Job, file: FileName) -> Records:
    size = _check_file(job, file)
    try:
        if file is None:
            return np.empty(job.grid.trials, job.kind)
        return np.lib.format.open_memmap(file, mode="w+", dtype=job.kind, shape=(job.grid.trials,))
    except MemoryError:
        raise InputError(f"{job.grid.trials:,} trials need {size / 1e9:,.1f} GB of memory; give file=") from None
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror or error}") from None


def _computed(job: Job, spans: Iterable[Range], jobs: int, scheduler: str | None) -> Iterator[tuple[int, Records]]:
    """Pairs of first trial and records, in the order in which they get done."""
    if scheduler is not None:
        from .cluster import on_cluster

        return on_cluster(job, spans, scheduler)
    return in_processes(job, spans, jobs) if jobs > 1 else in_turn(job, spans)
