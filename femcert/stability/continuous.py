"""From the discrete to the continuous problem: how far the forward map of the mesh can be from the exact one."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from skfem.mesh import MeshLine1

from ..checks import Array
from ..errors import UncertifiedError
from ..mesh.elements import constant_basis, degree
from ..mesh.geometry import diameters, is_affine
from ..problem.base import Problem
from ..problem.boundary import BoundaryConditions
from ..problem.data import Data
from ..problem.elliptic import EllipticSource
from ..problem.forward import dense
from ..problem.heat import HeatInitial
from ..problem.insert import cut_at_sensors
from ..problem.sensors import AverageSensors, PointSensors
from ..problem.strong import Field, StrongForm
from ..problem.tomography import Tomography
from ..residual.boundary import refuse_unresolved
from ..residual.interval import line_bound
from ..residual.norms import state_norm
from ..residual.static import static_bound
from ..residual.workspace import Workspace
from .exact_maps import heat_map, ray_map
from .functions import function_class, refuse_unknown
from .gap import Gap, Prediction, whitening


def continuous_gap(problem: Problem, data: Data | None) -> Gap:
    """How far the forward map of a problem on its mesh is from that of the continuous equation.

    Of an `EllipticSource`, for the column with state u, discrete state u_h and residual r, and a sensor with adjoint
    states z and z_h, ``H(u - u_h) = a(u - u_h, z) = r(z_h) + a(u - u_h, z - z_h)``; the first term is computed (it is
    rounding for a Galerkin state), the second one is at most the product of the energy errors. The class is that of the
    finite-element functions that the columns of the space are; of a `SineSpace`, a `CosineSpace` or a `FunctionSpace`
    of declared polynomials, the functions themselves, with what interpolation leaves out. Point values are bounded on
    H1 on a line only; there both states are taken on the mesh cut at the sensors.

    Of a `HeatInitial` on a box, with sines, and of `Tomography` the map itself is known (`heat_map`, `ray_map`).

    Raises
    ------
    UncertifiedError
        The sensors are not bounded functionals that are known here, an energy error is only estimated, or of some
        function only samples are known.
    """
    refuse_unknown(problem.parameters)
    whiten = whitening(problem, data)
    if isinstance(problem, (HeatInitial, Tomography)):
        closed = heat_map(problem, whiten) if isinstance(problem, HeatInitial) else ray_map(problem, whiten)
        return closed.gap(problem)
    if not isinstance(problem, EllipticSource):
        raise UncertifiedError(f"guarantee='continuous' is for EllipticSource, not for a {type(problem).__name__}")
    exact = SourceMap(problem, whiten)
    forward, columns, integrals = exact.matrix()
    return Gap(forward, columns, exact.rows, exact, problem, whiten, integrals)


class SourceMap:
    """From the source of an elliptic equation to whitened data, with the energy errors of adjoint states computed once.

    Attributes
    ----------
    problem
        On a line with point sensors, that on the mesh cut at the sensors.
    adjoint, rows
        Adjoint states of the whitened sensors (columns), and their energy errors.
    """

    def __init__(self, problem: EllipticSource, whitening: Array) -> None:
        self.space, self.whitening = problem.parameters, whitening
        self.spread = float(np.linalg.cond(whitening))
        if isinstance(problem.sensors, PointSensors) and problem.sensors.bounded:
            # The adjoint state of a point value has a kink there, so that is where a vertex belongs.
            self.problem = cut_at_sensors(problem)
        elif problem.sensors.densities() is None:
            name = type(problem.sensors).__name__
            raise UncertifiedError(
                f"{name} have no known density; a continuous guarantee needs Average- or RegionSensors"
            )
        elif isinstance(problem.sensors, AverageSensors) and not is_affine(problem.basis.mesh):
            raise UncertifiedError("averages over discs are not exact on quadrilaterals that are no parallelograms")
        else:
            self.problem = problem
        self.functions = function_class(self.space, self.problem.basis.mesh)
        cut = self.problem is not problem
        self.on_mesh = function_class(self.space, problem.basis.mesh) if cut else self.functions
        self.bounds = _Bounds(self.problem, homogeneous=True)
        given = [part.value for part in (*problem.boundary.dirichlet, *problem.boundary.natural)]
        plain = not any(callable(value) or value != 0.0 for value in given)
        self.conditions = self.bounds if plain else _Bounds(self.problem, homogeneous=False)
        self.sensors = whitening @ dense(self.problem.sensors.matrix)
        self.adjoint = _solved(self.problem, self.sensors.T)
        pairs = zip(whitening, self.adjoint.T, strict=True)
        self.rows = np.array([self.bounds.of_sensor(weights, z) for weights, z in pairs])

    @property
    def root(self) -> Array:
        """Of the Gram matrix of the class, of functions where it is one of functions."""
        return self.space.root if self.functions is None else self.functions.root

    def matrix(self) -> tuple[Array, Array, float]:
        """F in orthonormal coordinates, the energy errors of its columns, and what quadrature misses of it."""
        problem, functions = self.problem, self.functions
        B = solve_triangular(self.root, dense(problem.parameters.matrix).T, trans="T").T
        states = _solved(problem, np.asarray(problem.load @ B))
        found = [self.bounds.of(Field(problem.parameters.basis, B[:, j]), states[:, j]) for j in range(B.shape[1])]
        columns = np.array([eta for eta, _ in found])
        forward = self.sensors @ states + self.adjoint[problem.free].T @ np.column_stack([r for _, r in found])
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
        refuse_unresolved(problem)
        q = np.asarray(problem.parameters.matrix @ coefficients)
        state = problem.solve(q)
        eta, r = self.conditions.of(Field(problem.parameters.basis, q), state)
        values = self.sensors @ state + self.adjoint[problem.free].T @ r
        # Errors of a state are relative to its largest value, however little the sensors read of it.
        size = np.abs(self.sensors).sum(axis=1) * np.abs(state).max()
        rounding = problem.rounding * self.spread
        errors = rounding * (np.abs(values) + np.linalg.norm(values) / np.sqrt(len(values))) + problem.rounding * size
        if self.functions is not None:
            missing, missed = self._left_out(q[:, None], coefficients[:, None])
            values = values + self._seen @ coefficients
            errors = errors + self._sizes * missed[0]
            eta += self.bounds.friedrichs() * float(missing[0] + missed[0])
        return Prediction(values, errors + self.rows * eta)

    @property
    def stretch(self) -> float:
        """The largest norm of an interpolant, over that of its function."""
        return 1.0 if self.on_mesh is None else self.on_mesh.stretch

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
        return functions.products(self.problem.basis, self.adjoint, gaps)

    @cached_property
    def _sizes(self) -> Array:
        """L2 norms of the adjoint states."""
        assert self.functions is not None
        sampler, basis = self.functions.sampler, self.problem.basis
        return np.array([self.functions.size(sampler.values(basis, z)) for z in self.adjoint.T])


class _Bounds:
    """Energy errors for sources, with homogeneous boundary conditions or those of the problem."""

    def __init__(self, problem: EllipticSource, *, homogeneous: bool) -> None:
        self.problem = problem
        self.workspace = Workspace(problem)
        self.factor = state_norm(problem, "energy").factor
        zero = problem.strong(np.zeros(problem.parameters.basis.N))
        self.equation = replace(zero, boundary=_homogeneous(problem.boundary)) if homogeneous else zero
        if zero.conductivity.error > 0.0 or zero.reaction.error > 0.0:
            # It would change the residual on the adjoint states, which is computed.
            raise UncertifiedError("a coefficient has a declared error; a continuous guarantee takes none")
        self.densities = problem.sensors.densities()
        self._constants = constant_basis(problem.basis)
        self.least: Any = np.inf
        self._latest: Any = None

    def of(self, source: Field, state: Array, loads: Array | None = None) -> tuple[float, Array]:
        """Upper bound of the energy error of a state, and its residual on the free dofs; point loads only on a line."""
        equation: StrongForm = replace(self.equation, source=source)
        bound: Any
        if isinstance(self.problem.basis.mesh, MeshLine1):
            bound = line_bound(self.workspace, equation, state, "energy", loads=loads)
        else:
            bound = static_bound(self.workspace, equation, state, "energy", self.factor)
        if not bound.exact:
            raise UncertifiedError(f"an energy error is only estimated: {bound.words}")
        self.least, self._latest = bound.rule.least_conductivity, bound
        return bound.upper, bound.residual.on_basis()[self.problem.free]

    def of_sensor(self, weights: Array, adjoint: Array) -> float:
        """Upper bound of the energy error of the adjoint state of a combination of the sensors."""
        if self.densities is None:
            return self._of_points(weights, adjoint)
        means, rest = self.densities
        error, _ = self.of(Field(self._constants, means @ weights), adjoint)
        # A combination of rests is at most that of their norms.
        return error + self._oscillation((rest.sqrt() @ np.abs(weights)) ** 2)

    def _of_points(self, weights: Array, adjoint: Array) -> float:
        """The same for point values, each at a vertex, or so near to one that ``|v(x) - v(y)| <= |x - y|^1/2 ‖v'‖``."""
        assert isinstance(self.problem.sensors, PointSensors)
        x, points = self.problem.basis.mesh.p[0], self.problem.sensors.points[:, 0]
        vertex = np.argmin(np.abs(x[:, None] - points), axis=0)
        loads = np.zeros(len(x))
        np.add.at(loads, vertex, weights)
        error, _ = self.of(Field(self._constants, np.zeros(self._constants.N)), adjoint, loads)
        away = np.sqrt(np.abs(x[vertex] - points) / np.min(self.least))
        return error + float(np.abs(weights) @ away)

    def friedrichs(self) -> float:
        """``‖v‖ <= C ‖v‖_V``."""
        r, rule = self._latest.residual, self._latest.rule
        cheap = self.workspace.friedrichs(r, rule, "energy", False)
        constant = cheap or self.workspace.friedrichs(r, rule, "energy", True)
        assert constant is not None
        return constant.value

    def _oscillation(self, rest: Array) -> float:
        """``(sum_K h_K² / (pi² a_K) ‖d - mean‖_K²)^1/2``: what a density that varies on elements adds."""
        h = diameters(self.problem.basis.mesh)
        return float(np.sqrt(np.sum(h**2 / (np.pi**2 * self.least) * rest)))


def _solved(problem: EllipticSource, right: Array) -> Array:
    states = np.zeros((problem.basis.N, right.shape[1]))
    states[problem.free] = problem.factor.solve(right[problem.free])
    return states


def _homogeneous(boundary: BoundaryConditions) -> BoundaryConditions:
    essential = tuple(replace(part, value=0.0) for part in boundary.dirichlet)
    return replace(boundary, dirichlet=essential, natural=tuple(replace(part, value=0.0) for part in boundary.natural))


def needed_size(problem: Problem, sigma: float, gap: float) -> float:
    """The mesh size at which the gap, which falls like ``h^2k`` for degree k, would be half of sigma_min."""
    h = float(diameters(problem.basis.mesh).max())
    return h * (0.5 * sigma / gap) ** (1.0 / (2.0 * degree(problem.basis)))
