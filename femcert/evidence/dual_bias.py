"""Biases of affine estimates on the continuous problem, guaranteed.

An estimate ``a . b`` of ``psi(q)`` has the bias ``(q, sum_i a_i z_i - psi)`` with the adjoint states of the sensors,
``a(v, z_i) = H_i v``. With their discrete ones, and for ``int q² + length² |grad q|² <= rho²`` about the centre,

    ``|bias| <= rho ( ‖sum_i a_i z_ih - psi‖_* + C ‖sum_i a_i (z_i - z_ih)‖_V )``,

``‖.‖_*`` being the dual norm and ``‖v‖ <= C ‖v‖_V``. By Galerkin orthogonality C may be replaced by K where states are
known to be so smooth that interpolation misses at most this of them, see `femcert.residual.interpolation`. The dual
norm is the norm of the solution R of an equation with reaction, diffusion and natural conditions,
``(‖R_h‖² + eta²)^1/2`` with a guaranteed error eta of its discrete solution. All errors come from equilibrated fluxes,
of all sensors and of all functionals at once where the equations allow it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from skfem import asm

from ..checks import Array, required
from ..errors import UncertifiedError
from ..mesh.assembly import mass_form
from ..mesh.elements import constant_basis, mass_matrix
from ..mesh.geometry import diameters
from ..mesh.sample import Sampler
from ..problem.base import Problem
from ..problem.data import Data
from ..problem.elliptic import EllipticSource
from ..problem.forward import dense
from ..problem.sensors import Representers
from ..problem.space import FullSpace
from ..problem.states import strong_form
from ..problem.strong import is_zero
from ..residual.block_errors import EnergyErrors, block_errors, single_errors
from ..residual.blocks import Columns
from ..residual.energy import state_norm
from ..residual.interpolation import interpolation_constant
from ..residual.workspace import workspace_of
from ..stability.source_errors import SourceErrors, source_equation
from .affine import Sight

# Rounding of sums of squares.
ROUND_UP = 1.0 + 1e-12


def missing(what: str) -> UncertifiedError:
    """The error for something without which nothing is known of the continuous problem."""
    return UncertifiedError(f"guarantee='continuous' needs {what}; the discrete one does not")


@dataclass(frozen=True)
class _Errors:
    """Discrete states, and the guaranteed energy errors of their combinations.

    Attributes
    ----------
    found
        Of the states.
    again
        The same for other columns of states and sources, one by one.
    sources
        Of the states.
    """

    found: EnergyErrors
    again: Callable[[Array, Any], EnergyErrors]
    sources: Any

    def of(self, weights: Array) -> Array:
        """Of the combinations with these weights, ``(m, n)``, from above."""
        if self.found.flux.any():
            return np.sqrt(np.einsum("in,ij,jn->n", weights, self.found.total, weights)) * ROUND_UP
        return self.again(self.found.states @ weights, self.sources @ weights).single


class DualBias:
    """The biases for one problem and its whitened data.

    Parameters
    ----------
    problem
        One elliptic equation with an unknown source; its class is a ball in the norm ``"h1"`` on the full space.
    data
        Whose noise whitens.

    Raises
    ------
    UncertifiedError
        Something of that is not so, or an energy error is only estimated.
    """

    def __init__(self, problem: Problem, data: Data) -> None:
        space = problem.parameters
        ball = space.ball
        if ball is None or ball.norm != "h1" or space.dimension != space.size:
            came = "no ball" if ball is None else f"{space.dimension} coordinates and the {ball.norm} norm"
            raise missing(f"FullSpace(basis).within_ball(radius, norm='h1'); this class has {came}")
        if space.remainder is not None or space.part is not None:
            raise missing("a class without a remainder and without nuisance coordinates")
        self._problem, self._equation, self._data = problem, source_equation(problem), data
        found = self._equation.sensors.representers()
        if found is None or found.loads is not None:
            raise missing("sensors with known densities, such as Average- or RegionSensors")
        self._white = data.whiten(np.eye(data.count))
        self._sensors = self._white @ dense(self._equation.sensors.matrix)
        self._bounds = SourceErrors(problem, self._equation, homogeneous=True)
        self._basis, self._ball = self._equation.basis, ball
        self._system = required(self._equation.system(), "a continuous guarantee", "a stationary equation", problem)
        # Discrete adjoint states of the whitened sensors, the columns.
        self.adjoint = np.zeros((self._basis.N, len(self._sensors)))
        self.adjoint[self._equation.free] = self._system.factor.solve(self._sensors.T[self._equation.free])
        self._adjoint = self._adjoint_errors()
        self._friedrichs = self._bounds.friedrichs()
        self._smooth = self._interpolation()
        # (R, v)_L = (f, v) for the norm of the ball.
        self._riesz = EllipticSource(
            self._basis,
            parameters=FullSpace(self._basis),
            sensors=self._equation.sensors,
            conductivity=ball.length**2,
            reaction=1.0,
            dirichlet={},
        )
        self._lifted = self._riesz_errors(self._basis, self.adjoint)

    def _interpolation(self) -> float | None:
        """K where it is known and less than C."""
        form, mesh = self._bounds.equation, self._basis.mesh
        if form.conductivity.varies or not is_zero(form.reaction) or any(_robin(p) for p in form.boundary.natural):
            return None
        held = [part.facets for part in form.boundary.dirichlet]
        a = np.broadcast_to(form.conductivity.at(Sampler(mesh, 0))[:, 0], mesh.nelements)
        found = interpolation_constant(mesh, np.concatenate([np.zeros(0, dtype=int), *held]), a)
        return None if found is None or found >= self._friedrichs else found

    @property
    def sight(self) -> Sight:
        """What errors of adjoint states do to a bias, as a set beside the ball: to choose weights by."""
        gram = self._adjoint.found.total if self._adjoint.found.flux.any() else np.diag(self._adjoint.found.single**2)
        return Sight(self._ball.radius * (self._smooth or self._friedrichs), gram)

    def _adjoint_errors(self) -> _Errors:
        constants, bounds, white = self._bounds.constants, self._bounds, self._white

        def errors(states: Array, densities: Any, weights: Array) -> EnergyErrors:
            return bounds.errors(weights, Columns(states, constants, densities)).blocks[0]

        def again(states: Array, weights: Array) -> EnergyErrors:
            return errors(states, bounds.densities(weights.T), weights.T)

        return _Errors(errors(self.adjoint, bounds.densities(white), white), again, white.T)

    def _riesz_errors(self, basis: Any, sources: Any) -> _Errors:
        """Of solutions for the norm of the ball with finite-element functions, or constants on elements, as sources."""
        mass = mass_matrix(basis) if basis is self._basis else asm(mass_form, self._basis, basis).T
        norm, work = state_norm(self._riesz, "energy"), workspace_of(self._riesz)
        zero = self._riesz.strong(np.zeros(self._basis.N))

        def again(states: Array, sources: Any) -> EnergyErrors:
            return single_errors(work, zero, norm.factor, Columns(states, basis, sources))

        states = norm.factor.solve(np.asfortranarray(dense(mass @ sources)))
        found = block_errors(work, zero, norm, [Columns(states, basis, sources)])
        return _Errors(again(states, sources) if found is None else found.blocks[0], again, sources)

    @cached_property
    def _diameters(self) -> Array:
        return diameters(self._basis.mesh)

    def of(self, weights: Array, functionals: Representers | None = None) -> Array:
        """The biases over the radius of the ball, from above, ``(n,)``.

        Parameters
        ----------
        weights
            On whitened data, ``(m, n)``.
        functionals
            The n functionals psi; None: they are zero.
        """
        states, residual = self._lifted.found.states @ weights, self._lifted.found.residual @ weights
        eta, oscillation = self._lifted.of(weights), np.zeros(weights.shape[1])
        if functionals is not None:
            other = self._riesz_errors(constant_basis(self._basis), functionals.means.tocsc())
            states, residual = states - other.found.states, residual - other.found.residual
            eta = eta + other.found.single
            # (d - mean, q) = (d - mean, q - mean) on each element.
            squares = ((self._diameters / np.pi) ** 2) @ functionals.rest
            oscillation = np.sqrt(np.asarray(squares).ravel()) / self._ball.length
        energy = np.sum(states * (self._riesz.operator @ states), axis=0)
        cross = np.abs(np.sum(states * residual, axis=0))
        dual = np.sqrt((np.maximum(energy, 0.0) + 2.0 * cross + eta**2) * ROUND_UP)
        return np.asarray(dual + oscillation + self._of_adjoint(weights))

    def _energy(self, weights: Array) -> Array:
        """``‖sum_i a_i (z_i - z_ih)‖_V`` from above."""
        # The states that errors are of see the means of densities, those here all of them.
        apart = np.einsum("in,ij,jn->n", weights, self._apart, weights)
        return self._adjoint.of(weights) + np.sqrt(np.maximum(apart, 0.0)) * ROUND_UP

    @cached_property
    def _apart(self) -> Array:
        free = self._equation.free
        off = (self.adjoint - self._adjoint.found.states)[free]
        return np.asarray(off.T @ (self._system.operator @ off))

    def _of_adjoint(self, weights: Array) -> Array:
        """``‖sum_i a_i (z_i - z_ih)‖`` in the dual norm of the ball, from above."""
        energy, free = self._energy(weights), self._equation.free
        if self._smooth is None:
            return self._friedrichs * energy
        # (e, q) = a(e, w) for the state w of q, and a(e, I w) vanishes but for rounding.
        left = (self._sensors.T[free] - self._system.operator @ self.adjoint[free]) @ weights
        rounding = np.sqrt(np.maximum(np.sum(left * self._system.factor.solve(np.asfortranarray(left)), axis=0), 0.0))
        return np.minimum(self._smooth * energy + 2.0 * self._friedrichs * rounding, self._friedrichs * energy)

    def beside(self, weights: Array) -> Array:
        """What centre and boundary values, which the mesh has not exactly, may move ``a . b`` by, for columns a."""
        forward, centre = self._problem.forward, self._ball.centre
        assert forward is not None
        if centre is None and not forward.offset.any():
            return np.zeros(weights.shape[1])
        q = np.zeros(self._problem.parameters.size) if centre is None else centre
        values, eta = self._about
        mine = self._data.whiten(forward.offset + forward.apply(q[:, None])[:, 0])
        return np.abs((values - mine) @ weights) + eta * self._energy(weights)

    @cached_property
    def _about(self) -> tuple[Array, float]:
        centre = self._ball.centre
        return self.predicted(np.zeros(self._problem.parameters.size) if centre is None else centre)

    def predicted(self, parameter: Array) -> tuple[Array, float]:
        """Whitened data of a finite-element function, and a number eta: ``a . values`` is off by ``eta`` `misread`.

        With the residual r of the discrete state u_h, ``H u = H u_h + r(z_h) + r(z - z_h)``; eta bounds the dual norm
        of r.
        """
        equation, problem = self._equation, self._problem
        conditions = SourceErrors(problem, equation, homogeneous=False)
        state, strong = problem.solve(parameter), strong_form(equation, parameter)
        assert state is not None
        assert strong is not None
        eta, r = conditions.of(strong.source, state)
        return self._sensors @ state + self.adjoint[equation.free].T @ r, eta

    @property
    def misread(self) -> float:
        """``‖sum_i a_i (z_i - z_ih)‖_V`` for the worst a of norm one, from above."""
        squares = [max(float(np.linalg.eigvalsh(gram)[-1]), 0.0) for gram in (self._adjoint.found.total, self._apart)]
        return float(np.sum(np.sqrt(squares))) * ROUND_UP


def _robin(part: Any) -> bool:
    return callable(part.coefficient) or part.coefficient != 0.0
