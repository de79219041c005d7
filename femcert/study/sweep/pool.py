"""Chunks on the processors of this machine; a worker that dies costs the chunk it was at, which is computed again."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from itertools import islice
from multiprocessing.connection import wait as wait_for

import numpy as np

from ...errors import SolveError
from .job import Job, unpacked
from .result import Records

# Chunks handed out for each worker: one that it works at and one that waits.
AHEAD = 2
# Times in a row that workers may die without any chunk getting done.
PATIENCE = 3

Range = tuple[int, int]


def in_turn(job: Job, spans: Iterable[Range]) -> Iterator[tuple[int, Records]]:
    """One chunk after the other, in this process; pairs of first trial and records."""
    for start, stop in spans:
        yield start, job(start, stop)


def in_processes(job: Job, spans: Iterable[Range], jobs: int) -> Iterator[tuple[int, Records]]:
    """Chunks on `jobs` processes, as they get done; never more than a few are in memory.

    Raises
    ------
    InputError
        A rule cannot be sent to another process.
    SolveError
        Workers died again and again.
    """
    packed, left, died = job.packed(), iter(spans), 0
    todo: list[Range] = []
    while died < PATIENCE:
        pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin, (packed,))
        running: dict[Future[bytes], Range] = {}
        try:
            while True:
                todo += islice(left, max(0, AHEAD * jobs - len(running) - len(todo)))
                while todo:
                    # The first one starts the workers.
                    with _interrupts_held():
                        running[pool.submit(_compute, *todo[0])] = todo[0]
                    del todo[0]
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    records = np.frombuffer(future.result(), job.kind)
                    start, _ = running.pop(future)
                    died = 0
                    yield start, records
        except BrokenProcessPool:
            died += 1
            todo += running.values()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    raise SolveError(
        f"worker processes died {died} times in a row; too little memory, or a script without "
        "'if __name__ == \"__main__\"'? Finished chunks are kept"
    )


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Processes that are started meanwhile never see Ctrl-C, which a terminal sends to all; here it comes later."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


_packed = b""


def _begin(packed: bytes) -> None:
    """In a worker, once: Ctrl-C is for the parent, and nobody works on for a parent that is gone."""
    global _packed
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _packed = packed


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


@cache
def _unpacked() -> Job:
    return unpacked(_packed)


def _compute(start: int, stop: int) -> bytes:
    return _unpacked()(start, stop).tobytes()
