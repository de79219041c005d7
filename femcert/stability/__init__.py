"""What the sensors can tell apart: stability constants, weights, the modulus of conditional stability.

Constants are those of the mesh, or guaranteed for the continuous equation; of a nonlinear problem, on a validated ball.
"""

from .modulus import Modulus
from .stability import Stability, stability
from .validity import Validity, check_kantorovich, validated
from .weights import Weights, certified_weights

__all__ = [
    "Modulus",
    "Stability",
    "Validity",
    "Weights",
    "certified_weights",
    "check_kantorovich",
    "stability",
    "validated",
]
