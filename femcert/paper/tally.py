"""The result of a sweep: a record for each trial, and what came of the decisions, counted as the paper counts."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import Array
from ..errors import InputError
from .files import read_arrays, write_arrays
from .grid import AXES, Grid

Flags = NDArray[np.bool_]
Records = NDArray[np.void]

_COLUMNS = ("baseline_error", "learned_error", "ratio", "accepted", "undecided")


def record_type(rules: int) -> np.dtype[np.void]:
    """What is kept of a trial: the two errors, and of each rule its decision and ``R_learn / R_base`` (or NaN)."""
    errors, flags = [("baseline_error", "f8"), ("learned_error", "f8")], ("?", (rules,))
    return np.dtype([*errors, ("ratio", "f8", (rules,)), ("accepted", *flags), ("undecided", *flags)])


@dataclass(frozen=True)
class Tally:
    """Decisions of one rule in hindsight.

    Attributes
    ----------
    trials, accepted
        How many, and in how many the learned candidate was taken.
    safe, unsafe
        Of the accepted: no farther from the truth than the baseline, and farther.
    false_rejections
        Rejected although closer to the truth than the baseline.
    undecided
        Neither accepted nor rejected: the rule could not be applied, or the baseline has no certificate.
    """

    rule: str
    trials: int
    accepted: int
    safe: int
    unsafe: int
    false_rejections: int
    undecided: int = 0

    @classmethod
    def of(cls, rule: str, accepted: Flags, undecided: Flags, better: Flags, worse: Flags) -> Tally:
        """Count the decisions."""
        unsafe, taken, left = (int(np.sum(flags)) for flags in (accepted & worse, accepted, undecided))
        missed = int(np.sum(~accepted & ~undecided & better))
        return cls(rule, accepted.size, taken, taken - unsafe, unsafe, missed, left)

    def rate(self, name: str) -> float:
        """A count as a part of all trials."""
        return float(getattr(self, name)) / self.trials

    def row(self) -> dict[str, Any]:
        """Plain mapping."""
        return asdict(self)


@dataclass(frozen=True)
class MismatchRow:
    """A row of the paper's table by mismatch amplitude; medians are over trials, rates parts of them."""

    mismatch: float
    accept_rate: float
    median_ratio: float
    median_error_ratio: float
    unsafe_rate: float
    false_rejection_rate: float


