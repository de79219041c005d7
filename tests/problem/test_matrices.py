"""Matrices from any code, and several experiments, under every rule that asks for no state."""


import numpy as np
import pytest
import zoo
from scipy.sparse import csr_matrix

import femcert as fc

RULES = {
    "residual": fc.ResidualRadius(),
    "operational": fc.OperationalRadius(pde=0.0, bc=0.0),
    "exact": fc.ExactRadius(),
    "dominance": fc.Dominance(),
    "dominance, Gaussian": fc.Dominance(zeta=0.05),
}
LEVEL, VARIANCE = 0.01, 1e-4


def source(points, basis=None, space=None, **options):
    basis = basis or zoo.unit_basis("line P1", 32)
    space = space or fc.SineSpace(basis, 3)
    return zoo.source(basis, parameters=space, sensors=points, reaction=1.0, **options)


def as_matrices(problem):
    """The matrices of a source problem, as another code would write them to a file."""
    system, given = problem.system(), {"parameters": problem.parameters, "offset": problem.offset, "definite": True}
    return fc.MatrixProblem(operator=system.operator, load=system.load, observe=system.sensors, **given)


def measured(problem, seed=0):
    truth = problem.parameters.field([1.0, -0.5, 0.25])
    exact = problem.predict(problem.solve(truth), truth)
    noise = LEVEL * np.random.default_rng(seed).standard_normal(exact.size)
    covariance = np.full(exact.size, VARIANCE)
    return truth, fc.Data(exact + noise, 1.01 * np.linalg.norm(noise) / LEVEL, covariance)


POINTS = np.linspace(0.08, 0.93, 9)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("dirichlet", [0.0, 0.5])
def test_matrices_are_certified_like_the_problem_they_are_of(name, dirichlet):
    problem = source(POINTS, dirichlet=dirichlet)
    matrices = as_matrices(problem)
    truth, data = measured(problem)
    guess = problem.parameters.field([0.9, -0.4, 0.2]) + 0.05 * problem.basis.doflocs[0]
    found = fc.certify(matrices, data, fc.Candidate(None, guess), RULES[name])
    expected = fc.certify(problem, data, fc.Candidate(problem.solve(guess), guess), RULES[name])
    assert found.radius.side == "upper"
    assert found.contains(truth)
    # A weighted rule looks at the state that the other candidate has, of the parameter outside of the class too.
    if not RULES[name].uses_state:
        assert found.radius.value == pytest.approx(expected.radius.value, rel=1e-9)
    assert found.radius.value <= 3.0 * expected.radius.value


@pytest.mark.parametrize("name", RULES)
def test_a_selection_of_matrices(name, tmp_path):
    matrices = as_matrices(source(POINTS))
    truth, data = measured(matrices)
    good, bad = fc.Candidate(None, truth), fc.Candidate(None, -truth)
    baseline = fc.Tikhonov(weight=1e8)
    found = fc.no_harm(matrices, data, baseline=baseline, learned=good, rule=RULES[name])
    assert found.status == "accepted", found.reason
    assert found.state is None
    np.testing.assert_array_equal(found.parameter, truth)
    assert fc.no_harm(matrices, data, baseline=baseline, learned=bad, rule=RULES[name]).status == "rejected"
    assert "MatrixProblem" in fc.write_report(found, tmp_path / "page.html").read_text()
    found.save(tmp_path / "selection.json")
    assert fc.Selection.load(tmp_path / "selection.json").status == "accepted"


def test_baselines_and_constants_of_matrices():
    problem = source(POINTS)
    matrices = as_matrices(problem)
    _, data = measured(problem)
    for solver in (fc.Tikhonov(weight=1e-3), fc.Tikhonov(choose="gcv"), fc.Tikhonov(choose="discrepancy")):
        one, other = solver(problem, data), solver(matrices, data)
        assert other.state is None
        # A minimum is flat: the place of that of GCV is known to eps^1/2, and the parameter moves by at most a quarter
        # of its size with the logarithm of the weight.
        within = 10.0 * np.sqrt(np.finfo(float).eps) * np.abs(one.parameter).max()
        np.testing.assert_allclose(other.parameter, one.parameter, rtol=0, atol=within)
        # At a minimum the gradient is what rounding leaves of F'F c and F'y.
        largest = float(matrices.normal(data).singular[0])
        left = 1e-12 * largest * (largest * matrices.parameters.norm(other.parameter) + data.norm(data.values))
        assert max(one.optimality, other.optimality) <= left
    one, other = fc.stability(problem, data=data), fc.stability(matrices, data=data)
    assert other.constant.side == "upper"
    assert other.constant.value == pytest.approx(one.constant.value, rel=1e-9)


