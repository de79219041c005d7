"""Writes a result: its page, and the numbers of a selection as a table for other programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from ..bound import Bound
from ..certificate import Certificate
from ..errors import InputError
from ..files import write_csv, write_text
from ..problem.base import Problem
from ..selection import Selection
from ..study import Study
from .selection_page import Labels, selection_page
from .study import study_page

COLUMNS = ("candidate", "name", "selected", "quantity", "value", "side", "source", "status")


def write_report(
    result: Study | Selection,
    path: str | Path,
    *,
    problem: Problem | None = None,
    timings: Mapping[str, float] | None = None,
    origin: Mapping[str, str] | None = None,
    title: str = "",
    quantity: str = "",
    unit: str = "",
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
        Where a selection comes from, such as its files: shown before all else that is known of it.
    title, quantity, unit
        What a selection is about, what its parameter is called, and its unit: "Leak under the dam", "source", "W/m²".
    """
    if not isinstance(path, (str, Path)) or Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"path is {str(path)!r}; expected a file name that ends in .html")
    if isinstance(result, Study):
        if any(option is not None for option in (problem, timings, origin)):
            raise InputError("problem, timings and origin are for selections; a study has its own")
        text = study_page(result)
    elif isinstance(result, Selection):
        labels = Labels(title, quantity, unit)
        text = selection_page(result, problem=problem, timings=timings, origin=origin, labels=labels)
    else:
        raise InputError(f"result is a {type(result).__name__}; expected a Study or a Selection")
    write_text(path, text)
    return Path(path)


def write_summary(selection: Selection, path: str | Path, *, noise: str = "of the data") -> None:
    """CSV with a row for each number of all certificates; a certificate that could not be made has no rows.

    Parameters
    ----------
    noise
        Where the noise level comes from.
    """
    rows = []
    several = {name: verdict.certificate for name, verdict in selection.candidates.items()}
    learned = several if len(several) > 1 else {"learned": selection.learned}
    for key, certificate in {"baseline": selection.baseline, **learned}.items():
        if certificate is not None:
            selected = "yes" if selection.selected == key else "no"
            role = "baseline" if key == "baseline" else "learned"
            head = {"candidate": role, "name": certificate.name, "selected": selected, "status": selection.status}
            rows += [{**head, "quantity": name, **bound.to_dict()} for name, bound in _numbers(certificate, noise)]
    write_csv(path, COLUMNS, rows)


def _numbers(certificate: Certificate, noise: str) -> Iterator[tuple[str, Bound]]:
    radius = certificate.radius
    yield "radius", radius
    if certificate.relative is not None and np.isfinite(certificate.relative):
        source = f"part of the {certificate.norm} of the answer"
        yield "relative radius", Bound(certificate.relative, radius.side, source)
    yield from certificate.residuals.items()
    yield "noise level", Bound(certificate.noise_level, "upper", noise)
    if certificate.stability is not None:
        yield "stability constant", certificate.stability.constant
