"""Functions, regions and coarse meshes: coordinates, exact representation and the nested flag."""

import numpy as np
import pytest
from skfem import Basis, ElementTriP1, ElementTriP2, MeshQuad, MeshTri
from zoo import ELEMENTS, jittered, unit_basis, unit_mesh

import femcert as fc

KINDS = [name for name in ELEMENTS if not name.startswith("bent")]


def test_function_space():
    basis = unit_basis("tri P2", 3)
    x = basis.doflocs
    space = fc.FunctionSpace(basis, [lambda x: x[0] * x[1], lambda x: 1.0, lambda x: x[0] ** 2])
    assert np.allclose(space.matrix, np.column_stack([x[0] * x[1], np.ones(basis.N), x[0] ** 2]))
    c, remainder = space.project(2.0 * x[0] * x[1] - 3.0)
    assert c == pytest.approx([2.0, -3.0, 0.0], abs=1e-11)
    assert np.abs(remainder).max() < 1e-12
    # The best constant is the mean: of x² + y it is 1/3 + 1/2.
    assert fc.FunctionSpace(basis, [lambda x: 1.0]).project(x[0] ** 2 + x[1])[0] == pytest.approx([5 / 6])
    for functions, message in (
        ([], r"functions is \[\]"),
        ([lambda x: x], r"functions\[0\] returned shape"),
        ([lambda x: x[0], lambda x: np.where(x[0] > 0.5, np.nan, 1.0)], r"functions\[1\] has 21 NaN"),
    ):
        with pytest.raises(fc.InputError, match=message):
            fc.FunctionSpace(basis, functions)


@pytest.mark.parametrize("name", KINDS)
def test_region_coordinates_are_values(name):
    basis = unit_basis(name, 6)
    mesh = basis.mesh.with_subdomains({"west": lambda x: x[0] < 0.5, "east": lambda x: x[0] > 0.5})
    basis = Basis(mesh, basis.elem)
    space = fc.RegionSpace(basis, ["west", "east"])
    assert space.dimension == 2
    assert space.regions == ["west", "east"]
    assert mesh.nelements == space.basis.N
    q = space.field([3.0, -1.0])
    west = mesh.p[0, mesh.t].mean(axis=0) < 0.5
    assert np.array_equal(q, np.where(west, 3.0, -1.0))
    # Each half has measure 1/2.
    assert space.norm(q) == pytest.approx(np.sqrt(5.0))
    assert space.project(q)[0] == pytest.approx([3.0, -1.0], rel=1e-12)
    # The projection of any field takes its mean over each region.
    field = np.random.default_rng(0).standard_normal(mesh.nelements)
    area = space.weight.diagonal()
    means = [np.average(field[part], weights=area[part]) for part in (west, ~west)]
    assert space.project(field)[0] == pytest.approx(means, rel=1e-12)
    assert np.array_equal(fc.RegionSpace(basis).field([-1.0, 3.0]), q)  # by default all, by name


def test_regions_by_element():
    basis = unit_basis("tri P1", 3)
    space = fc.RegionSpace(basis, [np.array([4, 2]), [7]])
    assert np.flatnonzero(space.field([1.0, 0.0])).tolist() == [2, 4]
    assert np.flatnonzero(space.field([0.0, 1.0])).tolist() == [7]
    mesh = basis.mesh.with_subdomains({"a": np.array([0, 1])})
    named = Basis(mesh, ElementTriP1())
    for where, regions, message in (
        (named, [], r"regions is \[\]"),
        (basis, None, r"regions is \[\]"),
        (named, "a", "regions is 'a'"),
        (named, ["b"], "region 'b' is not in the mesh"),
        (named, ["a", "a"], "regions overlap"),
        (named, [np.array([0, 0])], "repeated or impossible"),
        (named, [np.array([18])], "repeated or impossible"),
        (named, [np.array([-1])], "repeated or impossible"),
        (named, [np.array([0.5])], "type float64"),
        (named, [np.zeros(0, dtype=int)], "region 0 has shape"),
        (named, [np.ones(18, dtype=bool)], "type bool"),
    ):
        with pytest.raises(fc.InputError, match=message):
            fc.RegionSpace(where, regions)