@pytest.mark.parametrize("rule", [fc.GuaranteedRadius(), fc.ExactRadius(guarantee="continuous")])
def test_claims_about_the_equation_need_one(rule):
    matrices = as_matrices(source(POINTS))
    truth, data = measured(matrices)
    with pytest.raises(fc.UncertifiedError):
        fc.certify(matrices, data, fc.Candidate(None, truth), rule)


def test_coordinates_with_a_gram_matrix_and_a_ball(tmp_path):
    rng = np.random.default_rng(3)
    K, L, H = np.diag([2.0, 3.0, 4.0, 5.0]), rng.standard_normal((4, 3)), rng.standard_normal((6, 4))
    root = rng.standard_normal((3, 3))
    gram = root.T @ root + np.eye(3)
    problem = fc.MatrixProblem(operator=K, load=L, observe=H, gram=gram, offset=np.ones(6))
    F = H @ np.linalg.solve(K, L)
    np.testing.assert_allclose(problem.forward_matrix(), F, rtol=0, atol=1e-13)
    truth = np.array([1.0, -2.0, 0.5])
    assert problem.parameters.norm(truth) == pytest.approx(np.sqrt(truth @ gram @ truth), rel=1e-12)
    # sigma_min of F R^-1 with R'R = G.
    sigma = np.linalg.svd(F @ np.linalg.inv(np.linalg.cholesky(gram).T), compute_uv=False)
    assert fc.stability(problem).constant.value == pytest.approx(1.0 / sigma[-1], rel=1e-9)
    data = fc.Data(F @ truth + 1.0 + 0.01 * rng.standard_normal(6), 0.05)
    radii = []
    ball = 1.2 * problem.parameters.norm(truth)
    for space in (problem.parameters, problem.parameters.within_ball(ball, norm=csr_matrix(gram))):
        posed = fc.MatrixProblem(operator=K, load=L, observe=H, parameters=space, offset=np.ones(6))
        certificate = fc.certify(posed, data, fc.Candidate(None, np.zeros(3)), fc.ExactRadius())
        assert certificate.contains(truth)
        radii.append(certificate.radius.value)
    assert radii[1] <= radii[0] * (1.0 + 1e-9)
    with pytest.raises(fc.InputError, match="mesh"):
        problem.parameters.within_ball(1.0, norm="h1")
    found = fc.no_harm(
        problem, data, baseline=fc.Tikhonov(weight=1.0), learned=fc.Candidate(None, truth), rule=fc.ExactRadius()
    )
    assert "no mesh to draw on" in fc.write_report(found, tmp_path / "page.html").read_text()
    with pytest.raises(fc.InputError, match="mesh"):
        fc.write_fields(found, tmp_path / "fields.vtu")
    with pytest.raises(fc.InputError, match="mesh"):
        fc.Candidate.from_functions(problem, parameter=1.0)


def test_matrices_that_do_not_fit():
    eyes = {"operator": np.eye(3), "load": np.eye(3), "observe": np.eye(3)}
    wrongs = {"operator": np.eye(2)}, {"load": np.eye(2)}, {"observe": np.full((3, 3), np.nan)}, {"offset": [1.0]}
    for wrong in (*wrongs, {"parameters": fc.CoordinateSpace(3), "gram": np.eye(3)}):
        with pytest.raises(fc.InputError, match=next(reversed(wrong))):
            fc.MatrixProblem(**{**eyes, **wrong})
    candidate = fc.Candidate(np.ones(3), np.ones(3))
    with pytest.raises(fc.InputError, match="state"):
        fc.certify(fc.MatrixProblem(**eyes), fc.Data(np.ones(3), 0.1), candidate, fc.ExactRadius())


# Several experiments.


@pytest.mark.parametrize("name", RULES)
def test_two_experiments_are_one_with_both_sensor_sets(name):
    basis = zoo.square(3)
    space = fc.EigenmodeSpace(basis, 3)
    points = 0.1 + 0.8 * np.random.default_rng(0).random((8, 2))
    whole = source(points, basis, space, dirichlet=0.3)
    both = fc.Experiments([source(part, basis, space, dirichlet=0.3) for part in (points[:3], points[3:])])
    np.testing.assert_allclose(both.forward.matrix, whole.forward_matrix(), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(both.forward.offset, whole.offset, rtol=1e-12)
    truth, data = measured(whole)
    np.testing.assert_allclose(both.split_data(data)[1], data.values[3:])
    guess = space.field([0.9, -0.4, 0.2])
    one = fc.certify(whole, data, fc.Candidate(whole.solve(guess), guess), RULES[name])
    other = fc.certify(both, data, fc.Candidate(None, guess), RULES[name])
    assert other.contains(truth)
    if name != "residual":
        # The allowance for rounding is another one, 1e-12 of the data or so.
        assert other.radius.value == pytest.approx(one.radius.value, rel=1e-10)
    a, b = (fc.Tikhonov(weight=1e-4)(problem, data).parameter for problem in (whole, both))
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * np.abs(a).max() * np.linalg.cond(whole.forward_matrix()))


