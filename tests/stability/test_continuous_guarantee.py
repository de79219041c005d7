"""The continuous guarantee against forward maps in closed form: never optimistic, and the gap closes at its rate."""

from __future__ import annotations

import numpy as np
import pytest
from skfem import (
    Basis,
    ElementLineP1,
    ElementLineP2,
    ElementQuad1,
    ElementQuad2,
    ElementTriP1,
    ElementTriP2,
    MeshLine,
    MeshQuad,
    MeshTri,
)

import femcert as fc

PLANE = {ElementTriP1: MeshTri, ElementTriP2: MeshTri, ElementQuad1: MeshQuad, ElementQuad2: MeshQuad}
SIDE = 4


def averages(j, cells):
    """Averages of ``sin(j pi x)`` over equal parts of the unit interval."""
    ends = np.linspace(0.0, 1.0, cells + 1)
    return -np.diff(np.cos(j * np.pi * ends)) / (j * np.pi) * cells


def exact_on_square(frequencies):
    columns = []
    for j, l in frequencies.T:
        part = np.outer(averages(j, SIDE), averages(l, SIDE)).ravel()
        columns.append(2.0 * part / (np.pi**2 * (j**2 + l**2)))
    return np.linalg.svd(np.column_stack(columns), compute_uv=False)


def squares(mesh):
    column, row = np.floor(SIDE * mesh.p[:, mesh.t].mean(axis=1)).astype(int)
    return [np.flatnonzero((column == i) & (row == j)) for i in range(SIDE) for j in range(SIDE)]


def on_square(n, element, space=None):
    grid = np.linspace(0.0, 1.0, n + 1)
    mesh = PLANE[element].init_tensor(grid, grid)
    basis = Basis(mesh, element())
    sensors = fc.RegionSensors(basis, squares(mesh))
    return fc.EllipticSource(basis, parameters=space(basis) if space else fc.SineSpace(basis, 5), sensors=sensors)


def on_line(n, element, k=4, cells=8):
    mesh = MeshLine(np.linspace(0.0, 1.0, n + 1))
    basis = Basis(mesh, element())
    part = np.floor(cells * mesh.p[0, mesh.t].mean(axis=0)).astype(int)
    sensors = fc.RegionSensors(basis, [np.flatnonzero(part == i) for i in range(cells)])
    problem = fc.EllipticSource(basis, parameters=fc.SineSpace(basis, k), sensors=sensors)
    columns = [np.sqrt(2.0) * averages(j, cells) / (j * np.pi) ** 2 for j in range(1, k + 1)]
    return problem, np.linalg.svd(np.column_stack(columns), compute_uv=False)[-1]


def certified(problem):
    try:
        return fc.stability(problem, guarantee="continuous")
    except fc.UncertifiedError as error:
        if "not certified on this mesh, refine" not in str(error):
            raise
        return None


@pytest.mark.parametrize(("element", "order", "cap"), [
    (ElementTriP1, 2.0, 0.06), (ElementTriP2, 4.0, 1e-3), (ElementQuad1, 2.0, 0.06), (ElementQuad2, 4.0, 1e-3),
])  # fmt: skip
def test_sine_modes_on_the_square(element, order, cap):
    gaps = {}
    for n in (4, 8, 16, 32, 64):
        problem = on_square(n, element)
        exact = exact_on_square(problem.parameters.frequencies)[-1]
        found = certified(problem)
        if found is not None:
            assert found.scope == "continuous"
            assert found.sigma_min <= exact
            assert found.constant.side == "upper"
            assert found.constant.value >= 1.0 / exact
            gaps[n] = 1.0 - found.sigma_min / exact
    assert gaps[64] <= cap
    rate = np.log2(gaps[32] / gaps[64])
    assert abs(rate - order) <= 0.35


@pytest.mark.parametrize("element", [ElementLineP1, ElementLineP2])
def test_sine_modes_on_the_interval(element):
    gaps = []
    for n in (8, 16, 32, 64):
        problem, exact = on_line(n, element)
        found = certified(problem)
        if found is not None:
            assert found.sigma_min <= exact * (1.0 + 1e-12)
            gaps.append(1.0 - found.sigma_min / exact)
    assert len(gaps) >= 2
    if element is ElementLineP1:
        assert abs(np.log2(gaps[-2] / gaps[-1]) - 2.0) <= 0.3
    else:
        # The adjoint states are quadratic between the edges of the regions: P2 has them.
        assert max(gaps) <= 1e-9


