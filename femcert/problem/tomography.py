"""Tomography: line integrals of a finite-element image."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from skfem import Basis

from ..checks import Array, coordinates, count, frozen, number, real_array, real_vector
from ..errors import InputError
from ..mesh.elements import check_quadrature, degree, mass_matrix
from ..mesh.integrate import ray_matrix, sampled_ray_matrix, segment_matrix
from ..mesh.locate import Locator
from ..shown import in_brief, of_basis
from .base import Problem, check_home
from .closed_maps import ContinuousMap, ray_map
from .data import Data
from .forward import SizedMap, dense
from .sensors import Sensors
from .space import ParameterSpace, check_space


class RaySensors(Sensors):
    """Line integrals, along parallel beams or along given segments. A ray that misses the mesh reads zero.

    Parallel beams: the rays of an angle ``t`` run in the direction ``(-sin t, cos t)`` through
    ``centre + s (cos t, sin t)``, with offsets s spaced evenly and symmetric about zero; for each angle `bins` rays,
    one per detector bin.

    Parameters
    ----------
    angles
        In degrees.
    bins
        Rays per angle.
    spacing
        Distance between neighbouring rays; default: the detector just covers the mesh at every angle.
    rule
        ``"exact"``: every ray is clipped to each element and integrated there exactly. ``"sampled"``: the paper's rule,
        the sum of `bins` samples along the ray, `spacing` apart, zero outside the mesh (times `spacing`).
    rays
        Instead of all these: a pair of starts and ends, ``(m, 2)`` each, a row for each segment, such as boreholes or
        fan beams have. Ends may lie outside of the mesh; a segment may come twice, where it was measured twice.

    Examples
    --------
    From the left side of the unit square to the right, and from its middle upwards:

    >>> from skfem import Basis, ElementTriP1, MeshTri
    >>> basis = Basis(MeshTri().refined(3), ElementTriP1())
    >>> sensors = RaySensors(basis, rays=([[0.0, 0.2], [0.5, 0.5]], [[1.0, 0.8], [0.5, 2.0]]))
    >>> sensors(basis.doflocs[0] + 1.0).round(6).tolist()
    [1.749286, 0.75]
    """

    def __init__(
        self,
        basis: Basis,
        *,
        angles: Any = None,
        bins: int | None = None,
        spacing: float | None = None,
        rule: str = "exact",
        rays: Any = None,
    ) -> None:
        check_image_basis(basis)
        if basis.mesh.dim() != 2:
            raise InputError(f"rays need a 2D mesh; this one has dimension {basis.mesh.dim()}")
        self.rule = rule
        self.angles: Array | None = None
        self.rays: tuple[Array, Array] | None = None
        self.lengths: Array | None = None
        if rays is not None:
            if not (angles is None and bins is None and spacing is None and rule == "exact"):
                raise InputError("rays came together with angles, bins, spacing or rule; expected one of them")
            super().__init__(self._segments(basis, rays), basis)
            return
        if angles is None or bins is None:
            raise InputError("angles or bins are missing; expected both of them, or rays=(starts, ends)")
        super().__init__(self._parallel(basis, angles, bins, spacing), basis)
        self._refuse_blind_angles()

    def _segments(self, basis: Basis, rays: Any) -> Any:
        starts, ends = _checked_rays(rays)
        self.rays = frozen(starts.T.copy()), frozen(ends.T.copy())
        matrix = segment_matrix(basis, starts, ends)
        self.lengths = frozen(np.linalg.norm(ends - starts, axis=0))
        self.origins, self.directions = frozen(starts), frozen((ends - starts) / self.lengths)
        if not matrix.nnz:
            raise InputError(f"none of {len(self.lengths)} rays meets the mesh; check their units")
        return matrix

    def _parallel(self, basis: Basis, angles: Any, bins: int, spacing: float | None) -> Any:
        self.angles = _checked_angles(angles)
        self.bins = count(bins, "bins")
        theta = np.deg2rad(self.angles)
        across = np.array([np.cos(theta), np.sin(theta)])
        along = np.array([-np.sin(theta), np.cos(theta)])
        centre = 0.5 * (basis.mesh.p.min(axis=1) + basis.mesh.p.max(axis=1))
        reach = 2.0 * np.abs(across.T @ (basis.mesh.p - centre[:, None])).max()
        self.spacing = reach / self.bins if spacing is None else number(spacing, "spacing", above=0.0)
        offsets = self.spacing * (np.arange(self.bins) - 0.5 * (self.bins - 1))
        # Angle by angle, bin by bin.
        origins = (centre[:, None, None] + across[:, :, None] * offsets).reshape(2, -1)
        directions = np.repeat(along, self.bins, axis=1)
        self.origins, self.directions = frozen(origins), frozen(directions)
        if self.rule == "exact":
            return ray_matrix(basis, origins, directions)
        if self.rule != "sampled":
            raise InputError(f"rule is {self.rule!r}; expected 'exact' or 'sampled'")
        locator = Locator(basis.mesh)
        return sampled_ray_matrix(basis, locator, origins, directions, offsets, weight=self.spacing)

    def _refuse_blind_angles(self) -> None:
        assert self.angles is not None
        hits = np.diff(self.matrix.indptr).reshape(len(self.angles), self.bins).any(axis=1)
        if not hits.all():
            raise InputError(f"no ray at angle {self.angles[np.argmin(hits)]:g} meets the mesh; check spacing and bins")


class Tomography(SizedMap, Problem):
    """Recover an image q from its line integrals ``y = R q``.

    There is no state equation: the "state" that the rays see is the image itself, so a candidate's state is None.

    Parameters
    ----------
    basis
        Basis of the image (of degree 0, 1 or 2 on any 2D mesh); `parameters` must live on it.
    angles, bins, spacing, rule
        Parallel beams, see `RaySensors`.
    rays
        Instead: starts and ends of segments, see `RaySensors`.
    """

    basis: Basis

    def __init__(
        self,
        basis: Basis,
        *,
        parameters: ParameterSpace,
        angles: Any = None,
        bins: int | None = None,
        spacing: float | None = None,
        rule: str = "exact",
        rays: Any = None,
    ) -> None:
        check_image_basis(basis)
        if type(check_space(parameters).basis.elem) is not type(basis.elem):
            raise InputError(
                f"parameters live on {type(parameters.basis.elem).__name__}, the image on "
                f"{type(basis.elem).__name__}; expected the same element"
            )
        sensors = RaySensors(basis, angles=angles, bins=bins, spacing=spacing, rule=rule, rays=rays)
        check_home(basis, parameters, sensors)
        self.basis, self.parameters, self.sensors = basis, parameters, sensors

    @property
    def observation_count(self) -> int:
        """Number of rays."""
        return self.sensors.count

    def summary(self) -> dict[str, str]:
        """Mesh, class and rays."""
        return {
            "mesh": of_basis(self.basis),
            "parameters": in_brief(self.parameters),
            "sensors": in_brief(self.sensors),
        }

    def closed_map(self, whitening: Array) -> ContinuousMap:
        """Line integrals of the image itself, see `femcert.problem.closed_maps.ray_map`."""
        return ray_map(self, whitening)

    def check_state(self, state: Any) -> Array:
        """An image, or an `InputError`."""
        return real_vector(state, self.basis.N, "state")

    def solve(self, parameter: Any) -> Array:
        """The image itself."""
        return self.check_parameter(parameter).copy()

    def observe(self, state: Any) -> Array:
        """``R u`` for an image u."""
        return self.sensors(self.check_state(state))

    def predict(self, state: Any, parameter: Any) -> Array:
        """``R q``: the rays read the image, whatever a candidate gives as its state."""
        return self.observe(self.check_parameter(parameter))

    def residual(self, state: Any, parameter: Any) -> Array:
        """``(q - u, phi_i)``: how far an image that is given as a state is from the parameter."""
        return np.asarray(mass_matrix(self.basis) @ (self.check_parameter(parameter) - self.check_state(state)))

    def read(self, fields: Any) -> tuple[Array, Array]:
        """``R`` for columns of images, and the largest value of each."""
        columns = dense(fields)
        return np.asarray(self.sensors.matrix @ columns), np.abs(columns).max(axis=0)

    def pull(self, weights: Array) -> tuple[Array, Array]:
        """``R'`` for columns of ray weights (back projection), and the largest weights."""
        return np.asarray(self.sensors.matrix.T @ weights), np.abs(weights).max(axis=0)

    @cached_property
    def _sized(self) -> tuple[Array, Array, Array]:
        """By one product, whatever the class."""
        H, B = self.sensors.matrix, self.parameters.matrix
        return frozen(dense(H @ B)), self.readings, np.asarray(dense(np.abs(B).max(axis=0))).ravel()

    @cached_property
    def readings(self) -> Array:
        """Lengths of the rays in the mesh."""
        return np.asarray(abs(self.sensors.matrix).sum(axis=1)).ravel()

    @property
    def loads(self) -> Array:
        """Of the columns of the class: there is no load between a parameter and its image."""
        return np.asarray(dense(np.abs(self.parameters.matrix).max(axis=0))).ravel()

    @cached_property
    def offset(self) -> Array:
        """Zero: an empty image has no line integrals."""
        return frozen(np.zeros(self.observation_count))

    def lost_to_rounding(self, data: Data, state: Any, at: Any = None) -> float:
        """What rounding may leave in ``R u - y``, in the norm of Y."""
        sizes = np.abs(state).max() * self.readings
        return self.rounding_of(data) * (data.norm(sizes) + data.norm(data.values))


