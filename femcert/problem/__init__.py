"""Meshes, spaces, sensors, data and the model classes: an inverse problem as finite-element operators.

The two general classes, `LinearProblem` and `NonlinearProblem`, take the user's own forms; the others use them.
"""

from .base import Problem
from .boundary_sensors import BoundarySensors
from .candidate import Candidate
from .data import Data
from .elliptic import EllipticCoefficient, EllipticSource
from .heat import HeatInitial
from .linear import LinearProblem
from .local_spaces import CoarseSpace, FunctionSpace, RegionSpace
from .modes import CosineSpace, EigenmodeSpace, SineSpace
from .nonlinear import NonlinearProblem
from .polynomial import Polynomial
from .sensors import AverageSensors, MatrixSensors, PointSensors, RegionSensors
from .space import FullSpace
from .tomography import RaySensors, Tomography

__all__ = [
    "AverageSensors",
    "BoundarySensors",
    "Candidate",
    "CoarseSpace",
    "CosineSpace",
    "Data",
    "EigenmodeSpace",
    "EllipticCoefficient",
    "EllipticSource",
    "FullSpace",
    "FunctionSpace",
    "HeatInitial",
    "LinearProblem",
    "MatrixSensors",
    "NonlinearProblem",
    "PointSensors",
    "Polynomial",
    "Problem",
    "RaySensors",
    "RegionSensors",
    "RegionSpace",
    "SineSpace",
    "Tomography",
]
