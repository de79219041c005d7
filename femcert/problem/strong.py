"""The strong form of a model problem as data that can be sampled with quadrature of any order.

A discrete operator knows its coefficients only at the points of one rule. A bound over the continuous space needs them
anywhere, so that its integrals are exact, or known not to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from skfem import Basis

from ..checks import Array
from ..errors import InputError
from ..mesh.elements import degree
from ..mesh.sample import MOST_ORDER, PolynomialFit, Sampler, norming_constant, polynomial_fit
from .boundary import BoundaryConditions
from .coefficients import (
    Coefficient,
    check_sign,
    largest_error,
    polynomial_degree,
    sampled_at,
    unknown_parts,
    varies,
)

# Samples that are farther from polynomials than this, relative to the largest, contradict a declared degree.
CONTRADICTION = 1e-8


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

    @property
    def degree(self) -> int | None:
        """Of the polynomials that it is on the elements, up to `error`; None where only samples are known."""
        return polynomial_degree(self.value)

    def doubt_on(self, mesh: Any) -> str:
        """Why it is not known as polynomials on the elements of a mesh; empty where it is."""
        if self.degree is None:
            return unknown_parts(self.value, self.name)
        most = (MOST_ORDER[mesh.t.shape[0]] - 2) // 2
        high = f"the {self.name} is declared to have the degree {self.degree}; the rules are for degrees up to {most}"
        return high if self.degree > most else ""

    @property
    def error(self) -> float:
        """The declared distance from polynomials."""
        return largest_error(self.value)

    def at(self, sampler: Sampler) -> Array:
        """Values at the points, one column where they are the same all over each element; of `fit` with an `error`."""
        if self.error > 0.0 and not self.doubt_on(sampler.mesh):
            values = self.fit(sampler.mesh).at(sampler)
            check_sign(values, self.name, self.sign)
            return values
        return self._samples(sampler)

    def fit(self, mesh: Any) -> PolynomialFit:
        """The polynomials on the elements.

        Raises
        ------
        InputError
            Samples contradict the declared degree and error.
        """
        d, sampler = self.degree, self._enough(mesh)
        assert d is not None
        values = self._samples(sampler)
        fit = polynomial_fit(sampler, values, d)
        allowed, worst = CONTRADICTION * float(np.abs(values).max(initial=0.0)), float(fit.away.max(initial=0.0))
        if self.error > 0.0:
            allowed += (1.0 + norming_constant(sampler, d)) * self.error
        if worst > allowed:
            raise InputError(
                f"{self.name} is declared as a polynomial of degree {d} with error {self.error:g}, but is {worst:.3g} "
                "away from such polynomials on an element; expected a true degree, or a larger error"
            )
        return fit

    def missed(self, mesh: Any) -> Array:
        """On each element a bound of the distance of the function from what `at` gives."""
        if self.error == 0.0 or self.doubt_on(mesh):
            return np.zeros(mesh.nelements)
        # Between the declared polynomial and the fit there is a polynomial, at most so large at the samples.
        assert self.degree is not None
        norming = norming_constant(self._enough(mesh), self.degree)
        return np.asarray(self.error + norming * (self.error + self.fit(mesh).away))

    def _enough(self, mesh: Any) -> Sampler:
        """Points that determine a polynomial of its degree."""
        assert self.degree is not None
        return Sampler(mesh, 2 * self.degree + 2)

    def _samples(self, sampler: Sampler) -> Array:
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

    error = 0.0

    @property
    def degree(self) -> int:
        """Of the polynomials that it is on the elements; of an exponential, the exponent."""
        return degree(self.basis)

    def doubt_on(self, mesh: Any) -> str:
        """None."""
        return ""

    def fit(self, mesh: Any) -> PolynomialFit:
        """The polynomials on the elements; of an exponential, the exponent."""
        sampler = Sampler(mesh, 2 * self.degree + 2)
        return polynomial_fit(sampler, sampler.values(self.basis, self.dofs), self.degree)

    def missed(self, mesh: Any) -> Array:
        """Nothing."""
        return np.zeros(mesh.nelements)

    def at(self, sampler: Sampler) -> Array:
        """Values at the points."""
        values = sampler.values(self.basis, self.dofs)
        if self.exponential:
            with np.errstate(over="ignore", under="ignore"):
                values = np.exp(values)
        check_sign(values, "the conductivity" if self.sign == "positive" else "the field", self.sign)
        return values


@dataclass(frozen=True)
class StrongForm:
    """``-div(a grad u) + c u = f``, with the boundary conditions as they were given.

    Attributes
    ----------
    conductivity, reaction, source
        a, c and f.
    boundary
        As algebra, with the values as they were given.
    unknown
        Which of them the parameter gives: ``"source"``, ``"conductivity"``, or ``"initial"`` for the equation at one
        time of a state whose initial value is unknown.
    """

    conductivity: Given | Field
    reaction: Given | Field
    source: Given | Field
    boundary: BoundaryConditions
    unknown: str = "source"


def is_zero(field: Any) -> bool:
    """Whether a field is the number zero, so that nothing needs to be evaluated."""
    return isinstance(field, Given) and np.isscalar(field.value) and float(field.value) == 0.0  # type: ignore[arg-type]
