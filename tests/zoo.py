"""One small problem of every class, with truths, data and candidates: what all tests start from.

Every builder takes a basis, or a name of `ELEMENTS` for the basis of the unit interval or square, and gives each of its
other arguments a sensible default::

    problem = source("tri P1")                              # 3 sines, 6 points
    problem = source("line P2", cells=40, parameters=fc.FullSpace, sensors=9, reaction=2.0)
    problem = heat(l_shape(), parameters=(fc.EigenmodeSpace, 4), sensors=averages)

``parameters`` is a space, a number of modes, a class and its argument, or a function of the basis such as
`fc.FullSpace`; ``sensors`` are sensors, a number of points, their positions, or a function of the basis. All else goes
to the class of femcert. Meshes and bases never change, so there is one of each; a problem keeps what it has computed,
so that each call makes a new one.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from skfem import (
    Basis,
    BilinearForm,
    ElementLineP1,
    ElementLineP2,
    ElementQuad1,
    ElementQuad2,
    ElementTriP1,
    ElementTriP2,
    LinearForm,
    MeshLine,
    MeshQuad,
    MeshTri,
)
from skfem.helpers import dot, grad

import femcert as fc

MESHES = Path(__file__).parents[1] / "meshes"
SIDES = {
    "left": lambda x: np.isclose(x[0], 0.0),
    "right": lambda x: np.isclose(x[0], 1.0),
    "bottom": lambda x: np.isclose(x[1], 0.0),
    "top": lambda x: np.isclose(x[1], 1.0),
}
# Kind of mesh, element, degree.
ELEMENTS: dict[str, tuple[str, Any, int]] = {
    "line P1": ("line", ElementLineP1, 1),
    "line P2": ("line", ElementLineP2, 2),
    "tri P1": ("tri", ElementTriP1, 1),
    "tri P2": ("tri", ElementTriP2, 2),
    "quad Q1": ("quad", ElementQuad1, 1),
    "quad Q2": ("quad", ElementQuad2, 2),
    "bent quad Q1": ("bent quad", ElementQuad1, 1),
    "bent quad Q2": ("bent quad", ElementQuad2, 2),
}
# Without the curved grids: what the continuous guarantees are for.
STRAIGHT = [name for name in ELEMENTS if "bent" not in name]
LINES = [name for name in ELEMENTS if name.startswith("line")]
PLANE = [name for name in STRAIGHT if name not in LINES]
CLASSES = {"line": MeshLine, "tri": MeshTri, "quad": MeshQuad, "bent quad": MeshQuad}
# Cells along a side where none are given.
CELLS = {"line": 20, "tri": 4, "quad": 4, "bent quad": 4}


# Meshes and bases


@cache
def unit_mesh(kind: str, cells: int | None = None, graded: bool = False) -> Any:
    """The unit interval or square with `cells` along each side and the sides named; graded: not quite uniform."""
    nodes = np.linspace(0.0, 1.0, (cells or CELLS[kind]) + 1)
    first = nodes + 0.02 * np.sin(2.0 * np.pi * nodes) if graded else nodes
    if kind == "line":
        return MeshLine(first).with_boundaries({name: SIDES[name] for name in ("left", "right")})
    found = CLASSES[kind].init_tensor(first, nodes)
    if kind == "bent quad":
        bump = np.sin(2 * np.pi * found.p[0]) * np.sin(2 * np.pi * found.p[1])
        found = MeshQuad(found.p + 0.06 * bump * np.array([[1.0], [-0.7]]), found.t)
    return found.with_boundaries(SIDES)


@cache
def unit_basis(name: str = "tri P1", cells: int | None = None, graded: bool = False) -> Any:
    """The basis of an element on its mesh: ``unit_basis("tri P1", 8)`` has 81 dofs."""
    kind, element, _ = ELEMENTS[name]
    return Basis(unit_mesh(kind, cells, graded), element())


@cache
def square(refined: int = 2, degree: int = 1, kind: str = "tri") -> Any:
    """Two triangles, or one quadrilateral, refined; the diagonals of `unit_basis` run the other way."""
    element = next(e for k, e, d in ELEMENTS.values() if (k, d) == (kind, degree))
    return Basis(CLASSES[kind]().refined(refined).with_boundaries(SIDES), element())


@cache
def l_shape(refined: int = 2, degree: int = 1) -> Any:
    """``(-1, 1)^2`` without its first quadrant, in triangles."""
    return Basis(MeshTri.init_lshaped().refined(refined), (ElementTriP1 if degree == 1 else ElementTriP2)())


@cache
def plate(degree: int = 1) -> Any:
    """The shipped mesh of a plate with holes, sides named."""
    return Basis(fc.load_mesh(MESHES / "plate_with_holes.msh"), (ElementTriP1 if degree == 1 else ElementTriP2)())


def jittered(mesh: Any, amount: float, seed: int = 0) -> Any:
    """The mesh with its inner nodes moved at random, without names."""
    rng = np.random.default_rng(seed)
    points = mesh.p.copy()
    inner = mesh.interior_nodes()
    points[:, inner] += amount * (2 * rng.random((len(points), len(inner))) - 1)
    return type(mesh)(points, mesh.t)


def renumbered(mesh: Any, seed: int) -> Any:
    """The same nodes and cells in another order, without names."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(mesh.p.shape[1])
    return type(mesh)(mesh.p[:, order].copy(), np.argsort(order)[mesh.t][:, rng.permutation(mesh.t.shape[1])])


