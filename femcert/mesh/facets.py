"""The facets of a mesh in the plane, numbered as scikit-fem numbers them, from one sort of integers.

scikit-fem makes the same tables when they are first asked for, by comparing columns: ten times slower on large meshes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from skfem.mesh import MeshQuad1, MeshTri1


def index_facets(mesh: Any) -> None:
    """Give a mesh of triangles or quadrilaterals its tables ``facets``, ``t2f`` and ``f2t``, unless it has them.

    Facets are sorted by their vertices, the smaller one first. A scikit-fem that keeps its tables elsewhere does not
    find these, and makes its own.
    """
    if type(mesh) not in (MeshTri1, MeshQuad1) or hasattr(mesh, "_facets") or hasattr(mesh, "_f2t"):
        return
    t, pairs = mesh.t, np.array(mesh.elem.refdom.facets).T
    ends = t[pairs].reshape(2, -1)
    ends = np.array([np.minimum(*ends), np.maximum(*ends)])
    keys = ends[0].astype(np.int64) * (int(t.max()) + 1) + ends[1]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    is_first = np.append(True, keys[1:] != keys[:-1])
    first = np.flatnonzero(is_first)
    mesh._facets = np.ascontiguousarray(ends[:, order[first]])
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(is_first) - 1
    mesh._t2f = number.reshape(-1, t.shape[1])
    last = np.append(first[1:], len(order)) - 1
    sides = order[np.array([first, last])] % t.shape[1]
    sides[1, sides[0] == sides[1]] = -1
    mesh._f2t = sides.astype(np.int32)
