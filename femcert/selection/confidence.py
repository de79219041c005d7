"""The probability that the certificates of a selection fail by chance, by the union bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..checks import number

WHAT_IS_RANDOM = "over the draw of the points"


@dataclass(frozen=True)
class Confidence:
    """With a rule that samples, a certificate fails with a small probability; two of them with the sum at most.

    Random are the points, which are drawn after both candidates are fixed. Data and noise are not: they enter by the
    noise level, which is taken for sure.

    Attributes
    ----------
    zeta_base, zeta_learn
        Of the two certificates; `zeta_learn` is None where the learned candidate has none.
    """

    zeta_base: float
    zeta_learn: float | None

    @property
    def zeta(self) -> float:
        """``zeta_base + zeta_learn``: the probability at most that one of the certificates fails."""
        return self.zeta_base + (0.0 if self.zeta_learn is None else self.zeta_learn)

    def words(self, *, accepted: bool) -> str:
        """What holds with which probability (stochastic-no-harm-selection): a rejection needs the baseline's only."""
        if accepted:
            return f"both radii hold with probability at least {max(1.0 - self.zeta, 0.0):.6g} {WHAT_IS_RANDOM}"
        return f"the baseline's radius holds with probability at least {1.0 - self.zeta_base:.6g} {WHAT_IS_RANDOM}"

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON."""
        return {"zeta_base": self.zeta_base, "zeta_learn": self.zeta_learn, "zeta": self.zeta}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Confidence:
        """The inverse of `to_dict`."""
        learned = record["zeta_learn"]
        base = number(record["zeta_base"], "zeta_base", above=0.0)
        return cls(base, None if learned is None else number(learned, "zeta_learn", above=0.0))
