"""What is known of a parabolic problem beside its unknown: loads, boundary values and an initial value."""

from __future__ import annotations

from typing import Any

import numpy as np
from skfem import Basis
from skfem.assembly.form.form import Form

from ..checks import Array, frozen, real_vector
from ..mesh.elements import nodal_values
from .boundary import BoundaryConditions
from .histories import GAUSS, history_at
from .terms import linear


class KnownLoads:
    """Known source, initial value, and boundary conditions that all change by one factor in time.

    Parameters
    ----------
    source, initial, boundary_history
        See `ParabolicProblem`.
    """

    def __init__(
        self, basis: Basis, boundary: BoundaryConditions, source: Any, initial: Any, boundary_history: Any
    ) -> None:
        self.basis, self.boundary = basis, boundary
        varies = callable(source) and not isinstance(source, Form)
        self._source = source if varies else frozen(linear(source, basis, "source"))
        self._factor = None if boundary_history is None else history_at(boundary_history, "boundary_history")
        if initial is None or callable(initial):
            start = np.zeros(basis.N) if initial is None else nodal_values(basis, initial, "initial")
        else:
            given = np.full(basis.N, initial) if np.ndim(initial) == 0 else initial
            start = real_vector(given, basis.N, "initial")
        self.start: Array = frozen(start)

    @property
    def nothing(self) -> bool:
        """Whether the solution for a zero parameter is zero."""
        still = self.boundary.homogeneous and not self.start.any()
        return bool(still and not callable(self._source) and not self._source.any())

    def values_at(self, time: float) -> Array:
        """Dirichlet values on all dofs, zero elsewhere."""
        return self._at(time) * self.boundary.values

    def right(self, mass: Any, operator: Any, begin: float, end: float, theta: float) -> Array:
        """``dt b_n`` of a step, on the free dofs as a column."""
        dt, values = end - begin, self.boundary.values
        old, new = self._at(begin), self._at(end)
        within = theta * new + (1.0 - theta) * old
        if callable(self._source):
            middle = (begin + dt * GAUSS).tolist()
            right: Any = 0.5 * dt * sum(linear(self._source(t), self.basis, "source") for t in middle)
        else:
            right = dt * self._source
        if self.boundary.load is not None:
            right = right + dt * within * self.boundary.load
        if values.any():
            right = right - (new - old) * (mass @ values) - dt * within * (operator @ values)
        return np.asarray(right[self.boundary.free])[:, None]

    def _at(self, time: float) -> float:
        return 1.0 if self._factor is None else self._factor(time)
