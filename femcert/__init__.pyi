"""The public names; see ``__init__.py``, which imports each room when one of its names is first used."""

from . import learn as learn
from .bound import Bound as Bound
from .certificate import (
    Calibrated as Calibrated,
)
from .certificate import (
    Certificate as Certificate,
)
from .certificate import (
    Comparison as Comparison,
)
from .certificate import (
    ConformalRadius as ConformalRadius,
)
from .certificate import (
    Dominance as Dominance,
)
from .certificate import (
    ExactRadius as ExactRadius,
)
from .certificate import (
    GuaranteedRadius as GuaranteedRadius,
)
from .certificate import (
    Judge as Judge,
)
from .certificate import (
    OperationalRadius as OperationalRadius,
)
from .certificate import (
    ResidualRadius as ResidualRadius,
)
from .certificate import (
    Rule as Rule,
)
from .certificate import (
    StochasticRadius as StochasticRadius,
)
from .certificate import (
    StoppingRule as StoppingRule,
)
from .certificate import (
    certify as certify,
)
from .errors import (
    CandidateError as CandidateError,
)
from .errors import (
    CoarseMeshError as CoarseMeshError,
)
from .errors import (
    DatasetError as DatasetError,
)
from .errors import (
    FemcertError as FemcertError,
)
from .errors import (
    InconsistentError as InconsistentError,
)
from .errors import (
    InputError as InputError,
)
from .errors import (
    SolveError as SolveError,
)
from .errors import (
    UncertifiedError as UncertifiedError,
)
from .evidence import (
    Design as Design,
)
from .evidence import (
    Evidence as Evidence,
)
from .evidence import (
    EvidenceMap as EvidenceMap,
)
from .evidence import (
    Explained as Explained,
)
from .evidence import (
    Flux as Flux,
)
from .evidence import (
    Interval as Interval,
)
from .evidence import (
    IntervalTable as IntervalTable,
)
from .evidence import (
    Mean as Mean,
)
from .evidence import (
    Moment as Moment,
)
from .evidence import (
    Monotonicity as Monotonicity,
)
from .evidence import (
    Prediction as Prediction,
)
from .evidence import (
    Refutation as Refutation,
)
from .evidence import (
    RegionClaims as RegionClaims,
)
from .evidence import (
    Value as Value,
)
from .evidence import (
    best_dimension as best_dimension,
)
from .evidence import (
    design as design,
)
from .evidence import (
    evidence as evidence,
)
from .evidence import (
    explained as explained,
)
from .evidence import (
    monotonicity as monotonicity,
)
from .linalg import use_backend as use_backend
from .mesh import load_mesh as load_mesh
from .paper.sweep import sweep as sweep
from .problem import (
    AverageSensors as AverageSensors,
)
from .problem import (
    BoundarySensors as BoundarySensors,
)
from .problem import (
    Candidate as Candidate,
)
from .problem import (
    CoarseSpace as CoarseSpace,
)
from .problem import (
    CoordinateSpace as CoordinateSpace,
)
from .problem import (
    CosineSpace as CosineSpace,
)
from .problem import (
    Data as Data,
)
from .problem import (
    EigenmodeSpace as EigenmodeSpace,
)
from .problem import (
    ElectrodeModel as ElectrodeModel,
)
from .problem import (
    EllipticCoefficient as EllipticCoefficient,
)
from .problem import (
    EllipticSource as EllipticSource,
)
from .problem import (
    Experiments as Experiments,
)
from .problem import (
    ForwardMap as ForwardMap,
)
from .problem import (
    FullSpace as FullSpace,
)
from .problem import (
    FunctionSpace as FunctionSpace,
)
from .problem import (
    Given as Given,
)
from .problem import (
    HeatInitial as HeatInitial,
)
from .problem import (
    Interpolant as Interpolant,
)
from .problem import (
    Linearization as Linearization,
)
from .problem import (
    LinearMap as LinearMap,
)
from .problem import (
    LinearProblem as LinearProblem,
)
from .problem import (
    MatrixProblem as MatrixProblem,
)
from .problem import (
    MatrixSensors as MatrixSensors,
)
from .problem import (
    NonlinearProblem as NonlinearProblem,
)
from .problem import (
    ParabolicProblem as ParabolicProblem,
)
from .problem import (
    ParameterSpace as ParameterSpace,
)
from .problem import (
    PointSensors as PointSensors,
)
from .problem import (
    Polynomial as Polynomial,
)
from .problem import (
    Problem as Problem,
)
from .problem import (
    ProductSpace as ProductSpace,
)
from .problem import (
    RaySensors as RaySensors,
)
from .problem import (
    RegionSensors as RegionSensors,
)
from .problem import (
    RegionSpace as RegionSpace,
)
from .problem import (
    Representers as Representers,
)
from .problem import (
    Samples as Samples,
)
from .problem import (
    Sensors as Sensors,
)
from .problem import (
    SineSpace as SineSpace,
)
from .problem import (
    StateEquation as StateEquation,
)
from .problem import (
    StrongForm as StrongForm,
)
from .problem import (
    Tomography as Tomography,
)
from .problem import (
    TraceSpace as TraceSpace,
)
from .report import (
    plot_design as plot_design,
)
from .report import (
    plot_evidence as plot_evidence,
)
from .report import (
    plot_modulus as plot_modulus,
)
from .report import (
    plot_selection as plot_selection,
)
from .report import (
    plot_sensitivity as plot_sensitivity,
)
from .report import (
    plot_stability as plot_stability,
)
from .report import (
    plot_study as plot_study,
)
from .report import (
    write_fields as write_fields,
)
from .report import (
    write_report as write_report,
)
from .residual import (
    DualNorm as DualNorm,
)
from .residual import (
    boundary_norm as boundary_norm,
)
from .residual import (
    dual_norm as dual_norm,
)
from .residual import (
    flux_majorant as flux_majorant,
)
from .residual import (
    friedrichs_constant as friedrichs_constant,
)
from .residual import (
    kkt_residual as kkt_residual,
)
from .residual import (
    poincare_constant as poincare_constant,
)
from .residual import (
    reduced_gradient_norm as reduced_gradient_norm,
)
from .residual import (
    space_time_norm as space_time_norm,
)
from .selection import GaussNewton as GaussNewton
from .selection import Selection as Selection
from .selection import Tikhonov as Tikhonov
from .selection import no_harm as no_harm
from .stability import (
    Stability as Stability,
)
from .stability import (
    certified_weights as certified_weights,
)
from .stability import (
    check_kantorovich as check_kantorovich,
)
from .stability import (
    stability as stability,
)
from .stability import (
    validated as validated,
)
from .study import Case as Case
from .study import Study as Study
from .study import datasets as datasets
from .study import refinement_study as refinement_study

__version__: str
__all__: list[str]
