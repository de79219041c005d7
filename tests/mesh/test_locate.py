"""Point location against brute force, and interpolation against scikit-fem."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skfem import Basis, ElementLineP0, ElementQuad0, ElementQuad1, ElementTriP0, MeshLine, MeshQuad, MeshTri
from zoo import CLASSES, ELEMENTS, jittered

from femcert.mesh import locate as boxes
from femcert.mesh.locate import CellIndex, Locator, interpolation_matrix, reference_points


def annulus(rings=4, spokes=24):
    """A polygonal annulus 1/2 < r < 1, triangulated."""
    quads = MeshQuad.init_tensor(np.linspace(0, 1, spokes + 1), np.linspace(0.5, 1, rings + 1))
    angle, radius = 2 * np.pi * quads.p[0], quads.p[1]
    points = np.array([radius * np.cos(angle), radius * np.sin(angle)])
    _, first, inverse = np.unique(np.round(points, 9), axis=1, return_index=True, return_inverse=True)
    return MeshQuad(points[:, first], inverse.ravel()[quads.t]).to_meshtri()


def fan(count=200):
    """Many thin triangles around one vertex."""
    angle = 2 * np.pi * np.arange(count) / count
    points = np.hstack((np.zeros((2, 1)), [np.cos(angle), np.sin(angle)]))
    around = 1 + np.arange(count)
    return MeshTri(points, np.vstack((0 * around, around, np.roll(around, -1))))


def graded():
    mesh = MeshTri().refined(2)
    for _ in range(25):
        mesh = mesh.refined(np.flatnonzero((np.hypot(*mesh.p)[mesh.t] < 1e-12).any(axis=0)))
    return mesh


def stretched():
    x = np.geomspace(1e-6, 1, 12) - 1e-6
    return MeshQuad.init_tensor(x, np.linspace(0, 1, 9) ** 3)


MESHES = {
    "triangles": lambda: jittered(MeshTri().refined(4), 0.015),
    "quads": lambda: jittered(MeshQuad().refined(4), 0.012),
    "lshape": lambda: MeshTri.init_lshaped().refined(3),
    "annulus": annulus,
    "fan": fan,
    "graded": graded,
    "stretched": stretched,
    "far away": lambda: MeshTri().refined(3).translated((1e4, -1e4)),
    "tiny": lambda: MeshQuad().refined(2).scaled(1e-7),
}


def brute(mesh, points, slack):
    """n_cells by n_points: whether a cell, moved outwards by `slack` of its size, holds the point."""
    corners = mesh.p[:, mesh.t]
    sides = np.roll(corners, -1, axis=1) - corners
    turned = np.sign(sides[0, 0] * sides[1, 1] - sides[1, 0] * sides[0, 1])
    away = points[:, None, None] - corners[..., None]
    depth = turned[:, None] * (sides[0, ..., None] * away[1] - sides[1, ..., None] * away[0])
    return (depth >= -slack * (np.hypot(*sides) ** 2).max(axis=0)[:, None]).all(axis=0)


@pytest.mark.parametrize("name", MESHES)
def test_find_agrees_with_brute_force(name):
    mesh = MESHES[name]()
    rng = np.random.default_rng(1)
    low, high = mesh.p.min(axis=1, keepdims=True), mesh.p.max(axis=1, keepdims=True)
    points = low + (1.4 * rng.random((2, 400)) - 0.2) * (high - low)
    near = mesh.p[:, mesh.t].mean(axis=1)[:, rng.integers(0, mesh.nelements, 400)]
    points = np.hstack((points, near))
    cells = Locator(mesh).find(points)
    surely = brute(mesh, points, -1e-9)
    maybe = brute(mesh, points, 1e-7)
    assert (cells[surely.any(axis=0)] >= 0).all()
    assert (cells[~maybe.any(axis=0)] == -1).all()
    inside = np.flatnonzero(cells >= 0)
    assert maybe[cells[inside], inside].all()
    assert (cells[400:] >= 0).all()


@pytest.mark.parametrize("name", MESHES)
def test_points_of_edges_and_vertices_are_inside(name):
    mesh = MESHES[name]()
    ends = mesh.p[:, mesh.facets]
    shares = np.array([0.5, 1 / 3, 0.9])[:, None, None]
    points = np.hstack([mesh.p, *(ends[:, 0] + shares * (ends[:, 1] - ends[:, 0]))])
    cells = Locator(mesh).find(points)
    assert (cells >= 0).all()
    first = np.argmax((mesh.t[None] == np.arange(mesh.nvertices)[:, None, None]).any(axis=1), axis=1)
    assert (cells[: mesh.nvertices] == first).all()  # the lowest cell number of those around a vertex


def test_holes_and_reentrant_corners_are_outside():
    assert (Locator(annulus()).find([[0.0, 0.3, 0.49, 2.0], [0.0, 0.3, 0.0, 0.0]]) == -1).all()
    mesh = MeshTri.init_lshaped().refined(2)
    missing = np.array([[x, y] for x in (-0.5, 0.5) for y in (-0.5, 0.5)]).T
    assert (Locator(mesh).find(missing) >= 0).sum() == 3


def test_line_meshes_with_unsorted_cells():
    mesh = MeshLine(np.array([0.0, 0.1, 0.4, 1.0])).refined(3).refined(np.array([0, 5, 9]))
    points = np.random.default_rng(0).random((1, 500)) * 1.2 - 0.1
    cells = Locator(mesh).find(points)
    ends = np.sort(mesh.p[0, mesh.t], axis=0)
    inside = (points[0] >= 0) & (points[0] <= 1)
    assert ((cells >= 0) == inside).all()
    x, c = points[0, inside], cells[inside]
    assert ((ends[0, c] <= x) & (x <= ends[1, c])).all()
    assert (Locator(mesh).find(mesh.p) >= 0).all()


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), angle=st.floats(0, 6.3), scale=st.floats(1e-3, 1e3))
def test_find_does_not_depend_on_position_or_numbering(seed, angle, scale):
    rng = np.random.default_rng(seed)
    mesh = jittered(MeshTri().refined(3), 0.03, seed)
    points = rng.random((2, 50)) * 1.2 - 0.1
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    order = rng.permutation(mesh.nelements)
    other = MeshTri(turn @ mesh.p + 1.0, mesh.t[:, order])
    cells = Locator(mesh).find(points)
    found = Locator(other).find(turn @ points + 1.0)
    assert ((found >= 0) == (cells >= 0)).all()
    assert (order[found[found >= 0]] == cells[cells >= 0]).all()


@pytest.mark.parametrize("name", MESHES)
def test_every_cell_on_a_line_is_a_candidate(name):
    mesh = MESHES[name]()
    rng = np.random.default_rng(2)
    centroids = mesh.p[:, mesh.t].mean(axis=1)
    through = rng.integers(0, mesh.nelements, 40)
    angle = np.where(np.arange(40) < 8, np.arange(40) * np.pi / 4, 7 * rng.random(40))
    directions = np.array([np.cos(angle), np.sin(angle)])
    directions[:, :2] = [[0.0, -1.0], [1.0, 0.0]]
    origins = centroids[:, through] + directions * (10 * rng.random(40) - 5) * np.ptp(mesh.p, axis=1).max()
    found = np.zeros((40, mesh.nelements), dtype=bool)
    for ray, cell in CellIndex(mesh).near_lines(origins, directions):
        assert not found[ray, cell].any()
        found[ray, cell] = True
    away = mesh.p[:, mesh.t][:, None] - origins[:, :, None, None]
    side = directions[0, :, None, None] * away[1] - directions[1, :, None, None] * away[0]
    assert found[side.min(axis=1) * side.max(axis=1) <= 0].all()


MOVED = {name: jittered(CLASSES[name]().refined(3), 0.025) for name in ("line", "tri", "quad")}
SPACES = [(MOVED[kind.removeprefix("bent ")], element) for kind, element, _ in ELEMENTS.values()]
SPACES += [(MOVED["line"], ElementLineP0), (MOVED["tri"], ElementTriP0), (MOVED["quad"], ElementQuad0)]


@pytest.mark.parametrize(("mesh", "element"), SPACES)
def test_interpolation_agrees_with_probes(mesh, element):
    basis = Basis(mesh, element())
    points = 0.02 + 0.96 * np.random.default_rng(3).random((mesh.dim(), 40))
    matrix = interpolation_matrix(basis, points, Locator(mesh).find(points))
    assert matrix.shape == (40, basis.N)
    assert abs(matrix - basis.probes(points)).max() < 1e-12
    assert np.allclose(matrix.sum(axis=1), 1, atol=1e-14)


def test_reference_points_invert_the_map_of_distorted_quads():
    rng = np.random.default_rng(4)
    angle = np.sort(rng.random((4, 4000)) * 2 * np.pi, axis=0)
    gap = np.minimum(np.diff(angle, axis=0).min(axis=0), 2 * np.pi - np.ptp(angle, axis=0))
    angle = angle[:, gap > 0.05]
    count = angle.shape[1]
    angle[:, ::2] = angle[::-1, ::2]  # half of the cells clockwise
    corners = np.array([np.cos(angle), 0.1 * np.sin(angle)])
    cells = np.arange(4 * count).reshape(count, 4).T.copy()
    mesh = MeshQuad(corners.transpose(0, 2, 1).reshape(2, -1), cells)
    X = np.concatenate((rng.random((2, count, 3)), rng.integers(0, 2, (2, count, 2))), axis=2)
    points = sum(corners[:, k, :, None] * ElementQuad1().lbasis(X, k)[0] for k in range(4))
    assert np.abs(reference_points(mesh, points, np.arange(count)) - X).max() < 1e-12


def test_small_blocks_give_the_same(monkeypatch):
    mesh = jittered(MeshQuad().refined(3), 0.02)
    points = np.random.default_rng(0).random((2, 60))
    cells = Locator(mesh).find(points)
    monkeypatch.setattr(boxes, "BLOCK", 7)
    assert (Locator(mesh).find(points) == cells).all()
