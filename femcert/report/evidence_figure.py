"""A map of what the data say: lower and upper ends of smoothed values, and where their sign is certain."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from ..checks import Array, number
from ..errors import InputError
from ..evidence import Evidence, IntervalTable, Prediction
from ..mesh.elements import degree
from ..problem import AverageSensors
from . import style

# Radius of the discs where none is given, over the largest extent of the mesh.
RADIUS = 0.06
POSITIVE, NEGATIVE, OPEN = style.RED, style.BLUE, "#e5e7eb"
# Inches.
LEGEND = 4.8
# The colours end at this quantile of the ends, which are far out where there are no sensors.
MOST_SHOWN = 0.9


def plot_evidence(
    evidence: Evidence,
    path: str | Path,
    *,
    radius: float | None = None,
    simultaneous: bool = False,
    truth: Any = None,
) -> Path:
    """Draw the intervals of a value that is smoothed over discs: lower ends, upper ends, and where the sign is certain.

    Every disc has its own colour, on the elements that are nearest to its centre; nothing is said of values between.
    All discs together have the confidence of the evidence, so "certain" is one statement about the whole map.

    Parameters
    ----------
    evidence
        Of a class of functions on a mesh of dimension 1 or 2.
    path
        Where to write the picture: a name that ends in .png, .pdf or .svg.
    radius
        Of the discs (half the length of intervals on a line), which are as far apart; default: 6 % of the extent of
        the mesh. Larger ones say less about places, and have shorter intervals.
    simultaneous
        See `Evidence.interval`.
    truth
        The true parameter (dof vector), where it is known: drawn smoothed in the same way.
    """

    def draw() -> Any:
        if not isinstance(evidence, Evidence):
            raise InputError(f"evidence is a {type(evidence).__name__}; expected the result of evidence()")
        basis = evidence.problem.parameters.basis
        if basis is None or basis.mesh.dim() not in (1, 2):
            raise InputError("plot_evidence draws classes of functions on meshes of dimension 1 and 2")
        if degree(basis) == 0:
            raise InputError("plot_evidence smooths continuous functions; for piecewise constants make a table of Mean")
        size = RADIUS * float(np.ptp(basis.mesh.p, axis=1).max()) if radius is None else radius
        size = number(size, "radius", above=0.0)
        points, table, exact = smoothed_intervals(evidence, size, simultaneous, truth)
        return (_band if basis.mesh.dim() == 1 else _maps)(basis.mesh, points, table, exact, size)

    return style.write_figure(path, draw)


def smoothed_intervals(
    evidence: Evidence, radius: float, simultaneous: bool = False, truth: Any = None
) -> tuple[Array, IntervalTable, Array | None]:
    """Centres ``(n, d)``, the intervals there, and the same of the truth."""
    space = evidence.problem.parameters
    points = _spread(space.basis.mesh, radius)
    discs = AverageSensors(space.basis, points, radius=radius).matrix
    table = evidence.table([Prediction(row) for row in discs.toarray()], simultaneous=simultaneous)
    return points, table, None if truth is None else np.asarray(discs @ evidence.problem.check_parameter(truth))


def _spread(mesh: Any, apart: float) -> Array:
    """A vertex near the middle of each cell of a grid that has some."""
    vertices = mesh.p[:, np.unique(mesh.t)].T
    cells = np.floor((vertices - vertices.min(axis=0)) / apart + 1e-9)
    middle = vertices.min(axis=0) + (cells + 0.5) * apart
    order = np.lexsort((np.linalg.norm(vertices - middle, axis=1), *cells.T))
    first = np.unique(cells[order], axis=0, return_index=True)[1]
    return np.asarray(vertices[order[first]])


def _headed(figure: Any, table: IntervalTable, radius: float, share: float, kind: str, width: float) -> None:
    """What the picture says, and below it, within a width in inches, for whom it holds."""
    figure.suptitle(f"The sign is certain on {share:.0%} of the domain", x=0.01, ha="left", fontsize=12, weight="bold")
    means = f"means over {kind} {style.short(radius)}, {len(table)} of them together"
    detail = f"{means} at {100.0 * table.confidence:.4g} %, {table.claim}"
    figure.supxlabel("\n".join(wrap(detail, int(13.0 * width))), x=0.01, ha="left", fontsize=9, color=style.GREY)
    figure.get_layout_engine().set(h_pad=0.08)


def nearest(mesh: Any, points: Array) -> Any:
    """For each element the number of the point that is nearest to its middle."""
    return cKDTree(points).query(mesh.p[:, mesh.t].mean(axis=1).T)[1]


def _maps(mesh: Any, points: Array, table: IntervalTable, truth: Array | None, radius: float) -> Any:
    """Elements in the colours of the discs that are nearest to them."""
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.patches import Patch

    owner = nearest(mesh, points)
    sign = np.array([row.sign for row in table], dtype=float)
    areas = np.abs(_areas(mesh))
    share = float(areas[sign[owner] != 0.0].sum() / areas.sum())
    fields = [("lower end", np.array([row.lower.value for row in table]))]
    fields += [("truth, smoothed", truth)] if truth is not None else []
    fields += [("upper end", np.array([row.upper.value for row in table]))]
    finite = np.concatenate([values[np.isfinite(values)] for _, values in fields])
    most = float(np.quantile(np.abs(finite), MOST_SHOWN)) if finite.size else 1.0
    height = float(np.clip(np.ptp(mesh.p[1]) / np.ptp(mesh.p[0]), 0.4, 1.6))
    width = 3.3 * (len(fields) + 1)
    figure = style.new_figure(width, 3.0 * height + 1.5)
    _headed(figure, table, radius, share, "discs of radius", width - LEGEND)
    panels = figure.subplots(1, len(fields) + 1, sharex=True, sharey=True)
    for axes, (name, values) in zip(panels, fields, strict=False):
        image = draw_elements(axes, mesh, values[owner], cmap=style.SIGNED_MAP, clim=(-most or -1.0, most or 1.0))
        axes.set_title(name, fontsize=10, loc="left")
    look = {"location": "bottom", "shrink": 0.6, "aspect": 45, "extend": "both"}
    figure.colorbar(image, ax=list(panels[:-1]), label="parameter q", **look)
    colours = (NEGATIVE, OPEN, POSITIVE)
    norm = BoundaryNorm([-1.5, -0.5, 0.5, 1.5], 3)
    draw_elements(panels[-1], mesh, sign[owner], cmap=ListedColormap(colours), norm=norm)
    panels[-1].set_title("sign", fontsize=10, loc="left")
    names = ("certainly negative", "not certain", "certainly positive")
    shown = [Patch(color=c, label=n) for c, n, s in zip(colours, names, (-1, 0, 1), strict=True) if s in sign]
    figure.legend(handles=shown, frameon=False, fontsize=9, loc="outside lower right", ncols=3)
    for axes in panels:
        axes.set_frame_on(False)
        axes.set(xticks=[], yticks=[])
    return figure


def _areas(mesh: Any) -> Array:
    """Of triangles and quadrilaterals, by their corners."""
    x, y = mesh.p[:, mesh.t[: 3 if len(mesh.t) in (3, 6) else 4]]
    return np.asarray(0.5 * np.sum(x * np.roll(y, -1, axis=0) - np.roll(x, -1, axis=0) * y, axis=0))


def draw_elements(axes: Any, mesh: Any, values: Array, **look: Any) -> Any:
    """A number for each element of a plane mesh, in colours."""
    from matplotlib.collections import PolyCollection

    corners = np.moveaxis(mesh.p[:, mesh.t[: 3 if len(mesh.t) in (3, 6) else 4]], 0, 2)
    image = PolyCollection(np.swapaxes(corners, 0, 1), array=values, **look)
    image.set(edgecolor="face", linewidth=0.3, rasterized=True)
    axes.add_collection(image, autolim=False)
    axes.set_aspect("equal")
    axes.set(xlim=(mesh.p[0].min(), mesh.p[0].max()), ylim=(mesh.p[1].min(), mesh.p[1].max()))
    return image


def _band(mesh: Any, points: Array, table: IntervalTable, truth: Array | None, radius: float) -> Any:
    """Bars over the points of a line, coloured where the sign is certain."""
    order = np.argsort(points[:, 0])
    x, rows = points[order, 0], [table[int(i)] for i in order]
    ends = np.array([[row.lower.value, row.upper.value] for row in rows])
    sign = np.array([row.sign for row in rows])
    figure, axes = style.axes_of(8.0, 4.2)
    for one, colour, name in (
        (0, style.GREY, "sign not certain"), (1, POSITIVE, "certainly positive"), (-1, NEGATIVE, "certainly negative")
    ):  # fmt: skip
        some = sign == one
        if some.any():
            axes.vlines(x[some], ends[some, 0], ends[some, 1], color=colour, linewidth=3.0, label=name)
    if truth is not None:
        axes.plot(x, truth[order], label="truth, smoothed", **style.TRUTH)
    axes.axhline(0.0, color=style.BLACK, linewidth=0.8)
    axes.set_xlim(mesh.p[0].min(), mesh.p[0].max())
    axes.set_xlabel("x")
    axes.set_ylabel("parameter q")
    axes.legend(frameon=False, fontsize=9)
    gaps = np.diff(np.concatenate([[mesh.p[0].min()], (x[1:] + x[:-1]) / 2.0, [mesh.p[0].max()]]))
    _headed(figure, table, radius, float(gaps[sign != 0].sum() / gaps.sum()), "intervals of half length", 8.0)
    return figure
