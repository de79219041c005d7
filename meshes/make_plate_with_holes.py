"""Make plate_with_holes.msh, a 2 by 1 plate with three round holes; needs `pip install gmsh`."""

from __future__ import annotations

from pathlib import Path

import _gmsh
import gmsh

# centre, radius, edges around the hole
HOLES = (((0.45, 0.55), 0.2, 48), ((1.1, 0.35), 0.15, 36), ((1.55, 0.65), 0.2, 48))


def geometry() -> None:
    """The plate; its rim is "outer", the rims of the holes are "holes"."""
    outline = _gmsh.Outline(0.04)
    outer = outline.path((0, 0), (2, 0), (2, 1), (0, 1), (0, 0))
    holes = [outline.circle(*hole) for hole in HOLES]
    face = outline.face(outer, *holes)
    gmsh.model.geo.synchronize()
    _gmsh.name(1, {"outer": outer, "holes": [arc for hole in holes for arc in hole]})
    _gmsh.name(2, {"plate": [face]})


def make(path: Path) -> None:
    """Write the mesh of triangles."""
    _gmsh.write(geometry, path)


if __name__ == "__main__":
    _gmsh.main(make, __file__)
