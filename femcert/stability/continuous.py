"""From the discrete to the continuous problem: how far the forward map of the mesh can be from the exact one."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from ..checks import Array, required
from ..errors import UncertifiedError
from ..mesh.elements import degree, mass_matrix
from ..mesh.geometry import diameters
from ..mesh.sample import Sampler
from ..problem.base import Problem
from ..problem.closed_maps import ClosedMap, ContinuousMap, Prediction
from ..problem.data import Data
from ..problem.forward import dense
from ..problem.insert import cut_at_sensors
from ..problem.states import StateEquation, strong_form
from ..problem.strong import is_zero
from ..residual.block_chunk import Columns
from ..residual.block_errors import combined, isotropic, largest, products
from ..residual.boundary import refuse_unresolved
from .source_errors import SourceErrors, source_equation


@dataclass(frozen=True)
class MapError:
    """A forward matrix, and how far it is from the exact one: in orthonormal coordinates and whitened data.

    Attributes
    ----------
    forward
        ``F_h`` of the mesh, corrected by the residuals on adjoint states.
    centre
        F_h with half of what the fluxes of states and adjoint states have in common, or all of it
        (`femcert.residual.block_errors.products`).
    spread
        A Gram matrix: ``‖(F - centre) x‖² <= x' spread x`` for every x, with the exact F.
    columns, rows
        Guaranteed energy errors of the states of the columns, and of the adjoint states of the (whitened) sensors.
    exact
        The exact map itself, for single parameters.
    problem, whitening
        What it belongs to: the problem, and the matrix that whitens its data.
    """

    forward: Array
    centre: Array
    spread: Array
    columns: Array
    rows: Array
    exact: ContinuousMap = field(repr=False, compare=False)
    problem: Problem = field(repr=False, compare=False)
    whitening: Array = field(repr=False, compare=False)

    @property
    def size(self) -> float:
        """An upper bound of the norm of the difference of `centre` and the exact matrix."""
        return float(np.sqrt(largest(self.spread)))

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
    Galerkin state). Of the second one half or more is known from equilibrated fluxes, and the rest is bounded for all
    combinations of columns and sensors at once (`femcert.residual.block_errors.products`). The class is that of the
    finite-element functions that the columns of the space are; where the space offers functions of which these are
    interpolants (sines, cosines, declared polynomials), the functions themselves, with what interpolation leaves out.
    Point values are bounded on H1 on a line only; there both states are taken on the mesh cut at the sensors.

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
    known, kept = exact.known, exact.kept
    return MapError(
        forward=kept * known.forward,
        centre=kept * known.centre,
        spread=kept**2 * known.spread,
        columns=kept * known.columns,
        rows=known.rows,
        exact=exact,
        problem=problem,
        whitening=whiten,
    )


def _of_closed(problem: Problem, closed: ClosedMap) -> MapError:
    """The matrix in orthonormal coordinates; only integrals and rounding stand between it and the exact one."""
    forward = solve_triangular(closed.root, closed.matrix.T, trans="T").T
    inverse = np.abs(solve_triangular(closed.root, np.eye(len(closed.root))))
    m, k = forward.shape
    spread = float(np.linalg.norm(closed.errors @ inverse)) ** 2 * np.eye(k)
    none = np.zeros(k), np.zeros(m)
    return MapError(np.asarray(forward), np.asarray(forward), spread, *none, closed, problem, closed.whitening)


@dataclass(frozen=True)
class Beyond:
    """What interpolation leaves out of the functions of a class, g_j in orthonormal coordinates.

    Attributes
    ----------
    gram, seen
        ``(g_i, g_j)``, and ``(z_i, g_j)`` with the adjoint states z_i.
    sizes
        ``‖z_i‖``, in L2.
    """

    gram: Array
    seen: Array
    sizes: Array


@dataclass(frozen=True)
class KnownMap:
    """The forward map of a `SourceMap` in orthonormal coordinates, with the attributes of `MapError`.

    Attributes
    ----------
    sensors
        Upper bound of ``‖sum_i w_i (z_i - z_ih)‖`` in the energy norm over ``‖w‖ = 1``.
    adjoint
        Adjoint states, the columns.
    beyond
        Of a class of functions: what interpolation leaves out of the columns; else None.
    blocks
        Whether errors are those of blocks of states; else they come from single bounds.
    """

    forward: Array
    centre: Array
    spread: Array
    columns: Array
    rows: Array
    sensors: float
    adjoint: Array
    beyond: Beyond | None
    blocks: bool


class SourceMap:
    """From the source of an elliptic equation to whitened data, as far as it is known on a mesh.

    Attributes
    ----------
    problem
        On a line with point sensors, that on the mesh cut at the sensors.
    equation, system
        Its state equation, and the matrices of that.
    """

    def __init__(self, problem: Problem, whitening: Array) -> None:
        self.space, self.whitening = problem.parameters, whitening
        self.condition = float(np.linalg.cond(whitening))
        equation = source_equation(problem)
        self.on_mesh = self.functions = self.space.functions_on(equation.basis.mesh)
        who, what = "a continuous guarantee", "sensors with known densities, such as Average- or RegionSensors"
        representers = required(equation.sensors.representers(), who, what, equation.sensors)
        self.problem = problem
        if representers.loads is not None:
            # The adjoint state of a point value has a kink there, so that is where a vertex belongs.
            _check_alone(problem, equation)
            self.problem = cut_at_sensors(problem)
            (equation,) = self.problem.states
            self.functions = self.space.functions_on(equation.basis.mesh)
        self.equation = equation
        self.system = required(equation.system(), who, "a stationary linear equation", problem)
        self.bounds = SourceErrors(self.problem, equation, homogeneous=True)
        given = [part.value for part in (*equation.boundary.dirichlet, *equation.boundary.natural)]
        plain = not any(callable(value) or value != 0.0 for value in given)
        self.conditions = self.bounds if plain else SourceErrors(self.problem, equation, homogeneous=False)
        self.sensors = whitening @ dense(equation.sensors.matrix)
        # Of the class, coordinates in the columns of which are orthonormal.
        unit = solve_triangular(self.root, np.eye(self.space.dimension))
        self._unit: Array = np.asarray(unit)

    def _solved(self, right: Array) -> Array:
        """States (columns) for right-hand sides on the free dofs."""
        states = np.zeros((self.equation.basis.N, right.shape[1]))
        states[self.equation.free] = self.system.factor.solve(right)
        return states

    @property
    def root(self) -> Array:
        """Of the Gram matrix of the class, of functions where it is one of functions."""
        return self.space.root if self.functions is None else self.functions.root

    @property
    def kept(self) -> float:
        """Quadrature may have made the functions too small."""
        if self.functions is None:
            return 1.0
        return 1.0 / (1.0 + float(np.linalg.norm(self.functions.missed(self._unit))))

    @cached_property
    def known(self) -> KnownMap:
        """States and adjoint states, their energy errors, and what these say about the forward matrix."""
        space, bounds, free = self.problem.parameters, self.bounds, self.equation.free
        B = np.asarray(dense(space.matrix) @ self._unit)
        columns = Columns(self._solved(np.asarray(self.system.load @ B)), space.basis, B)
        adjoint = Columns(self._solved(self.sensors.T[free]), bounds.constants, bounds.densities(self.whitening))
        found = bounds.errors(self.whitening, adjoint, columns)
        (sensors, states), cross = found.blocks, found.cross[0, 1]
        beyond = None
        forward = self.sensors @ states.states + sensors.states[free].T @ states.residual[free]
        unseen = 0.0
        if self.functions is not None:
            # S applied to what interpolation left out: its value on the adjoint states, and the product of errors.
            gram, moments = self.functions.beyond_block(space.basis, B, self._unit, self.equation.basis)
            mass = np.einsum("ij,ij->j", sensors.states, mass_matrix(self.equation.basis) @ sensors.states)
            beyond = Beyond(gram, sensors.states.T @ moments, np.sqrt(np.maximum(mass, 0.0)))
            missed = self.functions.missed(self._unit)
            forward = forward + beyond.seen
            unseen = float(np.linalg.norm(missed) * np.linalg.norm(beyond.sizes))
            C = bounds.friedrichs()
            states = states.beside(C**2 * beyond.gram, C * np.sqrt(np.diag(beyond.gram)))
            states = states.beside(C**2 * isotropic(missed), C * missed)
        shared, spread = products(sensors, states, cross, found.remainder)
        return KnownMap(
            forward=forward,
            centre=forward + shared,
            spread=combined([spread, unseen**2 * np.eye(B.shape[1])]),
            columns=states.single,
            rows=sensors.single,
            sensors=float(np.sqrt(largest(sensors.total))),
            adjoint=sensors.states,
            beyond=beyond,
            blocks=bool(sensors.flux.any() or states.flux.any()),
        )

    @cached_property
    def offset(self) -> Prediction:
        """Whitened data of the exact solution for the parameter zero: of a known source and boundary values."""
        refuse_unresolved(self.equation)
        problem, nothing = self.problem, np.zeros(self.problem.parameters.basis.N)
        state, strong = problem.solve(nothing), strong_form(self.equation, nothing)
        assert state is not None
        assert strong is not None
        if self.conditions is self.bounds and not state.any() and is_zero(strong.source):
            return Prediction(np.zeros(len(self.sensors)), np.zeros(len(self.sensors)))
        eta, r = self.conditions.of(strong.source, state)
        values = self.sensors @ state + self.known.adjoint[self.equation.free].T @ r
        return Prediction(values, np.zeros(len(values)), self.known.sensors * eta)

    def predict(self, coefficients: Array) -> Prediction:
        """``H u`` for ``u = S q`` with the conditions of the problem: the known map on q, and what is known of zero."""
        refuse_unresolved(self.equation)
        problem, known = self.problem, self.known
        q, x = np.asarray(problem.parameters.matrix @ coefficients), self.root @ coefficients
        state = problem.solve(q)
        assert state is not None
        if known.blocks:
            offset = self.offset
            values = known.centre @ x + offset.values
            errors, joint = np.zeros(len(values)), float(np.sqrt(max(float(x @ known.spread @ x), 0.0))) + offset.joint
        else:
            values, errors = self._single(q, state, x)
            joint = 0.0
        # Errors of a state are relative to its largest value, however little the sensors read of it.
        size = np.abs(self.sensors).sum(axis=1) * np.abs(state).max()
        part = problem.linearize().rounding_of(None)
        rounding = part * self.condition
        errors = errors + rounding * (np.abs(values) + np.linalg.norm(values) / np.sqrt(len(values))) + part * size
        return Prediction(values, errors, joint)

    def _single(self, parameter: Array, state: Array, x: Array) -> tuple[Array, Array]:
        """Values and their errors ``eta*_i eta`` for one parameter with the orthonormal coordinates x.

        With the residual r of any state w, ``H u = H w + r(z_h) + r(z - z_h)``; w is the discrete state, and eta
        bounds the dual norm of r.
        """
        known, strong = self.known, strong_form(self.equation, parameter)
        assert strong is not None
        eta, r = self.conditions.of(strong.source, state)
        values = self.sensors @ state + known.adjoint[self.equation.free].T @ r
        if known.beyond is None:
            return values, known.rows * eta
        assert self.functions is not None
        missed = float(self.functions.missed(self._unit @ x))
        eta += self.bounds.friedrichs() * (float(np.sqrt(x @ known.beyond.gram @ x)) + missed)
        return values + known.beyond.seen @ x, known.beyond.sizes * missed + known.rows * eta

    @property
    def interpolation_norm(self) -> float:
        """The largest norm of an interpolant, over that of its function."""
        return 1.0 if self.on_mesh is None else self.on_mesh.interpolation_norm

    def distance(self, parameter: Array, coefficients: Array) -> float:
        """``‖q - p‖_Q``, in L2 from the function p where the class is one of functions."""
        if self.on_mesh is None:
            return self.space.norm(parameter - self.space.field(coefficients))
        return self.on_mesh.distance(self.space.basis, parameter, coefficients)


def _check_alone(problem: Problem, equation: StateEquation) -> None:
    """Refuse a known source beside the unknown one, which the problem on another mesh would not have."""
    zero = strong_form(equation, np.zeros(problem.parameters.basis.N))
    assert zero is not None
    if not is_zero(zero.source) and zero.source.at(Sampler(equation.basis.mesh, 6)).any():
        raise UncertifiedError("a continuous guarantee for point sensors takes no known source beside the unknown one")


def needed_size(problem: Problem, sigma: float, gap: float) -> float:
    """The mesh size at which the gap, which falls like ``h^2k`` for degree k, would be half of sigma_min."""
    h = float(diameters(problem.basis.mesh).max())
    return h * (0.5 * sigma / gap) ** (1.0 / (2.0 * degree(problem.basis)))
