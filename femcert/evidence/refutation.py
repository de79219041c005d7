"""Claims of candidates that the data refute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..checks import number
from ..errors import InputError
from ..shown import Shown
from .interval import Interval, IntervalTable


@dataclass(frozen=True, repr=False)
class Refutation(Shown):
    """The values of a candidate beside what the data say.

    Attributes
    ----------
    name
        Of the candidate.
    table
        The intervals.
    values
        What the candidate claims, in the order of the table.
    """

    name: str
    table: IntervalTable
    values: tuple[float, ...]

    @property
    def refuted(self) -> tuple[Interval, ...]:
        """The intervals outside of which it lies."""
        pairs = zip(self.table, self.values, strict=True)
        return tuple(interval for interval, value in pairs if not interval.contains(value))

    def __bool__(self) -> bool:
        """Whether any of its claims is refuted."""
        return bool(self.refuted)

    @property
    def reason(self) -> str:
        """The refuted claims in words; empty if there are none."""
        pairs = zip(self.table, self.values, strict=True)
        return "; ".join(_said(self.name, i, value) for i, value in pairs if not i.contains(value))

    def summary(self) -> dict[str, str]:
        """How many claims are refuted, and which."""
        counted = f"{self.name}, {len(self.refuted)} of {len(self.table)} claims refuted"
        return {"candidate": counted, "claims": self.reason or "all possible"}

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON."""
        rows = zip(self.table, self.values, strict=True)
        return {
            "name": self.name,
            "rows": [{**i.to_dict(), "value": value, "refuted": not i.contains(value)} for i, value in rows],
        }


def refutation(name: str, table: IntervalTable, values: Sequence[float]) -> Refutation:
    """Of the values of a candidate."""
    return Refutation(name, table, tuple(float(value) for value in values))


@dataclass(frozen=True, repr=False)
class RegionClaims(Shown):
    """What several candidates claim about regions, beside what the data say.

    Attributes
    ----------
    table
        The intervals, which hold together.
    values
        What each candidate claims, by its name, in the order of the table.
    p_value
        How well the class explains the data, `Evidence.p_value`; None where it was not computed, or nothing is random.
    least_norm
        That every truth which explains the data has at least, `Evidence.least_norm`; None without a ball.
    """

    table: IntervalTable
    values: dict[str, tuple[float, ...]] = field(default_factory=dict)
    p_value: float | None = None
    least_norm: float | None = None

    def of(self, name: str, called: str = "") -> Refutation:
        """The claims of one of them, who is `called` so in words."""
        return refutation(called or name, self.table, self.values[name])

    @property
    def head(self) -> tuple[str, ...]:
        """Over `rows`."""
        return ("region", "the data say", *self.values)

    def rows(self) -> list[tuple[str, ...]]:
        """In words: the region, what the data say of it, and the claim of each candidate, refuted or possible."""
        return [
            (
                interval.name,
                _ends(interval),
                *(f"{v[i]:.4g} ({_verdict(interval, v[i])})" for v in self.values.values()),
            )
            for i, interval in enumerate(self.table)
        ]

    @property
    def words(self) -> str:
        """With which probability the intervals hold, and for whom."""
        proven = self.table[0].lower.side != "estimate"
        how = "" if proven else ", as an estimate: the noise is not known well enough"
        sure = "surely" if self.table.confidence == 1.0 else f"with {100.0 * self.table.confidence:.4g} %"
        return f"all rows hold together {sure}{how}, {self.table.claim}"

    @property
    def fit(self) -> str:
        """How well the class explains the data, in words; empty where it is not known."""
        p, size = self.p_value, self.least_norm
        said = "" if p is None else f"p-value of the class {p:.2g}: a tiny one speaks against model, class or noise"
        least = "" if size is None else f"truths that explain the data have the norm {size:.3g} at least"
        return "; ".join(part for part in (said, least) if part)

    def summary(self) -> dict[str, str]:
        """How many regions, and what is refuted."""
        found = {name: self.of(name) for name in self.values}
        return {
            "regions": f"{len(self.table)}, {self.words}",
            **{name: each.reason or "all possible" for name, each in found.items()},
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON."""
        values = {name: list(claimed) for name, claimed in self.values.items()}
        fit = {"p_value": self.p_value, "least_norm": self.least_norm}
        known = {name: value for name, value in fit.items() if value is not None}
        return {"intervals": [interval.to_dict() for interval in self.table], "values": values, **known}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> RegionClaims:
        """The inverse of `to_dict`."""
        table = IntervalTable(tuple(Interval.from_dict(row) for row in record["intervals"]))
        values = {
            str(name): tuple(number(value, f"value of {name}") for value in claimed)
            for name, claimed in record["values"].items()
        }
        if not len(table) or any(len(claimed) != len(table) for claimed in values.values()):
            raise InputError(f"{len(table)} intervals, and claims of another number; expected one for each interval")
        fit = {name: number(record[name], name, least=0.0) for name in ("p_value", "least_norm") if name in record}
        return cls(table, values, **fit)


def _said(name: str, interval: Interval, value: float) -> str:
    """A refuted claim with three digits, or as many more as are needed to show that it is refuted."""
    for digits in range(3, 18):
        lower, upper, own = (f"{x:.{digits}g}" for x in (interval.lower.value, interval.upper.value, value))
        if not float(lower) <= float(own) <= float(upper):
            break
    return f"{name} claims {own} in {interval.name!r}; the data allow {lower} to {upper}"


def _ends(interval: Interval) -> str:
    return f"{interval.lower.value:.4g} to {interval.upper.value:.4g}"


def _verdict(interval: Interval, value: float) -> str:
    return "possible" if interval.contains(value) else "refuted"
