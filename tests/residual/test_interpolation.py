"""Constants of interpolation, against the largest quotients of polynomials, and where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from skfem import Basis, ElementTriP1, MeshLine, MeshQuad, MeshTri
from zoo import l_shape

from femcert.residual.interpolation import interpolation_constant, is_convex, triangle_constants


def largest_quotient(triangle, degree=5):
    """Of ``|w - I w|_1 / |w|_2`` over polynomials on a triangle, ``(2, 3)``."""
    g, weights = np.polynomial.legendre.leggauss(12)
    g, weights = (g + 1.0) / 2.0, weights / 2.0
    U, V = np.meshgrid(g, g, indexing="ij")
    reference, W = np.vstack([U.ravel(), (V * (1.0 - U)).ravel()]), (np.outer(weights, weights) * (1.0 - U)).ravel()
    D = triangle[:, 1:] - triangle[:, :1]
    root = np.sqrt(W * abs(np.linalg.det(D)))
    x, y = triangle[:, :1] + D @ reference - triangle.mean(axis=1, keepdims=True)
    a, b = triangle - triangle.mean(axis=1, keepdims=True)
    slopes, curvatures = [], []
    for i, j in np.argwhere(np.add.outer(np.arange(degree + 1), np.arange(degree + 1)) <= degree):
        if i + j < 2:
            continue
        at = a**i * b**j
        flat = np.linalg.solve(D.T, at[1:] - at[0])
        first = i * x ** max(i - 1, 0) * y**j - flat[0], j * x**i * y ** max(j - 1, 0) - flat[1]
        second = (
            i * (i - 1) * x ** max(i - 2, 0) * y**j,
            np.sqrt(2.0) * i * j * x ** max(i - 1, 0) * y ** max(j - 1, 0),
            j * (j - 1) * x**i * y ** max(j - 2, 0),
        )
        slopes.append(np.concatenate([part * root for part in first]))
        curvatures.append(np.concatenate([part * root for part in second]))
    R = np.linalg.qr(np.array(curvatures).T, mode="r")
    return np.linalg.svd(np.linalg.solve(R.T, np.array(slopes)), compute_uv=False)[0]


@pytest.mark.parametrize("seed", range(12))
def test_no_polynomial_has_a_larger_error(seed):
    triangle = np.random.default_rng(seed).standard_normal((2, 3))
    (k,) = triangle_constants(triangle[:, :, None])
    found = largest_quotient(triangle)
    assert found <= k <= 1.25 * found


def test_the_right_isosceles_triangle():
    (k,) = triangle_constants(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])[:, :, None])
    # The best constant is 0.4887...
    assert 0.4887 < k < 0.492


def test_where_it_is_known():
    mesh = MeshTri().refined(3)
    whole, one = mesh.boundary_facets(), np.ones(mesh.nelements)
    K = interpolation_constant(mesh, whole, one)
    assert 0.4887 / 8.0 < K < 0.492 / 8.0
    assert interpolation_constant(mesh, whole, 4.0 * one) == pytest.approx(K / 2.0)
    assert interpolation_constant(mesh, whole[1:], one) is None
    assert interpolation_constant(mesh, whole, np.linspace(1.0, 2.0, len(one))) is None
    corner = l_shape(2).mesh
    assert interpolation_constant(corner, corner.boundary_facets(), np.ones(corner.nelements)) is None
    quads = MeshQuad().refined(2)
    assert interpolation_constant(quads, quads.boundary_facets(), np.ones(quads.nelements)) is None
    line = MeshLine(np.array([0.0, 0.5, 0.7, 1.0]))
    assert interpolation_constant(line, line.boundary_facets(), np.array([1.0, 4.0, 1.0])) == pytest.approx(0.5 / np.pi)


def test_a_slit_is_no_convex_domain():
    mesh = MeshTri.init_tensor(np.linspace(0.0, 1.0, 5), np.linspace(0.0, 1.0, 5))
    assert is_convex(mesh)
    # The vertex in the middle of the lower half, twice: what is left of it and what is right are apart there.
    column = np.flatnonzero((mesh.p[0] == 0.5) & (mesh.p[1] < 0.5))
    copies = mesh.p.shape[1] + np.arange(len(column))
    right = mesh.p[0, mesh.t].mean(axis=0) > 0.5
    t = mesh.t.copy()
    for old, new in zip(column, copies, strict=True):
        t[:, right] = np.where(t[:, right] == old, new, t[:, right])
    slit = MeshTri(np.hstack([mesh.p, mesh.p[:, column]]), t)
    assert len(slit.boundary_facets()) > len(mesh.boundary_facets())
    assert not is_convex(slit)


def test_it_holds_for_states():
    """``‖w - I w‖ <= K ‖q‖`` for q = 2 (x (1 - x) + y (1 - y)), w = x (1 - x) y (1 - y)."""
    mesh = MeshTri().refined(2)
    line = Basis(mesh, ElementTriP1(), intorder=8)
    x, y = np.asarray(line.global_coordinates())
    w = line.interpolate(np.prod(line.doflocs * (1.0 - line.doflocs), axis=0)).grad
    slope = np.array([(1.0 - 2.0 * x) * y * (1.0 - y), (1.0 - 2.0 * y) * x * (1.0 - x)])
    error = np.sqrt(np.sum(np.sum((slope - w) ** 2, axis=0) * line.dx))
    q = 2.0 * (x * (1.0 - x) + y * (1.0 - y))
    K = interpolation_constant(mesh, mesh.boundary_facets(), np.ones(mesh.nelements))
    assert error <= K * np.sqrt(np.sum(q**2 * line.dx))
