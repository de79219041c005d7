"""``femcert sweep``: thousands of random inverse problems."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, SolveError
from ..timing import stage
from .shared import FAILED_CHECK, SUCCESS, directory, progress, seed, whole
from .streams import complain, say

if TYPE_CHECKING:
    from ..paper import Sweep

# Seconds to wait for a scheduler to answer.
PATIENCE = 10.0
TRIALS = "trials.npz"


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "sweep",
        help="decide thousands of random inverse problems by every rule",
        description="Run the paper's sufficiency sweep and write trials.npz, tables, figures and report.html. Finished "
        "chunks are kept in DIR/chunks until all are done. The results depend neither on chunks and workers nor on how "
        "often the sweep was interrupted. Exit code 1 if it does not come out as printed.",
    )
    command.add_argument("--out", type=directory, default=Path("sweep"), metavar="DIR", help="where to write (sweep)")
    command.add_argument("--replications", type=whole, default=25, metavar="N", help="trials per regime (25)")
    command.add_argument("--seed", type=seed, default=101, metavar="N", help="of all random numbers (101)")
    command.add_argument("--chunk", type=whole, default=2048, metavar="N", help="trials computed at once (2048)")
    where = command.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=whole, default=1, metavar="N", help="number of processes (1)")
    where.add_argument("--scheduler", metavar="ADDRESS", help="compute on the workers of this Dask scheduler")
    command.add_argument("--resume", action="store_true", help="go on with a sweep that was interrupted")
    command.add_argument("--quiet", action="store_true", help="no progress bar and no table")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from ..paper import Grid
    from ..paper.checks import sweep_checks
    from ..paper.page import REPORT, sweep_files, write_sweep
    from ..report.files import check_free, draft_directory, publish

    grid, chunks, owned = Grid(replications=options.replications), options.out / "chunks", [TRIALS, *sweep_files()]
    if options.resume and not chunks.exists() and _finished(options.out, grid, options.seed):
        if not options.quiet:
            say(f"already finished; report: {options.out / REPORT}")
        return SUCCESS
    with draft_directory(options.out) as draft, progress(grid.trials, options.quiet, "trial") as bar:
        # First: a place that cannot be written to should not cost a sweep.
        check_free(options.out, owned)
        with stage("trials"), _client(options.scheduler) as client:
            result = _swept(grid, options, chunks, client, bar)
        bar.set_description_str("report")
        with stage("report"):
            write_sweep(result, draft)
        result.save(draft / TRIALS)
        publish(draft, options.out, owned=owned, last=REPORT)
        # Not before the results are in their place.
        shutil.rmtree(chunks, ignore_errors=True)
    failures = [check for check in sweep_checks(result) if not check.passed]
    for check in failures:
        complain(f"check failed: {check}")
    if not options.quiet:
        say(result, f"report: {options.out / REPORT}")
    return FAILED_CHECK if failures else SUCCESS


def _swept(grid: Any, options: argparse.Namespace, chunks: Path, client: Any, bar: Any) -> Sweep:
    from ..paper.sweep import sweep

    def finished(done: int) -> None:
        if bar.n == 0 and done > options.chunk:
            # What a former run did says nothing about how fast this one is.
            bar.initial = done
        bar.update(done - bar.n)

    return sweep(
        grid=grid, seed=options.seed, chunk=options.chunk, jobs=options.jobs, client=client, out=chunks,
        resume=options.resume, finished=finished,
    )  # fmt: skip


def _finished(out: Path, grid: Any, seed: int) -> bool:
    """Whether the results of this sweep are all there; those of another one are refused."""
    from ..paper import RULES, Sweep
    from ..paper.page import REPORT

    if not (out / TRIALS).exists() or not (out / REPORT).exists():
        return False
    found = Sweep.load(out / TRIALS)
    if (found.grid, found.seed, found.rules) != (grid, seed, tuple(RULES)):
        came = f"{found.grid.replications} replications and seed {found.seed}"
        raise InputError(f"cannot resume: {out} holds a finished sweep with other settings, {came}")
    return True


@contextmanager
def _client(address: str | None) -> Iterator[Any]:
    """A client of the Dask scheduler at this address; None without one."""
    if address is None:
        yield None
        return
    try:
        import distributed
    except ImportError as error:
        raise InputError(
            f"a scheduler needs Dask, which cannot be imported ({error}); install femcert[distributed]"
        ) from None
    # Without an address Dask would start a cluster of its own.
    if not address.strip():
        raise InputError(f"no Dask scheduler answers at {address!r}; expected an address such as 'tcp://host:8786'")
    try:
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"no Dask scheduler answers at {address!r}: {error}") from None
    with client:
        try:
            yield client
        except (distributed.KilledWorker, distributed.comm.CommClosedError) as error:
            raise SolveError(f"the workers at {address} were lost: {error}; --resume goes on") from None
