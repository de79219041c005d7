"""Make fault.msh, a section through three layers of rock offset by a fault; needs `pip install gmsh`."""

from __future__ import annotations

from pathlib import Path

import _gmsh
import gmsh

WIDTH, DEPTH, THROW = 2.0, 1.0, 0.12
# tops of the layers left of the fault; right of it they lie deeper by the throw
TOPS = {"upper": 0.0, "middle": -0.3, "basement": -0.6}


def on_fault(y: float) -> tuple[float, float]:
    """The point of the fault, which dips to the right, at height y."""
    return (0.9 - 0.3 * y, y)


def geometry() -> None:
    """The section; the fault leaves a step in the surface, so the domain is not convex."""
    outline = _gmsh.Outline(0.04)
    left, right = list(TOPS.values()), [y - THROW for y in TOPS.values()]
    fault = sorted({*left, *right, -DEPTH}, reverse=True)
    layers: dict[str, list[int]] = {}
    for x, tops in ((0.0, left), (WIDTH, right)):
        for layer, top, base in zip(TOPS, tops, [*tops[1:], -DEPTH], strict=True):
            down = [on_fault(y) for y in fault if base <= y <= top]
            loop = outline.path((x, top), *down, (x, base), (x, top))
            layers.setdefault(layer, []).append(outline.face(loop))
    gmsh.model.geo.synchronize()
    scarp, slip = on_fault(0.0), on_fault(-THROW)
    sides = [(0.0, *left, -DEPTH), (WIDTH, *right, -DEPTH)]
    _gmsh.name(1, {
        "surface": outline.path((0.0, 0.0), scarp, slip, (WIDTH, -THROW)),
        "bottom": outline.path((0.0, -DEPTH), on_fault(-DEPTH), (WIDTH, -DEPTH)),
        "sides": [edge for x, *heights in sides for edge in outline.path(*((x, y) for y in heights))],
        "fault": outline.path(*(on_fault(y) for y in fault if y <= -THROW)),
    })  # fmt: skip
    _gmsh.name(2, layers)


def make(path: Path) -> None:
    """Write the mesh of triangles."""
    _gmsh.write(geometry, path)


if __name__ == "__main__":
    _gmsh.main(make, __file__)
