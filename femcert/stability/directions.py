"""What the sensors see of a parameter, and what they do not: singular vectors as fields, and where they live."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..checks import Array, count, number
from ..errors import InputError
from ..problem.space import ParameterSpace


@dataclass(frozen=True)
class Directions:
    """Parameters of unit norm, orthogonal in Q, from the one the sensors see best to the one they see least.

    Attributes
    ----------
    space
        The admissible class.
    coordinates
        ``(dimension, directions)``.
    singular_values
        ``‖F e‖_Y`` of each.
    """

    space: ParameterSpace
    coordinates: Array
    singular_values: Array

    def fields(self, indices: slice | list[int] = slice(None)) -> Array:
        """Dof vectors of directions, ``(dofs, directions)``."""
        return np.asarray(self.space.matrix @ self.coordinates[:, indices])

    def weakest(self, number_of: int = 1) -> Array:
        """The directions that the sensors see least, the least visible one first."""
        n = count(number_of, "number_of")
        if n > self.coordinates.shape[1]:
            raise InputError(f"number_of is {n}; there are {self.coordinates.shape[1]} directions")
        return self.fields(list(range(self.coordinates.shape[1] - 1, self.coordinates.shape[1] - 1 - n, -1)))

    def near_null(self, level: float) -> Array:
        """Directions whose data are at most `level` (noise, say) for a unit of parameter: a basis, ``(dofs, r)``."""
        number(level, "level", least=0.0)
        return self.fields(list(np.flatnonzero(self.singular_values <= level)))

    def resolution(self, level: float) -> Array:
        """How much of the parameter at each dof the data determine, in [0, 1], for data known to `level`.

        ``sum_i f_i psi_i(x)² / sum_i psi_i(x)²`` with the filter ``f_i = sigma_i² / (sigma_i² + level²)``: the diagonal
        of the resolution operator of a regularized solution, relative to that of the class. NaN nowhere: where the
        class vanishes it is 0.
        """
        number(level, "level", above=0.0)
        squares = self.fields() ** 2
        sigma = self.singular_values
        seen = squares @ (sigma**2 / (sigma**2 + level**2))
        total = squares.sum(axis=1)
        floor = 1e-14 * float(total.max(initial=0.0))
        return np.divide(seen, total, out=np.zeros_like(seen), where=total > floor)
