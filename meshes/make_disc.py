"""Make disc.msh, the unit disc with an off-centre round inclusion; needs `pip install gmsh`."""

from __future__ import annotations

from pathlib import Path

import _gmsh
import gmsh


def geometry() -> None:
    """The disc; its boundary is "rim", the edge of the inclusion "interface"."""
    outline = _gmsh.Outline(0.055)
    rim = outline.circle((0, 0), 1.0, 120)
    interface = outline.circle((0.3, 0.2), 0.3, 36)
    faces = {"inclusion": [outline.face(interface)], "background": [outline.face(rim, interface)]}
    gmsh.model.geo.synchronize()
    _gmsh.name(1, {"rim": rim, "interface": interface})
    _gmsh.name(2, faces)


def make(path: Path) -> None:
    """Write the mesh of triangles."""
    _gmsh.write(geometry, path)


if __name__ == "__main__":
    _gmsh.main(make, __file__)
