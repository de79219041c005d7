"""Meshes and Lagrange elements: read, refine, locate points, integrate, sample and transfer fields.

It uses scikit-fem and contains nothing about inverse problems.
"""

from .read import load_mesh

__all__ = ["load_mesh"]
