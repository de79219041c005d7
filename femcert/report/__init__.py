"""Tables, figures and HTML: the only room that draws. Results know nothing of how they are shown."""

from .selection_figure import plot_selection
from .validation import write_validation

__all__ = ["plot_selection", "write_validation"]
