"""Fields on the mesh of a file, as dof values: on cells, on nodes, or on the nodes of quadratic cells."""

from __future__ import annotations

from typing import Any

import meshio
import numpy as np
from numpy.typing import NDArray
from skfem import Basis

from ..checks import Array, real_array
from ..errors import InputError
from ..mesh.elements import lagrange
from ..mesh.geometry import diameters
from ..mesh.read import checked_mesh

_QUADRATIC = {"line3": "line", "triangle6": "triangle", "quad9": "quad"}
_CORNERS = {"line": 2, "triangle": 3, "quad": 4}
# Of the smallest diameter: how far from the middle of its edge a node may be. Beyond, the cell is curved.
STRAIGHT_TOLERANCE = 1e-4


class MeshFields:
    """Point data and cell data of a file, by name.

    Parameters
    ----------
    raw
        As meshio read it: cells of one kind, linear, or quadratic with straight edges.

    Raises
    ------
    InputError
        The mesh is none that `load_mesh` accepts (but for quadratic cells), or its edges are curved.
    """

    def __init__(self, raw: meshio.Mesh) -> None:
        self.raw = raw
        top = max((block.dim for block in raw.cells if len(block.data)), default=0)
        kinds = {block.type for block in raw.cells if len(block.data) and block.dim == top}
        self.kind = kinds.pop() if len(kinds) == 1 and kinds <= set(_QUADRATIC) else None
        plain = raw if self.kind is None else self._linear(self.kind)
        self.mesh = checked_mesh(plain)
        self.cells = "line" if self.mesh.dim() == 1 else "triangle" if len(self.mesh.t) == 3 else "quad"
        corners = np.concatenate([block.data for block in plain.cells if block.type == self.cells])
        self._used = np.unique(corners)

    @property
    def names(self) -> set[str]:
        """Of all its fields."""
        return {*self.raw.point_data, *self.raw.cell_data}

    def columns(self, names: list[str], *, cellwise: bool) -> tuple[Basis, Array]:
        """The basis on which the named fields live, and their dof values, a vector or a column for each.

        A field that is there for cells and for points is taken as `cellwise` says.
        """
        on_cells = [name in self.raw.cell_data and (cellwise or name not in self.raw.point_data) for name in names]
        if any(on_cells) and not all(on_cells):
            raise InputError(f"its fields {', '.join(names)} are partly on points and partly on cells")
        parts = [self._on_cells(name) if on_cells[0] else self._on_points(name) for name in names]
        degree = 0 if on_cells[0] else 1 if self.kind is None else 2
        basis = Basis(self.mesh, lagrange(self.mesh, degree))
        columns = np.column_stack(parts)
        if degree == 2:
            columns = columns[self._dof_nodes(basis)]
        elif degree == 1:
            columns = columns[self._used]
        return basis, columns[:, 0] if len(names) == 1 else columns

    def _on_points(self, name: str) -> Array:
        return _scalar(self.raw.point_data[name], len(self.raw.points), name)

    def _on_cells(self, name: str) -> Array:
        kind = self.kind or self.cells
        blocks = zip(self.raw.cells, self.raw.cell_data[name], strict=True)
        parts = [np.asarray(values) for block, values in blocks if block.type == kind]
        return _scalar(np.concatenate(parts), self.mesh.nelements, name)

    def _linear(self, kind: str) -> meshio.Mesh:
        """The same mesh without the nodes on edges and in cells."""
        simple = _QUADRATIC[kind]
        self._nodes = np.concatenate([block.data for block in self.raw.cells if block.type == kind])
        if self._nodes.dtype.kind not in "iu" or self._nodes.min() < 0 or self._nodes.max() >= len(self.raw.points):
            raise InputError(f"its {kind} cells use nodes that are not among the {len(self.raw.points)} in the file")
        return meshio.Mesh(self.raw.points, {simple: self._nodes[:, : _CORNERS[simple]]})

    def _dof_nodes(self, basis: Basis) -> NDArray[np.int64]:
        """The node of the file at each dof of a quadratic basis."""
        nodes, corners = self._nodes.astype(np.int64), _CORNERS[self.cells]
        result = np.empty(basis.N, dtype=np.int64)
        result[basis.nodal_dofs[0]] = self._used
        middle = nodes[:, corners:]
        if self.cells != "triangle":
            result[basis.interior_dofs[0]] = middle[:, -1]
        if self.cells != "line":
            ends = np.searchsorted(self._used, nodes[:, :corners])
            for k in range(corners):
                facets = _facets_between(self.mesh, ends[:, k], ends[:, (k + 1) % corners])
                result[basis.facet_dofs[0, facets]] = middle[:, k]
        away = np.linalg.norm(self.raw.points[result, : self.mesh.dim()] - basis.doflocs.T, axis=1)
        bent = np.flatnonzero(~(away <= STRAIGHT_TOLERANCE * diameters(self.mesh).min()))
        if len(bent):
            where = self.raw.points[result[bent[0]]].tolist()
            raise InputError(f"its {self.kind} cells are curved, the first at {where}; expected straight edges")
        return result


def _facets_between(mesh: Any, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.int64]:
    """The facet of each pair of nodes; every pair must be a facet."""
    nodes = mesh.p.shape[1]
    keys = np.sort(mesh.facets.astype(np.int64), axis=0).T @ np.array([nodes, 1])
    order = np.argsort(keys)
    wanted = np.minimum(first, second) * nodes + np.maximum(first, second)
    return np.asarray(order[np.searchsorted(keys, wanted, sorter=order)])


def _scalar(values: Any, size: int, name: str) -> Array:
    array = real_array(values, name)
    if array.shape not in ((size,), (size, 1)):
        raise InputError(f"its field {name!r} has shape {array.shape}; expected one number for each of {size}")
    return array.reshape(size)
