"""Two routes to the extreme singular values, dense and sparse, on many random problems; refusals."""

from __future__ import annotations

import numpy as np
import pytest
import zoo
from skfem import Basis, ElementLineP1, ElementLineP2, ElementQuad1, ElementTriP1, MeshLine, MeshQuad, MeshTri

import femcert as fc


def random_problem(seed):
    """A random mesh, class, sensors, coefficients and covariance, with more observations than coordinates."""
    rng = np.random.default_rng(seed)
    kind = seed % 3
    if kind == 0:
        nodes = np.sort(np.r_[0.0, 1.0, rng.uniform(0, 1, 30)])
        basis = Basis(MeshLine(nodes), (ElementLineP1, ElementLineP2)[seed % 2]())
        groups = 8
    else:
        mesh = (MeshTri if kind == 1 else MeshQuad)().refined(int(rng.integers(3, 5)))
        basis = Basis(mesh, (ElementTriP1 if kind == 1 else ElementQuad1)())
        groups = int(rng.integers(3, 6))
    # Contiguous parts of the domain: along x, so that no two of them look alike.
    order = np.argsort(basis.mesh.p[0, basis.mesh.t].mean(axis=0))
    space = fc.RegionSpace(basis, [np.sort(part) for part in np.array_split(order, groups)])
    inside = np.setdiff1d(np.arange(basis.N), basis.get_dofs().flatten())
    rows = np.eye(basis.N)[inside] * rng.uniform(0.5, 2.0, (len(inside), 1))
    problem = fc.EllipticSource(
        basis, parameters=space, sensors=fc.MatrixSensors(rows),
        conductivity=rng.uniform(0.5, 2.0, basis.mesh.nelements), reaction=float(rng.uniform(0.0, 2.0)),
    )  # fmt: skip
    variances = rng.uniform(0.5, 2.0, len(inside)) if seed % 2 else None
    return problem, fc.Data(np.zeros(len(inside)), 0.1, variances)


# The last two have elements of very different lengths.
@pytest.mark.parametrize("seed", [*range(30), 105, 147])
def test_both_routes_agree(seed):
    problem, data = random_problem(seed)
    one = fc.stability(problem, data=data, method="dense")
    two = fc.stability(problem, data=data, method="sparse")
    assert (one.method, two.method) == ("dense", "sparse")
    assert two.sigma_min == pytest.approx(one.sigma_min, rel=1e-8)
    assert two.sigma_max == pytest.approx(one.sigma_max, rel=1e-8)
    assert min(one.constant.value, two.constant.value) >= 1.0 / one.sigma_min
    assert abs(one.weakest @ (problem.parameters.weight @ two.weakest)) == pytest.approx(1.0, abs=1e-5)


def test_large_classes_take_the_sparse_route():
    basis = zoo.square(6, 1, "quad")
    inside = np.setdiff1d(np.arange(basis.N), basis.get_dofs().flatten())
    sensors = fc.MatrixSensors(np.eye(basis.N)[inside])
    problem = fc.EllipticSource(basis, parameters=fc.RegionSpace(basis, blocks(basis, 40)), sensors=sensors)
    assert problem.parameters.dimension == 1600
    found = fc.stability(problem)
    assert found.method == "sparse"
    assert len(found.singular_values) == 2
    e = found.weakest
    effect = np.linalg.norm(problem.observe(problem.solve(e)))
    assert effect == pytest.approx(found.sigma_min * problem.parameters.norm(e), rel=1e-5)


def test_what_lanczos_finds_is_an_estimate():
    """A residual shows that some eigenvalue is near, not that none is smaller; radii that rest on it claim nothing."""
    problem, data = random_problem(3)
    constant = fc.stability(problem, data=data, method="sparse")
    assert (constant.constant.side, constant.scope) == ("estimate", "estimate")
    assert fc.stability(problem, data=data, method="dense").constant.side == "upper"
    candidate = fc.Candidate.from_coefficients(problem, np.ones(problem.parameters.dimension))
    rule = fc.ResidualRadius(stability=constant)
    with_dense = fc.certify(problem, data, candidate, rule)
    # The radius may be proved otherwise: by the constant that is computed for a given one.
    assert with_dense.stability.constant.side == "estimate"


def blocks(basis, side):
    column, row = np.floor(side * basis.mesh.p[:, basis.mesh.t].mean(axis=1)).astype(int)
    return [part for i in range(side) for j in range(side) if len(part := np.flatnonzero((column == i) & (row == j)))]


def test_refused():
    problem, data = random_problem(0)
    m, basis, given = problem.observation_count, problem.basis, {"sensors": problem.sensors}
    full = fc.Data(np.zeros(m), 0.1, np.eye(m) + 0.1 * np.ones((m, m)))
    heat = zoo.heat(basis, parameters=problem.parameters, times=0.1, **given)
    for deed, word in (
        (lambda: fc.stability(problem, method="quick"), "method is 'quick'"),
        (lambda: fc.stability(problem, data=full, method="sparse"), "independent noise"),
        (lambda: fc.stability(zoo.source(basis, **given), data=data, method="sparse"), "not for global modes"),
        (lambda: fc.stability(heat, method="sparse"), "stationary"),
    ):
        with pytest.raises(fc.InputError, match=word):
            deed()
