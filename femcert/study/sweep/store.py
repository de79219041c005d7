"""Finished chunks on disk: what a sweep that was killed leaves for the next one."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from .result import Records

MANIFEST = "manifest.json"
# Written once all chunks are there; not a chunk itself.
JOINED = "records.npy"
# Stands for a rule that nobody can recognize.
UNKNOWN = "not recognizable: "
_NAME = re.compile(r"(\d+)-(\d+)\.chunk")
# What must be the same to go on, and how it is called in a message.
_SAME = {
    "grid": "grid", "seed": "seed", "rules": "rules", "setting": "inverse problem", "versions": "package versions",
    "format": "file format",
}  # fmt: skip

Range = tuple[int, int]


class Store:
    """A directory with a manifest and a file for each finished chunk, named by its first trial and the one after it.

    Every file appears whole or not at all, and begins with the SHA-256 of what follows; what is damaged is computed
    again. Chunks need not have the same size, so a sweep can go on with another one. The manifest comes with the first
    chunk: a sweep that never began leaves nothing.

    Parameters
    ----------
    directory
        Made where it does not exist. Nobody else may write there (`locked`).
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
        self._manifest = json.dumps(manifest, indent=2) + "\n"
        self._begun = (directory / MANIFEST).exists()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if self._begun and not resume:
                raise InputError(
                    f"{directory} holds an unfinished sweep ({len(self._names())} chunks); resume it, or remove it"
                )
            if self._begun:
                check_same(directory / MANIFEST, manifest)
            else:
                # Chunks without a manifest are nobody's.
                for name in self._names():
                    (directory / name).unlink()
            for draft in directory.glob(".*.part"):
                draft.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"cannot write to {directory}: {error.strerror or error}") from None
        self._done = dict(self._found())
        check_room(directory, (trials - self.done) * kind.itemsize)

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
        path = self.directory / f"{span[0]:012d}-{span[1]:012d}.chunk"
        data = records.tobytes()
        try:
            if not self._begun:
                _write(self.directory / MANIFEST, self._manifest.encode())
                self._begun = True
            _write(path, _seal(span, data) + data)
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror or error}") from None
        self._done[span] = path

    def join(self, records: Records) -> None:
        """Copy all chunks into an array (or file) of all trials."""
        for span, path in sorted(self._done.items()):
            data = _read(path, span, self.kind)
            if data is None:
                raise InputError(f"{path} was damaged after it was written; resume the sweep")
            records[slice(*span)] = np.frombuffer(data, self.kind)

    def _names(self) -> list[str]:
        return sorted(path.name for path in self.directory.iterdir() if _NAME.fullmatch(path.name))

    def _found(self) -> Iterator[tuple[Range, Path]]:
        for name in self._names():
            start, stop = (int(text) for text in _NAME.fullmatch(name).groups())  # type: ignore[union-attr]
            path = self.directory / name
            if start < stop <= self.trials and _read(path, (start, stop), self.kind) is not None:
                yield (start, stop), path


def check_same(path: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest on disk; one that is another sweep's is refused."""
    former = read_manifest(path)
    wanted = json.loads(json.dumps(manifest))
    for name, rule in wanted["rules"].items():
        if rule.startswith(UNKNOWN):
            raise InputError(f"cannot resume: the rule {name!r} is {rule}; expected one that shows whether it changed")
    for key, name in _SAME.items():
        if former.get(key) != wanted[key]:
            came = _difference(former.get(key), wanted[key])
            raise InputError(f"cannot resume: {path.parent} belongs to a sweep with another {name}: {came}")
    return former


def read_manifest(path: Path) -> dict[str, Any]:
    """A manifest on disk."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{path} is damaged; remove {path.parent} and start anew")
    return found


def sealed_manifest(manifest: Path, results: Path) -> str:
    """The manifest of a sweep with the SHA-256 of each of its results, the files in a directory."""
    files = sorted(path for path in results.rglob("*") if path.is_file())
    seals = {path.relative_to(results).as_posix(): file_digest(path) for path in files}
    return json.dumps({**read_manifest(manifest), "files": seals}, indent=2) + "\n"


def results_are_whole(manifest: dict[str, Any], results: Path) -> bool:
    """Whether all files that a sealed manifest names are there, and as they were written."""
    seals = manifest.get("files")
    if not isinstance(seals, dict) or not seals:
        return False
    try:
        return all(file_digest(results / name) == seal for name, seal in seals.items())
    except OSError:
        return False


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def check_room(directory: Path, size: int) -> None:
    """Refuse to begin what the disk cannot hold."""
    free = shutil.disk_usage(directory).free
    if size > free:
        raise InputError(f"the trials need {size / 1e9:,.1f} GB in {directory}; there are {free / 1e9:,.1f} GB")


def _difference(former: Any, wanted: Any) -> str:
    """The first entry that differs."""
    if isinstance(former, dict) and isinstance(wanted, dict):
        for key in (*wanted, *former):
            if former.get(key) != wanted.get(key):
                return f"{key} was {json.dumps(former.get(key))}, now {json.dumps(wanted.get(key))}"
    return f"was {json.dumps(former)}, now {json.dumps(wanted)}"


def _seal(span: Range, data: bytes) -> bytes:
    """SHA-256 of a chunk and of its place."""
    return hashlib.sha256(f"{span[0]}-{span[1]} ".encode() + data).digest()


def _read(path: Path, span: Range, kind: np.dtype[Any]) -> bytes | None:
    """The records of a chunk, or None if it is damaged: cut short, changed, or no file at all."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    seal, data = content[:32], content[32:]
    return data if len(data) == (span[1] - span[0]) * kind.itemsize and seal == _seal(span, data) else None


def _write(path: Path, content: bytes) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with draft.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
