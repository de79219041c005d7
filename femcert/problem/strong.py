"""The strong form of a model problem as data that can be sampled with quadrature of any order.

A discrete operator uses its coefficients at the points of one rule only. A bound over the continuous space needs them
anywhere, so that its integrals are exact, or known not to be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skfem import Basis

from ..checks import Array
from ..errors import InputError
from ..mesh.elements import degree
from ..mesh.sample import (
    MOST_ORDER,
    Points,
    PolynomialFit,
    Sampler,
    norming_constant,
    offers,
    polynomial_fit,
    values_at,
)
from .boundary import BoundaryConditions
from .coefficients import (
    Coefficient,
    at_points,
    check_sign,
    largest_error,
    polynomial_degree,
    sampled_at,
    unknown_parts,
    varies,
)

# Samples that are farther from polynomials than this, relative to the largest, contradict a declared degree.
CONTRADICTION = 1e-8
UNKNOWNS = ("source", "conductivity", "reaction", "initial")


@dataclass(frozen=True)
class Given:
    """A coefficient as the user gave it: a number, a function, values per element, or a table by subdomain."""

    value: Coefficient
    name: str
    sign: str = "any"

    exponential = False

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

    def at_points(self, points: Points) -> Array:
        """Values, ``(points,)``."""
        return at_points(self.value, points, self.name)

    def gradient_at(self, points: Points) -> Array | None:
        """The gradient, ``(dimension, points)``; None of a function without one, and where the value may jump."""
        value: Any = self.value
        if offers(value, "gradient"):
            return values_at(value.gradient, points.x, f"{self.name}.gradient", vector=True)
        jumps = isinstance(value, Mapping) or np.ndim(value) > 0
        return None if callable(value) or jumps else np.zeros(points.x.shape)

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

    def on_pieces(self, mesh: Any, parents: NDArray[np.int64]) -> Coefficient:
        """The same on the pieces of the elements of a mesh, `parents[i]` the element that piece i is of."""
        if self.varies:
            return self.value
        return np.asarray(np.broadcast_to(self.at(Sampler(mesh, 0))[:, 0], mesh.nelements)[parents])

    def _enough(self, mesh: Any) -> Sampler:
        """Points that determine a polynomial of its degree."""
        assert self.degree is not None
        return Sampler(mesh, 2 * self.degree + 2)

    def _samples(self, sampler: Sampler) -> Array:
        x = sampler.x if self.varies else np.zeros((1, sampler.mesh.nelements, 1))
        return sampled_at(self.value, sampler.mesh, x, self.name, sign=self.sign)


ZERO = Given(0.0, "reaction")


@dataclass(frozen=True)
class Interpolant:
    """A finite-element function.

    Attributes
    ----------
    sign
        Which values `at` accepts: ``"positive"``, ``"nonnegative"`` or ``"any"``.
    """

    basis: Basis
    dofs: Array
    sign: str = "any"

    error = 0.0
    exponential = False
    # The value of the finite-element function at which the field is 1.
    one = 1.0

    @property
    def degree(self) -> int:
        """Of the polynomials that it is on the elements; of an exponential, the exponent."""
        return degree(self.basis)

    @property
    def varies(self) -> bool:
        """Whether it may vary within an element."""
        return self.degree > 0

    def doubt_on(self, mesh: Any) -> str:
        """None."""
        return ""

    def on_pieces(self, mesh: Any, parents: NDArray[np.int64]) -> Coefficient | None:
        """None: it is known by its dofs on one mesh."""
        return None

    def fit(self, mesh: Any) -> PolynomialFit:
        """The polynomials on the elements; of an exponential, the exponent."""
        sampler = Sampler(mesh, 2 * self.degree + 2)
        return polynomial_fit(sampler, sampler.values(self.basis, self.dofs), self.degree)

    def missed(self, mesh: Any) -> Array:
        """Nothing."""
        return np.zeros(mesh.nelements)

    def of(self, value: Any, slope: Any, exp: Callable[[Any], Any] = np.exp) -> tuple[Any, Any]:
        """The field and its gradient from those of the finite-element function (arrays, or tensors with their `exp`).

        The gradient is None if `slope` is.
        """
        return value, slope

    def at(self, sampler: Sampler) -> Array:
        """Values at the points."""
        with np.errstate(over="ignore", under="ignore"):
            values, _ = self.of(sampler.values(self.basis, self.dofs), None)
        check_sign(values, "the conductivity" if self.sign == "positive" else "the field", self.sign)
        return np.asarray(values)

    def at_points(self, points: Points) -> Array:
        """Values, ``(points,)``."""
        return np.asarray(self.of(points.values(self.basis, self.dofs), None)[0])

    def gradient_at(self, points: Points) -> Array | None:
        """The gradient inside of the elements, ``(dimension, points)``; None of constants on them, which jump."""
        if not self.varies:
            return None
        slope = points.gradients(self.basis, self.dofs)
        return np.asarray(self.of(points.values(self.basis, self.dofs), slope)[1])


@dataclass(frozen=True)
class Exponential(Interpolant):
    """The exponential of a finite-element function."""

    sign: str = "positive"

    exponential = True
    one = 0.0

    def of(self, value: Any, slope: Any, exp: Callable[[Any], Any] = np.exp) -> tuple[Any, Any]:
        """See `Interpolant.of`."""
        field = exp(value)
        return field, None if slope is None else field * slope


# What stands in the slots of a strong form.
Field = Given | Interpolant


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
        Which of them the parameter gives, as an `Interpolant` or `Exponential` of its dof values: ``"source"`` (then
        moving the parameter by a function moves f by it), ``"conductivity"``, ``"reaction"``, or ``"initial"`` for the
        equation at one time of a state whose initial value is unknown.
    """

    conductivity: Field
    reaction: Field
    source: Field
    boundary: BoundaryConditions
    unknown: str = "source"

    def __post_init__(self) -> None:
        for name in ("conductivity", "reaction", "source"):
            field = getattr(self, name)
            if not isinstance(field, (Given, Interpolant)):
                raise InputError(f"{name} is a {type(field).__name__}; expected fc.Given(...) or fc.Interpolant(...)")
        if not isinstance(self.boundary, BoundaryConditions):
            raise InputError(f"boundary is a {type(self.boundary).__name__}; expected the problem's own, self.boundary")
        if self.unknown not in UNKNOWNS:
            raise InputError(f"unknown is {self.unknown!r}; expected one of {', '.join(map(repr, UNKNOWNS))}")
        if self.unknown != "initial" and isinstance(getattr(self, self.unknown), Given):
            raise InputError(f"unknown is {self.unknown!r}, which is given; expected the slot of the parameter")

    def residual_at(self, u: Any, points: Points) -> Array | None:
        """``-div(a grad u) + c u - f`` of a function u, ``(points,)``; None where `divergence_at` is None."""
        r = self.divergence_at(u, points)
        if r is None:
            return None
        if not is_zero(self.reaction):
            r = r + self.reaction.at_points(points) * values_at(u, points.x, "state")
        return np.asarray(r - self.source.at_points(points))

    def divergence_at(self, u: Any, points: Points) -> Array | None:
        """``-div(a grad u) = -a laplacian(u) - grad(a) . grad(u)`` of a function u, ``(points,)``.

        None where u offers no ``laplacian(x)``, where a jumps or its gradient is not known, and where a varies and u
        offers no ``gradient(x)``.
        """
        a = self.conductivity
        slope = a.gradient_at(points)
        if slope is None or not offers(u, "laplacian") or (a.varies and not offers(u, "gradient")):
            return None
        r = -a.at_points(points) * values_at(u.laplacian, points.x, "state.laplacian")
        if a.varies:
            r -= (slope * values_at(u.gradient, points.x, "state.gradient", vector=True)).sum(axis=0)
        return r


def differences(field: Field, points: Points, step: float | Array) -> Array:
    """The gradient of a field inside of the cells, ``(dimension, points)``, by central differences of its values.

    Of order four; `step` is a length, or one for each point. Zero where the field does not vary within an element.
    """
    if not field.varies:
        return np.zeros(points.x.shape)

    def at(move: Array) -> Array:
        return field.at_points(points.moved(move[:, None] * step))

    moves = np.eye(len(points.x))
    return np.array([(8.0 * (at(e) - at(-e)) - (at(2.0 * e) - at(-2.0 * e))) / (12.0 * step) for e in moves])


def is_zero(field: Any) -> bool:
    """Whether a field is the number zero, so that nothing needs to be evaluated."""
    if isinstance(field, Interpolant):
        return not (field.exponential or field.dofs.any())
    return isinstance(field, Given) and np.isscalar(field.value) and float(field.value) == 0.0  # type: ignore[arg-type]
