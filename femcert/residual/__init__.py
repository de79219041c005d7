"""How far a candidate is from the data, the physics, the boundary values, stationarity and the admissible class.

The physics residual comes as the paper's RMS, and as a dual norm over the continuous space between two bounds.
"""

from .boundary import boundary_norm
from .dual import DualNorm, dual_norm, dual_norm_of_functions
from .friedrichs import friedrichs_constant, poincare_constant
from .heat import SpaceTimeNorm, space_time_norm
from .majorant import flux_majorant
from .optimality import KKT, kkt_residual, reduced_gradient_norm
from .residuals import COMPONENTS, Residuals, evaluate, strong_rms

__all__ = [
    "COMPONENTS",
    "KKT",
    "DualNorm",
    "Residuals",
    "SpaceTimeNorm",
    "boundary_norm",
    "dual_norm",
    "dual_norm_of_functions",
    "evaluate",
    "flux_majorant",
    "friedrichs_constant",
    "kkt_residual",
    "poincare_constant",
    "reduced_gradient_norm",
    "space_time_norm",
    "strong_rms",
]
