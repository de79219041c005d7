"""The strong form of a model problem as data that can be sampled with quadrature of any order.

A discrete operator knows its coefficients only at the points of one rule. A bound over the continuous space needs them
anywhere, so that its integrals are exact, or known not to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from skfem import Basis

from .boundary import BoundaryConditions
from .checks import Array
from .coefficients import Coefficient, check_sign, sampled_at, varies
from .sampling import Sampler


class Sampled(Protocol):
    """A scalar field that can be evaluated at the points of a sampler."""

    def at(self, sampler: Sampler) -> Array:
        """Values, ``(elements, points)``."""


@dataclass(frozen=True)
class Given:
    """A coefficient as the user gave it: a number, a function, values per element, or a table by subdomain."""

    value: Coefficient
    name: str
    sign: str = "any"

    @property
    def varies(self) -> bool:
        """Whether the value may vary within an element."""
        return varies(self.value)

    def at(self, sampler: Sampler) -> Array:
        """Values at the points; one column where the value is the same all over each element."""
        x = sampler.x if self.varies else np.zeros((1, sampler.mesh.nelements, 1))
        return sampled_at(self.value, sampler.mesh, x, self.name, sign=self.sign)


ZERO = Given(0.0, "reaction")


@dataclass(frozen=True)
class Field:
    """A finite-element function; with ``exponential=True``, its exponential."""

    basis: Basis
    dofs: Array
    exponential: bool = False
    sign: str = "any"

    def at(self, sampler: Sampler) -> Array:
        """Values at the points."""
        values = sampler.values(self.basis, self.dofs)
        if self.exponential:
            with np.errstate(over="ignore", under="ignore"):
                values = np.exp(values)
        check_sign(values, "the conductivity" if self.sign == "positive" else "the field", self.sign)
        return values


@dataclass(frozen=True)
class Equation:
    """``-div(a grad u) + c u = f``, with the boundary conditions as they were given."""

    conductivity: Given | Field
    reaction: Given | Field
    source: Given | Field
    boundary: BoundaryConditions


def is_zero(field: Any) -> bool:
    """Whether a field is the number zero, so that nothing needs to be evaluated."""
    return isinstance(field, Given) and np.isscalar(field.value) and float(field.value) == 0.0  # type: ignore[arg-type]
