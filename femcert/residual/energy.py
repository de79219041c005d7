"""Norms of the state, ``(a grad v, grad v) + (c v, v) + <alpha v, v>``, and what it takes to integrate them exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import factorial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from skfem import Basis

from ..checks import Array, freeze_sparse, required
from ..errors import UncertifiedError
from ..linalg import Factorization
from ..mesh.assembly import stiffness_matrix
from ..mesh.elements import degree, mass_matrix
from ..mesh.geometry import bend
from ..mesh.sample import Sampler, polynomial_fit
from ..problem.base import Problem
from ..problem.boundary import Part
from ..problem.polynomial import declared_error
from ..problem.states import Energy, StateEquation, strong_form
from ..problem.strong import Field, Given, is_zero
from .edges import Edges
from .quadrature import maximum_of, shape_of
from .weak import check_norm

# Degrees that the rule has to spare, for coefficients that are no constants.
SPARE = 14

_made: WeakKeyDictionary[StateEquation, dict[str, tuple[Any, Factorization]]] = WeakKeyDictionary()


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
    diffusion: Field | None = None
    reaction: Field | None = None
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
        shapes = [shape_of(f, self.basis.mesh) for f in (self.diffusion, self.reaction) if f is not None]
        plain = all(shape.degree == 0 for shape in shapes)
        order = 2 * (degree(self.basis) + self._bent)
        return Sampler(self.basis.mesh, order if plain and not self._bent else order + SPARE)

    def square(self, v: Array) -> tuple[float, list[str]]:
        """An upper bound of ``‖v‖_V²`` of a finite-element function, and why it is none (nothing: it is one)."""
        if self.diffusion is None or self.reaction is None:
            return self._matrix_square(v), ["its form is a function, evaluated at the points of assembly only"]
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

    def _stretch(self, field: Field, shape: int, rational: bool) -> tuple[Array, list[str]]:
        """Factors on the elements by which quadrature may miss ``int field N`` (or ``int field N / det J``), N >= 0.

        N is a polynomial of degree `shape`. The rule integrates N times a Taylor polynomial of the rest exactly; if
        that is within a relative e of the rest everywhere, then the integral is at most (1 + e) / (1 - e) times its
        quadrature.
        """
        sampler, form = self._sampler, shape_of(field, self.basis.mesh)
        doubts = [form.doubt] if form.doubt else []
        spare, step = sampler.order - shape, form.degree or 0
        series, spread = np.zeros(1), np.zeros(1)
        if rational:
            det = polynomial_fit(sampler, sampler.determinant, 1)
            spread = det.spread / det.mean
        if form.exponential:
            m = (spare // 2 if np.any(spread) else spare) // step
            spare -= m * step
            with np.errstate(over="ignore"):
                series = np.exp(2.0 * form.spread) * form.spread ** (m + 1) / factorial(m + 1)
        else:
            spare -= step
        off = (1.0 + series) * (1.0 + spread ** max(spare + 1, 0)) - 1.0
        if spare < 0 or not np.all(off < 0.5):
            return np.ones(1), [*doubts, "a coefficient or a map varies too much on an element for exact quadrature"]
        if not form.missed.any():
            return (1.0 + off) / (1.0 - off), doubts
        if np.any((form.missed > 0.0) & (form.low <= 0.0)):
            return np.ones(1), [*doubts, "a coefficient may vanish where its declared error is positive"]
        return (1.0 + off) / (1.0 - off) * (1.0 + form.missed / np.where(form.missed > 0.0, form.low, 1.0)), doubts

    def maxima(self) -> tuple[Array, Array, list[str]]:
        """Upper bounds of a and c on the elements, and why they are none."""
        assert self.diffusion is not None
        assert self.reaction is not None
        (a, doubt), (c, other) = (maximum_of(field, self.basis.mesh) for field in (self.diffusion, self.reaction))
        return a, c, [each for each in (doubt, other) if each]


def state_equation(problem: Problem, who: str) -> StateEquation:
    """The state equation of a problem that has one.

    Raises
    ------
    UncertifiedError
        It has none, or several.
    """
    return required(problem.states[0] if len(problem.states) == 1 else None, who, "one state equation", problem)


def state_norm(problem: Problem, norm: str, *, state: Any = None, parameter: Any = None) -> StateNorm:
    """The norm ``"energy"`` or ``"h1"`` of the states of a problem, with its factorization (made once where it can be).

    ``"h1"``: a = c = 1. ``"energy"``: a, c and alpha of the equation, at `parameter` where they depend on it; for forms
    of the user's own, which have none, the norm of the operator, where the problem says that it has one.

    Raises
    ------
    UncertifiedError
        The operator is not said to be symmetric positive definite: there is no energy.
    """
    check_norm(norm)
    equation = state_equation(problem, "a norm of states")
    if norm == "h1":
        one = Given(1.0, "one")
        return StateNorm("H1 norm", equation.basis, *_h1(equation), one, one)
    energy = equation.energy(parameter, state)
    if energy is None:
        raise UncertifiedError("the operator is not said to be definite, so there is no energy norm; use norm='h1'")
    factor = _factor(equation, energy)
    # Without a parameter the coefficients are those at any of them.
    q = np.zeros(problem.parameters.basis.N) if parameter is None else problem.check_parameter(parameter)
    form = strong_form(equation, q) if equation.time is None else equation.time.strong(np.zeros(equation.basis.N))
    if form is None:
        return StateNorm(energy.name, equation.basis, energy.matrix, factor)
    natural = equation.boundary.natural
    robin = tuple(part for part in natural if callable(part.coefficient) or part.coefficient != 0.0)
    return StateNorm("energy norm", equation.basis, energy.matrix, factor, form.conductivity, form.reaction, robin)


def _h1(equation: StateEquation) -> tuple[Any, Factorization]:
    kept = _made.setdefault(equation, {})
    if "H1 norm" not in kept:
        K = freeze_sparse(stiffness_matrix(equation.basis) + mass_matrix(equation.basis))
        kept["H1 norm"] = K, _factorized(equation, "H1 norm", K)
    return kept["H1 norm"]


def _factorized(equation: StateEquation, name: str, matrix: Any) -> Factorization:
    return Factorization(matrix[equation.free][:, equation.free], definite=True, name=f"matrix of the {name}")


def _factor(equation: StateEquation, energy: Energy) -> Factorization:
    """The factorization of a norm on the free dofs: that of the equation, else the one made for the same matrix."""
    if energy.factor is not None:
        return energy.factor
    kept = _made.setdefault(equation, {})
    if energy.name not in kept or not same_matrix(kept[energy.name][0], energy.matrix):
        kept[energy.name] = energy.matrix, _factorized(equation, energy.name, energy.matrix)
    return kept[energy.name][1]


def same_matrix(first: Any, second: Any) -> bool:
    """Whether two sparse matrices agree in every bit."""
    return first is second or (
        first.nnz == second.nnz
        and np.array_equal(first.data, second.data)
        and np.array_equal(first.indices, second.indices)
        and np.array_equal(first.indptr, second.indptr)
    )
