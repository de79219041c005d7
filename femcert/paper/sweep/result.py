"""The result of a sweep: a record for each trial."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...checks import Array
from ...errors import InputError
from . import table
from .files import read_arrays, write_arrays
from .grid import AXES, Grid

Records = NDArray[np.void]

_COLUMNS = ("baseline_error", "learned_error", "ratio", "accepted", "undecided")


def record_type(rules: int) -> np.dtype[np.void]:
    """What is kept of a trial: the two errors, and of each rule its decision and ``R_learn / R_base`` (or NaN)."""
    errors, flags = [("baseline_error", "f8"), ("learned_error", "f8")], ("?", (rules,))
    return np.dtype([*errors, ("ratio", "f8", (rules,)), ("accepted", *flags), ("undecided", *flags)])


@dataclass(frozen=True, kw_only=True, repr=False)
class Sweep:
    """All trials of a sweep, decided by every rule.

    Attributes
    ----------
    grid, seed
        What was drawn.
    rules
        Names of the rules; the first is the one whose ratios the regimes are judged by.
    records
        A record for each trial, see `record_type`, in the order of `Grid`.
    """

    grid: Grid
    seed: int
    rules: tuple[str, ...]
    records: Records = field(repr=False)

    def accepted(self, rule: str | None = None) -> NDArray[np.bool_]:
        """Decisions of a rule (default: the first), ``(replications, sensors, noise, perturbation, mismatch)``."""
        return self._cells(self.records["accepted"][:, self._number(rule)])

    def undecided(self, rule: str | None = None) -> NDArray[np.bool_]:
        """Where a rule could not be applied or the baseline has no certificate, likewise: these are no rejections."""
        return self._cells(self.records["undecided"][:, self._number(rule)])

    def ratio(self, rule: str | None = None) -> Array:
        """``Gamma = R_learn / R_base`` (certificate-ratio), likewise; NaN for a rule without radii."""
        return self._cells(self.records["ratio"][:, self._number(rule)])

    @property
    def error_ratio(self) -> Array:
        """``E = ‖q_learn - q‖ / ‖q_base - q‖`` (error-ratio) with the truth q: hindsight, never used by a rule."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._cells(self.records["learned_error"] / self.records["baseline_error"])

    @property
    def better(self) -> NDArray[np.bool_]:
        """Whether the learned candidate is closer to the truth than the baseline."""
        return self._cells(self.records["learned_error"] < self.records["baseline_error"])

    @property
    def worse(self) -> NDArray[np.bool_]:
        """Whether it is farther from the truth; errors that are not numbers count as worse."""
        return self._cells(~(self.records["learned_error"] <= self.records["baseline_error"]))

    def outcome(self, rule: str | None = None, **where: float) -> table.Outcome:
        """Accepted, safe, unsafe, falsely rejected and undecided trials, as in ``outcome("exact", noise=0.05)``."""
        pick = self._pick(where)
        name = self.rules[self._number(rule)]
        decisions = self.accepted(rule)[pick], self.undecided(rule)[pick]
        return table.outcome(name, *decisions, self.better[pick], self.worse[pick])

    def outcomes(self, **where: float) -> list[table.Outcome]:
        """The outcome of every rule."""
        return [self.outcome(rule, **where) for rule in self.rules]

    def by(self, axis: str) -> list[dict[str, Any]]:
        """The outcome of every rule at each value of an axis, such as ``"noise"``, as rows."""
        if axis not in AXES:
            raise InputError(f"axis is {axis!r}; expected one of {', '.join(AXES)}")
        values = getattr(self.grid, axis)
        return [{axis: v, **found.row()} for v in values for found in self.outcomes(**{axis: v})]

    def mismatches(self, rule: str | None = None) -> list[table.MismatchRow]:
        """The paper's table by mismatch amplitude."""
        return table.mismatches(self, rule)

    def regimes(self, rule: str | None = None) -> list[table.RegimeRow]:
        """The paper's table of certificate-sufficient and fallback-required regimes."""
        return table.regimes(self, rule)

    def save(self, path: str | Path) -> None:
        """Write an ``.npz`` file without pickled objects; it appears whole or not at all.

        Arrays ``baseline_error``, ``learned_error``, ``ratio``, ``accepted`` and ``undecided`` have the shape
        ``(replications, sensors, noise, perturbation, mismatch)``, the last three with an axis for the rules at the
        end; ``sensors``, ``noise``, ``perturbation``, ``mismatch``, ``rules`` and ``seed`` say what stands along the
        axes.
        """
        axes = {name: np.asarray(getattr(self.grid, name)) for name in AXES}
        # Views of the records: numpy copies them to the file piece by piece.
        columns = {name: self._cells(self.records[name]) for name in _COLUMNS}
        described = {"seed": np.asarray(self.seed), "rules": np.asarray(self.rules), **axes}
        write_arrays(Path(path), **described, **columns)

    @classmethod
    def load(cls, path: str | Path) -> Sweep:
        """Read a file of `save`.

        Raises
        ------
        InputError
            It cannot be read, or is something else.
        """
        parts = read_arrays(Path(path), (*AXES, *_COLUMNS[:-1], "rules", "seed"), ["undecided"])
        try:
            if "undecided" not in parts:
                # Files that were written before there was this column.
                parts["undecided"] = np.isposinf(parts["ratio"])
            grid = Grid(**{name: parts[name].tolist() for name in AXES}, replications=len(parts["accepted"]))
            rules, seed = tuple(str(rule) for rule in parts["rules"]), int(parts["seed"])
        except (ValueError, TypeError) as error:
            raise InputError(f"'{path}' is not the file of a sweep: {error}") from None
        kind = record_type(len(rules))
        for name in _COLUMNS:
            expected = grid.trials * math.prod(kind[name].shape)
            if parts[name].size != expected or parts[name].dtype != kind[name].base:
                came = f"shape {parts[name].shape} and type {parts[name].dtype}"
                raise InputError(f"'{path}': {name} has {came}; expected {expected} entries of {kind[name].base}")
        records = np.empty(grid.trials, kind)
        for name in _COLUMNS:
            records[name] = parts[name].reshape(records[name].shape)
        return cls(grid=grid, seed=seed, rules=rules, records=records)

    def __repr__(self) -> str:
        return f"<Sweep: {len(self.records)} trials>"

    def __str__(self) -> str:
        return table.text(self)

    def _cells(self, column: NDArray[Any]) -> NDArray[Any]:
        return column.reshape(self.grid.replications, *self.grid.shape, *column.shape[1:])

    def _number(self, rule: str | None) -> int:
        if rule is not None and rule not in self.rules:
            raise InputError(f"rule is {rule!r}; expected one of {', '.join(self.rules)}")
        return 0 if rule is None else self.rules.index(rule)

    def _pick(self, where: dict[str, float]) -> tuple[Any, ...]:
        unknown = [name for name in where if name not in AXES]
        if unknown:
            raise InputError(f"unknown axis {unknown[0]!r}; expected one of {', '.join(AXES)}")
        index: list[Any] = [slice(None)]
        for name in AXES:
            values = getattr(self.grid, name)
            if name in where and where[name] not in values:
                raise InputError(f"{name} is {where[name]!r}; expected one of {', '.join(f'{v:g}' for v in values)}")
            index.append(values.index(where[name]) if name in where else slice(None))
        return tuple(index)
