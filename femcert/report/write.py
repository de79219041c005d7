"""Writes the page of a result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import InputError
from ..problem.base import Problem
from ..selection import Selection
from ..study import Study
from .files import write_atomically
from .selection_page import selection_page
from .study import study_page


def write_report(
    result: Study | Selection,
    path: str | Path,
    *,
    problem: Problem | None = None,
    timings: Mapping[str, float] | None = None,
    origin: Mapping[str, str] | None = None,
) -> Path:
    """Write a page about a study or a selection: HTML with its pictures inside, nothing loaded from anywhere.

    The file appears whole or not at all; its path is returned.

    Parameters
    ----------
    result
        A selection of `no_harm` remembers its problem and candidates. One that was loaded from a file does not: its
        page has no maps, or, with `problem`, those of what was selected.
    path
        Where to write the page: a name that ends in .html.
    problem
        Where the fields of a loaded selection live.
    timings
        Seconds of each step, for the page of a selection.
    origin
        Where a selection comes from, such as its files: shown before all else that the page knows of it.
    """
    if not isinstance(path, (str, Path)) or Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"path is {str(path)!r}; expected a file name that ends in .html")
    if isinstance(result, Study):
        if any(option is not None for option in (problem, timings, origin)):
            raise InputError("problem, timings and origin are for selections; a study has its own")
        text = study_page(result)
    elif isinstance(result, Selection):
        text = selection_page(result, problem=problem, timings=timings, origin=origin)
    else:
        raise InputError(f"result is a {type(result).__name__}; expected a Study or a Selection")
    target = Path(path)
    write_atomically(target, lambda draft: _write(draft, text))
    return target


def _write(path: Path, text: str) -> None:
    # Names may come from files whose names are not UTF-8.
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
