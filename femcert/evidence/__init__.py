"""What data, noise and class leave open: the parameters that explain the data, and how far a candidate is from them.

Sets are dense and know no problem (coordinates that are orthonormal in Q, whitened data); `Feasible` is that of one.
"""

from .consistent import ConsistentSet, inconsistent
from .evidence import Evidence, evidence
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
from .functionals import Coordinate, Functional, Mean, Moment, Prediction, Value, as_functional
from .interval import Interval, IntervalTable
from .refutation import Refutation, RegionClaims

__all__ = [
    "MOST_COORDINATES",
    "ConsistentSet",
    "Coordinate",
    "Evidence",
    "Feasible",
    "Functional",
    "Interval",
    "IntervalTable",
    "Mean",
    "Moment",
    "Prediction",
    "Refutation",
    "RegionClaims",
    "Value",
    "as_functional",
    "check_explained",
    "check_explained_continuously",
    "continuous_set",
    "discrete_set",
    "evidence",
    "inconsistent",
    "is_large_ball",
    "linearized_set",
]
