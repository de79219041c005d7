"""An interval for what was asked, and tables of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import number
from ..errors import InputError
from ..shown import Shown
from .tables import finite, html_table, save_table, text_table

HEAD = ("region", "lower", "upper", "half length", "limit", "bias", "deviation")


@dataclass(frozen=True, repr=False)
class Interval(Shown):
    """What the data say of one functional of the truth.

    Attributes
    ----------
    name
        Of the functional.
    lower, upper
        The ends.
    estimate
        The middle, ``a . b``.
    half_length
        Fixed before the data, but for what relative noise adds and bounds of the class take away; infinite where the
        data say nothing.
    limit
        No procedure whose length is fixed before the data can have a smaller half length at this confidence; None where
        no such limit is known.
    bias
        What truths of the class may move the estimate by; 0 for truths like samples, whose length counts it already.
    model
        The part of the bias that is due to errors of the model.
    deviation
        Standard deviation of the estimate; for noise within a level, what the noise may move it by.
    confidence
        With which probability the truth is inside; random is the noise, and truth and samples where `claim` says so.
    claim
        For whom it holds, in words.
    """

    name: str
    lower: Bound
    upper: Bound
    estimate: float
    half_length: float
    limit: Bound | None
    bias: float
    model: float
    deviation: float
    confidence: float
    claim: str

    def __iter__(self) -> Iterator[Bound]:
        return iter((self.lower, self.upper))

    def contains(self, value: float) -> bool:
        """Whether a number lies inside."""
        return bool(self.lower.value <= value <= self.upper.value)

    @property
    def sign(self) -> int:
        """1 or -1 where the sign of the truth is certain, else 0."""
        return int(self.lower.value > 0.0) - int(self.upper.value < 0.0)

    def summary(self) -> dict[str, str]:
        """The ends, what the length is made of, and for whom it holds."""
        words = "" if self.limit is None else f"no procedure of fixed length has less than {self.limit.value:.4g}"
        limit = {"limit": words} if words else {}
        return {
            self.name: f"{self.lower.value:.4g} to {self.upper.value:.4g}",
            "half length": f"{self.half_length:.4g} (bias {self.bias:.3g}, deviation {self.deviation:.3g})",
            **limit,
            "confidence": f"{100.0 * self.confidence:.4g} %",
            "claim": self.claim,
        }

    def __repr__(self) -> str:
        return f"<Interval: {self.name} from {self.lower.value:.4g} to {self.upper.value:.4g}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON; infinite numbers are None."""
        ends = {"lower": self.lower.value, "upper": self.upper.value, "limit": self.limit and self.limit.value}
        numbers = {name: getattr(self, name) for name in ("estimate", "half_length", "bias", "model", "deviation")}
        words = {"side": self.lower.side, "confidence": self.confidence, "claim": self.claim}
        return {"name": self.name, **{key: finite(x) for key, x in (ends | numbers).items()}, **words}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Interval:
        """The inverse of `to_dict`, but for where the limit comes from."""
        if record["side"] not in ("lower", "estimate"):
            raise InputError(f"side is {record['side']!r}; expected 'lower' or 'estimate'")
        confidence, proven = number(record["confidence"], "confidence"), record["side"] != "estimate"
        found: dict[str, Any] = {}
        for side, none in (("lower", -np.inf), ("upper", np.inf)):
            end = none if record[side] is None else number(record[side], side)
            held = confidence if proven else 1.0
            found[side] = Bound(end, side if proven else "estimate", "affine interval", held, signed=True)
        limit = record["limit"]
        for key in ("estimate", "half_length", "bias", "model", "deviation"):
            found[key] = np.inf if record[key] is None else number(record[key], key)
        return cls(
            **found,
            name=str(record["name"]),
            limit=None if limit is None else Bound(number(limit, "limit"), "lower", "fixed lengths"),
            confidence=confidence,
            claim=str(record["claim"]),
        )


@dataclass(frozen=True, repr=False)
class IntervalTable(Shown):
    """Intervals that hold together.

    Attributes
    ----------
    intervals
        One for each functional; their `confidence` is that of all together.
    """

    intervals: tuple[Interval, ...]

    def __iter__(self) -> Iterator[Interval]:
        return iter(self.intervals)

    def __len__(self) -> int:
        return len(self.intervals)

    def __getitem__(self, key: int | str) -> Interval:
        """By number or name."""
        if isinstance(key, str):
            for interval in self.intervals:
                if interval.name == key:
                    return interval
            raise InputError(f"no interval is called {key!r}; they are {', '.join(i.name for i in self.intervals)}")
        return self.intervals[key]

    @property
    def confidence(self) -> float:
        """Of all rows together."""
        return self.intervals[0].confidence

    @property
    def claim(self) -> str:
        """For whom they hold."""
        return self.intervals[0].claim

    def summary(self) -> dict[str, str]:
        """How many, and for whom they hold."""
        return {
            "intervals": f"{len(self)}, together at {100.0 * self.confidence:.4g} %",
            "claim": self.claim,
        }

    def rows(self) -> list[tuple[str, ...]]:
        """The table in words."""
        return [
            (
                row.name,
                *(f"{x:.4g}" for x in (row.lower.value, row.upper.value, row.half_length)),
                "" if row.limit is None else f"{row.limit.value:.4g}",
                *(f"{x:.3g}" for x in (row.bias, row.deviation)),
            )
            for row in self.intervals
        ]

    @property
    def _words(self) -> str:
        return f"{100.0 * self.confidence:.4g} % for all rows together, {self.claim}"

    def __str__(self) -> str:
        return text_table(HEAD, self.rows(), self._words)

    def to_html(self) -> str:
        """An HTML table."""
        return html_table(HEAD, self.rows(), self._words)

    _repr_html_ = to_html

    def save(self, path: str | Path) -> None:
        """Write the table as CSV, JSON or HTML, by the ending of the file's name."""
        save_table(path, [row.to_dict() for row in self.intervals], self.to_html)
