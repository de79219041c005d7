"""Rules that judge candidates: by a radius that contains the truth, by comparison, or by trials on samples."""

from .calibrated import Calibrated
from .certificate import Certificate
from .comparison import Comparison
from .confidence import bernstein, betting, hoeffding
from .conformal import ConformalRadius
from .dominance import Dominance
from .exact import ExactRadius
from .guaranteed import GuaranteedRadius
from .rule import Judge, Rule, certify
from .stochastic import StochasticRadius
from .stopping import StoppingRule
from .weighted import OperationalRadius, ResidualRadius

__all__ = [
    "Calibrated",
    "Certificate",
    "Comparison",
    "ConformalRadius",
    "Dominance",
    "ExactRadius",
    "GuaranteedRadius",
    "Judge",
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
