"""The function that vanishes on the Dirichlet boundary: zero there, positive inside, with the derivatives it claims."""

from pathlib import Path

import numpy as np
import pytest
from learn_helpers import differences
from skfem import MeshLine, MeshTri

import femcert as fc
from femcert.learn.distance import BoundaryDistance, corner_weight

MESHES = Path(__file__).parents[2] / "meshes"


def mesh_of(name):
    if name == "interval":
        return MeshLine(np.linspace(0.0, 2.0, 9))
    return MeshTri().refined(3) if name == "square" else fc.load_mesh(MESHES / f"{name}.msh")


@pytest.mark.parametrize("name", ["interval", "square", "l_shape", "plate_with_holes", "disc"])
def test_zero_on_the_boundary_positive_inside_with_its_derivatives(name):
    mesh = mesh_of(name)
    phi = BoundaryDistance(mesh, mesh.boundary_facets())
    assert not phi.value(mesh.p[:, mesh.boundary_nodes()]).any()
    inside = mesh.p[:, mesh.interior_nodes()][:, :300]
    assert phi.value(inside).min() > 0.0
    assert phi.value(mesh.p).max() == pytest.approx(1.0)
    gradient, laplacian = differences(phi.value, inside)
    assert phi.gradient(inside) == pytest.approx(gradient, abs=1e-5)
    assert phi.laplacian(inside) == pytest.approx(laplacian, abs=1e-3)


def test_zero_also_between_the_nodes_of_the_boundary():
    mesh = mesh_of("plate_with_holes")
    facets = mesh.boundary_facets()
    middles = mesh.p[:, mesh.facets[:, facets]].mean(axis=1)
    assert not BoundaryDistance(mesh, facets).value(middles).any()


def test_a_part_of_the_boundary_leaves_the_rest_alone():
    mesh = MeshTri().refined(3)
    phi = BoundaryDistance(mesh, mesh.facets_satisfying(lambda x: x[0] == 0.0))
    y = np.linspace(0.1, 0.9, 5)
    assert not phi.value(np.array([0.0 * y, y])).any()
    assert phi.value(np.array([0.0 * y + 1.0, y])).min() > 0.1
    # On the line of the edge, but beyond it, the closed form is 0 / 0.
    beyond = np.array([[0.0, 0.0, 0.0], [1.2, 2.0, -0.5]])
    assert phi.value(beyond) == pytest.approx(phi.value(beyond + 1e-9), rel=1e-6)
    gradient, laplacian = differences(phi.value, beyond)
    assert phi.gradient(beyond) == pytest.approx(gradient, abs=1e-6)
    assert phi.laplacian(beyond) == pytest.approx(laplacian, abs=1e-4)


def test_how_an_edge_is_divided_does_not_matter():
    x = np.random.default_rng(0).uniform(0.05, 0.95, (2, 30))
    coarse, fine = MeshTri().refined(1), MeshTri().refined(4)
    jets = [BoundaryDistance(mesh, mesh.boundary_facets()).jet(x) for mesh in (coarse, fine)]
    for one, other in zip(*jets, strict=True):
        assert one == pytest.approx(other, rel=1e-9)


def test_straight_boundaries_are_a_few_edges_and_round_ones_stay_as_they_are():
    for name, edges in (("square", 4), ("l_shape", 6), ("fault", 6), ("disc", 120), ("plate_with_holes", 4 + 132)):
        mesh = mesh_of(name)
        phi = BoundaryDistance(mesh, mesh.boundary_facets())
        assert sum(ends.shape[2] for ends in phi._pieces) == edges
    # A part of the boundary with a gap in it is two edges on one line.
    mesh = MeshTri().refined(3)
    two = mesh.facets_satisfying(lambda x: (x[1] == 0.0) & ((x[0] < 0.3) | (x[0] > 0.7)))
    phi = BoundaryDistance(mesh, two)
    assert sum(ends.shape[2] for ends in phi._pieces) == 2
    assert phi.value(np.array([[0.5], [0.0]])) > 0.0


def test_the_laplacian_is_bounded_at_convex_corners_and_like_1_over_r_at_the_re_entrant_one():
    mesh = mesh_of("l_shape")
    phi = BoundaryDistance(mesh, mesh.boundary_facets())
    r = np.array([1e-3, 1e-4, 1e-5])
    convex = phi.laplacian(np.array([-1.0 + r, -1.0 + 0.7 * r]))
    assert np.ptp(convex) < 0.2 * np.abs(convex).max()
    inner = np.abs(phi.laplacian(np.array([-r, 0.7 * r])))
    assert inner[1:] / inner[:-1] == pytest.approx(10.0, rel=0.05)
    weighted = corner_weight(mesh, np.array([-r, 0.7 * r])) * inner
    assert weighted[-1] < 0.02 * weighted[0]


def test_only_re_entrant_corners_are_weighed_down():
    smooth = ("square", "disc", "plate_with_holes", "interval")
    for name, fewest in (*((name, 1.0) for name in smooth), ("l_shape", 0.0)):
        mesh = mesh_of(name)
        weight = corner_weight(mesh, mesh.p)
        assert weight.min() == fewest
        assert weight.max() == 1.0


def test_no_dirichlet_boundary_is_refused():
    with pytest.raises(fc.InputError, match="boundary='soft'"):
        BoundaryDistance(MeshTri(), np.zeros(0, dtype=int))
