"""What the costs of single parts share: a clock, and meshes of the unit square."""

import time

import numpy as np
from skfem import Basis, ElementTriP1, MeshTri


def timed(call, *arguments):
    """What a call returns, and its seconds."""
    start = time.perf_counter()
    result = call(*arguments)
    return result, time.perf_counter() - start


def seconds(call, *arguments):
    """How long a call takes."""
    return timed(call, *arguments)[1]


def plane(side, jitter=0.0):
    """P1 on ``side²`` vertices; the inner ones are moved at random by up to `jitter` of the mesh width."""
    line = np.linspace(0.0, 1.0, side)
    mesh = MeshTri.init_tensor(line, line)
    if jitter:
        p, inner = mesh.p.copy(), mesh.interior_nodes()
        p[:, inner] += np.random.default_rng(0).uniform(-jitter, jitter, (2, len(inner))) / (side - 1)
        mesh = MeshTri(p, mesh.t)
    return Basis(mesh, ElementTriP1())
