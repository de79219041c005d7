"""What the sweep varies, and how its trials are numbered."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..checks import Array, count, known_keys, real_array
from ..errors import InputError

AXES = ("sensors", "noise", "perturbation", "mismatch")
# Hours of work on one processor, and some gigabytes of records.
MOST_TRIALS = 100_000_000


class Values(NamedTuple):
    """The settings of some trials, an entry for each."""

    sensors: NDArray[np.int64]
    noise: Array
    perturbation: Array
    mismatch: Array


@dataclass(frozen=True, kw_only=True)
class Grid:
    """All combinations of four settings, each repeated; the defaults are the paper's.

    Trial number ``i`` is replication ``i // cells`` of the cell ``i % cells``, and the cells are numbered with the last
    of the four settings running fastest. So more replications add trials and change none.

    Attributes
    ----------
    sensors
        Numbers of observations m.
    noise
        Noise fractions eta: the standard deviation of the noise is ``eta ‖H u‖ / sqrt(m)`` with the true state u.
    perturbation
        sigma_learn: the learned candidate is the truth with every coordinate moved by this times a standard normal
        number.
    mismatch
        mu: amplitude of what is added to the learned state, so that it does not solve its own equation.
    replications
        Trials for each combination.
    """

    sensors: tuple[int, ...] = (10, 15, 20, 25, 35, 50, 70)
    noise: tuple[float, ...] = (0.0, 0.01, 0.02, 0.05, 0.10)
    perturbation: tuple[float, ...] = (0.0, 0.02, 0.05, 0.10, 0.20, 0.40)
    mismatch: tuple[float, ...] = (0.0, 0.02, 0.05, 0.10)
    replications: int = 25

    def __post_init__(self) -> None:
        counts = tuple(count(m, "an entry of sensors") for m in _entries(self.sensors, "sensors"))
        object.__setattr__(self, "sensors", _distinct(counts, "sensors"))
        for name in AXES[1:]:
            values = real_array(_entries(getattr(self, name), name), name)
            if values.ndim != 1:
                raise InputError(f"{name} is {getattr(self, name)!r}; expected a sequence of numbers")
            if np.any(values < 0.0):
                raise InputError(f"{name} has the entry {values.min():g}; expected none below zero")
            object.__setattr__(self, name, _distinct(tuple(float(v) for v in values), name))
        object.__setattr__(self, "replications", count(self.replications, "replications"))
        if self.trials > MOST_TRIALS:
            came = f"{self.replications:,} replications of {self.cells:,} combinations"
            raise InputError(f"{came} are more than {MOST_TRIALS:,} trials; expected fewer")

    @classmethod
    def of(cls, fields: Grid | Mapping[str, Any]) -> Grid:
        """From a mapping of some of the fields; those that are not there have their defaults."""
        if isinstance(fields, Grid):
            return fields
        if not isinstance(fields, Mapping):
            raise InputError(f"grid is {fields!r}; expected a Grid or a mapping of its fields")
        known_keys(fields, (*AXES, "replications"), "grid")
        return cls(**fields)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Lengths of the four axes, in the order of `AXES`."""
        return len(self.sensors), len(self.noise), len(self.perturbation), len(self.mismatch)

    @property
    def cells(self) -> int:
        """Number of combinations (the paper's regimes)."""
        return math.prod(self.shape)

    @property
    def trials(self) -> int:
        """Number of trials in all."""
        return self.cells * self.replications

    def values(self, trials: NDArray[np.int64]) -> Values:
        """The settings of the trials with these numbers."""
        i, j, k, l = np.unravel_index(trials % self.cells, self.shape)
        axes = [np.asarray(getattr(self, name)) for name in AXES]
        return Values(axes[0][i], axes[1][j], axes[2][k], axes[3][l])


def _entries(values: Any, name: str) -> tuple[Any, ...]:
    if isinstance(values, str) or not np.iterable(values):
        raise InputError(f"{name} is {values!r}; expected a sequence of numbers")
    entries = tuple(values)
    if not entries:
        raise InputError(f"{name} is empty; expected at least one number")
    return entries


def _distinct(values: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    if len(set(values)) < len(values):
        raise InputError(f"{name} is {values}; expected each number once")
    return values
