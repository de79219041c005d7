"""The neural operator: what it learns, what it refuses, and its files."""


import numpy as np
import pytest
import zoo
from learn_helpers import line_coefficient, line_source
from skfem import Basis, ElementTriP1, MeshTri

import femcert as fc

torch = pytest.importorskip("torch")
from femcert.learn import NeuralOperator  # noqa: E402


def gaussian(count, rng):
    return rng.standard_normal((count, 3)) * [1.0, 0.5, 0.2] + [2.0, 0.0, 0.0]


@pytest.fixture(scope="module")
def trained():
    problem = line_source()
    return problem, NeuralOperator(width=8).fit(problem, sampler=gaussian, count=100, steps=50, quiet=True)


def test_it_learns_a_linear_map(trained):
    problem, operator = trained
    c = gaussian(20, np.random.default_rng(9))
    assert operator.coefficients(c @ problem.forward_matrix().T) == pytest.approx(c, abs=2e-2)
    candidate = operator(problem, problem.simulate(problem.parameters.field(c[0])))
    assert problem.parameters.project(candidate.parameter)[0] == pytest.approx(c[0], abs=2e-2)
    assert candidate.name == "operator"


def test_training_improves_on_the_best_linear_map_where_the_truth_is_not_linear():
    problem = line_source()

    def bent(count, rng):
        s = rng.uniform(-1.0, 1.0, count)
        return np.column_stack([s, s**2, np.zeros(count)])

    training = {"count": 200, "noise": 0.2, "steps": 400, "rate": 1e-2, "quiet": True}
    operator = NeuralOperator(width=16).fit(problem, sampler=bent, **training)
    losses = operator.record.losses["misfit"]
    assert losses[-1] < 0.8 * losses[0]
    # The third coordinate never varies, so nothing is learned of it, and nothing divided by zero.
    assert operator.coefficients(np.ones(9))[2] == pytest.approx(0.0, abs=1e-6)


def test_it_is_trained_for_the_noise_that_is_given():
    problem = line_source()
    rng = np.random.default_rng(3)
    c = gaussian(200, rng)
    clean = c @ problem.forward_matrix().T
    noisy = clean + 0.1 * np.linalg.norm(clean, axis=1, keepdims=True) / 3.0 * rng.standard_normal(clean.shape)
    options = {"sampler": gaussian, "count": 300, "steps": 50, "quiet": True}
    blunt, sharp = (NeuralOperator(width=8).fit(problem, noise=noise, **options) for noise in (0.1, 0.0))
    errors = [np.linalg.norm(operator.coefficients(noisy) - c) for operator in (blunt, sharp)]
    assert errors[0] < 0.7 * errors[1]


def test_a_nonlinear_problem_is_simulated_sample_by_sample():
    problem = line_coefficient()

    def near_one(count, rng):
        return np.column_stack([np.zeros(count), rng.uniform(-0.3, 0.3, count)])

    operator = NeuralOperator(width=8).fit(problem, sampler=near_one, count=30, steps=20, quiet=True)
    c = np.array([0.0, 0.2])
    data = problem.simulate(problem.parameters.field(c))
    assert problem.parameters.project(operator(problem, data).parameter)[0] == pytest.approx(c, abs=0.03)


def test_the_mean_of_the_training_data_is_there_for_lost_sensors(trained):
    problem, operator = trained
    # The mean of the samples is (2, 0, 0) but for chance.
    assert operator.mean_values == pytest.approx(problem.forward_matrix() @ [2.0, 0.0, 0.0], rel=0.3, abs=0.01)
    operator.mean_values[:] = 0.0
    assert operator.mean_values.any()


def test_the_same_seed_gives_the_same_operator(trained):
    problem, operator = trained
    before = torch.get_rng_state()
    again = NeuralOperator(width=8).fit(problem, sampler=gaussian, count=100, steps=50, quiet=True)
    other = NeuralOperator(width=8).fit(problem, sampler=gaussian, count=100, steps=50, seed=1, quiet=True)
    y = np.linspace(0.0, 1.0, 9)
    assert np.array_equal(again.coefficients(y), operator.coefficients(y))
    assert not np.array_equal(other.coefficients(y), operator.coefficients(y))
    assert torch.equal(torch.get_rng_state(), before)


def test_save_then_load_is_the_identity(trained, tmp_path):
    problem, operator = trained
    operator.save(tmp_path / "operator.npz")
    loaded = NeuralOperator.load(tmp_path / "operator.npz", name="again")
    y = np.random.default_rng(1).standard_normal((5, 9))
    assert np.array_equal(loaded.coefficients(y), operator.coefficients(y))
    assert loaded(problem, fc.Data(y[0], 0.1)).name == "again"