def middles(basis: Any) -> np.ndarray:
    """Of the elements: ``(d, elements)``."""
    return basis.mesh.p[:, basis.mesh.t].mean(axis=1)


# Sensors and spaces


def inside_points(basis: Any, count: int = 5, seed: int = 1) -> np.ndarray:
    """Points of the bounding box at random, a tenth of it away from its sides: ``(count, d)``."""
    low, high = basis.mesh.p.min(axis=1), basis.mesh.p.max(axis=1)
    return low + (high - low) * (0.1 + 0.8 * np.random.default_rng(seed).random((count, basis.mesh.dim())))


def spread(basis: Any, count: int) -> np.ndarray:
    """Points, ``(count, d)``: equally spaced from 0.1 to 0.9 on a line, at random in a box, else centres of cells."""
    mesh = basis.mesh
    if mesh.dim() == 1:
        return np.linspace(0.1, 0.9, count)[:, None]
    if np.isclose(basis.dx.sum(), np.prod(np.ptp(mesh.p, axis=1))):
        return inside_points(basis, count, seed=0)
    cells = np.random.default_rng(0).choice(mesh.nelements, count, replace=False)
    return mesh.p[:, mesh.t[:, cells]].mean(axis=1).T


def averages(basis: Any, count: int = 6, radius: float = 0.08) -> fc.AverageSensors:
    """Averages over discs (intervals) around points of `spread`."""
    return fc.AverageSensors(basis, spread(basis, count), radius=radius)


def discs(points: Any, radius: float = 0.08) -> Any:
    """Averages around points, as a function of the basis."""
    return lambda basis: fc.AverageSensors(basis, points, radius=radius)


def one_dof(basis: Any) -> fc.MatrixSensors:
    """The first dof as the only observation, for tests in which the data do not matter."""
    return fc.MatrixSensors(np.eye(1, basis.N))


def bump(*centre: float) -> Any:
    """A source of radius 0.14 around a point of the plane: one there, falling to zero."""
    return lambda x: np.maximum(0.0, 1.0 - sum((a - b) ** 2 for a, b in zip(x, centre, strict=True)) / 0.02)


def thirds(basis: Any) -> fc.RegionSpace:
    """Constants on three parts, from left to right."""
    part = np.digitize(basis.mesh.p[0, basis.mesh.t].mean(axis=0), [1 / 3, 2 / 3])
    return fc.RegionSpace(basis, [np.flatnonzero(part == i) for i in range(3)])


def blind(basis: Any) -> fc.MatrixSensors:
    """Three multiples of one point value: only one direction of any class is seen."""
    row = fc.PointSensors(basis, spread(basis, 1)).matrix.toarray()
    return fc.MatrixSensors(np.vstack([row, 2.0 * row, 3.0 * row]))


def _basis(at: Any, cells: int | None) -> Any:
    return unit_basis(at, cells) if isinstance(at, str) else at


def _space(parameters: Any, modes: Any, basis: Any) -> Any:
    if isinstance(parameters, int):
        return modes(basis, parameters)
    if isinstance(parameters, tuple):
        kind, count = parameters
        return kind(basis, count)
    return parameters(basis) if callable(parameters) else parameters


def _sensors(sensors: Any, basis: Any) -> Any:
    if isinstance(sensors, int):
        sensors = spread(basis, sensors)
    elif callable(sensors) and not hasattr(sensors, "matrix"):
        sensors = sensors(basis)
    return fc.PointSensors(basis, sensors) if isinstance(sensors, list | tuple | np.ndarray) else sensors


def _common(at: Any, cells: int | None, parameters: Any, modes: Any, sensors: Any) -> tuple[Any, dict[str, Any]]:
    found = _basis(at, cells)
    return found, {"parameters": _space(parameters, modes, found), "sensors": _sensors(sensors, found)}


# One problem of every class


