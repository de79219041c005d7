"""``femcert certify``: from a case file to a decision."""

from __future__ import annotations

import argparse
import hashlib
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import FemcertError, InputError
from ..timing import collected, stage
from .shared import SUCCESS, UNDECIDED, NotDecidedError, directory, progress
from .streams import complain, say

if TYPE_CHECKING:
    from ..selection import Selection
    from ..study.case import CertifyCase

# The stages that a progress bar counts: reading, both candidates with their certificates, files.
STAGES = 10


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "certify",
        help="decide between a classical and a learned reconstruction",
        description="Read an inverse problem, its data and a candidate from a case file, certify the candidate and a "
        "classical baseline, and write the decision: selection.json, summary.csv, fields.vtu and report.html. Exit "
        "code 0 if the candidate is accepted or rejected; 3 if nothing could be decided, because the rule does not "
        "apply, the baseline cannot be certified or a package is missing; 2 if the case cannot be read or built.",
    )
    command.add_argument("case", type=Path, nargs="?", metavar="CASE.toml", help="the case file")
    command.add_argument(
        "--example", type=directory, metavar="DIR", help="write a case with its mesh, data and candidate to DIR instead"
    )
    command.add_argument(
        "--out", type=directory, default=Path("certificate"), metavar="DIR", help="where to write (certificate)"
    )
    command.add_argument("--quiet", action="store_true", help="no progress bar and no table")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if (options.case is None) == (options.example is None):
        raise InputError("expected either a CASE.toml or --example DIR")
    return _example(options) if options.case is None else _certify(options)


def _example(options: argparse.Namespace) -> int:
    from ..study.example import write_example

    path = write_example(options.example)
    if not options.quiet:
        say(f"run: femcert certify {path}")
    return SUCCESS


def _certify(options: argparse.Namespace) -> int:
    import numpy as np

    from ..report.files import check_apart, check_free, draft_directory, publish
    from ..study.case import OUTPUTS

    with progress(STAGES, options.quiet) as bar:

        def began(name: str) -> None:
            bar.set_description_str(name)
            bar.update()

        # What overflows fails a check, and that says more than a warning of NumPy.
        with collected(began) as timings, np.errstate(over="ignore", invalid="ignore"):
            case = _built(options.case)
            origin = _origin(case, options.case)
            check_apart(options.out, list(OUTPUTS), [options.case, *case.inputs.values()])
            with draft_directory(options.out) as draft:
                # First: a place that cannot be written to should not cost a run.
                check_free(options.out, list(OUTPUTS))
                selection = _selected(case, options.case)
                _write(selection, draft, case, timings.seconds, origin)
                publish(draft, options.out, owned=list(OUTPUTS), last=case.files[-1])
    if not options.quiet:
        say(selection, f"written: {', '.join(str(options.out / name) for name in case.files)}")
    elif selection.status == "undecided":
        complain(f"femcert certify: {selection.decision}: {selection.reason}")
    return UNDECIDED if selection.status == "undecided" else SUCCESS


def _built(case_file: Path) -> CertifyCase:
    """The case; whatever keeps it from being built is bad input."""
    from ..study.case import read_certify_case

    try:
        return read_certify_case(case_file)
    except FemcertError as error:
        if isinstance(error, InputError):
            raise
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
    return {**found, f"noise level {case.data.noise_level:.4g}": case.noise}


def _write(
    selection: Selection, folder: Path, case: CertifyCase, timings: dict[str, float], origin: dict[str, str]
) -> None:
    """The files of a decision; the page comes last, so that it knows how long the others took."""
    from ..report import write_report
    from ..report.field_files import write_fields
    from ..report.summary import write_summary

    for name in case.files:
        if name == "selection.json":
            selection.save(folder / name)
        elif name == "summary.csv":
            write_summary(selection, folder / name, noise=case.noise)
        elif name == "report.html":
            with stage("report"):
                write_report(selection, folder / name, timings=dict(timings), origin=origin)
        else:
            with stage("fields"):
                write_fields(selection, folder / name)
