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
from .functionals import Coordinate, Flux, Functional, Mean, Moment, Prediction, Value
from .interval import Interval, IntervalTable
from .maps import EvidenceMap
from .refutation import Refutation

__all__ = [
    "MOST_COORDINATES",
    "ConsistentSet",
    "Coordinate",
    "Evidence",
    "EvidenceMap",
    "Feasible",
    "Flux",
    "Functional",
    "Interval",
    "IntervalTable",
    "Mean",
    "Moment",
    "Prediction",
    "Refutation",
    "Value",
    "check_explained",
    "check_explained_continuously",
    "continuous_set",
    "discrete_set",
    "evidence",
    "inconsistent",
    "is_large_ball",
    "linearized_set",
]
