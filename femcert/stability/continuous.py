"""From the discrete to the continuous problem: how far the forward map of the mesh can be from the exact one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from skfem.mesh import MeshLine1

from ..errors import UncertifiedError
from ..problem.base import Problem
from ..problem.boundary import BoundaryConditions
from ..problem.checks import Array
from ..problem.data import Data
from ..problem.elliptic import EllipticSource
from ..problem.equation import Equation, Field
from ..problem.insert import cut_at_sensors
from ..problem.lagrange import constant_basis, degree
from ..problem.linear import dense
from ..problem.mesh import diameters
from ..problem.modes import CosineSpace, SineSpace
from ..problem.sampling import Sampler
from ..problem.sensors import PointSensors
from ..residual.interval import line_bound
from ..residual.norms import state_norm
from ..residual.quadrature import MOST_ORDER
from ..residual.static import static_bound
from ..residual.workspace import Workspace

# Largest Taylor remainder of a mode on an element; the rules are exact to far more than that.
MOST_REMAINDER = 1e-6


@dataclass(frozen=True)
class Gap:
    """Energy errors of the states behind a forward matrix.

    Attributes
    ----------
    forward
        ``F`` of the mesh in orthonormal coordinates and whitened data, corrected by the residuals on adjoint states.
    columns, rows
        Guaranteed energy errors of the states of the columns, and of the adjoint states of the (whitened) sensors.
    """

    forward: Array
    columns: Array
    rows: Array

    @property
    def size(self) -> float:
        """``‖eta*‖ ‖eta‖``, an upper bound of the norm of the difference of the two forward maps."""
        return float(np.linalg.norm(self.rows) * np.linalg.norm(self.columns))


def continuous_gap(problem: Problem, data: Data | None) -> Gap:
    """How far the forward map of an `EllipticSource` on its mesh is from that of the continuous equation.

    For the column with state u, discrete state u_h and residual r, and a sensor with adjoint states z and z_h,
    ``H(u - u_h) = a(u - u_h, z) = r(z_h) + a(u - u_h, z - z_h)``; the first term is computed (it is rounding for a
    Galerkin state), the second one is at most the product of the energy errors. The class is that of the
    finite-element functions that the columns of the space are; of a `SineSpace` or `CosineSpace`, the functions
    themselves, with what interpolation leaves out. Point values are bounded on H1 on a line only; there both states
    are taken on the mesh cut at the sensors.

    Raises
    ------
    UncertifiedError
        The sensors are not bounded functionals that are known here, or an energy error is only estimated.
    """
    if not isinstance(problem, EllipticSource):
        raise UncertifiedError(f"guarantee='continuous' is for EllipticSource, not for a {type(problem).__name__}")
    space = problem.parameters
    if isinstance(problem.sensors, PointSensors) and problem.sensors.bounded:
        # The adjoint state of a point value has a kink there, so that is where a vertex belongs.
        problem = cut_at_sensors(problem)
    elif problem.sensors.densities() is None:
        name = type(problem.sensors).__name__
        raise UncertifiedError(f"{name} have no known density; a continuous guarantee needs Average- or RegionSensors")
    bounds = _Bounds(problem)
    functions = None
    if isinstance(space, (SineSpace, CosineSpace)) and space.inner == "l2":
        functions = _Functions(problem, space)
    R = space.root if functions is None else functions.root
    B = solve_triangular(R, dense(problem.parameters.matrix).T, trans="T").T
    states = _solved(problem, np.asarray(problem.load @ B))
    found = [bounds.of(Field(problem.parameters.basis, B[:, j]), states[:, j]) for j in range(B.shape[1])]
    columns = np.array([eta for eta, _ in found])
    whiten = np.eye(problem.sensors.count) if data is None else data.whiten(np.eye(problem.sensors.count))
    H = whiten @ dense(problem.sensors.matrix)
    adjoint = _solved(problem, H.T)
    rows = np.array([bounds.of_sensor(weights, z) for weights, z in zip(whiten, adjoint.T, strict=True)])
    forward = H @ states + adjoint[problem.free].T @ np.column_stack([r for _, r in found])
    if functions is not None:
        # S applied to what interpolation left out: its value on the adjoint states, and the product of errors.
        seen, missing = functions.left_out(B, adjoint)
        forward, columns = forward + seen, columns + bounds.friedrichs() * missing
    return Gap(forward, columns, rows)


class _Functions:
    """A class given by functions, sines or cosines, of which the columns of the space are interpolants."""

    def __init__(self, problem: EllipticSource, space: SineSpace | CosineSpace) -> None:
        self.basis, self.columns, self.space = problem.basis, problem.parameters.basis, space
        self.sampler = Sampler(self.basis.mesh, _order(self.basis.mesh, self.space.steepness))
        x = self.sampler.x
        self.values = self.space.functions_at(x.reshape(len(x), -1)).reshape(-1, *x.shape[1:])
        gram = np.array([[self.sampler.integral(f * g).sum() for g in self.values] for f in self.values])
        self.root: Array = cholesky(gram)

    def left_out(self, columns: Array, adjoint: Array) -> tuple[Array, Array]:
        """``(z_i, g_j)`` and ``‖g_j‖`` for ``g_j`` = function - column, in orthonormal coordinates."""
        mix = solve_triangular(self.root, np.eye(len(self.root)))
        gaps = [
            np.tensordot(mix[:, j], self.values, axes=1) - self.sampler.values(self.columns, columns[:, j])
            for j in range(columns.shape[1])
        ]
        states = [self.sampler.values(self.basis, z) for z in adjoint.T]
        seen = np.array([[self.sampler.integral(z * g).sum() for g in gaps] for z in states])
        return seen, np.array([np.sqrt(self.sampler.integral(g**2).sum()) for g in gaps])


def _order(mesh: Any, steepness: float) -> int:
    """The order at which the Taylor remainder of the functions on an element is rounding, as far as there are rules.

    Raises
    ------
    UncertifiedError
        The elements are so large for the functions that no rule integrates them.
    """
    reach, term = steepness * float(diameters(mesh).max()), 1.0
    for n in range(1, MOST_ORDER[mesh.t.shape[0]] + 1):
        term *= reach / n
        if term < 1e-15:
            return max(n, 6)
    if not term <= MOST_REMAINDER:
        h = diameters(mesh).max() / reach
        raise UncertifiedError(
            f"not certified on this mesh, refine: a mode has a wavelength of {2.0 * np.pi / steepness:.2g}, which no "
            f"quadrature resolves on elements of size {diameters(mesh).max():.2g}; elements of size {h:.2g} would do"
        )
    return MOST_ORDER[mesh.t.shape[0]]


class _Bounds:
    """Energy errors for sources with homogeneous boundary conditions."""

    def __init__(self, problem: EllipticSource) -> None:
        self.problem = problem
        self.workspace = Workspace(problem)
        self.factor = state_norm(problem, "energy").factor
        zero = problem.equation(np.zeros(problem.parameters.basis.N))
        self.equation = replace(zero, boundary=_homogeneous(problem.boundary))
        self.densities = problem.sensors.densities()
        self._constants = constant_basis(problem.basis)
        self.least: Any = np.inf
        self._latest: Any = None

    def of(self, source: Field, state: Array, loads: Array | None = None) -> tuple[float, Array]:
        """Upper bound of the energy error of a state, and its residual on the free dofs; point loads only on a line."""
        equation: Equation = replace(self.equation, source=source)
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
