"""What the scripts that make the meshes share; needs `pip install gmsh`."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import gmsh

Point = tuple[float, float]


class Outline:
    """Points and straight edges of a plane geometry, each made once and shared by the faces around it."""

    def __init__(self, size: float) -> None:
        self.size = size
        self.points: dict[Point, int] = {}
        self.edges: dict[tuple[int, int], int] = {}

    def point(self, at: Point) -> int:
        """The tag of the point at these coordinates."""
        if at not in self.points:
            self.points[at] = gmsh.model.geo.addPoint(*at, 0.0, self.size)
        return self.points[at]

    def edge(self, start: Point, end: Point) -> int:
        """The tag of the edge between two points, negative if it was made in the other direction."""
        a, b = self.point(start), self.point(end)
        if (b, a) in self.edges:
            return -self.edges[b, a]
        if (a, b) not in self.edges:
            self.edges[a, b] = gmsh.model.geo.addLine(a, b)
        return self.edges[a, b]

    def path(self, *corners: Point) -> list[int]:
        """The tags of the edges along a polygonal path."""
        return [self.edge(a, b) for a, b in itertools.pairwise(corners)]

    def circle(self, centre: Point, radius: float, segments: int) -> list[int]:
        """The four arcs of a circle that `segments` equal mesh edges follow."""
        x, y = centre
        geo, middle = gmsh.model.geo, self.point(centre)
        rim = [self.point(at) for at in ((x + radius, y), (x, y + radius), (x - radius, y), (x, y - radius))]
        arcs = [geo.addCircleArc(rim[i], middle, rim[(i + 1) % 4]) for i in range(4)]
        for arc in arcs:
            geo.mesh.setTransfiniteCurve(arc, segments // 4 + 1)
        return arcs

    def face(self, *loops: Sequence[int]) -> int:
        """The tag of the face inside the first loop of edges and outside the others."""
        return gmsh.model.geo.addPlaneSurface([gmsh.model.geo.addCurveLoop(list(loop)) for loop in loops])


def name(dimension: int, groups: dict[str, list[int]]) -> None:
    """Give the points (0), curves (1) or faces (2) of each group a name."""
    for label, tags in groups.items():
        gmsh.model.addPhysicalGroup(dimension, [abs(tag) for tag in tags], name=label)


def write(build: Callable[[], None], path: str | Path, *, dimension: int = 2, quads: bool = False) -> None:
    """Build a geometry, mesh it and write it as MSH 4.1 text; the same input gives the same file."""
    gmsh.initialize(interruptible=False)
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.option.setNumber("General.NumThreads", 1)
        gmsh.option.setNumber("Mesh.MshFileVersion", 4.1)
        # Frontal-Delaunay triangles; quads by recombining and halving, so that no triangle is left
        gmsh.option.setNumber("Mesh.Algorithm", 6)
        gmsh.option.setNumber("Mesh.RecombineAll", int(quads))
        gmsh.option.setNumber("Mesh.SubdivisionAlgorithm", int(quads))
        build()
        gmsh.model.mesh.generate(dimension)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        gmsh.write(str(path))
    finally:
        gmsh.finalize()


def main(make: Callable[[Path], None], script: str) -> None:
    """Write the mesh to the path on the command line, or next to the script under its name."""
    here = Path(script)
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else here.with_name(here.stem.removeprefix("make_") + ".msh"))
