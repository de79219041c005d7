"""The sweep: batches of trials, computed here, on several processes or by a client, and kept in files on request."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, ProcessPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import fields
from functools import partial
from multiprocessing.connection import wait
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..checks import count
from ..errors import InputError, SolveError
from ..linalg.backends import Choice, named_backend, use_backend
from ..selection.selection import package_versions
from .files import Chunks
from .grid import Grid
from .rules import RULES, BatchRule, checked
from .setup import BASE_SEED
from .tally import Records, Sweep, record_type
from .trials import Setting, batches, paper_setting

# Trials computed at once: enough for the loops to leave Python, few enough for the cache, for 100 MB, and for several
# workers to have something to do.
CHUNK = 2048
# 50 GB of linear algebra for the paper's setting.
MOST_AT_ONCE = 1_048_576
# What a file of results can hold.
MOST_SEED = 2**63 - 1

Span = tuple[int, int]
Task = Callable[[int, int], Records]
# First trials of chunks, and their records.
Parts = Generator[tuple[int, Records], None, None]


def sweep(
    *,
    grid: Grid | Mapping[str, Any] | None = None,
    seed: int = BASE_SEED,
    setting: Setting | None = None,
    rules: Mapping[str, BatchRule] = RULES,
    chunk: int = CHUNK,
    jobs: int = 1,
    client: Any = None,
    out: str | PathLike[str] | None = None,
    resume: bool = False,
    finished: Callable[[int], None] = lambda trials: None,
) -> Sweep:
    """Draw all trials of a grid and decide each of them by every rule.

    The records depend neither on `chunk`, `jobs` and `client` nor on whether the sweep was interrupted and resumed.

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
        By name; each takes a `Batch` of trials to a `BatchDecision`. What a rule raises is not caught.
    chunk
        Trials computed at once. The memory for the linear algebra depends on it alone.
    jobs
        Number of processes. They are started anew, so a script with more than one must be importable (``if
        __name__ == "__main__":``) and its rules defined at the top of a module.
    client
        Computes the chunks instead: anything with ``submit(function, *arguments)`` that returns futures, such as a
        ``concurrent.futures.Executor`` or a ``dask.distributed.Client``. It must run the same version of femcert.
    out
        A directory where each finished chunk is kept, as an ``.npz`` file.
    resume
        Go on with the chunks that `out` holds. Grid, seed, chunk, problem, rules and the version of femcert must be
        those of the former run. A rule counts as the same if its name, its function's name and the arguments bound by
        ``functools.partial`` are; its code is not compared.
    finished
        Called with the number of trials done so far after each chunk, and first with those taken from `out`, if any.

    Returns
    -------
    Sweep
        A record for each trial.

    Raises
    ------
    InputError
        No rules, or one that does not answer for each trial or cannot be sent to other processes; more sensors than
        sites; settings whose numbers overflow; an `out` that cannot be written to, holds chunks of other settings or,
        without `resume`, any.
    SolveError
        A worker died.
    """
    grid = Grid() if grid is None else Grid.of(grid)
    setting = paper_setting() if setting is None else setting
    seed, chunk, jobs = count(seed, "seed", least=0), count(chunk, "chunk"), count(jobs, "jobs")
    _check(grid, setting, seed, rules, chunk)
    _check_place(jobs, client, out, resume, finished)
    records, chunks = _empty(grid.trials, len(rules)), None
    if out is not None:
        chunks = Chunks(Path(out), _settings(grid, setting, seed, rules, chunk), records.dtype, resume=resume)
    left = _read(chunks, records, chunk)
    done = grid.trials - sum(stop - start for start, stop in left)
    if done:
        finished(done)
    # The mapping of the built-in rules is a read-only view, which cannot be sent to other processes.
    task = partial(_chunk, setting, grid, seed, dict(rules), named_backend())
    # Closed at once if anything fails here, so that no worker goes on.
    with closing(_computed(task, left, jobs, client)) as computed:
        for start, part in computed:
            if chunks is not None:
                chunks.write(start, part)
            records[start : start + len(part)] = part
            done += len(part)
            finished(done)
    return Sweep(grid=grid, seed=seed, rules=tuple(rules), records=records)


def _empty(trials: int, rules: int) -> Records:
    kind = record_type(rules)
    try:
        return np.empty(trials, kind)
    except MemoryError:
        raise InputError(f"{trials:,} trials need {trials * kind.itemsize / 1e9:,.1f} GB of memory") from None


def _read(chunks: Chunks | None, records: Records, size: int) -> list[Span]:
    """Fill in the records of finished chunks; the spans of the others are returned."""
    left = []
    for start in range(0, len(records), size):
        stop = min(start + size, len(records))
        found = None if chunks is None else chunks.read(start, stop)
        if found is None:
            left.append((start, stop))
        else:
            records[start:stop] = found
    return left


def decide(
    setting: Setting, grid: Grid, seed: int, start: int, stop: int, rules: Mapping[str, BatchRule] = RULES
) -> Records:
    """The records of the trials `start` to `stop - 1`; no number in them depends on where a chunk begins or ends."""
    records = np.empty(stop - start, record_type(len(rules)))
    for rows, trials in batches(setting, grid, seed, start, stop):
        part = np.empty(len(rows), records.dtype)
        part["baseline_error"], part["learned_error"] = trials.baseline.error, trials.learned.error
        for i, (name, rule) in enumerate(rules.items()):
            decision = checked(name, rule(trials), len(rows))
            part["accepted"][:, i] = decision.accepted
            part["undecided"][:, i] = decision.undecided
            part["ratio"][:, i] = decision.ratio
        records[rows] = part
    return records


def _chunk(
    setting: Setting, grid: Grid, seed: int, rules: dict[str, BatchRule], named: Choice | None, start: int, stop: int
) -> Records:
    """`decide`, with the backend that is named where the sweep was called; the paper's rules factorize nothing."""
    with nullcontext() if named is None else use_backend(named.name, tolerance=named.tolerance):
        return decide(setting, grid, seed, start, stop, rules)


