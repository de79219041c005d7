"""Line integrals against closed forms: exact, also along edges and through vertices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from orders import linear
from ray_truth import box_span, line_integral
from skfem import Basis, ElementQuad0, ElementTriP0, ElementTriP1, ElementTriP2, Functional, MeshQuad, MeshTri
from zoo import PLANE, jittered, square, unit_basis

from femcert.mesh import integrate as chords
from femcert.mesh.integrate import ray_matrix, sampled_ray_matrix
from femcert.mesh.locate import Locator


def sheared(mesh):
    """A mesh of the unit square as parallelograms."""
    return type(mesh)(np.array([[1.0, 0.3], [0.1, 0.8]]) @ mesh.p, mesh.t)


def cut(mesh, inside):
    """The cells of a mesh whose centroids satisfy `inside`."""
    return mesh.restrict(np.flatnonzero(inside(*mesh.p[:, mesh.t].mean(axis=1))))


def random_rays(count, seed=0):
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * rng.random(count)
    return rng.random((2, count)), np.array([np.cos(angle), np.sin(angle)])


def graded():
    mesh = MeshTri().refined(2)
    for _ in range(20):
        mesh = mesh.refined(np.flatnonzero((np.hypot(*mesh.p)[mesh.t] < 1e-12).any(axis=0)))
    return mesh


MESHES = [MeshTri().refined(3), MeshQuad().refined(3), jittered(MeshTri().refined(3), 0.03), graded()]


@pytest.mark.parametrize("degree", [1, 2])
def test_tensor_products_are_exact_on_parallelograms(degree, monkeypatch):
    basis = square(2, degree, "quad")
    basis = Basis(sheared(basis.mesh), basis.elem)
    coefficients = np.random.default_rng(0).standard_normal(basis.N)
    rays = random_rays(30)
    few = ray_matrix(basis, *rays) @ coefficients
    offsets = np.linspace(-2, 2, 20001)
    sampled = sampled_ray_matrix(basis, Locator(basis.mesh), *rays, offsets, weight=2e-4) @ coefficients
    assert np.abs(few - sampled).max() < 2e-3
    monkeypatch.setattr(chords, "is_affine", lambda mesh: False)  # the rule with 16 points
    assert np.abs(few - ray_matrix(basis, *rays) @ coefficients).max() < 1e-13


def test_general_quads_against_many_points(monkeypatch):
    basis = unit_basis("bent quad Q2", 8)
    coefficients, rays = np.random.default_rng(0).standard_normal(basis.N), random_rays(60)
    values = ray_matrix(basis, *rays) @ coefficients
    monkeypatch.setattr(chords, "GENERAL_QUAD_POINTS", 50)
    assert np.abs(values - ray_matrix(basis, *rays) @ coefficients).max() < 1e-10


@pytest.mark.parametrize("mesh_type", [MeshTri, MeshQuad])
def test_lshape_and_hole(mesh_type):
    ticks = np.linspace(0, 1, 9)
    whole = mesh_type.init_tensor(ticks, ticks)
    origins, directions = random_rays(60, seed=3)

    def length(low=0.0, high=1.0):
        return np.subtract(*box_span(origins, directions, [low] * 2, [high] * 2)[::-1])

    for mesh, box in (
        (cut(whole, lambda x, y: np.maximum(abs(x - 0.5), abs(y - 0.5)) > 0.25), (0.25, 0.75)),
        (cut(whole, lambda x, y: (x < 0.5) | (y < 0.5)), (0.5, 1.0)),
    ):
        rows = ray_matrix(Basis(mesh, mesh.elem()), origins, directions).sum(axis=1).A1
        assert np.allclose(rows, length() - length(*box), atol=1e-13)


@pytest.mark.parametrize("element", [*PLANE, ElementTriP0, ElementQuad0])
@pytest.mark.parametrize("sign", [1, -1])
def test_rays_along_edges_count_once(element, sign):
    kind = MeshTri if element is ElementTriP0 else MeshQuad
    basis = unit_basis(element, 8) if isinstance(element, str) else Basis(kind().refined(3), element())
    levels = np.linspace(0, 1, 9)
    ones, zeros = np.ones(9), np.zeros(9)
    horizontal = ray_matrix(basis, [zeros - 3, levels], [sign * ones, zeros])
    vertical = ray_matrix(basis, [levels, zeros], [zeros, sign * ones])
    assert np.allclose(horizontal.sum(axis=1), 1, atol=1e-14)
    assert np.allclose(vertical.sum(axis=1), 1, atol=1e-14)
    if basis.elem.maxdeg:
        assert np.allclose(horizontal @ linear(basis.doflocs), 2 - levels, atol=1e-13)
        assert np.allclose(vertical @ linear(basis.doflocs), 2 * levels + 0.5, atol=1e-13)


@pytest.mark.parametrize("mesh", MESHES)
def test_rays_through_vertices_and_diagonals(mesh):
    basis = Basis(mesh, mesh.elem())
    rng = np.random.default_rng(0)
    ends = mesh.p[:, rng.integers(0, mesh.nvertices, (2, 80))]
    directions = ends[:, 1] - ends[:, 0]
    keep = (np.abs(directions) > 1e-9).all(axis=0)
    origins, directions = ends[:, 0, keep], directions[:, keep] / np.linalg.norm(directions[:, keep], axis=0)
    exact = line_integral(linear, origins, directions, *box_span(origins, directions))
    assert np.allclose(ray_matrix(basis, origins, directions) @ linear(mesh.p), exact, atol=1e-12)


def test_reentrant_boundary_edges_count_once():
    mesh = cut(MeshQuad.init_tensor(*2 * [np.linspace(0, 1, 5)]), lambda x, y: (x < 0.5) | (y < 0.5))
    basis = Basis(mesh, ElementQuad0())
    # The first half runs along inner edges, the second along the boundary of the notch.
    for direction in ([[1.0], [0.0]], [[-1.0], [0.0]]):
        assert np.isclose(ray_matrix(basis, [[0.0], [0.5]], direction).sum(), 1.0, atol=1e-14)


@pytest.mark.parametrize("angle", [0.0, 0.3, np.pi / 4, np.pi / 2])
def test_parallel_rays_integrate_to_the_mass(angle):
    # Gauss points on each strip between the projected vertices integrate the piecewise cubic exactly.
    mesh = jittered(MeshTri().refined(2), 0.05)
    basis = Basis(mesh, ElementTriP2())
    direction = np.array([np.cos(angle), np.sin(angle)])
    normal = np.array([-direction[1], direction[0]])
    breaks = np.unique(np.round(normal @ mesh.p, 13))
    nodes, weights = np.polynomial.legendre.leggauss(3)
    offsets = (breaks[:-1, None] + breaks[1:, None] + np.diff(breaks)[:, None] * nodes).ravel() / 2
    weights = (np.diff(breaks)[:, None] * weights).ravel() / 2
    matrix = ray_matrix(basis, normal[:, None] * offsets, np.tile(direction[:, None], len(offsets)))
    field = np.random.default_rng(0).standard_normal(basis.N)
    mass = Functional(lambda w: w["u"]).assemble(basis, u=basis.interpolate(field))
    assert np.isclose(weights @ (matrix @ field), mass, rtol=0, atol=1e-11)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), angle=st.floats(0, 6.3), scale=st.floats(1e-3, 1e3))
def test_rotation_scale_and_numbering(seed, angle, scale):
    rng = np.random.default_rng(seed)
    mesh = jittered(MeshTri().refined(2), 0.05, seed)
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    other = MeshTri(turn @ mesh.p + 1.0, mesh.t[:, rng.permutation(mesh.nelements)])
    origins, directions = random_rays(20, seed)
    origins[:, :5] = mesh.p[:, :5]
    first = ray_matrix(Basis(mesh, ElementTriP1()), origins, directions)
    second = ray_matrix(Basis(other, ElementTriP1()), turn @ origins + 1.0, turn @ directions)
    assert abs(scale * first - second).max() < 1e-10 * (1 + scale)


def test_samples_are_summed_and_zero_outside():
    basis = Basis(MeshTri().refined(3), ElementTriP1())
    origins, directions = np.array([[0.5, 0.5], [0.5, 2.0]]), np.array([[2.0, 1.0], [0.0, 0.0]])
    offsets = np.array([-2.0, -0.4, 0.1, 0.3, 0.9])
    matrix = sampled_ray_matrix(basis, Locator(basis.mesh), origins, directions, offsets, weight=0.5)
    assert matrix.shape == (2, basis.N)
    assert np.allclose(matrix @ basis.doflocs[0], [0.5 * (0.1 + 0.6 + 0.8), 0.0], atol=1e-14)


def test_rays_beside_an_edge_by_less_than_rounding():
    basis = Basis(MeshTri().refined(3), ElementTriP1())
    shift = np.array([0.0, 1e-17, -1e-17, 1e-15, -1e-15, 1e-14, -1e-14, 1e-12, -1e-12, 1e-9, -1e-9])
    tilt = np.repeat([0.0, 1e-16, -1e-15, 1e-12], len(shift))
    origins = np.array([0.3 + 0 * tilt, 0.5 + np.tile(shift, 4)])
    lengths = ray_matrix(basis, origins, [np.ones_like(tilt), tilt]).sum(axis=1).A1
    assert np.allclose(lengths, 1, atol=1e-10)


def test_samples_in_small_chunks(monkeypatch):
    basis = Basis(MeshTri().refined(2), ElementTriP2())
    rays = random_rays(10)
    locator, offsets = Locator(basis.mesh), np.linspace(-1, 1, 7)
    whole = sampled_ray_matrix(basis, locator, *rays, offsets)
    monkeypatch.setattr(chords, "BLOCK", 15)
    assert abs(whole - sampled_ray_matrix(basis, locator, *rays, offsets)).max() < 1e-14
