"""Meshes from files, and the named boundaries, regions and element sizes of a mesh.

scikit-fem reads files through meshio. Both are lenient: meshio prints a warning about a truncated file and
goes on, and scikit-fem logs a tag that it cannot match and goes on. `load_mesh` refuses instead.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import itertools
import struct
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import meshio
import numpy as np
from meshio._exceptions import CorruptionError
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from skfem import Mesh
from skfem.io.meshio import from_meshio

from ..checks import Array, real_array
from ..errors import InputError
from .facets import index_facets
from .mesh_files import check_mesh_file, check_that_reading_ends

Indices = NDArray[np.int64]

# meshio has some forty readers and no common error type; on a damaged file they raise any of these.
_READ_ERRORS = (
    meshio.ReadError, CorruptionError, SystemExit, OSError, EOFError, ValueError, TypeError, LookupError,
    AttributeError, AssertionError, ArithmeticError, MemoryError, NameError, RuntimeError, ImportError, StopIteration,
    struct.error, zlib.error, ParseError,
)  # fmt: skip
# Readers of meshio that never return from some truncated files.
_HANGING = {"ansys", "mdpa", "off", "ply", "tecplot", "wkt"}
_CORNERS = {"vertex": 1, "line": 2, "triangle": 3, "quad": 4}
_FACET_KIND = {"line": "vertex", "triangle": "line", "quad": "line"}
_TAG_DATA = ("gmsh:physical", "medit:ref")


def load_mesh(path: str | Path) -> Mesh:
    """A scikit-fem mesh of lines, triangles or quadrilaterals, with its named boundaries and regions.

    Parameters
    ----------
    path
        A file in any format that meshio reads (of the two that end in .msh only Gmsh's), or one that scikit-fem's
        ``mesh.save`` wrote. Readers of meshio that never return from some damaged files (OFF, PLY, WKT, Tecplot,
        Kratos) are tried first in a process of their own, with a time limit. Gmsh physical groups become boundaries
        and subdomains under their names; groups without a name, and Medit references other than 0, under their number
        (``"7"``). Nodes that no cell uses are dropped.
        Some formats (Abaqus, OBJ) neither count their cells nor mark their end: a file of theirs that was cut
        between two lines is a smaller mesh, and loads as one.

    Returns
    -------
    Mesh
        A ``MeshLine``, ``MeshTri`` or ``MeshQuad`` of first order; lines run along x, quadrilaterals
        counterclockwise.

    Raises
    ------
    InputError
        The file is missing, damaged or of an unknown format; it has no cells, cells of more than one kind, of
        higher order or in three dimensions, zero-area, folded or overlapping cells, coordinates that are not
        finite or not in the plane, or a named boundary with edges of no cell; a VTU file has several pieces.
    """
    with about(path):
        return checked_mesh(read_raw(path))


def checked_mesh(raw: meshio.Mesh) -> Mesh:
    """The mesh that `load_mesh` returns, from what meshio read; its nodes are those used, in the order of `raw`."""
    # Absurd coordinates may overflow here; the checks are written so that inf and NaN fail them.
    with np.errstate(over="ignore", invalid="ignore"):
        kind = _cell_kind(raw)
        points, cells, new_number = _used_nodes(raw, kind)
        # from_meshio decodes what mesh.save wrote. The other names are our job: it mixes up the tags of
        # curves and surfaces with the same number, and skips what it cannot match.
        saved = {key: data for key, data in raw.cell_data.items() if key.startswith("skfem:")}
        saved = {key: [real_array(_of_kind(raw, data, kind), f"its set {key}")] for key, data in saved.items()}
        mesh = from_meshio(meshio.Mesh(points, {kind: cells}, cell_data=saved))
        boundaries = {name: np.unique(np.asarray(facets)) for name, facets in (mesh.boundaries or {}).items()}
        for name, facet_nodes in _named_cells(raw, _FACET_KIND[kind]).items():
            boundaries[name] = find_facets(mesh, new_number[facet_nodes], name)
        regions = {**(mesh.subdomains or {}), **_named_sets(raw, kind)}
        mesh = replace(mesh, t=_oriented(mesh), _boundaries=boundaries or None, _subdomains=regions or None)
        _check_overlaps(mesh)
    return mesh


def boundary_facets(mesh: Mesh, name: str) -> Indices:
    """Indices of the facets of the boundary called `name`, or an `InputError` that lists the names."""
    return _named(mesh.boundaries, name, "boundary")


def region_elements(mesh: Mesh, name: str) -> Indices:
    """Indices of the elements of the subdomain called `name`, or an `InputError` that lists the names."""
    return _named(mesh.subdomains, name, "region")


def diameters(mesh: Mesh) -> Array:
    """The diameter of each element: its longest edge or diagonal."""
    corners = mesh.p[:, mesh.t]
    pairs = itertools.combinations(range(mesh.t.shape[0]), 2)
    return np.max([np.linalg.norm(corners[:, i] - corners[:, j], axis=0) for i, j in pairs], axis=0)


def measures(mesh: Mesh) -> Array:
    """The length or area of each element."""
    corners = _corner_areas(mesh)
    # The corner triangles cover a quadrilateral twice, and there are three copies of a triangle.
    weight = {1: 1.0, 3: 1 / 3, 4: 1 / 2}[len(corners)]
    return np.abs(weight * corners.sum(axis=0))


def connected_parts(mesh: Mesh) -> Indices:
    """The connected part that each element belongs to; a common vertex does not connect."""
    inner = mesh.f2t[:, mesh.f2t[1] >= 0]
    graph = csr_matrix((np.ones(inner.shape[1]), (inner[0], inner[1])), shape=(mesh.nelements, mesh.nelements))
    return np.asarray(connected_components(graph, directed=False)[1])


def _named(sets: dict[str, Any] | None, name: str, what: str) -> Indices:
    known = sorted(sets or {})
    if sets is None or name not in sets:
        near = difflib.get_close_matches(str(name), known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        expected = f"expected one of {', '.join(map(repr, known))}" if known else "it names none"
        raise InputError(f"{what} {name!r} is not in the mesh; {expected}{hint}")
    if not len(sets[name]):
        raise InputError(f"{what} {name!r} of the mesh is empty; expected at least one member")
    return np.unique(np.asarray(sets[name], dtype=np.int64))


@contextlib.contextmanager
def about(path: Any, what: str = "mesh") -> Iterator[None]:
    """Put the name of the file in front of what is wrong with it."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{what} file '{path}': {error}") from None
    except MemoryError:
        raise InputError(f"{what} file '{path}': there is not enough memory for what it holds") from None


