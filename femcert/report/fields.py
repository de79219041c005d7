"""Finite-element fields as lines, images and surfaces, for any scalar Lagrange element."""

from __future__ import annotations

from typing import Any

import numpy as np
from skfem import Basis, ElementLineP1, ElementTriP1

from ..errors import InputError
from .style import IMAGE_MAP


def draw_line(axes: Any, basis: Basis, values: Any, **style: Any) -> None:
    """A field on a line mesh, element by element: exact for P0 and P1, four pieces per element for P2."""
    if basis.mesh.dim() != 1:
        raise InputError(f"draw_line takes a line mesh; this one has dimension {basis.mesh.dim()}")
    mesh, z = basis.refinterp(np.asarray(values), nrefs=0 if isinstance(basis.elem, ElementLineP1) else 2)
    pieces = mesh.t[:, np.argsort(mesh.p[0, mesh.t].mean(axis=0))]
    ends = mesh.p[0, pieces]
    # Left end first, whatever the orientation of the element.
    pieces = np.where(ends[0] <= ends[1], pieces, pieces[::-1])
    order = pieces.T.ravel()
    axes.plot(mesh.p[0, order], z[order], **style)


def draw_image(axes: Any, basis: Basis, values: Any, **style: Any) -> Any:
    """A field on a triangle or quadrilateral mesh in colours; returns what a colour bar needs."""
    triangles, z = triangulated(basis, values)
    image = axes.tripcolor(triangles, z, shading="gouraud", **{"cmap": IMAGE_MAP, "rasterized": True, **style})
    axes.set_aspect("equal")
    axes.margins(0.0)
    return image


def draw_surface(axes: Any, basis: Basis, values: Any, **style: Any) -> Any:
    """A field on a 2D mesh as a surface over the plane; `axes` must be three-dimensional."""
    triangles, z = triangulated(basis, values)
    return axes.plot_trisurf(triangles, z, **{"cmap": IMAGE_MAP, "linewidth": 0.0, "antialiased": False, **style})


def triangulated(basis: Basis, values: Any) -> tuple[Any, Any]:
    """Triangles and vertex values; higher orders and quadrilaterals are divided once more, and share no vertices."""
    from matplotlib.tri import Triangulation

    if basis.mesh.dim() != 2:
        raise InputError(f"an image needs a 2D mesh; this one has dimension {basis.mesh.dim()}")
    if isinstance(basis.elem, ElementTriP1):
        x, y = basis.mesh.p[:, : basis.N]
        return Triangulation(x, y, basis.mesh.t.T), np.asarray(values)
    mesh, z = basis.refinterp(np.asarray(values), nrefs=1)
    t = mesh.t if len(mesh.t) == 3 else np.hstack([mesh.t[[0, 1, 2]], mesh.t[[0, 2, 3]]])
    return Triangulation(mesh.p[0], mesh.p[1], t.T), z
