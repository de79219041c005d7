"""What a worker needs to compute any chunk, and what identifies a sweep."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ...errors import InputError
from ...linalg.backends import Choice, named_backend, use_backend
from ...selection.selection import package_versions
from .chunk import decide
from .grid import AXES, Grid
from .identity import Unrecognizable, described
from .result import Records, record_type
from .rules import BatchRule
from .setting import Setting
from .store import UNKNOWN

FORMAT = 2


@dataclass(frozen=True)
class Job:
    """A sweep without its results; computes any range of its trials.

    In another process with the `backend` that was named where it was packed; the paper's rules factorize nothing.
    """

    setting: Setting
    grid: Grid
    seed: int
    rules: Mapping[str, BatchRule]
    backend: Choice | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.setting, Setting):
            raise InputError(f"setting is a {type(self.setting).__name__}; expected a Setting, as Setting.of makes it")
        if not isinstance(self.rules, Mapping) or not self.rules:
            raise InputError(f"rules is {self.rules!r}; expected a mapping of names to rules, with at least one")
        for name, rule in self.rules.items():
            if not isinstance(name, str) or not callable(rule):
                raise InputError(f"rules has {rule!r} as {name!r}; expected names, and callables of a Batch")
        if max(self.grid.sensors) > self.setting.places:
            came = f"{max(self.grid.sensors)} sensors are more than the {self.setting.places} places to choose from"
            raise InputError(f"{came}; expected fewer")

    def __call__(self, start: int, stop: int) -> Records:
        """The records of the trials `start` to `stop - 1`."""
        named = self.backend
        with nullcontext() if named is None else use_backend(named.name, tolerance=named.tolerance):
            return decide(self.setting, self.grid, self.seed, start, stop, self.rules)

    @property
    def kind(self) -> np.dtype[np.void]:
        """Type of the records."""
        return record_type(len(self.rules))

    def manifest(self) -> dict[str, Any]:
        """What makes this sweep differ from others, as plain values; of the rules, what `described` says."""
        return {
            "format": FORMAT,
            "grid": {name: list(getattr(self.grid, name)) for name in AXES} | {"replications": self.grid.replications},
            "seed": self.seed,
            "rules": {name: _described(rule) for name, rule in self.rules.items()},
            "setting": _digest(self.setting),
            "versions": package_versions(),
        }

    def packed(self, dumps: Any = pickle.dumps) -> bytes:
        """For another process.

        Raises
        ------
        InputError
            A rule cannot be pickled.
        """
        try:
            # The mapping of the built-in rules is a read-only view, which cannot be pickled.
            return bytes(dumps((self.setting, self.grid, self.seed, dict(self.rules), named_backend())))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InputError(
                f"the rules cannot be sent to another process: {error}; define them at the top of a module, or use one "
                "job"
            ) from None


def unpacked(data: bytes) -> Job:
    """The job of `Job.packed`."""
    return Job(*pickle.loads(data))


def _digest(setting: Setting) -> str:
    found = hashlib.sha256()
    for field in fields(setting):
        value = np.asarray(getattr(setting, field.name), dtype=float)
        found.update(f"{field.name} {value.shape} ".encode())
        found.update(value.tobytes())
    return found.hexdigest()


def _described(rule: Any) -> str:
    try:
        return described(rule)
    except Unrecognizable as error:
        return f"{UNKNOWN}{error}"
