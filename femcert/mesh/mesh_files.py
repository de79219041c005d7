"""What meshio takes without a word: several pieces, and names twice; and readers that hang.

Of several pieces it returns the cells of the last one. To join them would leave cracks between them, since each piece
has its own copies of the nodes that it shares with others.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ..errors import InputError

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
    """Refuse a file that is more than meshio would read; others pass.

    Parameters
    ----------
    path
        Of a mesh, with or without fields.

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
