"""Several experiments against one assembled block system; equal operators are factorized once."""

import numpy as np
import pytest
import zoo
from orders import taylor_order
from scipy.sparse import block_diag, csr_matrix, diags, vstack
from zoo import unit_basis

import femcert as fc
from femcert.linalg import factorization_count

BASIS = zoo.unit_basis("line P1", 32)
POINTS = [[0.2, 0.5], [0.3, 0.8, 0.9], [0.6]]


def matrices(i, space, **options):
    """Experiment i: the same operator, its own load, readings and offset."""
    rng = np.random.default_rng(i)
    n, N, m = 12, space.size, 2 + i
    K = diags([np.full(n, 2.5), np.full(n - 1, -1.0), np.full(n - 1, -1.0)], [0, 1, -1]).tocsr()
    return fc.MatrixProblem(
        operator=K, load=rng.standard_normal((n, N)), observe=rng.standard_normal((m, n)),
        offset=rng.standard_normal(m), parameters=space, definite=True, **options,
    )  # fmt: skip


def as_one(problems, space):
    """The assembled block system of the same experiments."""
    return fc.MatrixProblem(
        operator=block_diag([problem._operator for problem in problems], format="csr"),
        load=vstack([problem._load for problem in problems]),
        observe=block_diag([problem._observe for problem in problems], format="csr"),
        offset=np.concatenate([problem.offset for problem in problems]),
        parameters=space,
    )


