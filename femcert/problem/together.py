"""Experiments with one operator, solved in one batch: ``J_i = -H_i A^-1 C_i`` for many i.

Experiments with equal operators have the same factorization (see `femcert.linalg.SharedFactors`), by which they are
grouped. A factorization solves for a batch of right-hand sides faster than for one after the other, and the adjoint
states of readings that several experiments have in common serve all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse

from ..checks import Array
from ..linalg import Factorization
from .forward import BATCH, dense

# Columns of the parameter that are read at once, where dense ones take memory.
COLUMNS = 64


class Chain(NamedTuple):
    """A linearization through one solve, ``J = -H A^-1 C``: H and C sparse, A factorized."""

    sensors: csr_matrix
    factor: Factorization
    coupling: csr_matrix


class OneSolve(NamedTuple):
    """A state that one solve ``A^-1 right`` gives; `finish` takes the solution."""

    factor: Factorization
    right: Array
    finish: Callable[[Array], None]


def finish_all(waiting: Sequence[OneSolve]) -> None:
    """Solve for all of them, those with one factorization together."""
    for group in _groups(waiting):
        for start in range(0, len(group), BATCH):
            batch = [waiting[i] for i in group[start : start + BATCH]]
            solutions = batch[0].factor.solve(np.stack([each.right for each in batch], axis=1))
            for each, solution in zip(batch, solutions.T, strict=True):
                each.finish(solution)


def applied(chains: Sequence[Chain], fields: Any) -> Array:
    """``J_i fields``, stacked."""
    found: dict[int, Array] = {}
    for group in _groups(chains):
        solve, step = chains[group[0]].factor.solve, max(1, BATCH // len(group))
        parts = []
        for j in range(0, fields.shape[1], step):
            rights = [dense(chains[i].coupling @ fields[:, j : j + step]) for i in group]
            states = np.hsplit(solve(np.hstack(rights)), len(group))
            parts.append([-np.asarray(chains[i].sensors @ u) for i, u in zip(group, states, strict=True)])
        found |= {i: np.hstack(pieces) for i, pieces in zip(group, zip(*parts, strict=True), strict=True)}
    return np.vstack([found[i] for i in range(len(chains))])


def pulled(chains: Sequence[Chain], weights: Sequence[Array]) -> Array:
    """``sum_i J_i' weights_i``."""
    total: Any = 0.0
    for group in _groups(chains):
        solve, step = chains[group[0]].factor.solve_transposed, max(1, BATCH // len(group))
        parts = []
        for j in range(0, weights[0].shape[1], step):
            rights = [dense(chains[i].sensors.T @ weights[i][:, j : j + step]) for i in group]
            states = np.hsplit(solve(np.hstack(rights)), len(group))
            parts.append(sum(chains[i].coupling.T @ z for i, z in zip(group, states, strict=True)))
        total = total - np.hstack(parts)
    return np.asarray(total)


def matrices(chains: Sequence[Chain], columns: Any) -> Array:
    """``J_i columns``: by forward solves, or by adjoint ones for all different readings, whichever are fewer."""
    found: dict[int, Array] = {}
    for group in _groups(chains):
        of_group = [chains[i] for i in group]
        kinds, kind_of = _different([chain.sensors for chain in of_group])
        counts = [chain.sensors.shape[0] for chain in of_group]
        if len(group) * columns.shape[1] <= sum(H.shape[0] for H in kinds):
            rows = np.split(applied(of_group, columns), np.cumsum(counts)[:-1])
        else:
            rows = [np.empty((m, columns.shape[1])) for m in counts]
            for number, H in enumerate(kinds):
                alike = [place for place, kind in enumerate(kind_of) if kind == number]
                _by_adjoints(H, [(of_group[place], rows[place]) for place in alike], columns)
        found |= dict(zip(group, rows, strict=True))
    return np.vstack([found[i] for i in range(len(chains))])


def _by_adjoints(sensors: Any, alike: Sequence[tuple[Chain, Array]], columns: Any) -> None:
    """Fill the rows of those that have the sensors in common, ``-(A^-T H')' C columns``."""
    solve, k = alike[0][0].factor.solve_transposed, columns.shape[1]
    step = k if issparse(columns) else COLUMNS
    for i in range(0, sensors.shape[0], BATCH):
        Z = solve(sensors[i : i + BATCH].T.toarray())
        for chain, rows in alike:
            for j in range(0, k, step):
                loads = chain.coupling @ (columns if step == k else columns[:, j : j + step])
                rows[i : i + BATCH, j : j + step] = -np.asarray(loads.T @ Z).T


def _groups(items: Sequence[Any]) -> list[list[int]]:
    """The numbers of those with one factorization."""
    found: dict[int, list[int]] = {}
    for i, item in enumerate(items):
        found.setdefault(id(item.factor), []).append(i)
    return list(found.values())


def _different(matrices: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """The different ones among sparse matrices, and which of them each one is."""
    kinds: list[Any] = []
    which = []
    for H in matrices:
        equal = [i for i, K in enumerate(kinds) if H.shape == K.shape and (H != K).nnz == 0]
        if not equal:
            kinds.append(H)
        which.append(equal[0] if equal else len(kinds) - 1)
    return kinds, which
