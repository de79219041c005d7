"""Tables, figures and HTML: the only room that draws. Results know nothing of how they are shown."""

from .selection_figure import plot_selection
from .study import write_report
from .study_figure import plot_meshes, plot_study
from .validation import write_validation

__all__ = ["plot_meshes", "plot_selection", "plot_study", "write_report", "write_validation"]
