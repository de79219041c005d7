"""The weak residual of an elliptic equation as a functional on the continuous space, and the norm it is measured in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from skfem import Basis, FacetBasis

from ..checks import Array
from ..errors import InputError
from ..mesh.elements import degree
from ..mesh.sample import Sampler, dot
from ..problem.boundary import Part, on_facets
from ..problem.polynomial import declared_error, known_degree, unknown
from ..problem.strong import StrongForm, is_zero

# Values, gradients and values on the natural boundary of a function.
Samples = tuple[Array, Array, Array]

NORMS = ("energy", "h1")
# Least order of the rule on boundary facets: for squares of products with test functions.
FACET_ORDER = 14


class Traces:
    """Quadrature on the boundary facets that carry no Dirichlet condition, with the natural data there.

    Attributes
    ----------
    basis
        The state's basis on these facets, None if there are none.
    flux, coefficient
        ``g`` and ``alpha`` of ``a du/dn + alpha u = g``, ``(facets, points)``.
    doubt
        Why their integrals are not exact; empty where both are known polynomials along the facets.
    """

    def __init__(self, equation: StrongForm, basis: Basis, order: int) -> None:
        mesh, conditions = basis.mesh, equation.boundary
        essential = [part.facets for part in conditions.dirichlet]
        outer = mesh.boundary_facets()
        self.essential: NDArray[np.int64] = np.unique(np.concatenate(essential)) if essential else outer[:0]
        self.facets = np.setdiff1d(outer, self.essential)
        self.basis = None
        self.doubt = "; ".join(_doubts(conditions.natural, mesh.dim()))
        given = [value for part in conditions.natural for value in (part.value, part.coefficient)]
        self._degree = max((known_degree(value) or 0 for value in given), default=0)
        order = max(order, FACET_ORDER, 2 * (self._degree + degree(basis) + 1))
        if not len(self.facets):
            self.flux = self.coefficient = np.zeros((0, 1))
            return
        self.basis = FacetBasis(mesh, basis.elem, facets=self.facets, intorder=order)
        self.flux, self.coefficient = np.zeros(self.basis.dx.shape), np.zeros(self.basis.dx.shape)
        for part in conditions.natural:
            rows = np.searchsorted(self.facets, part.facets)
            on_part = FacetBasis(mesh, basis.elem, facets=part.facets, intorder=order)
            self.flux[rows] = on_facets(part.value, on_part, f"the flux on {part.name!r}")
            self.coefficient[rows] = on_facets(part.coefficient, on_part, f"the Robin coefficient on {part.name!r}")

    @property
    def exact(self) -> bool:
        """Whether their integrals are exact."""
        return not self.doubt

    def least_coefficient(self) -> Array:
        """On each facet a lower bound of alpha (where it is a known polynomial, see `doubt`)."""
        alpha = self.coefficient
        if alpha.shape[1] == 1 or self.basis is None or self.doubt:
            return np.asarray(alpha.min(axis=1))
        # A Legendre polynomial is at most 1 in absolute value.
        c = alpha @ np.linalg.pinv(np.polynomial.legendre.legvander(2.0 * self.basis.X[0] - 1.0, self._degree).T)
        least = np.maximum(c[:, 0] - np.abs(c[:, 1:]).sum(axis=1), 0.0)
        return np.where(np.ptp(alpha, axis=1) == 0.0, alpha[:, 0], least)

    def values(self, dofs: Array) -> Array:
        """A finite-element function at the points."""
        if self.basis is None:
            return np.zeros((0, 1))
        return np.asarray(self.basis.interpolate(dofs))

    def moments(self, density: Array, size: int) -> Array:
        """``<density, phi_i>`` for all basis functions."""
        result = np.zeros(size)
        if self.basis is not None:
            for i in range(self.basis.Nbfun):
                value = np.broadcast_to(np.asarray(self.basis.basis[i][0]), density.shape)
                part = np.sum(value * density * self.basis.dx, axis=1)
                result += np.bincount(self.basis.element_dofs[i], part, minlength=size)
        return result


@dataclass(frozen=True)
class Norm:
    """``‖v‖² = (A grad v, grad v) + (C v, v) + <B v, v>``, sampled.

    Attributes
    ----------
    A, C
        At quadrature points ``(elements, 1 or points)``.
    B
        At the points of the natural boundary.
    """

    A: Array
    C: Array
    B: Array


@dataclass(frozen=True)
class WeakResidual:
    """``<r, v> = (source, v) + <natural, v> - (flux, grad v)`` for v in H1 vanishing on the Dirichlet boundary.

    Attributes
    ----------
    basis
        Of the state.
    sampler, traces
        Quadrature on elements and on the natural boundary.
    source, flux, natural
        Samples: ``f - c u``, ``a grad u``, and ``g - alpha u`` on the natural boundary.
    norm
        The norm of the test functions.
    terms
        ``f, c u, g, alpha u``: what source and natural may be small differences of.
    """

    basis: Basis
    sampler: Sampler
    traces: Traces
    source: Array
    flux: Array
    natural: Array
    norm: Norm
    terms: tuple[Array, Array, Array, Array]

    def on_basis(self) -> Array:
        """``<r, phi_i>`` for the basis functions of the state, Dirichlet dofs included."""
        inside = self.sampler.moments(self.basis, self.source, -self.flux)
        return inside + self.traces.moments(self.natural, self.basis.N)

    def without(self, w: Array) -> WeakResidual:
        """``r - (w, .)_V`` for a finite-element function w."""
        return self.without_samples(self.samples(w))

    def without_samples(self, function: Samples) -> WeakResidual:
        """``r - (w, .)_V`` for a function given by samples of its values, gradients and boundary values."""
        value, slope, trace = function
        return replace(
            self,
            source=self.source - self.norm.C * value if self.norm.C.any() else self.source,
            flux=self.flux + self.norm.A * slope,
            natural=self.natural - self.norm.B * trace if self.norm.B.any() else self.natural,
        )

    def apply(self, value: Array, slope: Array, trace: Array) -> float:
        """``<r, v>`` for a function given by samples of its values, gradients and boundary values."""
        inside = self.sampler.integral(self.source * value - dot(self.flux, slope)).sum()
        return float(inside + self._boundary_integral(self.natural * trace))

    def magnitude(self, value: Array, slope: Array, trace: Array) -> float:
        """What `apply` would be if nothing cancelled: rounding is relative to that."""
        f, cu, g, alpha_u = map(np.abs, self.terms)
        along = np.sqrt(dot(self.flux, self.flux) * dot(slope, slope))
        inside = self.sampler.integral((f + cu) * np.abs(value) + along).sum()
        return float(inside + self._boundary_integral((g + alpha_u) * np.abs(trace)))

    @cached_property
    def size(self) -> float:
        """``‖A^-1/2 flux‖`` and what reaction and Robin terms add to it: what this is a small difference of."""
        square = self.sampler.integral(dot(self.flux, self.flux) / self.norm.A).sum()
        _, cu, _, alpha_u = self.terms
        if cu.any():
            square += self.sampler.integral(cu**2 / np.where(self.norm.C > 0.0, self.norm.C, 1.0)).sum()
        if self.traces.basis is not None and self.norm.B.any():
            square += self._boundary_integral(alpha_u**2 / np.where(self.norm.B > 0.0, self.norm.B, 1.0))
        return float(np.sqrt(square))

    def inner(self, first: Samples, second: Samples) -> float:
        """``(v, w)_V`` for two functions given by samples."""
        (v, dv, v_b), (w, dw, w_b) = first, second
        inside = self.norm.A * dot(dv, dw) + self.norm.C * v * w
        return float(self.sampler.integral(inside).sum() + self._boundary_integral(self.norm.B * v_b * w_b))

    def samples(self, dofs: Array) -> Samples:
        """Values, gradients and boundary values of a finite-element function of the state's space."""
        return (
            self.sampler.values(self.basis, dofs),
            self.sampler.gradients(self.basis, dofs),
            self.traces.values(dofs),
        )

    def _boundary_integral(self, density: Array) -> float:
        return 0.0 if self.traces.basis is None else float(np.sum(density * self.traces.basis.dx))


