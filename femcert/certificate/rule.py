"""What every certification rule has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import CandidateError, InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.data import Data
from ..residual import COMPONENTS
from ..stability import Stability
from ..timing import stage
from .certificate import Certificate
from .comparison import Comparison

# Squares of smaller numbers, and of what they differ by, are lost; those of larger ones leave the range of floats.
SMALLEST, LARGEST = 1e-140, 1e140


@dataclass(frozen=True, kw_only=True)
class Rule(ABC):
    """A certification rule: fixed before any candidate is seen, the same for all of them.

    Parameters
    ----------
    stability
        A stability constant computed beforehand, used for every candidate. Default: that of the problem, for a
        nonlinear one that of the linearization at the candidate.
    """

    stability: Stability | None = field(default=None, repr=False)
    checked: tuple[Problem, Data] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.stability is not None and not isinstance(self.stability, Stability):
            raise InputError(f"stability is a {type(self.stability).__name__}; expected the result of stability()")

    def resolved(self, problem: Problem, data: Data) -> Rule:
        """The rule with everything computed that is the same for all candidates.

        Rules whose radius is a bound also check that the class explains the data, and say so in `checked`.
        """
        return self

    def is_resolved(self, problem: Problem, data: Data) -> bool:
        """Whether this is what `resolved` returned for this problem and these data."""
        return self.checked is not None and self.checked[0] is problem and self.checked[1] is data

    @property
    def judges_state(self) -> bool:
        """Whether the candidate's state enters; if not, `no_harm` hands out the state of the accepted parameter."""
        return True

    @property
    def decides(self) -> tuple[str, ...]:
        """Names of the residual components that enter the decision: the others are recorded, but not shown."""
        return COMPONENTS

    @property
    def failure_probability(self) -> float | None:
        """The probability at most that the certificate of one candidate fails by chance; None: there is no chance."""
        return None

    @abstractmethod
    def certify(self, problem: Problem, data: Data, candidate: Candidate) -> Certificate:
        """The certificate of one candidate, by a resolved rule."""

    def compare(self, problem: Problem, data: Data, baseline: Candidate, learned: Candidate) -> Comparison | None:
        """What decides between two candidates by a resolved rule; None where their radii do."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """Name and options, for the record."""
        stability = "given" if self.stability is not None else "computed"
        return {"name": type(self).__name__, "stability": stability, "decides": list(self.decides)}


@stage("certificates")
def certify(problem: Problem, data: Data, candidate: Candidate, rule: Rule) -> Certificate:
    """Evaluate `rule` for one candidate.

    The radius of a nonlinear problem is an estimate: with the constant of the linearization at the candidate, the same
    formula for all candidates. `stability(problem, at=candidate.parameter, data=data)` says on which ball around it a
    constant is proven; that the truth lies in that ball is not shown by the data.

    Raises
    ------
    InputError
        The candidate does not belong to the problem, or the class has more coordinates than observations.
    UncertifiedError
        The stability constant is infinite, the rule needs a residual that the candidate does not have, or the numbers
        are too small or too large to be squared.

    Examples
    --------
    With a problem and data as in the example of `no_harm`:

    >>> certificate = certify(problem, data, fc.Tikhonov(choose="gcv")(problem, data), fc.ExactRadius())
    >>> print(certificate.radius)
    <= 0.105 (ExactRadius)
    >>> certificate.contains(problem.parameters.field([1.0, 0.5]))
    True
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem is a {type(problem).__name__}; expected one such as EllipticSource")
    if not isinstance(rule, Rule):
        raise InputError(f"rule is a {type(rule).__name__}; expected a rule such as OperationalRadius(...)")
    check_units(problem.check_data(data), check_candidate(problem, candidate))
    found = rule.resolved(problem, data).certify(problem, data, candidate)
    space = problem.parameters
    return replace(found, size=space.norm(candidate.parameter), norm=space.norm_name)


def check_units(data: Data, candidate: Candidate | None = None) -> None:
    """Refuse data or a parameter whose squares are no numbers: a distance of theirs would be zero, or infinite."""
    with np.errstate(over="ignore"):
        sizes = {"data": max(float(np.abs(data.whiten(data.values)).max()), data.noise_level)}
    if isinstance(candidate, Candidate) and np.all(np.isfinite(candidate.parameter)):
        sizes["parameter"] = float(np.abs(candidate.parameter).max(initial=0.0))
    for name, largest in sizes.items():
        if 0.0 < largest < SMALLEST or largest > LARGEST:
            words = f"at most {largest:.2g}, too {'small' if largest < 1.0 else 'large'} to be squared"
            error = UncertifiedError if name == "data" else CandidateError
            raise error(f"the {name} is {words}; choose another unit")
