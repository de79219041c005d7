"""Averages over boundary arcs: boundary integrals, closed and open curves, several pieces, any numbering."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skfem import Basis, ElementLineP1, ElementLineP2, ElementTriP1, ElementTriP2, FacetBasis, Functional, MeshLine
from zoo import ELEMENTS, MESHES, renumbered, unit_basis, unit_mesh

import femcert as fc


def boundary_integral(basis, u, boundary):
    facets = basis.mesh.boundary_facets() if boundary is None else basis.mesh.boundaries[boundary]
    part = FacetBasis(basis.mesh, basis.elem, facets=facets)
    return Functional(lambda w: w["u"]).assemble(part, u=part.interpolate(u)), part.dx.sum()


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from(
        [("plate_with_holes", None), ("plate_with_holes", "outer"), ("plate_with_holes", "holes"), ("disc", "rim"),
         ("disc", "interface"), ("l_shape", "reentrant"), ("l_shape", None), ("fault", "surface"), ("fault", "sides"),
         ("fault", "fault"), ("l_shape_quads", "outer")]
    ),
    st.integers(1, 40),
    st.integers(1, 2),
)  # fmt: skip
def test_arcs_add_up_to_the_boundary(where, count, p):
    name, boundary = where
    mesh = fc.load_mesh(MESHES / f"{name}.msh")
    kind = "quad Q" if mesh.t.shape[0] == 4 else "tri P"
    basis = Basis(mesh, ELEMENTS[f"{kind}{p}"][1]())
    sensors = fc.BoundarySensors(basis, boundary=boundary, count=count)
    assert sensors.count == count
    assert sensors.bounded
    assert np.allclose(sensors.matrix.sum(axis=1), 1.0)
    u = np.random.default_rng(count).standard_normal(basis.N)
    integral, length = boundary_integral(basis, u, boundary)
    assert sensors(u).sum() * length / count == pytest.approx(integral, abs=1e-10 * length)


@pytest.mark.parametrize("name", [name for name in ELEMENTS if not name.startswith("line")])
def test_four_sides_of_the_square(name):
    """Counterclockwise from the lower left corner: bottom, right, top, left."""
    p = ELEMENTS[name][2]
    basis = unit_basis(name, 5)
    sensors = fc.BoundarySensors(basis, count=4)
    x = basis.doflocs**p
    mean = 1.0 / (p + 1)
    assert sensors(x[0]) == pytest.approx([mean, 1.0, mean, 0.0], abs=1e-12)
    assert sensors(x[1]) == pytest.approx([0.0, mean, 1.0, mean], abs=1e-12)
    # Facets of length 1/5 are split at thirds.
    thirds = fc.BoundarySensors(basis, boundary="bottom", count=3)(x[0])
    assert thirds == pytest.approx(3.0 * mean * np.diff(np.array([0.0, 1 / 3, 2 / 3, 1.0]) ** (p + 1)))


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000), st.integers(1, 9))
def test_numbering_of_the_mesh_does_not_matter(seed, count):
    plain = fc.load_mesh(MESHES / "plate_with_holes.msh")
    values = []
    for mesh in (plain, renumbered(plain, seed)):
        basis = Basis(mesh, ElementTriP1())
        x = basis.doflocs
        values.append(fc.BoundarySensors(basis, count=count)(np.sin(3 * x[0]) + x[1] ** 2))
    assert np.allclose(*values, rtol=0, atol=1e-12)


def test_numbering_of_open_parts():
    plain = unit_mesh("tri", 6)
    for seed in range(5):
        mesh = renumbered(plain, seed).with_boundaries({"hook": lambda x: (x[0] < 1e-9) | (x[1] < 1e-9)})
        basis = Basis(mesh, ElementTriP2())
        # From the upper left corner down, then to the right.
        hook = fc.BoundarySensors(basis, boundary="hook", count=4)
        assert hook(basis.doflocs[0] - basis.doflocs[1]) == pytest.approx([-0.75, -0.25, 0.25, 0.75])


def test_refinement_keeps_the_sensors():
    mesh = fc.load_mesh(MESHES / "l_shape.msh")
    values = []
    for level in (mesh, mesh.refined(1)):
        basis = Basis(level, ElementTriP2())
        x = basis.doflocs
        values.append(fc.BoundarySensors(basis, count=11)(x[0] ** 2 - 2 * x[0] * x[1] + 3 * x[1]))
    assert np.allclose(*values, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, "count is 0"),
        ({"count": 3, "boundary": "rim"}, "boundary 'rim' is not in the mesh"),
        ({"count": 3, "boundary": "empty"}, "boundary 'empty' of the mesh is empty"),
    ],
)
def test_bad_input(options, message):
    mesh = unit_mesh("tri", 3).with_boundaries({"empty": np.zeros(0, dtype=np.int64)})
    with pytest.raises(fc.InputError, match=message):
        fc.BoundarySensors(Basis(mesh, ElementTriP1()), **options)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([ElementLineP1, ElementLineP2]))
def test_ends_of_a_line_from_left_to_right(seed, element):
    rng = np.random.default_rng(seed)
    place = rng.permutation(9)
    p, t = np.empty((1, 9)), np.vstack([place[:-1], place[1:]])
    p[0, place] = np.linspace(-1.0, 2.0, 9)
    turned = rng.random(8) < 0.5
    t[:, turned] = t[::-1, turned]
    basis = Basis(MeshLine(p, t[:, rng.permutation(8)]), element())
    assert fc.BoundarySensors(basis, count=2)(basis.doflocs[0]) == pytest.approx([-1.0, 2.0])
    with pytest.raises(fc.InputError, match="this boundary has 2 points"):
        fc.BoundarySensors(basis, count=3)
