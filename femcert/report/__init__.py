"""Tables, figures and HTML: they and `paper` draw. Results do not depend on how they are shown."""

from .design_figure import plot_design
from .evidence_figure import plot_evidence
from .field_files import write_fields
from .modulus_figure import plot_modulus
from .selection_figure import plot_selection
from .sensitivity_figure import plot_sensitivity
from .stability_figure import plot_stability
from .study import plot_meshes, plot_study
from .write import write_report, write_summary

__all__ = [
    "plot_design",
    "plot_evidence",
    "plot_meshes",
    "plot_modulus",
    "plot_selection",
    "plot_sensitivity",
    "plot_stability",
    "plot_study",
    "write_fields",
    "write_report",
    "write_summary",
]