def test_wrong_use_is_refused(trained):
    problem, operator = trained
    larger = fc.EllipticSource(problem.basis, parameters=fc.SineSpace(problem.basis, 4), sensors=problem.sensors)
    data, short = fc.Data(np.ones(9), 0.0), {"sampler": lambda count, rng: np.zeros((count, 2)), "count": 10}
    for deed, word in (
        (lambda: NeuralOperator()(problem, data), "not trained"),
        (lambda: NeuralOperator().save("operator.npz"), "not trained"),
        (lambda: operator.coefficients(np.ones(4)), "trained for 9 sensors"),
        (lambda: NeuralOperator().fit(problem, **short), r"expected \(10, 3\)"),
        (lambda: NeuralOperator().fit(problem, sampler=3), "callable sampler"),
        (lambda: operator(larger, data), "the problem's class has 4"),
    ):
        with pytest.raises(fc.InputError, match=word):
            deed()


def test_under_more_noise_than_it_was_trained_for_dominance_never_takes_it_where_it_is_worse():
    """Whenever the operator is worse than the baseline, it is rejected; 200 trials are in `operator_trials.py`."""
    problem = line_source()
    operator = NeuralOperator(width=8).fit(problem, sampler=gaussian, count=200, noise=0.001, steps=50, quiet=True)
    rng, rejected, worse = np.random.default_rng(0), 0, 0
    for seed in range(60):
        truth = problem.parameters.field(gaussian(1, rng)[0])
        data = problem.simulate(truth, noise=0.1, seed=seed, oracle=True)
        selection = fc.no_harm(
            problem, data, baseline=fc.Tikhonov(choose="discrepancy"), learned=operator, rule=fc.Dominance()
        )
        harmful = selection.learned.error(truth) > selection.baseline.error(truth)
        assert not (selection.accepted and harmful)
        rejected, worse = rejected + (not selection.accepted), worse + harmful
    assert rejected >= worse > 6


# The class it was trained for


def plate(mesh=None, *, turned=(), shift=0.0):
    """Twelve modes of the square on a mesh, some with the other sign."""
    basis = Basis(MeshTri.init_sqsymmetric().refined(3) if mesh is None else mesh, ElementTriP1())
    modes = fc.EigenmodeSpace(basis, 12)
    signs = np.ones(12)
    signs[list(turned)] = -1.0
    points = np.stack(np.meshgrid([0.2, 0.4, 0.6, 0.8], [0.3, 0.5, 0.7]), axis=-1).reshape(-1, 2)
    points = points + np.array([shift, 0.0])
    sensors = fc.AverageSensors(basis, points, radius=0.1)
    return zoo.source(basis, parameters=(fc.ParameterSpace, modes.matrix * signs), sensors=sensors)


@pytest.fixture(scope="module")
def trained_on_plate():
    def sampler(count, rng):
        return rng.standard_normal((count, 12))

    return NeuralOperator(width=4).fit(plate(), sampler=sampler, count=50, steps=5, quiet=True)


def test_another_mesh_is_refused(trained_on_plate):
    """Twelve coordinates there mean other fields, which nothing else would tell."""
    data = fc.Data(np.ones(12), 0.1)
    for mesh in (MeshTri.init_sqsymmetric().refined(4), MeshTri().refined(3), MeshTri().refined(4)):
        with pytest.raises(fc.InputError, match="operator was made for other coordinates"):
            trained_on_plate(plate(mesh), data)
    selection = fc.no_harm(
        plate(MeshTri().refined(4)), data, baseline=fc.Tikhonov(weight=1e-3), learned=trained_on_plate,
        rule=fc.ResidualRadius(),
    )  # fmt: skip
    assert not selection.accepted
    assert "made for other coordinates" in selection.reason


def test_a_mode_with_the_other_sign_is_refused(trained_on_plate):
    data = fc.Data(np.ones(12), 0.1)
    with pytest.raises(fc.InputError, match="coordinate 10 has the other sign here, as on another mesh; make it anew"):
        trained_on_plate(plate(turned=[9]), data)
    with pytest.raises(fc.InputError, match=r"on a domain in the box \[\[0.0, 1.0\], \[0.0, 1.0\]\]; this one is in"):
        trained_on_plate(plate(MeshTri.init_sqsymmetric().refined(3).translated((0.1, 0.0))), data)
    with pytest.raises(fc.InputError, match="other sensors: sensor 1 is another one here"):
        trained_on_plate(plate(shift=0.02), data)


def test_the_same_class_of_another_session_is_taken(trained_on_plate, tmp_path):
    """The mesh with other numbers of its nodes and cells, and the operator from its file."""
    trained_on_plate.save(tmp_path / "operator.npz")
    loaded = NeuralOperator.load(tmp_path / "operator.npz")
    data = fc.Data(np.linspace(0.0, 1.0, 12), 0.1)
    home = plate()
    expected = trained_on_plate(home, data).parameter
    assert np.array_equal(loaded(home, data).parameter, expected)
    mesh = home.basis.mesh
    order, cells = np.random.default_rng(0).permutation(mesh.nvertices), np.arange(mesh.nelements)[::-1]
    again = plate(MeshTri(mesh.p[:, order], np.argsort(order)[mesh.t[:, cells]]))
    assert loaded(again, data).parameter == pytest.approx(expected[order], rel=1e-6, abs=1e-6 * np.abs(expected).max())
