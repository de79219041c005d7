"""Forward maps that are known in closed form: heat on a box, and line integrals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ..checks import Array
from ..errors import UncertifiedError
from ..mesh.geometry import diameters, is_affine, measures
from ..mesh.integrate import disc_averages, ray_integrals
from ..mesh.sample import Sampler
from ..problem.base import Problem
from ..problem.boundary import BoundaryConditions
from ..problem.forward import ROUNDING, dense
from ..problem.heat import HeatInitial
from ..problem.modes import SineSpace
from ..problem.sensors import AverageSensors, PointSensors, Sensors
from ..problem.strong import Given
from ..problem.tomography import RaySensors, Tomography
from ..residual.friedrichs import connected_parts
from ..residual.quadrature import MOST_ORDER
from .functions import FunctionClass, function_class, is_function_class, radius_around, resolution, resolved_degree
from .gap import Gap, Prediction

# Sums of sines and their integrals, relative to what they are sums of.
UNIT = 1e-14
# Most Gauss points on a chord.
MOST_POINTS = 40


@dataclass(frozen=True)
class ClosedMap:
    """A forward matrix of the continuous problem, whitened, from coordinates to data.

    Attributes
    ----------
    matrix, errors
        F, and how far each of its entries may be off.
    root
        Upper triangular R with ``‖p‖_Q <= ‖R c‖``.
    apart
        ``‖q - p‖_Q`` of a dof vector q and coordinates of p, from above.
    stretch
        See `ExactMap`.
    """

    matrix: Array
    errors: Array
    root: Array
    whitening: Array
    apart: Callable[[Array, Array], float]
    stretch: float = 1.0

    def predict(self, coefficients: Array) -> Prediction:
        """``F c``."""
        return Prediction(self.matrix @ coefficients, self.errors @ np.abs(coefficients))

    def distance(self, parameter: Array, coefficients: Array) -> float:
        """An upper bound of ``‖q - p‖_Q``."""
        return self.apart(parameter, coefficients)

    def gap(self, problem: Problem) -> Gap:
        """The matrix in orthonormal coordinates; only integrals and rounding stand between it and the exact one."""
        forward = solve_triangular(self.root, self.matrix.T, trans="T").T
        inverse = np.abs(solve_triangular(self.root, np.eye(len(self.root))))
        m, k = forward.shape
        integrals = float(np.linalg.norm(self.errors @ inverse))
        return Gap(np.asarray(forward), np.zeros(k), np.zeros(m), self, problem, self.whitening, integrals)


def heat_map(problem: HeatInitial, whitening: Array) -> ClosedMap:
    """``F_ij = H_i(phi_j) exp(-kappa lam_j t)`` for sines phi_j that vanish on the boundary of their box.

    Raises
    ------
    UncertifiedError
        The sines are no eigenfunctions of the equation, or the sensors are no averages of the state.
    """
    space = problem.parameters
    reason = _no_eigenfunctions(problem)
    if reason:
        raise UncertifiedError(
            "guarantee='continuous' is for EllipticSource, and for HeatInitial with a SineSpace on a mesh that is its "
            f"box, constant diffusivity and u = 0 all around; here {reason}"
        )
    assert isinstance(space, SineSpace)
    seen, off = _seen(space, problem.sensors)
    waves = np.pi * space.frequencies / space.lengths[:, None]
    exponents = np.outer(problem.times, _diffusivity(problem) * np.sum(waves**2, axis=0))
    decay = np.exp(-exponents)[:, None, :]
    k = space.dimension
    F = (decay * seen).reshape(-1, k)
    # The relative rounding of an exponential grows with its argument.
    errors = (decay * (off + UNIT * (1.0 + exponents[:, None, :]) * space.amplitudes)).reshape(-1, k)
    norms = space.amplitudes * np.sqrt(np.prod(space.lengths / 2.0))
    functions = FunctionClass(space, problem.basis.mesh)

    def apart(parameter: Array, coefficients: Array) -> float:
        return functions.distance(space.basis, parameter, coefficients)

    return ClosedMap(whitening @ F, np.abs(whitening) @ errors, np.diag(norms), whitening, apart, functions.stretch)


def ray_map(problem: Tomography, whitening: Array) -> ClosedMap:
    """Line integrals: exact for finite-element functions, by Gauss points on every chord for classes of functions.

    Raises
    ------
    UncertifiedError
        The rays are only sampled, or their integrals not exact on these elements.
    """
    space, rays, mesh = problem.parameters, problem.sensors, problem.basis.mesh
    assert isinstance(rays, RaySensors)
    if rays.rule != "exact":
        raise UncertifiedError(f"rule={rays.rule!r} is no line integral; guarantee='continuous' needs rule='exact'")
    functions = function_class(space, mesh)
    if functions is not None:
        return _rays_of_functions(rays, functions, whitening)
    if not is_affine(mesh):
        raise UncertifiedError("line integrals are not exact on quadrilaterals that are no parallelograms")
    F = dense(rays.matrix @ space.matrix)
    errors = ROUNDING * dense(abs(rays.matrix) @ abs(space.matrix))

    def apart(parameter: Array, coefficients: Array) -> float:
        return space.norm(parameter - space.field(coefficients))

    return ClosedMap(whitening @ F, np.abs(whitening) @ errors, space.root, whitening, apart)


def _rays_of_functions(rays: RaySensors, functions: FunctionClass, whitening: Array) -> ClosedMap:
    space, mesh = functions.space, functions.mesh
    h = float(diameters(mesh).max())
    degree, away = resolution(space, h, radius_around(h, 1), 2 * MOST_POINTS - 1)
    F = ray_integrals(mesh, rays.origins, rays.directions, space.functions_at, degree // 2 + 1).T
    lengths = np.asarray(rays.matrix.sum(axis=1)).ravel()
    largest = np.abs(functions.values).max(axis=(1, 2))
    errors = np.outer(lengths, 2.0 * away + ROUNDING * largest)
    # Quadrature may have made the functions too small.
    root = functions.root * (1.0 + float(np.linalg.norm(functions.missed(functions.orthonormal))))

    def apart(parameter: Array, coefficients: Array) -> float:
        return functions.distance(space.basis, parameter, coefficients)

    return ClosedMap(whitening @ F, np.abs(whitening) @ errors, root, whitening, apart, functions.stretch)


def _no_eigenfunctions(problem: HeatInitial) -> str:
    """Why the functions of the class do not just decay; empty if they do."""
    space, mesh = problem.parameters, problem.basis.mesh
    if not isinstance(space, SineSpace) or not is_function_class(space):
        return f"the class is a {type(space).__name__} with inner={space.inner!r}"
    reason = _no_box(mesh, space.low, space.high)
    if reason:
        return reason
    if not _all_essential(problem.boundary, mesh):
        return "some of the boundary is not u = 0"
    if _diffusivity(problem) is None:
        return "the diffusivity varies"
    if not isinstance(problem.sensors, PointSensors):
        return "" if problem.sensors.densities() is not None else f"the sensors are {type(problem.sensors).__name__}"
    return "" if problem.sensors.bounded else "the sensors are points in the plane, not averages"


def _no_box(mesh: Any, low: Array, high: Array) -> str:
    """Why the domain of a mesh is not the box from `low` to `high`; empty if it is.

    A crack, a hole or a gap has facets that belong to one element only and lie inside the box.
    """
    p = mesh.p[:, np.unique(mesh.t)]
    near = 1e-12 * float(np.max(high - low))
    if np.any(np.abs(np.concatenate([p.min(axis=1) - low, p.max(axis=1) - high])) > near):
        return "the box of the sines is not that of the mesh"
    ends = mesh.p[:, mesh.facets[:, mesh.boundary_facets()]]
    sides = [np.all(np.abs(ends[i] - x) <= near, axis=0) for i in range(len(p)) for x in (low[i], high[i])]
    inside = int(np.count_nonzero(~np.any(sides, axis=0)))
    if inside:
        return f"{inside} boundary facets lie inside the box: the domain has a crack, a hole or a gap"
    volume = float(np.prod(high - low))
    if connected_parts(mesh).max() > 0 or abs(float(measures(mesh).sum()) - volume) > 1e-11 * volume:
        return "the mesh does not fill its box once"
    return ""


def _all_essential(boundary: BoundaryConditions, mesh: Any) -> bool:
    facets = [part.facets for part in boundary.dirichlet if not callable(part.value) and part.value == 0.0]
    return bool(facets) and np.array_equal(np.unique(np.concatenate(facets)), np.sort(mesh.boundary_facets()))


def _diffusivity(problem: HeatInitial) -> Any:
    given = problem.time.strong(np.zeros(problem.basis.N)).conductivity
    if not isinstance(given, Given) or given.varies:
        return None
    values = given.at(Sampler(problem.basis.mesh, 0))
    return float(values.flat[0]) if np.ptp(values) == 0.0 else None


def _seen(space: SineSpace, sensors: Sensors) -> tuple[Array, Array]:
    """``H_i(phi_j)`` of the functions themselves, and how far quadrature may be off."""
    mesh = space.basis.mesh
    m, most = sensors.count, np.tile(space.amplitudes, (sensors.count, 1))
    if isinstance(sensors, PointSensors):
        return space.functions_at(sensors.points.T).T, np.zeros((m, space.dimension))
    h = float(diameters(mesh).max())
    discs = isinstance(sensors, AverageSensors)
    corners = min(mesh.t.shape[0], 3) if discs else mesh.t.shape[0]
    spare = 1 if corners == 4 else 0
    around = radius_around(h, mesh.dim())
    degree, remainder = resolved_degree(space.steepness, h, around, MOST_ORDER[corners] - spare)
    # Two of the rules on triangles have negative weights.
    degree += corners == 3 and degree in (3, 7)
    if isinstance(sensors, AverageSensors):
        values = disc_averages(mesh, sensors.points.T, sensors.radius, space.functions_at, degree).T
        return values, 2.0 * remainder * most
    densities = sensors.densities()
    assert densities is not None
    means, rest = densities
    if rest.nnz and rest.data.any():
        raise UncertifiedError(f"the densities of {type(sensors).__name__} vary on elements")
    sampler = Sampler(mesh, degree + spare)
    modes = space.functions_at(sampler.x.reshape(mesh.dim(), -1)).reshape(-1, *sampler.dx.shape)
    values = np.asarray(means.T @ np.array([sampler.integral(f) for f in modes]).T)
    # A density that integrates to one makes an average.
    return values, 2.0 * remainder * np.asarray(abs(means).T @ measures(mesh))[:, None] * most
