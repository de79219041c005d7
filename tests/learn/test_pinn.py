"""Inverse PINNs: manufactured solutions, determinism, boundary values, optimality, and what goes wrong."""

import numpy as np
import pytest
import zoo
from learn_helpers import differences, inner_points, line_coefficient, line_heat, line_source, p1_square, square_source
from zoo import OwnSource

import femcert as fc

torch = pytest.importorskip("torch")
from femcert.learn import PINN  # noqa: E402

SMALL = {"width": 10, "depth": 2, "points": 40, "adam": 50, "lbfgs": 120, "quiet": True}


def relative_error(problem, candidate, truth):
    return problem.parameters.norm(candidate.parameter - truth) / problem.parameters.norm(truth)


def case(problem, coefficients, noise=0.0):
    truth = problem.parameters.field(coefficients)
    return truth, problem.simulate(truth, noise=noise, seed=1, oracle=True)


@pytest.mark.parametrize("parameter", ["class", "network"])
@pytest.mark.parametrize("boundary", ["hard", "soft"])
def test_a_source_on_a_line_is_found(parameter, boundary):
    problem = line_source()
    truth, data = case(problem, [1.0, -0.5, 0.0])
    candidate = PINN(parameter=parameter, boundary=boundary, **SMALL)(problem, data)
    # A network for q is free between the sensors, and slow at the ends, where nothing but smoothness holds it.
    assert relative_error(problem, candidate, truth) < (0.02 if parameter == "class" else 0.6)
    exact = problem.solve(truth)
    assert np.abs(candidate.state - exact).max() < 0.03 * np.abs(exact).max()


def test_a_source_with_a_conductivity_that_varies_and_a_reaction_is_found():
    problem = line_source(
        conductivity=lambda x: 1.0 + x[0] ** 2, reaction=2.0, dirichlet={"left": 0.5}, robin={"right": (1.0, 0.3)}
    )
    truth, data = case(problem, [3.0, -2.0, 1.0])
    candidate = PINN(**SMALL)(problem, data)
    assert relative_error(problem, candidate, truth) < 0.06
    assert candidate.state[problem.boundary.prescribed] == pytest.approx(0.5, abs=1e-12)


def test_a_problem_of_the_user_is_solved_by_its_strong_form():
    shipped = line_source()
    problem = OwnSource(shipped.basis, parameters=shipped.parameters, sensors=shipped.sensors)
    truth, data = case(problem, [3.0, -2.0, 1.0])
    candidate = PINN(**SMALL)(problem, data)
    assert relative_error(problem, candidate, truth) < 0.06
    assert np.abs(candidate.state - problem.solve(truth)).max() < 0.03 * np.abs(candidate.state).max()


@pytest.mark.parametrize("parameter", ["class", "network"])
def test_an_initial_temperature_is_found(parameter):
    problem = line_heat()
    truth, data = case(problem, [1.0, 0.3])
    candidate = PINN(parameter=parameter, **{**SMALL, "lbfgs": 200, "points": 100})(problem, data)
    assert candidate.state.shape == problem.solve(truth).shape
    assert relative_error(problem, candidate, truth) < 0.05


def test_an_initial_temperature_in_the_plane_is_found_after_a_short_time():
    modes = (fc.EigenmodeSpace, 3)
    problem = zoo.heat(p1_square(8), parameters=modes, sensors=inner_points(4), times=[0.01], steps=10)
    truth, data = case(problem, [1.0, 0.2, 0.0])
    pinn = PINN(**{**SMALL, "points": 100, "lbfgs": 150})
    assert relative_error(problem, pinn(problem, data), truth) < 0.15
    assert set(pinn.record.losses) == {"data", "physics", "initial"}


@pytest.mark.parametrize("parameter", ["class", "network"])
@pytest.mark.parametrize("transform", ["exp", "identity"])
def test_a_conductivity_is_found(parameter, transform):
    problem = line_coefficient(transform)
    one = problem.parameters.project(np.ones(problem.parameters.basis.N))[0]
    truth, data = case(problem, one + np.array([0.0, 0.2]))
    candidate = PINN(parameter=parameter, **{**SMALL, "lbfgs": 200})(problem, data)
    assert relative_error(problem, candidate, truth) < (0.03 if parameter == "class" else 0.1)


