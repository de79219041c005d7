"""Problems of every class on lines, triangles and quadrilaterals, which can be moved, renumbered and scaled."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from skfem import Basis
from zoo import ELEMENTS, unit_mesh

import femcert as fc

POINTS = {
    1: np.linspace(0.11, 0.87, 7)[:, None],
    2: np.array([(0.23, 0.21), (0.71, 0.29), (0.27, 0.77), (0.79, 0.73), (0.5, 0.47), (0.47, 0.81), (0.83, 0.5)]),
}
# The admissible class: four functions, smooth and without a symmetry.
MODES = [
    lambda x: np.sin(np.pi * x[0]) + 0.1 * x[-1],
    lambda x: np.sin(2.0 * np.pi * x[-1]) * (1.0 + x[0]),
    lambda x: np.cos(np.pi * x[0]) * np.cos(2.0 * x[-1]),
]


@dataclass(frozen=True)
class Motion:
    """``x -> R x + t``, and a new numbering of nodes and elements from a seed; None: the old one."""

    angle: float = 0.0
    shift: tuple[float, float] = (0.0, 0.0)
    seed: int | None = None

    def matrix(self, dim: int) -> np.ndarray:
        c, s = np.cos(self.angle), np.sin(self.angle)
        return np.eye(1) if dim == 1 else np.array([[c, -s], [s, c]])

    def forth(self, x: np.ndarray) -> np.ndarray:
        dim = len(x)
        return self.matrix(dim) @ x.reshape(dim, -1) + np.array(self.shift[:dim])[:, None]

    def back(self, x: np.ndarray) -> np.ndarray:
        dim = len(x)
        moved = x.reshape(dim, -1) - np.array(self.shift[:dim])[:, None]
        return (self.matrix(dim).T @ moved).reshape(x.shape)

    def mesh(self, mesh: Any) -> tuple[Any, np.ndarray]:
        """The moved mesh, and the old number of each of its elements."""
        p, t, order = self.forth(mesh.p), mesh.t, np.arange(mesh.t.shape[1])
        if self.seed is not None:
            rng = np.random.default_rng(self.seed)
            nodes, order = rng.permutation(p.shape[1]), rng.permutation(t.shape[1])
            p, t = p[:, np.argsort(nodes)], nodes[t[:, order]]
        return type(mesh)(np.ascontiguousarray(p), np.ascontiguousarray(t)), order


STILL = Motion()


@dataclass(frozen=True)
class Posed:
    """A problem with a way to evaluate functions of the unmoved coordinates on its dofs."""

    problem: Any
    motion: Motion = field(default=STILL)

    def nodal(self, function: Any, basis: Any = None) -> np.ndarray:
        basis = self.problem.basis if basis is None else basis
        return np.asarray(function(self.motion.back(basis.doflocs)), dtype=float)

    def truth(self, coefficients: Any) -> np.ndarray:
        return self.problem.parameters.field(coefficients)

    def data(self, coefficients: Any, noise: float = 0.02, seed: int = 1) -> fc.Data:
        # Any seed: the noise is within its level.
        return self.problem.simulate(self.truth(coefficients), noise=noise, seed=seed, oracle=True)

    def candidate(self, coefficients: Any, *, off: float = 0.0, outside: float = 0.0) -> fc.Candidate:
        """State and parameter of the class, a wave off the equation and one outside of the class."""
        problem = self.problem
        q = problem.parameters.field(coefficients)
        u = problem.solve(q) if problem.states else None
        if u is not None and off:
            wave = off * self.nodal(lambda x: np.sin(3.0 * np.pi * x[0]) * np.sin(np.pi * x[-1]))
            u = u + (wave if u.ndim == 1 else wave[:, None])
        if outside:
            q = q + outside * self.nodal(lambda x: np.cos(5.0 * np.pi * x[0]) * (1.0 + x[-1]), problem.parameters.basis)
        return fc.Candidate(u, q, optimality=1e-3)


# Rules that judge problems of every class; the second one is that of the paper.
RULES = {
    "residual": fc.ResidualRadius(),
    "paper": fc.OperationalRadius(pde=0.05, bc=0.5, optimality=0.1, covered=False),
    "operational": fc.OperationalRadius(pde=0.05, bc=0.5, optimality=0.1),
    "exact": fc.ExactRadius(),
    "dominance": fc.Dominance(),
}


def mesh_of(name: str, size: int | None = None) -> Any:
    """Of the unit interval or square, not quite uniform; its cells are near 1 / size."""
    kind = ELEMENTS[name][0]
    return unit_mesh(kind, size or (16 if kind == "line" else 5), graded=True)


def _parts(name: str, motion: Motion, size: int | None = None) -> tuple[Any, np.ndarray, np.ndarray, list[Any]]:
    mesh, order = motion.mesh(mesh_of(name, size))
    basis = Basis(mesh, ELEMENTS[name][1]())
    points = motion.forth(POINTS[mesh.dim()].T).T
    modes = [lambda x, f=f: f(motion.back(x)) for f in (MODES if mesh.dim() == 2 else MODES[::2])]
    return basis, order, points, modes


def conductivity(x: np.ndarray) -> np.ndarray:
    return 1.0 + 0.5 * x[0]


@cache
def source(name: str, motion: Motion = STILL, count: int | None = None, ball: float | None = None) -> Posed:
    """Variable conductivity, averages as sensors (the first `count` of them)."""
    basis, _, points, modes = _parts(name, motion)
    space = fc.FunctionSpace(basis, modes)
    problem = fc.EllipticSource(
        basis,
        parameters=space if ball is None else space.within_ball(ball),
        sensors=fc.AverageSensors(basis, points[:count], radius=0.08),
        conductivity=lambda x: conductivity(motion.back(x)),
    )
    return Posed(problem, motion)


@cache
def regions(name: str, motion: Motion = STILL, count: int | None = None) -> Posed:
    """Constants on two halves seen by averages over patches: all is exact, so that a guaranteed radius exists."""
    size = 24 if name.startswith("line") else 8
    basis, order, _, _ = _parts(name, motion, size)
    still = mesh_of(name, size)
    x = still.p[:, still.t].mean(axis=1)[:, order]
    patch = np.floor(8.0 * x[0]) if len(x) == 1 else np.floor(4.0 * x[0]) + 4.0 * np.floor(2.0 * x[1])
    patches = [np.flatnonzero(patch == i) for i in range(8)]
    problem = fc.EllipticSource(
        basis,
        parameters=fc.RegionSpace(basis, [np.flatnonzero(x[0] < 0.5), np.flatnonzero(x[0] >= 0.5)]),
        sensors=fc.RegionSensors(basis, patches[:count]),
    )
    return Posed(problem, motion)


@cache
def heat(name: str, motion: Motion = STILL, count: int | None = None) -> Posed:
    basis, _, points, modes = _parts(name, motion)
    problem = fc.HeatInitial(
        basis,
        parameters=fc.FunctionSpace(basis, modes),
        sensors=fc.PointSensors(basis, points[:count]),
        times=[0.01, 0.02],
        steps=8,
    )
    return Posed(problem, motion)


@cache
def coefficient(name: str, motion: Motion = STILL, count: int | None = None) -> Posed:
    basis, _, points, modes = _parts(name, motion)
    problem = fc.EllipticCoefficient(
        basis,
        parameters=fc.FunctionSpace(basis, modes[:2]),
        sensors=fc.PointSensors(basis, points[:count]),
        source=1.0,
    )
    return Posed(problem, motion)


@cache
def tomography(name: str, motion: Motion = STILL, angles: tuple[float, ...] = (0.0, 35.0, 80.0, 120.0)) -> Posed:
    """Its detector depends on the bounding box, so it is moved by translations only."""
    basis, _, _, modes = _parts(name, motion)
    problem = fc.Tomography(basis, parameters=fc.FunctionSpace(basis, modes), angles=angles, bins=5, spacing=0.19)
    return Posed(problem, motion)