@pytest.mark.parametrize("name", ELEMENTS)
def test_coarse_functions_are_exact_on_a_refined_mesh(name):
    kind, element, _ = ELEMENTS[name]
    coarse = jittered(unit_mesh(kind, 3), 0.04)
    fine = coarse.refined(2)
    basis = Basis(fine, element())
    for degree in (0, 1):
        space = fc.CoarseSpace(basis, coarse, degree=degree)
        assert space.nested
        assert space.dimension == (coarse.nelements if degree == 0 else coarse.nvertices)
        # A partition of unity, and the same integrals as on the coarse mesh.
        assert np.allclose(space.field(np.ones(space.dimension)), 1.0, atol=1e-12)
    own = fc.FullSpace(Basis(coarse, _linear(kind)()))
    c = np.random.default_rng(0).standard_normal(space.dimension)
    assert space.norm(space.field(c)) == pytest.approx(own.norm(c), rel=1e-10)
    assert space.project(space.field(c))[0] == pytest.approx(c, rel=1e-9, abs=1e-9)


def _linear(kind):
    return ELEMENTS[{"line": "line P1", "tri": "tri P1"}.get(kind, "quad Q1")][1]


def test_nested_flag():
    fine = unit_mesh("tri", 6)
    for element in (ElementTriP1(), ElementTriP2()):
        basis = Basis(fine, element)
        assert fc.CoarseSpace(basis, unit_mesh("tri", 3)).nested
        assert not fc.CoarseSpace(basis, unit_mesh("tri", 4)).nested
        assert not fc.CoarseSpace(basis, jittered(unit_mesh("tri", 3), 0.05)).nested
        # Two triangles make a square, but P1 on them not its bilinear functions; its constants are exact.
        assert fc.CoarseSpace(basis, unit_mesh("quad", 3)).nested == isinstance(element, ElementTriP2)
        assert fc.CoarseSpace(basis, unit_mesh("quad", 3), degree=0).nested
    quads = Basis(unit_mesh("quad", 6), ELEMENTS["quad Q1"][1]())
    assert fc.CoarseSpace(quads, unit_mesh("quad", 3)).nested
    # Distorted cells inside one coarse square hold linear functions, but not all bilinear ones.
    mesh = unit_mesh("quad", 6)
    inner = np.flatnonzero(np.all(np.isclose(np.mod(mesh.p * 6, 2), 1.0), axis=0))
    points = mesh.p.copy()
    points[:, inner] += 0.02
    skewed = Basis(MeshQuad(points, mesh.t), ELEMENTS["quad Q1"][1]())
    assert not fc.CoarseSpace(skewed, unit_mesh("quad", 3)).nested
    assert fc.CoarseSpace(skewed, unit_mesh("quad", 3), degree=0).nested


def test_bad_coarse_meshes():
    basis, nodes = unit_basis("tri P1", 4), np.linspace(0.0, 0.6, 3)
    for mesh, options, message in (
        (None, {}, "coarse_mesh is a NoneType"),
        (unit_mesh("line", 2), {}, "coarse_mesh is a MeshLine1"),
        (MeshTri.init_tensor(nodes, nodes), {}, "element centres lie outside coarse_mesh"),
        (unit_mesh("tri", 5), {}, "dimension 36 on 25 dofs"),
        (MeshTri.init_tensor(*2 * [np.linspace(0.05, 0.95, 3)]), {}, "16 dofs lie outside coarse_mesh"),
        (unit_mesh("tri", 2), {"degree": 2}, "degree is 2"),
        # Cells of the "coarse" mesh between the centres of the fine cells are not seen at all.
        (unit_mesh("tri", 3), {"degree": 0}, "linearly dependent"),
    ):
        with pytest.raises(fc.InputError, match=message):
            fc.CoarseSpace(basis, mesh, **options).project(np.ones(32))