@pytest.fixture(scope="module")
def plane():
    """A PINN on the unit square, trained once for several tests."""
    problem = square_source()
    truth, data = case(problem, [2.0, 0.5, 0.0, -0.5], noise=0.02)
    pinn = PINN(width=14, depth=2, points=150, adam=100, lbfgs=200, quiet=True)
    return problem, truth, data, pinn, pinn(problem, data)


def test_a_source_in_the_plane_is_found_within_the_noise(plane):
    problem, truth, data, _, candidate = plane
    assert relative_error(problem, candidate, truth) < 0.08
    assert data.norm(problem.observe(problem.solve(candidate.parameter)) - data.values) < 2.0 * data.noise_level


def test_a_hard_boundary_value_is_exact(plane):
    problem, *_, candidate = plane
    assert not candidate.state[problem.boundary.prescribed].any()
    s = np.linspace(0.0, 1.0, 33)
    assert not candidate.functions.state(np.array([s, 0.0 * s])).any()
    assert candidate.functions.state(np.array([s[1:-1], 0.0 * s[1:-1] + 0.5])).all()


def test_the_functions_are_those_of_the_candidate_with_their_derivatives(plane):
    problem, *_, candidate = plane
    state, parameter = candidate.functions.state, candidate.functions.parameter
    assert np.array_equal(state.value(problem.basis.doflocs), candidate.state)
    x = np.random.default_rng(0).uniform(0.1, 0.9, (2, 30))
    gradient, laplacian = differences(state, x)
    assert state.gradient(x) == pytest.approx(gradient, abs=1e-6)
    assert state.laplacian(x) == pytest.approx(laplacian, abs=1e-4)
    assert parameter.gradient(x) == pytest.approx(differences(parameter, x, 1e-7)[0], abs=1e-5)
    # In the class, and so without a part outside.
    assert problem.parameters.distance(candidate.parameter) < 1e-10


RULES = [fc.ResidualRadius(pde_norm=norm) for norm in ("rms", "equilibrated")]


@pytest.mark.parametrize("rule", [*RULES, fc.StochasticRadius(points=200), fc.ExactRadius()], ids=str)
def test_it_goes_through_the_rules_and_its_radius_covers_the_truth(plane, rule):
    problem, truth, data, _, candidate = plane
    certificate = fc.certify(problem, data, candidate, rule)
    assert certificate.radius.side == "upper"
    assert certificate.contains(truth)
    assert certificate.residuals.optimality.value == candidate.optimality


def test_it_is_a_solver_for_no_harm():
    problem = line_source()
    truth, data = case(problem, [1.0, -0.5, 0.2], noise=0.05)
    pinn = PINN(**SMALL)
    selection = fc.no_harm(
        problem, data, baseline=fc.Tikhonov(choose="discrepancy"), learned=pinn, rule=fc.ExactRadius()
    )
    assert selection.learned is not None
    assert selection.learned.contains(truth)
    assert pinn.record.seconds > 0.0


def test_the_record_tells_what_happened(plane):
    *_, pinn, candidate = plane
    record, data = pinn.record, plane[2]
    assert record.seed == 0
    assert record.steps[0] == 0
    assert record.steps[-1] == 300
    assert set(record.losses) == {"data", "physics"}
    assert all(len(values) == len(record.steps) for values in record.losses.values())
    assert record.total[-1] == pytest.approx(record.losses["data"][-1] + record.losses["physics"][-1])
    assert record.total[-1] < 1e-2 * record.total[0]
    assert candidate.optimality == pytest.approx(data.norm(data.values) * record.gradient_norm)


def test_the_same_seed_gives_the_same_candidate_and_another_one_another():
    problem = line_source()
    _, data = case(problem, [1.0, 0.0, 0.0], noise=0.02)
    few = {**SMALL, "adam": 20, "lbfgs": 20}
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    torch.manual_seed(5)
    first = PINN(seed=4, **few)(problem, data)
    torch.manual_seed(6)
    with torch.no_grad():
        second = PINN(seed=4, **few)(problem, data)
    other = PINN(seed=7, **few)(problem, data)
    assert first.state.tobytes() == second.state.tobytes()
    assert first.optimality == second.optimality
    assert first.state.tobytes() != other.state.tobytes()
    assert torch.get_num_threads() == threads
    assert torch.get_default_dtype() == torch.float32
    torch.set_rng_state(before)
    PINN(seed=4, **few)(problem, data)
    assert torch.equal(torch.get_rng_state(), before)


