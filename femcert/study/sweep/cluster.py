"""Chunks on a Dask cluster (extra ``distributed``); the scheduler computes those of a lost worker again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from itertools import islice
from typing import Any

import numpy as np

from ...errors import InputError, SolveError
from ...selection.selection import package_versions
from .job import Job, unpacked
from .pool import AHEAD, PATIENCE, Range
from .result import Records

# Seconds to wait for a scheduler to answer.
PATIENCE_SECONDS = 10.0


def on_cluster(job: Job, spans: Iterable[Range], address: str) -> Iterator[tuple[int, Records]]:
    """Chunks on the workers of a Dask scheduler, as they get done; never more than a few are in memory.

    Raises
    ------
    InputError
        Dask is not installed, nobody answers at the address, or a worker has other versions of the packages.
    SolveError
        The scheduler or all workers were lost.
    """
    distributed = _dask()
    with _client(distributed, address) as client:
        try:
            yield from _chunks(distributed, client, job, spans)
        except (CancelledError, asyncio.CancelledError, distributed.comm.CommClosedError):
            raise SolveError(f"the scheduler at {address} was lost; finished chunks are kept") from None


def _chunks(distributed: Any, client: Any, job: Job, spans: Iterable[Range]) -> Iterator[tuple[int, Records]]:
    import cloudpickle

    packed, versions = job.packed(cloudpickle.dumps), package_versions()
    left, running = iter(spans), distributed.as_completed(loop=client.loop)
    lost: dict[Range, int] = {}
    at_work: dict[Any, Range] = {}

    def submit(spans: Iterable[Range]) -> None:
        for span in spans:
            future = client.submit(_compute, packed, versions, *span, pure=False)
            at_work[future] = span
            running.add(future)

    submit(islice(left, AHEAD * _threads(client)))
    for future in running:
        span = at_work.pop(future)
        try:
            data = future.result()
        except distributed.KilledWorker:
            # Dask gives up after a few workers; they may have died of other things.
            lost[span] = lost.get(span, 0) + 1
            if lost[span] >= PATIENCE:
                raise SolveError(f"trials {span[0]} to {span[1]} were lost with every worker at them") from None
            submit([span])
            continue
        except ImportError as error:
            raise InputError(f"a worker cannot run femcert: {error}") from None
        yield span[0], np.frombuffer(data, job.kind)
        # Workers may have joined.
        submit(islice(left, max(0, AHEAD * _threads(client) - len(at_work))))


def _dask() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise InputError(
            f"a scheduler needs Dask, which cannot be imported ({error}); install femcert[distributed]"
        ) from None
    return distributed


def _client(distributed: Any, address: str) -> Any:
    # Without an address Dask would start a cluster of its own.
    if not isinstance(address, str) or not address.strip():
        raise InputError(f"no Dask scheduler answers at {address!r}; expected an address such as 'tcp://host:8786'")
    try:
        return distributed.Client(address, timeout=PATIENCE_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"no Dask scheduler answers at {address!r}: {error}") from None


def _threads(client: Any) -> int:
    """Chunks that the cluster works at; workers may join later, so at least a few."""
    return max(4, sum(client.nthreads().values()))


def _compute(packed: bytes, versions: dict[str, str], start: int, stop: int) -> bytes:
    """In a worker: the records of a chunk."""
    if package_versions() != versions:
        raise InputError(f"a worker has {package_versions()}, the sweep was started with {versions}; make them equal")
    return unpacked(packed)(start, stop).tobytes()
