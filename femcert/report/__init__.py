"""Tables, figures and HTML: they and `paper` draw. Results know nothing of how they are shown."""

from .field_files import write_fields
from .modulus_figure import plot_modulus
from .selection_figure import plot_selection
from .stability_figure import plot_stability
from .study import plot_meshes, plot_study
from .write import write_report, write_summary

__all__ = [
    "plot_meshes",
    "plot_modulus",
    "plot_selection",
    "plot_stability",
    "plot_study",
    "write_fields",
    "write_report",
    "write_summary",
]
