"""Several experiments in one case file: tables ``[[experiment]]`` over those that all share, and their data stacked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy.linalg import block_diag

from ..checks import Array, known_keys
from ..errors import InputError
from ..problem import Data
from .keys import Table, check_choice, checked_table, shown
from .kinds import PROBLEMS, SENSORS
from .measurements import Dataset, Measurements
from .sampled import with_model_error

# What an experiment may have of its own; the rest is of all.
OWN = ("problem", "boundary", "sensors", "data")


@dataclass(frozen=True)
class Part:
    """The tables of one experiment; `words` come before its messages, none where there is only one."""

    words: str
    section: Table
    sensors: Table | None
    dataset: Dataset
    boundary: Any
    model: Table | None = None

    @classmethod
    def read(cls, words: str, record: Mapping[str, Any]) -> Part:
        """From a whole case."""
        section = Table.read(record["problem"], "problem", PROBLEMS, ("degree",))
        check_choice(section.more.get("degree", 1), (1, 2), "problem.degree")
        read = "sensors" in section.parameters
        if read != ("sensors" in record):
            came = "section [sensors] is missing" if read else "sensors is given"
            has = "" if read else f"; a problem of kind {section.kind!r} has none"
            raise InputError(f"{came}{has}")
        sensors = Table.read(record["sensors"], "sensors", SENSORS) if read else None
        dataset: Dataset = Table.read(record["data"], "data", Dataset)()
        model = None if dataset.model is None else Table.read(dataset.model, "data.model", with_model_error)
        return cls(words, section, sensors, dataset, record.get("boundary", {}), model)

    def data(self, measured: Measurements, folder: Path) -> Data:
        """The data with what is said of their noise, and of the errors of the model."""
        found = self.dataset.data(measured)
        return found if self.model is None else cast(Data, self.model(data=found, folder=folder))

    @property
    def degree(self) -> int:
        """Of the state."""
        return int(self.section.more.get("degree", 1))


def experiments_of(record: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """What to say before a message, and the whole case, for each experiment; a case without them is one.

    The tables of an experiment are put over those of the same name that all share, key by key.
    """
    if "experiment" not in record:
        return [("", record)]
    given = record["experiment"]
    if not isinstance(given, list) or not given:
        raise InputError(f"experiment is {shown(given)}; expected tables [[experiment]]")
    found: list[tuple[str, Mapping[str, Any]]] = []
    for i, own in enumerate(given):
        name = f"experiment {i + 1}"
        known_keys(checked_table(own, name), OWN, name)
        shared = {key: value for key, value in record.items() if key != "experiment"}
        found.append((f"{name}: ", shared | {key: _over(shared.get(key, {}), own[key]) for key in own}))
    return found


def _over(shared: Any, own: Any) -> Any:
    """The keys of a table over those of another one; tables within them likewise."""
    if not (isinstance(shared, Mapping) and isinstance(own, Mapping)):
        return own
    # Another kind of sensors has other keys.
    if "kind" in own and own["kind"] != shared.get("kind", own["kind"]):
        return own
    return {**shared, **{name: _over(shared.get(name), value) for name, value in own.items()}}


@contextmanager
def said_before(words: str) -> Iterator[None]:
    """Messages begin with the words."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{words}{error}") from None


def stacked(parts: Sequence[Data], datasets: Sequence[Dataset]) -> Data:
    """The data of all experiments: one level, of Gaussian noise with the confidence of all, or of levels in squares."""
    levels = {(dataset.noise_level is None, dataset.level) for dataset in datasets}
    if len({known for known, _ in levels}) > 1 or (all(known for known, _ in levels) and len(levels) > 1):
        raise InputError("the experiments differ in data.confidence or data.noise_level; expected one of them for all")
    if any(dataset.relative is not None for dataset in datasets):
        raise InputError("data.relative is given in one of several experiments; expected data.std")
    if any(dataset.unknown or dataset.repeated for dataset in datasets):
        raise InputError(
            "data.std is 'unknown', or readings are repeated, in one of several experiments; expected data.std"
        )
    if any(part.model is not None for part in parts):
        raise InputError("data.model is given in one of several experiments; expected none, or one experiment")
    values = np.concatenate([part.values for part in parts])
    covariance = _block([part.covariance for part in parts])
    if datasets[0].noise_level is None:
        return Data.gaussian(values, covariance=covariance, confidence=datasets[0].level)
    return Data(values, float(np.linalg.norm([part.noise_level for part in parts])), covariance)


def _block(covariances: Sequence[Array | None]) -> Array | None:
    known = [C for C in covariances if C is not None]
    if not known:
        return None
    if len(known) < len(covariances):
        raise InputError("some experiments have standard deviations, others not; expected them in all or in none")
    if all(C.ndim == 1 for C in known):
        return np.concatenate(known)
    return np.asarray(block_diag(*(C if C.ndim == 2 else np.diag(C) for C in known)))