def source(at="line P1", cells=None, *, parameters=3, sensors=6, **options) -> fc.EllipticSource:
    """The source q of ``-div(a grad u) + c u = q`` with u = 0 around, in sines, from point values."""
    found, common = _common(at, cells, parameters, fc.SineSpace, sensors)
    return fc.EllipticSource(found, **common, **options)


def full_problem(basis: Any, space: Any = None) -> fc.EllipticSource:
    """Any field is admissible; one sensor, in the middle of the first cell."""
    return source(basis, parameters=space or fc.FullSpace, sensors=[basis.mesh.p[:, basis.mesh.t[:, 0]].mean(axis=1)])


def coefficient(at="line P1", cells=None, *, parameters=2, sensors=12, source=1.0, **options) -> fc.EllipticCoefficient:
    """The log-conductivity q of ``-div(exp(q) grad u) = source``, in cosines, from point values."""
    found, common = _common(at, cells, parameters, fc.CosineSpace, sensors)
    return fc.EllipticCoefficient(found, **common, source=source, **options)


def heat(
    at="line P1", cells=None, *, parameters=2, sensors=6, times=(0.01, 0.02), steps=4, **options
) -> fc.HeatInitial:
    """The initial temperature of ``u_t - div(kappa grad u) = 0``, in sines, from point values at later times."""
    found, common = _common(at, cells, parameters, fc.SineSpace, sensors)
    if options.get("scheme") != "exact":
        options["steps"] = steps
    return fc.HeatInitial(found, **common, times=times, **options)


def tomography(at="tri P1", cells=None, *, parameters=3, angles=(0.0, 60.0, 120.0), bins=4, **options) -> fc.Tomography:
    """An image in cosines, from integrals along rays."""
    found = _basis(at, cells)
    return fc.Tomography(
        found, parameters=_space(parameters, fc.CosineSpace, found), angles=list(angles), bins=bins, **options
    )


@BilinearForm
def laplace(u, v, w):
    return dot(grad(u), grad(v))


@BilinearForm
def transport(u, v, w):
    """Diffusion and a flow along x: not symmetric."""
    return dot(grad(u), grad(v)) + 3.0 * u.grad[0] * v


@BilinearForm
def mass(q, v, w):
    return q * v


@BilinearForm
def minus_mass(q, v, w):
    return -q * v


@LinearForm
def cubic_reaction(v, w):
    return dot(grad(w["u"]), grad(v)) + w["u"] ** 3 * v - w["q"] * v


@BilinearForm
def cubic_reaction_u(u, v, w):
    return dot(grad(u), grad(v)) + 3.0 * w["u"] ** 2 * u * v


@LinearForm
def quasilinear(v, w):
    return (1.0 + w["u"] ** 2) * dot(grad(w["u"]), grad(v)) - w["q"] * v


@BilinearForm
def quasilinear_u(u, v, w):
    return (1.0 + w["u"] ** 2) * dot(grad(u), grad(v)) + 2.0 * w["u"] * u * dot(grad(w["u"]), grad(v))


def own_linear(at="tri P1", cells=None, *, operator=transport, parameters=3, sensors=6, **options) -> fc.LinearProblem:
    """A source with a form of its own; `laplace` with ``definite=True`` is the source problem again."""
    found, common = _common(at, cells, parameters, fc.SineSpace, sensors)
    return fc.LinearProblem(found, operator=operator, **common, **options)


def own_nonlinear(
    at="line P1", cells=None, *, equation=quasilinear, state_derivative=quasilinear_u, parameter_derivative=minus_mass,
    parameters=2, sensors=6, **options
) -> fc.NonlinearProblem:  # fmt: skip
    """``-div((1 + u^2) grad u) = q`` or another equation of its own, with its two derivatives."""
    found, common = _common(at, cells, parameters, fc.SineSpace, sensors)
    forms = {"state_derivative": state_derivative, "parameter_derivative": parameter_derivative}
    return fc.NonlinearProblem(found, equation=equation, **forms, **common, **options)


def conductivity_forms(source: float) -> dict[str, Any]:
    """The forms of ``-div(exp(q) grad u) = source`` for a `NonlinearProblem`."""
    return {
        "equation": LinearForm(lambda v, w: np.exp(w["q"]) * dot(grad(w["u"]), grad(v)) - source * v),
        "state_derivative": BilinearForm(lambda u, v, w: np.exp(w["q"]) * dot(grad(u), grad(v))),
        "parameter_derivative": BilinearForm(lambda q, v, w: np.exp(w["q"]) * q * dot(grad(w["u"]), grad(v))),
    }


