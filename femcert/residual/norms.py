"""Norms of the state, ``(a grad v, grad v) + (c v, v) + <alpha v, v>``, and what it takes to integrate them exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import factorial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from skfem import Basis

from ..checks import Array, freeze_sparse
from ..errors import InputError, UncertifiedError
from ..linalg import Factorization
from ..mesh.assembly import stiffness_matrix
from ..mesh.elements import degree, mass_matrix
from ..mesh.geometry import bend
from ..mesh.sample import PolynomialFit, Sampler, polynomial_fit
from ..problem.base import Problem
from ..problem.boundary import Part
from ..problem.heat import HeatInitial
from ..problem.linear import LinearProblem
from ..problem.nonlinear import NonlinearProblem
from ..problem.polynomial import declared_error
from ..problem.strong import Field, Given, is_zero
from .edges import Edges
from .weak import check_norm

# Degrees that the rule has to spare, for coefficients that are no constants.
SPARE = 14

_made: WeakKeyDictionary[Problem, dict[str, StateNorm]] = WeakKeyDictionary()


@dataclass(frozen=True)
class StateNorm:
    """``‖v‖_V² = (a grad v, grad v) + (c v, v) + <alpha v, v>``.

    Attributes
    ----------
    matrix, factor
        Its matrix on all dofs, as the problem assembles it, and the factorized block of the free dofs.
    diffusion, reaction, robin
        a, c and the parts with alpha; a and c are None where only the matrix is known (forms of the user's own).
    """

    name: str
    basis: Basis
    matrix: Any
    factor: Factorization
    diffusion: Given | Field | None = None
    reaction: Given | Field | None = None
    robin: tuple[Part, ...] = ()

    def lift(self, values: Array, free: NDArray[np.int64]) -> Array:
        """The function (or columns) of least norm with the given values at the dofs that are not free."""
        result = values.copy()
        result[free] = 0.0
        if result.any():
            result[free] = -self.factor.solve((self.matrix @ result)[free])
        return result

    @cached_property
    def _bent(self) -> bool:
        """Whether some element is a quadrilateral that is no parallelogram."""
        return bool(bend(self.basis.mesh).any())

    @cached_property
    def _sampler(self) -> Sampler:
        fields = [f for f in (self.diffusion, self.reaction) if f is not None]
        plain = all(isinstance(f, Given) and not f.varies for f in fields)
        order = 2 * (degree(self.basis) + self._bent)
        return Sampler(self.basis.mesh, order if plain and not self._bent else order + SPARE)

    def square(self, v: Array) -> tuple[float, list[str]]:
        """An upper bound of ``‖v‖_V²`` of a finite-element function, and why it is none (nothing: it is one)."""
        if self.diffusion is None or self.reaction is None:
            return self._matrix_square(v), ["its form is a function of which assembly knows samples"]
        sampler, p = self._sampler, degree(self.basis)
        slopes = sampler.gradients(self.basis, v)
        # On quadrilaterals the gradient is adj(J)' (reference gradient) / det(J), degree p + 1 in each variable over 1.
        shape = 2 * (p + self._bent) if self.basis.mesh.t.shape[0] == 4 else 2 * (p - 1)
        stretch, doubts = self._stretch(self.diffusion, shape, self._bent)
        total = np.sum(stretch * sampler.integral(self.diffusion.at(sampler) * np.sum(slopes**2, axis=0)))
        if not is_zero(self.reaction):
            stretch, more = self._stretch(self.reaction, 2 * p + self._bent, False)
            values = sampler.values(self.basis, v)
            total += np.sum(stretch * sampler.integral(self.reaction.at(sampler) * values**2))
            doubts += more
        for part in self.robin:
            edges = Edges(self.basis, part.facets)
            alpha = edges.sample(part.coefficient, f"the Robin coefficient on {part.name!r}")
            total += np.sum(edges.integral(alpha * edges.trace(v)[0] ** 2))
            name = f"Robin coefficient on {part.name!r}"
            doubts += edges.doubts(part.coefficient, name, 2 * p)
            if declared_error(part.coefficient) > 0.0:
                doubts.append(f"the declared error of the {name} is not part of it")
        return float(total), doubts

    def _matrix_square(self, v: Array) -> float:
        square, size = float(v @ (self.matrix @ v)), float(np.abs(v) @ (abs(self.matrix) @ np.abs(v)))
        if square < -1e-12 * size:
            raise UncertifiedError("the operator is definite only on the free dofs: no energy norm; use norm='h1'")
        return max(square, 0.0) + 1e-14 * size

    def _stretch(self, field: Given | Field, shape: int, rational: bool) -> tuple[Array, list[str]]:
        """Factors on the elements by which quadrature may miss ``int field N`` (or ``int field N / det J``), N >= 0.

        N is a polynomial of degree `shape`. The rule integrates N times a Taylor polynomial of the rest exactly; if
        that is within a relative e of the rest everywhere, then the integral is at most (1 + e) / (1 - e) times its
        quadrature.
        """
        sampler = self._sampler
        spare = sampler.order - shape
        fit, doubts = _fitted(field, sampler)
        bend, spread = np.zeros(1), np.zeros(1)
        if rational:
            det = polynomial_fit(sampler, sampler.determinant, 1)
            spread = det.spread / det.mean
        if _is_exponential(field) and fit.degree:
            m = (spare // 2 if np.any(spread) else spare) // fit.degree
            spare -= m * fit.degree
            with np.errstate(over="ignore"):
                bend = np.exp(2.0 * fit.spread) * fit.spread ** (m + 1) / factorial(m + 1)
        else:
            spare -= fit.degree
        off = (1.0 + bend) * (1.0 + spread ** max(spare + 1, 0)) - 1.0
        if spare < 0 or not np.all(off < 0.5):
            return np.ones(1), [*doubts, "a coefficient or a map varies too much on an element for exact quadrature"]
        missed = field.missed(self.basis.mesh)
        if not missed.any():
            return (1.0 + off) / (1.0 - off), doubts
        least = fit.mean - fit.spread
        if np.any((missed > 0.0) & (least <= 0.0)):
            return np.ones(1), [*doubts, "a coefficient may vanish where its declared error is positive"]
        return (1.0 + off) / (1.0 - off) * (1.0 + missed / np.where(missed > 0.0, least, 1.0)), doubts

    def maxima(self) -> tuple[Array, Array, list[str]]:
        """Upper bounds of a and c on the elements, and why they are none."""
        assert self.diffusion is not None
        assert self.reaction is not None
        a, doubts = _largest(self.diffusion, self._sampler)
        c, more = _largest(self.reaction, self._sampler)
        return a, c, doubts + more


def _fitted(field: Given | Field, sampler: Sampler) -> tuple[PolynomialFit, list[str]]:
    """A field as a polynomial (the logarithm of an exponential), and why it is none that is known."""
    doubt = field.doubt_on(sampler.mesh)
    if not doubt:
        return field.fit(sampler.mesh), []
    return polynomial_fit(sampler, field.at(sampler).max(axis=1, keepdims=True), 0), [doubt]


def _largest(field: Given | Field, sampler: Sampler) -> tuple[Array, list[str]]:
    fit, doubts = _fitted(field, sampler)
    largest = fit.mean + fit.spread
    if _is_exponential(field):
        with np.errstate(over="ignore"):
            largest = np.exp(largest)
    return largest + field.missed(sampler.mesh), doubts


def _is_exponential(field: Given | Field) -> bool:
    return isinstance(field, Field) and field.exponential


def state_norm(problem: Problem, norm: str, *, state: Any = None, parameter: Any = None) -> StateNorm:
    """The norm ``"energy"`` or ``"h1"`` of the states of a problem, with its factorization (made once where it can be).

    ``"h1"``: a = c = 1. ``"energy"``: a, c and alpha of the equation; for forms of the user's own, which have none, the
    norm of the operator, where `problem.definite` says that it has one. For a coefficient problem, with a(`parameter`).

    Raises
    ------
    UncertifiedError
        The operator is not said to be symmetric positive definite: there is no energy.
    """
    check_norm(norm)
    if not isinstance(problem, (LinearProblem, NonlinearProblem)) or not problem.has_state:
        raise InputError(f"a {type(problem).__name__} has no state; expected a problem with one")
    if norm == "h1":
        return _kept(problem, norm, _h1)
    if not problem.definite:
        raise UncertifiedError("the operator is not said to be definite, so there is no energy norm; use norm='h1'")
    if isinstance(problem, LinearProblem):
        return _kept(problem, norm, _linear_energy)
    if parameter is None:
        raise InputError("the energy norm of a nonlinear problem depends on the parameter; expected parameter=...")
    return _nonlinear_energy(problem, state, problem.check_parameter(parameter))


def _kept(problem: Problem, norm: str, make: Callable[[Any], StateNorm]) -> StateNorm:
    norms = _made.setdefault(problem, {})
    if norm not in norms:
        norms[norm] = make(problem)
    return norms[norm]


def _h1(problem: Problem) -> StateNorm:
    K = freeze_sparse(stiffness_matrix(problem.basis) + mass_matrix(problem.basis))
    one = Given(1.0, "one")
    return StateNorm("H1 norm", problem.basis, K, _factor(problem, K, "H1 norm"), one, one)


def _factor(problem: Problem, matrix: Any, name: str) -> Factorization:
    return Factorization(matrix[problem.free][:, problem.free], definite=True, name=f"matrix of the {name}")


def _linear_energy(problem: LinearProblem) -> StateNorm:
    A, basis, name = problem.operator, problem.basis, "energy norm"
    heat = isinstance(problem, HeatInitial)
    zero = np.zeros(basis.N if heat else problem.parameters.basis.N)
    equation = problem.strong(zero) if problem.time is None else problem.time.strong(zero)
    if equation is None:
        return StateNorm("norm of the operator", basis, A, problem.factor)
    energy = problem.energy()
    A = energy.matrix
    # The factorization of the problem, where it is that of the energy.
    factor = energy.factor or _factor(problem, A, name)
    return StateNorm(name, basis, A, factor, equation.conductivity, equation.reaction, _robin(problem))


def _nonlinear_energy(problem: NonlinearProblem, state: Any, parameter: Array) -> StateNorm:
    basis = problem.basis
    u = problem.boundary.values if state is None else state
    A = problem.derivatives(u, parameter)[0]
    fixed = problem.linear_in_state
    factor = problem.linearize(parameter).factor if fixed else _factor(problem, A, "derivative")
    equation = problem.strong(parameter)
    if equation is None:
        return StateNorm("norm of the derivative", basis, A, factor)
    return StateNorm("energy norm", basis, A, factor, equation.conductivity, equation.reaction, _robin(problem))


def _robin(problem: Problem) -> tuple[Part, ...]:
    return tuple(part for part in problem.boundary.natural if callable(part.coefficient) or part.coefficient != 0.0)
