"""The figures of a report: drawn, saved as files, and put into the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import style
from .html import data_uri

# File name, how to draw it (None if there is nothing to draw), and what a reader who cannot see it should know.
Drawing = tuple[str, Callable[[Any], Any], str]


def picture_files(drawings: Sequence[Drawing]) -> list[str]:
    """Names of the files that `write_pictures` may write."""
    return [f"figures/{name}.png" for name, _, _ in drawings]


def write_pictures(drawings: Sequence[Drawing], result: Any, folder: Path) -> list[dict[str, Any]]:
    """Draw all figures into the folder; what a page needs of each is returned."""
    (folder / "figures").mkdir()
    pictures = []
    for (name, draw, description), file in zip(drawings, picture_files(drawings), strict=True):
        figure = draw(result)
        if figure is not None:
            style.save(figure, folder / file)
            width, height = (int(style.DPI * inches) for inches in figure.get_size_inches())
            uri = data_uri(folder / file)
            pictures.append({"name": name, "alt": description, "uri": uri, "width": width, "height": height})
    return pictures
