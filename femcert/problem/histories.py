"""Functions of time, known or not, as their means over time steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from ..checks import Array, real_vector
from ..errors import InputError
from .space import ParameterSpace

# Gauss points of a step, in parts of it: the mean is exact for cubics.
GAUSS = 0.5 + np.array([-0.5, 0.5]) / np.sqrt(3.0)


def history_at(function: Any, name: str) -> Callable[[float], float]:
    """A function of time, with a finite number as its value."""
    if not callable(function):
        raise InputError(f"{name} is a {type(function).__name__}; expected a function of time")
    return lambda t: float(real_vector(np.atleast_1d(function(t)), 1, f"what {name} returns")[0])


def means_over_steps(function: Callable[[float], float], grid: Array) -> Array:
    """Means of a function of time over the steps of a grid, each by two Gauss points."""
    at = np.add.outer(np.diff(grid), np.zeros(2)) * GAUSS + grid[:-1, None]
    return np.array([function(t) for t in at.ravel().tolist()]).reshape(at.shape).mean(axis=1)


def strengths_of(space: ParameterSpace, history: Any, grid: Array) -> Any:
    """Mean strengths over the steps, for the dofs of a class of histories: sparse ``(steps, dofs)``."""
    if space.carrier is not None:
        mesh, last = space.carrier.mesh, float(grid[-1])
        if history is not None or mesh.dim() != 1 or space.facets is not None:
            expected = "a class on a mesh of the time line, without history, or a CoordinateSpace"
            raise InputError(f"a release came with a {type(space).__name__}; expected {expected}")
        ends = float(mesh.p.min()), float(mesh.p.max())
        if ends[0] > 0.0 or ends[1] < last * (1.0 - 1e-12):
            raise InputError(f"the mesh of the time line is {ends[0]:g} to {ends[1]:g}; expected 0 to {last:g}")
        at = [space.carrier.probes((grid[:-1] + point * np.diff(grid))[None]) for point in GAUSS]
        return csr_matrix(0.5 * (at[0] + at[1]))
    if history is None:
        edges = np.linspace(0.0, grid[-1], space.size + 1)
        inside = np.minimum(grid[1:, None], edges[1:]) - np.maximum(grid[:-1, None], edges[:-1])
        return csr_matrix(np.maximum(inside, 0.0) / np.diff(grid)[:, None])
    if not isinstance(history, Sequence) or len(history) != space.size:
        expected = f"a list of {space.size} functions"
        raise InputError(f"history of a release is a {type(history).__name__}; expected {expected}")
    each = [means_over_steps(history_at(f, f"history[{j}]"), grid) for j, f in enumerate(history)]
    return csr_matrix(np.stack(each, axis=1))
