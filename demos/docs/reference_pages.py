"""The API reference: one table of names for each group, written from the public names of femcert."""

from pathlib import Path

GROUPS = {
    "Problems": (
        "Problem EllipticSource EllipticCoefficient HeatInitial Tomography LinearProblem NonlinearProblem MatrixProblem"
        " ForwardMap Experiments ElectrodeModel ParabolicProblem"
    ),
    "Classes of parameters": (
        "ParameterSpace FullSpace EigenmodeSpace SineSpace CosineSpace RegionSpace CoarseSpace FunctionSpace"
        " CoordinateSpace TraceSpace ProductSpace Polynomial"
    ),
    "Sensors and data": (
        "Sensors AverageSensors PointSensors RegionSensors BoundarySensors RaySensors MatrixSensors Data Samples"
    ),
    "Evidence": (
        "evidence Evidence Mean Value Moment Flux Prediction Interval IntervalTable EvidenceMap Refutation RegionClaims"
        " design Design best_dimension plot_evidence plot_sensitivity plot_design"
        " monotonicity Monotonicity explained Explained"
    ),
    "Candidates and selection": "Candidate Tikhonov GaussNewton no_harm Selection",
    "Rules and certificates": (
        "Rule Judge Dominance ExactRadius ResidualRadius OperationalRadius StochasticRadius GuaranteedRadius Calibrated"
        " ConformalRadius certify Certificate Comparison Bound StoppingRule"
    ),
    "Residuals": (
        "dual_norm DualNorm flux_majorant boundary_norm space_time_norm kkt_residual reduced_gradient_norm"
        " friedrichs_constant poincare_constant"
    ),
    "Stability": "stability Stability validated certified_weights check_kantorovich",
    "Studies and reports": (
        "refinement_study Case Study sweep write_report write_fields plot_selection plot_stability plot_modulus"
        " plot_study"
    ),
    "Meshes, solvers, networks, data sets": "load_mesh use_backend learn datasets",
    "To extend femcert": "Given Interpolant Linearization LinearMap Representers StateEquation StrongForm",
    "Errors": (
        "FemcertError InputError SolveError UncertifiedError InconsistentError CandidateError CoarseMeshError"
        " DatasetError"
    ),
}
PAGE = """API reference
=============

Everything below is importable from ``femcert``, here ``import femcert as fc``. Options are keyword-only.

"""
TABLE = """.. autosummary::
   :toctree: api
   :nosignatures:

"""


def names():
    """All names that the page lists."""
    return [name for group in GROUPS.values() for name in group.split()]


def text():
    """The page, in reStructuredText."""
    parts = [PAGE]
    for title, group in GROUPS.items():
        rows = "".join(f"   {name}\n" for name in group.split())
        parts.append(f"{title}\n{'-' * len(title)}\n\n{TABLE}{rows}\n")
    return "".join(parts)


def write(app, config):
    """Write the page before Sphinx looks for its sources."""
    page = f".. currentmodule:: femcert\n\n{text()}"
    path = Path(app.srcdir) / "reference.rst"
    if not path.exists() or path.read_text(encoding="utf-8") != page:
        path.write_text(page, encoding="utf-8")


def setup(app):
    """Connect to Sphinx."""
    app.connect("config-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
