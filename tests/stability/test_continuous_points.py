"""The continuous guarantee for point values on a line: closed forms, Green's functions, points at and between nodes."""

from __future__ import annotations

import numpy as np
import pytest
import zoo
from skfem import Basis, ElementLineP1, ElementLineP2, MeshLine
from zoo import ELEMENTS, SIDES, middles, unit_basis

import femcert as fc
from femcert.mesh.elements import constant_basis
from femcert.problem.insert import cut_at_sensors
from femcert.residual.line import line_bound
from femcert.residual.workspace import Workspace

AT_NODES = np.arange(1, 8) / 8.0
BETWEEN = np.array([0.07, 0.21, 0.333, 0.48, 0.61, 0.777, 0.93])


def sines(basis, points, k=4, **options):
    sensors = fc.PointSensors(basis, points)
    return zoo.source(basis, parameters=(fc.SineSpace, k), sensors=sensors, **options)


def exact_forward(points, k=4, conductivity=1.0, reaction=0.0):
    j = np.arange(1, k + 1)
    return np.sqrt(2.0) * np.sin(np.pi * np.outer(points, j)) / (conductivity * (j * np.pi) ** 2 + reaction)


def least(F):
    return np.linalg.svd(F, compute_uv=False)[-1]


@pytest.mark.parametrize("points", [AT_NODES, BETWEEN])
@pytest.mark.parametrize("element", ["line P1", "line P2"])
def test_without_reaction_the_adjoint_states_are_known(element, points):
    # Green's functions of -u'' are linear between their kinks: what is left is rounding, on any mesh.
    exact = least(exact_forward(points))
    for n in (5, 8, 21):
        found = fc.stability(sines(unit_basis(element, n), points), guarantee="continuous")
        assert found.scope == "continuous"
        assert (1.0 - 1e-8) * exact <= found.sigma_min <= exact
        assert found.constant.side == "upper"
        assert found.constant.value >= 1.0 / exact


@pytest.mark.parametrize("points", [AT_NODES, BETWEEN])
@pytest.mark.parametrize(("element", "order", "cap"), [("line P1", 2.0, 6e-3), ("line P2", 4.0, 2e-6)])
def test_with_reaction_the_gap_closes_at_its_rate(element, order, cap, points):
    exact = least(exact_forward(points, reaction=30.0))
    gaps = []
    for n in (8, 16, 32, 64):
        found = fc.stability(sines(unit_basis(element, n), points, reaction=30.0), guarantee="continuous")
        assert found.sigma_min <= exact
        gaps.append(1.0 - found.sigma_min / exact)
    assert gaps[-1] <= cap
    rate = -np.polyfit(np.arange(3), np.log2(gaps[1:]), 1)[0]
    assert abs(rate - order) <= 0.25


def test_no_false_claims():
    # Random lines, points, coefficients and noise; many of the meshes alone would claim too much.
    ratios, optimistic = [], 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(1, 5))
        points = np.sort(rng.uniform(0.02, 0.98, k + int(rng.integers(1, 6))))
        inside = rng.uniform(0.0, 1.0, int(rng.integers(6, 30)))
        basis = Basis(
            MeshLine(np.sort(np.concatenate([[0.0, 1.0], inside]))), (ElementLineP1, ElementLineP2)[seed % 2]()
        )
        a, c = rng.uniform(0.2, 3.0), rng.choice([0.0, 5.0, 40.0])
        problem = sines(basis, points, k, conductivity=a, reaction=c)
        root = rng.standard_normal((len(points), len(points)))
        covariance = root @ root.T + np.eye(len(points))
        data = fc.Data(np.zeros(len(points)), 0.1, covariance)
        exact = least(np.linalg.solve(np.linalg.cholesky(covariance), exact_forward(points, k, a, c)))
        optimistic += fc.stability(problem, data=data).sigma_min > exact
        try:
            found = fc.stability(problem, data=data, guarantee="continuous")
        except fc.UncertifiedError as error:
            if "not certified on this mesh, refine" not in str(error):
                raise
            continue
        assert found.sigma_min <= exact * (1.0 + 1e-12)
        ratios.append(found.sigma_min / exact)
    assert optimistic >= 5
    assert len(ratios) >= 20
    assert np.median(ratios) >= 0.9


@pytest.mark.parametrize("element", ["line P1", "line P2"])
def test_functions_of_the_mesh_stay_the_same(element):
    # The sources 1 and x, with states x (1 - x) / 2 and (x - x³) / 6, on a mesh that the sensors cut.
    basis = unit_basis(element, 7)
    space = fc.FunctionSpace(basis, [fc.Polynomial(lambda x: 1.0 + 0.0 * x[0], 0), fc.Polynomial(lambda x: x[0], 1)])
    problem = zoo.source(basis, parameters=space, sensors=BETWEEN)
    x = BETWEEN
    F = np.column_stack([0.5 * x * (1.0 - x), (x - x**3) / 6.0])
    gram = np.array([[1.0, 1.0 / 2.0], [1.0 / 2.0, 1.0 / 3.0]])
    exact = least(np.linalg.solve(np.linalg.cholesky(gram), F.T).T)
    found = fc.stability(problem, guarantee="continuous")
    assert (1.0 - 1e-8) * exact <= found.sigma_min <= exact


def green(x, y, root):
    """Of ``-u'' + root² u`` on (0, 1) with zero boundary values."""
    low, high = np.minimum(x, y), np.maximum(x, y)
    if root == 0.0:
        return low * (1.0 - high)
    return np.sinh(root * low) * np.sinh(root * (1.0 - high)) / (root * np.sinh(root))