def read_raw(path: Any) -> meshio.Mesh:
    """What meshio makes of the file, silently; where it only complains of an early end, refuse."""
    if not isinstance(path, (str, Path)):
        raise InputError(f"expected a path, got {type(path).__name__}")
    path = Path(path)
    if not path.is_file():
        raise InputError("it is a directory; expected a file" if path.is_dir() else "there is no such file")
    suffixes = ["".join(path.suffixes[i:]).lower() for i in range(len(path.suffixes))]
    formats = {name for suffix in suffixes for name in meshio.extension_to_filetypes.get(suffix, [])}
    if not formats:
        raise InputError(f"unknown extension {path.suffix!r}; expected one of meshio's, such as .msh or .vtu")
    check_mesh_file(path)
    usable = sorted(formats - _HANGING)
    if not usable:
        usable = sorted(formats)
        check_that_reading_ends(path, usable[0])
    said = io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            # NumPy's only sign that a number in a text file could not be read
            warnings.filterwarnings("error", message="string or file could not be read")
            # Of the two formats that end in .msh only Gmsh's; it would try both.
            raw = meshio.read(path, file_format=usable[0] if len(usable) == 1 else None)
    except ModuleNotFoundError as error:
        raise InputError(f"its reader needs the package {error.name}; pip install it, or convert to .vtu") from None
    except (*_READ_ERRORS, Warning) as error:
        why = _reason(error, said.getvalue())
        raise InputError(f"it cannot be read: damaged, or of a kind that meshio does not know ({why})") from None
    # Of a damaged field meshio only says that it leaves it out.
    if "Skipping" in said.getvalue():
        raise InputError("one of its fields is damaged; expected whole ones")
    if "not closed by" in said.getvalue() or (path.suffix == ".mesh" and not _ends_with(path, b"End")):
        raise InputError("it ends early, is it truncated?")
    return raw


