"""The eigenproblems behind the modulus: the reduced ones against the whole pencil, on other elements and balls."""

from __future__ import annotations

import numpy as np
import pytest
import zoo
from scipy.linalg import eigh
from skfem import Basis, ElementTriP1, MeshTri

import femcert as fc
from femcert.linalg import inertia, separated_eigenpairs
from femcert.linalg.factor import Factorization
from femcert.stability import Modulus, pencil
from femcert.stability.pencil import MOST_DENSE, Pencils

MESHES = {
    "P1": lambda: Basis(MeshTri.init_sqsymmetric().refined(4), ElementTriP1()),
    "P2": lambda: zoo.square(3, 2),
    "Q1": lambda: zoo.square(4, 1, "quad"),
    "Q2": lambda: zoo.square(3, 2, "quad"),
    "line P1": lambda: zoo.unit_basis("line P1", 401),
    "line P2": lambda: zoo.unit_basis("line P2", 201),
    "stretched": lambda: Basis(MeshTri.init_tensor(np.linspace(0, 1, 30), np.linspace(0, 0.05, 12)), ElementTriP1()),
}


def on_ball(basis, norm, sensors=11, seed=0):
    box = np.ptp(basis.mesh.p, axis=1)
    points = np.random.default_rng(seed).uniform(0.05, 0.95, (sensors, len(box))) * box
    return zoo.source(basis, parameters=fc.FullSpace(basis).within_ball(1.0, norm=norm), sensors=points)


def seen_everywhere():
    """A sensor at each of 225 nodes."""
    basis = zoo.square(4)
    inside = np.setdiff1d(np.arange(basis.N), basis.get_dofs().flatten())
    sensors = fc.MatrixSensors(np.eye(basis.N)[inside] / 16.0)
    return zoo.source(basis, parameters=fc.FullSpace(basis).within_ball(1.0), sensors=sensors)


def least(found, kappa):
    """By the dense eigensolver, on the whole pencil."""
    adjoint = found.adjoint()
    A = adjoint @ adjoint.T + kappa * found.ball.unshifted.toarray()
    return eigh(A, found.gram.toarray(), eigvals_only=True, subset_by_index=[0, 0])[0]


@pytest.mark.parametrize("norm", ["l2", "h1", "h1-seminorm", "h2"])
@pytest.mark.parametrize("mesh", MESHES)
def test_the_reduced_eigenvalue_is_the_least_one_from_below(mesh, norm):
    if (mesh, norm) == ("P2", "h2"):
        with pytest.raises(fc.InputError, match="row sums"):
            on_ball(MESHES[mesh](), norm).parameters.form(norm)
        return
    found = Pencils(on_ball(MESHES[mesh](), norm), None)
    # In a seminorm constants weigh nothing, and larger multipliers than that only blur what the data see of them.
    for kappa in found.balance * np.geomspace(1e-6, 1.0 if norm == "h1-seminorm" else 1e2, 3):
        value, vector = found.least(kappa)
        exact = least(found, kappa)
        # The dense eigensolver errs by this much itself.
        rounding = float(np.abs(found.adjoint() @ found.adjoint().T).max() + kappa * abs(found.ball.unshifted).max())
        rounding *= 1e-13
        rounding /= float(found.gram.diagonal().min())
        assert value <= exact * (1.0 + 1e-9) + rounding
        assert value >= exact * (1.0 - 2e-3) - rounding
        quotient = np.sum((found.adjoint().T @ vector) ** 2) + kappa * float(vector @ (found.ball.unshifted @ vector))
        assert quotient / float(vector @ (found.gram @ vector)) <= exact * (1.0 + 2e-3) + rounding


@pytest.mark.parametrize("mesh", ["line P1", "line P2", "P1", "Q1", "stretched"])
def test_an_h2_ball_loses_no_digits_to_its_condition_number(mesh):
    """It is that of L up to 1e12, but a root of L costs eps cond(L)^1/2 only: singular values are the reference."""
    problem = on_ball(MESHES[mesh](), "h2")
    found = Pencils(problem, None)
    R = problem.parameters.root_of_form("h2").toarray()
    inverse = np.linalg.inv(np.linalg.cholesky(found.gram.toarray()).T)
    for kappa in found.balance * np.geomspace(1e-6, 1e2, 5):
        parts = np.vstack([found.adjoint().T, np.sqrt(kappa) * R]) @ inverse
        singular = np.linalg.svd(parts, compute_uv=False)
        exact = float(singular[-1] ** 2)
        # Of singular values, 1e-14 of the largest one; the forward map has its own errors.
        rounding = 2e-14 * float(singular[0] / singular[-1]) + problem.rounding
        assert rounding < 1e-5
        value, _ = found.least(kappa)
        # The trial value is 1e-4 above the eigenvalue, and the shift 1e-3 of that of a constant.
        shift = kappa * found.ball.shift / exact
        assert value <= exact * (1.0 + rounding)
        assert value >= exact * (1.0 - 1.01e-4 * (1.0 + shift) - 1e-6 - rounding)


