"""Rules that turn residuals and stability into a radius around a candidate that contains the truth."""

from .certificate import Certificate
from .rule import Rule, certify
from .rules import OperationalRadius, ResidualRadius
from .stochastic import StochasticRadius, hoeffding
from .stopping import StoppingRule

__all__ = [
    "Certificate",
    "OperationalRadius",
    "ResidualRadius",
    "Rule",
    "StochasticRadius",
    "StoppingRule",
    "certify",
    "hoeffding",
]
