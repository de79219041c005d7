"""The command line: ``femcert validate``, ``femcert sweep``, ``femcert refine`` and their siblings.

Exit code 0 on success, 1 if a check failed, 2 on bad input or files that cannot be written, 130 and 143 if it was
interrupted or terminated (one line on stderr, no traceback).
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from .errors import FemcertError, InputError

SUCCESS, FAILED_CHECK, BAD_INPUT = 0, 1, 2
# As shells say it: 128 plus the number of the signal.
INTERRUPTED, TERMINATED = 130, 143


class _Terminated(KeyboardInterrupt):
    """SIGTERM: like Ctrl-C, it passes through everything that deals with failures."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Leave with the exit code for bad input."""
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    name = "femcert"
    try:
        with _termination_raises():
            options = build_parser().parse_args(arguments)
            name = f"femcert {options.command}"
            return int(options.run(options))
    except (InputError, OSError) as error:
        return _end(name, _one_line(error), BAD_INPUT)
    except FemcertError as error:
        return _end(name, f"{type(error).__name__}: {_one_line(error)}", FAILED_CHECK)
    except _Terminated:
        return _end(name, "terminated", TERMINATED)
    except KeyboardInterrupt:
        return _end(name, "interrupted", INTERRUPTED)


def _end(name: str, message: str, code: int) -> int:
    print(f"{name}: {message}", file=sys.stderr)
    return code


@contextmanager
def _termination_raises() -> Iterator[None]:
    """Let SIGTERM unwind like Ctrl-C, so that drafts are removed; where somebody else handles it, leave it alone."""
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def terminate(*_: Any) -> NoReturn:
        raise _Terminated

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def build_parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    parser = _Parser(
        prog="femcert", description="Certified finite-element inverse problems: reconstruct, certify, select."
    )
    parser.add_argument("--version", action=_Version, help="show the version and leave")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    _add_validate(commands)
    _add_sweep(commands)
    _add_refine(commands)
    return parser


class _Version(argparse.Action):
    """Reads the package metadata only when asked."""

    def __init__(self, option_strings: list[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=options.get("help"))

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from .selection.selection import package_versions

        print(f"femcert {package_versions()['femcert']}")
        parser.exit(SUCCESS)


def _add_validate(commands: Any) -> None:
    from .study.validation import EXPERIMENTS

    command = commands.add_parser(
        "validate",
        help="run the paper's experiments and compare",
        description="Run the paper's five experiments as finite-element problems and write tables, figures and a "
        "report with the paper's values beside the computed ones. Exit code 1 if a check failed.",
    )
    command.add_argument(
        "--out", type=_directory, default=Path("validation"), metavar="DIR", help="where to write (validation)"
    )
    command.add_argument("--only", metavar="NAME,...", help=f"some of {', '.join(EXPERIMENTS)} (all)")
    command.add_argument("--quiet", action="store_true", help="no progress bar and no summary")
    command.set_defaults(run=_validate)


def _add_sweep(commands: Any) -> None:
    command = commands.add_parser(
        "sweep",
        help="decide thousands of random inverse problems by every rule",
        description="Run the paper's sufficiency sweep, or that of a file, and write trials.npz, tables, figures and "
        "report.html. Finished chunks are kept in DIR/chunks until all are done; the results depend neither on chunks "
        "and workers nor on how often the sweep was interrupted. Exit code 1 if the paper's sweep does not come out as "
        "printed.",
    )
    command.add_argument("case", type=Path, nargs="?", metavar="CASE.toml", help="grid, rules, problem (the paper's)")
    command.add_argument("--out", type=_directory, default=Path("sweep"), metavar="DIR", help="where to write (sweep)")
    command.add_argument("--replications", type=_whole, metavar="N", help="trials per regime (as in the file, or 25)")
    command.add_argument("--seed", type=_seed, metavar="N", help="of all random numbers (as in the file, or 101)")
    command.add_argument("--chunk", type=_whole, metavar="N", help="trials computed at once (as in the file, or 2048)")
    where = command.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=_whole, default=1, metavar="N", help="number of processes (1)")
    where.add_argument("--scheduler", metavar="ADDRESS", help="compute on the workers of this Dask scheduler")
    command.add_argument("--resume", action="store_true", help="go on with a sweep that was interrupted")
    command.add_argument("--quiet", action="store_true", help="no progress bar and no table")
    command.set_defaults(run=_sweep)


def _add_refine(commands: Any) -> None:
    command = commands.add_parser(
        "refine",
        help="bound the residual of a case on finer and finer meshes",
        description="Solve the problem of a case file on a sequence of meshes and write study.csv, study.png and "
        "report.html: dofs, bounds and fitted rates.",
    )
    command.add_argument("case", type=Path, metavar="CASE.toml", help="the case file")
    command.add_argument("--levels", type=_whole, metavar="N", help="how many meshes at most (as in the file, or 5)")
    command.add_argument(
        "--adaptive",
        action=argparse.BooleanOptionalAction,
        help="refine only where the residual is large, or everywhere (as in the file, or everywhere)",
    )
    command.add_argument("--out", type=_directory, default=Path("study"), metavar="DIR", help="where to write (study)")
    command.add_argument("--quiet", action="store_true", help="no progress bar and no table")
    command.set_defaults(run=_refine)


