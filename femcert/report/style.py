"""Colours, fonts and saving, the same for all figures."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import written

# Okabe and Ito's colours, told apart with any colour vision.
BLACK, BLUE, GREEN, RED, PINK, ORANGE, SKY = (
    "#000000",
    "#0072B2",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)
GREY = "#6b7280"
# Perceptually uniform, also in grey.
IMAGE_MAP = "cividis"
# Blue for negative, red for positive values of a direction, white for none.
SIGNED_MAP = "RdBu_r"
# From light to dark, so that the edges of elements show where there is little to show.
MESH_MAP = "YlOrRd"
DPI = 150
# Formats of figures, with what is noted in the file: nothing that changes from run to run.
KINDS: dict[str, dict[str, Any]] = {
    "png": {"Software": "femcert"},
    "pdf": {"Creator": "femcert", "CreationDate": None},
    "svg": {"Creator": "femcert", "Date": None},
}

# Roles: one colour for one thing in every figure.
TRUTH: dict[str, Any] = {"color": BLACK, "linestyle": (0, (5, 2)), "linewidth": 2.2}
BASELINE: dict[str, Any] = {"color": BLUE, "linewidth": 2.0}
LEARNED: dict[str, Any] = {"color": GREEN, "linewidth": 1.8}


def new_figure(width: float, height: float) -> Any:
    """An empty figure of a size in inches, without pyplot and its global state."""
    load_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")


def load_matplotlib() -> None:
    """Import matplotlib whatever MPLBACKEND says: a name it does not know stops its import, and no window is needed."""
    if "matplotlib" in sys.modules:
        return
    backend = os.environ.pop("MPLBACKEND", None)
    try:
        import matplotlib
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
    if backend:
        # As matplotlib itself does it, for drawings that follow.
        with suppress(ValueError):
            matplotlib.rcParams["backend"] = backend


def axes_of(width: float = 7.2, height: float = 4.2) -> tuple[Any, Any]:
    """A figure with one axes."""
    figure = new_figure(width, height)
    axes = figure.add_subplot()
    tidy(axes)
    return figure, axes


def tidy(axes: Any, *, grid: str = "both") -> None:
    """A light grid behind the data, no box around it."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(False)
    axes.grid(True, axis=grid, color="#d9dde3", linewidth=0.6)
    axes.set_axisbelow(True)


def title(axes: Any, message: str, detail: str = "") -> None:
    """What the figure says, and below it in smaller letters what it shows."""
    # Names may hold dollar signs.
    pad = 19 if detail else 8
    axes.set_title(message, loc="left", fontsize=11.5, fontweight="bold", pad=pad, parse_math=False)
    if detail:
        axes.text(
            0.0, 1.01, detail, transform=axes.transAxes, fontsize=9, color=GREY, va="bottom", ha="left", in_layout=True
        )


def plain_numbers(axes: Any) -> None:
    """Numbers to read on logarithmic axes: 1, 2 and 5 times powers of ten, or only these on long ones."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() == "log":
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 500.0 * low else (1.0,)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
            axis.set_minor_formatter(NullFormatter())


def short(value: float) -> str:
    """Three digits, without an exponent for thousands."""
    return f"{value:,.0f}" if 1000.0 <= value < 1e6 else f"{value:.3g}"


def displayed(name: str, most: int = 24) -> str:
    """A name of any length and script as a figure can show it: its ends, and ``?`` for what the font does not have."""
    load_matplotlib()
    from matplotlib.font_manager import FontProperties, findfont, get_font

    known = get_font(findfont(FontProperties())).get_charmap()
    text = "".join(letter if ord(letter) in known else "?" for letter in " ".join(name.split()))
    # The end often tells names apart.
    return text if len(text) <= most else f"{text[: most - 9]}...{text[-6:]}"


def save(figure: Any, path: Path, kind: str = "png") -> None:
    """Write a PNG, or a file of one of the other `KINDS`."""
    figure.savefig(path, format=kind, dpi=DPI, metadata=KINDS[kind])


def write_figure(path: Any, draw: Callable[[], Any]) -> Path:
    """Draw a figure and write it as what the ending of `path` says; the file appears whole or not at all.

    Raises
    ------
    InputError
        The ending is none of `KINDS`; nothing is drawn then.
    """
    kind = Path(path).suffix.lower().removeprefix(".") if isinstance(path, (str, Path)) else ""
    if kind not in KINDS:
        *most, last = (f".{kind}" for kind in KINDS)
        raise InputError(f"path is {str(path)!r}; expected a file name that ends in {', '.join(most)} or {last}")
    target = Path(path)
    figure = draw()
    with written(target) as draft:
        save(figure, draft, kind)
    return target
