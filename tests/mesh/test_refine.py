"""Refinement keeps names, measures and angles; Dörfler marking takes the smallest set."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skfem import Mesh, MeshLine, MeshQuad, MeshTri

import femcert as fc
from femcert import InputError
from femcert.mesh.geometry import diameters, measures
from femcert.mesh.refine import check_adaptive, doerfler, refined

MESHES = Path(__file__).parents[2] / "meshes"


def length(mesh: Mesh, facets: np.ndarray) -> float:
    if mesh.dim() == 1:
        return float(len(facets))
    a, b = mesh.p[:, mesh.facets[:, facets]].transpose(1, 0, 2)
    return float(np.linalg.norm(b - a, axis=0).sum())


def distance_to_segments(points: np.ndarray, mesh: Mesh, facets: np.ndarray) -> np.ndarray:
    """Distance of each point to the nearest of some facets."""
    a, b = mesh.p[:, mesh.facets[:, facets]].transpose(1, 0, 2)[:, :, None, :]
    x = points[:, :, None]
    along = np.clip(((x - a) * (b - a)).sum(axis=0) / ((b - a) ** 2).sum(axis=0), 0.0, 1.0)
    return np.linalg.norm(x - a - along * (b - a), axis=0).min(axis=1)


def smallest_angle(mesh: Mesh) -> float:
    corners = mesh.p[:, mesh.t]
    u, v = np.roll(corners, -1, axis=1) - corners, np.roll(corners, 1, axis=1) - corners
    cosine = (u * v).sum(axis=0) / np.linalg.norm(u, axis=0) / np.linalg.norm(v, axis=0)
    return float(np.degrees(np.arccos(cosine.max())))


def check_conforming(mesh: Mesh) -> None:
    """Each node is used, each facet has one or two elements, and no node lies inside an edge of the boundary."""
    assert len(np.unique(mesh.t)) == mesh.p.shape[1]
    assert np.bincount(mesh.t2f.ravel(), minlength=mesh.facets.shape[1]).max() <= 2
    assert measures(mesh).min() > 0.0


def check_same_domain(coarse: Mesh, fine: Mesh) -> None:
    """All names are there, on the same part of the domain."""
    check_conforming(fine)
    assert measures(fine).sum() == pytest.approx(measures(coarse).sum(), rel=1e-12)
    assert length(fine, fine.boundary_facets()) == pytest.approx(length(coarse, coarse.boundary_facets()), rel=1e-12)
    assert set(fine.boundaries or {}) == set(coarse.boundaries or {})
    assert set(fine.subdomains or {}) == set(coarse.subdomains or {})
    for name, facets in (coarse.boundaries or {}).items():
        assert length(fine, fine.boundaries[name]) == pytest.approx(length(coarse, facets), rel=1e-12)
        middles = fine.p[:, fine.facets[:, fine.boundaries[name]]].mean(axis=1)
        if coarse.dim() == 2:
            assert distance_to_segments(middles, coarse, facets).max() < 1e-13
        else:
            assert set(middles[0]) == set(coarse.p[0, coarse.facets[0, facets]])
    for name, elements in (coarse.subdomains or {}).items():
        inside = fine.subdomains[name]
        assert measures(fine)[inside].sum() == pytest.approx(measures(coarse)[elements].sum(), rel=1e-12)


@pytest.mark.parametrize("name", ["l_shape", "plate_with_holes", "disc", "fault", "interval", "l_shape_quads"])
def test_uniform_refinement_keeps_names(name):
    mesh = fc.load_mesh(MESHES / f"{name}.msh")
    fine = refined(mesh)
    assert type(fine) is type(mesh)
    assert fine.nelements == mesh.nelements * 2 ** mesh.dim()
    check_same_domain(mesh, fine)
    np.testing.assert_allclose(diameters(fine).max(), diameters(mesh).max() / 2, rtol=0.3)


@pytest.mark.parametrize("name", ["plate_with_holes", "disc", "fault", "interval"])
def test_eight_adaptive_levels_keep_names(name):
    mesh = start = fc.load_mesh(MESHES / f"{name}.msh")
    rng = np.random.default_rng(3)
    target = start.p[:, start.facets[:, start.boundaries[sorted(start.boundaries)[0]]][0, 0]]
    for _ in range(8):
        # Around one point of a named boundary, and a few anywhere.
        near = np.argsort(np.linalg.norm(mesh.p[:, mesh.t].mean(axis=1) - target[:, None], axis=0))[:40]
        mesh = refined(mesh, np.concatenate([near, rng.integers(0, mesh.nelements, 20)]))
    assert mesh.nelements > start.nelements + 400
    check_same_domain(start, mesh)


def test_the_interface_still_separates_the_regions():
    mesh = fc.load_mesh(MESHES / "disc.msh")
    for _ in range(3):
        mesh = refined(mesh, mesh.subdomains["inclusion"][::3])
    inside = np.zeros(mesh.nelements, dtype=bool)
    inside[mesh.subdomains["inclusion"]] = True
    first, second = mesh.f2t
    separating = np.flatnonzero((second >= 0) & (inside[first] != inside[second]))
    np.testing.assert_array_equal(np.sort(mesh.boundaries["interface"]), separating)


SHAPES = {
    "l-shape": MeshTri.init_lshaped(),
    "needle": MeshTri(np.array([[0.0, 1.0, 0.8], [0.0, 0.0, 0.1]]), np.array([[0], [1], [2]])),
    "obtuse": MeshTri(np.array([[0.0, 1.0, 0.5], [0.0, 0.0, 0.02]]), np.array([[0], [1], [2]])),
    "unlike pair": MeshTri(
        np.array([[0.0, 1.0, 0.05, 0.9], [0.0, 0.0, 0.3, -0.1]]), np.array([[0, 0], [1, 1], [2, 3]])
    ),
    "plate": fc.load_mesh(MESHES / "plate_with_holes.msh"),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("where", ["corner", "anywhere"])
def test_angles_do_not_degrade_over_twenty_levels(name, where):
    start = mesh = SHAPES[name]
    rng = np.random.default_rng(0)
    for _ in range(20):
        if where == "corner":
            chosen = np.argsort(np.linalg.norm(mesh.p[:, mesh.t].mean(axis=1) - start.p[:, :1], axis=0))[:6]
        else:
            chosen = rng.integers(0, mesh.nelements, 15)
        mesh = refined(mesh, chosen)
    assert smallest_angle(mesh) >= 0.5 * smallest_angle(start)
    assert measures(mesh).sum() == pytest.approx(measures(start).sum(), rel=1e-12)
    check_conforming(mesh)


def test_marked_triangles_are_divided_in_four():
    mesh = MeshTri.init_sqsymmetric().refined(3)
    fine = refined(mesh, [5, 77])
    for element in (5, 77):
        inner = mesh.p[:, mesh.t[:, element]] @ np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
        found = fine.element_finder()(*inner)
        np.testing.assert_allclose(measures(fine)[found], measures(mesh)[element] / 4, rtol=1e-12)
    assert fine.nelements < mesh.nelements + 30


def test_lines_run_from_left_to_right():
    mesh = MeshLine(np.array([0.0, 0.2, 0.7, 1.0])).with_subdomains({"right": lambda x: x[0] > 0.2})
    mesh = mesh.with_boundaries({"end": lambda x: x[0] == 1.0})
    for elements in ([1], None, [0, 5], [2]):
        mesh = refined(mesh, elements)
        assert np.all(np.diff(mesh.p[0]) > 0.0)
        assert np.all(np.diff(mesh.p[0, mesh.t], axis=0) > 0.0)
        assert np.all(np.diff(mesh.p[0, mesh.t[0]]) > 0.0)
        assert measures(mesh)[mesh.subdomains["right"]].sum() == pytest.approx(0.8)
        assert mesh.p[0, mesh.t[:, mesh.subdomains["right"]]].min() == pytest.approx(0.2)
        assert mesh.p[0, mesh.facets[0, mesh.boundaries["end"]]] == [1.0]


def test_quadrilaterals_only_as_a_whole():
    for adaptive in (lambda mesh: refined(mesh, [0]), check_adaptive):
        with pytest.raises(InputError, match="use triangles"):
            adaptive(MeshQuad())


VALUES = st.lists(st.floats(0.0, 1e4).map(lambda value: round(value, 3)), min_size=1, max_size=9)


@given(VALUES, st.floats(0.01, 1.0))
@settings(deadline=None)
def test_doerfler_takes_a_smallest_set(values, fraction):
    eta = np.array(values)
    chosen = doerfler(eta, fraction)
    assert np.all(np.diff(chosen) > 0)
    square = eta**2
    goal = fraction * square.sum()
    assert square[chosen].sum() >= goal * (1.0 - 1e-12)
    if not eta.any():
        assert not len(chosen)
        return
    # No set with one element less reaches the goal: not even the one of the largest.
    best = max((square[list(fewer)].sum() for fewer in combinations(range(len(eta)), len(chosen) - 1)), default=0.0)
    assert best < goal * (1.0 + 1e-12)


def test_doerfler_by_hand():
    np.testing.assert_array_equal(doerfler([1.0, 3.0, 2.0, 0.0], 0.5), [1])
    np.testing.assert_array_equal(doerfler([1.0, 3.0, 2.0, 0.0], 0.9), [1, 2])
    assert len(doerfler(np.ones(100), 0.25)) == 25
    wrong = [([1.0, np.nan], 0.5), ([1.0, -1.0], 0.5), ([], 0.5), ([[1.0]], 0.5), ([1.0], 0.0), ([1.0], 1.5)]
    for indicators, fraction in wrong:
        with pytest.raises(InputError, match=r"NaN|at least 0|empty|vector|more than 0|at most 1"):
            doerfler(indicators, fraction)
