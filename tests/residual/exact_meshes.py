"""Random meshes of the unit square, all kinds, and affine maps that stretch and shear them."""

from dataclasses import replace

import numpy as np
from scipy.spatial import Delaunay
from skfem import MeshQuad, MeshTri

from femcert.mesh.refine import refined

# Where a side lies, and whether its points are turned.
ENDS = ((0, 1), (1, 1), (0, -1), (1, -1))
SIDES = {
    "left": lambda x: x[0] < 1e-9, "right": lambda x: x[0] > 1.0 - 1e-9,
    "bottom": lambda x: x[1] < 1e-9, "top": lambda x: x[1] > 1.0 - 1e-9,
}  # fmt: skip


def structured(rng, kind=MeshTri):
    x, y = (np.linspace(0.0, 1.0, 2 * rng.integers(1, 5) + 1) for _ in range(2))
    return kind.init_tensor(x, y)


def graded(rng):
    x = np.linspace(0.0, 1.0, 7)
    return MeshTri.init_tensor(x ** rng.uniform(1.0, 2.5), x ** rng.uniform(1.0, 2.5))


def random_triangles(rng):
    """Delaunay, without the flat triangles that rounding leaves on the boundary."""
    sides = [np.r_[0.0, np.sort(rng.uniform(0.1, 0.9, rng.integers(1, 4))), 1.0] for _ in range(4)]
    around = [np.c_[s, np.full_like(s, v)][:, ::d] for s, (v, d) in zip(sides, ENDS, strict=True)]
    points = np.unique(np.vstack([*around, rng.uniform(0.04, 0.96, (rng.integers(4, 40), 2))]), axis=0)
    t = Delaunay(points).simplices
    corners = points[t]
    area = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1]))
    return MeshTri(points.T.copy(), t[area > 1e-7].T.copy())


def adapted(rng):
    mesh = MeshTri.init_sqsymmetric() if rng.random() < 0.5 else MeshTri().refined(1)
    for _ in range(4):
        mesh = refined(mesh, np.flatnonzero(rng.random(mesh.nelements) < 0.25))
    return mesh


def shaken_quads(rng):
    """General convex quadrilaterals, some of them numbered the other way round."""
    mesh = structured(rng, MeshQuad)
    p, t, h = mesh.p.copy(), mesh.t.copy(), 1.0 / np.sqrt(mesh.nelements)
    inner = mesh.interior_nodes()
    shake = rng.uniform(-0.2, 0.2, (2, len(inner))) * min(h, 0.25)
    shake[0, np.abs(p[0, inner] - 0.5) < 1e-9] = 0.0
    p[:, inner] += shake
    flip = rng.random(mesh.nelements) < 0.3
    t[:, flip] = t[::-1][:, flip]
    return MeshQuad(p, t)


def halves(rng):
    """Random triangles with an interface: a mesh of the left half and its mirror image."""
    mesh = random_triangles(rng)
    left, right = mesh.p.copy(), mesh.p.copy()
    left[0] *= 0.5
    right[0] = 1.0 - 0.5 * right[0]
    return replace(mesh, doflocs=left) + replace(mesh, doflocs=right)


def triangle(rng):
    """The unit triangle."""
    mesh = MeshTri(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.array([[0], [1], [2]])).refined(2)
    p, inner = mesh.p.copy(), mesh.interior_nodes()
    p[:, inner] += rng.uniform(-0.05, 0.05, (2, len(inner)))
    return replace(mesh, doflocs=p)


TRIANGLES = {"structured": structured, "graded": graded, "delaunay": random_triangles, "adapted": adapted}
QUADS = {"parallelograms": lambda rng: structured(rng, MeshQuad), "quads": shaken_quads}


def affine_map(rng):
    """The identity, a rotation with a shift, or a stretched and sheared domain of aspect 10 to 50."""
    kind = rng.choice(["plain", "turned", "stretched"], p=[0.5, 0.2, 0.3])
    angle = rng.uniform(0, 2 * np.pi)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    if kind == "plain":
        return kind, np.eye(2), np.zeros(2)
    if kind == "turned":
        return kind, turn * rng.uniform(0.5, 3.0), rng.uniform(-2, 2, 2)
    stretch = np.diag([1.0, rng.uniform(10, 50)][:: rng.choice([-1, 1])])
    shear = np.array([[1.0, rng.uniform(-1, 1)], [0.0, 1.0]])
    return kind, turn @ shear @ stretch, np.zeros(2)
