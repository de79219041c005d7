"""femcert: certified finite-element inverse problems. Reconstruct, certify, select.

Three ideas carry the library. A *problem* maps a parameter to a state and a state to sensor values. A *certificate*
turns the residuals of a candidate reconstruction and the stability of the problem into a radius around it. A
*selection* takes a learned candidate only if its radius is no worse than that of a classical baseline.
"""

from importlib.metadata import version as _version

from . import learn
from .bound import Bound
from .certificate import (
    Certificate,
    Comparison,
    Dominance,
    ExactRadius,
    GuaranteedRadius,
    OperationalRadius,
    ResidualRadius,
    StochasticRadius,
    StoppingRule,
    certify,
)
from .errors import CoarseMeshError, FemcertError, InconsistentError, InputError, SolveError, UncertifiedError
from .mesh import load_mesh
from .paper.sweep import sweep
from .problem import (
    AverageSensors,
    BoundarySensors,
    Candidate,
    CoarseSpace,
    CosineSpace,
    Data,
    EigenmodeSpace,
    EllipticCoefficient,
    EllipticSource,
    FullSpace,
    FunctionSpace,
    HeatInitial,
    LinearProblem,
    MatrixSensors,
    NonlinearProblem,
    PointSensors,
    Polynomial,
    RaySensors,
    RegionSensors,
    RegionSpace,
    SineSpace,
    Tomography,
)
from .report import plot_modulus, plot_selection, plot_stability, plot_study, write_fields, write_report
from .residual import (
    DualNorm,
    boundary_norm,
    dual_norm,
    flux_majorant,
    friedrichs_constant,
    kkt_residual,
    poincare_constant,
    reduced_gradient_norm,
    space_time_norm,
)
from .selection import GaussNewton, Selection, Tikhonov, no_harm
from .stability import Stability, certified_weights, check_kantorovich, stability, validated
from .study import Case, Study, refinement_study

__version__ = _version("femcert")

__all__ = [
    "AverageSensors",
    "Bound",
    "BoundarySensors",
    "Candidate",
    "Case",
    "Certificate",
    "CoarseMeshError",
    "CoarseSpace",
    "Comparison",
    "CosineSpace",
    "Data",
    "Dominance",
    "DualNorm",
    "EigenmodeSpace",
    "EllipticCoefficient",
    "EllipticSource",
    "ExactRadius",
    "FemcertError",
    "FullSpace",
    "FunctionSpace",
    "GaussNewton",
    "GuaranteedRadius",
    "HeatInitial",
    "InconsistentError",
    "InputError",
    "LinearProblem",
    "MatrixSensors",
    "NonlinearProblem",
    "OperationalRadius",
    "PointSensors",
    "Polynomial",
    "RaySensors",
    "RegionSensors",
    "RegionSpace",
    "ResidualRadius",
    "Selection",
    "SineSpace",
    "SolveError",
    "Stability",
    "StochasticRadius",
    "StoppingRule",
    "Study",
    "Tikhonov",
    "Tomography",
    "UncertifiedError",
    "boundary_norm",
    "certified_weights",
    "certify",
    "check_kantorovich",
    "dual_norm",
    "flux_majorant",
    "friedrichs_constant",
    "kkt_residual",
    "learn",
    "load_mesh",
    "no_harm",
    "plot_modulus",
    "plot_selection",
    "plot_stability",
    "plot_study",
    "poincare_constant",
    "reduced_gradient_norm",
    "refinement_study",
    "space_time_norm",
    "stability",
    "sweep",
    "validated",
    "write_fields",
    "write_report",
]
