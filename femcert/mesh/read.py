"""Meshes from files, with their named boundaries and regions.

scikit-fem reads files through meshio. Both are lenient: meshio prints a warning about a truncated file and
goes on, and takes the last of several pieces; scikit-fem logs a tag that it cannot match. `load_mesh` refuses instead.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import struct
import subprocess
import sys
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import meshio
import numpy as np
from meshio._exceptions import CorruptionError
from numpy.typing import NDArray
from skfem import Mesh
from skfem.io.meshio import from_meshio

from ..checks import Array, real_array
from ..errors import InputError
from .geometry import ROUNDING, Indices, corner_areas, diameters, find_facets, index_facets

# meshio has some forty readers and no common error type; on a damaged file they raise any of these.
_READ_ERRORS = (
    meshio.ReadError, CorruptionError, SystemExit, OSError, EOFError, ValueError, TypeError, LookupError,
    AttributeError, AssertionError, ArithmeticError, MemoryError, NameError, RuntimeError, ImportError, StopIteration,
    struct.error, zlib.error, ElementTree.ParseError,
)  # fmt: skip
# Readers of meshio that never return from some truncated files.
_HANGING = {"ansys", "mdpa", "off", "ply", "tecplot", "wkt"}
_CORNERS = {"vertex": 1, "line": 2, "triangle": 3, "quad": 4}
_FACET_KIND = {"line": "vertex", "triangle": "line", "quad": "line"}
_TAG_DATA = ("gmsh:physical", "medit:ref")
# Of the extent of a mesh: how far its nodes may be from a line or a plane.
FLAT_TOLERANCE = 1e-9
# How long a reader that may hang is waited for, and longer for each byte.
SECONDS, SECONDS_PER_BYTE = 20.0, 1e-5
# What another process does, and its exit code where the reader raises.
REFUSED = 3
_TRIAL = f"""
import sys, meshio
try:
    meshio.read(sys.argv[1], file_format=sys.argv[2])
except BaseException:
    sys.exit({REFUSED})
"""


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
        # from_meshio decodes what mesh.save wrote. The other names are decoded here: it mixes up the tags of
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
    """What meshio makes of the file, silently; where it only warns of an early end, refuse."""
    if not isinstance(path, (str, Path)):
        raise InputError(f"expected a path, got {type(path).__name__}")
    path = Path(path)
    if not path.is_file():
        raise InputError("it is a directory; expected a file" if path.is_dir() else "there is no such file")
    suffixes = ["".join(path.suffixes[i:]).lower() for i in range(len(path.suffixes))]
    formats = {name for suffix in suffixes for name in meshio.extension_to_filetypes.get(suffix, [])}
    if not formats:
        raise InputError(f"unknown extension {path.suffix!r}; expected one of meshio's, such as .msh or .vtu")
    _check_file(path)
    usable = sorted(formats - _HANGING)
    if not usable:
        usable = sorted(formats)
        _check_that_reading_ends(path, usable[0])
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


def _check_file(path: Path) -> None:
    """Refuse a file that is more than meshio would read; others pass.

    Of several pieces meshio returns the cells of the last one. To join them would leave cracks between them, since each
    piece has its own copies of the nodes that it shares with others.

    Raises
    ------
    InputError
        A VTU file has several pieces with something in them, or two fields have one name.
    """
    kind = path.suffix.lower()
    root = _root(path) if kind in (".vtu", ".xdmf", ".xmf") else None
    if root is None:
        return
    _check_pieces(root)
    for part in ("PointData", "CellData", "Cells", "FieldData"):
        for section in root.iter(part):
            _check_names(section, "DataArray", "")
    for grid in root.iter("Grid"):
        _check_names(grid, "Attribute", "Center")


def _check_that_reading_ends(path: Path, file_format: str) -> None:
    """Let another process read the file first: a reader that ends there ends here, too, and one that hangs is ended.

    What is wrong with the file is said by the reader here.

    Raises
    ------
    InputError
        The reader did not end in time, or could not be tried.
    """
    limit = SECONDS + SECONDS_PER_BYTE * path.stat().st_size
    command = [sys.executable, "-c", _TRIAL, str(path.absolute()), file_format]
    places = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    quiet = subprocess.DEVNULL
    try:
        done = subprocess.run(
            command, env=places, stdin=quiet, stdout=quiet, stderr=quiet, timeout=limit, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        raise InputError(f"reading it did not end in {limit:.0f} seconds, is it damaged?") from None
    if done not in (0, REFUSED):
        raise InputError(f"its reader, tried in another process, ended with {done}; convert it to .msh or .vtu")


def _root(path: Path) -> Any:
    """The root of the file; None for what cannot be parsed: meshio's message says more."""
    try:
        return ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, ValueError, OSError):
        pass
    # Raw data at the end of a VTU file are no XML.
    content = path.read_bytes()
    begin, end = re.search(rb"<AppendedData[^>]*>", content), content.rfind(b"</AppendedData>")
    try:
        return None if begin is None else ElementTree.fromstring(content[: begin.end()] + content[end:])
    except (ElementTree.ParseError, ValueError):
        return None


def _check_pieces(root: Any) -> None:
    counts = ("NumberOfPoints", "NumberOfCells")
    filled = [piece for piece in root.iter("Piece") if any(piece.get(name, "").strip() != "0" for name in counts)]
    if len(filled) > 1:
        raise InputError(f"it has {len(filled)} pieces; expected one (ParaView joins them: Clean to Grid, then save)")


def _check_names(section: Any, tag: str, place: str) -> None:
    seen = set()
    for child in section.findall(tag):
        key = child.get("Name"), child.get(place)
        if key in seen:
            raise InputError(f"it has {key[0]!r} twice; expected each name once")
        seen.add(key)


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
    if np.any(extent[dimension:] > FLAT_TOLERANCE * extent.max()):
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


def _oriented(mesh: Mesh) -> NDArray[np.int32]:
    """The cells with positive orientation; refuses flat and folded ones."""
    areas = corner_areas(mesh)
    # rounding of the coordinates moves a corner area by about this much
    rounding = ROUNDING * np.abs(mesh.p).max() * (diameters(mesh) if mesh.dim() == 2 else 1.0)
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
    """Refuse a cell given twice and a facet of three cells, which scikit-fem would accept without a warning."""
    twice = mesh.t.shape[1] - np.unique(np.sort(mesh.t, axis=0), axis=1).shape[1]
    if twice:
        raise InputError(f"it has {twice} cells twice; remove the copies")
    index_facets(mesh)
    crowded = np.count_nonzero(np.bincount(mesh.t2f.ravel()) > 2)
    if crowded:
        raise InputError(f"it has {crowded} facets of more than two cells; expected a mesh without overlaps")
