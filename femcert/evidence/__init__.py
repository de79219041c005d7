"""What data, noise and class leave open: the parameters that explain the data, and how far a candidate is from them.

Sets are dense and know no problem (coordinates that are orthonormal in Q, whitened data); `Evidence` is that of one.
"""

from .consistent import ConsistentSet, inconsistent
from .evidence import (
    MOST_COORDINATES,
    Evidence,
    check_explained,
    check_explained_continuously,
    continuous_evidence,
    discrete_evidence,
    is_large_ball,
    linearized_evidence,
)

__all__ = [
    "MOST_COORDINATES",
    "ConsistentSet",
    "Evidence",
    "check_explained",
    "check_explained_continuously",
    "continuous_evidence",
    "discrete_evidence",
    "inconsistent",
    "is_large_ball",
    "linearized_evidence",
]
