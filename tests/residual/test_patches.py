"""Fans of elements around vertices, facet tables and conjugate orientations, against plain loops over the mesh."""

from itertools import pairwise

import numpy as np
import pytest
from skfem import MeshQuad, MeshTri

import femcert as fc
from femcert.mesh.geometry import cross
from femcert.residual.patches import LOCAL_FACETS, Patches, facet_parameter


def shuffled(mesh, seed=1):
    """Vertices of triangles in any order, those of quadrilaterals turned and flipped."""
    rng = np.random.default_rng(seed)
    t = mesh.t.copy()
    for i in range(t.shape[1]):
        if len(t) == 3:
            t[:, i] = rng.permutation(t[:, i])
        else:
            t[:, i] = np.roll(t[:, i][:: rng.choice([-1, 1])], rng.integers(4))
    return type(mesh)(mesh.p, t, sort_t=False)


def without(mesh, hole):
    middle = mesh.p[:, mesh.t].mean(axis=1)
    return mesh.remove_elements(np.flatnonzero(hole(middle)))


def bent():
    mesh = MeshQuad().refined(2)
    bump = np.sin(2 * np.pi * mesh.p[0]) * np.sin(2 * np.pi * mesh.p[1])
    return MeshQuad(mesh.p + 0.05 * bump * np.array([[1.0], [-0.7]]), mesh.t)


def pinched(mesh):
    """Two squares that share one vertex, at (1/2, 1/2)."""
    return without(mesh, lambda x: (x[0] < 0.5) != (x[1] < 0.5))


def with_hole(mesh):
    return without(mesh, lambda x: np.abs(x - 0.5).max(axis=0) < 0.25)


MESHES = {
    "tri": lambda: MeshTri().refined(2),
    "tri any order": lambda: shuffled(MeshTri().refined(2)),
    "tri irregular": lambda: MeshTri.init_circle(2),
    "one tri": lambda: MeshTri(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.array([[0], [1], [2]])),
    "quad": lambda: MeshQuad().refined(2),
    "bent quad any order": lambda: shuffled(bent()),
    "pinched tri": lambda: pinched(MeshTri().refined(2)),
    "pinched quad": lambda: pinched(shuffled(MeshQuad().refined(2))),
    "tri with hole": lambda: with_hole(shuffled(MeshTri().refined(3))),
    "quad with hole": lambda: with_hole(MeshQuad().refined(2)),
    "adapted tri": lambda: MeshTri().refined(1).refined([0, 3]).refined([1, 5]),
}


@pytest.fixture(params=MESHES)
def mesh(request):
    return MESHES[request.param]()


def angles_from(mesh, vertex, element):
    """Directions of the two edges of an element at a vertex, as the interval that it covers counterclockwise."""
    corners = mesh.t[:, element]
    i = int(np.flatnonzero(corners == vertex)[0])
    ends = [mesh.p[:, corners[(i + d) % len(corners)]] - mesh.p[:, vertex] for d in (1, -1)]
    one, two = ends if cross(*ends) > 0 else ends[::-1]
    return np.arctan2(one[1], one[0]), np.arctan2(two[1], two[0])


def close(a, b):
    return abs(np.exp(1j * a) - np.exp(1j * b)) < 1e-9


def test_fans_visit_every_corner_once_and_counterclockwise(mesh):
    patches = Patches(mesh)
    fans = patches.fans
    kept = fans[fans >= 0]
    assert sorted(kept) == list(range(mesh.t.size))
    boundary = set(mesh.facets[:, mesh.f2t[1] < 0].ravel())
    for number, column in enumerate(fans.T):
        corners = column[column >= 0]
        assert np.all(column[len(corners) :] == -1)
        vertices, elements = mesh.t.ravel()[corners], corners % mesh.nelements
        assert len(set(vertices)) == 1
        assert (vertices[0] in boundary) == (number < patches.closed_from)
        spans = [angles_from(mesh, vertices[0], element) for element in elements]
        for before, after in pairwise(spans):
            assert close(before[1], after[0])
        if number >= patches.closed_from:
            assert close(spans[-1][1], spans[0][0])
            turn = sum(np.mod(end - start, 2 * np.pi) for start, end in spans)
            assert turn == pytest.approx(2 * np.pi)


