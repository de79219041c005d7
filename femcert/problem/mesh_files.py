"""What meshio takes without a word in VTU, VTK and XDMF files: several pieces, names twice, pipes, bombs.

Of several pieces it returns the cells of the last one. To join them would leave cracks between them, since each piece
has its own copies of the nodes that it shares with others.
"""

from __future__ import annotations

import contextlib
import lzma
import math
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

from meshio.vtu import _vtu

from ..errors import InputError
from .files import check_regular

# Of the size of a file: to how much its arrays may unfold in memory. Small ones may hold zeros only.
MOST_UNFOLDED, LEAST_UNFOLDED = 64, 1 << 28
# Of a grid without values.
MOST_NODES = 1 << 22


def check_mesh_file(path: Path) -> None:
    """Refuse a file that is more, or elsewhere, than meshio would read, or far larger in memory; others pass.

    Raises
    ------
    InputError
        A VTU file has several pieces with something in them; two fields have one name; data of an XDMF file are to be
        read from what is no file; a VTK file is a large grid without values.
    """
    kind = path.suffix.lower()
    if kind == ".vtk":
        _check_grid(path)
    root = _root(path) if kind in (".vtu", ".xdmf", ".xmf") else None
    if root is None:
        return
    _check_pieces(root)
    for part in ("PointData", "CellData", "Cells", "FieldData"):
        for section in root.iter(part):
            _check_names(section, "DataArray", "")
    for grid in root.iter("Grid"):
        _check_names(grid, "Attribute", "Center")
    _check_data_files(root, path)


def _check_grid(path: Path) -> None:
    """A structured grid is a few numbers in the file, and all of its nodes in memory."""
    with path.open("rb") as file:
        found = re.search(rb"\nDIMENSIONS\s+(\d{1,18})\s+(\d{1,18})\s+(\d{1,18})", file.read(1 << 12), re.IGNORECASE)
    nodes = math.prod(map(int, found.groups())) if found else 0
    if nodes > max(MOST_NODES, path.stat().st_size):
        raise InputError(f"it is a grid of {nodes:,} nodes without values; expected at most {MOST_NODES:,}")


def _root(path: Path) -> Any:
    """The root of the file; None for what cannot be parsed, of which meshio knows more to say."""
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


def _check_data_files(root: Any, path: Path) -> None:
    for item in root.iter("DataItem"):
        kind, text = item.get("Format"), (item.text or "").strip()
        if kind in ("HDF", "Binary"):
            # As meshio understands it: one is beside the XDMF file, the other one where the process runs.
            name = text.partition(":")[0] if kind == "HDF" else text
            try:
                check_regular(path.resolve().parent / name if kind == "HDF" else name)
            except InputError as error:
                raise InputError(f"its data in {name!r}: {error}") from None


@contextlib.contextmanager
def bounded_arrays(path: Path) -> Iterator[None]:
    """While meshio reads, compressed arrays of a VTU file unfold to so much and no more: not to all of the memory."""
    left = max(MOST_UNFOLDED * path.stat().st_size, LEAST_UNFOLDED)

    def unfolded(make: Any, data: bytes) -> bytes:
        nonlocal left
        stream = make()
        result: bytes = stream.decompress(data, left + 1)
        left -= len(result)
        if left < 0:
            raise InputError(f"its compressed arrays unfold to more than {MOST_UNFOLDED} times the size of the file")
        if not stream.eof:
            raise InputError("one of its compressed arrays ends early")
        return result

    _vtu.zlib = SimpleNamespace(decompress=lambda data: unfolded(zlib.decompressobj, data), compress=zlib.compress)
    _vtu.lzma = SimpleNamespace(decompress=lambda data: unfolded(lzma.LZMADecompressor, data), compress=lzma.compress)
    try:
        yield
    finally:
        # Not what was there before: that may be another thread's.
        _vtu.zlib, _vtu.lzma = zlib, lzma
