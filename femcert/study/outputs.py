"""What a case writes: the names of its files, and what its page is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..checks import known_keys
from ..errors import InputError
from ..problem import Problem
from .keys import check_choice, checked_table, checked_text, shown

# All files that a case may write, the page last; and those that it writes unless it says otherwise.
OUTPUTS = ("selection.json", "summary.csv", "fields.vtu", "fields.xdmf", "report.html")
FILES = tuple(name for name in OUTPUTS if name != "fields.xdmf")


def files_of(value: Any) -> tuple[str, ...]:
    """The section ``output``."""
    known_keys(checked_table(value, "output"), ("files",), "output")
    wanted = value.get("files", FILES)
    if not isinstance(wanted, (list, tuple)) or not wanted:
        raise InputError(f"output.files is {shown(wanted)}; expected a list of files")
    for i, name in enumerate(wanted):
        check_choice(name, OUTPUTS, f"output.files[{i}]")
    return tuple(name for name in OUTPUTS if name in wanted)


def files_for(problem: Problem, section: Mapping[str, Any]) -> tuple[str, ...]:
    """The same where the problem is known: without a mesh to draw on, fields are written only where the case asks."""
    drawn = problem.mesh is not None or problem.basis is not None or "files" in section
    return tuple(name for name in files_of(section) if drawn or not name.startswith("fields"))


def labels_of(value: Any) -> dict[str, Any]:
    """The section ``case``: title, quantity and unit."""
    known_keys(checked_table(value, "case"), ("title", "quantity", "unit"), "case")
    return {name: checked_text(text, f"case.{name}", "a text") for name, text in value.items() if text != ""}
