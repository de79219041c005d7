"""The numbers of a selection as a table for other programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..bound import Bound
from ..certificate import Certificate
from ..selection import Selection
from .files import write_atomically
from .tables import write_csv

COLUMNS = ("candidate", "name", "selected", "quantity", "value", "side", "source", "status")


def write_summary(selection: Selection, path: str | Path, *, noise: str = "of the data") -> None:
    """CSV with a row for each number of both certificates; a certificate that could not be made has no rows.

    Parameters
    ----------
    noise
        Where the noise level comes from.
    """
    rows = []
    for role, certificate in (("baseline", selection.baseline), ("learned", selection.learned)):
        if certificate is not None:
            selected = "yes" if selection.accepted == (role == "learned") else "no"
            head = {"candidate": role, "name": certificate.name, "selected": selected, "status": selection.status}
            rows += [{**head, "quantity": name, **bound.to_dict()} for name, bound in _numbers(certificate, noise)]
    write_atomically(Path(path), lambda draft: write_csv(draft, COLUMNS, rows))


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