@pytest.mark.parametrize("mesh", ["line P1", "line P2"])
def test_rounding_of_the_forward_map_does_not_move_the_eigenvalue(mesh, monkeypatch):
    """Other processors round in other places: the response to the last digit, and the numbering of the sensors."""
    basis = MESHES[mesh]()
    posed = on_ball(basis, "h2")
    first = Pencils(posed, None)
    kappas = first.balance * np.geomspace(1e-6, 1e2, 5)
    expected = [first.least(kappa)[0] for kappa in kappas]
    # An error of eps in each entry of the forward map moves a singular value by eps times its Frobenius norm in these
    # norms, and the eigenvalue, a square, by twice as much of itself; ten roundings lie on the way to it.
    inverse = np.linalg.inv(np.linalg.cholesky(first.gram.toarray()).T)
    R = np.sqrt(kappas[-1]) * posed.parameters.root_of_form("h2").toarray() @ inverse
    largest = float(np.linalg.norm(first.adjoint().T @ inverse) + np.linalg.norm(R, 2))
    within = [2.0 * 10.0 * 2.0**-52 * largest / np.sqrt(value) for value in expected]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        problem = on_ball(basis, "h2")
        order, adjoint = rng.permutation(11), problem.adjoint
        monkeypatch.setattr(
            problem,
            "adjoint",
            lambda w, adjoint=adjoint, rng=rng, order=order: adjoint(w[order]) * (
                1.0 + 2.0**-52 * rng.integers(-1, 2, (basis.N, w.shape[1]))
            ),
        )
        found = Pencils(problem, None)
        again = [found.least(kappa)[0] for kappa in kappas]
        assert np.all(np.abs(np.subtract(again, expected)) <= np.multiply(within, expected))


@pytest.mark.parametrize("norm", ["l2", "h1", "h1-seminorm", "h2"])
def test_growing_keeps_the_bound(norm):
    found = Pencils(on_ball(MESHES["P1"](), norm, sensors=40), None)
    kappas = found.balance * np.geomspace(1e-6, 1.0, 4)
    before = np.array([found.least(kappa)[0] for kappa in kappas])
    found.grow()
    after, exact = np.array([(found.least(kappa)[0], least(found, kappa)) for kappa in kappas]).T
    assert np.all(after <= exact * (1.0 + 1e-6))
    assert np.all(after >= before * (1.0 - 5e-4))


@pytest.mark.parametrize("seed", range(4))
def test_the_modulus_of_few_and_of_many_coordinates(seed):
    # All eigenvectors of the ball, or the first ones and a bound of the rest.
    problem = on_ball(MESHES["P1"](), "h1", sensors=12, seed=seed)
    few = Modulus(problem)
    assert few._pencils.gram.shape[0] > MOST_DENSE
    levels = [1e-5, 1e-3, 1e-1]
    for eps, bound in zip(levels, few(levels), strict=True):
        worst = few.worst(eps)
        assert problem.parameters.norm(worst) >= bound.value * (1.0 - 2e-3)
        assert np.linalg.norm(problem.forward_matrix() @ worst) <= eps * (1.0 + 1e-9)
        assert np.sqrt(worst @ (problem.parameters.form("h1") @ worst)) <= few.radius * (1.0 + 1e-9)


@pytest.mark.parametrize("mesh", MESHES)
def test_what_lies_beyond_the_separated_eigenvalues(mesh):
    space = fc.FullSpace(MESHES[mesh]())
    L, M = space.form("h1"), space.gram
    theta, V, rest = separated_eigenpairs(L, M, 24, factor=Factorization(L, definite=True))
    exact = 1.0 / eigh(L.toarray(), M.toarray(), eigvals_only=True)
    assert theta[:12] == pytest.approx(exact[:12], rel=1e-6)
    assert np.abs(V.T @ (L @ V) - np.eye(24)).max() <= 1e-8
    # Above the next eigenvalue, and not above those in the middle of the list.
    assert exact[24] <= rest <= exact[11]
    beyond = np.random.default_rng(0).standard_normal((L.shape[0], 50))
    beyond = beyond - V @ (V.T @ (L @ beyond))
    assert np.all(np.sum(beyond * (M @ beyond), axis=0) <= rest * np.sum(beyond * (L @ beyond), axis=0))


