"""C_stab against a plain numpy SVD in generalized norms, and what makes it infinite."""

from functools import partial

import numpy as np
import pytest
import zoo
from numpy.polynomial.legendre import Legendre
from zoo import laplace, mass

import femcert as fc


def line(n, k, m, name="line P1", inner="l2"):
    points = np.linspace(0.05, 0.95, m)[:, None]
    return zoo.source(name, n, parameters=lambda basis: fc.SineSpace(basis, k, inner=inner), sensors=points)


def square(level=3, degree=1, kind="tri", m=8, inner="l2"):
    space = partial(fc.EigenmodeSpace, k=4, inner=inner)
    return zoo.source(zoo.square(level, degree, kind), parameters=space, sensors=m)


def dense_forward(problem):
    basis, B = problem.basis, problem.parameters.matrix
    K, M = laplace.assemble(basis).toarray(), mass.assemble(basis).toarray()
    free = np.setdiff1d(np.arange(basis.N), basis.get_dofs().flatten())
    states = np.zeros((basis.N, B.shape[1]))
    states[free] = np.linalg.solve(K[np.ix_(free, free)], (M @ B)[free])
    return problem.sensors.matrix.toarray() @ states, M


def generalized_singular_values(F, G, C):
    """Roots of the eigenvalues of ``G^-1 F' C^-1 F``, descending."""
    values = np.linalg.eigvals(np.linalg.solve(G, F.T @ np.linalg.solve(C, F)))
    return np.sqrt(np.sort(values.real)[::-1])


@pytest.mark.parametrize("inner", ["l2", "euclidean"])
@pytest.mark.parametrize("covariance", [None, "variances", "matrix"])
@pytest.mark.parametrize("make", [
    partial(line, 20, 4, 9), partial(line, 10, 4, 9, "line P2"), square, partial(square, 2, 2),
    partial(square, 3, 1, "quad"),
])  # fmt: skip
def test_against_dense_algebra(make, inner, covariance):
    problem = make(inner=inner)
    F, M = dense_forward(problem)
    m = len(F)
    rng = np.random.default_rng(1)
    root = rng.standard_normal((m, m))
    variances = np.diag(np.linspace(0.2, 3.0, m))
    C = {None: np.eye(m), "variances": variances, "matrix": root @ root.T + np.eye(m)}[covariance]
    given = {None: None, "variances": np.diag(C), "matrix": C}[covariance]
    W = M if inner == "l2" else np.eye(len(M))
    B = problem.parameters.matrix
    expected = generalized_singular_values(F, B.T @ W @ B, C)
    found = fc.stability(problem, data=None if given is None else fc.Data(np.zeros(m), 0.0, given))
    np.testing.assert_allclose(found.singular_values, expected, rtol=1e-6)
    assert found.constant.value == pytest.approx(1.0 / expected[-1], rel=1e-6)
    # Rounded to the safe side.
    assert found.constant.value > 1.0 / found.sigma_min
    assert found.constant.side == "upper"
    assert found.scope == "discrete"
    assert found.exponent == 1.0
    assert found.sigma_max == found.singular_values[0]
    assert found.condition == pytest.approx(expected[0] / expected[-1], rel=1e-6)

    # The weakest field has unit norm, and the sensors see it as sigma_min.
    weakest = found.weakest
    assert weakest @ W @ weakest == pytest.approx(1.0, rel=1e-9)
    c, remainder = problem.parameters.project(weakest)
    assert np.abs(remainder).max() < 1e-9 * np.abs(weakest).max()
    seen = F @ c
    assert np.sqrt(seen @ np.linalg.solve(C, seen)) == pytest.approx(found.sigma_min, rel=1e-6)
    assert not weakest.flags.writeable
    assert not found.singular_values.flags.writeable


def test_no_direction_is_weaker_than_the_constant_says():
    problem = line(30, 6, 9)
    C = fc.stability(problem).constant.value
    F = problem.forward_matrix()
    for seed in range(50):
        c = np.random.default_rng(seed).standard_normal(6)
        assert problem.parameters.norm(problem.parameters.field(c)) <= C * np.linalg.norm(F @ c)


