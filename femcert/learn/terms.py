"""What an inverse PINN minimizes: mean squares of data misfit, strong residual and boundary defect, made relative.

A term is a function without arguments: points, and what is known there, are prepared once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..checks import Array, kind_of
from ..errors import InputError
from ..mesh.sample import uniform_points, values_at
from ..problem.base import Problem
from ..problem.boundary import BoundaryConditions
from ..problem.data import Data
from ..problem.states import StateEquation, TimeStepping, strong_form
from ..problem.strong import Field, StrongForm, differences
from .distance import BoundaryDistance, corner_weight
from .model import ClassParameter, NetworkParameter, ParameterModel, Place, StateFunction, StateModel
from .network import Network
from .torch import load_torch, tensor

Term = Callable[[], Any]
# Step of the difference quotient for the gradient of a coefficient without one, relative to the extent of the mesh.
STEP = 1e-3
LEARNED = ("source", "conductivity", "initial")


class Options(Protocol):
    """Of a `PINN`, what its loss depends on."""

    parameter: str
    boundary: str
    width: int
    depth: int
    points: int
    boundary_points: int


@dataclass(frozen=True)
class Losses:
    """Trainable functions of a problem and the terms of its loss.

    Attributes
    ----------
    state, parameter
        The functions; `parameter` is None where it is the state at time zero.
    terms
        Dimensionless, by name: ``data``, ``physics``, ``boundary``, ``initial``.
    times
        Of the observations, or None.
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
        """State (a list of functions, one for each observation time, where there is time) and parameter."""
        if self.times is None:
            assert self.parameter is not None
            return StateFunction(self.state), self.parameter.function()
        states = [StateFunction(self.state, float(time)) for time in self.times]
        return states, StateFunction(self.state, 0.0) if self.parameter is None else self.parameter.function()


@dataclass(frozen=True)
class Posed:
    """A problem as its loss needs it.

    Attributes
    ----------
    equation
        The state equation.
    strong
        Its strong form at the parameter zero, with time at the rate zero.
    time
        How the state depends on time, or None.
    """

    problem: Problem
    equation: StateEquation
    strong: StrongForm
    time: TimeStepping | None

    @property
    def mesh(self) -> Any:
        """Of the state."""
        return self.equation.basis.mesh

    @property
    def times(self) -> Array | None:
        """Of the observations, or None."""
        return None if self.time is None else self.time.times

    @property
    def box(self) -> tuple[Array, Array]:
        """Corners of a box around the mesh."""
        return self.mesh.p.min(axis=1), self.mesh.p.max(axis=1)

    @classmethod
    def of(cls, problem: Problem) -> Posed:
        """The problem, if it has the strong form of one state."""
        if len(problem.states) == 1:
            equation, time = problem.states[0], problem.states[0].time
            if time is None:
                strong = strong_form(equation, np.zeros(problem.parameters.basis.N))
            else:
                strong = time.strong(np.zeros(equation.basis.N))
            if strong is not None and strong.unknown not in LEARNED:
                raise InputError(f"the unknown is {strong.unknown!r}; a PINN expects one of {', '.join(LEARNED)}")
            if strong is not None:
                return cls(problem, equation, strong, time)
        raise InputError(f"a PINN needs the strong form of one state, which {kind_of(problem)} does not offer")


@dataclass(frozen=True)
class Sizes:
    """What a state, a conductivity and a strong residual of the problem are measured by."""

    state: float
    conductivity: float
    physics: float
    extent: float


