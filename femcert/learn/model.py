"""State and parameter of an inverse PINN as functions of trainable numbers."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..checks import Array
from ..mesh.locate import Locator
from ..mesh.sample import Points
from ..problem.forward import dense
from ..problem.space import ParameterSpace
from .distance import BoundaryDistance
from .network import Network
from .torch import array_of, load_torch, tensor


class Place(Points):
    """Points of a mesh with a ``time`` for each of them, or None."""

    def __init__(self, mesh: Any, x: Array, cells: NDArray[np.int64] | None = None, time: Array | None = None) -> None:
        super().__init__(mesh, x, cells)
        self.time = time

    @property
    def rows(self) -> Array:
        """The inputs of a network: a row for each point, the time last."""
        return np.column_stack([*self.x] if self.time is None else [*self.x, self.time])


class StateModel:
    """``u = lift + size phi N`` with a network N, phi the distance to the Dirichlet boundary or 1.

    Points are prepared once; their distances do not change with the weights.
    """

    def __init__(self, network: Network, *, size: float, lift: float = 0.0, distance: BoundaryDistance | None) -> None:
        self.network, self.size, self.lift, self.distance = network, size, lift, distance

    def prepare(self, place: Place) -> PreparedState:
        """The state at fixed points."""
        return PreparedState(self, place)


class PreparedState:
    """A state at fixed points: values, and jets by the product rule."""

    def __init__(self, model: StateModel, place: Place) -> None:
        self._model = model
        self._rows = tensor(place.rows)
        self._phi = None if model.distance is None else tuple(map(tensor, model.distance.jet(place.x)))

    def value(self) -> Any:
        """``(points,)``"""
        N = self._model.network.value(self._rows)
        if self._phi is not None:
            N = self._phi[0] * N
        return self._model.lift + self._model.size * N

    def jet(self) -> tuple[Any, Any, Any]:
        """Value, derivatives by the inputs ``(inputs, points)``, Laplacian."""
        N, slope, bend = self._model.network.jet(self._rows)
        if self._phi is not None:
            phi, phi_slope, phi_bend = self._phi
            space = len(phi_slope)
            bend = phi * bend + 2.0 * (phi_slope * slope[:space]).sum(dim=0) + phi_bend * N
            # phi does not depend on time.
            later = phi * slope[space:]
            slope = load_torch().cat([phi * slope[:space] + phi_slope * N, later])
            N = phi * N
        size = self._model.size
        return self._model.lift + size * N, size * slope, size * bend


class StateFunction:
    """The trained state as a function of x (at one time), with exact derivatives; its weights are its own."""

    def __init__(self, model: StateModel, time: float | None = None) -> None:
        self._model, self._time = model, time

    def __call__(self, x: Any) -> Array:
        """The same as `value`."""
        return self.value(x)

    def value(self, x: Any) -> Array:
        """Values, ``x.shape[1:]``."""
        with load_torch().no_grad():
            return array_of(self._at(x).value()).reshape(np.shape(x)[1:])

    def gradient(self, x: Any) -> Array:
        """The gradient in space, shaped like x."""
        with load_torch().no_grad():
            return array_of(self._at(x).jet()[1])[: len(x)].reshape(np.shape(x))

    def laplacian(self, x: Any) -> Array:
        """The Laplacian in space, ``x.shape[1:]``."""
        with load_torch().no_grad():
            return array_of(self._at(x).jet()[2]).reshape(np.shape(x)[1:])

    def _at(self, x: Any) -> PreparedState:
        points = np.asarray(x, dtype=float).reshape(len(x), -1)
        time = None if self._time is None else np.full(points.shape[1], self._time)
        return self._model.prepare(Place(None, points, time=time))


class ParameterModel(Protocol):
    """A parameter q with trainable numbers."""

    variables: list[Any]

    def prepare(self, place: Place, *, slopes: bool) -> Any:
        """A function without arguments: q and, if asked for, its gradient ``(dimension, points)`` at fixed points."""

    def function(self) -> Any:
        """The trained parameter as a function of x."""


class NetworkParameter:
    """``q = start + size N`` with a network of its own."""

    def __init__(self, network: Network, *, size: float, start: float) -> None:
        self._model = StateModel(network, size=size, lift=start, distance=None)
        self.variables = network.variables

    def prepare(self, place: Place, *, slopes: bool) -> Any:
        """See `ParameterModel`."""
        at = self._model.prepare(place)
        return (lambda: at.jet()[:2]) if slopes else (lambda: (at.value(), None))

    def function(self) -> StateFunction:
        """See `ParameterModel`."""
        return StateFunction(self._model)


class ClassParameter:
    """``q = B c`` in the admissible class; trained are the coordinates, scaled to size one."""

    def __init__(self, space: ParameterSpace, *, size: float, start: float) -> None:
        self._space = space
        whole = space.norm(np.ones(space.basis.N))
        self._unit = tensor(size * whole / np.sqrt(space.gram.diagonal()))
        self._start = tensor(space.project(np.full(space.basis.N, start))[0])
        self.variables = [tensor(np.zeros(space.dimension))]

    def coordinates(self) -> Any:
        """c, as a tensor."""
        return self._start + self._unit * self.variables[0]

    def prepare(self, place: Place, *, slopes: bool) -> Any:
        """See `ParameterModel`; the gradient is that inside of the elements."""
        B, basis = self._space.matrix, self._space.basis
        values = tensor(dense(place.values_matrix(basis) @ B))
        if not slopes:
            return lambda: (values @ self.coordinates(), None)
        gradient = tensor(np.array([dense(G @ B) for G in place.gradient_matrices(basis)]))
        return lambda: (values @ self.coordinates(), gradient @ self.coordinates())

    def function(self) -> FieldFunction:
        """See `ParameterModel`."""
        return FieldFunction(self._space.basis, self._space.field(array_of(self.coordinates())))


class FieldFunction:
    """A finite-element function as a function of x."""

    def __init__(self, basis: Any, dofs: Array) -> None:
        self._basis, self._dofs = basis, dofs
        self._locator = Locator(basis.mesh)

    def __call__(self, x: Any) -> Array:
        """The same as `value`."""
        return self.value(x)

    def value(self, x: Any) -> Array:
        """Values, ``x.shape[1:]``."""
        return self._points(x).values(self._basis, self._dofs).reshape(np.shape(x)[1:])

    def gradient(self, x: Any) -> Array:
        """The gradient inside of the elements, shaped like x."""
        return self._points(x).gradients(self._basis, self._dofs).reshape(np.shape(x))

    def _points(self, x: Any) -> Points:
        points = np.asarray(x, dtype=float).reshape(len(x), -1)
        return Points(self._basis.mesh, points, self._locator.find(points))
