"""Problems whose exact forward map is known in closed form, with truths, data and candidates drawn from a seed."""

from __future__ import annotations

from functools import cache

import numpy as np
from skfem import (
    Basis,
    ElementLineP1,
    ElementLineP2,
    ElementQuad1,
    ElementQuad2,
    ElementTriP1,
    ElementTriP2,
    MeshLine,
    MeshQuad,
    MeshTri,
)

import femcert as fc
from femcert.certificate.guaranteed import guaranteed_parts

PLANE = {ElementTriP1: MeshTri, ElementTriP2: MeshTri, ElementQuad1: MeshQuad, ElementQuad2: MeshQuad}
SIDE = 4
KINDS = ("state of its own", "state off", "boundary off", "out of class", "all of it", "truth")


def averages(wave, edges):
    """Averages of ``sin(wave x)`` over the parts of an interval between edges."""
    return -np.diff(np.cos(wave * edges)) / (wave * np.diff(edges))


def equal(cells):
    return np.linspace(0.0, 1.0, cells + 1)


def between(middles, edges):
    part = np.searchsorted(edges, middles) - 1
    return [np.flatnonzero(part == i) for i in range(len(edges) - 1)]


def squares(mesh, side=SIDE):
    x, y = (between(axis, equal(side)) for axis in mesh.p[:, mesh.t].mean(axis=1))
    return [np.intersect1d(i, j) for i in x for j in y]


def modes(space):
    """Means over the sensors of the modes ``sin(j pi x) sin(l pi y)``, times what makes them columns of the space."""
    parts = [np.outer(*(averages(f * np.pi, equal(SIDE)) for f in mode)).ravel() for mode in space.frequencies.T]
    return np.column_stack(parts) * space.functions_at(peaks(space.frequencies)).diagonal()


def peaks(frequencies):
    """Points where the modes are 1."""
    return 0.5 / frequencies


class Case:
    """A problem, its exact affine map ``y = F c + offset``, and L2 distances from true parameters."""

    def __init__(self, problem, F, offset=0.0, truth=None):
        self.problem, self.F, self.offset = problem, F, offset
        space = problem.parameters
        self.fine = Basis(space.basis.mesh, space.basis.elem, intorder=14 if space.basis.mesh.dim() == 2 else 30)
        x = np.asarray(self.fine.global_coordinates())
        self.functions = truth or (lambda x: space.functions_at(x))
        self.values = self.functions(x.reshape(len(x), -1)).reshape(-1, *x.shape[1:])

    def error(self, parameter, truth):
        gap = self.fine.interpolate(parameter) - np.tensordot(truth, self.values, axes=1)
        return float(np.sqrt(np.sum(gap**2 * self.fine.dx)))

    @property
    def stability(self):
        if not hasattr(self, "_stability"):
            data = fc.Data(np.zeros(self.problem.observation_count), 0.0)
            self._stability = fc.stability(self.problem, data=data, guarantee="continuous")
        return self._stability

    @staticmethod
    def noisy(data):
        return data.noise_level >= 1e-2 * np.linalg.norm(data.values)

    def discrete_radius(self, data, candidate, state):
        """The same parts on the mesh alone: the exact state is the discrete one, and sigma_min that of the mesh."""
        problem = self.problem
        if not hasattr(self, "_sigma"):
            self._sigma = fc.stability(problem).sigma_min
        c, rest = problem.parameters.project(candidate.parameter)
        inside = problem.parameters.field(c)
        own = problem.predict(problem.solve(inside), inside)
        given = state == "given" and problem.states
        read = problem.predict(candidate.state, candidate.parameter) if given else own
        total = data.norm(read - data.values) + data.norm(read - own) + data.noise_level
        return total / self._sigma + problem.parameters.norm(rest)

    def draw(self, seed):
        """Truth, data with noise of exactly the level, and a candidate of some kind."""
        rng = np.random.default_rng(seed)
        problem, kind = self.problem, KINDS[seed % len(KINDS)]
        truth = rng.standard_normal(self.F.shape[1])
        clean = self.F @ truth + self.offset
        noise = rng.standard_normal(clean.size)
        delta = float(rng.choice([0.0, 1e-3, 3e-2])) * np.linalg.norm(clean)
        data = fc.Data(clean + noise * (delta / np.linalg.norm(noise)), delta * (1.0 + 1e-12))
        off = 0.0 if kind == "truth" else float(rng.choice([1e-3, 0.1, 1.0]))
        q = problem.parameters.field(truth + off * rng.standard_normal(truth.size))
        u = problem.solve(q) if problem.states else None
        if kind in ("out of class", "all of it"):
            q = q + off * rng.standard_normal(q.size)
        if problem.states and kind in ("state off", "all of it"):
            wobble = off * rng.standard_normal(u.shape) * np.abs(u).max()
            wobble[problem.boundary.prescribed] = 0.0
            u = u + wobble
        if problem.states and kind in ("boundary off", "all of it"):
            lift = np.zeros_like(u)
            lift[problem.boundary.prescribed] = off * np.abs(u).max()
            u = u + lift
        return truth, data, fc.Candidate(u, q)

    def covered(self, seeds):
        """Radii over those of the discrete problem, for seeds with noise; the truth is inside for all of them."""
        ratios = []
        for seed in seeds:
            truth, data, candidate = self.draw(seed)
            space = self.problem.parameters
            # As a function, and as a dof vector.
            on_dofs = space.norm(candidate.parameter - space.field(truth))
            error = max(self.error(candidate.parameter, truth), on_dofs)
            for state in ("given", "recomputed"):
                parts = guaranteed_parts(self.problem, data, candidate, state=state, stability=self.stability)
                assert error <= parts.radius, (seed, state)
                assert {b.side for b in (parts.data, parts.pde, parts.bc, parts.admissibility)} == {"upper"}
                if self.noisy(data):
                    ratios.append(parts.radius / self.discrete_radius(data, candidate, state))
        return np.array(ratios)


