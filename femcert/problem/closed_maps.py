"""Forward maps of the continuous problem, and those that are known in closed form: heat on a box, line integrals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..checks import Array
from ..errors import UncertifiedError
from ..mesh.geometry import connected_parts, diameters, is_affine, measures
from ..mesh.integrate import ray_integrals
from ..mesh.sample import Sampler
from .boundary import BoundaryConditions
from .forward import ROUNDING, dense
from .functions import BoxModes, FunctionClass, radius_around
from .space import ParameterSpace

if TYPE_CHECKING:
    from .heat import HeatInitial
    from .tomography import RaySensors, Tomography

# Sums of sines and their integrals, relative to what they are sums of.
UNIT = 1e-14
# Most Gauss points on a chord.
MOST_POINTS = 40


class Prediction(NamedTuple):
    """Whitened data of the exact solution for a parameter of the class, and how far they may be off.

    Attributes
    ----------
    values, errors
        Of every sensor.
    joint
        An upper bound of the norm of what all sensors together may be off beside `errors`.
    """

    values: Array
    errors: Array
    joint: float = 0.0

    @property
    def size(self) -> float:
        """An upper bound of the norm of all errors."""
        return float(np.linalg.norm(self.errors)) + self.joint


class ContinuousMap(Protocol):
    """The forward map of the continuous problem, as far as it is known."""

    @property
    def root(self) -> Array:
        """Upper triangular R with ``‖p‖_Q = ‖R c‖``, p the parameter with coordinates c."""

    @property
    def interpolation_norm(self) -> float:
        """The largest ``‖B c‖_Q / ‖p‖_Q``, p the parameter with coordinates c: 1 where the columns are the class."""

    def predict(self, coefficients: Array) -> Prediction:
        """Whitened data of the exact solution for the parameter of the class with these coordinates."""

    def distance(self, parameter: Array, coefficients: Array) -> float:
        """An upper bound of ``‖q - p‖_Q``, q a dof vector and p the parameter with these coordinates."""


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
    interpolation_norm
        See `ContinuousMap`.
    """

    matrix: Array
    errors: Array
    root: Array
    whitening: Array
    apart: Callable[[Array, Array], float]
    interpolation_norm: float = 1.0

    def predict(self, coefficients: Array) -> Prediction:
        """``F c``."""
        return Prediction(self.matrix @ coefficients, self.errors @ np.abs(coefficients))

    def distance(self, parameter: Array, coefficients: Array) -> float:
        """An upper bound of ``‖q - p‖_Q``."""
        return self.apart(parameter, coefficients)


def heat_map(problem: HeatInitial, whitening: Array) -> ClosedMap:
    """``F_ij = H_i(phi_j) exp(-kappa lam_j t)`` for sines phi_j that vanish on the boundary of their box.

    Raises
    ------
    UncertifiedError
        The sines are no eigenfunctions of the equation, or the sensors are no averages of the state.
    """
    modes, mesh = problem.parameters.dirichlet_modes(), problem.basis.mesh
    reason = _not_decaying(problem, modes)
    read = None
    if modes is not None and not reason:
        read = problem.sensors.of_functions(modes.waves.at, modes.waves.steepness)
        reason = "" if read else f"the sensors are {type(problem.sensors).__name__}"
    if reason:
        raise UncertifiedError(
            "guarantee='continuous' is for EllipticSource, and for HeatInitial with a SineSpace on a mesh that is its "
            f"box, constant diffusivity and u = 0 all around; here {reason}"
        )
    assert modes is not None
    assert read is not None
    waves, (seen, off) = modes.waves, read
    exponents = np.outer(problem.times, _diffusivity(problem) * modes.eigenvalues)
    decay = np.exp(-exponents)[:, None, :]
    k = len(modes.norms)
    F = (decay * seen).reshape(-1, k)
    # The relative rounding of an exponential grows with its argument.
    unit = off[:, None] * waves.amplitudes + UNIT * (1.0 + exponents[:, None, :]) * waves.amplitudes
    errors = (decay * unit).reshape(-1, k)
    functions = FunctionClass(waves, mesh, problem.parameters.root)
    return _of_functions(F, errors, np.diag(modes.norms), whitening, problem.parameters, functions)


def ray_map(problem: Tomography, whitening: Array) -> ClosedMap:
    """Line integrals: exact for finite-element functions, by Gauss points on every chord for classes of functions.

    Raises
    ------
    UncertifiedError
        The rays are only sampled, or their integrals not exact on these elements.
    """
    space, rays, mesh = problem.parameters, problem.sensors, problem.basis.mesh
    if rays.rule != "exact":
        raise UncertifiedError(f"rule={rays.rule!r} is no line integral; guarantee='continuous' needs rule='exact'")
    functions = space.functions_on(mesh)
    if functions is not None:
        return _rays_of_functions(space, rays, functions, whitening)
    if not is_affine(mesh):
        raise UncertifiedError("line integrals are not exact on quadrilaterals that are no parallelograms")
    F = dense(rays.matrix @ space.matrix)
    errors = ROUNDING * dense(abs(rays.matrix) @ abs(space.matrix))

    def apart(parameter: Array, coefficients: Array) -> float:
        return space.norm(parameter - space.field(coefficients))

    return ClosedMap(whitening @ F, np.abs(whitening) @ errors, space.root, whitening, apart)


def _rays_of_functions(
    space: ParameterSpace, rays: RaySensors, functions: FunctionClass, whitening: Array
) -> ClosedMap:
    mesh = functions.mesh
    h = float(diameters(mesh).max())
    degree, away = functions.functions.near_polynomials(h, radius_around(h, 1), 2 * MOST_POINTS - 1)
    at, points = functions.functions.at, degree // 2 + 1
    F = ray_integrals(mesh, rays.origins, rays.directions, at, points, rays.lengths).T
    lengths = np.asarray(rays.matrix.sum(axis=1)).ravel()
    errors = np.outer(lengths, 2.0 * away + ROUNDING * functions.largest)
    # Quadrature may have made the functions too small.
    root = functions.root * (1.0 + float(np.linalg.norm(functions.missed(functions.orthonormal))))
    return _of_functions(F, errors, root, whitening, space, functions)


def _of_functions(
    F: Array, errors: Array, root: Array, whitening: Array, space: ParameterSpace, functions: FunctionClass
) -> ClosedMap:
    """The map on a class of functions, with distances of dof vectors from these."""

    def apart(parameter: Array, coefficients: Array) -> float:
        return functions.distance(space.basis, parameter, coefficients)

    return ClosedMap(whitening @ F, np.abs(whitening) @ errors, root, whitening, apart, functions.interpolation_norm)


def _not_decaying(problem: HeatInitial, modes: BoxModes | None) -> str:
    """Why the functions of the class do not just decay, or the sensors are no averages of them; empty if they do."""
    space, mesh = problem.parameters, problem.basis.mesh
    if modes is None:
        return f"the class is a {type(space).__name__} with inner={space.inner!r}"
    reason = _no_box(mesh, modes.low, modes.high)
    if reason:
        return reason
    if not _all_essential(problem.boundary, mesh):
        return "some of the boundary is not u = 0"
    if _diffusivity(problem) is None:
        return "the diffusivity varies"
    return "" if problem.sensors.bounded else f"the sensors are {type(problem.sensors).__name__} that are not averages"


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
    if given.varies:
        return None
    values = given.at(Sampler(problem.basis.mesh, 0))
    return float(values.flat[0]) if np.ptp(values) == 0.0 else None
