"""Colours, fonts and saving, the same for all figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
DPI = 150

# Roles: one colour for one thing in every figure.
TRUTH: dict[str, Any] = {"color": BLACK, "linestyle": (0, (5, 2)), "linewidth": 2.2}
BASELINE: dict[str, Any] = {"color": BLUE, "linewidth": 2.0}
LEARNED: dict[str, Any] = {"color": GREEN, "linewidth": 1.8}


def new_figure(width: float, height: float) -> Any:
    """An empty figure of a size in inches, without pyplot and its global state."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")


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
    axes.set_title(message, loc="left", fontsize=11.5, fontweight="bold", pad=19 if detail else 8)
    if detail:
        axes.text(
            0.0, 1.01, detail, transform=axes.transAxes, fontsize=9, color=GREY, va="bottom", ha="left", in_layout=True
        )


def short(value: float) -> str:
    """Three digits, without an exponent for thousands."""
    return f"{value:,.0f}" if value >= 1000.0 else f"{value:.3g}"


def save(figure: Any, path: Path) -> None:
    """Write a PNG."""
    figure.savefig(path, format="png", dpi=DPI, metadata={"Software": "femcert"})
