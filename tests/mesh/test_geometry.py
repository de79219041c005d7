"""The tables of facets are those that scikit-fem makes, number by number."""

import numpy as np
import pytest
from skfem import Basis, ElementTriP2, MeshLine, MeshQuad, MeshTri, MeshTri2

from femcert.mesh.geometry import index_facets

TABLES = ("facets", "t2f", "f2t")


def shuffled(mesh, seed):
    """The same mesh with other numbers for vertices and elements."""
    rng = np.random.default_rng(seed)
    vertices, elements = rng.permutation(mesh.p.shape[1]), rng.permutation(mesh.nelements)
    p = np.empty_like(mesh.p)
    p[:, vertices] = mesh.p
    return type(mesh)(p, vertices[mesh.t[:, elements]])


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
    **{f"shuffled triangles {i}": lambda i=i: shuffled(MeshTri().refined(3), i) for i in range(3)},
    **{f"shuffled quadrilaterals {i}": lambda i=i: shuffled(MeshQuad().refined(2), i) for i in range(3)},
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


def test_tables_that_are_there_stay():
    mesh = MeshTri().refined(2)
    before = [getattr(mesh, table) for table in TABLES]
    index_facets(mesh)
    assert all(getattr(mesh, table) is old for table, old in zip(TABLES, before, strict=True))


@pytest.mark.parametrize("mesh", [MeshLine().refined(2), MeshTri2.from_mesh(MeshTri().refined(1))])
def test_other_meshes_are_left_alone(mesh):
    index_facets(mesh)
    assert "_facets" not in vars(mesh)


def test_scikit_fem_works_with_the_tables():
    ours, theirs = MeshTri.init_lshaped().refined(2), MeshTri.init_lshaped().refined(2)
    index_facets(ours)
    assert np.array_equal(ours.refined([1, 2]).t, theirs.refined([1, 2]).t)
    assert np.array_equal(Basis(ours, ElementTriP2()).element_dofs, Basis(theirs, ElementTriP2()).element_dofs)
