"""Meshes and Lagrange elements: read, refine, locate points, integrate, sample and transfer fields.

It knows scikit-fem and nothing of inverse problems.
"""

from .read import load_mesh

__all__ = ["load_mesh"]
