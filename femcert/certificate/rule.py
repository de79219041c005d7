"""What every certification rule has in common: fixed options, and a judge that applies them to one problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import kind_of
from ..errors import CandidateError, InconsistentError, InputError, UncertifiedError
from ..evidence import Evidence, evidence
from ..problem.base import Problem, check_problem
from ..problem.candidate import Candidate, check_candidate, with_state
from ..problem.data import Data
from ..problem.space import Split
from ..residual import COMPONENTS, Residuals, evaluate
from ..stability import Stability
from ..timing import stage
from .certificate import Certificate
from .comparison import Comparison

# Splits of candidates that a judge keeps: of the two that are compared, and of what is made of them.
KEPT = 4


@dataclass(frozen=True, kw_only=True)
class Rule(ABC):
    """A certification rule: options, fixed before any candidate is seen, the same for all of them.

    A rule of your own gives `prepare`, which returns a `Judge`.

    Parameters
    ----------
    stability
        A stability constant computed beforehand, used for every candidate. Default: that of the problem, for a
        nonlinear one that of the linearization at the candidate.
    """

    stability: Stability | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.stability is not None and not isinstance(self.stability, Stability):
            raise InputError(f"stability is a {type(self.stability).__name__}; expected the result of stability()")

    @abstractmethod
    def prepare(self, problem: Problem, data: Data, solvers: Mapping[str, Any] | None = None) -> Judge:
        """The judge of candidates for one problem and its data, with everything computed that is the same for all.

        Parameters
        ----------
        problem, data
            What is reconstructed, from which measurements.
        solvers
            ``"baseline"`` and ``"learned"`` as `no_harm` got them, several learned ones as a mapping; for rules that
            run them on data of their own.

        Raises
        ------
        UncertifiedError
            The rule cannot be applied here, or no parameter of the class explains the data.
        """

    @property
    def uses_state(self) -> bool:
        """Whether the candidate's state enters; if not, `no_harm` hands out the state of the accepted parameter."""
        return True

    @property
    def decides(self) -> tuple[str, ...]:
        """Names of the residual components that enter the decision: the others are recorded, but not shown."""
        return COMPONENTS

    @property
    def counts_remainder(self) -> bool:
        """Whether radii hold for truths outside of the span of the class, `ParameterSpace.with_remainder`."""
        return False

    @property
    def failure_probability(self) -> float | None:
        """The probability at most that the certificate of one candidate fails by chance; None: there is no chance."""
        return None

    def shared_by(self, count: int) -> Rule:
        """The rule for each of several learned candidates, so that its probability holds for all of them together.

        Itself where what it claims is simultaneous: without probabilities, or where they are those of the noise, whose
        one event serves any number of candidates. A rule whose claim can fail for each candidate anew divides its
        probability by their number.

        Parameters
        ----------
        count
            How many learned candidates there are.
        """
        return self

    @property
    def uses_solvers(self) -> bool:
        """Whether `prepare` is called for each of several learned candidates, with that one as ``"learned"``."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """Name and options, for the record: under ``"options"`` the fields of the class, as plain values."""
        options = {each.name: _plain(getattr(self, each.name)) for each in fields(self) if each.name != "stability"}
        return {**self._named(), **({"options": options} if options else {})}

    def _named(self) -> dict[str, Any]:
        """What the records of all rules begin with."""
        stability = "given" if self.stability is not None else "computed"
        return {"name": type(self).__name__, "stability": stability, "decides": list(self.decides)}


class Judge(ABC):
    """A rule, applied to one problem and its data: it owns what is computed once.

    Attributes
    ----------
    rule
        With numbers for all options that are computed.
    problem, data
        What the candidates are to explain.
    """

    def __init__(self, rule: Rule, problem: Problem, data: Data) -> None:
        self.rule, self.problem, self.data = rule, problem, problem.check_data(data)
        if problem.parameters.remainder is not None and not rule.counts_remainder:
            expected = "expected ExactRadius() or Dominance()"
            raise UncertifiedError(f"{type(rule).__name__} does not count the remainder of the class; {expected}")
        self._splits: list[tuple[Candidate, Split]] = []

    @abstractmethod
    def certify(self, candidate: Candidate) -> Certificate:
        """The certificate of one candidate."""

    def certify_as(self, role: str, candidate: Candidate) -> Certificate:
        """The certificate of a candidate of the solver with this name, for rules that judge solvers."""
        return self.certify(candidate)

    @property
    def noise_level(self) -> float:
        """That of the data."""
        return self.data.noise_level

    @property
    def made_from(self) -> Data:
        """What solvers are to make their candidates from; a rule that splits the data gives them a part."""
        return self.data

    def compare(self, baseline: Candidate, learned: Candidate) -> Comparison | None:
        """What decides between two candidates; None where their radii do."""
        return None

    def certified(self, candidate: Candidate, role: str = "learned") -> Certificate:
        """`certify_as`, for a candidate that is checked here, with the size of its parameter."""
        space = self.problem.parameters
        size = self.split(check_candidate(self.problem, candidate)).size
        if not np.isfinite(size):
            raise CandidateError(f"the {space.norm_name} of {candidate.name!r} is {size}; choose another unit")
        found = self.certify_as(role, candidate)
        name = type(self.rule).__name__
        if not isinstance(found, Certificate):
            expected = "a Certificate, as self.certificate(candidate, Bound(...)) makes it"
            raise UncertifiedError(f"certify of the rule {name} gave {kind_of(found)}; expected {expected}")
        if found.radius.side == "lower":
            raise UncertifiedError(f"the rule {name} gave no radius from above; expected a Certificate with one")
        return replace(found, radius=self._with_chance(found.radius), size=size, norm=space.norm_name)

    def _with_chance(self, radius: Bound) -> Bound:
        """A radius that rests on the noise level holds as that does, and a class from samples as its truths do."""
        data = self.data
        if not data.law.proven:
            return replace(radius, side="estimate")
        missed = data.law.zeta + data.alpha + self.problem.parameters.alpha
        if missed == 0.0 or radius.side != "upper":
            return radius
        return replace(radius, probability=max(radius.probability - missed, 1e-300))

    def certificate(
        self,
        candidate: Candidate,
        radius: Bound,
        *,
        residuals: Residuals | None = None,
        total: float | None = None,
        scope: str | None = None,
        stability: Stability | None = None,
    ) -> Certificate:
        """The certificate with this radius.

        Parameters
        ----------
        candidate, radius
            What is certified, and how.
        residuals
            Of the candidate; default: the paper's.
        total
            What the radius rests on, the paper's eta; default: the misfit.
        scope
            What the radius is about; default: ``"discrete"`` for an upper bound, else ``"estimate"``.
        stability
            The constant that was used, if any.
        """
        if not isinstance(radius, Bound):
            name = type(self.rule).__name__
            raise UncertifiedError(f"certificate of the rule {name} got the radius {radius!r}; expected a Bound")
        if residuals is None:
            residuals = evaluate(self.problem, self.data, candidate, split=self.split(candidate))
        return Certificate(
            radius=radius,
            residuals=residuals,
            total=residuals.data.value if total is None else total,
            stability=stability,
            scope=scope or ("discrete" if radius.side == "upper" else "estimate"),
            noise_level=self.noise_level,
            name=candidate.name,
            _distance=partial(self.error, candidate),
        )

    def split(self, candidate: Candidate) -> Split:
        """The candidate's parameter as a member of the class and a rest; the projection is made once."""
        for known, split in self._splits:
            if known is candidate:
                return split
        split = self.problem.parameters.split(candidate.parameter)
        self.keep(candidate, split)
        return split

    def keep(self, candidate: Candidate, split: Split) -> None:
        """Store the split of a candidate."""
        self._splits = [*self._splits[1 - KEPT :], (candidate, split)]

    def error(self, candidate: Candidate, truth: Any) -> float:
        """``‖q - truth‖_Q``."""
        return self.problem.parameters.norm(self.problem.check_parameter(truth) - candidate.parameter)


