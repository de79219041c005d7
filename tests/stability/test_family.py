"""The eigenproblems behind the modulus: the reduced ones against the whole pencil, on other elements and balls."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh
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
from femcert.linalg import inertia, separated_eigenpairs
from femcert.linalg.factor import Factorization
from femcert.stability.family import DenseFamily, ReducedFamily, adjoint_matrix
from femcert.stability.modulus import Modulus

MESHES = {
    "P1": lambda: Basis(MeshTri.init_sqsymmetric().refined(4), ElementTriP1()),
    "P2": lambda: Basis(MeshTri().refined(3), ElementTriP2()),
    "Q1": lambda: Basis(MeshQuad().refined(4), ElementQuad1()),
    "Q2": lambda: Basis(MeshQuad().refined(3), ElementQuad2()),
    "line P1": lambda: Basis(MeshLine(np.linspace(0.0, 1.0, 402)), ElementLineP1()),
    "line P2": lambda: Basis(MeshLine(np.linspace(0.0, 1.0, 202)), ElementLineP2()),
    "stretched": lambda: Basis(MeshTri.init_tensor(np.linspace(0, 1, 30), np.linspace(0, 0.05, 12)), ElementTriP1()),
}


def on_ball(basis, norm, sensors=11, seed=0):
    box = np.ptp(basis.mesh.p, axis=1)
    points = np.random.default_rng(seed).uniform(0.05, 0.95, (sensors, len(box))) * box
    space = fc.FullSpace(basis).within_ball(1.0, norm=norm)
    return fc.EllipticSource(basis, parameters=space, sensors=fc.PointSensors(basis, points))


def family_of(problem, kind=ReducedFamily):
    space = problem.parameters
    norm = space.ball.norm
    return kind(adjoint_matrix(problem, None), space.form(norm), space.gram, seminorm=norm == "h1-seminorm")


def least(family, kappa):
    """By the dense eigensolver, on the whole pencil."""
    A = family.adjoint @ family.adjoint.T + kappa * family.form.toarray()
    return eigh(A, family.gram.toarray(), eigvals_only=True, subset_by_index=[0, 0])[0]


@pytest.mark.parametrize("norm", ["l2", "h1", "h1-seminorm", "h2"])
@pytest.mark.parametrize("mesh", MESHES)
def test_the_reduced_eigenvalue_is_the_least_one_from_below(mesh, norm):
    if (mesh, norm) == ("P2", "h2"):
        with pytest.raises(fc.InputError, match="row sums"):
            on_ball(MESHES[mesh](), norm).parameters.form(norm)
        return
    family = family_of(on_ball(MESHES[mesh](), norm))
    for kappa in family.balance * np.geomspace(1e-6, 1e2, 5):
        value, vector = family.least(kappa)
        exact = least(family, kappa)
        # The dense eigensolver errs by this much itself.
        rounding = 1e-13 * float(np.abs(family.adjoint @ family.adjoint.T).max() + kappa * abs(family.form).max())
        rounding /= float(family.gram.diagonal().min())
        assert value <= exact * (1.0 + 1e-9) + rounding
        # The form of an h2 ball has a condition number of 1e12 here, which costs some digits, to the safe side.
        assert value >= exact * (1.0 - (5e-3 if norm == "h2" else 2e-3)) - rounding
        quotient = np.sum((family.adjoint.T @ vector) ** 2) + kappa * float(vector @ (family.form @ vector))
        assert quotient / float(vector @ (family.gram @ vector)) <= exact * (1.0 + 2e-3) + rounding


@pytest.mark.parametrize("norm", ["l2", "h1", "h1-seminorm", "h2"])
def test_growing_keeps_the_bound(norm):
    family = family_of(on_ball(MESHES["P1"](), norm, sensors=40))
    before = [family.least(kappa)[0] for kappa in family.balance * np.geomspace(1e-6, 1.0, 4)]
    family.grow()
    after = [family.least(kappa)[0] for kappa in family.balance * np.geomspace(1e-6, 1.0, 4)]
    exact = [least(family, kappa) for kappa in family.balance * np.geomspace(1e-6, 1.0, 4)]
    assert np.all(np.array(after) <= np.array(exact) * (1.0 + 1e-6))
    assert np.all(np.array(after) >= np.array(before) * (1.0 - 1e-6))


@pytest.mark.parametrize("seed", range(4))
def test_both_families_give_one_modulus(seed):
    problem = on_ball(MESHES["P1"](), "h1", sensors=12, seed=seed)
    levels = [1e-5, 1e-3, 1e-1]
    sparse = Modulus(problem)
    assert isinstance(sparse._family, ReducedFamily)
    whole = Modulus(problem)
    whole._family = family_of(problem, DenseFamily)
    for one, other in zip(sparse(levels), whole(levels), strict=True):
        assert one.value == pytest.approx(other.value, rel=1.5e-3)


def test_many_sensors_and_many_global_modes():
    basis = MESHES["P1"]()
    modulus = Modulus(on_ball(basis, "h1", sensors=400))
    assert modulus(1e-3).value <= 1.0011 * modulus.below(1e-3)
    wave = fc.SineSpace(Basis(MeshLine(np.linspace(0, 1, 1201)), ElementLineP1()), 320).within_ball(1.0, norm="h1")
    sensors = fc.PointSensors(wave.basis, np.linspace(0.05, 0.95, 15))
    modulus = Modulus(fc.EllipticSource(wave.basis, parameters=wave, sensors=sensors))
    assert isinstance(modulus._family, ReducedFamily)
    assert modulus(1e-4).value <= 1.0011 * modulus.below(1e-4)


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
