"""What data, noise and class leave open: the parameters that explain the data, and how far a candidate is from them.

Sets are dense and know no problem (coordinates that are orthonormal in Q, whitened data); `Feasible` is that of one.
"""

from .consistent import ConsistentSet, inconsistent
from .design import Design, best_dimension, design
from .evidence import Evidence
from .explained import Explained, explained
from .feasible import (
    MOST_COORDINATES,
    Feasible,
    check_explained,
    check_explained_continuously,
    continuous_set,
    discrete_set,
    is_large_ball,
    linearized_set,
)
from .functionals import Coordinate, Flux, Functional, Mean, Moment, Prediction, Value, as_functional
from .interval import Interval, IntervalTable
from .make import evidence
from .maps import EvidenceMap
from .monotonicity import Monotonicity, monotonicity
from .refutation import Refutation, RegionClaims
from .sensitivity import Sensitivity

__all__ = [
    "MOST_COORDINATES",
    "ConsistentSet",
    "Coordinate",
    "Design",
    "Evidence",
    "EvidenceMap",
    "Explained",
    "Feasible",
    "Flux",
    "Functional",
    "Interval",
    "IntervalTable",
    "Mean",
    "Moment",
    "Monotonicity",
    "Prediction",
    "Refutation",
    "RegionClaims",
    "Sensitivity",
    "Value",
    "as_functional",
    "best_dimension",
    "check_explained",
    "check_explained_continuously",
    "continuous_set",
    "design",
    "discrete_set",
    "evidence",
    "explained",
    "inconsistent",
    "is_large_ball",
    "linearized_set",
    "monotonicity",
]