def test_a_missed_eigenvalue_is_noticed(monkeypatch):
    space = fc.FullSpace(MESHES["P1"]())
    L, M = space.form("h1"), space.gram

    def careless(method):
        def call(*arguments):
            values, vectors = method(*arguments)
            kept = np.arange(len(values)) != 4
            return values[kept], vectors[:, kept]

        return call

    for name in ("block_krylov", "shift_invert"):
        monkeypatch.setattr(inertia, name, careless(getattr(inertia, name)))
    with pytest.raises(fc.SolveError, match="eigenvalues lie below"):
        separated_eigenpairs(L, M, 24, factor=Factorization(L, definite=True))


@pytest.mark.parametrize("cells", [100, 250, 400, 1000, 1400])
def test_an_ill_conditioned_ball_pays_for_rounding(cells):
    # The constant 2 has the h2 norm 2, whatever the mesh: omega is 2 for large noise.
    basis = zoo.unit_basis("line P1", cells)
    space = fc.FullSpace(basis).within_ball(1.0, norm="h2")
    sensors = fc.PointSensors(basis, np.linspace(0.1, 0.9, 7))
    modulus = Modulus(fc.EllipticSource(basis, parameters=space, sensors=sensors))
    for eps in (1.0, 100.0, 1e6):
        assert modulus(eps).value >= 2.0
        assert modulus.below(eps) <= 2.0 * (1.0 + 1e-6)


def test_dense_sensors_in_the_plane():
    modulus = Modulus(seen_everywhere())
    for eps, closeness in ((1e-3, 1.0011), (1e-5, 1.05)):
        assert modulus.below(eps) <= modulus(eps).value * (1.0 + 1e-9)
        assert modulus(eps).value <= closeness * modulus.below(eps)


def test_more_sensors_than_the_basis_has_room_for(monkeypatch):
    # Only the combinations of sensors that see most are used, and the bound stays one.
    monkeypatch.setattr(pencil, "MOST_MODES", 100)
    monkeypatch.setattr(pencil, "MOST_DENSE", 100)
    found = Pencils(seen_everywhere(), None)
    assert found._basis.shape[1] <= 160 < 225
    for kappa, closeness in ((1e-8, 1.0), (1e-4, 2e-4), (1.0, 2e-4)):
        exact = least(found, kappa * found.balance)
        assert exact * (1.0 - closeness) <= found.least(kappa * found.balance)[0] <= exact * (1.0 + 1e-9)


@pytest.mark.parametrize("apart", [30.0, 100.0, 1000.0])
def test_two_components_far_apart(apart):
    # A constant on each of them weighs nothing in the seminorm, and nearly hides the rest.
    one = MeshTri().refined(4)
    basis = Basis(one + one.translated((apart, 0.0)), ElementTriP1())
    points = np.random.default_rng(0).uniform(0.1, 0.9, (7, 2))
    points[3:, 0] += apart
    space = fc.FullSpace(basis).within_ball(1.0, norm="h1-seminorm")
    modulus = Modulus(zoo.source(basis, parameters=space, sensors=points))
    assert modulus.below(1e-3) <= modulus(1e-3).value * (1.0 + 1e-9)
    assert modulus(1e-3).value <= 1.05 * modulus.below(1e-3)


@pytest.mark.parametrize("norm", ["h1", "h1-seminorm", "h2"])
@pytest.mark.parametrize("side", [1.0, 1e-3, 1e-4, 1e3])
def test_a_euclidean_inner_product_in_any_unit_of_length(side, norm):
    """The shift has the units of the form over those of the inner product."""
    grid = np.linspace(0.0, side, 9)
    basis = Basis(MeshTri.init_tensor(grid, grid), ElementTriP1())
    points = side * np.random.default_rng(0).uniform(0.1, 0.9, (10, 2))
    space = fc.FullSpace(basis, inner="euclidean").within_ball(1.0, norm=norm)
    modulus = Modulus(zoo.source(basis, parameters=space, sensors=points))
    found = modulus._pencils
    modulus(1e-3 * np.sqrt(found.balance))
    assert modulus.points
    for point in modulus.points:
        exact = least(found, point.kappa)
        assert exact * (1.0 - 1e-2) <= point.eigenvalue <= exact * (1.0 + 1e-9)


def test_many_sensors_and_many_global_modes():
    basis = MESHES["P1"]()
    modulus = Modulus(on_ball(basis, "h1", sensors=400))
    assert modulus(1e-3).value <= 1.0011 * modulus.below(1e-3)
    wave = fc.SineSpace(zoo.unit_basis("line P1", 1200), 320).within_ball(1.0, norm="h1")
    sensors = fc.PointSensors(wave.basis, np.linspace(0.05, 0.95, 15))
    modulus = Modulus(fc.EllipticSource(wave.basis, parameters=wave, sensors=sensors))
    assert modulus(1e-4).value <= 1.0011 * modulus.below(1e-4)
