"""The paper's validation and its sweep, with their figures and pages: clients of the rooms before.

`femcert.sweep` runs the sweep, `femcert.paper.validate` has the validation.
"""

from .grid import Grid
from .outcome import Validation
from .rules import RULES, BatchDecision
from .tally import Sweep
from .trials import Setting, paper_setting

__all__ = ["RULES", "BatchDecision", "Grid", "Setting", "Sweep", "Validation", "paper_setting"]
