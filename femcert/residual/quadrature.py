"""Which quadrature integrates a residual exactly, and how far off it can be where it does not.

The integrands of a dual-norm bound are polynomials on the reference element, divided by the conductivity or by the
Jacobian of a quadrilateral. With ``a = mean (1 + s)``, ``|s| <= sigma < 1``, the reciprocal is a geometric series; a
rule of order m sums its first n terms exactly, and the rest is known: a relative error of at most
``2 sigma^(n+1) (1 + sigma) / (1 - sigma)`` for a nonnegative integrand and positive weights. For ``a = exp(q)`` it is
the Taylor series of the exponential.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np

from ..checks import Array
from ..mesh.elements import degree
from ..mesh.geometry import bend
from ..mesh.sample import MOST_ORDER, Sampler
from ..problem.strong import Field, Given, Interpolant, StrongForm, is_zero

# Remainders below this are not worth more points: relative to a squared error, and relative to a squared state; on
# lines, where points cost little, rounding.
SMALL, SMALL_SEPARATE, SMALL_ON_LINES = 1e-6, 1e-12, 1e-15
# Where the degree of a function is not known: the one that is guessed, and the order of the rule that looks for its
# minimum, with points next to the corners.
GUESSED_DEGREE, SAMPLES, INSIDE = 4, 12, 1e-6


@dataclass(frozen=True)
class FieldShape:
    """What a field looks like on the reference element.

    Attributes
    ----------
    degree
        Of the polynomial (for an exponential, of the exponent); None: not known.
    spread
        For each element a bound of ``|f - mean| / |mean|``, for an exponential of ``|exponent - mean|``.
    low, high
        For each element bounds of the polynomial or exponential (0 where none are needed; where the degree is not known
        the least and the largest sample).
    missed
        For each element a bound of the distance of the field from the polynomial.
    exponential
        Whether the field is the exponential of a polynomial.
    doubt
        Why the degree is not known.
    """

    degree: int | None
    spread: Array
    low: Array
    high: Array
    missed: Array
    exponential: bool = False
    doubt: str = ""

    @property
    def least(self) -> Array:
        """For each element a lower bound of the field, at least zero."""
        return np.maximum(self.low - self.missed, 0.0)


def maximum_of(field: Field, mesh: Any) -> tuple[Array, str]:
    """For each element an upper bound of a field, and why it is none."""
    if isinstance(field, Interpolant) and not field.exponential:
        fit = field.fit(mesh)
        return np.asarray(fit.mean + fit.spread), ""
    shape = shape_of(field, mesh)
    return shape.high + shape.missed, shape.doubt


def shape_of(field: Field, mesh: Any) -> FieldShape:
    """Degree, spread and minimum of a field, from what it is; nothing but a sampled minimum of an unknown function."""
    flat = np.zeros(mesh.nelements)
    if isinstance(field, Interpolant) and not (field.exponential or field.sign == "positive"):
        return FieldShape(field.degree, flat, flat, flat, flat)
    if isinstance(field, Given) and not field.varies:
        value = field.at(Sampler(mesh, 0))[:, 0]
        return FieldShape(0, flat, value, value, flat)
    doubt = field.doubt_on(mesh)
    if doubt:
        samples = field.at(_samples(mesh))
        return FieldShape(None, flat, samples.min(axis=1), samples.max(axis=1), flat, doubt=doubt)
    fit, missed = field.fit(mesh), field.missed(mesh)
    size, spread = np.abs(fit.mean), fit.spread
    if field.exponential:
        # The exponential of a constant is one too.
        with np.errstate(over="ignore"):
            low, high = np.exp(fit.mean - spread), np.exp(fit.mean + spread)
        return FieldShape(fit.degree, spread, low, high, missed, fit.degree > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(spread > 0.0, spread / size, 0.0)
    return FieldShape(fit.degree, relative, fit.mean - spread, fit.mean + spread, missed)


def _samples(mesh: Any) -> Sampler:
    """Points of a rule, and points next to the corners: whatever cuts an element cuts off a corner."""
    sampler = Sampler(mesh, SAMPLES)
    corners = np.asarray(mesh.elem.refdom.p)
    centre = corners.mean(axis=1, keepdims=True)
    return sampler.at_points(np.hstack([sampler.X, corners + INSIDE * (centre - corners)]))


@dataclass(frozen=True)
class Quadrature:
    """A quadrature order with the relative error it leaves on each element.

    Attributes
    ----------
    order
        Of the rule.
    remainder
        For each element, relative to integrals of nonnegative parts; infinite where nothing is known.
    exact
        Whether all integrals are exact, or their remainders known.
    separate
        Whether the remainder refers to the two terms of a difference rather than to the difference (exponentials).
    signed
        Bound of the remainder of integrals of products, which have no sign: zero where they are polynomials.
    least_conductivity, least_reaction
        Lower bounds, on each element, of the weights of the norm.
    doubt
        Why not all integrals are exact.
    missed
        On each element, how far conductivity, reaction and source may be from the polynomials that were integrated.
    """

    order: int
    remainder: Array
    exact: bool
    separate: bool
    signed: float
    least_conductivity: Array
    least_reaction: Array
    doubt: str = ""
    missed: tuple[Array, Array, Array] | None = None

    @property
    def words(self) -> str:
        """For the record."""
        if not self.exact:
            return f"quadrature not exact: {self.doubt}"
        largest = float(self.remainder.max(initial=0.0))
        return "quadrature exact" if largest == 0.0 else f"quadrature remainder {largest:.1g} included"


def choose_rule(
    equation: StrongForm, basis: Any, *, energy: bool, enriched: int | None = None, light: bool = False
) -> Quadrature:
    """The order at which all integrals of a bound are exact, or their remainders negligible where that can be had.

    Parameters
    ----------
    enriched
        The degree of the functions that are split off a residual; default: that of the state.
    light
        Only what an upper bound without bubbles on triangles needs.
    """
    mesh = basis.mesh
    a, c, f = (shape_of(field, mesh) for field in (equation.conductivity, equation.reaction, equation.source))
    k, vertices = enriched or degree(basis), mesh.t.shape[0]
    doubts = [s.doubt for s in (a, c, f) if s.doubt]
    if c.exponential or f.exponential:
        doubts.append("the reaction or the source is an exponential")
    d_a, d_c, d_f = (GUESSED_DEGREE if s.degree is None else s.degree for s in (a, c, f))
    data = max(d_f, d_c + k if c.degree != 0 or not is_zero(equation.reaction) else 0, 0 if energy else k)
    in_flux = 0 if a.exponential else d_a
    # Bubbles that match the source have degree k + 1, curls of stream functions k.
    numerator = max(2 * max(k if light or not data else k + 1, in_flux + k - 1), 2 * data, data + k)
    if vertices == 2:
        # There the flux is an antiderivative of the source.
        numerator = max(numerator, 2 * (data + 1))
    curved, bent = False, np.zeros(1)
    spread, step = a.spread if energy or a.exponential else np.zeros(mesh.nelements), d_a
    if vertices == 4:
        bent = bend(mesh)
        curved = bool(bent.max() > 0.0)
        numerator = 2 * max(k + 1 + curved, in_flux + k + curved, data + curved)
        if a.exponential and curved:
            doubts.append("the conductivity is an exponential on quadrilaterals that are no parallelograms")
        spread, step = (1.0 + spread) * (1.0 + bent) - 1.0, step + curved
    if not light:
        # Test functions of one degree more than the state, for the lower bound.
        squares = 0 if energy and is_zero(equation.reaction) else 2 * k + 2 + (d_c if energy else 0)
        slope = k if vertices < 4 else k + 1 + curved
        numerator = max(numerator, in_flux + 2 * slope, data + k + 1 + curved, squares + curved)
    rational = a.exponential or (vertices == 4 and curved)
    varying = bool(spread.max(initial=0.0) > 0.0)
    if a.exponential and not energy:
        spread = 2.0 * spread
    if a.exponential:
        numerator += 2
    order = min(numerator, MOST_ORDER[vertices])
    small = SMALL_ON_LINES if vertices == 2 else SMALL_SEPARATE if rational else SMALL
    while varying and order < MOST_ORDER[vertices] and _remainder(order, numerator, step, spread, a).max() > small:
        order += 1
    left = _remainder(order, numerator, step, spread, a) if varying else np.zeros(mesh.nelements)
    if order < numerator:
        doubts.append(f"it takes a rule of order {numerator}, and there are rules up to {order}")
    elif not np.all(np.isfinite(left)):
        doubts.append("a coefficient varies too much on an element")
    if energy and np.any((c.missed > 0.0) & (c.least == 0.0)):
        doubts.append("the reaction may vanish where its declared error is positive")
    one = np.ones(1)
    least = (a.least, c.least) if energy else (one, one)
    if not np.all(least[0] > 0.0):
        # Too much for a proof; half a sampled minimum serves for an estimate.
        doubts.append("the conductivity may vanish on an element")
        sampled = equation.conductivity.at(_samples(mesh)).min(axis=1)
        least = np.where(a.least > 0.0, a.least, 0.5 * sampled), c.least
    left = np.where(np.isfinite(left), left, 0.0)
    signed = 0.0
    if rational:
        # Products are divided by the Jacobian only, not by the conductivity.
        product = left if a.exponential else _remainder(order, numerator, 1, bent, a)
        signed = float(np.where(np.isfinite(product), product, 0.0).max(initial=0.0))
    missed = None
    if a.missed.any() or c.missed.any() or f.missed.any():
        missed = a.missed, c.missed, f.missed
    doubt = "; ".join(dict.fromkeys(doubts))
    return Quadrature(order, left, not doubts, a.exponential, signed, *least, doubt, missed)


def _remainder(order: int, numerator: int, step: int, spread: Array, a: FieldShape) -> Array:
    n = (order - numerator) // max(step, 1)
    if n < 0:
        return np.full(len(spread), np.inf)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if a.exponential:
            return np.asarray(2.0 * np.exp(2.0 * spread) * spread ** (n + 1) / float(factorial(n + 1)))
        series = 2.0 * spread ** (n + 1) * (1.0 + spread) / (1.0 - spread)
        return np.where(spread < 1.0, series, np.inf)
