"""From the discrete to the continuous problem: how far the forward map of the mesh can be from the exact one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ..checks import Array, required
from ..errors import UncertifiedError
from ..mesh.elements import constant_basis, degree
from ..mesh.geometry import diameters
from ..mesh.sample import Sampler
from ..problem.base import Problem
from ..problem.boundary import BoundaryConditions
from ..problem.closed_maps import ClosedMap, ContinuousMap, Prediction
from ..problem.data import Data
from ..problem.forward import dense
from ..problem.insert import cut_at_sensors
from ..problem.sensors import PointLoads
from ..problem.states import StateEquation, strong_form
from ..problem.strong import CONTRADICTION, Field, Interpolant, StrongForm, is_zero
from ..residual.boundary import refuse_unresolved
from ..residual.elliptic import bounded
from ..residual.energy import state_norm
from ..residual.workspace import Workspace


@dataclass(frozen=True)
class MapError:
    """A forward matrix, and the energy errors of the states behind it: how far it is from the exact one.

    Attributes
    ----------
    forward
        ``F`` of the mesh in orthonormal coordinates and whitened data, corrected by the residuals on adjoint states.
    columns, rows
        Guaranteed energy errors of the states of the columns, and of the adjoint states of the (whitened) sensors.
    integrals
        Bound of what quadrature misses of F.
    exact
        The exact map itself, for single parameters.
    problem, whitening
        What it belongs to: the problem, and the matrix that whitens its data.
    """

    forward: Array
    columns: Array
    rows: Array
    exact: ContinuousMap = field(repr=False, compare=False)
    problem: Problem = field(repr=False, compare=False)
    whitening: Array = field(repr=False, compare=False)
    integrals: float = 0.0

    @property
    def size(self) -> float:
        """``‖eta*‖ ‖eta‖`` (and integrals), an upper bound of the norm of the difference of the two forward maps."""
        return float(np.linalg.norm(self.rows) * np.linalg.norm(self.columns)) + self.integrals

    @property
    def closed(self) -> bool:
        """Whether the map is known in closed form, so that there are no states with errors."""
        return not self.rows.any()


def whitening(problem: Problem, data: Data | None) -> Array:
    """The matrix ``L^-1`` of ``C = L L'``."""
    unit = np.eye(problem.observation_count)
    return unit if data is None else data.whiten(unit)


def continuous_error(problem: Problem, data: Data | None) -> MapError:
    """How far the forward map of a problem on its mesh is from that of the continuous equation.

    Where the problem offers its map in closed form (heat on a box, line integrals), that is taken.

    Otherwise it must offer the strong form of an elliptic equation with an unknown source, as `EllipticSource` does.
    For the column with state u, discrete state u_h and residual r, and a sensor with adjoint states z and z_h,
    ``H(u - u_h) = a(u - u_h, z) = r(z_h) + a(u - u_h, z - z_h)``; the first term is computed (it is rounding for a
    Galerkin state), the second one is at most the product of the energy errors. The class is that of the finite-element
    functions that the columns of the space are; where the space offers functions of which these are interpolants
    (sines, cosines, declared polynomials), the functions themselves, with what interpolation leaves out. Point values
    are bounded on H1 on a line only; there both states are taken on the mesh cut at the sensors.

    Raises
    ------
    UncertifiedError
        The sensors are not bounded functionals that are known here, an energy error is only estimated, or of some
        function only samples are known.
    """
    whiten = whitening(problem, data)
    closed = problem.closed_map(whiten)
    if closed is not None:
        return _of_closed(problem, closed)
    exact = SourceMap(problem, whiten)
    forward, columns, integrals = exact.matrix()
    return MapError(forward, columns, exact.rows, exact, problem, whiten, integrals)


def _of_closed(problem: Problem, closed: ClosedMap) -> MapError:
    """The matrix in orthonormal coordinates; only integrals and rounding stand between it and the exact one."""
    forward = solve_triangular(closed.root, closed.matrix.T, trans="T").T
    inverse = np.abs(solve_triangular(closed.root, np.eye(len(closed.root))))
    m, k = forward.shape
    integrals = float(np.linalg.norm(closed.errors @ inverse))
    return MapError(np.asarray(forward), np.zeros(k), np.zeros(m), closed, problem, closed.whitening, integrals)