def test_walks_enter_and_leave_through_the_right_facets(mesh):
    patches, nt = Patches(mesh), mesh.nelements
    facets = mesh.t2f.ravel()
    for column in patches.fans.T:
        corners = column[column >= 0]
        out, into = facets[patches.exits[corners]], facets[patches.entries[corners]]
        np.testing.assert_array_equal(out[:-1], into[1:])
        assert np.all(patches.exits[corners] % nt == corners % nt)
        vertex = mesh.t.ravel()[corners[0]]
        assert np.all((mesh.facets[:, out] == vertex).any(axis=0))
    for number, column in enumerate(patches.fans.T[: patches.closed_from]):
        assert patches.boundary[facets[patches.entries[column[0]]]], number


def test_pinched_vertices_have_two_fans():
    for name in ("pinched tri", "pinched quad"):
        mesh = MESHES[name]()
        middle = int(np.argmin(np.abs(mesh.p - 0.5).sum(axis=0)))
        starts = mesh.t.ravel()[Patches(mesh).fans[0]]
        assert np.count_nonzero(starts == middle) == 2


def test_facet_tables(mesh):
    patches, nt = Patches(mesh), mesh.nelements
    for facet in range(mesh.facets.shape[1]):
        for side in (0, 1):
            element, slot = mesh.f2t[side, facet], patches.slots[side, facet]
            if element < 0:
                assert slot == -1
                assert patches.boundary[facet]
                continue
            local = slot // nt
            assert (slot % nt, mesh.t2f[local, element]) == (element, facet)
            assert patches.signs[local, element] == (1.0 if side == 0 else -1.0)
            for place, vertex in enumerate(LOCAL_FACETS[len(mesh.t)][local]):
                assert mesh.facets[patches.ends[local, place, element], facet] == mesh.t[vertex, element]


def test_normals_point_out_and_close(mesh):
    patches = Patches(mesh)
    np.testing.assert_allclose(patches.normals.sum(axis=1), 0.0, atol=1e-14)
    middle = mesh.p[:, mesh.t].mean(axis=1)
    for l, pair in enumerate(LOCAL_FACETS[len(mesh.t)]):
        ends = mesh.p[:, mesh.t[list(pair)]]
        n = patches.normals[:, l]
        assert np.all(np.sum(n * (ends.mean(axis=1) - middle), axis=0) > 0.0)
        np.testing.assert_allclose(np.sum(n * (ends[:, 1] - ends[:, 0]), axis=0), 0.0, atol=1e-14)
        np.testing.assert_allclose(np.linalg.norm(n, axis=0), patches.lengths[mesh.t2f[l]], rtol=1e-12)


def test_forward_is_counterclockwise_around_the_first_side(mesh):
    patches = Patches(mesh)
    start, end = mesh.p[:, mesh.facets].transpose(1, 0, 2)
    inside = mesh.p[:, mesh.t].mean(axis=1)[:, mesh.f2t[0]]
    np.testing.assert_array_equal(patches.forward, np.sign(cross(end - start, inside - start)))


def test_facet_parameters():
    mesh = shuffled(MeshTri().refined(1))
    facets = np.array([0, 3, 5])
    s = np.array([0.0, 0.2, 1.0])
    start, end = mesh.p[:, mesh.facets[:, facets]].transpose(1, 0, 2)
    x = start[:, :, None] * (1 - s) + end[:, :, None] * s
    np.testing.assert_allclose(facet_parameter(mesh, facets, x), np.tile(s, (3, 1)), atol=1e-14)


def test_a_mesh_that_folds_over_itself_is_refused():
    # Two triangles on the same side of their common edge.
    p = np.array([[0.0, 1.0, 0.5, 0.5], [0.0, 0.0, 1.0, 0.5]])
    folded = MeshTri(p, np.array([[0, 0], [1, 1], [2, 3]]))
    with pytest.raises(fc.InputError, match=r"folds? over itself"):
        _ = Patches(folded).fans