def test_experiments_are_the_assembled_block_system():
    space = fc.CoordinateSpace(5).within_ball(4.0, norm=csr_matrix(np.diag([1.0, 2.0, 3.0, 2.0, 1.0])))
    problems = [matrices(i, space) for i in range(3)]
    several, one = fc.Experiments(problems, parameters=space), as_one(problems, space)
    size = np.abs(one.matrix).max()
    np.testing.assert_allclose(several.forward.matrix, one.matrix, rtol=0, atol=1e-12 * size)
    np.testing.assert_array_equal(several.forward.offset, one.offset)
    rng = np.random.default_rng(9)
    q, w = rng.standard_normal((5, 2)), rng.standard_normal((9, 2))
    np.testing.assert_allclose(several.forward.apply(q), one.apply(q), rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(several.forward.adjoint(w), one.adjoint(w), rtol=0, atol=1e-11 * size)
    assert np.sum(several.forward.apply(q) * w) == pytest.approx(np.sum(q * several.forward.adjoint(w)), rel=1e-12)
    truth = np.array([1.0, -0.5, 0.2, 0.4, -0.1])
    data = fc.Data.gaussian(one.predict(None, truth) + 0.05 * rng.standard_normal(9), std=0.05)
    intervals = [fc.evidence(problem, data).interval(np.ones(5) / 5.0) for problem in (several, one)]
    # The place of a least length is known to eps^1/2, the length to rounding.
    assert intervals[0].estimate == pytest.approx(intervals[1].estimate, abs=1e-6 * intervals[0].half_length)
    assert intervals[0].half_length == pytest.approx(intervals[1].half_length, rel=1e-9)
    candidate = fc.Tikhonov(weight=1e-3)(one, data)
    certificates = [fc.certify(problem, data, candidate, fc.ExactRadius()) for problem in (several, one)]
    # On a ball the centre has a multiplier that is searched for, too.
    assert certificates[0].radius.value == pytest.approx(certificates[1].radius.value, rel=1e-6)
    stabilities = [fc.stability(problem, data=data).constant.value for problem in (several, one)]
    assert stabilities[0] == pytest.approx(stabilities[1], rel=1e-9)


def test_equal_operators_are_factorized_once():
    space = fc.CoordinateSpace(5)
    problems = [matrices(i, space) for i in range(15)]
    before = factorization_count()
    assert fc.Experiments(problems, parameters=space).forward.matrix.shape == (sum(range(2, 17)), 5)
    # One to solve with, and one to count pivots.
    assert factorization_count() - before == 2
    # On their own they know nothing of each other.
    before = factorization_count()
    for i in range(3):
        _ = matrices(i, space).matrix
    assert factorization_count() - before == 6


def test_operators_that_differ_are_not_mixed_up():
    space, reactions = fc.SineSpace(BASIS, 3), (0.0, 2.0, 0.0)
    alone, problems = (
        [zoo.source(BASIS, parameters=space, sensors=at, reaction=c) for at, c in zip(POINTS, reactions, strict=True)]
        for _ in range(2)
    )
    expected, before = np.vstack([problem.matrix for problem in alone]), factorization_count()
    np.testing.assert_array_equal(fc.Experiments(problems).forward.matrix, expected)
    assert factorization_count() - before == 2


def currents(count):
    """A conductivity of the unit square, currents through its right side, and readings along the top."""
    basis = unit_basis("tri P1", 6)
    sensors, space = fc.BoundarySensors(basis, boundary="top", count=5), fc.CosineSpace(basis, 4)
    given = {"parameters": space, "sensors": sensors, "source": None, "dirichlet": {"left": 0.0}}
    drives = [lambda x, i=i: np.cos(i * np.pi * x[1]) for i in range(count)]
    return space, [zoo.coefficient(basis, **given, neumann={"right": drive}) for drive in drives]


def test_currents_through_one_conductivity():
    """Nonlinear: one factorization for each parameter, adjoints and derivatives of the stacked map."""
    space, problems = currents(4)
    several = fc.Experiments(problems)
    q = space.field([0.2, -0.1, 0.3, 0.1])
    before = factorization_count()
    point = several.linearize(q)
    assert factorization_count() - before == 1
    assert point.matrix.shape == (20, 4)
    np.testing.assert_array_equal(point.predicted, np.concatenate([p.observe(p.solve(q)) for p in problems]))
    direction = space.field([0.5, 0.3, -0.2, 0.4])
    slope = point.apply(direction[:, None])[:, 0]
    order = taylor_order(lambda t: several.predict(None, q + t * direction), slope, (1e-2, 5e-3, 2.5e-3))
    assert order == pytest.approx(2.0, abs=0.05)
    w = np.random.default_rng(0).standard_normal((20, 1))
    assert np.sum(point.apply(direction[:, None]) * w) == pytest.approx(direction @ point.adjoint(w)[:, 0], rel=1e-10)
    # The gradient of the misfit, by one adjoint for each experiment.
    data = fc.Data(point.predicted + 0.01 * w[:, 0], 0.05)
    gradient = several.misfit_gradient(q, data)
    np.testing.assert_allclose(gradient, point.matrix.T @ (point.predicted - data.values), atol=1e-12)
    sigma = np.linalg.svd(point.scaled(None), compute_uv=False)[-1]
    assert fc.stability(several, at=q).constant.value == pytest.approx(1.0 / sigma, rel=1e-8)


@pytest.mark.parametrize("modes", [2, 6, None])
def test_batches_are_the_assembled_block_system(modes):
    """Nonlinear: with one operator, another one, and one experiment twice; by forward and by adjoint solves."""
    basis = unit_basis("tri P1", 6)
    space = fc.FullSpace(basis) if modes is None else fc.CosineSpace(basis, modes)
    sensors = [fc.BoundarySensors(basis, boundary=name, count=n) for name, n in (("top", 5), ("bottom", 3))]
    parts = [("left", "right", 0), ("left", "right", 1), ("right", "left", 0), ("left", "right", 0)]

    def problem(fixed, driven, kind):
        return fc.EllipticCoefficient(
            basis, parameters=space, sensors=sensors[kind], dirichlet={fixed: 0.0}, neumann={driven: 1.0 + kind}
        )

    problems = [problem(*part) for part in parts]
    several = fc.Experiments([*problems, problems[0]])
    q = basis.doflocs[0] * (1.0 - basis.doflocs[1])
    before = factorization_count()
    point = several.linearize(q)
    assert factorization_count() - before == 2
    alone = [problem(*part) for part in [*parts, parts[0]]]
    pairs = [each.derivatives(each.solve(q), q) for each in alone]
    A = block_diag([A[each.free][:, each.free] for each, (A, _) in zip(alone, pairs, strict=True)]).toarray()
    C = vstack([C[each.free] for each, (_, C) in zip(alone, pairs, strict=True)])
    H = block_diag([each.sensors.matrix[:, each.free] for each in alone])
    J = -H @ np.linalg.solve(A, (C @ space.matrix).toarray() if modes is None else C @ space.matrix)
    size = np.abs(J).max()
    np.testing.assert_allclose(point.matrix, J, rtol=0, atol=1e-12 * size)
    data = np.concatenate([each.observe(each.solve(q)) for each in alone])
    np.testing.assert_allclose(point.predicted, data, rtol=0, atol=1e-12 * np.abs(data).max())
    rng = np.random.default_rng(0)
    c, w = rng.standard_normal((space.dimension, 20)), rng.standard_normal((len(J), 20))
    fields = np.asarray(space.matrix @ c)
    np.testing.assert_allclose(point.apply(fields), J @ c, rtol=0, atol=1e-11 * size)
    np.testing.assert_allclose(space.matrix.T @ point.adjoint(w), J.T @ w, rtol=0, atol=1e-11 * size)


def test_a_page_has_a_row_for_each_experiment(tmp_path):
    space, problems = currents(3)
    several = fc.Experiments(problems)
    q = space.field([0.2, -0.1, 0.3, 0.1])
    data = several.simulate(q, noise=0.01, seed=1)
    learned = fc.Candidate(None, 0.0 * q, name="network")
    found = fc.no_harm(several, data, baseline=fc.GaussNewton(weight=1e-4), learned=learned, rule=fc.ResidualRadius())
    page = fc.write_report(found, tmp_path / "page.html").read_text()
    rows = page.split("<h2>The experiments</h2>")[1].split("</table>")[0]
    for i, values in enumerate(several.split_data(data)):
        missed = problems[i].predict(problems[i].solve(0.0 * q), 0.0 * q) - values
        share = 100.0 * np.linalg.norm(missed) / np.linalg.norm(values)
        row = rows.split(f"<th>{i + 1}: EllipticCoefficient</th>")[1].split("</tr>")[0]
        assert '<td class="number">5</td>' in row
        assert f"{share:.3g} %" in row
    # A single experiment has no such table.
    one = problems[0]
    flat = fc.Candidate.from_coefficients(one, [0.0] * 4)
    selection = fc.no_harm(
        one, one.simulate(q), baseline=fc.GaussNewton(weight=1e-4), learned=flat, rule=fc.ResidualRadius()
    )
    assert "<h2>The experiments</h2>" not in fc.write_report(selection, tmp_path / "one.html").read_text()


def test_coverage_of_two_experiments():
    """Intervals from both experiments hold, and are shorter than those from each."""
    space = fc.FullSpace(BASIS).within_ball(3.0, norm="h1")
    problems = [
        fc.EllipticSource(BASIS, parameters=space, sensors=fc.AverageSensors(BASIS, points, radius=0.05), reaction=c)
        for points, c in ((np.linspace(0.1, 0.5, 5), 0.0), (np.linspace(0.5, 0.9, 5), 20.0))
    ]
    several = fc.Experiments(problems)
    truth = np.sin(3.0 * BASIS.doflocs[0]) * 0.8
    exact = several.predict(None, truth)
    west = fc.Mean(BASIS, lambda x: x[0] < 0.5)
    first = fc.evidence(several, fc.Data.gaussian(exact, std=1e-3))
    alone = [
        fc.evidence(problem, fc.Data.gaussian(part, std=1e-3)).interval(west).half_length
        for problem, part in zip(problems, several.split_data(first.data), strict=True)
    ]
    assert first.interval(west).half_length < min(alone)
    assert zoo.hits(first, exact, 1e-3, west, west.value(space, truth), seed=3) >= 182


def test_learned_candidates(tmp_path):
    """A trained operator, and files, of several experiments."""
    pytest.importorskip("torch")
    basis = unit_basis("tri P1", 6)
    space = fc.EigenmodeSpace(basis, 3)
    points = np.array([[0.2, 0.3], [0.5, 0.6], [0.7, 0.2], [0.8, 0.8], [0.4, 0.4]])

    def seen(parts):
        sensors = (fc.AverageSensors(basis, part, radius=0.08) for part in parts)
        return fc.Experiments([fc.EllipticSource(basis, parameters=space, sensors=each) for each in sensors])

    several = seen([points[:2], points[2:]])
    operator = fc.learn.NeuralOperator().fit(
        several, sampler=lambda count, rng: rng.standard_normal((count, 3)), count=200, noise=0.01, steps=20, quiet=True
    )
    truth = space.field([1.0, 0.5, -0.4])
    data = several.simulate(truth, noise=0.01)
    found = fc.no_harm(several, data, baseline=fc.Tikhonov(weight=1e-2), learned=operator, rule=fc.ExactRadius())
    assert found.status == "accepted", found.reason
    operator.save(tmp_path / "operator.npz")
    again = fc.learn.NeuralOperator.load(tmp_path / "operator.npz")(several, data)
    np.testing.assert_array_equal(again.parameter, found.parameter)
    with pytest.raises(fc.InputError, match="other sensors"):
        operator(seen([points[2:], points[:2]]), data)
    table = np.column_stack([basis.doflocs.T, truth])
    np.savetxt(tmp_path / "field.csv", table, delimiter=",", header="x,y,parameter", comments="")
    np.testing.assert_allclose(fc.Candidate.from_file(several, tmp_path / "field.csv").parameter, truth)


def test_a_trained_operator_of_a_forward_map():
    pytest.importorskip("torch")
    F = np.random.default_rng(0).standard_normal((8, 3))
    problem = fc.ForwardMap(F)
    operator = fc.learn.NeuralOperator().fit(
        problem, sampler=lambda count, rng: rng.standard_normal((count, 3)), count=100, noise=0.01, steps=5, quiet=True
    )
    q = np.array([1.0, -0.3, 0.2])
    assert np.linalg.norm(operator(problem, problem.simulate(q, noise=0.01)).parameter - q) < 0.2
    with pytest.raises(fc.InputError, match="other sensors"):
        operator(fc.ForwardMap(F[::-1]), problem.simulate(q))
    with pytest.raises(fc.InputError, match="no mesh"):
        fc.Candidate.from_file(problem, "somewhere.csv")