def _reason(error: BaseException, said: str) -> str:
    """One line about a failed read; before a SystemExit, meshio prints its reasons."""
    if isinstance(error, SystemExit):
        lines = [line for line in said.partition("Error:")[0].splitlines() if line.strip()]
        return lines[-1].strip() if lines else "meshio gave up without a reason"
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _ends_with(path: Path, word: bytes) -> bool:
    return path.read_bytes().rstrip().lower().endswith(word.lower())


def _cell_kind(raw: meshio.Mesh) -> str:
    """The one kind of cell that fills the domain: "line", "triangle" or "quad"."""
    dimensions = {block.type: block.dim for block in raw.cells if len(block.data)}
    top = max(dimensions.values(), default=0)
    kinds = sorted(kind for kind, dimension in dimensions.items() if dimension == top)
    if top == 0:
        raise InputError("it has no cells; expected lines, triangles or quadrilaterals")
    if top == 3:
        raise InputError(f"it has {' and '.join(kinds)} cells; expected a mesh of dimension 1 or 2")
    if len(kinds) > 1:
        raise InputError(f"it mixes {' and '.join(kinds)} cells; expected cells of one kind")
    if kinds[0] not in _FACET_KIND:
        raise InputError(f"it has {kinds[0]} cells; expected first-order lines, triangles or quadrilaterals")
    return kinds[0]


def _used_nodes(raw: meshio.Mesh, kind: str) -> tuple[Array, Indices, Indices]:
    """Coordinates of the used nodes, the cells in the new numbering, and each node's new number or -1."""
    _check_node_numbers(raw, (kind, _FACET_KIND[kind]))
    cells = np.concatenate([block.data for block in raw.cells if block.type == kind])
    used, cells = np.unique(cells, return_inverse=True)
    points = real_array(raw.points[used], "the array of coordinates")
    dimension = 1 if kind == "line" else 2
    extent = np.ptp(points, axis=0)
    if np.any(extent[dimension:] > 1e-9 * extent.max()):
        place = "a line along x" if dimension == 1 else "a plane of constant z"
        raise InputError(f"its nodes span {extent} along the axes; expected {place}")
    new_number = np.full(len(raw.points), -1, dtype=np.int64)
    new_number[used] = np.arange(len(used))
    return points[:, :dimension], cells.reshape(-1, _CORNERS[kind]), new_number


def _check_node_numbers(raw: meshio.Mesh, kinds: tuple[str, ...]) -> None:
    if raw.points.ndim != 2 or not 1 <= raw.points.shape[1] <= 3:
        raise InputError(f"its coordinates have shape {raw.points.shape}; expected 1 to 3 numbers per node")
    for block in raw.cells:
        data, kind = block.data, block.type
        if kind not in kinds or data.shape == (0,):
            continue
        if data.dtype.kind not in "iu" or data.ndim != 2 or data.shape[1] != _CORNERS[kind]:
            raise InputError(f"its {kind} cells are a {data.shape} array of {data.dtype}; expected whole node numbers")
        if np.any(data < 0) or np.any(data >= len(raw.points)):
            raise InputError(f"its {kind} cells use nodes that are not among the {len(raw.points)} in the file")


def _of_kind(raw: meshio.Mesh, data: list[Any], kind: str) -> NDArray[Any]:
    """Per-block data of the cells of one kind, joined as `_used_nodes` joins the cells."""
    blocks = [values for block, values in zip(raw.cells, data, strict=True) if block.type == kind]
    return np.concatenate(blocks) if blocks else np.empty(0)


def _named_sets(raw: meshio.Mesh, kind: str) -> dict[str, Indices]:
    """Indices of the cells of one kind in each named set, physical group or numbered reference."""
    starts = np.cumsum([0] + [len(block) if block.type == kind else 0 for block in raw.cells])
    sets: dict[str, Indices] = {}
    for name, blocks in raw.cell_sets.items():
        if name.startswith("gmsh:"):
            continue  # bookkeeping of the geometry, not a group of cells
        parts = zip(raw.cells, blocks, starts, strict=False)
        chosen = [np.asarray(p) + start for block, p, start in parts if block.type == kind and p is not None]
        sets[name] = np.concatenate(chosen).astype(np.int64) if chosen else np.empty(0, np.int64)
    dimension = next((block.dim for block in raw.cells if block.type == kind), 0)
    # Gmsh counts the tags of each dimension from 1, so a tag has a name only together with its dimension.
    names = {int(tag): name for name, (tag, d) in raw.field_data.items() if d == dimension}
    for key in _TAG_DATA:
        tags = _of_kind(raw, raw.cell_data[key], kind) if key in raw.cell_data else np.empty(0)
        for tag in np.unique(tags[tags != 0]):
            sets.setdefault(names.get(int(tag), str(int(tag))), np.flatnonzero(tags == tag))
    return {name: np.unique(chosen) for name, chosen in sets.items() if len(chosen)}


