"""Meshes and bases are the user's own objects, which learned code can write to: noticed, and undone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..checks import Array
from ..problem.base import Problem
from .guard import CandidateFailure


@contextmanager
def unchanged_geometry(problem: Problem) -> Iterator[None]:
    """Within the block, what is written to the arrays of the problem's meshes and bases is put back afterwards.

    Raises
    ------
    CandidateFailure
        Something was written there.
    """
    kept = [(array, array.copy()) for array in _arrays(problem)]
    changed = False
    try:
        yield
    finally:
        changed = _restored(kept)
    if changed:
        raise CandidateFailure("it changed the mesh or the basis in place; both are as before")


def _restored(kept: list[tuple[Array, Array]]) -> bool:
    """Put back what differs; whether anything did."""
    changed = [(array, before) for array, before in kept if not np.array_equal(array, before, equal_nan=True)]
    for array, before in changed:
        if array.flags.writeable:
            array[...] = before
    return bool(changed)


def _arrays(problem: Problem) -> list[Array]:
    found = []
    for basis in (problem.basis, problem.parameters.basis):
        found += [basis.mesh.p, basis.mesh.t, basis.doflocs, basis.element_dofs, basis.dx]
    return list({id(array): array for array in found}.values())
