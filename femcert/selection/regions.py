"""What the data say about regions, asked once for a selection, and what candidates claim there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import FemcertError, InconsistentError, InputError, MissingPackageError, UncertifiedError
from ..evidence import Functional, IntervalTable, RegionClaims, as_functional, evidence
from ..evidence.tables import finite
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.data import Data
from ..timing import stage


class Regions:
    """Intervals for regions, or why there are none.

    Attributes
    ----------
    table
        The intervals, which hold together; None where the evidence cannot be made.
    failure
        Why not; empty otherwise.

    Raises
    ------
    InputError
        A region is none of the problem.
    """

    def __init__(self, problem: Problem, data: Data, regions: Any) -> None:
        self.table, self.failure, space = None, "", problem.parameters
        self._fit: dict[str, float | None] = {}
        asked = [as_functional(each, space) for each in _listed(regions)]
        self._weights = np.array([each.weights(space) for each in asked])
        try:
            self.table, self._fit = _table(problem, data, asked)
        except FemcertError as error:
            if isinstance(error, InputError) and not isinstance(error, MissingPackageError):
                raise
            self.failure = f"the regions cannot be judged: {error}"

    def claims(self, candidates: Mapping[str, Candidate]) -> RegionClaims | None:
        """What candidates claim, beside what the data say."""
        if self.table is None:
            return None
        values = {name: (self._weights @ each.parameter).tolist() for name, each in candidates.items()}
        return RegionClaims(self.table, {name: tuple(claimed) for name, claimed in values.items()}, **self._fit)


def _listed(regions: Any) -> list[Any]:
    """The regions, where one may come alone."""
    alone = isinstance(regions, (str, Functional, np.ndarray)) or callable(regions)
    found = [regions] if alone else list(regions)
    if not found:
        raise InputError("regions is empty; expected at least one, or None")
    return found


@stage("regions")
def _table(problem: Problem, data: Data, asked: list[Functional]) -> tuple[IntervalTable, dict[str, float | None]]:
    found = evidence(problem, data)
    p = found.p_value
    # Below the level of the noise, and for noise within a level where nothing is consistent.
    if p is not None and not p > found.law.zeta:
        raise InconsistentError(f"the class does not explain the data (p-value {p:.3g}): wrong class, model or noise")
    table = found.table(asked)
    open_ = [interval.name for interval in table if not np.isfinite(interval.half_length)]
    if open_:
        what = "expected a class within a ball, space.within_ball(radius), [class.ball] in a case file"
        raise UncertifiedError(f"the data say nothing of {', '.join(map(repr, open_))}; {what}; or other regions")
    least = None if problem.parameters.ball is None else finite(found.least_norm.value)
    return table, {"p_value": finite(p) if found.law.zeta else None, "least_norm": least}
