"""Meshes, error norms and fitted orders that the tests of the problem room share."""

from pathlib import Path

import numpy as np
from skfem import (
    Basis,
    ElementLineP1,
    ElementLineP2,
    ElementQuad1,
    ElementQuad2,
    ElementTriP1,
    ElementTriP2,
    Functional,
    MeshLine,
    MeshQuad,
    MeshTri,
)

MESHES = Path(__file__).parents[1] / "meshes"

SIDES = {
    "left": lambda x: np.isclose(x[0], 0.0),
    "right": lambda x: np.isclose(x[0], 1.0),
    "bottom": lambda x: np.isclose(x[1], 0.0),
    "top": lambda x: np.isclose(x[1], 1.0),
}
ELEMENTS = {
    "line P1": ("line", ElementLineP1, 1),
    "line P2": ("line", ElementLineP2, 2),
    "triangle P1": ("triangle", ElementTriP1, 1),
    "triangle P2": ("triangle", ElementTriP2, 2),
    "quad Q1": ("quad", ElementQuad1, 1),
    "quad Q2": ("quad", ElementQuad2, 2),
    "distorted quad Q1": ("distorted quad", ElementQuad1, 1),
    "distorted quad Q2": ("distorted quad", ElementQuad2, 2),
}


def unit_mesh(kind, n):
    """The unit interval or square with `n` cells per side, its sides named."""
    nodes = np.linspace(0.0, 1.0, n + 1)
    if kind == "line":
        return MeshLine(nodes).with_boundaries({name: SIDES[name] for name in ("left", "right")})
    mesh = (MeshTri if kind == "triangle" else MeshQuad).init_tensor(nodes, nodes)
    if kind == "distorted quad":
        bump = np.sin(2 * np.pi * mesh.p[0]) * np.sin(2 * np.pi * mesh.p[1])
        mesh = MeshQuad(mesh.p + 0.06 * bump * np.array([[1.0], [-0.7]]), mesh.t)
    return mesh.with_boundaries(SIDES)


def unit_basis(name, n):
    """Basis of an entry of `ELEMENTS` on `unit_mesh`."""
    kind, element, _ = ELEMENTS[name]
    return Basis(unit_mesh(kind, n), element())


def jittered(mesh, amount, seed=0):
    """The mesh with its inner nodes moved at random."""
    rng = np.random.default_rng(seed)
    points = mesh.p.copy()
    inner = mesh.interior_nodes()
    points[:, inner] += amount * (2 * rng.random((len(points), len(inner))) - 1)
    return type(mesh)(points, mesh.t)


def inside_points(basis, count=5, seed=1):
    """Sensor points in the unit interval or square, away from nodes."""
    return 0.1 + 0.8 * np.random.default_rng(seed).random((count, basis.mesh.dim()))


def errors(basis, u, exact, gradient):
    """Errors of the finite-element function `u` in L2 and in the H1 seminorm, by a rule of degree 10."""
    fine = Basis(basis.mesh, basis.elem, intorder=10)

    @Functional
    def in_l2(w):
        return (w["u"] - exact(w.x)) ** 2

    @Functional
    def in_h1(w):
        return sum((a - b) ** 2 for a, b in zip(w["u"].grad, gradient(w.x), strict=True))

    at = fine.interpolate(u)
    return np.sqrt(in_l2.assemble(fine, u=at)), np.sqrt(in_h1.assemble(fine, u=at))


def fitted_order(sizes, values):
    """Slope of log(values) over log(sizes)."""
    return np.polyfit(np.log(sizes), np.log(values), 1)[0]


def taylor_order(function, derivative, steps=(1e-1, 5e-2, 2.5e-2, 1.25e-2)):
    """Fitted order of ``‖f(t) - f(0) - t f'(0)‖``: 2 for a right derivative, 1 for a wrong one."""
    start = np.atleast_1d(function(0.0))
    return fitted_order(steps, [np.linalg.norm(np.atleast_1d(function(t)) - start - t * derivative) for t in steps])