def test_experiments_of_a_nonlinear_problem():
    basis, points = zoo.unit_basis("line P1", 32), np.linspace(0.1, 0.9, 6)
    space = fc.CosineSpace(basis, 2)
    whole, *parts = (zoo.coefficient(basis, parameters=space, sensors=at) for at in (points, points[:2], points[2:]))
    both, q = fc.Experiments(parts), space.field([0.1, 0.2])
    assert both.forward is None
    np.testing.assert_allclose(both.linearize(q).matrix, whole.jacobian(q), rtol=1e-12)
    np.testing.assert_allclose(both.predict(None, q), whole.observe(whole.solve(q)), rtol=1e-12)
    data = fc.Data(whole.observe(whole.solve(q)), 1e-3)
    a, b = (fc.GaussNewton(weight=1e-6)(problem, data).parameter for problem in (whole, both))
    np.testing.assert_allclose(a, b, atol=1e-8)


def test_experiments_that_do_not_belong_together():
    with pytest.raises(fc.InputError, match="problems"):
        fc.Experiments([])
    with pytest.raises(fc.InputError, match="another class"):
        fc.Experiments([source([0.2]), source([0.3], space=fc.CosineSpace(source([0.2]).basis, 3))])


# Rounding: what a solve, a load and an offset may lose is part of every radius.


@pytest.mark.parametrize("covariance", [None, [1.0, 4.0, 1.0, 9.0], np.diag([1.0, 2.0, 3.0, 4.0]) + 0.5])
def test_large_offsets(covariance):
    rng = np.random.default_rng(0)
    H, q = rng.standard_normal((4, 2)), np.array([0.3, -1.0])
    offset = np.full(4, 1e8)
    problem = fc.MatrixProblem(operator=2.0 * np.eye(2), load=np.eye(2), observe=H, offset=offset)
    data = fc.Data(problem.predict(None, q), 0.0, covariance)
    certificate = fc.certify(problem, data, fc.Tikhonov(weight=1e-30)(problem, data), fc.ExactRadius())
    assert certificate.error(q) <= certificate.radius.value <= 1e-3


def test_loads_that_cancel():
    basis = zoo.unit_basis("line P1", 4)
    space = fc.CosineSpace(basis, 2)
    beside = np.linalg.svd(np.asarray(space.matrix).T)[2][2:]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        L = 1e10 * rng.standard_normal((3, 3)) @ beside + rng.standard_normal((3, 5))
        K, H = np.eye(3) + 0.2 * rng.standard_normal((3, 3)), rng.standard_normal((2, 3))
        problem = fc.MatrixProblem(operator=K, load=L, observe=H, parameters=space)
        # What is left of sums of numbers of 1e10.
        F = H @ np.linalg.solve(K, L) @ space.matrix
        assert problem.error(None) >= 1e-6
        assert problem.error(None) >= np.abs(problem.matrix - F).max()


def test_one_experiment_linear_the_other_not():
    basis = zoo.unit_basis("line P1", 32)
    space = fc.CosineSpace(basis, 2)
    given = {"parameters": space, "sensors": fc.PointSensors(basis, POINTS[:3])}
    members = [fc.EllipticSource(basis, dirichlet=0.2, **given), fc.EllipticCoefficient(basis, source=1.0, **given)]
    q = space.field([0.1, 0.2])
    for problems in (members, members[::-1]):
        both = fc.Experiments(problems)
        np.testing.assert_allclose(both.linearize(q).predicted, both.predict(None, q), rtol=1e-12)
        data = fc.Data(both.predict(None, q), 1e-6)
        np.testing.assert_allclose(fc.GaussNewton(weight=1e-9)(both, data).parameter, q, atol=1e-5)


def test_matrices_with_rows_of_prescribed_values():
    path = csr_matrix(np.diag([1.0, 2.0, 2.0, 1.0]) - np.eye(4, k=1) - np.eye(4, k=-1))    # no value is prescribed
    problem = fc.MatrixProblem(operator=path, load=np.eye(4), observe=np.eye(4)[1:3], parameters=fc.CoordinateSpace(4))
    with pytest.raises(fc.SolveError, match=r"singular.*prescribed values left out"):
        problem.predict(None, np.ones(4))