def _computed(task: Task, spans: Sequence[Span], jobs: int, client: Any) -> Parts:
    """All of these chunks, in the order of the trials."""
    if client is not None:
        yield from _submitted(task, spans, client)
    elif jobs > 1 and spans:
        _check_sendable(task)
        with ProcessPoolExecutor(min(jobs, len(spans)), multiprocessing.get_context("spawn"), _begin_worker) as pool:
            yield from _submitted(task, spans, pool)
    else:
        for start, stop in spans:
            yield start, task(start, stop)


def _submitted(task: Task, spans: Sequence[Span], client: Any) -> Parts:
    waiting = deque((start, client.submit(task, start, stop)) for start, stop in spans)
    try:
        while waiting:
            # Not held here while the next ones are waited for.
            start, future = waiting.popleft()
            yield start, future.result()
    except (BrokenExecutor, CancelledError) as error:
        raise SolveError(
            f"the workers were lost ({error or type(error).__name__}); too little memory, or a script without "
            "'if __name__ == \"__main__\"'? Chunks that are in files can be resumed"
        ) from None
    finally:
        for _, future in waiting:
            future.cancel()


def _begin_worker() -> None:
    """In a worker, once: Ctrl-C is for the parent, and a worker ends with a parent that was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _check_sendable(task: Task) -> None:
    try:
        pickle.dumps(task)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        words = "define them at the top of a module, or use one job"
        raise InputError(f"the rules cannot be sent to another process: {error}; {words}") from None


def _check(grid: Grid, setting: Any, seed: int, rules: Any, chunk: int) -> None:
    if not isinstance(setting, Setting):
        raise InputError(f"setting is a {type(setting).__name__}; expected a Setting, as Setting.of makes it")
    if not isinstance(rules, Mapping) or not rules:
        raise InputError(f"rules is {rules!r}; expected a mapping of names to rules, with at least one")
    for name, rule in rules.items():
        if not isinstance(name, str) or not callable(rule):
            raise InputError(f"rules has {rule!r} as {name!r}; expected names, and callables of a Batch")
    if max(grid.sensors) > setting.sites:
        came = f"{max(grid.sensors)} sensors are more than the {setting.sites} sites to choose from"
        raise InputError(f"{came}; expected fewer")
    if seed > MOST_SEED:
        raise InputError(f"seed is {seed}; expected at most {MOST_SEED}")
    if min(chunk, grid.trials) > MOST_AT_ONCE:
        raise InputError(f"chunk is {chunk:,}; expected at most {MOST_AT_ONCE:,} trials at once")


def _check_place(jobs: int, client: Any, out: Any, resume: bool, finished: Any) -> None:
    if client is not None and jobs > 1:
        raise InputError("there are jobs and a client; expected one of them")
    if client is not None and not callable(getattr(client, "submit", None)):
        came = f"client is a {type(client).__name__}"
        raise InputError(f"{came}; expected an object with submit(), such as an Executor or a Dask client")
    if out is not None and not isinstance(out, (str, PathLike)):
        raise InputError(f"out is {out!r}; expected the name of a directory")
    if out is None and resume:
        raise InputError("resume is set without out; expected the directory of the sweep to resume")
    if not callable(finished):
        raise InputError(f"finished is {finished!r}; expected a function of the number of trials")


def _settings(grid: Grid, setting: Setting, seed: int, rules: Mapping[str, BatchRule], chunk: int) -> dict[str, Any]:
    """What decides the records, and how they are cut into files."""
    arrays = hashlib.sha256()
    for field in fields(setting):
        arrays.update(np.asarray(getattr(setting, field.name), dtype=float).tobytes())
    return {
        "grid": vars(grid),
        "seed": seed,
        "chunk": chunk,
        "rules": [[name, _named(rule)] for name, rule in rules.items()],
        "problem": arrays.hexdigest(),
        "femcert": package_versions()["femcert"],
    }


def _named(rule: Any) -> str:
    if isinstance(rule, partial):
        bound = [*map(repr, rule.args), *(f"{name}={value!r}" for name, value in rule.keywords.items())]
        return f"{_named(rule.func)}({', '.join(bound)})"
    name = getattr(rule, "__qualname__", None)
    return repr(rule) if name is None else f"{rule.__module__}.{name}"