class SourceMap:
    """From the source of an elliptic equation to whitened data, by adjoint states; their errors are computed once.

    Attributes
    ----------
    problem
        On a line with point sensors, that on the mesh cut at the sensors.
    equation, system
        Its state equation, and the matrices of that.
    adjoint
        Adjoint states of the whitened sensors (columns).
    """

    def __init__(self, problem: Problem, whitening: Array) -> None:
        self.space, self.whitening = problem.parameters, whitening
        self.spread = float(np.linalg.cond(whitening))
        equation = _source_equation(problem)
        mesh = equation.basis.mesh
        self.on_mesh = self.functions = self.space.functions_on(mesh)
        sensors = equation.sensors
        who, what = "a continuous guarantee", "sensors with known densities, such as Average- or RegionSensors"
        representers = required(sensors.representers(), who, what, sensors)
        self.problem = problem
        if representers.loads is not None:
            # The adjoint state of a point value has a kink there, so that is where a vertex belongs.
            _check_alone(problem, equation)
            self.problem = cut_at_sensors(problem)
            (equation,) = self.problem.states
            self.functions = self.space.functions_on(equation.basis.mesh)
        self.equation = equation
        self.system = required(equation.system(), who, "a stationary linear equation", problem)
        self.bounds = _Bounds(self.problem, equation, homogeneous=True)
        given = [part.value for part in (*equation.boundary.dirichlet, *equation.boundary.natural)]
        plain = not any(callable(value) or value != 0.0 for value in given)
        self.conditions = self.bounds if plain else _Bounds(self.problem, equation, homogeneous=False)
        self.sensors = whitening @ dense(equation.sensors.matrix)
        self.adjoint = self._solved(self.sensors.T[equation.free])

    @cached_property
    def rows(self) -> Array:
        """Energy errors of the adjoint states of the sensors."""
        pairs = zip(self.whitening, self.adjoint.T, strict=True)
        return np.array([self.bounds.of_sensor(weights, z) for weights, z in pairs])

    def _solved(self, right: Array) -> Array:
        """States (columns) for right-hand sides on the free dofs."""
        states = np.zeros((self.equation.basis.N, right.shape[1]))
        states[self.equation.free] = self.system.factor.solve(right)
        return states

    @property
    def root(self) -> Array:
        """Of the Gram matrix of the class, of functions where it is one of functions."""
        return self.space.root if self.functions is None else self.functions.root

    def matrix(self) -> tuple[Array, Array, float]:
        """F in orthonormal coordinates, the energy errors of its columns, and what quadrature misses of it."""
        problem, functions = self.problem, self.functions
        free = self.equation.free
        B = solve_triangular(self.root, dense(problem.parameters.matrix).T, trans="T").T
        states = self._solved(np.asarray(self.system.load @ B))
        basis = problem.parameters.basis
        found = [self.bounds.of(Interpolant(basis, B[:, j]), states[:, j]) for j in range(B.shape[1])]
        columns = np.array([eta for eta, _ in found])
        forward = self.sensors @ states + self.adjoint[free].T @ np.column_stack([r for _, r in found])
        if functions is None:
            return forward, columns, 0.0
        # S applied to what interpolation left out: its value on the adjoint states, and the product of errors.
        missing, missed = self._left_out(B, functions.orthonormal)
        seen = self._seen @ functions.orthonormal
        # Quadrature may also have made the functions too small.
        kept = 1.0 / (1.0 + float(np.linalg.norm(missed)))
        columns = columns + self.bounds.friedrichs() * (missing + missed)
        unseen = float(np.linalg.norm(missed) * np.linalg.norm(self._sizes))
        return kept * (forward + seen), kept * columns, kept * unseen

    def predict(self, coefficients: Array) -> Prediction:
        """``H u`` for ``u = S q`` with the conditions of the problem, within ``eta*_i eta`` at sensor i.

        With the residual r of any state w, ``H u = H w + r(z_h) + r(z - z_h)``; w is the discrete state, and eta
        bounds the dual norm of r.
        """
        problem = self.problem
        refuse_unresolved(self.equation)
        q = np.asarray(problem.parameters.matrix @ coefficients)
        state = problem.solve(q)
        strong = strong_form(self.equation, q)
        assert strong is not None
        assert state is not None
        eta, r = self.conditions.of(strong.source, state)
        values = self.sensors @ state + self.adjoint[self.equation.free].T @ r
        # Errors of a state are relative to its largest value, however little the sensors read of it.
        size = np.abs(self.sensors).sum(axis=1) * np.abs(state).max()
        part = problem.linearize().rounding_of(None)
        rounding = part * self.spread
        errors = rounding * (np.abs(values) + np.linalg.norm(values) / np.sqrt(len(values))) + part * size
        if self.functions is not None:
            missing, missed = self._left_out(q[:, None], coefficients[:, None])
            values = values + self._seen @ coefficients
            errors = errors + self._sizes * missed[0]
            eta += self.bounds.friedrichs() * float(missing[0] + missed[0])
        return Prediction(values, errors + self.rows * eta)

    @property
    def interpolation_norm(self) -> float:
        """The largest norm of an interpolant, over that of its function."""
        return 1.0 if self.on_mesh is None else self.on_mesh.interpolation_norm

    def distance(self, parameter: Array, coefficients: Array) -> float:
        """``‖q - p‖_Q``, in L2 from the function p where the class is one of functions."""
        if self.on_mesh is None:
            return self.space.norm(parameter - self.space.field(coefficients))
        return self.on_mesh.distance(self.space.basis, parameter, coefficients)

    def _left_out(self, columns: Array, coordinates: Array) -> tuple[Array, Array]:
        """``‖g_j‖`` for ``g_j`` = function - column, and what quadrature may miss of it."""
        functions, basis = self.functions, self.problem.parameters.basis
        assert functions is not None
        pairs = zip(columns.T, coordinates.T, strict=True)
        sizes = np.array([functions.size(functions.beyond(basis, column, c)) for column, c in pairs])
        return sizes, functions.missed(coordinates)

    @cached_property
    def _seen(self) -> Array:
        """``(z_i, g_j)`` for the columns of the space."""
        functions, space = self.functions, self.problem.parameters
        assert functions is not None
        unit = np.eye(space.dimension)
        columns = zip(dense(space.matrix).T, unit, strict=True)
        gaps = [functions.beyond(space.basis, column, e) for column, e in columns]
        return functions.products(self.equation.basis, self.adjoint, gaps)

    @cached_property
    def _sizes(self) -> Array:
        """L2 norms of the adjoint states."""
        assert self.functions is not None
        sampler, basis = self.functions.sampler, self.equation.basis
        return np.array([self.functions.size(sampler.values(basis, z)) for z in self.adjoint.T])


