"""A number that knows on which side of the truth it lies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from .errors import InputError

SIDES = ("upper", "lower", "estimate")


@dataclass(frozen=True)
class Bound:
    """A non-negative number with its side and its source.

    Attributes
    ----------
    value
        The number. It may be infinite (nothing is known) but never NaN.
    side
        ``"upper"`` (the truth is at most `value`), ``"lower"`` (at least), or ``"estimate"`` (no claim).
    source
        Where it comes from, in a few words.
    """

    value: float
    side: str
    source: str

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
        if math.isnan(value) or value < 0.0:
            raise InputError(f"a bound ({self.source}) has the value {value}; expected a number >= 0")
        object.__setattr__(self, "value", value)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        sign = {"upper": "<=", "lower": ">=", "estimate": "~"}[self.side]
        return f"{sign} {self.value:.4g} ({self.source})"

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON."""
        return {"value": self.value, "side": self.side, "source": self.source}
