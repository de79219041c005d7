"""Energy errors of states and adjoint states of an elliptic equation with an unknown source."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix, diags

from ..checks import Array, required
from ..errors import UncertifiedError
from ..mesh.elements import constant_basis, degree
from ..mesh.sample import Sampler
from ..problem.base import Problem
from ..problem.boundary import BoundaryConditions
from ..problem.sensors import PointLoads
from ..problem.states import StateEquation, strong_form
from ..problem.strong import CONTRADICTION, Field, Interpolant, StrongForm
from ..residual.block_chunk import Columns
from ..residual.block_errors import BlockErrors, block_errors, single_errors
from ..residual.elliptic import bounded
from ..residual.energy import state_norm
from ..residual.workspace import Workspace

# The diameter of a triangle over its Poincaré constant is at least the first zero of J_1 (Laugesen, Siudeja,
# Minimizing Neumann fundamental tones of triangles: an optimal Poincaré inequality, 2010).
TRIANGLE = 3.8317


class SourceErrors:
    """Energy errors for sources, with homogeneous boundary conditions or those of the problem.

    Raises
    ------
    UncertifiedError
        A coefficient has a declared error.
    """

    def __init__(self, problem: Problem, equation: StateEquation, *, homogeneous: bool) -> None:
        self.basis, self.free = equation.basis, equation.free
        self.workspace = Workspace(equation)
        self.norm = state_norm(problem, "energy")
        zero = strong_form(equation, np.zeros(problem.parameters.basis.N))
        representers = equation.sensors.representers()
        assert zero is not None
        assert representers is not None
        self.equation = replace(zero, boundary=_homogeneous(zero.boundary)) if homogeneous else zero
        if zero.conductivity.error > 0.0 or zero.reaction.error > 0.0:
            # It would change the residual on the adjoint states, which is computed.
            raise UncertifiedError("a coefficient has a declared error; a continuous guarantee takes none")
        self.representers = representers
        self.constants = constant_basis(self.basis)
        self._parameters = problem.parameters.basis

    def of(self, source: Field, state: Array) -> tuple[float, Array]:
        """Upper bound of the energy error of one state, and its residual on the free dofs."""
        equation: StrongForm = replace(self.equation, source=source)
        bound = bounded(self.workspace, equation, state, "energy", lambda: self.norm.factor)
        if not bound.exact:
            raise UncertifiedError(f"an energy error is only estimated: {bound.words}")
        return bound.upper, bound.residual.on_basis()[self.free]

    def densities(self, weights: Array) -> csr_matrix:
        """Means of the densities of combinations (rows) of the sensors on the elements, sparse."""
        return csr_matrix(self.representers.means @ csr_matrix(weights.T))

    def errors(self, weights: Array, adjoint: Columns, *others: Columns) -> BlockErrors:
        """Errors of adjoint states (of combinations of the sensors, the rows of `weights`) and of further states."""
        found = block_errors(self.workspace, self.equation, self.norm, [adjoint, *others])
        if found is None:
            found = self._one_by_one(weights, adjoint, *others)
        sensors, *states = found.blocks
        if self.representers.rest.nnz:
            sensors = sensors.beside(*self.oscillation(weights))
        return replace(found, blocks=(sensors, *states))

    def _one_by_one(self, weights: Array, adjoint: Columns, *others: Columns) -> BlockErrors:
        loads, moved = self._loads(weights)
        sensors = single_errors(self.workspace, self.equation, self.norm.factor, adjoint, loads)
        sensors = sensors.beside(np.zeros_like(sensors.total), moved / float(np.sqrt(np.min(self._least()))))
        states = [single_errors(self.workspace, self.equation, self.norm.factor, block) for block in others]
        cross = {(0, j + 1): np.zeros((adjoint.count, block.count)) for j, block in enumerate(others)}
        return BlockErrors((sensors, *states), cross, 0.0)

    def friedrichs(self) -> float:
        """``‖v‖ <= C ‖v‖_V``."""
        equation = replace(self.equation, source=Interpolant(self._parameters, np.zeros(self._parameters.N)))
        rule = self.workspace.rule(equation, "energy")
        r = self.workspace.residual(equation, np.zeros(self.basis.N), "energy", rule)
        cheap = self.workspace.friedrichs(r, rule, "energy", False)
        constant = cheap or self.workspace.friedrichs(r, rule, "energy", True)
        assert constant is not None
        return constant.value

    def _least(self) -> Array:
        """A lower bound of the conductivity on each element."""
        equation = replace(self.equation, source=Interpolant(self.constants, np.zeros(self.constants.N)))
        least = self.workspace.rule(equation, "energy").least_conductivity
        return np.array(np.broadcast_to(least, self.basis.mesh.nelements))

    def _loads(self, weights: Array) -> tuple[Array | None, Array]:
        """Loads of combinations of sensors at the nearest vertices, and what that costs each of them.

        ``|v(x) - v(y)| <= |x - y|^1/2 ‖v'‖``.
        """
        loads: PointLoads | None = self.representers.loads
        if loads is None:
            return None, np.zeros(len(weights))
        x, strengths = self.basis.mesh.p[0], np.asarray(loads.weights @ weights.T)
        vertex = np.argmin(np.abs(x[:, None] - loads.points), axis=0)
        at_vertices = np.zeros((len(x), len(weights)))
        np.add.at(at_vertices, vertex, strengths)
        return at_vertices, np.abs(strengths).T @ np.sqrt(np.abs(x[vertex] - loads.points))

    def oscillation(self, weights: Array) -> tuple[Array, Array]:
        """What densities that vary on elements add to the residuals of adjoint states: a Gram matrix, and norms.

        On an element, ``‖sum_i c_i rest_i‖² <= sum_i c_i² ‖rest_i‖ sum_j ‖rest_j‖``, times ``h_K² / (j² a_K)``; for one
        combination it is at most the sum of the norms. Poincaré's constant of an element is at most ``h_K / j`` with
        j = pi, and with the first zero of the Bessel function J_1 on a triangle.
        """
        j = TRIANGLE if self.basis.mesh.t.shape[0] == 3 else np.pi
        share = diags(self.workspace.facets.diameters**2 / (j**2 * self._least()))
        norms = self.representers.rest.sqrt()
        together = np.asarray(norms.sum(axis=1)).ravel()
        diagonal = (share @ norms).T @ together
        combined = norms @ csr_matrix(np.abs(weights).T)
        single = np.sqrt(np.asarray((share @ combined.multiply(combined)).sum(axis=0)).ravel())
        return (weights * diagonal) @ weights.T, single


def source_equation(problem: Problem) -> StateEquation:
    """The one state equation of a problem with an unknown source.

    Raises
    ------
    UncertifiedError
        There is none, or the source of its strong form is not the parameter, up to something known.
    """
    who, space = "guarantee='continuous'", problem.parameters
    what = "a map in closed form, or one elliptic equation with an unknown source, as EllipticSource has it"
    equation = problem.states[0] if len(problem.states) == 1 else None
    inside = equation is not None and space.basis is not None
    zero = strong_form(equation, np.zeros(space.basis.N)) if equation is not None and inside else None
    if equation is None or zero is None or zero.unknown != "source":
        return required(None, who, what, problem)
    q = np.asarray(space.matrix @ np.cos(1.0 + np.arange(space.dimension)))
    strong, sampler = strong_form(equation, q), Sampler(equation.basis.mesh, 2 * degree(space.basis))
    assert strong is not None
    values = sampler.values(space.basis, q)
    off = np.abs(strong.source.at(sampler) - zero.source.at(sampler) - values).max()
    if not off <= CONTRADICTION * np.abs(values).max():
        raise UncertifiedError(f"the source in the strong form of a {type(problem).__name__} is not the parameter")
    return equation


def _homogeneous(boundary: BoundaryConditions) -> BoundaryConditions:
    essential = tuple(replace(part, value=0.0) for part in boundary.dirichlet)
    return replace(boundary, dirichlet=essential, natural=tuple(replace(part, value=0.0) for part in boundary.natural))
