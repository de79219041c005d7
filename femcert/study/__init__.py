"""Studies: whole experiments built from the rooms before, with results that do not depend on how they are drawn."""

from . import datasets
from .level import Case
from .refinement import refinement_study
from .study import Level, Study

__all__ = [
    "Case",
    "Level",
    "Study",
    "datasets",
    "refinement_study",
]