def _doubts(parts: tuple[Part, ...], dimension: int) -> list[str]:
    """Why integrals of natural data are not exact."""
    doubts = []
    for part in parts:
        for what, value in (("flux", part.value), ("Robin coefficient", part.coefficient)):
            name = f"{what} on {part.name!r}"
            # The facets of a line are points.
            if dimension > 1 and known_degree(value) is None:
                doubts.append(unknown(name))
            elif declared_error(value) > 0.0:
                doubts.append(f"the declared error of the {name} is not part of it")
    return doubts


def check_norm(norm: str) -> str:
    """`norm` if it is one of those known."""
    if norm not in NORMS:
        raise InputError(f"norm is {norm!r}; expected one of {', '.join(map(repr, NORMS))}")
    return norm


def weak_residual(
    equation: StrongForm, basis: Basis, state: Array, sampler: Sampler, traces: Traces, *, norm: str
) -> WeakResidual:
    """The residual of a state (dof values) in an equation."""
    a = equation.conductivity.at(sampler)
    f = equation.source.at(sampler)
    slopes = sampler.gradients(basis, state)
    c = cu = np.zeros((1, 1))
    if not is_zero(equation.reaction):
        c = equation.reaction.at(sampler)
        cu = c * sampler.values(basis, state)
    alpha_u = traces.coefficient * traces.values(state)
    one = np.ones((1, 1))
    weights = Norm(a, c, traces.coefficient) if norm == "energy" else Norm(one, one, np.zeros((1, 1)))
    return WeakResidual(
        basis=basis,
        sampler=sampler,
        traces=traces,
        source=f - cu if cu.any() else f,
        flux=a * slopes,
        natural=traces.flux - alpha_u,
        norm=weights,
        terms=(f, cu, traces.flux, alpha_u),
    )