def _checked_angles(angles: Any) -> Array:
    array = np.atleast_1d(real_array(angles, "angles"))
    if array.ndim != 1 or not array.size:
        raise InputError(f"angles has shape {array.shape}; expected a list of degrees")
    turned = np.sort(np.mod(array, 180.0))
    if np.any(np.diff([*turned, turned[0] + 180.0]) < 1e-9):
        raise InputError("two angles see the same rays (equal, or 180 degrees apart); expected distinct ones")
    return array


def check_image_basis(basis: Basis) -> None:
    """Refuse a basis on which no image can live: unlike a state, an image may be piecewise constant."""
    degree(basis)
    check_quadrature(basis)


def _checked_rays(rays: Any) -> tuple[Array, Array]:
    """Starts and ends as columns ``(2, m)``."""
    if not isinstance(rays, (tuple, list)) or len(rays) != 2:
        raise InputError(f"rays is a {type(rays).__name__}; expected a pair (starts, ends)")
    starts, ends = coordinates(rays[0], "starts"), coordinates(rays[1], "ends")
    for array, name in ((starts, "starts"), (ends, "ends")):
        if array.ndim != 2 or array.shape[1] != 2 or not len(array):
            raise InputError(f"{name} has shape {array.shape}; expected (m, 2), a row for each ray")
    if starts.shape != ends.shape:
        raise InputError(f"there are {len(starts)} starts and {len(ends)} ends; expected as many")
    return starts.T, ends.T