class _Bounds:
    """Energy errors for sources, with homogeneous boundary conditions or those of the problem."""

    def __init__(self, problem: Problem, equation: StateEquation, *, homogeneous: bool) -> None:
        self.basis, self.free = equation.basis, equation.free
        self.workspace = Workspace(equation)
        self.factor = state_norm(problem, "energy").factor
        zero = strong_form(equation, np.zeros(problem.parameters.basis.N))
        representers = equation.sensors.representers()
        assert zero is not None
        assert representers is not None
        self.equation = replace(zero, boundary=_homogeneous(zero.boundary)) if homogeneous else zero
        if zero.conductivity.error > 0.0 or zero.reaction.error > 0.0:
            # It would change the residual on the adjoint states, which is computed.
            raise UncertifiedError("a coefficient has a declared error; a continuous guarantee takes none")
        self.representers = representers
        self._constants = constant_basis(self.basis)
        self.least: Any = np.inf
        self._latest: Any = None

    def of(self, source: Field, state: Array, loads: Array | None = None) -> tuple[float, Array]:
        """Upper bound of the energy error of a state, and its residual on the free dofs; point loads only on a line."""
        equation: StrongForm = replace(self.equation, source=source)
        bound = bounded(self.workspace, equation, state, "energy", lambda: self.factor, loads=loads)
        if not bound.exact:
            raise UncertifiedError(f"an energy error is only estimated: {bound.words}")
        self.least, self._latest = bound.rule.least_conductivity, bound
        return bound.upper, bound.residual.on_basis()[self.free]

    def of_sensor(self, weights: Array, adjoint: Array) -> float:
        """Upper bound of the energy error of the adjoint state of a combination of the sensors."""
        means, rest, loads = self.representers.means, self.representers.rest, self.representers.loads
        at_vertices, moved = (None, 0.0) if loads is None else self._moved(loads, weights)
        error, _ = self.of(Interpolant(self._constants, means @ weights), adjoint, at_vertices)
        # A combination of rests is at most that of their norms.
        oscillation = self._oscillation((rest.sqrt() @ np.abs(weights)) ** 2)
        return error + moved / float(np.sqrt(np.min(self.least))) + oscillation

    def _moved(self, loads: PointLoads, weights: Array) -> tuple[Array, float]:
        """The loads at the nearest vertices, and what that costs: ``|v(x) - v(y)| <= |x - y|^1/2 ‖v'‖``."""
        x, weight = self.basis.mesh.p[0], np.asarray(loads.weights @ weights)
        vertex = np.argmin(np.abs(x[:, None] - loads.points), axis=0)
        at_vertices = np.zeros(len(x))
        np.add.at(at_vertices, vertex, weight)
        return at_vertices, float(np.abs(weight) @ np.sqrt(np.abs(x[vertex] - loads.points)))

    def friedrichs(self) -> float:
        """``‖v‖ <= C ‖v‖_V``."""
        r, rule = self._latest.residual, self._latest.rule
        cheap = self.workspace.friedrichs(r, rule, "energy", False)
        constant = cheap or self.workspace.friedrichs(r, rule, "energy", True)
        assert constant is not None
        return constant.value

    def _oscillation(self, rest: Array) -> float:
        """``(sum_K h_K² / (pi² a_K) ‖d - mean‖_K²)^1/2``: what a density that varies on elements adds."""
        h = diameters(self.basis.mesh)
        return float(np.sqrt(np.sum(h**2 / (np.pi**2 * self.least) * rest)))


