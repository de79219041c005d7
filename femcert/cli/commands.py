"""The commands: their options, and what each of them does."""

from __future__ import annotations

import argparse
import hashlib
import logging
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import FemcertError, InputError, SolveError
from ..files import output_directory, remove_former
from ..timing import LOGGER, collected, stage

if TYPE_CHECKING:
    from ..paper import Sweep
    from ..selection import Selection
    from ..study.case import CertifyCase

SUCCESS, FAILED_CHECK, BAD_INPUT, UNDECIDED = 0, 1, 2, 3
# The stages of a decision that a progress bar counts: reading, both candidates with their certificates, files.
STAGES = 10
# Seconds to wait for a scheduler to answer.
PATIENCE = 10.0
TRIALS = "trials.npz"


class NotDecidedError(Exception):
    """Nothing could be decided, and there is nothing to return; the message says why."""


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes
    ----------
    code
        The exit code.
    said, complaints
        Lines for stdout (not if it is to be quiet), and for stderr.
    failure
        What stopped it, in one line.
    """

    code: int
    said: list[Any] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    failure: str = ""


def add_commands(commands: Any) -> None:
    """Add all commands to a parser."""
    _add_certify(commands)
    _add_refine(commands)
    _add_sweep(commands)
    _add_validate(commands)


def _add(commands: Any, name: str, out: str, run: Callable[..., Ended], **words: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, **words)
    command.add_argument("--out", type=_directory, default=Path(out), metavar="DIR", help=f"where to write ({out})")
    command.set_defaults(run=run)
    return command


def _add_certify(commands: Any) -> None:
    command = _add(
        commands, "certify", "certificate", run_certify,
        help="decide between a classical and a learned reconstruction",
        description="Read an inverse problem, its data and a candidate from a case file, certify the candidate and a "
        "classical baseline, and write the decision: selection.json, summary.csv, fields.vtu and report.html. Exit "
        "code 0 if the candidate is accepted or rejected; 3 if nothing could be decided, because the rule does not "
        "apply, the baseline cannot be certified or a package is missing; 2 if the case cannot be read or built.",
    )  # fmt: skip
    command.add_argument("case", type=Path, nargs="?", metavar="CASE.toml", help="the case file")
    command.add_argument(
        "--example",
        type=_directory,
        metavar="DIR",
        help="write a case with its mesh, data and candidate to DIR instead",
    )


def _add_refine(commands: Any) -> None:
    command = _add(
        commands, "refine", "study", run_refine,
        help="bound the residual of a case on finer and finer meshes",
        description="Solve the problem of a case file on a sequence of meshes and write study.csv, study.png and "
        "report.html: dofs, bounds and fitted rates.",
    )  # fmt: skip
    command.add_argument("case", type=Path, metavar="CASE.toml", help="the case file")
    command.add_argument("--levels", type=_whole, metavar="N", help="how many meshes at most (as in the file, or 5)")
    command.add_argument(
        "--adaptive",
        action=argparse.BooleanOptionalAction,
        help="refine only where the residual is large, or everywhere (as in the file, or everywhere)",
    )


def _add_sweep(commands: Any) -> None:
    command = _add(
        commands, "sweep", "sweep", run_sweep,
        help="decide thousands of random inverse problems by every rule",
        description="Run the paper's sufficiency sweep and write trials.npz, tables, figures and report.html. Finished "
        "chunks are kept in DIR/chunks until all are done. The results depend neither on chunks and workers nor on how "
        "often the sweep was interrupted. Exit code 1 if it does not come out as printed.",
    )  # fmt: skip
    command.add_argument("--replications", type=_whole, default=25, metavar="N", help="trials per regime (25)")
    command.add_argument("--seed", type=_seed, default=101, metavar="N", help="of all random numbers (101)")
    command.add_argument("--chunk", type=_whole, default=2048, metavar="N", help="trials computed at once (2048)")
    where = command.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=_whole, default=1, metavar="N", help="number of processes (1)")
    where.add_argument("--scheduler", metavar="ADDRESS", help="compute on the workers of this Dask scheduler")
    command.add_argument("--resume", action="store_true", help="go on with a sweep that was interrupted")


def _add_validate(commands: Any) -> None:
    command = _add(
        commands, "validate", "validation", run_validate,
        help="run the paper's experiments and compare",
        description="Run the paper's five experiments as finite-element problems and write tables, figures and a "
        "report with the paper's values beside the computed ones. Exit code 1 if a check failed.",
    )  # fmt: skip
    names = "poisson, heat, tomography, coefficient, stochastic"
    command.add_argument("--only", metavar="NAME,...", help=f"some of {names} (all)")


def _whole(text: str, least: int = 1) -> int:
    """A whole number of at least `least`."""
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
    """The name of a directory, which need not exist."""
    if not text.strip():
        raise argparse.ArgumentTypeError("expected the name of a directory, came nothing")
    return Path(text)


def _progress(total: int, quiet: bool, unit: str = "step") -> Any:
    """A progress bar on stderr, if that is a terminal and stages are not said there."""
    from tqdm import tqdm

    # None: no bar unless stderr is a terminal.
    hidden = True if quiet or sys.stderr is None or LOGGER.isEnabledFor(logging.INFO) else None
    return tqdm(total=total, disable=hidden, file=sys.stderr, unit=unit, leave=False)


def run_certify(options: argparse.Namespace) -> Ended:
    """From a case file to a decision, or the example that one may start from."""
    if (options.case is None) == (options.example is None):
        raise InputError("expected either a CASE.toml or --example DIR")
    if options.example is not None:
        from ..study.example import write_example

        return Ended(SUCCESS, [f"run: femcert certify {write_example(options.example)}"])
    selection, files = _certified(options)
    said = [selection, f"written: {', '.join(str(options.out / name) for name in files)}"]
    if selection.status != "undecided":
        return Ended(SUCCESS, said)
    reason = f"femcert certify: {selection.decision}: {selection.reason}"
    return Ended(UNDECIDED, said, [reason] if options.quiet else [])


def _certified(options: argparse.Namespace) -> tuple[Selection, tuple[str, ...]]:
    """The selection, and which files of it were written."""
    import numpy as np

    from ..study.outputs import OUTPUTS

    with _progress(STAGES, options.quiet) as bar:

        def began(name: str) -> None:
            bar.set_description_str(name)
            bar.update()

        # What overflows fails a check, and that says more than a warning of NumPy.
        with collected(began) as timings, np.errstate(over="ignore", invalid="ignore"):
            case = _built(options.case)
            origin = _origin(case, options.case)
            with output_directory(options.out, OUTPUTS, [options.case, *case.inputs.values()]):
                selection = _selected(case, options.case)
                remove_former(options.out, OUTPUTS)
                _write_selection(selection, options.out, case, timings.seconds, origin)
    return selection, case.files


def _built(case_file: Path) -> CertifyCase:
    """The case; whatever keeps it from being built is bad input."""
    from ..study.case import read_certify_case

    try:
        return read_certify_case(case_file)
    except InputError:
        raise
    except FemcertError as error:
        raise InputError(f"case file '{case_file}': {error}") from None


def _selected(case: CertifyCase, case_file: Path) -> Selection:
    """The decision; where not even the baseline can be computed, there is none."""
    try:
        return case.select()
    except FemcertError as error:
        raise NotDecidedError(f"case file '{case_file}': nothing is decided: {error}") from None
    except MemoryError as error:
        raise NotDecidedError(f"case file '{case_file}': nothing is decided: not enough memory ({error})") from None


def _origin(case: CertifyCase, case_file: Path) -> dict[str, str]:
    """When, from which files, and where the noise level comes from."""
    moment = datetime.now(timezone.utc)
    found = {"made at": f"{moment:%Y-%m-%d %H:%M} UTC"}
    for key, path in {"case file": case_file, **case.inputs}.items():
        found[key] = f"{path.name}, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()}"
    return {**found, f"noise level {case.data.level_words}": case.noise}


def _write_selection(
    selection: Selection, folder: Path, case: CertifyCase, timings: dict[str, float], origin: dict[str, str]
) -> None:
    """The files of a decision; the page comes last and states how long the others took."""
    from ..report import write_fields, write_report, write_summary

    for name in case.files:
        if name == "selection.json":
            selection.save(folder / name)
        elif name == "summary.csv":
            write_summary(selection, folder / name, noise=case.noise)
        elif name == "report.html":
            with stage("report"):
                write_report(selection, folder / name, timings=dict(timings), origin=origin, **case.labels)
        else:
            with stage("fields"):
                write_fields(selection, folder / name)


def run_refine(options: argparse.Namespace) -> Ended:
    """A case on finer and finer meshes."""
    from ..report import plot_study, write_report
    from ..study import Level, refinement_study
    from ..study.case import read_case

    table, picture, page = files = ("study.csv", "study.png", "report.html")
    case = read_case(options.case)
    settings = {"levels": 5, **case.study}
    for name in ("levels", "adaptive"):
        if getattr(options, name) is not None:
            settings[name] = getattr(options, name)
    with _progress(settings["levels"] + 1, options.quiet) as bar, output_directory(options.out, files, [options.case]):

        def finished(level: Level) -> None:
            bar.set_description_str(f"level {level.level}: {level.dofs:,} dofs")
            bar.update()

        with stage("levels"):
            study = refinement_study(case.build, mesh=case.mesh, progress=finished, **settings)
        with stage("report"):
            remove_former(options.out, files)
            study.save(options.out / table)
            plot_study(study, options.out / picture)
            write_report(study, options.out / page)
    return Ended(SUCCESS, [study.table(), f"report: {options.out / page}"])


def run_sweep(options: argparse.Namespace) -> Ended:
    """Thousands of random inverse problems."""
    from ..paper import Grid
    from ..paper.checks import sweep_checks
    from ..paper.page import REPORT, sweep_files, write_sweep

    grid, chunks = Grid(replications=options.replications), options.out / "chunks"
    if options.resume and not chunks.exists() and _finished(options.out, grid, options.seed):
        return Ended(SUCCESS, [f"already finished; report: {options.out / REPORT}"])
    bar = _progress(grid.trials, options.quiet, "trial")
    with output_directory(options.out, [TRIALS, *sweep_files()]), bar:
        with stage("trials"), _client(options.scheduler) as client:
            result = _swept(grid, options, chunks, client, bar)
        bar.set_description_str("report")
        # A sweep is finished where trials and page are there.
        remove_former(options.out, sweep_files())
        result.save(options.out / TRIALS)
        with stage("report"):
            write_sweep(result, options.out)
        shutil.rmtree(chunks, ignore_errors=True)
    failures = [f"check failed: {check}" for check in sweep_checks(result) if not check.passed]
    return Ended(FAILED_CHECK if failures else SUCCESS, [result, f"report: {options.out / REPORT}"], failures)


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


def run_validate(options: argparse.Namespace) -> Ended:
    """The paper's experiments."""
    from ..paper.page import validation_files, write_validation
    from ..paper.validate import EXPERIMENTS, checked_names, validate

    named = EXPERIMENTS if options.only is None else [name.strip() for name in options.only.split(",")]
    names = checked_names([name for name in named if name])
    with _progress(len(names) + 1, options.quiet) as bar, output_directory(options.out, validation_files()):

        def finished(name: str) -> None:
            bar.set_description_str(name)
            bar.update()

        with stage("experiments"):
            result = validate(only=names, finished=finished)
        with stage("report"):
            write_validation(result, options.out)
        finished("report")
    failures = [f"check failed: {check}" for check in result.failures]
    passed = f"{len(result.checks) - len(failures)} of {len(result.checks)} checks passed"
    said = [f"{passed}; report: {options.out / 'report.html'}"]
    return Ended(SUCCESS if result.passed else FAILED_CHECK, said, failures)
