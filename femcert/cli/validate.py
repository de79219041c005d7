"""``femcert validate``: the paper's experiments."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..timing import stage
from .shared import FAILED_CHECK, SUCCESS, directory, progress
from .streams import complain, say


def add(commands: Any) -> None:
    """Add the command to the parser."""
    from ..paper.validate import EXPERIMENTS

    command = commands.add_parser(
        "validate",
        help="run the paper's experiments and compare",
        description="Run the paper's five experiments as finite-element problems and write tables, figures and a "
        "report with the paper's values beside the computed ones. Exit code 1 if a check failed.",
    )
    command.add_argument(
        "--out", type=directory, default=Path("validation"), metavar="DIR", help="where to write (validation)"
    )
    command.add_argument("--only", metavar="NAME,...", help=f"some of {', '.join(EXPERIMENTS)} (all)")
    command.add_argument("--quiet", action="store_true", help="no progress bar and no summary")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from ..paper.page import validation_files, write_validation
    from ..paper.validate import EXPERIMENTS, checked_names, validate
    from ..report.files import check_free, draft_directory

    named = EXPERIMENTS if options.only is None else [name.strip() for name in options.only.split(",")]
    names = checked_names([name for name in named if name])
    with progress(len(names) + 1, options.quiet) as bar, draft_directory(options.out) as draft:
        # First: a place that cannot be written to should not cost a run.
        check_free(options.out, validation_files())

        def finished(name: str) -> None:
            bar.set_description_str(name)
            bar.update()

        with stage("experiments"):
            result = validate(only=names, finished=finished)
        with stage("report"):
            write_validation(result, draft, options.out)
        finished("report")
    for check in result.failures:
        complain(f"check failed: {check}")
    if not options.quiet:
        passed = len(result.checks) - len(result.failures)
        say(f"{passed} of {len(result.checks)} checks passed; report: {options.out / 'report.html'}")
    return SUCCESS if result.passed else FAILED_CHECK