def _named_cells(raw: meshio.Mesh, kind: str) -> dict[str, Indices]:
    """The node numbers of the cells in each named set of one kind."""
    sets = _named_sets(raw, kind)
    if not sets:
        return {}
    cells = np.concatenate([block.data for block in raw.cells if block.type == kind]).astype(np.int64)
    return {name: cells[chosen] for name, chosen in sets.items()}


def find_facets(mesh: Mesh, nodes: Indices, name: str) -> Indices:
    """Indices of the facets with the given nodes, one facet per row."""
    # one integer per facet, the same for any order of its nodes
    base = mesh.p.shape[1] ** np.arange(nodes.shape[1])[::-1]
    wanted = np.sort(nodes, axis=1) @ base
    facets = np.sort(mesh.facets, axis=0).T @ base
    order = np.argsort(facets)
    place = order[np.minimum(np.searchsorted(facets, wanted, sorter=order), len(facets) - 1)]
    missing = np.count_nonzero((facets[place] != wanted) | (nodes.min(axis=1) < 0))
    if missing:
        raise InputError(f"boundary {name!r} has {missing} of {len(nodes)} facets that belong to no cell")
    return np.unique(place)


def _corner_areas(mesh: Mesh) -> Array:
    """Signed length of each line, or signed area of the triangle at each corner of each cell."""
    corners = mesh.p[:, mesh.t]
    if mesh.dim() == 1:
        return corners[:, 1] - corners[:, 0]
    after, before = np.roll(corners, -1, axis=1) - corners, np.roll(corners, 1, axis=1) - corners
    return 0.5 * (after[0] * before[1] - after[1] * before[0])


def _oriented(mesh: Mesh) -> NDArray[np.int32]:
    """The cells with positive orientation; refuses flat and folded ones."""
    areas = _corner_areas(mesh)
    # rounding of the coordinates moves a corner area by about this much
    rounding = 8 * np.finfo(float).eps * np.abs(mesh.p).max() * (diameters(mesh) if mesh.dim() == 2 else 1.0)
    flat = np.flatnonzero(np.all(np.abs(areas) <= rounding, axis=0))
    if len(flat):
        x = mesh.p[:, mesh.t[:, flat[0]]].mean(axis=1)
        raise InputError(f"it has {len(flat)} cells of zero area, the first at {x}; remove them")
    folded = np.flatnonzero(~(np.all(areas > rounding, axis=0) | np.all(areas < -rounding, axis=0)))
    if len(folded):
        x = mesh.p[:, mesh.t[:, folded[0]]].mean(axis=1)
        raise InputError(f"it has {len(folded)} cells that are folded or not convex, the first at {x}")
    if mesh.t.shape[0] == 3:
        return mesh.t  # scikit-fem sorts the corners of triangles by number, whatever the orientation
    reversed_cell = np.roll(mesh.t[::-1], 1, axis=0) if mesh.dim() == 2 else mesh.t[::-1]
    return np.ascontiguousarray(np.where(areas[0] < 0, reversed_cell, mesh.t))


def _check_overlaps(mesh: Mesh) -> None:
    """Refuse a cell given twice and a facet of three cells, which scikit-fem would take without a word."""
    twice = mesh.t.shape[1] - np.unique(np.sort(mesh.t, axis=0), axis=1).shape[1]
    if twice:
        raise InputError(f"it has {twice} cells twice; remove the copies")
    index_facets(mesh)
    crowded = np.count_nonzero(np.bincount(mesh.t2f.ravel()) > 2)
    if crowded:
        raise InputError(f"it has {crowded} facets of more than two cells; expected a mesh without overlaps")