@dataclass(frozen=True)
class RegimeRow:
    """A row of the paper's table of regimes.

    The ratios are means over the regimes of each regime's median over its trials.
    """

    regime: str
    regimes: int
    ratio: float
    error_ratio: float
    accept_rate: float
    better_rate: float
    unsafe_rate: float
    false_rejection_rate: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Sweep:
    """All trials of a sweep, decided by every rule.

    Arrays of all trials have the shape ``(replications, sensors, noise, perturbation, mismatch)``.

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

    def accepted(self, rule: str | None = None) -> Flags:
        """Decisions of a rule (default: the first)."""
        return self._cells(self.records["accepted"][:, self._number(rule)])

    def undecided(self, rule: str | None = None) -> Flags:
        """Where a rule could not be applied or the baseline has no certificate: these are no rejections."""
        return self._cells(self.records["undecided"][:, self._number(rule)])

    def ratio(self, rule: str | None = None) -> Array:
        """``Gamma = R_learn / R_base`` (certificate-ratio); NaN for a rule without radii."""
        return self._cells(self.records["ratio"][:, self._number(rule)])

    @property
    def error_ratio(self) -> Array:
        """``E = ‖q_learn - q‖ / ‖q_base - q‖`` (error-ratio) with the truth q: hindsight, never used by a rule."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._cells(self.records["learned_error"] / self.records["baseline_error"])

    @property
    def better(self) -> Flags:
        """Whether the learned candidate is closer to the truth than the baseline."""
        return self._cells(self.records["learned_error"] < self.records["baseline_error"])

    @property
    def worse(self) -> Flags:
        """Whether it is farther from the truth; errors that are not numbers count as worse."""
        return self._cells(~(self.records["learned_error"] <= self.records["baseline_error"]))

    def outcome(self, rule: str | None = None, **where: float) -> Tally:
        """Accepted, safe, unsafe, falsely rejected and undecided trials, as in ``outcome("exact", noise=0.05)``."""
        pick = self._pick(where)
        name = self.rules[self._number(rule)]
        decisions = self.accepted(rule)[pick], self.undecided(rule)[pick]
        return Tally.of(name, *decisions, self.better[pick], self.worse[pick])

    def outcomes(self, **where: float) -> list[Tally]:
        """The outcome of every rule."""
        return [self.outcome(rule, **where) for rule in self.rules]

    def by(self, axis: str) -> list[dict[str, Any]]:
        """The outcome of every rule at each value of an axis, such as ``"noise"``, as rows."""
        if axis not in AXES:
            raise InputError(f"axis is {axis!r}; expected one of {', '.join(AXES)}")
        values = getattr(self.grid, axis)
        return [{axis: v, **found.row()} for v in values for found in self.outcomes(**{axis: v})]

    def mismatches(self, rule: str | None = None) -> list[MismatchRow]:
        """The paper's table by mismatch amplitude."""
        rows = []
        for i, mu in enumerate(self.grid.mismatch):
            found = self.outcome(rule, mismatch=mu)
            row = MismatchRow(
                mismatch=mu,
                accept_rate=found.rate("accepted"),
                median_ratio=float(np.median(self.ratio(rule)[..., i])),
                median_error_ratio=float(np.median(self.error_ratio[..., i])),
                unsafe_rate=found.rate("unsafe"),
                false_rejection_rate=found.rate("false_rejections"),
            )
            rows.append(row)
        return rows

    def sufficient(self, rule: str | None = None) -> Flags:
        """Regimes whose median certificate ratio is at most 1, ``(sensors, noise, perturbation, mismatch)``."""
        return np.asarray(np.median(self.ratio(rule), axis=0) <= 1.0)

    def regimes(self, rule: str | None = None) -> list[RegimeRow]:
        """The paper's table of certificate-sufficient and fallback-required regimes."""
        enough = self.sufficient(rule)
        ratio, error_ratio = np.median(self.ratio(rule), axis=0), np.median(self.error_ratio, axis=0)
        accepted, better = self.accepted(rule), self.better
        rejected = ~accepted & ~self.undecided(rule)
        trials = (accepted, better, accepted & self.worse, rejected & better)
        rows = []
        for name, where in (("certificate-sufficient", enough), ("fallback-required", ~enough)):
            parts = [ratio[where], error_ratio[where], *(flags[:, where] for flags in trials)]
            rows.append(RegimeRow(name, int(where.sum()), *(_mean(part) for part in parts)))
        return rows

    def save(self, path: str | Path) -> None:
        """Write an ``.npz`` file without pickled objects; it appears whole or not at all.

        Arrays ``baseline_error``, ``learned_error``, ``ratio``, ``accepted`` and ``undecided`` have the shape of all
        trials, the last three with an axis for the rules at the end; ``sensors``, ``noise``, ``perturbation``,
        ``mismatch``, ``rules`` and ``seed`` say what stands along the axes.
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
        records = np.empty(grid.trials, record_type(len(rules)))
        for name in _COLUMNS:
            column, found = records[name], parts[name]
            expected = grid.trials * math.prod(column.shape[1:])
            if found.size != expected or found.dtype != column.dtype:
                came = f"shape {found.shape} and type {found.dtype}"
                raise InputError(f"'{path}': {name} has {came}; expected {expected} entries of {column.dtype}")
            column[:] = found.reshape(column.shape)
        return cls(grid=grid, seed=seed, rules=rules, records=records)

    def __repr__(self) -> str:
        return f"<Sweep: {len(self.records)} trials>"

    def __str__(self) -> str:
        """The outcome of every rule, in all and by noise level."""
        width = max(len(rule) for rule in self.rules)
        head = f"{'accepted':>8}  {'safe':>8}  {'unsafe':>8}  {'false rej.':>10}  {'undecided':>9}  trials"
        lines = [f"{'noise':>8}  {'rule':<{width}}  {head}"]
        groups = [("all", self.outcomes())]
        groups += [(f"{noise:g}", self.outcomes(noise=noise)) for noise in self.grid.noise]
        for label, outcomes in groups:
            for o in outcomes:
                counts = f"{o.accepted:>8}  {o.safe:>8}  {o.unsafe:>8}  {o.false_rejections:>10}  {o.undecided:>9}"
                lines.append(f"{label:>8}  {o.rule:<{width}}  {counts}  {o.trials}")
        return "\n".join(lines)

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


def _mean(values: NDArray[Any]) -> float:
    return float(np.mean(values)) if values.size else float("nan")
