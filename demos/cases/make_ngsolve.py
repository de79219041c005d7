"""Makes ngsolve_matrices.npz: a diffusion equation in a body of tetrahedra, assembled by NGSolve for femcert.

``pip install ngsolve``, then ``python demos/cases/make_ngsolve.py``. The body is a plate of two halves; the source is
unknown, the temperature is read as averages over twelve spots of its upper side.
"""

from pathlib import Path

import numpy as np
from netgen.occ import Box, Glue, OCCGeometry, Pnt, Z
from ngsolve import H1, BilinearForm, LinearForm, Mesh, ds, dx, exp, grad, x, y
from scipy.sparse import csr_matrix, vstack

west, east = Box(Pnt(0, 0, 0), Pnt(1, 1, 0.3)), Box(Pnt(1, 0, 0), Pnt(2, 1, 0.3))
west.mat("west")
east.mat("east")
for half in (west, east):
    half.faces.Max(Z).name = "upper"
mesh = Mesh(OCCGeometry(Glue([west, east])).GenerateMesh(maxh=0.2))
V = H1(mesh, order=1)
u, v = V.TnT()


def assembled(form):
    """The matrix of a bilinear form."""
    # The parts are views, so that the form has to live until they are copied.
    made = BilinearForm(form).Assemble()
    values, columns, starts = (np.array(part) for part in made.mat.CSR())
    return csr_matrix((values, columns, starts), shape=(V.ndof, V.ndof))


def functional(form):
    """The vector of a linear form."""
    made = LinearForm(form).Assemble()
    return np.array(made.vec)


def spot(a, b):
    """The average over a spot of the upper side."""
    row = functional(exp(-((x - a) ** 2 + (y - b) ** 2) / 0.1**2) * v * ds("upper"))
    return csr_matrix(row / row.sum())


matrices = {
    # - div grad u + 4 u = q, no flux through the sides.
    "operator": assembled(grad(u) * grad(v) * dx + 4 * u * v * dx),
    "load": assembled(u * v * dx),
    "stiffness": assembled(grad(u) * grad(v) * dx),
    "observe": vstack([spot(a, b) for a in (0.2, 0.7, 1.3, 1.8) for b in (0.2, 0.5, 0.8)], format="csr"),
}
found = {"west": functional(v * dx("west")), "points": np.array([vertex.point for vertex in mesh.vertices])}
for name, matrix in matrices.items():
    matrix.data[np.abs(matrix.data) < 1e-12 * np.abs(matrix.data).max()] = 0.0
    matrix.eliminate_zeros()
    found |= {f"{name}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")}
np.savez_compressed(Path(__file__).with_name("ngsolve_matrices.npz"), **found)
print(V.ndof, "dofs")
