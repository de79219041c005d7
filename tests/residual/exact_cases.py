"""Random elliptic problems with polynomial solutions, so that the energy error of any state is known exactly.

With the right Dirichlet values that error is the dual norm of the residual in the energy norm. Solutions are built from
the coordinates X, Y of the unit square (or triangle) before an affine map, so that stretched, sheared and rotated
domains need nothing special: sources have degree 2, natural data at most degree 4 along the sides.
"""

from dataclasses import dataclass, replace

import numpy as np
from exact_meshes import QUADS, SIDES, TRIANGLES, affine_map, halves, triangle
from exact_polynomials import Frame, divergence, power_sum, random_polynomial
from plain import any_source
from skfem import Basis, ElementQuad1, ElementQuad2, ElementTriP1, ElementTriP2, FacetBasis

import femcert as fc
from femcert.mesh.elements import degree as degree_of
from femcert.mesh.sample import Sampler, dot

ELEMENTS = {"P1": ElementTriP1, "P2": ElementTriP2, "Q1": ElementQuad1, "Q2": ElementQuad2}
SOURCES = {"P": ElementTriP2, "Q": ElementQuad2}
STATES = ("galerkin", "waves", "noise", "other")
CONTRAST = 1000.0


@dataclass(frozen=True)
class Case:
    """A problem with its exact solution: one polynomial, or one on each side of an interface."""

    name: str
    problem: object
    solution: tuple
    right: np.ndarray
    a: object
    c: float
    alpha: dict
    source: object
    parameter: np.ndarray

    def _on(self, x, elements, pieces):
        left, right = pieces[0](x), pieces[-1](x)
        return np.where(self.right[elements][:, None], right, left)

    def error(self, state):
        """``‖u* - u_h‖`` in the energy norm, by quadrature of high order."""
        basis = self.problem.basis
        every = np.arange(basis.mesh.nelements)
        sampler = Sampler(basis.mesh, 24 if basis.mesh.t.shape[0] == 4 else 12)
        x = sampler.x
        value = self._on(x, every, self.solution) - sampler.values(basis, state)
        exact = [self._on(x, every, [u.gradient()[axis] for u in self.solution]) for axis in (0, 1)]
        slope = np.array(exact) - sampler.gradients(basis, state)
        a = self.a(x) if callable(self.a) else np.broadcast_to(self.a, len(every))[:, None]
        total = float(sampler.integral(a * dot(slope, slope) + self.c * value**2).sum())
        for side, alpha in self.alpha.items():
            part = FacetBasis(basis.mesh, basis.elem, facets=basis.mesh.boundaries[side], intorder=12)
            y = np.asarray(part.global_coordinates())
            gap = self._on(y, part.tind, self.solution) - np.asarray(part.interpolate(state))
            total += float(np.sum((alpha(y) if callable(alpha) else alpha) * gap**2 * part.dx))
        return np.sqrt(total)

    def exact_on_nodes(self):
        x = self.problem.basis.doflocs
        u = self.solution[0](x)
        if len(self.solution) == 2:
            seen = np.zeros(len(u), dtype=bool)
            seen[self.problem.basis.element_dofs[:, self.right]] = True
            u = np.where(seen, self.solution[1](x), u)
        return u

    def state(self, kind, rng):
        """A state with the right Dirichlet values; `kind` is one of STATES, or "exact"."""
        problem = self.problem
        u = problem.solve(self.parameter).copy()
        x, free = problem.basis.doflocs[:, problem.free], problem.free
        if kind == "waves":
            u[free] += 0.06 * np.sin(15 * np.pi * x[0]) * np.sin(3 * np.pi * x[1])
        elif kind == "noise":
            u[free] += 10.0 ** rng.uniform(-3, -1) * rng.standard_normal(len(free))
        elif kind == "other":
            u[free] = self.exact_on_nodes()[free] + 0.1 * np.sin(2.0 * x[0] + rng.uniform(1, 4) * x[1])
        elif kind == "exact":
            u[free] = self.exact_on_nodes()[free]
        return u

    def candidate(self, state):
        return fc.Candidate(state, self.parameter)


def draw(element, seed):
    """A random case, a state of it, and words about both."""
    rng = np.random.default_rng([seed, *map(ord, element)])
    coefficient = rng.choice(["constant", "linear", "jump"], p=[0.5, 0.25, 0.25])
    boundary = rng.choice(["dirichlet", "two sides", "left", "robin"])
    case = build(rng, element, coefficient, boundary, reaction=float(rng.choice([0.0, 0.0, 3.0])))
    kind = STATES[seed % 4]
    state = case.state(kind, rng)
    if case.error(state) < 1e-8 * np.abs(state).max():
        # The Galerkin solution is exact here.
        kind, state = "noise", case.state("noise", rng)
    return case, state, f"seed {seed}: {case.name}, {kind}"