def _whole(text: str, least: int = 1) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, came {text!r}")
    return value


def _seed(text: str) -> int:
    return _whole(text, 0)


def _directory(text: str) -> Path:
    if not text.strip():
        raise argparse.ArgumentTypeError("expected the name of a directory, came nothing")
    return Path(text)


def _validate(options: argparse.Namespace) -> int:
    from .report import write_validation
    from .report.files import check_free, draft_directory
    from .report.validation import owned_files
    from .study.validation import EXPERIMENTS, validate
    from .study.validation.run import checked_names

    named = EXPERIMENTS if options.only is None else [name.strip() for name in options.only.split(",")]
    names = checked_names([name for name in named if name])
    with _progress(len(names) + 1, options.quiet) as bar, draft_directory(options.out) as draft:
        # First: a place that cannot be written to should not cost a run.
        check_free(options.out, owned_files())

        def finished(name: str) -> None:
            bar.set_description_str(name)
            bar.update()

        result = validate(only=names, finished=finished)
        write_validation(result, draft, options.out)
        finished("report")
    for check in result.failures:
        print(f"check failed: {check}", file=sys.stderr)
    if not options.quiet:
        passed = len(result.checks) - len(result.failures)
        print(f"{passed} of {len(result.checks)} checks passed; report: {options.out / 'report.html'}")
    return SUCCESS if result.passed else FAILED_CHECK


def _sweep(options: argparse.Namespace) -> int:
    from .report.files import check_free, draft_directory, publish
    from .report.sweep import REPORT, owned_files, write_sweep
    from .report.sweep_checks import bands
    from .study.sweep import sweep
    from .study.sweep.file import paper_file, read_sweep
    from .study.sweep.store import JOINED, MANIFEST

    case = paper_file() if options.case is None else read_sweep(options.case)
    case = case.changed(replications=options.replications, seed=options.seed, chunk=options.chunk)
    chunks, owned = options.out / "chunks", ["trials.npz", MANIFEST, *owned_files()]
    if options.resume and case.is_finished(options.out):
        if not options.quiet:
            print(f"already finished; report: {options.out / REPORT}")
        return SUCCESS
    with _progress(case.grid.trials, options.quiet, "trial") as bar, draft_directory(options.out) as draft:
        check_free(options.out, owned)

        def finished(done: int) -> None:
            if bar.n == 0 and done > case.chunk:
                # What a former run did says nothing about how fast this one is.
                bar.initial = done
            bar.update(done - bar.n)

        where = {"jobs": options.jobs, "scheduler": options.scheduler, "store": chunks, "resume": options.resume}
        result = sweep(**case.options(), **where, file=chunks / JOINED, finished=finished)
        bar.set_description_str("report")
        write_sweep(result, draft, compare=not case.own)
        result.save(draft / owned[0])
        (draft / MANIFEST).write_bytes((chunks / MANIFEST).read_bytes())
        text, failures = str(result), [check for check in ([] if case.own else bands(result)) if not check.passed]
        # Closes the file of the records, which some systems want before it can be removed.
        del result
        publish(draft, options.out, owned=owned, last=REPORT)
        chunks.rename(draft / "chunks")
    for check in failures:
        print(f"check failed: {check}", file=sys.stderr)
    if not options.quiet:
        print(text)
        print(f"report: {options.out / REPORT}")
    return FAILED_CHECK if failures else SUCCESS


def _refine(options: argparse.Namespace) -> int:
    from .report import plot_study, write_report
    from .report.files import check_free, draft_directory, publish
    from .study import Level, refinement_study
    from .study.case import read_case

    files = ("study.csv", "study.png", "report.html")
    case = read_case(options.case)
    settings = {"levels": 5, **case.study}
    if options.levels is not None:
        settings["levels"] = options.levels
    if options.adaptive is not None:
        settings["adaptive"] = options.adaptive
    with _progress(settings["levels"] + 1, options.quiet) as bar, draft_directory(options.out) as draft:
        check_free(options.out, files)

        def finished(level: Level) -> None:
            bar.set_description_str(f"level {level.level}: {level.dofs:,} dofs")
            bar.update()

        study = refinement_study(case.build, mesh=case.mesh, progress=finished, **settings)
        study.save(draft / files[0])
        plot_study(study, draft / files[1])
        write_report(study, draft / files[2])
        publish(draft, options.out, owned=files, last=files[2])
    if not options.quiet:
        print(study.table())
        print(f"report: {options.out / files[2]}")
    return SUCCESS


def _progress(total: int, quiet: bool, unit: str = "step") -> Any:
    from tqdm import tqdm

    # None: no bar unless stderr is a terminal.
    return tqdm(total=total, disable=True if quiet else None, file=sys.stderr, unit=unit, leave=False)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
