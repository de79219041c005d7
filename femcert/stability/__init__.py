"""What the sensors can tell apart: the stability constant of the inverse problem on its admissible class."""

from .constant import Stability, stability

__all__ = ["Stability", "stability"]
