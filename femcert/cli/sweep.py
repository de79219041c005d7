"""``femcert sweep``: thousands of random inverse problems."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..timing import stage
from .shared import FAILED_CHECK, SUCCESS, directory, progress, seed, whole
from .streams import complain, say

if TYPE_CHECKING:
    from ..report.sweep_checks import Band
    from ..study.sweep.file import SweepFile


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "sweep",
        help="decide thousands of random inverse problems by every rule",
        description="Run the paper's sufficiency sweep, or that of a file, and write trials.npz, tables, figures and "
        "report.html. Finished chunks are kept in DIR/chunks until all are done; the results depend neither on chunks "
        "and workers nor on how often the sweep was interrupted. Exit code 1 if the paper's sweep does not come out as "
        "printed.",
    )
    command.add_argument("case", type=Path, nargs="?", metavar="CASE.toml", help="grid, rules, problem (the paper's)")
    command.add_argument("--out", type=directory, default=Path("sweep"), metavar="DIR", help="where to write (sweep)")
    command.add_argument("--replications", type=whole, metavar="N", help="trials per regime (as in the file, or 25)")
    command.add_argument("--seed", type=seed, metavar="N", help="of all random numbers (as in the file, or 101)")
    command.add_argument("--chunk", type=whole, metavar="N", help="trials computed at once (as in the file, or 2048)")
    where = command.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=whole, default=1, metavar="N", help="number of processes (1)")
    where.add_argument("--scheduler", metavar="ADDRESS", help="compute on the workers of this Dask scheduler")
    command.add_argument("--resume", action="store_true", help="go on with a sweep that was interrupted")
    command.add_argument("--quiet", action="store_true", help="no progress bar and no table")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from ..report.files import draft_directory
    from ..report.sweep import REPORT
    from ..study.sweep.file import paper_file, read_sweep
    from ..study.sweep.lock import locked

    case = paper_file() if options.case is None else read_sweep(options.case)
    case = case.changed(replications=options.replications, seed=options.seed, chunk=options.chunk)
    # Kept until the results are in their place: another sweep would meet files that come and go.
    with locked(options.out), draft_directory(options.out) as draft:
        if options.resume and case.is_finished(options.out):
            if not options.quiet:
                say(f"already finished; report: {options.out / REPORT}")
            return SUCCESS
        text, failures = _write(case, options, draft)
    for check in failures:
        complain(f"check failed: {check}")
    if not options.quiet:
        say(text, f"report: {options.out / REPORT}")
    return FAILED_CHECK if failures else SUCCESS


def _write(case: SweepFile, options: argparse.Namespace, draft: Path) -> tuple[str, list[Band]]:
    """Compute, write the results, and return what to print of them."""
    from ..report.files import check_free, publish
    from ..report.sweep import REPORT, owned_files, write_sweep
    from ..report.sweep_checks import bands
    from ..study.sweep import sweep
    from ..study.sweep.store import JOINED, MANIFEST, sealed_manifest

    chunks, owned = options.out / "chunks", ["trials.npz", MANIFEST, *owned_files()]
    check_free(options.out, owned)
    with progress(case.grid.trials, options.quiet, "trial") as bar:

        def finished(done: int) -> None:
            if bar.n == 0 and done > case.chunk:
                # What a former run did says nothing about how fast this one is.
                bar.initial = done
            bar.update(done - bar.n)

        where = {"jobs": options.jobs, "scheduler": options.scheduler, "store": chunks, "resume": options.resume}
        with stage("trials"):
            result = sweep(**case.options(), **where, file=chunks / JOINED, finished=finished)
        bar.set_description_str("report")
        with stage("report"):
            write_sweep(result, draft, compare=not case.own)
        result.save(draft / owned[0])
        (draft / MANIFEST).write_text(sealed_manifest(chunks / MANIFEST, draft), encoding="utf-8")
        text, failures = str(result), [check for check in ([] if case.own else bands(result)) if not check.passed]
        # Closes the file of the records, which some systems want before it can be removed.
        del result
        publish(draft, options.out, owned=owned, last=REPORT)
        chunks.rename(draft / "chunks")
    return text, failures