@pytest.mark.parametrize("element", ["line P1", "line P2"])
@pytest.mark.parametrize("root", [0.0, 6.0])
@pytest.mark.parametrize("x", [0.5, 0.3])
def test_energy_error_of_a_greens_function(element, root, x):
    # ‖z - z_h‖² = a(z, z) - a(z_h, z_h) = z(x) - z_h(x) for Galerkin states, with a vertex at x.
    problem = cut_at_sensors(sines(unit_basis(element, 6), [x], 1, reaction=root**2))
    basis = problem.basis
    vertex = int(np.argmin(np.abs(basis.mesh.p[0] - x)))
    assert basis.mesh.p[0, vertex] == pytest.approx(x, abs=1e-15)
    loads = np.zeros(basis.mesh.nvertices)
    loads[vertex] = 1.0
    z = np.zeros(basis.N)
    z[problem.free] = problem.factor.solve(problem.sensors.matrix.T.toarray()[problem.free])[:, 0]
    constants = constant_basis(basis)
    equation = problem.strong(np.zeros(basis.N))
    equation = type(equation)(
        equation.conductivity, equation.reaction, fc.Interpolant(constants, np.zeros(constants.N)), equation.boundary
    )
    bound = line_bound(Workspace(problem), equation, z, "energy", loads=loads)
    square = green(x, x, root) - float((problem.sensors.matrix @ z)[0])
    if root == 0.0:
        assert bound.upper <= 1e-10
        np.testing.assert_allclose(z, green(basis.doflocs[0], x, root), atol=1e-14)
    else:
        assert np.sqrt(square) * (1.0 - 1e-6) <= bound.upper <= np.sqrt(square) * (1.0 + 1e-6)
        assert np.sqrt(square) * (1.0 - 1e-4) <= bound.lower <= np.sqrt(square) * (1.0 + 1e-9)
        # Nothing of the kind for a state that is not the solution: the bound sees what is missing.
        assert line_bound(Workspace(problem), equation, 0.0 * z, "energy", loads=loads).upper == pytest.approx(
            np.sqrt(green(x, x, root)), rel=1e-9
        )


def interfaces(nodes, element, points, **boundary):
    """Constants on four parts, a conductivity with jumps as a table; nothing zero on the boundary."""
    mesh = MeshLine(nodes).with_subdomains({"glass": lambda x: x[0] < 0.5, "steel": lambda x: x[0] > 0.5})
    basis = Basis(mesh.with_boundaries({name: SIDES[name] for name in ("left", "right")}), ELEMENTS[element][1]())
    part = np.floor(4.0 * middles(basis)[0]).astype(int)
    space = fc.RegionSpace(basis, [np.flatnonzero(part == i) for i in range(4)])
    return zoo.source(basis, parameters=space, sensors=points, conductivity={"glass": 0.3, "steel": 2.0}, **boundary)


@pytest.mark.parametrize("boundary", [
    {"robin": {"right": (1.5, 0.0)}},
    {"robin": {"left": (0.4, 2.0)}, "dirichlet": {"right": 3.0}},
    {"neumann": {"left": 1.0}},
    {"dirichlet": {}, "robin": {"left": (0.7, 0.0), "right": (2.0, 1.0)}},
])  # fmt: skip
def test_interfaces_and_natural_ends(boundary):
    # P2 has the states where every interface is a node, so that the forward matrix of such a mesh is exact.
    points = np.array([0.0, 0.11, 0.33, 0.61, 0.87, 1.0])
    fine = np.union1d(np.linspace(0.0, 1.0, 9), points)
    exact = fc.stability(interfaces(fine, "line P2", points, **boundary)).singular_values
    coarse = interfaces(np.linspace(0.0, 1.0, 5), "line P1", points, **boundary)
    found = fc.stability(coarse, guarantee="continuous").singular_values
    assert np.all(found <= exact * (1.0 + 1e-11))
    np.testing.assert_allclose(found, exact, rtol=1e-8)
    # The mesh alone is far off.
    assert abs(fc.stability(coarse).sigma_min / exact[-1] - 1.0) > 1e-2


def test_elements_in_any_order():
    # Coefficients by element, nodes and elements shuffled, some elements reversed.
    rng = np.random.default_rng(3)
    nodes = np.linspace(0.0, 1.0, 11)
    values = rng.uniform(0.5, 2.0, 10)
    place, order = rng.permutation(11), rng.permutation(10)
    p = np.empty(11)
    p[place] = nodes
    t = np.array([place[:-1], place[1:]])[:, order]
    t[:, ::3] = t[::-1, ::3]
    plain, shuffled = MeshLine(nodes), MeshLine(p[None], t.astype(np.int32))
    found = [
        fc.stability(sines(Basis(mesh, ElementLineP1()), BETWEEN, conductivity=a, reaction=b), guarantee="continuous")
        for mesh, a, b in ((plain, values, 4.0 * values), (shuffled, values[order], 4.0 * values[order]))
    ]
    np.testing.assert_allclose(found[1].singular_values, found[0].singular_values, rtol=1e-9)


@pytest.mark.parametrize("away", [1e-16, 1e-12, 1e-9, 1e-6])
def test_points_next_to_a_node(away):
    points = AT_NODES + away
    exact = least(exact_forward(points, reaction=5.0))
    found = fc.stability(sines(unit_basis("line P2", 16), points, reaction=5.0), guarantee="continuous")
    assert exact * (1.0 - 1e-3) <= found.sigma_min <= exact