def test_optimality_falls_with_training():
    problem = line_source()
    _, data = case(problem, [1.0, -0.5, 0.0])
    runs = [{**SMALL, "adam": 5, "lbfgs": 0}, {**SMALL, "lbfgs": 20}, {**SMALL, "lbfgs": 200}]
    values = [PINN(**run)(problem, data).optimality for run in runs]
    assert values[0] > 2.0 * values[1] > 4.0 * values[2]


def test_a_covariance_is_respected():
    problem = line_source()
    truth, data = case(problem, [1.0, -0.5, 0.0])
    wrong = data.values.copy()
    wrong[2] += 0.5 * np.abs(wrong).max()
    # A sensor known to be bad must not be believed.
    variances = np.full(9, 1e-6)
    variances[2] = 1e2
    plain = PINN(**SMALL)(problem, fc.Data(wrong, 0.0))
    weighed = PINN(**SMALL)(problem, fc.Data(wrong, 0.0, variances))
    assert relative_error(problem, weighed, truth) < 0.05 < relative_error(problem, plain, truth)


@pytest.mark.parametrize("boundary", ["hard", "soft"])
def test_mixed_conditions_and_subdomains_in_the_plane_train(boundary):
    basis = p1_square()
    mesh = basis.mesh.with_subdomains({"low": lambda x: x[1] < 0.5, "high": lambda x: x[1] > 0.5})
    basis = type(basis)(mesh.with_boundaries({"bottom": lambda x: x[1] == 0.0}), basis.elem)
    problem = zoo.source(
        basis,
        parameters=(fc.CosineSpace, (2, 1)),
        sensors=np.array([[0.3, 0.4], [0.7, 0.8]]),
        conductivity={"low": 1.0, "high": 2.0},
        dirichlet={"bottom": 0.0},
    )
    _, data = case(problem, [1.0, 0.3])
    pinn = PINN(boundary=boundary, **{**SMALL, "adam": 60, "lbfgs": 20})
    assert pinn(problem, data).functions is not None
    assert set(pinn.record.losses) == {"data", "physics", "boundary"}
    assert pinn.record.total[-1] < 0.5 * pinn.record.total[0]


def test_a_training_that_diverges_leads_to_the_baseline_with_its_reason():
    problem = line_source()
    _, data = case(problem, [1.0, 0.0, 0.0], noise=0.02)
    diverging = PINN(**{**SMALL, "rate": 1e200, "lbfgs": 0})
    with pytest.raises(fc.SolveError, match="training diverged: the loss"):
        diverging(problem, data)
    assert diverging.record is None
    selection = fc.no_harm(
        problem, data, baseline=fc.Tikhonov(weight=1e-6), learned=diverging, rule=fc.ResidualRadius()
    )
    assert not selection.accepted
    assert "SolveError: training diverged" in selection.reason


def test_problems_that_are_refused():
    image = zoo.tomography(parameters=(fc.EigenmodeSpace, 3), angles=[0.0, 45.0])
    sides = line_source(dirichlet={"left": 0.0, "right": 1.0})
    for problem, word in ((image, "a PINN needs the strong form"), (sides, "one number for all Dirichlet values")):
        _, data = case(problem, [1.0, 0.0, 0.0])
        with pytest.raises(fc.InputError, match=word):
            PINN(**SMALL)(problem, data)

    class Reacting(fc.EllipticSource):
        def strong(self, parameter):
            found = super().strong(parameter)
            return fc.StrongForm(found.conductivity, found.source, found.reaction, found.boundary, "reaction")

    reacting = Reacting(sides.basis, parameters=sides.parameters, sensors=sides.sensors)
    with pytest.raises(fc.InputError, match="the unknown is 'reaction'"):
        PINN(**SMALL)(reacting, data)
    assert PINN(boundary="soft", **{**SMALL, "adam": 2, "lbfgs": 0})(sides, data).state is not None


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"parameter": "mesh"}, "parameter is 'mesh'; expected 'class' or 'network'"),
        ({"width": 0}, "width is 0"),
        ({"data_weight": np.nan}, "data_weight has 1 NaN"),
    ],
)
def test_bad_options_are_refused(option, message):
    with pytest.raises(fc.InputError, match=message):
        PINN(**option)
