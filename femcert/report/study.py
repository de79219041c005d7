"""One self-contained page about a refinement study or a selection."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..selection import Selection
from ..selection.selection import package_versions
from ..study import Level, Study
from . import style
from .files import write_atomically
from .html import data_uri, render
from .selection_figure import radii_figure
from .study_figure import meshes_figure, study_figure

STOPPED = {
    "tolerance": "the upper bound reached the tolerance",
    "dofs": "the next level would have had more dofs than allowed",
    "levels": "all levels were computed",
}
HEADINGS = {
    "level": "Level", "elements": "Elements", "dofs": "Dofs", "h": "h", "lower": "Lower bound", "upper": "Upper bound",
    "truth": "Truth", "effectivity": "Effectivity", "C_stab": "C stab", "radius_baseline": "R baseline",
    "radius_learned": "R learned", "decision": "Decision", "seconds": "Seconds",
}  # fmt: skip
# Rounding of a bound that is sharp.
_SLACK = 1e-9


def write_report(result: Study | Selection, path: str | Path) -> Path:
    """Write a page about a study or a selection: HTML with its pictures inside, nothing loaded from anywhere.

    The file appears whole or not at all; its path is returned.
    """
    if isinstance(result, Study):
        text = study_page(result)
    elif isinstance(result, Selection):
        text = selection_page(result)
    else:
        raise InputError(f"result is a {type(result).__name__}; expected a Study or a Selection")
    target = Path(path)
    write_atomically(target, lambda draft: _write(draft, text))
    return target


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
        stopped=STOPPED[study.stopped],
        pictures=pictures,
        versions=package_versions(),
    )


def selection_page(selection: Selection) -> str:
    """A selection as HTML."""
    pictures = []
    if selection.baseline is not None:
        pictures = [_picture(radii_figure(selection), "Radii of the two candidates, by residual")]
    return render(
        "selection.html",
        selection=selection,
        sources=_sources(selection),
        rule=_rule(selection.rule),
        pictures=pictures,
        versions=selection.versions,
    )


def _sources(selection: Selection) -> dict[str, str]:
    """Where each number of the evidence comes from; of both candidates where they differ."""
    found: dict[str, dict[str, str]] = {}
    for who, certificate in (("baseline", selection.baseline), ("learned", selection.learned)):
        if certificate is not None:
            bounds = {"radius": certificate.radius, **dict(certificate.residuals.items())}
            if certificate.stability is not None:
                bounds["stability constant"] = certificate.stability.constant
            for name, bound in bounds.items():
                found.setdefault(name, {})[who] = bound.source
    return {name: _joined(sources) for name, sources in found.items()}


def _joined(sources: dict[str, str]) -> str:
    if len(set(sources.values())) == 1:
        return next(iter(sources.values()))
    return ", ".join(f"{who}: {source}" for who, source in sources.items())


def _rule(record: dict[str, Any]) -> str:
    """The rule that was fixed beforehand, in a sentence; nothing where the record is empty."""
    if not record:
        return ""
    if "weights" not in record:
        return f"Rule: {record.get('name')}, for the {record.get('guarantee', 'discrete')} problem."
    weights = ", ".join(f"{name} {value:g}" for name, value in record["weights"].items())
    if record.get("guarantee") == "continuous":
        return f"Rule: {record.get('name')}, for the continuous problem. Physics is measured at the sensors."
    pde_norm, norm = record.get("pde_norm", "rms"), record.get("norm", "energy")
    physics = f"in the dual of the {norm} norm, by the method “{pde_norm}”"
    if pde_norm == "rms":
        physics = "as root mean square of the strong residual"
    return f"Rule: {record.get('name')} with the weights {weights}. Physics is measured {physics}."


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


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
