"""What an inverse PINN minimizes: mean squares of data misfit, strong residual and boundary defect, made relative."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..certificate.sampling import uniform_points
from ..checks import Array
from ..errors import InputError
from ..problem.base import Problem
from ..problem.boundary import BoundaryConditions
from ..problem.data import Data
from ..problem.elliptic import EllipticCoefficient, EllipticSource
from ..problem.heat import HeatInitial
from ..problem.sensors import PointSensors
from ..problem.strong import StrongForm
from .backend import load_torch, tensor
from .distance import BoundaryDistance, corner_weight
from .model import ClassParameter, NetworkParameter, ParameterModel, StateFunction, StateModel
from .network import Network
from .places import Edge, Place, essential_edge, natural_edge

Term = Callable[[], Any]


@dataclass(frozen=True)
class Shape:
    """Choices of the user that the loss depends on; see `PINN`."""

    parameter: str
    boundary: str
    width: int
    depth: int
    points: int
    boundary_points: int


@dataclass(frozen=True)
class Setup:
    """Trainable functions of a problem and the terms of its loss.

    Attributes
    ----------
    state, parameter
        The functions; `parameter` is None where it is the state at time zero.
    terms
        Dimensionless, by name: ``data``, ``physics``, ``boundary``, ``initial``.
    """

    state: StateModel
    parameter: ParameterModel | None
    terms: dict[str, Term]
    times: Array | None

    @property
    def variables(self) -> list[Any]:
        """All trainable numbers."""
        own = [] if self.parameter is None else self.parameter.variables
        return [*self.state.network.variables, *own]

    def functions(self) -> tuple[Any, Any]:
        """State (a list of functions, one for each observation time, for heat) and parameter."""
        if self.times is None:
            assert self.parameter is not None
            return StateFunction(self.state), self.parameter.function()
        states = [StateFunction(self.state, float(time)) for time in self.times]
        return states, StateFunction(self.state, 0.0) if self.parameter is None else self.parameter.function()


@dataclass(frozen=True)
class Sizes:
    """What a state, a conductivity and a strong residual of the problem are measured by."""

    state: float
    conductivity: float
    physics: float
    extent: float


def build(problem: Problem, data: Data, shape: Shape, rng: np.random.Generator) -> Setup:
    """State, parameter and loss of an inverse PINN; random weights and points come from `rng`."""
    if not isinstance(problem, (EllipticSource, EllipticCoefficient, HeatInitial)):
        known = "EllipticSource, EllipticCoefficient or HeatInitial"
        raise InputError(f"a PINN needs the strong form, which a {type(problem).__name__} does not have; {known} do")
    mesh, times = problem.basis.mesh, problem.times if isinstance(problem, HeatInitial) else None
    zero = np.zeros(problem.basis.N if times is not None else problem.parameters.basis.N)
    equation = problem.strong(zero) if problem.time is None else problem.time.strong(zero)
    x, cells = uniform_points(mesh, shape.points, rng)
    inside = Place(mesh, x, cells, None if times is None else rng.uniform(0.0, times[-1], shape.points))
    sizes = _sizes(problem, data, equation, inside)
    state = _state(problem, shape, sizes, times, rng)
    parameter = _parameter(problem, shape, sizes, rng)
    terms = {"data": _misfit(problem, data, state, times)}
    terms["physics"] = _physics(problem, equation, inside, state, parameter, sizes.physics)
    if times is not None and parameter is not None:
        terms["initial"] = _initial(Place(mesh, x, cells, np.zeros(shape.points)), state, parameter, sizes.state)
    edges = [(natural_edge(mesh, problem.boundary, shape.boundary_points, rng), True)]
    if shape.boundary == "soft":
        edges.append((essential_edge(mesh, problem.boundary, shape.boundary_points, rng), False))
    parts = [
        _boundary(problem, equation, _at_times(edge, times, rng), state, parameter, sizes, natural)
        for edge, natural in edges
        if edge is not None
    ]
    if parts:
        terms["boundary"] = lambda: sum(part() for part in parts)
    return Setup(state, parameter, terms, times)


def _sizes(problem: Problem, data: Data, equation: StrongForm, inside: Place) -> Sizes:
    """From the data and the coefficients: no unit of length, state or source changes the relative loss."""
    H = problem.sensors.matrix
    weights = np.tile(np.asarray(abs(H).sum(axis=1)).ravel(), data.values.size // H.shape[0])
    size = float(np.sqrt(np.mean((data.values / weights) ** 2))) or 1.0
    extent = float(np.ptp(inside.mesh.p, axis=1).max())
    fixed = not isinstance(problem, EllipticCoefficient)
    a = float(np.mean(inside.coefficient(equation.conductivity))) if fixed else 1.0
    physics = a * size * len(inside.x) * (np.pi / extent) ** 2
    if isinstance(problem, HeatInitial):
        # Then the rate u_t is of the size of the state over the time.
        physics += size / float(problem.times[-1])
    if not fixed:
        f = inside.coefficient(equation.source)
        physics = float(np.sqrt(np.mean(f**2))) or physics
    return Sizes(size, a, physics, extent)


def _state(
    problem: Problem, shape: Shape, sizes: Sizes, times: Array | None, rng: np.random.Generator
) -> StateModel:
    mesh = problem.basis.mesh
    low, high = mesh.p.min(axis=1), mesh.p.max(axis=1)
    if times is not None:
        low, high = np.append(low, 0.0), np.append(high, times[-1])
    network = Network(low, high, mesh.dim(), width=shape.width, depth=shape.depth, rng=rng)
    if shape.boundary == "soft":
        return StateModel(network, size=sizes.state, distance=None)
    facets = [part.facets for part in problem.boundary.dirichlet]
    distance = BoundaryDistance(mesh, np.concatenate(facets) if facets else [])
    return StateModel(network, size=sizes.state, lift=_constant(problem.boundary), distance=distance)


def _constant(conditions: BoundaryConditions) -> float:
    values = [part.value for part in conditions.dirichlet]
    if any(callable(value) for value in values) or len({float(value) for value in values}) > 1:  # type: ignore[arg-type]
        raise InputError("a hard boundary condition takes one number for all Dirichlet values; use boundary='soft'")
    return float(values[0])  # type: ignore[arg-type]


def _parameter(problem: Problem, shape: Shape, sizes: Sizes, rng: np.random.Generator) -> ParameterModel | None:
    mesh, size, start = problem.basis.mesh, sizes.physics, 0.0
    if isinstance(problem, EllipticCoefficient):
        size, start = 1.0, 0.0 if problem.transform == "exp" else 1.0
    if isinstance(problem, HeatInitial):
        size = sizes.state
        if shape.parameter == "network":
            return None
    if shape.parameter == "class":
        return ClassParameter(problem.parameters, size=size, start=start)
    low, high = mesh.p.min(axis=1), mesh.p.max(axis=1)
    network = Network(low, high, mesh.dim(), width=shape.width, depth=shape.depth, rng=rng)
    return NetworkParameter(network, size=size, start=start)


def _misfit(problem: Problem, data: Data, state: StateModel, times: Array | None) -> Term:
    """``‖H u - y‖² / ‖y‖²`` in the norm of the data.

    Point sensors read the network itself; others the interpolant of its values at the nodes that they weigh.
    """
    mesh, H = problem.basis.mesh, problem.sensors.matrix
    if isinstance(problem.sensors, PointSensors):
        x, weights = problem.sensors.points.T, np.eye(H.shape[0])
    else:
        used = np.flatnonzero(abs(H).sum(axis=0))
        x, weights = problem.basis.doflocs[:, used], H[:, used].toarray()
    moments = [None] if times is None else times
    none = np.zeros(0, dtype=np.int64)
    readings = [
        state.prepare(Place(mesh, x, none, None if t is None else np.full(x.shape[1], t))) for t in moments
    ]
    W, y = tensor(data.whiten(np.eye(data.values.size))), tensor(data.whiten(data.values))
    Hx, total = tensor(weights), float((y**2).sum()) or 1.0
    torch = load_torch()
    return lambda: ((W @ torch.cat([Hx @ at.value() for at in readings]) - y) ** 2).sum() / total


def _physics(
    problem: Problem,
    equation: StrongForm,
    inside: Place,
    state: StateModel,
    parameter: ParameterModel | None,
    size: float,
) -> Term:
    """Mean square of the strong residual over the collocation points, relative, and little near re-entrant corners."""
    weight = tensor(corner_weight(inside.mesh, inside.x) / size)
    if isinstance(problem, EllipticCoefficient):
        assert parameter is not None
        residual = _coefficient_residual(equation, inside, state, parameter, problem.transform == "exp")
    else:
        residual = _residual(equation, inside, state, parameter)
    return lambda: ((weight * residual()) ** 2).mean()


def _residual(equation: StrongForm, inside: Place, state: StateModel, parameter: ParameterModel | None) -> Term:
    """``-div(a grad u) + c u - q``, or with time ``u_t - div(a grad u)``."""
    u, dim = state.prepare(inside), len(inside.x)
    a = tensor(inside.coefficient(equation.conductivity))
    a_slope = tensor(inside.coefficient_gradient(equation.conductivity))
    if inside.time is not None:

        def heat() -> Any:
            _, slope, bend = u.jet()
            return slope[dim] - a * bend - (a_slope * slope[:dim]).sum(dim=0)

        return heat
    assert parameter is not None
    q, c = parameter.prepare(inside, slopes=False), tensor(inside.coefficient(equation.reaction))

    def balance() -> Any:
        value, slope, bend = u.jet()
        return c * value - a * bend - (a_slope * slope).sum(dim=0) - q()[0]

    return balance


def _coefficient_residual(
    equation: StrongForm, inside: Place, state: StateModel, parameter: ParameterModel, exponential: bool
) -> Term:
    """``-div(a(q) grad u) - f``"""
    u, q = state.prepare(inside), parameter.prepare(inside, slopes=True)
    f = tensor(inside.coefficient(equation.source))

    def balance() -> Any:
        (_, slope, bend), (value, rise) = u.jet(), q()
        along = (rise * slope).sum(dim=0)
        flow = value.exp() * (bend + along) if exponential else value * bend + along
        return -flow - f

    return balance


def _initial(start: Place, state: StateModel, parameter: ParameterModel, size: float) -> Term:
    """Mean square of ``u(0) - q``, relative."""
    u, q = state.prepare(start), parameter.prepare(start, slopes=False)
    return lambda: ((u.value() - q()[0]) ** 2).mean() / size**2


def _at_times(edge: Edge, times: Array | None, rng: np.random.Generator) -> Edge:
    if times is None:
        return edge
    place = edge.place
    moments = rng.uniform(0.0, times[-1], place.x.shape[1])
    return Edge(Place(place.mesh, place.x, place.cells, moments), edge.normal, edge.value, edge.coefficient)


def _boundary(
    problem: Problem,
    equation: StrongForm,
    edge: Edge,
    state: StateModel,
    parameter: ParameterModel | None,
    sizes: Sizes,
    natural: bool,
) -> Term:
    """Mean square of ``u - g``, or of ``a du/dn + alpha u - g``, relative."""
    u, g = state.prepare(edge.place), tensor(edge.value)
    if not natural:
        return lambda: ((u.value() - g) ** 2).mean() / sizes.state**2
    normal, alpha, dim = tensor(edge.normal), tensor(edge.coefficient), len(edge.normal)
    size = sizes.conductivity * sizes.state / sizes.extent
    if isinstance(problem, EllipticCoefficient):
        assert parameter is not None
        q = parameter.prepare(edge.place, slopes=False)

        def conductivity() -> Any:
            return q()[0].exp() if problem.transform == "exp" else q()[0]

    else:
        a = tensor(edge.place.coefficient(equation.conductivity))

        def conductivity() -> Any:
            return a

    def defect() -> Any:
        value, slope, _ = u.jet()
        return conductivity() * (normal * slope[:dim]).sum(dim=0) + alpha * value - g

    return lambda: (defect() ** 2).mean() / size**2
