"""Make l_shape_quads.msh, the L-shape in unstructured quadrilaterals; needs `pip install gmsh`."""

from __future__ import annotations

from pathlib import Path

import _gmsh
from make_l_shape import geometry


def make(path: Path) -> None:
    """Write the mesh of quadrilaterals."""
    _gmsh.write(lambda: geometry(0.1), path, quads=True)


if __name__ == "__main__":
    _gmsh.main(make, __file__)