def build(rng, element, coefficient, boundary, reaction, *, bubble=20.0):
    """A case; some wishes exclude each other, then the nearest possible one. `bubble`: of Dirichlet solutions."""
    label, mesh = _mesh(rng, element, coefficient)
    if coefficient == "jump":
        reaction, boundary = 0.0, "two sides" if boundary == "dirichlet" else boundary
    if boundary == "dirichlet" and coefficient == "linear" and element[0] == "P":
        label, mesh, reaction = "triangle", triangle(rng), 0.0
    right = mesh.p[0, mesh.t].mean(axis=0) > 0.5
    if label != "triangle":
        mesh = mesh.with_boundaries(SIDES)
    mesh = mesh.with_subdomains({"one": np.flatnonzero(~right), "two": np.flatnonzero(right)})
    stretch, A, shift = affine_map(rng)
    basis = Basis(replace(mesh, doflocs=A @ mesh.p + shift[:, None]), ELEMENTS[element]())
    name = f"{element} {label} {stretch}, {coefficient}, {boundary}, c = {reaction}"
    X, Y = Frame(A, shift).coordinates()
    normals = _normals(A)
    if coefficient == "jump":
        a, solution, flux, f = _with_jump(rng, X, right, np.linalg.inv(A)[0])
    else:
        a = 1.0 + X + 2.0 * Y if coefficient == "linear" else float(rng.uniform(0.2, 5.0))
        degree = 2 if reaction else 3 if coefficient == "linear" else 4
        u = _solution(rng, X, Y, degree_of(basis), degree, boundary, bubble, triangular=label == "triangle")
        flux = tuple(part * a for part in u.gradient())
        solution, f = (u,), -1.0 * divergence(flux) + reaction * u
    conditions, alpha = _conditions(rng, boundary, solution, flux, normals, Y)
    conductivity = a.declared() if coefficient == "linear" else a
    if coefficient == "jump" and rng.random() < 0.5:
        conductivity = {"one": a[~right][0], "two": a[right][0]}
    source = Basis(basis.mesh, SOURCES[element[0]]())
    problem = any_source(basis, source, conductivity=conductivity, reaction=reaction, **conditions)
    return Case(name, problem, solution, right, a, reaction, alpha, f, f(source.doflocs))


def _mesh(rng, element, coefficient):
    makers = QUADS if element[0] == "Q" else TRIANGLES
    label = str(rng.choice(list(makers)))
    if coefficient == "jump" and label in ("graded", "delaunay"):
        return "halves", halves(rng)
    return label, makers[label](rng)


def _normals(A):
    across = np.linalg.inv(A) / np.linalg.norm(np.linalg.inv(A), axis=1)[:, None]
    return {"left": -across[0], "right": across[0], "bottom": -across[1], "top": across[1]}


def _solution(rng, X, Y, trace_degree, degree, boundary, bubble, *, triangular):
    """A polynomial whose source has degree 2, and whose Dirichlet values the trial space represents."""
    trace = random_polynomial(rng, trace_degree, X, Y)
    fall, drop = 1.0 + -1.0 * X, 1.0 + -1.0 * Y
    if boundary == "dirichlet":
        b = X * Y * (fall + -1.0 * Y) if triangular else X * fall * Y * drop
        fits = triangular or degree == 4
        return trace + bubble * float(rng.standard_normal()) * b if fits else trace
    if boundary == "two sides":
        return trace + X * fall * random_polynomial(rng, degree - 2, X, Y)
    if boundary == "left":
        return trace + X * random_polynomial(rng, degree - 1, X, Y)
    return random_polynomial(rng, degree, X, Y)


def _with_jump(rng, X, right, slope):
    """``u = int F(X) / a``, so that ``a du/dX = F`` is continuous where a jumps by 1:1000."""
    low, high = (1.0, CONTRAST)[:: rng.choice([-1, 1])]
    F = np.polynomial.Polynomial(rng.standard_normal(4))
    G = F.integ(lbnd=0.5)
    middle = rng.standard_normal()
    sides = tuple(middle + power_sum(G.coef / a, X) for a in (low, high))
    across = power_sum(F.coef, X)
    flux = (across * slope[0], across * slope[1])
    return np.where(right, high, low), sides, flux, -1.0 * divergence(flux)


def _conditions(rng, boundary, solution, flux, normals, Y):
    """Keyword arguments of the problem, and the Robin coefficients by side."""
    def outflow(side):
        return flux[0] * normals[side][0] + flux[1] * normals[side][1]

    if boundary == "dirichlet":
        return {"dirichlet": solution[0].declared()}, {}
    at = {"left": solution[0], "right": solution[-1]}
    essential = {"two sides": ("left", "right"), "left": ("left",), "robin": ()}[boundary]
    robin, alpha = {}, {}
    if "right" not in essential and (boundary == "robin" or rng.random() < 0.5):
        a = float(rng.uniform(0.5, 5.0)) if at["right"].degree == 4 or rng.random() < 0.5 else 1.0 + Y
        alpha["right"] = a
        given = a if isinstance(a, float) else a.declared()
        robin["right"] = (given, (outflow("right") + at["right"] * a).declared())
    natural = {side: outflow(side).declared() for side in normals if side not in essential and side not in robin}
    return {"dirichlet": {side: at[side].declared() for side in essential}, "neumann": natural, "robin": robin}, alpha
