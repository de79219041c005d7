"""What meshio takes without a word: several pieces, names twice, pipes, arrays without end; and readers that hang.

Of several pieces it returns the cells of the last one. To join them would leave cracks between them, since each piece
has its own copies of the nodes that it shares with others.
"""

from __future__ import annotations

import base64
import lzma
import math
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from ..errors import InputError
from ..files import check_regular

# Of the size of a file: to how much its arrays may unfold in memory. Small ones may hold zeros only.
MOST_UNFOLDED, LEAST_UNFOLDED = 64, 1 << 28
# Of a grid without values.
MOST_NODES = 1 << 22
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


def check_mesh_file(path: Path) -> None:
    """Refuse a file that is more, or elsewhere, than meshio would read, or far larger in memory; others pass.

    Raises
    ------
    InputError
        A VTU file has several pieces with something in them; two fields have one name; data of an XDMF file are to be
        read from what is no file; a VTK file is a large grid without values, or the compressed arrays of a VTU file
        are far larger than the file.
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
    _check_unfolded(root, path)


def check_that_reading_ends(path: Path, file_format: str) -> None:
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


def _check_unfolded(root: Any, path: Path) -> None:
    """Unfold the compressed arrays of a VTU file once, up to so much and no more: they could fill the memory."""
    compressor = root.get("compressor")
    if compressor not in ("vtkZLibDataCompressor", "vtkLZMADataCompressor"):
        return
    make: Any = zlib.decompressobj if compressor == "vtkZLibDataCompressor" else lzma.LZMADecompressor
    most, total = max(MOST_UNFOLDED * path.stat().st_size, LEAST_UNFOLDED), 0
    try:
        for block in _blocks(root, path):
            total += len(make().decompress(block, most + 1 - total))
            if total > most:
                break
    except (ValueError, TypeError, AttributeError, LookupError, EOFError, zlib.error, lzma.LZMAError):
        # What is damaged here is damaged for meshio, which has more to say.
        pass
    if total > most:
        raise InputError(f"its compressed arrays unfold to more than {MOST_UNFOLDED} times the size of the file")


def _blocks(root: Any, path: Path) -> Iterator[bytes]:
    """The compressed blocks of all arrays, as meshio finds them.

    An array is the number of blocks, two sizes, the size of each block, and the blocks; inside of XML the numbers and
    the blocks are two texts in base 64.
    """
    order = ">" if root.get("byte_order") == "BigEndian" else "<"
    number = np.dtype(order + ("u8" if root.get("header_type") == "UInt64" else "u4"))
    appended = root.find("AppendedData")
    raw = appended is not None and appended.get("encoding") == "raw"
    if raw:
        content = path.read_bytes()
        tail = content[re.search(rb"<AppendedData[^>]*>", content).end() :].split(b"_", 1)[1]  # type: ignore[union-attr]
    else:
        tail = b"" if appended is None else appended.text.strip()[1:].encode()
    for array in root.iter("DataArray"):
        if (kind := array.get("format")) not in ("binary", "appended"):
            continue
        inside = kind == "binary"
        data = array.text.strip().encode() if inside else tail[int(array.get("offset")) :]
        encoded = inside or not raw
        count = int(np.frombuffer(_decoded(data, number.itemsize, encoded), number)[0])
        width = (3 + count) * number.itemsize
        sizes = np.frombuffer(_decoded(data, width, encoded), number)[3:].astype(np.int64)
        rest = _decoded(data[-(-width // 3) * 4 if encoded else width :], int(sizes.sum()), encoded)
        for start, size in zip(np.cumsum(sizes) - sizes, sizes, strict=True):
            yield rest[start : start + size]


def _decoded(data: bytes, size: int, encoded: bool) -> bytes:
    """The first bytes of the data."""
    return base64.b64decode(data[: -(-size // 3) * 4])[:size] if encoded else data[:size]
