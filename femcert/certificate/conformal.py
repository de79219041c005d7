"""The radius of a solver as a quantile of its errors on samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array
from ..errors import UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.constraints import conformal_quantile
from ..problem.data import Data
from ..problem.noise import check_confidence
from ..problem.samples import as_samples
from .certificate import Certificate
from .rule import Judge, Rule
from .trials import answers, check_solvers, norms


@dataclass(frozen=True, kw_only=True)
class ConformalRadius(Rule):
    """The conformal quantile of ``‖solver(y_i) - q_i‖_Q`` over one simulated measurement y_i of each sample q_i.

    For truths like the samples, a solver's error is at most its radius in that share of measurements. It is a constant
    of the solver: the data do not enter. Two of them say which solver errs less, and nothing of the measurement at
    hand; comparing them bounds no harm. So it is a decision radius, an estimate. For a bound of the harm see
    `Calibrated`.

    Parameters
    ----------
    samples
        Truths, a dof vector in each row, or `Samples`. Those that trained a solver must not be among them.
    confidence
        The share.

    Notes
    -----
    What it compares: solvers by a quantile of their errors. Solvers are needed, callables
    ``(problem, data) -> Candidate``; with finished candidates nothing is decided.
    """

    samples: Any = field(repr=False, compare=False)
    confidence: float = 0.95

    def __post_init__(self) -> None:
        super().__post_init__()
        check_confidence(self.confidence)

    @property
    def uses_state(self) -> bool:
        """No state enters."""
        return False

    @property
    def decides(self) -> tuple[str, ...]:
        """Recorded is the misfit."""
        return ("data",)

    @property
    def counts_remainder(self) -> bool:
        """Samples are truths as they are, in the span or not."""
        return True

    @property
    def uses_solvers(self) -> bool:
        """Each solver has its own quantile."""
        return True

    def prepare(self, problem: Problem, data: Data, solvers: Mapping[str, Any] | None = None) -> ConformalJudge:
        """The judge, after all samples were solved."""
        both, samples = check_solvers(solvers, type(self).__name__), as_samples(self.samples)
        measured = samples.measurements(problem, data)
        errors: dict[str, list[Array]] = {role: [] for role in both}
        for rows, found in answers(problem, data, measured, both):
            for role, fields in found.items():
                errors[role].append(norms(problem, fields - samples.fields[rows]))
        radii = {}
        for role, parts in errors.items():
            sizes = np.concatenate(parts)
            if failed := int(np.sum(~np.isfinite(sizes))):
                raise UncertifiedError(f"the {role} solver failed in {failed} of {len(samples)} trials; expected none")
            radii[role] = conformal_quantile(sizes, self.confidence)
        return ConformalJudge(self, problem, data, radii)

    def to_dict(self) -> dict[str, Any]:
        """Name and options, for the record."""
        samples = as_samples(self.samples)
        options = {"confidence": self.confidence, "samples": len(samples), "seed": samples.seed, "trials": True}
        return {**self._named(), **options}


class ConformalJudge(Judge):
    """The quantile of each solver.

    Attributes
    ----------
    radii
        By role.
    """

    rule: ConformalRadius

    def __init__(self, rule: ConformalRadius, problem: Problem, data: Data, radii: dict[str, float]) -> None:
        super().__init__(rule, problem, data)
        self.radii = radii

    def certify(self, candidate: Candidate) -> Certificate:
        """The larger radius: nothing says which solver made the candidate."""
        return self.certify_as("", candidate)

    def certify_as(self, role: str, candidate: Candidate) -> Certificate:
        """The radius of the solver that made it."""
        share, n = f"{100.0 * self.rule.confidence:g} %", len(as_samples(self.rule.samples))
        source = f"error in {share} of measurements of truths like {n} samples, a decision radius"
        value = self.radii.get(role, max(self.radii.values()))
        return self.certificate(candidate, Bound(value, "estimate", source))