def build(problem: Problem, data: Data, options: Options, rng: np.random.Generator) -> Losses:
    """State, parameter and loss of an inverse PINN; random weights and points come from `rng`."""
    posed = Posed.of(problem)
    mesh, times = posed.mesh, posed.times
    points = uniform_points(mesh, options.points, rng)
    inside = Place(mesh, points.x, points.cells, _moments(times, options.points, rng))
    sizes = _sizes(posed, data, inside)
    state = _state(posed, options, sizes, rng)
    parameter = _parameter(posed, options, sizes, rng)
    terms = {"data": _misfit(posed, data, state)}
    terms["physics"] = _physics(posed, inside, state, parameter, sizes.physics)
    if times is not None and parameter is not None:
        start = Place(mesh, points.x, points.cells, np.zeros(options.points))
        terms["initial"] = _initial(start, state, parameter, sizes.state)
    conditions, count = posed.equation.boundary, options.boundary_points
    edges = [(natural_edge(mesh, conditions, count, rng), True)]
    if options.boundary == "soft":
        edges.append((essential_edge(mesh, conditions, count, rng), False))
    parts = [
        _boundary(posed, edge.at(_moments(times, edge.place.x.shape[1], rng)), state, parameter, sizes, natural)
        for edge, natural in edges
        if edge is not None
    ]
    if parts:
        terms["boundary"] = lambda: sum(part() for part in parts)
    return Losses(state, parameter, terms, times)


def _moments(times: Array | None, count: int, rng: np.random.Generator) -> Array | None:
    return None if times is None else rng.uniform(0.0, times[-1], count)


