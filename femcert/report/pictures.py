"""Pictures in a page: small figures as SVG, and figures that are files too.

In an SVG text stays text, colours follow the page, and nothing is loaded.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..files import written
from . import style
from .html import data_uri

# File name, how to draw it (None if there is nothing to draw), and what a reader who cannot see it should know.
Drawing = tuple[str, Callable[[Any], Any], str]
# Colours that no figure uses otherwise; in the page they become those of its text.
INK, SOFT = "#010203", "#030201"
# Light and dark pages show the same thing in the same hue, each as readable as it can be.
_PAGE_COLOURS = {
    INK: "currentColor",
    SOFT: "var(--soft)",
    "#d9dde3": "var(--line)",
    style.BLUE.lower(): "var(--blue)",
    style.GREEN.lower(): "var(--green)",
    style.RED.lower(): "var(--red)",
}
_FONT = "DejaVu Sans"
# The id of axes that a page can zoom into.
MAP = "map"


@dataclass(frozen=True)
class Picture:
    """A drawing with what is said about it.

    Attributes
    ----------
    title, caption
        Shown above and below it.
    svg
        Markup, safe to put into a page.
    wide
        Whether it needs more than a column.
    """

    title: str
    caption: str
    svg: Any
    wide: bool = False


def picture(
    name: str,
    title: str,
    draw: Callable[[Any], None],
    *,
    caption: str = "",
    size: tuple[float, float] = (3.9, 3.0),
    wide: bool = False,
) -> Picture:
    """What `draw(figure)` puts on an empty figure, as a picture whose ids begin with `name`."""
    style.load_matplotlib()
    from markupsafe import Markup
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    text = io.StringIO()
    with rc_context(_settings(name)):
        figure = Figure(figsize=size, facecolor="none")
        draw(figure)
        figure.savefig(text, format="svg", dpi=300, metadata={"Date": None})
    return Picture(title, caption, Markup(_embedded(text.getvalue(), name, title, _window(figure))), wide)


def _window(figure: Any) -> str:
    """The limits of a map, which the page zooms into, and its place, as attributes; empty for other drawings."""
    for axes in figure.axes:
        if axes.get_gid() == MAP:
            box, (width, height) = axes.get_position(), 72.0 * figure.get_size_inches()
            place = (box.x0 * width, (1.0 - box.y1) * height, box.width * width, box.height * height)
            ends = (*axes.get_xlim(), *axes.get_ylim())
            window, within = (" ".join(format(number, ".9g") for number in part) for part in (ends, place))
            return f' data-window="{window}" data-box="{within}"'
    return ""


def axes_within(figure: Any, left: float, bottom: float, right: float, top: float) -> Any:
    """Axes with margins in inches: the same in all pictures, and far quicker than a layout that measures texts."""
    width, height = figure.get_size_inches()
    box = (left / width, bottom / height, 1.0 - (left + right) / width, 1.0 - (bottom + top) / height)
    return figure.add_axes(box)


def _settings(name: str) -> Any:
    soft = ("axes.edgecolor", "xtick.color", "ytick.color")
    ink = ("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.labelcolor", "ytick.labelcolor")
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.family": _FONT,
        "font.size": 9.0,
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        **dict.fromkeys(soft, SOFT),
        **dict.fromkeys(ink, INK),
    }


def _embedded(svg: str, name: str, title: str, window: str) -> str:
    """The ``<svg>`` element alone, with ids of its own, the colours of the page, and words for who cannot see it."""
    from markupsafe import escape

    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # It would hold for the whole page.
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\b(id="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = svg.replace(f"'{_FONT}'", "system-ui").replace("&quot;DejaVu Sans&quot;", "system-ui")
    for colour, value in _PAGE_COLOURS.items():
        svg = svg.replace(colour, value)
    # A hundredth of a point is finer than any screen, and half the size.
    svg = re.sub(r'(?<= d=")[^"]*', lambda path: _shortened(path[0]), svg)
    box = re.search(r'viewBox="([^"]*)"', svg)
    assert box is not None
    head = f'<svg viewBox="{box[1]}" role="img" aria-label="{escape(title)}" class="drawing"{window}>'
    return re.sub(r"\n\s*", "\n", head + svg[svg.index(">") + 1 :].strip())


def _shortened(path: str) -> str:
    rounded = re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), path)
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", " ".join(rounded.split()))


def picture_files(drawings: Sequence[Drawing]) -> list[str]:
    """Names of the files that `write_pictures` may write."""
    return [f"figures/{name}.png" for name, _, _ in drawings]


def write_pictures(drawings: Sequence[Drawing], result: Any, folder: Path) -> list[dict[str, Any]]:
    """Draw all figures into the folder; what a page needs of each is returned."""
    pictures = []
    for (name, draw, description), file in zip(drawings, picture_files(drawings), strict=True):
        figure = draw(result)
        if figure is not None:
            with written(folder / file) as draft:
                style.save(figure, draft)
            pictures.append({"name": name, **_in_page(figure, folder / file, description)})
    return pictures


def page_image(figure: Any, description: str) -> dict[str, Any]:
    """A figure as a page shows it, without a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture.png"
        style.save(figure, path)
        return _in_page(figure, path, description)


def _in_page(figure: Any, path: Path, description: str) -> dict[str, Any]:
    width, height = (int(style.DPI * inches) for inches in figure.get_size_inches())
    return {"alt": description, "uri": data_uri(path), "width": width, "height": height}
