"""A number with the side of the truth on which it lies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from .errors import InputError

SIDES = ("upper", "lower", "estimate")


@dataclass(frozen=True)
class Bound:
    """A number with its side and its source.

    Attributes
    ----------
    value
        The number. It may be infinite (nothing is known) but never NaN.
    side
        ``"upper"`` (the truth is at most `value`), ``"lower"`` (at least), or ``"estimate"`` (no claim).
    source
        Where it comes from, in a few words.
    probability
        With which probability, at least, it holds; 1 where nothing is random. The source says what is.
    signed
        Whether the number may be negative, as the end of an interval; radii, norms and residuals are not.
    """

    value: float
    side: str
    source: str
    probability: float = 1.0
    signed: bool = False

    def __post_init__(self) -> None:
        if self.side not in SIDES:
            raise InputError(f"side is {self.side!r}; expected one of {', '.join(SIDES)}")
        if isinstance(self.value, bool) or not isinstance(self.value, Real) or not isinstance(self.source, str):
            came = f"the value {self.value!r} and the source {self.source!r}"
            raise InputError(f"a bound has {came}; expected a number and a text")
        try:
            value = float(self.value)
        except (OverflowError, TypeError):
            raise InputError(f"a bound ({self.source}) has a value that no float can hold; expected a number") from None
        if math.isnan(value) or (value < 0.0 and not self.signed):
            expected = "a number" if self.signed else "a number >= 0"
            raise InputError(f"a bound ({self.source}) has the value {value}; expected {expected}")
        object.__setattr__(self, "value", value)
        if not isinstance(self.probability, Real) or not 0.0 < self.probability <= 1.0:
            raise InputError(f"a bound ({self.source}) has the probability {self.probability!r}; expected (0, 1]")

    def __add__(self, other: Bound) -> Bound:
        """The sum, on the side that the summands share; sides that differ give an estimate, exact zeros do not count.

        Both hold with the probability ``p + p' - 1`` at least (the union bound).
        """
        if not isinstance(other, Bound) or self.signed or other.signed:
            return NotImplemented
        certain = self.probability == other.probability == 1.0
        probability = 1.0 if certain else math.nextafter(self.probability + other.probability - 1.0, 0.0)
        side = _common(self, other) if probability > 0.0 else "estimate"
        exact = 0.0 in (self.value, other.value) or math.inf in (self.value, other.value)
        value = _outwards(self.value + other.value, side, exact=exact)
        parts = [part.source for part in (self, other) if part.value != 0.0 or part.side != "upper"]
        return Bound(value, side, " + ".join(parts) or self.source, probability if side != "estimate" else 1.0)

    def scaled(self, factor: float) -> Bound:
        """`factor` times the number, a factor of at least 0 that is known exactly."""
        if self.signed or not isinstance(factor, Real) or not 0.0 <= factor < math.inf:
            raise InputError(f"a bound ({self.source}) is scaled by {factor!r}; expected a finite number >= 0")
        if factor == 0.0 and math.isinf(self.value):
            # Nothing is known of zero times an infinite number.
            return replace(self, value=0.0 if self.side == "lower" else math.inf)
        value = self.value * factor
        exact = factor in (0.0, 1.0) or math.isinf(self.value)
        return replace(self, value=_outwards(value, self.side, exact=exact))

    def __float__(self) -> float:
        return self.value

    # Numbers compare with the value, so that ``interval.lower <= truth <= interval.upper`` reads as it is meant.
    def __lt__(self, other: Any) -> bool:
        return self.value < float(other)

    def __le__(self, other: Any) -> bool:
        return self.value <= float(other)

    def __gt__(self, other: Any) -> bool:
        return self.value > float(other)

    def __ge__(self, other: Any) -> bool:
        return self.value >= float(other)

    def __str__(self) -> str:
        sign = {"upper": "<=", "lower": ">=", "estimate": "~"}[self.side]
        chance = "" if self.probability == 1.0 else f", probability {self.probability:g}"
        return f"{sign} {self.value:.4g} ({self.source}{chance})"

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON; an infinite number is None."""
        chance = {} if self.probability == 1.0 else {"probability": self.probability}
        signed = {"signed": True} if self.signed else {}
        value = self.value if math.isfinite(self.value) else None
        return {"value": value, "side": self.side, "source": self.source, **chance, **signed}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Bound:
        """The inverse of `to_dict`."""
        nothing = -math.inf if record.get("signed") and record["side"] == "lower" else math.inf
        return cls(**{**record, "value": nothing if record["value"] is None else record["value"]})


def _common(first: Bound, second: Bound) -> str:
    """The side of a sum. The number zero from above is exact, since no bound is negative."""
    for one, other in ((first, second), (second, first)):
        if one.value == 0.0 and one.side == "upper":
            return other.side
    return first.side if first.side == second.side else "estimate"


def _outwards(value: float, side: str, *, exact: bool) -> float:
    """`value` after one rounded operation, moved to the next float on its safe side."""
    if exact or side == "estimate" or (value == math.inf and side == "upper"):
        return value
    return math.nextafter(value, math.inf if side == "upper" else 0.0)
