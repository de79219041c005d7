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
    probability
        With which probability, at least, it holds; 1 where nothing is random. The source says what is.
    """

    value: float
    side: str
    source: str
    probability: float = 1.0

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
        if not isinstance(self.probability, Real) or not 0.0 < self.probability <= 1.0:
            raise InputError(f"a bound ({self.source}) has the probability {self.probability!r}; expected (0, 1]")

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        sign = {"upper": "<=", "lower": ">=", "estimate": "~"}[self.side]
        chance = "" if self.probability == 1.0 else f", probability {self.probability:g}"
        return f"{sign} {self.value:.4g} ({self.source}{chance})"

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON."""
        chance = {} if self.probability == 1.0 else {"probability": self.probability}
        return {"value": self.value, "side": self.side, "source": self.source, **chance}
