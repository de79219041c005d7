"""Two candidates against each other: at the consistent truth that is worst for the learned one, or by a score."""

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
        candidate would be worse, if there is one. None where no single truth decides.
    probability
        None: sure, for noise within its level.
    how
        What is random, and for which candidates it holds.
    """

    margin: float
    truth: Array | None = field(repr=False, compare=False)
    probability: float | None = None
    how: str = FOR_ANY

    def accepts(self, tolerance: float) -> bool:
        """Whether the learned candidate is within `tolerance` of the baseline or better: ``margin <= tolerance²``.

        Then ``‖q_learned - q'‖ <= ‖q_baseline - q'‖ + tolerance``.
        """
        return bool(self.margin <= tolerance**2)

    @property
    def meaning(self) -> str:
        """What the margin is, beside it."""
        return (
            "margin: how much larger than the baseline's its squared distance from some truth that explains the data "
            "could be; accepted if at most tolerance²"
        )

    @property
    def chance(self) -> tuple[float, str] | None:
        """A probability to show beside it, and of what; None where nothing is random."""
        return None if self.probability is None else (self.probability, "probability that the comparison holds")

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
        truth = None if self.truth is None else self.truth.tolist()
        how = {} if self.how == FOR_ANY else {"how": self.how}
        return {"margin": self.margin, "truth": truth, "probability": self.probability, **how}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Comparison:
        """The inverse of `to_dict`."""
        if "score" in record:
            return ScoreComparison.of(record["score"], record["calibration"])
        probability, truth = record["probability"], record["truth"]
        return cls(
            margin=number(record["margin"], "margin"),
            truth=None if truth is None else frozen(np.asarray(real_vector(truth, None, "truth"))),
            probability=None if probability is None else number(probability, "probability", above=0.0),
            how=str(record.get("how", FOR_ANY)),
        )


@dataclass(frozen=True)
class ScoreComparison(Comparison):
    """By a score whose threshold was found in trials: what is known speaks of truths like their samples.

    The margin is the threshold minus the score. No probability is that of these two candidates: `calibration` has those
    of the rule.

    Attributes
    ----------
    score
        Of these two candidates.
    calibration
        What the trials say, see `Calibration`.
    """

    score: float = 0.0
    calibration: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, score: Any, calibration: dict[str, Any]) -> ScoreComparison:
        """Of a score and the record of its calibration."""
        value, threshold = number(score, "score"), calibration["threshold"]
        number(calibration["harm"], "harm", above=0.0)
        margin = np.inf if threshold is None else number(threshold, "threshold") - value
        return cls(margin, None, score=value, calibration=dict(calibration))

    def accepts(self, tolerance: float) -> bool:
        """Whether the score reaches its threshold; trials do not speak of a tolerance, which would only accept more."""
        return bool(self.margin <= 0.0)

    @property
    def meaning(self) -> str:
        """What the margin is."""
        return "threshold minus score: accepted if at most 0"

    @property
    def chance(self) -> tuple[float, str] | None:
        """The harm rate that is allowed."""
        return number(self.calibration["harm"], "harm"), "harm rate, at most, for truths like the samples"

    def reason(self, tolerance: float) -> str:
        """The score, and what its threshold claims of which truths."""
        c = self.calibration
        harm, trials = f"{100.0 * c['harm']:g} %", f"{c['trials']} trials on the samples"
        if c["threshold"] is None:
            return f"no threshold of a score keeps the harm rate at {harm} in {trials}"
        said = "at least" if self.accepts(tolerance) else "below"
        shares = [f"{100.0 * c[name]:.3g} %" for name in ("harm_rate", "worse_share", "power")]
        like = f"the data look like those of the samples (p-value {c['p_value']:.2g})"
        truths = f"for truths like the {c['samples']} samples it is accepted and worse in {harm} of data at most"
        return (
            f"{like}, as they do for a truth that differs where no sensor sees it; the score {c['score']!r} of the "
            f"learned candidate is {self.score:.4g}, {said} the threshold {c['threshold']:.4g}: {truths} (confidence "
            f"{100.0 * c['confidence']:g} %; in {trials} {shares[0]}, {shares[1]} of the accepted; {shares[2]} of the "
            "better ones are accepted)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON."""
        margin = self.margin if np.isfinite(self.margin) else None
        return {**super().to_dict(), "margin": margin, "score": self.score, "calibration": self.calibration}
