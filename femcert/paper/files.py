"""Files of a sweep: arrays in ``.npz`` archives, and finished chunks from which an interrupted sweep goes on."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from ..checks import naming
from ..errors import InputError
from ..files import check_regular, write_text, written

SETTINGS = "settings.json"
# What zip archives, and the headers of arrays in them, raise when bytes are wrong.
_DAMAGED = (
    KeyError, ValueError, TypeError, AttributeError, EOFError, RuntimeError, MemoryError, OverflowError, SyntaxError,
    TokenError, BadZipFile, zlib.error, struct.error,
)  # fmt: skip


def read_arrays(path: Path, names: Iterable[str], optional: Iterable[str] = ()) -> dict[str, NDArray[Any]]:
    """Arrays of an archive by name; those in `optional` only if they are there.

    Raises
    ------
    InputError
        The file cannot be read, or is no such archive.
    """
    with naming(f"'{path}'"):
        check_regular(path)
    try:
        with open(path, "rb") as stream, NpzFile(stream, allow_pickle=False) as found:
            return {name: found[name] for name in (*names, *(name for name in optional if name in found))}
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror or error}") from None
    except _DAMAGED as error:
        raise InputError(f"'{path}' is not the file of a sweep: {error}") from None


def write_arrays(path: Path, **arrays: NDArray[Any]) -> None:
    """Write an archive without pickled objects; it appears whole or not at all."""
    with written(path) as draft, draft.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)


class Chunks:
    """A directory with a file for each finished chunk, beside the settings that the chunks were computed with.

    A chunk that is there need not be computed again. The directory is made with its first file.

    Parameters
    ----------
    folder
        The directory.
    settings
        What decides the records, as plain values. Chunks that were computed with others are refused.
    kind
        Type of the records.
    resume
        Whether to go on with chunks that are there.

    Raises
    ------
    InputError
        There are chunks and `resume` is not set, or they were computed with other settings.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], kind: np.dtype[np.void], *, resume: bool) -> None:
        self.folder, self.kind = folder, kind
        # As they come back from the file: tuples are lists there.
        self.settings: dict[str, Any] = json.loads(json.dumps(settings))
        path = folder / SETTINGS
        self.begun = path.exists()
        if self.begun and not resume:
            raise InputError(f"{folder} holds an unfinished sweep; resume it, or remove it")
        if self.begun:
            self._check_same(path)

    def read(self, start: int, stop: int) -> NDArray[np.void] | None:
        """The records of these trials, or None if they are not there.

        Raises
        ------
        InputError
            The file is damaged.
        """
        path = self._path(start, stop)
        if not self.begun or not path.exists():
            return None
        try:
            found = read_arrays(path, ["records"])["records"]
            if found.dtype != self.kind or found.shape != (stop - start,):
                raise InputError(f"'{path}' does not hold the records of {stop - start} trials")
        except InputError as error:
            raise InputError(f"{error}; remove it and resume") from None
        return found

    def write(self, start: int, records: NDArray[np.void]) -> None:
        """Keep the records of a chunk that begins at this trial.

        Raises
        ------
        InputError
            The directory cannot be written to.
        """
        if not self.begun:
            write_text(self.folder / SETTINGS, json.dumps(self.settings, indent=2) + "\n")
            self.begun = True
        write_arrays(self._path(start, start + len(records)), records=records)

    def _path(self, start: int, stop: int) -> Path:
        return self.folder / f"{start:09d}-{stop:09d}.npz"

    def _check_same(self, path: Path) -> None:
        try:
            former = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            former = None
        if not isinstance(former, dict):
            raise InputError(f"{path} is damaged; remove {self.folder} and start anew")
        for name, value in self.settings.items():
            if former.get(name) != value:
                came = f"{name} was {json.dumps(former.get(name))}, now it is {json.dumps(value)}"
                raise InputError(f"cannot resume: {self.folder} belongs to a sweep with other settings: {came}")
