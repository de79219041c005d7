"""The numerical validation of the paper, five experiments as finite-element problems.

Nothing computed here reads a printed number: the paper's tables stand in `printed`, for the columns named so and for
the checks that compare.
"""

from .outcome import Outcome
from .result import EXPERIMENTS, Validation
from .run import validate

__all__ = ["EXPERIMENTS", "Outcome", "Validation", "validate"]
