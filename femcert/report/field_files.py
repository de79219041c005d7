"""The fields of a selection as a VTU or XDMF file, for ParaView and for whoever reads them back."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import meshio
import numpy as np
from skfem import Basis

from ..checks import Array
from ..errors import InputError
from ..files import written
from ..mesh.elements import field_degree, lagrange
from ..mesh.locate import interpolation_matrix
from ..mesh.vectors import is_vector, nodal_vectors, scalar_basis
from ..problem.base import Problem
from ..problem.space import ParameterSpace
from ..selection import Selection
from .scene import Scene, known_stability

# By corners of a cell: its name in meshio, linear and quadratic, and in XDMF.
_CELLS = {
    2: (("line", "Polyline"), ("line3", "Edge_3")),
    3: (("triangle", "Triangle"), ("triangle6", "Triangle_6")),
    4: (("quad", "Quadrilateral"), ("quad9", "Quadrilateral_9")),
}


def write_fields(selection: Selection, path: str | Path, *, problem: Problem | None = None) -> Path:
    """Write all fields of a selection on its mesh, as ``.vtu`` or ``.xdmf``; the path is returned.

    On nodes: ``parameter`` and ``state``, the selected ones, as `Candidate.from_file` reads them; those of both
    candidates as ``baseline_parameter``, ``learned_state`` and so on; ``difference_parameter`` and
    ``difference_state``, learned minus baseline; ``weakest_direction``, which the sensors see least; and with the rule
    `Dominance` ``deciding_truth``. States at several times are ``state_0``, ``state_1`` and so on. On cells:
    piecewise constant parameters, and ``baseline_indicators``, ``learned_indicators``, the share of each element in the
    physics residual, where the problem offers its strong form. Parameters on a part of the boundary are NaN elsewhere;
    of several unknowns each has its name: ``parameter_flux``. Vector fields have three numbers at each node. P2 and Q2
    are written as quadratic cells, so nothing is lost. The file appears whole or not at all, XDMF too, whose numbers
    are inside.

    Parameters
    ----------
    problem
        Where the fields of a selection live that was loaded from a file; only what was selected is written then.
    """
    if not isinstance(selection, Selection):
        raise InputError(f"selection is a {type(selection).__name__}; expected a Selection")
    if not isinstance(path, (str, Path)) or Path(path).suffix not in _WRITERS:
        raise InputError(f"path is {path!r}; expected a file name that ends in {' or '.join(_WRITERS)}")
    scene = Scene.of(selection, problem)
    if scene is None:
        raise InputError("a selection from a file has no mesh; give the problem, too")
    if scene.problem.mesh is None and scene.problem.basis is None:
        raise InputError("the problem has no mesh to write fields on; Selection.save writes the numbers")
    sheet = FieldSheet(scene.problem)
    _add_reconstructions(sheet, selection, scene)
    for role, found in scene.physics()[0].items():
        sheet.cell_data[f"{role}_indicators"] = [found.indicators]
    if (weakest := known_stability(selection, scene)[0]) is not None and weakest.weakest is not None:
        sheet.add_parameter("weakest_direction", weakest.weakest, scene.problem.parameters)
    if selection.comparison is not None and selection.comparison.truth is not None:
        sheet.add_parameter("deciding_truth", selection.comparison.truth, scene.problem.parameters)
    target = Path(path)
    with written(target) as draft:
        _WRITERS[target.suffix](draft, sheet.mesh())
    return target


class FieldSheet:
    """Fields of a problem, gathered on one mesh: with quadratic cells if one of its bases is quadratic."""

    def __init__(self, problem: Problem) -> None:
        spaces = [factor for factor, _ in problem.parameters.factors.values()] or [problem.parameters]
        bases = [problem.basis, *(space.carrier for space in spaces)]
        finest = max((scalar_basis(b) for b in bases if b is not None), key=field_degree)
        # Cells need corners, also where all there is are piecewise constants.
        self._basis: Basis = finest if field_degree(finest) else finest.with_element(lagrange(finest.mesh, 1))
        self.point_data: dict[str, Array] = {}
        self.cell_data: dict[str, list[Array]] = {}

    def add(self, name: str, values: Array, basis: Basis) -> None:
        """A field on `basis`; one with several columns gets a number for each."""
        if values.ndim == 2:
            for i, column in enumerate(values.T):
                self.add(f"{name}_{i}", column, basis)
        elif is_vector(basis):
            scalar, parts = nodal_vectors(basis, np.asarray(values, dtype=float))
            # ParaView takes three numbers for a vector.
            vectors = np.zeros((scalar.mesh.nelements if field_degree(basis) == 0 else self._basis.N, 3))
            for i, part in enumerate(parts):
                vectors[:, i] = part if field_degree(basis) == 0 else self._nodal(part, scalar)
            if field_degree(basis) == 0:
                self.cell_data[name] = [vectors]
            else:
                self.point_data[name] = vectors
        elif field_degree(basis) == 0:
            self.cell_data[name] = [np.asarray(values, dtype=float)]
        else:
            self.point_data[name] = self._nodal(np.asarray(values, dtype=float), basis)

    def add_parameter(self, name: str, values: Array, space: ParameterSpace) -> None:
        """A parameter: on a part of the boundary NaN elsewhere, of several unknowns each one by its name."""
        if space.factors:
            for factor, (each, part) in space.factors.items():
                self.add_parameter(f"{name}_{factor}", values[part], each)
        elif space.carrier is not None:
            where = space.extend(np.ones(space.size)) > 0.0 if space.facets is not None else None
            self.add(name, values if where is None else np.where(where, space.extend(values), np.nan), space.carrier)

    def _nodal(self, values: Array, basis: Basis) -> Array:
        if type(basis.elem) is type(self._basis.elem):
            return values
        # Linear, on the nodes of quadratic cells of the same mesh, where it is known at every node of a cell.
        cells = np.empty(self._basis.N, dtype=np.int64)
        cells[self._basis.element_dofs] = np.arange(basis.mesh.nelements)
        result = np.asarray(interpolation_matrix(basis, self._basis.doflocs, cells) @ values)
        result[self._basis.nodal_dofs[0]] = values[basis.nodal_dofs[0]]
        return result

    def mesh(self) -> meshio.Mesh:
        """Points in space, cells and all fields."""
        points = np.zeros((self._basis.N, 3))
        points[:, : self._basis.mesh.dim()] = self._basis.doflocs.T
        kind, _ = _CELLS[len(self._basis.mesh.t)][field_degree(self._basis) - 1]
        # The dofs of a quadratic element come in the order of VTK: corners, middles of the edges, centre.
        cells = {kind: self._basis.element_dofs.T.astype(np.int64)}
        return meshio.Mesh(points, cells, point_data=self.point_data, cell_data=self.cell_data)


def _add_reconstructions(sheet: FieldSheet, selection: Selection, scene: Scene) -> None:
    problem = scene.problem
    for what, add in (
        ("parameter", partial(sheet.add_parameter, space=problem.parameters)),
        ("state", partial(sheet.add, basis=problem.basis)),
    ):
        selected = getattr(selection, what)
        if selected is not None:
            add(what, selected)
        fields = {role: getattr(candidate, what) for role, candidate in scene.candidates.items()}
        known = {role: np.asarray(values) for role, values in fields.items() if values is not None}
        for role, values in known.items():
            add(f"{role}_{what}", values)
        # One may be a whole trajectory where the other has the observation times.
        if len(known) == 2 and known["learned"].shape == known["baseline"].shape:
            add(f"difference_{what}", known["learned"] - known["baseline"])


def _write_vtu(path: Path, mesh: meshio.Mesh) -> None:
    meshio.write(path, mesh, file_format="vtu")


def _write_xdmf(path: Path, mesh: meshio.Mesh) -> None:
    """XDMF 3 with the numbers in the XML; meshio's own writer needs HDF5."""
    root = ElementTree.Element("Xdmf", Version="3.0")
    grid = ElementTree.SubElement(ElementTree.SubElement(root, "Domain"), "Grid", Name="Grid")
    _add_numbers(ElementTree.SubElement(grid, "Geometry", GeometryType="XYZ"), mesh.points)
    block = mesh.cells[0]
    names = dict(pair for pairs in _CELLS.values() for pair in pairs)
    size = {"NumberOfElements": str(len(block.data)), "NodesPerElement": str(block.data.shape[1])}
    _add_numbers(ElementTree.SubElement(grid, "Topology", {"TopologyType": names[block.type], **size}), block.data)
    columns = [("Node", name, values) for name, values in mesh.point_data.items()]
    columns += [("Cell", name, parts[0]) for name, parts in mesh.cell_data.items()]
    for centre, name, values in columns:
        kind = {"Name": name, "AttributeType": "Vector" if values.ndim == 2 else "Scalar", "Center": centre}
        _add_numbers(ElementTree.SubElement(grid, "Attribute", kind), values)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _add_numbers(parent: ElementTree.Element, values: Array) -> None:
    whole = values.dtype.kind == "i"
    text = io.StringIO()
    np.savetxt(text, values, fmt="%d" if whole else "%.17g")
    shape = " ".join(map(str, values.shape))
    look = {"DataType": "Int" if whole else "Float", "Precision": "8", "Format": "XML", "Dimensions": shape}
    ElementTree.SubElement(parent, "DataItem", look).text = "\n" + text.getvalue()


_WRITERS: dict[str, Callable[[Path, meshio.Mesh], None]] = {".vtu": _write_vtu, ".xdmf": _write_xdmf}
