"""Claims of a candidate that the data refute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
        said = []
        for interval, value in zip(self.table, self.values, strict=True):
            if not interval.contains(value):
                ends = f"{interval.lower.value:.3g} to {interval.upper.value:.3g}"
                said.append(f"{self.name} claims {value:.3g} in {interval.name!r}; the data allow {ends}")
        return "; ".join(said)

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
