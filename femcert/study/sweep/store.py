"""Finished chunks on disk: what a sweep that was killed leaves for the next one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from .result import Records

MANIFEST = "manifest.json"
# Written once all chunks are there; not a chunk itself.
JOINED = "records.npy"
_NAME = re.compile(r"(\d+)-(\d+)\.npy")
# What must be the same to go on, and how it is called in a message.
_SAME = {
    "grid": "grid", "seed": "seed", "rules": "rules", "setting": "inverse problem", "versions": "package versions",
    "format": "file format",
}  # fmt: skip

Range = tuple[int, int]


class Store:
    """A directory with a manifest and a file for each finished chunk, named by its first trial and the one after it.

    Every file appears whole or not at all. Chunks need not have the same size, so a sweep can go on with another one.

    Parameters
    ----------
    directory
        Made where it does not exist.
    manifest
        What the sweep is: whoever goes on must bring the same.
    kind
        Type of the records.
    trials
        How many there are in all.
    resume
        Go on with the chunks that are there; without any, begin.

    Raises
    ------
    InputError
        There are chunks and `resume` is not set, they belong to another sweep, or the directory cannot be written to.
    """

    def __init__(
        self, directory: Path, manifest: dict[str, Any], kind: np.dtype[Any], trials: int, *, resume: bool = False
    ) -> None:
        self.directory, self.kind, self.trials = directory, kind, trials
        path = directory / MANIFEST
        try:
            directory.mkdir(parents=True, exist_ok=True)
            begun = path.exists()
            if begun and not resume:
                raise InputError(
                    f"{directory} holds an unfinished sweep ({len(self._names())} chunks); resume it, or remove it"
                )
            if begun:
                check_same(path, manifest)
            else:
                # Chunks without a manifest are nobody's.
                for name in self._names():
                    (directory / name).unlink()
                text = json.dumps(manifest, indent=2) + "\n"
                _write(path, lambda draft: draft.write_text(text, encoding="utf-8"))
            for draft in directory.glob(".*.part"):
                draft.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"cannot write to {directory}: {error.strerror or error}") from None
        self._done = dict(self._found())

    @property
    def done(self) -> int:
        """Number of trials that are there."""
        return self.trials - sum(stop - start for start, stop in self.gaps())

    def gaps(self) -> list[Range]:
        """Trials that are not there, as ranges."""
        gaps, at = [], 0
        for start, stop in sorted(self._done):
            if start > at:
                gaps.append((at, start))
            at = max(at, stop)
        return [*gaps, (at, self.trials)] if at < self.trials else gaps

    def add(self, start: int, records: Records) -> None:
        """Keep a finished chunk."""
        span = start, start + len(records)
        path = self.directory / f"{span[0]:012d}-{span[1]:012d}.npy"

        def write(draft: Path) -> None:
            with draft.open("wb") as stream:
                np.save(stream, records, allow_pickle=False)
                stream.flush()
                os.fsync(stream.fileno())

        _write(path, write)
        self._done[span] = path

    def join(self, records: Records) -> None:
        """Copy all chunks into an array (or file) of all trials."""
        for (start, stop), path in sorted(self._done.items()):
            records[start:stop] = np.load(path, allow_pickle=False)

    def _names(self) -> list[str]:
        return sorted(path.name for path in self.directory.iterdir() if _NAME.fullmatch(path.name))

    def _found(self) -> Iterator[tuple[Range, Path]]:
        for name in self._names():
            start, stop = (int(text) for text in _NAME.fullmatch(name).groups())  # type: ignore[union-attr]
            path = self.directory / name
            if _intact(path, self.kind, stop - start) and stop <= self.trials:
                yield (start, stop), path


def _intact(path: Path, kind: np.dtype[Any], length: int) -> bool:
    """Whether a chunk can be used; a disk that was full or switched off may leave one that is cut short."""
    try:
        records = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError):
        return False
    return bool(records.dtype == kind and records.shape == (length,))


def check_same(path: Path, manifest: dict[str, Any]) -> None:
    """Refuse a manifest on disk that is another one's."""
    try:
        former = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise InputError(f"{path} is damaged; remove {path.parent} and start anew") from None
    wanted = json.loads(json.dumps(manifest))
    for key, name in _SAME.items():
        came = former.get(key) if isinstance(former, dict) else None
        if came != wanted[key]:
            raise InputError(
                f"cannot resume: {path.parent} belongs to a sweep with another {name}: {_difference(came, wanted[key])}"
            )


def _difference(former: Any, wanted: Any) -> str:
    """The first entry that differs."""
    if isinstance(former, dict) and isinstance(wanted, dict):
        for key in (*wanted, *former):
            if former.get(key) != wanted.get(key):
                return f"{key} was {json.dumps(former.get(key))}, now {json.dumps(wanted.get(key))}"
    return f"was {json.dumps(former)}, now {json.dumps(wanted)}"


def _write(path: Path, write: Any) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
