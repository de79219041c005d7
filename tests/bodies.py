"""Bodies with electrodes: a strip with two of them, a disc with many."""

import numpy as np
from skfem import Basis, ElementTriP1, MeshTri

import femcert as fc

LENGTH, HEIGHT = 3.0, 1.0


def strip(cells=3, element=ElementTriP1):
    """Three squares in a row, an electrode at either end."""
    mesh = MeshTri.init_tensor(np.linspace(0.0, LENGTH, 3 * cells + 1), np.linspace(0.0, HEIGHT, cells + 1))
    ends = {"left": lambda x: x[0] == 0.0, "right": lambda x: np.isclose(x[0], LENGTH)}
    return Basis(mesh.with_boundaries(ends), element())


def disc(electrodes=8, refined=1, element=ElementTriP1, rings=3):
    """The unit disc in rings; electrodes on every other arc of the boundary, counter-clockwise from the right."""
    sectors, rings = 2 * electrodes * 2**refined, rings * 2**refined
    angles = 2.0 * np.pi * np.arange(sectors) / sectors
    radii = np.linspace(1.0 / rings, 1.0, rings)
    points = np.hstack([np.zeros((2, 1)), *(r * np.array([np.cos(angles), np.sin(angles)]) for r in radii)])
    here, after = np.arange(sectors), (np.arange(sectors) + 1) % sectors
    cells = [np.array([0 * here, 1 + here, 1 + after])]
    for ring in range(rings - 1):
        a, b = 1 + ring * sectors, 1 + (ring + 1) * sectors
        cells += [np.array([a + here, b + here, b + after]), np.array([a + here, b + after, a + after])]
    mesh = MeshTri(points, np.hstack(cells))
    middle = np.arctan2(*mesh.p[:, mesh.facets].mean(axis=1)[::-1]) % (2.0 * np.pi)
    arc = np.floor(middle / (np.pi / electrodes)).astype(int)
    outer = np.isin(np.arange(mesh.facets.shape[1]), mesh.boundary_facets())
    return Basis(
        mesh.with_boundaries({f"e{i}": np.flatnonzero(outer & (arc == 2 * i)) for i in range(electrodes)}), element()
    )


def model(basis, parameters=None, electrodes=8, **options):
    space = fc.FullSpace(basis) if parameters is None else parameters
    return fc.ElectrodeModel(
        basis, electrodes=[f"e{i}" for i in range(electrodes)], parameters=space, **{"impedances": 0.1, **options}
    )