def _plain(value: Any) -> Any:
    """For JSON: numbers, texts, rules, and lists and tables of them; of anything else its type."""
    if isinstance(value, Rule):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    return kind_of(value)


def judge_of(rule: Rule, problem: Problem, data: Data, solvers: Mapping[str, Any] | None = None) -> Judge:
    """What `prepare` returns, checked: the rule may be one of a user."""
    found = rule.prepare(problem, data, solvers)
    if not isinstance(found, Judge):
        came = "nothing" if found is None else kind_of(found)
        raise UncertifiedError(f"prepare of the rule {type(rule).__name__} returned {came}; expected a Judge")
    return found


def explaining(problem: Problem, data: Data) -> Evidence:
    """The evidence of a problem whose class explains the data.

    Raises
    ------
    InconsistentError
        Its p-value is below the level of the noise.
    """
    found = evidence(problem, data)
    p = found.p_value
    if p is not None and (p < data.law.zeta or p == 0.0):
        raise InconsistentError(
            f"no parameter of the class explains the data (p-value {p:.2g}): model error, wrong deviations of the "
            "noise or wrong class"
        )
    return found


@stage("certificates")
def certify(problem: Problem, data: Data, candidate: Candidate, rule: Rule) -> Certificate:
    """Evaluate `rule` for one candidate; for several, ``judge = rule.prepare(problem, data)`` computes less.

    The radius of a nonlinear problem is an estimate: with the constant of the linearization at the candidate, the same
    formula for all candidates. `stability(problem, at=candidate.parameter, data=data)` says on which ball around it a
    constant is proven; that the truth lies in that ball is not shown by the data.

    Raises
    ------
    InputError
        The candidate does not belong to the problem, or the class has more coordinates than observations.
    UncertifiedError
        The stability constant is infinite, or the rule needs a residual that the candidate does not have.

    Examples
    --------
    With a problem and data as in the example of `no_harm`:

    >>> certificate = certify(problem, data, fc.Tikhonov(choose="gcv")(problem, data), fc.ExactRadius())
    >>> print(certificate.radius)
    <= 0.105 (ExactRadius)
    >>> certificate.contains(problem.parameters.field([1.0, 0.5]))
    True
    """
    check_problem(problem)
    if not isinstance(rule, Rule):
        raise InputError(f"rule is {kind_of(rule)}; expected a rule such as Dominance()")
    problem.check_data(data)
    candidate = candidate if rule.uses_state else with_state(problem, candidate)
    check_candidate(problem, candidate)
    return judge_of(rule, problem, data).certified(candidate)
