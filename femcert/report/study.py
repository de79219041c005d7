"""One self-contained page about a refinement study."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ..selection.selection import package_versions
from ..study import Level, Study
from . import style
from .html import data_uri, render
from .study_figure import meshes_figure, study_figure

STOPPED = {
    "tolerance": "the upper bound reached the tolerance",
    "dofs": "the next level would have had more dofs than allowed",
    "levels": "all levels were computed",
}
HEADINGS = {
    "level": "Level", "elements": "Elements", "dofs": "Dofs", "h": "h", "lower": "Lower bound", "upper": "Upper bound",
    "truth": "Truth", "effectivity": "Effectivity", "C_stab": "C stab", "radius_baseline": "R baseline",
    "relative_baseline": "R / answer", "radius_learned": "R learned", "relative_learned": "R / answer",
    "decision": "Decision", "seconds": "Seconds",
}  # fmt: skip
# Rounding of a bound that is sharp.
_SLACK = 1e-9


def study_page(study: Study) -> str:
    """A study as HTML."""
    pictures = [
        _picture(study_figure(study), "Bounds of the residual over the dofs, with fitted slopes"),
        _picture(meshes_figure(study), "The meshes, coloured by the share of each element in the upper bound"),
    ]
    return render(
        "study.html",
        study=study,
        last=study.rows[-1],
        columns=[HEADINGS[name] for name in study.shown_columns()],
        texts=study.cells(),
        missed=[row.level for row in study.rows if not holds(row)],
        has_truth=any(row.truth is not None for row in study.rows),
        estimated=sorted({name for row in study.rows for name in row.estimates}),
        decisions=[row.decision for row in study.rows if row.decision],
        undecided=study.undecided(),
        norm=next((s.baseline.norm for s in study.selections if s is not None and s.baseline is not None), None),
        stopped=STOPPED[study.stopped],
        pictures=pictures,
        versions=package_versions(),
    )


def holds(row: Level) -> bool:
    """Whether the truth of a level, where it is known, lies between its bounds."""
    if row.truth is None:
        return True
    return row.lower <= row.truth * (1.0 + _SLACK) and row.truth <= row.upper * (1.0 + _SLACK)


def _picture(figure: Any, description: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture.png"
        style.save(figure, path)
        uri = data_uri(path)
    width, height = (int(style.DPI * inches) for inches in figure.get_size_inches())
    return {"alt": description, "uri": uri, "width": width, "height": height}
