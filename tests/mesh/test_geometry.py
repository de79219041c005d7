"""The tables of facets are those that scikit-fem makes, number by number."""

import numpy as np
import pytest
from skfem import MeshQuad, MeshTri
from zoo import renumbered

from femcert.mesh.geometry import index_facets

TABLES = ("facets", "t2f", "f2t")


def pinched():
    """Three triangles at one edge, which scikit-fem takes as it is."""
    p = np.array([[0.0, 1.0, 0.5, 0.5, 0.4], [0.0, 0.0, 1.0, -1.0, 0.6]])
    return MeshTri(p, np.array([[0, 0, 0], [1, 1, 1], [2, 3, 4]]))


MESHES = {
    "one triangle": lambda: MeshTri.init_refdom(),
    "one quadrilateral": lambda: MeshQuad.init_refdom(),
    "triangles": lambda: MeshTri.init_lshaped().refined(3),
    "tensor": lambda: MeshTri.init_tensor(np.linspace(0.0, 1.0, 6), np.linspace(0.0, 1.0, 4)),
    "quadrilaterals": lambda: MeshQuad().refined(3),
    "disc": lambda: MeshTri.init_circle(2),
    "adaptive": lambda: MeshTri().refined(2).refined([0, 5, 7]),
    "unused vertices": lambda: MeshTri(np.random.default_rng(0).random((2, 9)), np.array([[1, 3], [3, 4], [8, 8]])),
    "three triangles at an edge": pinched,
    **{f"renumbered triangles {i}": lambda i=i: renumbered(MeshTri().refined(3), i) for i in range(3)},
    **{f"renumbered quadrilaterals {i}": lambda i=i: renumbered(MeshQuad().refined(2), i) for i in range(3)},
}


@pytest.mark.parametrize("name", MESHES)
def test_tables_are_those_of_scikit_fem(name):
    ours, theirs = MESHES[name](), MESHES[name]()
    index_facets(ours)
    assert all(f"_{table}" in vars(ours) for table in TABLES)
    for table in TABLES:
        found, expected = getattr(ours, table), getattr(theirs, table)
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected)
    assert np.array_equal(ours.boundary_facets(), theirs.boundary_facets())