# What a test of every class runs over.
PROBLEMS = {
    "source line": source,
    "source tri": lambda **options: source("tri P1", **options),
    "source quad": lambda **options: source("quad Q1", **options),
    "source L": lambda **options: source(l_shape(), **{"parameters": (fc.EigenmodeSpace, 3), **options}),
    "heat": heat,
    "coefficient": coefficient,
    "tomography": tomography,
    "own linear": own_linear,
    "own nonlinear": own_nonlinear,
}


# Truths, data and candidates


def coefficients(problem: Any, seed: int = 0) -> np.ndarray:
    """Standard normal coordinates."""
    return np.random.default_rng(seed).standard_normal(problem.parameters.dimension)


def truth(problem: Any, c: Any = None) -> np.ndarray:
    """The parameter with the given coordinates, or with ``1, -1/2, 1/3, ...``."""
    signs = (-1.0) ** np.arange(problem.parameters.dimension)
    return problem.parameters.field(signs / np.arange(1.0, len(signs) + 1.0) if c is None else c)


def data(problem: Any, c: Any = None, *, noise: float = 0.02, seed: int = 1, **options) -> fc.Data:
    """Data of `truth` with noise whose size is its level."""
    return problem.simulate(truth(problem, c), noise=noise, seed=seed, **{"oracle": True, **options})


def solved(problem: Any, parameter: Any = None, optimality: float | None = 0.0, **options) -> fc.Candidate:
    """A parameter (the truth) and its state: without noise nothing is wrong with it."""
    parameter = truth(problem) if parameter is None else parameter
    state = problem.solve(parameter) if problem.states else None
    return fc.Candidate(state, parameter, optimality, **options)


def misfitting(problem: Any, size: float = 0.5, **options) -> fc.Candidate:
    """A solution that does not fit the data: the parameter is off by `size` in its first coordinate."""
    first = problem.parameters.field(np.eye(problem.parameters.dimension)[0])
    return solved(problem, truth(problem) + size * first, **options)


def unsolved(problem: Any, size: float = 0.1, **options) -> fc.Candidate:
    """The truth with a state that is a wave off the equation and agrees with it on the boundary."""
    found = solved(problem, **options)
    box = problem.basis.mesh.p
    x = (problem.basis.doflocs - box.min(axis=1)[:, None]) / np.ptp(box, axis=1)[:, None]
    wave = size * np.prod(np.sin(3.0 * np.pi * x), axis=0)
    wave[problem.boundary.prescribed] = 0.0
    state = found.state + (wave if found.state.ndim == 1 else wave[:, None])
    return fc.Candidate(state, found.parameter, found.optimality, **options)


def hallucinated(problem: Any, share: float = 0.1, **options) -> fc.Candidate:
    """A solution that fits the data and is wrong: off in what they show least, by `share` of the noise level there."""
    _, values, rows = np.linalg.svd(problem.linearize(truth(problem)).matrix)
    size = share * data(problem).noise_level / values[len(rows) - 1] if len(values) == len(rows) else 1.0
    return solved(problem, truth(problem) + size * problem.parameters.field(rows[-1]), **options)


CANDIDATES = {"solved": solved, "misfitting": misfitting, "hallucinated": hallucinated}


def judge_of(rule, problem):
    """The judge of a weighted rule, for the parts that do not look at the data."""
    return rule.judge(problem, fc.Data(np.zeros(problem.observation_count), 1.0))


class OwnSource(fc.LinearProblem):
    """``-div(a grad u) + c u = q + known`` by a user's own forms, with its strong form."""

    def __init__(self, basis: Any, *, a: Any = 1.0, c: float = 2.0, known: float = 1.5, **options: Any) -> None:
        self.a, self.c = fc.Given(a, "conductivity", "positive"), fc.Given(c, "reaction", "nonnegative")
        self.known = known
        form = BilinearForm(lambda u, v, w: (a(w.x) if callable(a) else a) * dot(grad(u), grad(v)) + c * u * v)
        super().__init__(basis, operator=form, source=LinearForm(lambda v, w: known * v), definite=True, **options)

    def strong(self, parameter: Any) -> fc.StrongForm:
        """See `StateEquation.strong`."""
        source = fc.Interpolant(self.parameters.basis, self.check_parameter(parameter) + self.known)
        return fc.StrongForm(self.a, self.c, source, self.boundary, "source")


def hits(found: Any, exact: Any, std: float, asked: Any, value: float, *, trials: int = 200, seed: int = 0) -> int:
    """How often the interval of an evidence holds the value, over draws of Gaussian noise about exact data."""
    rng = np.random.default_rng(seed)
    draws = (found.data.with_values(exact + std * rng.standard_normal(exact.size)) for _ in range(trials))
    return sum(found.with_data(drawn).interval(asked).contains(value) for drawn in draws)
