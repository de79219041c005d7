"""Two candidates against each other, at the consistent truth that is worst for the learned one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..checks import Array, frozen, number, real_vector

FOR_ANY = "over the noise, for any two candidates"


@dataclass(frozen=True)
class Comparison:
    """What is known about ``‖q_learned - q'‖² - ‖q_baseline - q'‖²`` for the truth q'.

    Attributes
    ----------
    margin
        Upper bound of its largest value over all consistent truths, or, with `probability`, an upper bound at the truth
        that holds with this probability. Not above zero: the learned candidate is no farther from the truth.
    truth
        The consistent parameter (dof vector) where the bound is (nearly) reached: the truth for which the learned
        candidate would be worse, if there is one.
    probability
        None: sure, for noise within its level.
    how
        What is random, and for which candidates it holds.
    """

    margin: float
    truth: Array = field(repr=False, compare=False)
    probability: float | None = None
    how: str = FOR_ANY

    def accepts(self, tolerance: float) -> bool:
        """Whether the learned candidate is within `tolerance` of the baseline or better: ``margin <= tolerance²``.

        Then ``‖q_learned - q'‖ <= ‖q_baseline - q'‖ + tolerance``.
        """
        return bool(self.margin <= tolerance**2)

    def reason(self, tolerance: float) -> str:
        """Why, in words."""
        truths = "every consistent truth"
        if self.probability is not None:
            truths = f"the truth (confidence {self.probability:g} {self.how})"
        than = "the baseline" + (f" + tolerance {tolerance:g}" if tolerance else "")
        if self.accepts(tolerance):
            return f"the learned candidate is no farther from {truths} than {than} (margin {self.margin:.4g})"
        worse = "with some consistent truth"
        if self.probability is not None:
            worse = f"with some truth of the {100.0 * self.probability:g} % confidence set"
        return f"{worse} the learned candidate could be farther from it than {than} (margin {self.margin:.4g})"

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON."""
        how = {} if self.how == FOR_ANY else {"how": self.how}
        return {"margin": self.margin, "truth": self.truth.tolist(), "probability": self.probability, **how}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Comparison:
        """The inverse of `to_dict`."""
        probability = record["probability"]
        return cls(
            margin=number(record["margin"], "margin"),
            truth=frozen(np.asarray(real_vector(record["truth"], None, "truth"))),
            probability=None if probability is None else number(probability, "probability", above=0.0),
            how=str(record.get("how", FOR_ANY)),
        )
