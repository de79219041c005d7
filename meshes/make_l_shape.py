"""Make l_shape.msh, the square (-1, 1)^2 without its lower right quarter; needs `pip install gmsh`."""

from __future__ import annotations

from pathlib import Path

import _gmsh
import gmsh


def geometry(size: float) -> None:
    """The L-shape; its two edges at the corner of 270 degrees are "reentrant", the others "outer"."""
    outline = _gmsh.Outline(size)
    reentrant = outline.path((0, -1), (0, 0), (1, 0))
    outer = outline.path((1, 0), (1, 1), (-1, 1), (-1, -1), (0, -1))
    face = outline.face([*reentrant, *outer])
    gmsh.model.geo.synchronize()
    _gmsh.name(1, {"reentrant": reentrant, "outer": outer})
    _gmsh.name(2, {"domain": [face]})


def make(path: Path) -> None:
    """Write the mesh of triangles."""
    _gmsh.write(lambda: geometry(0.05), path)


if __name__ == "__main__":
    _gmsh.main(make, __file__)
