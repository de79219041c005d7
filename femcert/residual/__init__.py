"""How far a candidate is from the data, the physics, the boundary values, stationarity and the admissible class."""

from .components import Residuals, evaluate
from .optimality import reduced_gradient_norm
from .strong import strong_rms

__all__ = ["Residuals", "evaluate", "reduced_gradient_norm", "strong_rms"]
