"""What a selection was made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.data import Data


@dataclass(frozen=True)
class Case:
    """The problem and the candidates behind a selection: in memory only, for whoever draws or exports it.

    Attributes
    ----------
    problem, data
        As `no_harm` got them.
    baseline
        The baseline as it was certified.
    learned
        The learned candidate as it came and was certified, of several the one beside the baseline; None where it was
        not usable.
    candidates
        All that were usable, by name.
    """

    problem: Problem
    data: Data
    baseline: Candidate
    learned: Candidate | None = None
    candidates: Mapping[str, Candidate] = field(default_factory=dict)