def test_the_constant_does_not_depend_on_the_mesh_in_l2():
    constants = [fc.stability(line(n, 5, 12)).constant.value for n in (80, 160, 320, 640)]
    # The exact constant on sines that do not alias at the sensors; the discrete one converges with order 2.
    errors = np.abs(np.diff(constants))
    assert constants[-1] == pytest.approx(constants[0], rel=5e-3)
    assert np.all(errors[1:] < 0.5 * errors[:-1])
    drift = [fc.stability(line(n, 5, 12, inner="euclidean")).constant.value for n in (80, 640)]
    assert drift[1] == pytest.approx(np.sqrt(8) * drift[0], rel=0.02)


def test_the_constant_does_not_depend_on_the_mesh_in_2d():
    constants = [fc.stability(square(n, m=10)).constant.value for n in (4, 5, 6)]
    assert constants[2] == pytest.approx(constants[1], rel=0.02)
    assert abs(constants[2] - constants[1]) < 0.5 * abs(constants[1] - constants[0])


@pytest.mark.parametrize("degree", [5, 8, 9, 10])
def test_the_constant_does_not_depend_on_the_coordinates(degree):
    # Monomials and Legendre polynomials span the same class; rounding in the bad basis must go to the safe side.
    basis = zoo.unit_basis("line P2", 100)
    sensors = fc.PointSensors(basis, np.linspace(0.02, 0.98, 30))
    bad = [lambda x, j=j: x[0] ** j for j in range(degree)]
    good = [lambda x, j=j: Legendre.basis(j)(2 * x[0] - 1) for j in range(degree)]
    found, exact = (
        fc.stability(zoo.source(basis, parameters=(fc.FunctionSpace, f), sensors=sensors)).constant.value
        for f in (bad, good)
    )
    assert exact * (1.0 - 1e-11) <= found <= 1.1 * exact


@pytest.mark.parametrize("level", [3, 5])
def test_sensors_that_do_not_see_a_mode(level):
    points = np.column_stack([np.full(9, 0.5), np.linspace(0.1, 0.9, 9)])
    all_of_them, fewer = (zoo.source(zoo.square(level, 1, "quad"), parameters=k, sensors=points) for k in (3, 2))
    with pytest.raises(fc.UncertifiedError, match="C_stab is infinite"):
        fc.stability(all_of_them)
    # One mode fewer and they see them all.
    assert fc.stability(fewer).constant.value < 100.0


def test_heat_long_times_are_not_called_certain():
    # exp(-kappa j^2 pi^2 T) falls below what the solves resolve: better no constant than a made up one.
    problem = zoo.heat("line P1", 100, parameters=6, sensors=9, times=1.0, diffusivity=0.2, scheme="exact")
    with pytest.raises(fc.UncertifiedError, match="zero to rounding"):
        fc.stability(problem)


def test_heat_constant_grows_with_time():
    constants = []
    for time in (0.02, 0.08, 0.16):
        problem = zoo.heat("line P1", 40, parameters=4, sensors=9, times=time, diffusivity=0.05, scheme="exact")
        constants.append(fc.stability(problem).constant.value)
        # On nine equispaced points the sines stay orthogonal, so the decay of the fourth mode is all there is.
        decay = np.exp(-0.05 * (4 * np.pi) ** 2 * time)
        assert constants[-1] == pytest.approx(1.0 / (np.sqrt(10) * decay), rel=2e-2)
    assert constants[0] < constants[1] < constants[2]


def test_nonlinear_constant_is_an_estimate_at_a_parameter():
    problem = zoo.coefficient("line P1", parameters=(fc.SineSpace, 3), sensors=8)
    with pytest.raises(fc.InputError, match="give at="):
        fc.stability(problem)
    c = np.array([0.3, -0.2, 0.1])
    q = problem.parameters.field(c)
    found = fc.stability(problem, at=q)

    def values(c):
        return problem.observe(problem.solve(problem.parameters.field(c)))

    J = np.column_stack([(values(c + s) - values(c - s)) / 2e-5 for s in 1e-5 * np.eye(3)])
    M = mass.assemble(problem.basis).toarray()
    B = problem.parameters.matrix
    np.testing.assert_allclose(
        found.singular_values, generalized_singular_values(J, B.T @ M @ B, np.eye(8)), rtol=1e-6
    )
    assert (found.constant.side, found.scope) == ("estimate", "estimate")


def test_record_round_trip():
    found = fc.stability(line(20, 3, 5))
    again = fc.Stability.from_dict(found.to_dict())
    assert again.to_dict() == found.to_dict()
    assert again.constant == found.constant
    assert np.array_equal(again.singular_values, found.singular_values)
    assert again.weakest is None
