"""Time steps of ``M u' + A u = b``: forth and back with one factorization, one level in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import Array, real_array
from ..errors import InputError
from ..linalg import Factorization

# Implicitness of each time-stepping scheme.
THETA = {"backward-euler": 1.0, "crank-nicolson": 0.5}
# Of Euclidean norms, up to which a state is not said to grow: norms of the mass matrix are others.
MOST_GROWTH = 2.0


@dataclass(frozen=True)
class TimeSteps:
    """``(M + theta dt A) u_{n+1} = (M - (1 - theta) dt A) u_n + dt b_n``.

    Attributes
    ----------
    mass, operator
        M and A on the free dofs.
    factor
        Of ``M + theta dt A``.
    step, theta
        dt, and the implicitness.
    """

    mass: Any
    operator: Any
    factor: Factorization
    step: float
    theta: float

    @cached_property
    def explicit(self) -> Any:
        """``M - (1 - theta) dt A``."""
        return self.mass if self.theta == 1.0 else (self.mass - (1.0 - self.theta) * self.step * self.operator).tocsr()

    def forth(self, start: Array, right: Callable[[int], Any], last: int) -> Iterator[tuple[int, Array]]:
        """Each level 0, ..., `last` with its state; ``right(n)`` is ``dt b_n``, of the step that ends at n + 1."""
        u = start
        yield 0, u
        for n in range(last):
            u = self.factor.solve(self.explicit @ u + right(n))
            yield n + 1, u

    def back(self, parts: dict[int, Array], last: int) -> Iterator[tuple[int, Array, Array]]:
        """The transpose: for n = last - 1, ..., 0 the adjoint state of ``dt b_n``, and the functional of ``u_n``.

        `parts` are functionals of the states at their levels, of level zero none.
        """
        p, back = np.zeros_like(parts[last]), self.explicit.T.tocsr()
        for n in range(last - 1, -1, -1):
            if n + 1 in parts:
                p = p + parts[n + 1]
            z = self.factor.solve_transposed(p)
            p = back @ z
            yield n, z, p

    def growth(self, last: int) -> float:
        """By how much the steps enlarge errors: 1 where no state grows, else about the norm of the propagator.

        A random start contains the modes that grow most, each with about one in ``n^1/2`` parts.
        """
        u = np.random.default_rng(0).standard_normal((self.mass.shape[0], 1))
        size, most = float(np.linalg.norm(u)), 1.0
        for _, state in self.forth(u, lambda n: 0.0, last):
            most = max(most, float(np.linalg.norm(state)) / size)
        return most if most < MOST_GROWTH else most * float(np.sqrt(len(u)))


def checked_times(times: Any) -> Array:
    """Increasing positive times."""
    array = np.atleast_1d(real_array(times, "times"))
    if array.ndim != 1 or not array.size or array[0] <= 0.0 or np.any(np.diff(array) <= 0.0):
        raise InputError(f"times is {np.asarray(times).tolist()}; expected increasing positive times")
    return array


def on_grid(times: Array, steps: int) -> NDArray[np.int64]:
    """Levels of the times on the grid of equal steps up to the last one."""
    levels = times / times[-1] * steps
    nearest = np.rint(levels).astype(np.int64)
    off = (np.abs(levels - nearest) > 1e-8 * steps) | (np.diff(nearest, prepend=0) < 1)
    if off.any():
        raise InputError(
            f"observation time {times[np.argmax(off)]:.12g} is not on the grid of {steps} steps up to {times[-1]:g}, "
            "or shares its level with another one"
        )
    return nearest
