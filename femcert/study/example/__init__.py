"""A complete case to start from: mesh, data, candidate and a case file with comments.

``tests/study/make_example.py`` makes mesh, data and candidate.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from ...errors import InputError

FOLDER = Path(__file__).parent
CASE = FOLDER / "case.toml"
FILES = ("mesh.msh", "data.csv", "candidate.vtu", "case.toml")


def write_example(folder: Path) -> Path:
    """Write the example to a new or empty directory; the path of its case file.

    The data are a known source's, with noise of one per cent. The candidate stands for that of a network: the same
    source, a little off.

    Parameters
    ----------
    folder
        Where to write it.

    Raises
    ------
    InputError
        The directory is not empty, or cannot be written to.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        came = "is not empty" if folder.is_dir() else "is a file"
        raise InputError(f"{folder} {came}; expected a new or empty directory")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            shutil.copyfile(FOLDER / name, folder / name)
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}") from None
    return folder / CASE.name
