"""The paper's sufficiency sweep: thousands of random inverse problems, every rule on each of them, batched.

The function is in `run`. What is varied stands in `grid`, the inverse problem in `setting`, a trial in `trial`, its
random numbers in `draw`, the decisions in `rules`, and what came of them in `result` and `table`. Nothing computed here
reads a printed number; those are in `printed`, for comparison only.
"""

from .grid import Grid
from .result import Sweep
from .rules import RULES, Verdict
from .run import sweep
from .setting import Setting, paper_setting

__all__ = ["RULES", "Grid", "Setting", "Sweep", "Verdict", "paper_setting", "sweep"]
