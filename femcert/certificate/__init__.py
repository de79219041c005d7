"""Rules that turn residuals and stability into a radius around a candidate that contains the truth."""

from .certificate import Certificate
from .comparison import Comparison
from .confidence import bernstein, betting, hoeffding
from .dominance import Dominance
from .exact import ExactRadius
from .guaranteed_rule import GuaranteedRadius
from .rule import Rule, certify
from .rules import OperationalRadius, ResidualRadius
from .stochastic import StochasticRadius
from .stopping import StoppingRule

__all__ = [
    "Certificate",
    "Comparison",
    "Dominance",
    "ExactRadius",
    "GuaranteedRadius",
    "OperationalRadius",
    "ResidualRadius",
    "Rule",
    "StochasticRadius",
    "StoppingRule",
    "bernstein",
    "betting",
    "certify",
    "hoeffding",
]
