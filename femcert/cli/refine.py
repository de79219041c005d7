"""``femcert refine``: a case on finer and finer meshes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..timing import stage
from .shared import SUCCESS, directory, progress, whole
from .streams import say


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "refine",
        help="bound the residual of a case on finer and finer meshes",
        description="Solve the problem of a case file on a sequence of meshes and write study.csv, study.png and "
        "report.html: dofs, bounds and fitted rates.",
    )
    command.add_argument("case", type=Path, metavar="CASE.toml", help="the case file")
    command.add_argument("--levels", type=whole, metavar="N", help="how many meshes at most (as in the file, or 5)")
    command.add_argument(
        "--adaptive",
        action=argparse.BooleanOptionalAction,
        help="refine only where the residual is large, or everywhere (as in the file, or everywhere)",
    )
    command.add_argument("--out", type=directory, default=Path("study"), metavar="DIR", help="where to write (study)")
    command.add_argument("--quiet", action="store_true", help="no progress bar and no table")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from ..report import plot_study, write_report
    from ..report.files import check_apart, check_free, draft_directory, publish
    from ..study import Level, refinement_study
    from ..study.case import read_case

    files = ("study.csv", "study.png", "report.html")
    case = read_case(options.case)
    # No mesh has a name like these.
    check_apart(options.out, files, [options.case])
    settings = {"levels": 5, **case.study}
    if options.levels is not None:
        settings["levels"] = options.levels
    if options.adaptive is not None:
        settings["adaptive"] = options.adaptive
    with progress(settings["levels"] + 1, options.quiet) as bar, draft_directory(options.out) as draft:
        check_free(options.out, files)

        def finished(level: Level) -> None:
            bar.set_description_str(f"level {level.level}: {level.dofs:,} dofs")
            bar.update()

        with stage("levels"):
            study = refinement_study(case.build, mesh=case.mesh, progress=finished, **settings)
        with stage("report"):
            study.save(draft / files[0])
            plot_study(study, draft / files[1])
            write_report(study, draft / files[2])
        publish(draft, options.out, owned=files, last=files[2])
    if not options.quiet:
        say(study.table(), f"report: {options.out / files[2]}")
    return SUCCESS
