"""Diffusion with a conductivity that is a function of the parameter, on linear triangles: shared by all on one basis.

Several experiments have one conductivity, and each its own state. What depends on the conductivity alone is made once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_matrix
from skfem import Basis

from ..checks import Array
from ..mesh.assembly import DiffusionPattern

_known: WeakKeyDictionary[Basis, dict[Any, Conduction]] = WeakKeyDictionary()


def conduction_on(basis: Basis, parameters: Basis, transform: str, conductivity: Any, slope: Any) -> Conduction:
    """That of a basis, a parameter's element and a transform; the same object for equal ones."""
    mine = _known.setdefault(basis, {})
    key = type(parameters.elem), transform
    if key not in mine:
        home = basis if type(basis.elem) is key[0] else basis.with_element(parameters.elem)
        mine[key] = Conduction(basis, home, conductivity, slope)
    return mine[key]


@dataclass(frozen=True)
class AtParameter:
    """At a parameter q: the matrix ``(a(q) grad u, grad v)``, and ``int_K a'(q) phi_j`` for triangles K and dofs j."""

    parameter: Array
    matrix: Any
    weights: csr_matrix
    _made: list[tuple[Any, Any, Any, Any]] = field(default_factory=list)

    def operators(self, added: Any, free: Any) -> tuple[Any, Any]:
        """With a matrix of the boundary (or None) added, on all dofs and on the free ones; kept, for equal ones."""
        for known, dofs, whole, part in self._made:
            if _same(known, added) and np.array_equal(dofs, free):
                return whole, part
        whole = self.matrix if added is None else self.matrix + added
        part = whole if len(free) == whole.shape[0] else whole[free][:, free]
        # All problems on the basis share them.
        whole.data.flags.writeable = part.data.flags.writeable = False
        self._made.append((added, free, whole, part))
        return whole, part


def _same(one: Any, other: Any) -> bool:
    """Whether two sparse matrices of boundaries are equal; they have few entries."""
    if one is None or other is None or one is other:
        return one is other
    return one.shape == other.shape and (one != other).nnz == 0


class Conduction:
    """``(a(q) grad u, grad v)`` and its derivative in q; the matrices of the latest q are kept.

    It holds arrays of the bases, and not the bases.

    Parameters
    ----------
    basis, home
        Of the state, linear on triangles, and of the parameter, with the same quadrature.
    conductivity, slope
        a and its derivative, functions of values of q.
    """

    def __init__(
        self, basis: Basis, home: Basis, conductivity: Callable[[Any], Any], slope: Callable[[Any], Any]
    ) -> None:
        self._pattern, self._conductivity, self._slope = DiffusionPattern(basis), conductivity, slope
        self._volumes, self._dofs, self._count = basis.dx, home.element_dofs, int(home.N)
        self._shapes = [np.asarray(shape[0]) for shape in home.basis]
        self._latest: AtParameter | None = None

    def at(self, q: Array) -> AtParameter:
        """At a parameter."""
        if self._latest is None or not np.array_equal(self._latest.parameter, q):
            values = sum(q[dofs][:, None] * shape for dofs, shape in zip(self._dofs, self._shapes, strict=True))
            K = self._pattern.matrix(self._conductivity(values))
            self._latest = AtParameter(q.copy(), K, self._weights(self._slope(values)))
        return self._latest

    def coupling(self, u: Array, q: Array) -> Any:
        """``(a'(q) phi_j grad u, grad v_i)`` (CSR), rows i of the state and columns j of the parameter."""
        return csr_matrix(self._pattern.slopes(u).T @ self.at(q).weights)

    def _weights(self, slope: Any) -> csr_matrix:
        weighed = slope * self._volumes
        entries = np.stack([np.sum(weighed * shape, axis=1) for shape in self._shapes], axis=1)
        count, n = entries.shape
        starts = np.arange(0, entries.size + 1, n)
        return csr_matrix((entries.ravel(), self._dofs.T.ravel(), starts), shape=(count, self._count))