def _sizes(posed: Posed, data: Data, inside: Place) -> Sizes:
    """From the data and the coefficients: no unit of length, state or source changes the relative loss."""
    H, strong = posed.equation.sensors.matrix, posed.strong
    weights = np.tile(np.asarray(abs(H).sum(axis=1)).ravel(), data.values.size // H.shape[0])
    size = float(np.sqrt(np.mean((data.values / weights) ** 2))) or 1.0
    extent = float(np.ptp(posed.mesh.p, axis=1).max())
    fixed = strong.unknown != "conductivity"
    a = float(np.mean(strong.conductivity.at_points(inside))) if fixed else 1.0
    physics = a * size * len(inside.x) * (np.pi / extent) ** 2
    if posed.time is not None:
        # Then the rate u_t is of the size of the state over the time.
        physics += size / float(posed.time.times[-1])
    if not fixed:
        physics = float(np.sqrt(np.mean(strong.source.at_points(inside) ** 2))) or physics
    return Sizes(size, a, physics, extent)


def _state(posed: Posed, options: Options, sizes: Sizes, rng: np.random.Generator) -> StateModel:
    (low, high), times, conditions = posed.box, posed.times, posed.equation.boundary
    if times is not None:
        low, high = np.append(low, 0.0), np.append(high, times[-1])
    network = Network(low, high, posed.mesh.dim(), width=options.width, depth=options.depth, rng=rng)
    if options.boundary == "soft":
        return StateModel(network, size=sizes.state, distance=None)
    facets = [part.facets for part in conditions.dirichlet]
    distance = BoundaryDistance(posed.mesh, np.concatenate(facets) if facets else [])
    return StateModel(network, size=sizes.state, lift=_constant(conditions), distance=distance)


def _constant(conditions: BoundaryConditions) -> float:
    values = [part.value for part in conditions.dirichlet]
    if any(callable(value) for value in values) or len({float(value) for value in values}) > 1:  # type: ignore[arg-type]
        raise InputError("a hard boundary condition takes one number for all Dirichlet values; use boundary='soft'")
    return float(values[0])  # type: ignore[arg-type]


def _parameter(posed: Posed, options: Options, sizes: Sizes, rng: np.random.Generator) -> ParameterModel | None:
    unknown = posed.strong.unknown
    if unknown == "initial" and options.parameter == "network":
        return None
    size, start = {"source": sizes.physics, "initial": sizes.state, "conductivity": 1.0}[unknown], 0.0
    if unknown == "conductivity":
        field: Any = posed.strong.conductivity
        start = field.one
    if options.parameter == "class":
        return ClassParameter(posed.problem.parameters, size=size, start=start)
    network = Network(*posed.box, posed.mesh.dim(), width=options.width, depth=options.depth, rng=rng)
    return NetworkParameter(network, size=size, start=start)


def _misfit(posed: Posed, data: Data, state: StateModel) -> Term:
    """``‖H u - y‖² / ‖y‖²`` in the norm of the data, of the network's values where the sensors read a function."""
    x, weights = posed.equation.sensors.read_at(posed.equation.basis)
    moments = [None] if posed.times is None else [np.full(x.shape[1], time) for time in posed.times]
    readings = [state.prepare(Place(posed.mesh, x, time=time)) for time in moments]
    W, y = tensor(data.whiten(np.eye(data.values.size))), tensor(data.whiten(data.values))
    Hx, total = tensor(weights), float((y**2).sum()) or 1.0
    torch = load_torch()
    return lambda: ((W @ torch.cat([Hx @ at.value() for at in readings]) - y) ** 2).sum() / total


def _physics(
    posed: Posed, inside: Place, state: StateModel, parameter: ParameterModel | None, size: float
) -> Term:
    """Mean square of the strong residual over the collocation points, relative, and little near re-entrant corners."""
    weight = tensor(corner_weight(inside.mesh, inside.x) / size)
    residual = _residual(posed.strong, inside, state, parameter)
    return lambda: ((weight * residual()) ** 2).mean()


def _residual(strong: StrongForm, inside: Place, state: StateModel, parameter: ParameterModel | None) -> Term:
    """``-a laplacian(u) - grad(a) . grad(u) + c u - f``, and with time ``+ u_t``."""
    u, dim = state.prepare(inside), len(inside.x)
    conductivity, source = _conductivity(strong, inside, parameter, slopes=True), _source(strong, inside, parameter)
    c = tensor(strong.reaction.at_points(inside))

    def residual() -> Any:
        (value, slope, bend), (a, rise) = u.jet(), conductivity()
        r = c * value - a * bend - (rise * slope[:dim]).sum(dim=0) - source()
        return r if inside.time is None else r + slope[dim]

    return residual


def _conductivity(strong: StrongForm, place: Place, parameter: ParameterModel | None, *, slopes: bool) -> Term:
    """A and, if asked for, its gradient."""
    a: Any = strong.conductivity
    if strong.unknown == "conductivity":
        assert parameter is not None
        q, exp = parameter.prepare(place, slopes=slopes), load_torch().exp
        return lambda: a.of(*q(), exp)
    fixed = tensor(a.at_points(place)), tensor(slope_of(a, place)) if slopes else None
    return lambda: fixed


def _source(strong: StrongForm, place: Place, parameter: ParameterModel | None) -> Term:
    """f: where the parameter is the source, that plus what the equation has without it."""
    f = tensor(strong.source.at_points(place))
    if strong.unknown != "source":
        return lambda: f
    assert parameter is not None
    q = parameter.prepare(place, slopes=False)
    return lambda: q()[0] + f


def slope_of(field: Field, place: Place) -> Array:
    """The gradient of a field inside of the elements: its own where it is known, else by differences."""
    known = field.gradient_at(place)
    return differences(field, place, STEP * float(np.ptp(place.mesh.p, axis=1).max())) if known is None else known


def _initial(start: Place, state: StateModel, parameter: ParameterModel, size: float) -> Term:
    """Mean square of ``u(0) - q``, relative."""
    u, q = state.prepare(start), parameter.prepare(start, slopes=False)
    return lambda: ((u.value() - q()[0]) ** 2).mean() / size**2


def _boundary(
    posed: Posed, edge: Edge, state: StateModel, parameter: ParameterModel | None, sizes: Sizes, natural: bool
) -> Term:
    """Mean square of ``u - g``, or of ``a du/dn + alpha u - g``, relative."""
    u, g = state.prepare(edge.place), tensor(edge.value)
    if not natural:
        return lambda: ((u.value() - g) ** 2).mean() / sizes.state**2
    normal, alpha, dim = tensor(edge.normal), tensor(edge.coefficient), len(edge.normal)
    size = sizes.conductivity * sizes.state / sizes.extent
    conductivity = _conductivity(posed.strong, edge.place, parameter, slopes=False)

    def defect() -> Any:
        (value, slope, _), (a, _) = u.jet(), conductivity()
        return a * (normal * slope[:dim]).sum(dim=0) + alpha * value - g

    return lambda: (defect() ** 2).mean() / size**2


@dataclass(frozen=True)
class Edge:
    """Points on a part of the boundary: ``u = value``, or ``a du/dn + coefficient u = value``."""

    place: Place
    normal: Array
    value: Array
    coefficient: Array

    def at(self, moments: Array | None) -> Edge:
        """The same with a time for each point."""
        place = Place(self.place.mesh, self.place.x, self.place.cells, moments)
        return Edge(place, self.normal, self.value, self.coefficient)


def essential_edge(mesh: Any, conditions: BoundaryConditions, count: int, rng: np.random.Generator) -> Edge | None:
    """About `count` random points on the Dirichlet boundary, None where there is none."""
    return _edge(mesh, [(part.facets, part.value, 0.0) for part in conditions.dirichlet], count, rng)


def natural_edge(mesh: Any, conditions: BoundaryConditions, count: int, rng: np.random.Generator) -> Edge | None:
    """About `count` random points on the rest of the boundary; where nothing is prescribed, the flux is zero."""
    parts: list[Any] = [(part.facets, part.value, part.coefficient) for part in conditions.natural]
    named = [part.facets for part in (*conditions.dirichlet, *conditions.natural)]
    insulated = np.setdiff1d(mesh.boundary_facets(), np.concatenate(named) if named else [])
    return _edge(mesh, [*parts, (insulated, 0.0, 0.0)], count, rng)


def _edge(mesh: Any, parts: list[Any], count: int, rng: np.random.Generator) -> Edge | None:
    parts = [part for part in parts if len(part[0])]
    if not parts:
        return None
    sizes = np.array([_lengths(mesh, facets).sum() for facets, _, _ in parts])
    pieces = []
    for (facets, value, coefficient), share in zip(parts, sizes / sizes.sum(), strict=True):
        place, normal = _on_facets(mesh, facets, max(round(share * count), 1), rng)
        values = [values_at(given, place.x, "a boundary value") for given in (value, coefficient)]
        pieces.append((place.x, place.cells, normal, *values))
    x, cells, normal, value, coefficient = (np.concatenate(part, axis=-1) for part in zip(*pieces, strict=True))
    return Edge(Place(mesh, x, cells), normal, value, coefficient)


def _lengths(mesh: Any, facets: Any) -> Array:
    if mesh.dim() == 1:
        return np.ones(len(facets))
    start, end = mesh.p[:, mesh.facets[:, facets]].transpose(1, 0, 2)
    return np.asarray(np.linalg.norm(end - start, axis=0))


def _on_facets(mesh: Any, facets: Any, count: int, rng: np.random.Generator) -> tuple[Place, Array]:
    """Random points on facets with the outer normal; on a line all end points."""
    if mesh.dim() == 1:
        chosen = np.asarray(facets)
        x = mesh.p[:, mesh.facets[0, chosen]]
        normal = np.ones_like(x)
    else:
        length = _lengths(mesh, facets)
        chosen = rng.choice(facets, size=count, p=length / length.sum())
        start, end = mesh.p[:, mesh.facets[:, chosen]].transpose(1, 0, 2)
        x = start + rng.random(count) * (end - start)
        normal = np.stack([end[1] - start[1], start[0] - end[0]]) / _lengths(mesh, chosen)
    cells = mesh.f2t[0, chosen]
    inside = mesh.p[:, mesh.t[:, cells]].mean(axis=1)
    outward = np.sign(((x - inside) * normal).sum(axis=0))
    return Place(mesh, x, cells), normal * outward
