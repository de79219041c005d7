"""Make interval.msh, the unit interval in two halves, graded to the middle; needs `pip install gmsh`."""

from __future__ import annotations

from pathlib import Path

import _gmsh
import gmsh


def geometry() -> None:
    """The interval; its ends are "left" and "right", its halves "first" and "second"."""
    outline = _gmsh.Outline(1.0)
    halves = outline.path((0, 0), (0.5, 0), (1, 0))
    for half, ratio in zip(halves, (0.99, 1 / 0.99), strict=True):
        gmsh.model.geo.mesh.setTransfiniteCurve(half, 101, "Progression", ratio)
    gmsh.model.geo.synchronize()
    _gmsh.name(0, {"left": [outline.point((0, 0))], "right": [outline.point((1, 0))]})
    _gmsh.name(1, {"first": halves[:1], "second": halves[1:]})


def make(path: Path) -> None:
    """Write the mesh of lines."""
    _gmsh.write(geometry, path, dimension=1)


if __name__ == "__main__":
    _gmsh.main(make, __file__)
