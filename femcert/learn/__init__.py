"""Networks that make candidates, and adapters for networks that others trained.

PyTorch (``pip install 'femcert[learn]'``) is imported when something here needs it, never by ``import femcert``.
"""

from .function import Function
from .operator import NeuralOperator
from .pinn import PINN
from .training import Record

__all__ = ["PINN", "Function", "NeuralOperator", "Record"]