def test_a_coarse_mesh_says_how_fine_it_should_be():
    coarse = on_square(8, ElementTriP1)
    with pytest.raises(fc.UncertifiedError, match=r"refine.* elements of size 0\.07") as refusal:
        fc.stability(coarse, guarantee="continuous")
    assert "sigma_min" in str(refusal.value)
    assert certified(on_square(32, ElementTriP1)) is not None


def exact_quadrants(terms=400):
    """Constants on the four quadrants, seen by averages over sixteen squares: a double sine series."""
    j = np.arange(1, terms + 1)
    halves = np.array([averages(k, 2) / np.sqrt(2.0) for k in j])
    parts = np.array([averages(k, SIDE) for k in j])
    weight = 4.0 / (np.pi**2 * (j[:, None] ** 2 + j[None, :] ** 2))
    # Orthonormal columns: indicator of a quadrant times 2.
    F = np.einsum("jl,ja,lb,jp,lq->abpq", weight, parts, parts, halves, halves, optimize=True)
    return np.linalg.svd(F.reshape(SIDE**2, 4), compute_uv=False)[-1]


def test_piecewise_constants_are_exact_on_the_mesh():
    def quadrants(basis):
        column, row = np.floor(2 * basis.mesh.p[:, basis.mesh.t].mean(axis=1)).astype(int)
        return fc.RegionSpace(basis, [np.flatnonzero((column == i) & (row == j)) for i in (0, 1) for j in (0, 1)])

    exact = exact_quadrants()
    found = [certified(on_square(n, ElementTriP2, quadrants)) for n in (8, 16, 32)]
    values = np.array([f.sigma_min for f in found])
    assert np.all(values <= exact * (1.0 + 1e-6))
    assert np.all(np.diff(values) > 0.0)
    assert values[-1] >= 0.999 * exact


def test_discs_and_covariances():
    grid = np.linspace(0.0, 1.0, 33)
    basis = Basis(MeshTri.init_tensor(grid, grid), ElementTriP1())
    points = np.random.default_rng(0).uniform(0.2, 0.8, (10, 2))
    sensors = fc.AverageSensors(basis, points, radius=0.1)
    problem = fc.EllipticSource(basis, parameters=fc.SineSpace(basis, 2), sensors=sensors)
    finer = np.linspace(0.0, 1.0, 129)
    fine = Basis(MeshTri.init_tensor(finer, finer), ElementTriP1())
    reference = fc.EllipticSource(
        fine, parameters=fc.SineSpace(fine, 2), sensors=fc.AverageSensors(fine, points, radius=0.1)
    )
    for covariance in (None, np.diag(np.linspace(0.5, 2.0, 10))):
        data = fc.Data(np.zeros(10), 0.1, covariance)
        found = fc.stability(problem, data=data, guarantee="continuous")
        near = fc.stability(reference, data=data)
        assert found.sigma_min <= near.sigma_min * (1.0 + 1e-3)
        assert found.sigma_min >= 0.7 * near.sigma_min


def test_refused():
    basis = Basis(MeshTri().refined(3), ElementTriP1())
    points = fc.PointSensors(basis, [[0.3, 0.4], [0.5, 0.6]])
    space = fc.SineSpace(basis, 1)
    with pytest.raises(fc.UncertifiedError, match="Average- or RegionSensors"):
        fc.stability(fc.EllipticSource(basis, parameters=space, sensors=points), guarantee="continuous")
    heat = fc.HeatInitial(basis, parameters=space, sensors=points, times=0.1, steps=4)
    with pytest.raises(fc.UncertifiedError, match="EllipticSource"):
        fc.stability(heat, guarantee="continuous")
    with pytest.raises(fc.InputError, match="guarantee"):
        fc.stability(heat, guarantee="sure")
    rough = fc.EllipticSource(
        basis, parameters=space, sensors=fc.AverageSensors(basis, [[0.3, 0.4]], radius=0.2),
        conductivity=lambda x: 1.5 + np.sin(9.0 * x[0]),
    )  # fmt: skip
    with pytest.raises(fc.UncertifiedError, match="only estimated"):
        fc.stability(rough, guarantee="continuous")


def test_modes_that_no_quadrature_resolves_are_refused():
    # P2 has the adjoint states, so nothing but the integrals of the mode is in the way.
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, 3)), ElementLineP2())
    sensors = fc.RegionSensors(basis, [np.array([0]), np.array([1])])
    for width, refused in ((0.37, False), (0.0031, True)):
        space = fc.SineSpace(basis, 1, box=[[0.0, width]])
        problem = fc.EllipticSource(basis, parameters=space, sensors=sensors)
        if refused:
            with pytest.raises(fc.UncertifiedError, match="no quadrature resolves"):
                fc.stability(problem, guarantee="continuous")
        else:
            assert fc.stability(problem, guarantee="continuous").scope == "continuous"
