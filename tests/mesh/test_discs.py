"""Averages over discs against moments of the polygon, and covered areas against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skfem import Basis, Functional
from skfem.element import (
    ElementLineP0,
    ElementLineP1,
    ElementLineP2,
    ElementQuad0,
    ElementQuad1,
    ElementQuad2,
    ElementTriP0,
    ElementTriP1,
    ElementTriP2,
)
from skfem.mesh import MeshLine, MeshQuad, MeshTri
from zoo import jittered

from femcert.mesh import integrate as discs
from femcert.mesh.integrate import covered_area, disc_averages, disc_matrix


def polygon(radius, sides):
    """Corners of the regular polygon with the area of the disc; one corner at angle 0."""
    size = radius * np.sqrt(2 * np.pi / (sides * np.sin(2 * np.pi / sides)))
    angle = 2 * np.pi * np.arange(sides) / sides
    return size * np.array([np.cos(angle), np.sin(angle)])


def inside_polygon(points, centre, radius, sides):
    corners = polygon(radius, sides)
    edges = np.roll(corners, -1, axis=1) - corners
    away = points[:, None] - centre[:, None, None] - corners[:, :, None]
    return (edges[0, :, None] * away[1] - edges[1, :, None] * away[0] >= 0).all(axis=0)


TRIANGLES = jittered(MeshTri().refined(4), 0.015)
QUADS = jittered(MeshQuad().refined(4), 0.012)
SPACES = [(TRIANGLES, element) for element in (ElementTriP0, ElementTriP1, ElementTriP2)]
SPACES += [(QUADS, element) for element in (ElementQuad0, ElementQuad1, ElementQuad2)]
SPACES += [(MeshLine().refined(4), element) for element in (ElementLineP0, ElementLineP1, ElementLineP2)]


@pytest.mark.parametrize(("mesh", "element"), SPACES)
@pytest.mark.parametrize("radius", [0.003, 0.08, 0.3, 2.0])
def test_rows_sum_to_one(mesh, element, radius):
    basis = Basis(mesh, element())
    centres = np.random.default_rng(0).random((mesh.dim(), 8))
    matrix = disc_matrix(basis, centres, radius)
    assert matrix.shape == (8, basis.N)
    assert np.allclose(matrix.sum(axis=1), 1, atol=1e-13)


@pytest.mark.parametrize(("mesh", "element"), [space for space in SPACES if space[1]().maxdeg > 0])
@pytest.mark.parametrize("radius", [1e-6, 0.01, 0.2])
def test_linear_functions_have_the_value_at_the_centre(mesh, element, radius):
    basis = Basis(mesh, element())
    slope = np.array([2.0, -3.0])[: mesh.dim()]
    centres = 0.25 + 0.5 * np.random.default_rng(1).random((mesh.dim(), 10))
    centres[:, 0] = 0.5  # a vertex of the unjittered meshes
    values = disc_matrix(basis, centres, radius) @ (1 + slope @ basis.doflocs)
    assert np.allclose(values, 1 + slope @ centres, rtol=0, atol=1e-12)
    full = np.pi * radius**2 if mesh.dim() == 2 else 2 * radius
    assert np.allclose(covered_area(mesh, centres, radius), full, rtol=1e-10)


@pytest.mark.parametrize("sides", [3, 4, 7, 24])
@pytest.mark.parametrize("element", [ElementTriP2, ElementQuad2])
def test_quadratics_give_the_second_moment_of_the_polygon(element, sides):
    # For a regular polygon with circumradius R the average of x^2 about the centre is
    # R^2 (2 + cos(2 pi / sides)) / 12, the same in all directions, and that of x y is zero.
    basis = Basis(TRIANGLES if element is ElementTriP2 else MeshQuad().refined(3), element())
    centres, radius = 0.35 + 0.3 * np.random.default_rng(2).random((2, 6)), 0.15
    matrix = disc_matrix(basis, centres, radius, sides)
    moment = polygon(radius, sides)[0, 0] ** 2 * (2 + np.cos(2 * np.pi / sides)) / 12
    x, y = basis.doflocs
    assert np.allclose(matrix @ x**2, centres[0] ** 2 + moment, rtol=0, atol=1e-12)
    assert np.allclose(matrix @ y**2, centres[1] ** 2 + moment, rtol=0, atol=1e-12)
    assert np.allclose(matrix @ (x * y), centres[0] * centres[1], rtol=0, atol=1e-12)


def test_interval_averages():
    basis = Basis(MeshLine(np.array([0.0, 0.2, 0.5, 1.0])).refined(2), ElementLineP2())
    centres, radius = np.array([[0.5, 0.05, 0.9, 3.0]]), 0.2
    low, high = np.maximum(centres[0] - radius, 0), np.minimum(centres[0] + radius, 1)
    exact = np.array([(b**3 - a**3) / 3 / (b - a) for a, b in zip(low[:3], high[:3], strict=True)])
    values = disc_matrix(basis, centres, radius) @ basis.doflocs[0] ** 2
    assert np.allclose(values, [*exact, 0.0], atol=1e-14)
    assert np.allclose(covered_area(basis.mesh, centres, radius), [0.4, 0.25, 0.3, 0.0], atol=1e-15)


@pytest.mark.parametrize("mesh", [TRIANGLES, QUADS])
def test_discs_over_the_boundary_against_brute_force(mesh):
    centres = np.array([[0.0, 0.02, 1.05, 0.5], [0.0, 0.5, 1.02, -0.05]])
    radius, sides, n = 0.1, 5, 900  # the sides of the square run between the samples
    ticks = (np.arange(n) + 0.5) / n * 0.3 - 0.15
    area = covered_area(mesh, centres, radius, sides)
    basis = Basis(mesh, mesh.elem())
    averages = disc_matrix(basis, centres, radius, sides) @ mesh.p.T
    for centre, covered, average in zip(centres.T, area, averages, strict=True):
        points = centre[:, None] + np.array(np.meshgrid(ticks, ticks)).reshape(2, -1)
        kept = inside_polygon(points, centre, radius, sides) & ((points > 0) & (points < 1)).all(axis=0)
        assert np.isclose(covered, kept.sum() * (0.3 / n) ** 2, rtol=1e-3)
        assert np.allclose(average, points[:, kept].mean(axis=1), atol=2e-4)


def test_disc_over_the_whole_mesh_is_the_mean():
    basis = Basis(QUADS, ElementQuad2())
    field = np.random.default_rng(0).standard_normal(basis.N)
    mean = Functional(lambda w: w["u"]).assemble(basis, u=basis.interpolate(field))
    assert np.isclose((disc_matrix(basis, [[0.5], [0.5]], 3.0) @ field)[0], mean, atol=1e-8)
    assert np.isclose(covered_area(QUADS, [[0.5], [0.5]], 3.0)[0], 1, rtol=1e-13)


def test_a_hole_is_not_covered():
    mesh = MeshQuad.init_tensor(*2 * [np.linspace(0, 1, 9)])
    centre = np.abs(mesh.p[:, mesh.t].mean(axis=1) - 0.5).max(axis=0)
    mesh = mesh.restrict(np.flatnonzero(centre > 0.125))
    area = covered_area(mesh, [[0.5, 0.5], [0.5, 0.25]], 0.2)
    assert np.isclose(area[0], np.pi * 0.04 - 1 / 16, rtol=1e-12)
    assert area[1] < np.pi * 0.04
    assert covered_area(mesh, [[0.5], [0.5]], 0.05)[0] == 0


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), shift=st.floats(-100, 100), scale=st.floats(1e-3, 1e3))
def test_averages_do_not_depend_on_mesh_place_or_numbering(seed, shift, scale):
    rng = np.random.default_rng(seed)
    mesh = jittered(MeshTri().refined(3), 0.03, seed)
    other = MeshTri(scale * (mesh.p + shift), mesh.t[:, rng.permutation(mesh.nelements)])
    centres = rng.random((2, 5))
    first = disc_matrix(Basis(mesh, ElementTriP1()), centres, 0.07)
    second = disc_matrix(Basis(other, ElementTriP1()), scale * (centres + shift), 0.07 * scale)
    assert abs(first - second).max() < 1e-9
    finer = Basis(mesh.refined(1), ElementTriP1())
    for k in range(2):
        average = disc_matrix(finer, centres, 0.07) @ finer.doflocs[k]
        assert np.allclose(average, first @ mesh.p[k], rtol=0, atol=1e-12)


def test_small_blocks_give_the_same(monkeypatch):
    basis = Basis(TRIANGLES, ElementTriP2())
    centres = np.random.default_rng(0).random((2, 4))
    whole = disc_matrix(basis, centres, 0.1)
    monkeypatch.setattr(discs, "CLIP_BLOCK", 11)
    assert abs(whole - disc_matrix(basis, centres, 0.1)).max() < 1e-14


def test_discs_that_cross_no_element_between():
    """Of randomly moved vertices some leave no piece of any disc in a block of candidates."""
    rng = np.random.default_rng(0)
    for seed in range(30):
        mesh, centres = jittered(MeshTri().refined(3), 0.03, seed), rng.uniform(0.1, 0.9, (2, 6))
        averages = disc_averages(mesh, centres, 0.08, lambda x: np.stack([np.ones_like(x[0]), x[0]]), 4)
        np.testing.assert_allclose(averages[0], 1.0, rtol=1e-12)
