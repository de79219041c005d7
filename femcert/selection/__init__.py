"""Baselines, the guard around learned candidates, and the no-harm selector."""

from .gauss_newton import GaussNewton
from .no_harm import no_harm
from .selection import Selection
from .tikhonov import Tikhonov

__all__ = ["GaussNewton", "Selection", "Tikhonov", "no_harm"]
