"""Meshes, spaces, sensors, data and the model classes: an inverse problem as finite-element operators.

The two general classes, `LinearProblem` and `NonlinearProblem`, take the user's own forms; the others use them.
"""

from .base import Problem
from .boundary_sensors import BoundarySensors
from .candidate import Candidate
from .data import Data
from .electrodes import ElectrodeModel
from .elliptic import EllipticCoefficient, EllipticSource
from .experiments import Experiments
from .forward import Linearization, LinearMap
from .heat import HeatInitial
from .linear import LinearProblem
from .local_spaces import CoarseSpace, FunctionSpace, RegionSpace
from .maps import ForwardMap
from .matrices import CoordinateSpace, MatrixProblem
from .modes import CosineSpace, EigenmodeSpace, SineSpace
from .nonlinear import NonlinearProblem
from .polynomial import Polynomial
from .products import ProductSpace
from .samples import Samples
from .sensors import AverageSensors, MatrixSensors, PointSensors, RegionSensors, Representers, Sensors
from .space import FullSpace, ParameterSpace
from .states import StateEquation
from .strong import Given, Interpolant, StrongForm
from .tomography import RaySensors, Tomography
from .traces import TraceSpace

__all__ = [
    "AverageSensors",
    "BoundarySensors",
    "Candidate",
    "CoarseSpace",
    "CoordinateSpace",
    "CosineSpace",
    "Data",
    "EigenmodeSpace",
    "ElectrodeModel",
    "EllipticCoefficient",
    "EllipticSource",
    "Experiments",
    "ForwardMap",
    "FullSpace",
    "FunctionSpace",
    "Given",
    "HeatInitial",
    "Interpolant",
    "LinearMap",
    "LinearProblem",
    "Linearization",
    "MatrixProblem",
    "MatrixSensors",
    "NonlinearProblem",
    "ParameterSpace",
    "PointSensors",
    "Polynomial",
    "Problem",
    "ProductSpace",
    "RaySensors",
    "RegionSensors",
    "RegionSpace",
    "Representers",
    "Samples",
    "Sensors",
    "SineSpace",
    "StateEquation",
    "StrongForm",
    "Tomography",
    "TraceSpace",
]