@cache
def on_square(n, element, k=3, boundary=None):
    """Sines on the unit square; boundary values that are harmonic polynomials add their own averages."""
    grid = equal(n)
    mesh = PLANE[element].init_tensor(grid, grid)
    basis = Basis(mesh, element())
    space, sensors = fc.SineSpace(basis, k), fc.RegionSensors(basis, squares(mesh))
    F = modes(space) / (np.pi**2 * np.sum(space.frequencies**2, axis=0))
    given = None if boundary is None else boundary[0]
    problem = fc.EllipticSource(basis, parameters=space, sensors=sensors, dirichlet=given)
    offset = 0.0
    if boundary is not None:
        t, w = np.polynomial.legendre.leggauss(6)
        nodes = (equal(SIDE)[:-1, None] + (1.0 + t) / (2 * SIDE)).ravel()
        values = boundary[0](np.array(np.meshgrid(nodes, nodes, indexing="ij")))
        offset = np.einsum("iqjr,q,r->ij", values.reshape(SIDE, 6, SIDE, 6), w / 2, w / 2).ravel()
    return Case(problem, F, offset)


@cache
def on_line(n, element, reaction=0.0, k=3, cells=8, covariance=False):
    mesh = MeshLine(equal(n))
    basis = Basis(mesh, element())
    space = fc.SineSpace(basis, k)
    sensors = fc.RegionSensors(basis, between(mesh.p[0, mesh.t].mean(axis=0), equal(cells)))
    problem = fc.EllipticSource(basis, parameters=space, sensors=sensors, reaction=reaction)
    waves = np.pi * space.frequencies[0]
    scales = space.functions_at(peaks(space.frequencies)).diagonal()
    F = np.column_stack([s * averages(w, equal(cells)) / (w**2 + reaction) for s, w in zip(scales, waves, strict=True)])
    return Case(problem, F)


@cache
def with_points(element, n, values, robin):
    """Constants on four parts of a line, point sensors between nodes: P2 with vertices there is the exact solution."""

    def build(x, elem):
        mesh = MeshLine(x).with_boundaries({"left": lambda p: p[0] < 1e-9, "right": lambda p: p[0] > 1.0 - 1e-9})
        basis = Basis(mesh, elem())
        conditions = {"robin": {"right": (2.0, values[1])}} if robin else {}
        dirichlet = {"left": values[0]} if robin else {"left": values[0], "right": values[1]}
        regions = between(mesh.p[0, mesh.t].mean(axis=0), equal(4))
        return fc.EllipticSource(
            basis, parameters=fc.RegionSpace(basis, regions), sensors=fc.PointSensors(basis, points),
            conductivity=1.7, dirichlet=dirichlet, **conditions,
        )  # fmt: skip

    points = np.array([0.0713, 0.21, 0.333, 0.4141, 0.567, 0.7, 0.89])
    reference = build(np.sort(np.concatenate([equal(16), points])), ElementLineP2)
    F, offset = reference.forward_matrix(), reference.offset
    truth = [lambda x, i=i: (np.clip(x[0] // 0.25, 0, 3) == i).astype(float) for i in range(4)]
    return Case(build(equal(n), element), F, offset, truth=lambda x: np.array([f(x) for f in truth]))


@cache
def heat_case(element, n, sensors, scheme="crank-nicolson"):
    line = element in (ElementLineP1, ElementLineP2)
    grid, times, kappa = equal(n), np.array([0.01, 0.03]), 0.8
    mesh = MeshLine(grid) if line else PLANE[element].init_tensor(grid, grid)
    basis = Basis(mesh, element())
    space = fc.SineSpace(basis, 3)
    middles = (equal(SIDE)[1:] + equal(SIDE)[:-1]) / 2
    if sensors == "points":
        found, rows = fc.PointSensors(basis, middles), space.functions_at(middles[None]).T
    elif line:
        regions = between(mesh.p[0, mesh.t].mean(axis=0), equal(SIDE))
        found = fc.RegionSensors(basis, regions) if sensors == "regions" else fc.AverageSensors(
            basis, middles, radius=0.5 / SIDE
        )  # fmt: skip
        scales = space.functions_at(peaks(space.frequencies)).diagonal()
        rows = np.column_stack([averages(f * np.pi, equal(SIDE)) for f in space.frequencies[0]]) * scales
    else:
        found, rows = fc.RegionSensors(basis, squares(mesh)), modes(space)
    decay = np.exp(-kappa * np.pi**2 * np.outer(times, np.sum(space.frequencies**2, axis=0)))
    F = np.vstack([rows * d for d in decay])
    problem = fc.HeatInitial(
        basis, parameters=space, sensors=found, times=times, steps=12, diffusivity=kappa, scheme=scheme
    )
    return Case(problem, F)
