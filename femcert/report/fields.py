"""Fields of 1D and 2D meshes: as lines, images and surfaces on axes, and as pictures in a page.

In a page they are vectors where the mesh is small, else an image inside the SVG; pixels where it is large.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from skfem import Basis, ElementLineP1, ElementTriP1

from ..checks import Array
from ..errors import InputError
from ..mesh.elements import field_degree
from ..mesh.vectors import components, is_vector, magnitude, nodal_vectors
from . import style
from .pictures import MAP, SOFT, Picture, axes_within, picture
from .raster import Raster, raster_of

# Above this, an image is smaller than the triangles it shows.
MOST_VECTOR = 1500
BANDS = 24
MOST_MARKS = 400
# Of a vector field, along the longer side.
ARROWS = 12
# Left, bottom, right and top, in inches.
MAP_MARGINS = (0.42, 0.27, 0.76, 0.17)
LINE_MARGINS = (0.68, 0.43, 0.12, 0.32)
# What a number beside a map takes of its height, in inches.
NUMBER = 0.2


def draw_line(axes: Any, basis: Basis, values: Any, **look: Any) -> None:
    """A field on a line mesh, element by element: exact for P0 and P1, four pieces per element for P2."""
    if basis.mesh.dim() != 1:
        raise InputError(f"draw_line takes a line mesh; this one has dimension {basis.mesh.dim()}")
    mesh, z = basis.refinterp(np.asarray(values), nrefs=0 if isinstance(basis.elem, ElementLineP1) else 2)
    pieces = mesh.t[:, np.argsort(mesh.p[0, mesh.t].mean(axis=0))]
    ends = mesh.p[0, pieces]
    # Left end first, whatever the orientation of the element.
    pieces = np.where(ends[0] <= ends[1], pieces, pieces[::-1])
    order = pieces.T.ravel()
    axes.plot(mesh.p[0, order], z[order], **look)


def draw_image(axes: Any, basis: Basis, values: Any, **look: Any) -> Any:
    """A field on a triangle or quadrilateral mesh in colours; returns what a colour bar needs.

    Of a vector field the colours are its length, and arrows show its direction.
    """
    triangles, z = triangulated(basis, values)
    image = axes.tripcolor(triangles, z, shading="gouraud", **{"cmap": style.IMAGE_MAP, "rasterized": True, **look})
    _draw_arrows(axes, basis, values)
    axes.set_aspect("equal")
    axes.margins(0.0)
    return image


def draw_surface(axes: Any, basis: Basis, values: Any, **look: Any) -> Any:
    """A field on a 2D mesh as a surface over the plane; `axes` must be three-dimensional."""
    triangles, z = triangulated(basis, values)
    return axes.plot_trisurf(triangles, z, **{"cmap": style.IMAGE_MAP, "linewidth": 0.0, "antialiased": False, **look})


def triangulated(basis: Basis, values: Any) -> tuple[Any, Any]:
    """Triangles and vertex values; higher orders and quadrilaterals are divided once more, and share no vertices.

    The values of a vector field are its lengths.
    """
    from matplotlib.tri import Triangulation

    basis, values = magnitude(basis, values)
    if basis.mesh.dim() != 2:
        raise InputError(f"an image needs a 2D mesh; this one has dimension {basis.mesh.dim()}")
    if isinstance(basis.elem, ElementTriP1):
        x, y = basis.mesh.p[:, : basis.N]
        return Triangulation(x, y, basis.mesh.t.T), np.asarray(values)
    mesh, z = basis.refinterp(np.asarray(values), nrefs=1)
    t = mesh.t if len(mesh.t) == 3 else np.hstack([mesh.t[[0, 1, 2]], mesh.t[[0, 2, 3]]])
    return Triangulation(mesh.p[0], mesh.p[1], t.T), z


def _draw_arrows(axes: Any, basis: Basis, values: Any) -> None:
    """The direction of a vector field in the plane at nodes that are spread over the mesh."""
    if components(basis) != 2:
        return
    home, (u, v) = nodal_vectors(basis, np.asarray(values))
    x, y = home.doflocs
    size = float(np.ptp(home.mesh.p, axis=1).max()) / ARROWS
    cells = np.floor((home.doflocs.T - home.mesh.p.min(axis=1)) / size)
    first = np.unique(cells, axis=0, return_index=True)[1]
    longest = float(np.hypot(u, v).max())
    if longest > 0.0:
        look = {"angles": "xy", "scale_units": "xy", "scale": longest / (1.2 * size), "width": 0.005, "pivot": "mid"}
        axes.quiver(x[first], y[first], u[first], v[first], color="black", alpha=0.65, zorder=2, **look)


def lines_picture(
    name: str,
    title: str,
    basis: Any,
    lines: list[tuple[str, Array, dict[str, Any]]],
    *,
    caption: str = "",
    marks: Any = None,
) -> Picture:
    """Fields on a line mesh, with their names; `marks` are points of the x axis."""

    def draw(figure: Any) -> None:
        axes = axes_within(figure, *LINE_MARGINS)
        style.tidy(axes)
        for label, values, look in lines:
            draw_line(axes, basis, values, label=label, **look)
        if marks is not None and len(marks) <= MOST_MARKS:
            places = np.asarray(marks).ravel()
            look = {"color": SOFT, "marker": "|", "linestyle": "none", "clip_on": False}
            axes.plot(places, np.zeros(len(places)), transform=axes.get_xaxis_transform(), label="sensors", **look)
        axes.set_xlabel("x")
        axes.yaxis.get_major_formatter().set_powerlimits((-2, 4))
        legend_above(axes)

    return picture(name, title, draw, caption=caption, size=(4.8, 3.0), wide=True)


def field_picture(
    name: str,
    title: str,
    basis: Any,
    values: Array,
    *,
    limits: tuple[float, float] | None = None,
    signed: bool = False,
    caption: str = "",
    marks: Any = None,
) -> Picture:
    """A field on a 2D mesh in colours; `signed` centres them at zero, `marks` are points ``(n, 2)``.

    Of a vector field the colours are its length.
    """
    low, high = value_limits(basis, [values]) if limits is None else limits
    signed = signed and not is_vector(basis)
    if signed:
        low, high = -max(-low, high, 0.0), max(-low, high, 0.0)
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        # One colour, in the middle of a scale that can be drawn.
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)

    def draw(figure: Any) -> None:
        axes = axes_within(figure, *MAP_MARGINS)
        look = {"cmap": style.SIGNED_MAP if signed else style.IMAGE_MAP, "vmin": low, "vmax": high}
        raster = raster_of(basis.mesh)
        joined = _joined(basis, values) if raster is None else None
        if raster is not None:
            image = _draw_pixels(axes, raster, basis, values, look)
            _draw_arrows(axes, basis, values)
        elif joined is None:
            image = draw_image(axes, basis, values, **look)
        else:
            triangles, z = joined
            # Values at the ends of the scale belong to the outer bands.
            z = np.clip(z, low, high - 1e-9 * (high - low))
            image = axes.tricontourf(triangles, z, levels=np.linspace(low, high, BANDS + 1), **look)
            _draw_arrows(axes, basis, values)
            # Hides the hairlines between bands.
            image.set(edgecolor="face", linewidth=0.8, rasterized=len(triangles.triangles) > MOST_VECTOR)
        if marks is not None and len(marks) <= MOST_MARKS:
            axes.scatter(*np.asarray(marks).T, s=9.0, color="white", edgecolor="black", linewidth=0.7, zorder=3)
        _dress_map(figure, axes, image)

    return picture(name, title, draw, caption=caption, size=_map_size(basis.mesh))


def elements_picture(name: str, title: str, mesh: Any, values: Array, most: float, *, caption: str = "") -> Picture:
    """A number for each element, from zero to `most`: steps on a line, coloured elements in the plane."""
    top = most if most > 0.0 else 1.0

    def draw(figure: Any) -> None:
        axes = axes_within(figure, *(LINE_MARGINS if mesh.dim() == 1 else MAP_MARGINS))
        if mesh.dim() == 1:
            style.tidy(axes)
            ends = np.sort(mesh.p[0, mesh.t], axis=0)
            order = np.argsort(ends[0])
            edges = np.append(ends[0, order], ends[1, order[-1]])
            axes.stairs(values[order], edges, color=style.RED, fill=True, alpha=0.55)
            axes.set(xlabel="x", ylim=(0.0, 1.05 * top))
            return
        from matplotlib.collections import PolyCollection

        raster = raster_of(mesh)
        if raster is not None:
            shown = raster.of_elements(mesh, values)
            place: dict[str, Any] = {"origin": "lower", "extent": raster.extent, "interpolation": "nearest"}
            _dress_map(figure, axes, axes.imshow(shown, cmap=style.MESH_MAP, vmin=0.0, vmax=top, **place))
            return
        corners = np.moveaxis(mesh.p[:, mesh.t[: 3 if len(mesh.t) in (3, 6) else 4]], 0, 2)
        # One array, not a list of polygons, which takes far longer. Its extent is that of the mesh.
        image = PolyCollection(np.swapaxes(corners, 0, 1), array=values, cmap=style.MESH_MAP)
        image.set(clim=(0.0, top), edgecolor="face", linewidth=0.4, rasterized=mesh.nelements > MOST_VECTOR)
        axes.add_collection(image, autolim=False)
        axes.set_aspect("equal")
        axes.set(xlim=_extent(mesh.p[0]), ylim=_extent(mesh.p[1]))
        _dress_map(figure, axes, image)

    size = (4.0, 2.5) if mesh.dim() == 1 else _map_size(mesh)
    return picture(name, title, draw, caption=caption, size=size)


def _draw_pixels(axes: Any, raster: Raster, basis: Basis, values: Array, look: dict[str, Any]) -> Any:
    """A field by pixels, in bands where it has no jumps."""
    from matplotlib import colormaps
    from matplotlib.colors import BoundaryNorm, Normalize

    cmap, low, high = look["cmap"], look["vmin"], look["vmax"]
    levels = np.linspace(low, high, BANDS + 1)
    norm = Normalize(low, high) if field_degree(basis) == 0 else BoundaryNorm(levels, colormaps[cmap].N, clip=True)
    place: dict[str, Any] = {"origin": "lower", "extent": raster.extent, "interpolation": "nearest"}
    return axes.imshow(raster.of_field(basis, values), cmap=cmap, norm=norm, **place)


def legend_above(axes: Any, left: float = 0.08) -> None:
    """A legend in the margin above the axes, beside the place of a common factor of the numbers."""
    look = {"ncols": 3, "frameon": False, "fontsize": 8.5, "handlelength": 2.0, "handletextpad": 0.5}
    axes.legend(loc="lower left", bbox_to_anchor=(left, 1.0), columnspacing=1.2, **look)


def _dress_map(figure: Any, axes: Any, image: Any) -> None:
    """A colour bar with few numbers, no frame."""
    from matplotlib.ticker import MaxNLocator

    axes.set_gid(MAP)
    box, (width, height) = axes.get_position(), figure.get_size_inches()
    # Numbers of a narrow map do not fit on top of each other.
    most = max(int(box.height * height / NUMBER), 1)
    beside = figure.add_axes((box.x1 + 0.1 / width, box.y0, 0.1 / width, box.height))
    bar = figure.colorbar(image, cax=beside, ticks=MaxNLocator(min(6, most)))
    bar.outline.set_visible(False)
    # Two hundred colours, or the few of a map in bands.
    bar.solids.set(edgecolor="face", rasterized=bar.solids.get_array().size > 2 * BANDS)
    bar.formatter.set_powerlimits((-2, 4))
    beside.tick_params(length=2.5, labelsize=9)
    axes.set_frame_on(False)
    axes.tick_params(length=2.5, labelsize=8.5)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_locator(MaxNLocator(min(4, most)))


def value_limits(basis: Basis, fields: Iterable[Array]) -> tuple[float, float]:
    """The least and the largest value of several fields on a basis, of vector fields of their lengths."""
    shown = [magnitude(basis, values)[1] for values in fields]
    return min(float(values.min()) for values in shown), max(float(values.max()) for values in shown)


def _extent(values: Array) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _map_size(mesh: Any) -> tuple[float, float]:
    """Width and height in inches for a map of the shape of the mesh."""
    left, bottom, right, top = MAP_MARGINS
    width, height = np.ptp(mesh.p, axis=1)
    return 3.4, (3.4 - left - right) * float(np.clip(height / width, 0.3, 1.6)) + bottom + top


def _joined(basis: Any, values: Array) -> tuple[Any, Array] | None:
    """Triangles that share their vertices, and the values there; None for a field with jumps."""
    from matplotlib.tri import Triangulation

    triangles, z = triangulated(basis, values)
    if len(z) * components(basis) == basis.N:
        # One value a dof: they are shared as they are.
        return triangles, z
    scale = 1e-9 * float(np.ptp(basis.mesh.p))
    places = np.round(np.column_stack([triangles.x, triangles.y]) / scale).astype(np.int64)
    _, first, owner = np.unique(places, axis=0, return_index=True, return_inverse=True)
    owner = owner.ravel()
    if not np.abs(z - z[first][owner]).max() <= 1e-9 * max(float(np.abs(z).max()), 1e-300):
        return None
    return Triangulation(triangles.x[first], triangles.y[first], owner[triangles.triangles]), z[first]
