"""The rule whose harm is measured: a score with a threshold that trials on samples have found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..bound import Bound
from ..checks import count, number
from ..errors import InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.constraints import one_of
from ..problem.data import Data
from ..problem.noise import check_confidence
from ..problem.samples import Samples, as_samples
from .calibration import Calibration, calibrate
from .certificate import Certificate
from .comparison import ScoreComparison
from .exact import ExactRadius
from .rule import Judge, Rule
from .trials import check_solvers

# Data less usual than this beside those of the samples are none of a truth like them, and not judged.
LEAST_P_VALUE = 0.01


@dataclass(frozen=True, kw_only=True)
class Calibrated(Rule):
    """Accepts where a score is high enough that harm was rare in trials: for truths like samples, and for solvers.

    A learned map adds to the data what its training truths have in common. No rule that speaks of every
    truth can count that; trials on samples can. Both solvers run on one simulated measurement of each sample. Scores,
    such as the posterior mean over the deviation of ``‖q_b - q‖² - ‖q_l - q‖²``, are compared on one half of these
    trials, and the threshold of the best is found on the other: the lowest one at which the Clopper-Pearson bound of
    the harm rate ``P(accepted and worse)`` is at most `harm`. The claim holds for truths like the samples; random are
    truth and noise. It is a share of all measurements, not of the accepted ones, which is recorded beside it.

    Parameters
    ----------
    samples
        Truths, a dof vector in each row, or `Samples`, in any order. Those that trained the learned map, or made the
        class, must not be among them.
    sampler
        Instead: a function that draws a truth (dof vector) with the random generator that it gets.
    trials
        How many truths the sampler draws; half of them are for the threshold.
    harm
        The largest harm rate.
    confidence
        With which the harm rate is at most `harm`; random are the samples and their noise.
    seed
        Of the noise of the trials, for samples that have none, and of the sampler.
    calibration
        What `calibrated` found, for further data.

    Notes
    -----
    Solvers are needed, callables ``(problem, data) -> Candidate``; they run in this process, without a time limit. With
    finished candidates nothing is decided. The same goes for data that are unlike those of the samples: their conformal
    p-value is below 1 %, or they are the least usual of all. A truth that differs from the samples where the sensors do
    not see it is not detected. The radii of the certificates are those of `ExactRadius`, whatever the truth, where
    there are any; else the conformal ones of the trials, which are estimates.
    """

    samples: Any = field(default=None, repr=False, compare=False)
    sampler: Callable[[Any], Any] | None = field(default=None, repr=False, compare=False)
    trials: int = 1000
    harm: float = 0.05
    confidence: float = 0.95
    seed: int = 0
    calibration: Calibration | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.sampler, self.samples, "Calibrated")
        object.__setattr__(self, "harm", number(self.harm, "harm", above=0.0))
        if not self.harm < 1.0:
            raise InputError(f"harm is {self.harm:g}; expected a rate below 1, such as 0.05")
        check_confidence(self.confidence)
        count(self.trials, "trials")
        count(self.seed, "seed", least=0)

    @property
    def uses_state(self) -> bool:
        """No state enters."""
        return False

    @property
    def decides(self) -> tuple[str, ...]:
        """The misfit of the parameter and its distance from the class."""
        return ("data", "admissibility")

    @property
    def counts_remainder(self) -> bool:
        """Trials have truths as they are, in the span or not."""
        return True

    @property
    def uses_solvers(self) -> bool:
        """Trials are made with both solvers, so for each learned one."""
        return True

    def shared_by(self, count: int) -> Calibrated:
        """``harm / count`` and ``(1 - confidence) / count`` for each: the claim is then that of the whole choice."""
        if count == 1:
            return self
        missed = (1.0 - self.confidence) / count
        return replace(self, harm=self.harm / count, confidence=1.0 - missed, calibration=None)

    def calibrated(self, problem: Problem, data: Data, *, baseline: Any, learned: Any) -> Calibrated:
        """The same rule with its trials done, for all data of the same sensors and noise.

        Parameters
        ----------
        problem, data
            Of the data, only the law of the noise counts.
        baseline, learned
            The solvers.
        """
        solvers = check_solvers({"baseline": baseline, "learned": learned}, type(self).__name__)
        return replace(self, calibration=calibrate(problem, data, self._drawn(), solvers, self.harm, self.confidence))

    def _drawn(self) -> Samples:
        if self.sampler is not None:
            return Samples.drawn(self.sampler, self.trials, seed=self.seed)
        given = as_samples(self.samples)
        return given if given is self.samples else Samples(given.fields, seed=self.seed)

    def prepare(self, problem: Problem, data: Data, solvers: Mapping[str, Any] | None = None) -> CalibratedJudge:
        """The judge, after the trials."""
        both = check_solvers(solvers, type(self).__name__)
        found = self.calibration
        if found is None:
            return CalibratedJudge(self.calibrated(problem, data, **both), problem, data)
        if any(found.solvers[role] is not solver for role, solver in both.items()):
            raise InputError("the rule was calibrated for other solvers; expected those, or a rule without calibration")
        found.comparer.check(problem, data)
        return CalibratedJudge(self, problem, data)

    def to_dict(self) -> dict[str, Any]:
        """Name, options and what the trials found, for the record."""
        options = {"harm": self.harm, "confidence": self.confidence, "seed": self.seed, "trials": True}
        found = {} if self.calibration is None else {"calibration": self.calibration.to_dict()}
        return {**self._named(), **options, **found}


class CalibratedJudge(Judge):
    """The score of two candidates beside its threshold.

    Attributes
    ----------
    calibration
        What the trials found.
    p_value
        How usual the data are beside those of the trials.

    Raises
    ------
    UncertifiedError
        The data are unlike those of the samples.
    """

    rule: Calibrated

    def __init__(self, rule: Calibrated, problem: Problem, data: Data) -> None:
        super().__init__(rule, problem, data)
        assert rule.calibration is not None
        self.calibration, self._values = rule.calibration, data.whiten(data.values)
        self.p_value, n = self.calibration.p_value(self._values), self.calibration.trials
        if self.p_value <= max(LEAST_P_VALUE, 1.0 / (n + 1)):
            raise UncertifiedError(
                f"the data are unlike those of the {self.calibration.samples} samples (conformal p-value "
                f"{self.p_value:.2g}): truth, noise or model is another one, of which trials on the samples say nothing"
            )
        self._exact: Judge | None = None
        self._why = ""
        try:
            self._exact = ExactRadius().prepare(problem, data)
        except UncertifiedError as error:
            self._why = str(error)

    def certify(self, candidate: Candidate) -> Certificate:
        """See `certify_as`; nothing says which solver made the candidate."""
        return self.certify_as("", candidate)

    def certify_as(self, role: str, candidate: Candidate) -> Certificate:
        """The radius for every truth of the class; where there is none, what the errors in the trials were."""
        why = self._why
        if self._exact is not None:
            try:
                found = self._exact.certify(candidate)
                return replace(found, radius=replace(found.radius, source="ExactRadius, for every truth of the class"))
            except UncertifiedError as error:
                why = str(error)
        radii = self.calibration.radii
        if not radii:
            reason = f"there is no radius for every truth of the class: {why}"
            raise UncertifiedError(f"{reason}; and none of trials, of which there are too few or a solver failed")
        n, level = self.calibration.samples, f"{100.0 * (1.0 - self.data.law.zeta):g} %"
        source = f"error in {level} of {n} trials; for every truth of the class there is no radius"
        return self.certificate(candidate, Bound(radii.get(role, max(radii.values())), "estimate", source))

    def compare(self, baseline: Candidate, learned: Candidate) -> ScoreComparison:
        """The score of the learned candidate."""
        fields = (candidate.parameter[None] for candidate in (baseline, learned))
        pairs = self.calibration.comparer(self._values[None], *fields)
        record = {**self.calibration.to_dict(), "p_value": self.p_value}
        return ScoreComparison.of(self.calibration.of(pairs), record)