def _source_equation(problem: Problem) -> StateEquation:
    """The one state equation of a problem with an unknown source.

    Raises
    ------
    UncertifiedError
        There is none, or the source of its strong form is not the parameter, up to something known.
    """
    who, space = "guarantee='continuous'", problem.parameters
    what = "a map in closed form, or one elliptic equation with an unknown source, as EllipticSource has it"
    equation = problem.states[0] if len(problem.states) == 1 else None
    zero = None if equation is None else strong_form(equation, np.zeros(space.basis.N))
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


def _check_alone(problem: Problem, equation: StateEquation) -> None:
    """Refuse a known source beside the unknown one, which the problem on another mesh would not have."""
    zero = strong_form(equation, np.zeros(problem.parameters.basis.N))
    assert zero is not None
    if not is_zero(zero.source) and zero.source.at(Sampler(equation.basis.mesh, 6)).any():
        raise UncertifiedError("a continuous guarantee for point sensors takes no known source beside the unknown one")


def _homogeneous(boundary: BoundaryConditions) -> BoundaryConditions:
    essential = tuple(replace(part, value=0.0) for part in boundary.dirichlet)
    return replace(boundary, dirichlet=essential, natural=tuple(replace(part, value=0.0) for part in boundary.natural))


def needed_size(problem: Problem, sigma: float, gap: float) -> float:
    """The mesh size at which the gap, which falls like ``h^2k`` for degree k, would be half of sigma_min."""
    h = float(diameters(problem.basis.mesh).max())
    return h * (0.5 * sigma / gap) ** (1.0 / (2.0 * degree(problem.basis)))
