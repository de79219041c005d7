"""A torch module as a function of x: derivatives, modes, shapes, what is refused."""

import numpy as np
import pytest
from learn_helpers import differences, square_source

import femcert as fc

torch = pytest.importorskip("torch")
from femcert.learn import Function  # noqa: E402
from femcert.residual import dual_norm_of_functions  # noqa: E402


class Wave(torch.nn.Module):
    """sin(2 x) exp(y), whose derivatives are known."""

    def forward(self, x):
        return (torch.sin(2.0 * x[:, 0]) * torch.exp(x[:, 1]))[:, None]


@pytest.fixture
def points():
    return np.random.default_rng(0).uniform(-1.0, 1.0, (2, 40))


def test_derivatives_are_those_of_a_known_formula(points):
    x, y = points
    function = Function(Wave())
    assert function.value(points) == pytest.approx(np.sin(2 * x) * np.exp(y), abs=1e-14)
    assert function(points) == pytest.approx(function.value(points), abs=0.0)
    expected = np.array([2 * np.cos(2 * x), np.sin(2 * x)]) * np.exp(y)
    assert function.gradient(points) == pytest.approx(expected, abs=1e-14)
    assert function.laplacian(points) == pytest.approx(-3 * np.sin(2 * x) * np.exp(y), abs=1e-13)


def test_derivatives_of_a_network_pass_the_taylor_test(points):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 20), torch.nn.Tanh(), torch.nn.Linear(20, 1)).double()
    function, d = Function(net), np.array([[0.6], [-0.8]])
    slope = (function.gradient(points) * d).sum(axis=0)
    rest = [np.abs(function(points + h * d) - function(points) - h * slope).max() for h in (1e-2, 5e-3)]
    assert 3.8 < rest[0] / rest[1] < 4.2
    gradient, laplacian = differences(function, points)
    assert function.gradient(points) == pytest.approx(gradient, abs=1e-7)
    assert function.laplacian(points) == pytest.approx(laplacian, abs=1e-6)


def test_points_of_any_arrangement_keep_it(points):
    function, x = Function(Wave()), points.reshape(2, 8, 5)
    assert function.value(x).shape == (8, 5)
    assert function.laplacian(x).shape == (8, 5)
    assert np.array_equal(function.gradient(x), function.gradient(points).reshape(2, 8, 5))


def test_time_is_the_last_input_and_not_part_of_the_laplacian(points):
    class Decay(torch.nn.Module):
        def forward(self, x):
            return (x[:, 0] ** 2 * x[:, 1] * torch.exp(-x[:, 2]))[:, None]

    function, (x, y) = Function(Decay(), time=0.5), points
    assert function(points) == pytest.approx(x**2 * y * np.exp(-0.5))
    assert function.gradient(points) == pytest.approx(np.array([2 * x * y, x**2]) * np.exp(-0.5))
    assert function.laplacian(points) == pytest.approx(2 * y * np.exp(-0.5))


def test_drop_out_is_off_and_every_mode_is_restored(points):
    net = torch.nn.Sequential(torch.nn.Linear(2, 9), torch.nn.Dropout(0.5), torch.nn.Linear(9, 1))
    net.train()
    net[2].eval()
    function = Function(net)
    assert np.array_equal(function(points), function(points))
    assert [part.training for part in net.modules()] == [True, True, True, False]
    net(torch.zeros((1, 2))).sum().backward()
    before = net[0].weight.grad.clone()
    function.laplacian(points)
    assert torch.equal(net[0].weight.grad, before)


def test_single_precision_comes_out_as_double(points):
    net = torch.nn.Linear(2, 1)
    values = Function(net)(points)
    assert values.dtype == np.float64
    assert Function(net).gradient(points)[0] == pytest.approx(float(net.weight[0, 0].detach()), abs=1e-7)
    assert not Function(net).laplacian(points).any()


def test_a_module_for_another_dimension_is_refused(points):
    with pytest.raises(fc.InputError, match=r"the module failed: .*points of shape \(40, 2\), torch\.float32"):
        Function(torch.nn.Linear(3, 1))(points)


def test_a_bare_module_is_refused_with_the_way_out():
    problem = square_source()
    with pytest.raises(fc.InputError, match=r"torch module Linear; expected femcert\.learn\.Function"):
        fc.Candidate.from_functions(problem, parameter=torch.nn.Linear(2, 1))


def test_weights_that_change_after_the_candidate_was_made_are_noticed():
    net = torch.nn.Sequential(torch.nn.Linear(2, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
    problem = square_source()
    candidate = fc.Candidate.from_functions(problem, state=Function(net), parameter=0.0)
    assert dual_norm_of_functions(problem, candidate).upper.value > 0.0
    with torch.no_grad():
        net[0].weight *= 1.5
    with pytest.raises(fc.UncertifiedError, match="state of 'learned' changed after it was frozen"):
        dual_norm_of_functions(problem, candidate)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (lambda x: x, r"shape \(40, 2\).*expected \(40, 1\)"),
        (lambda x: x[:, :1] + 1j, "complex"),
    ],
)
def test_wrong_outputs_are_refused(points, output, message):
    class Wrong(torch.nn.Module):
        def forward(self, x):
            return output(x)

    with pytest.raises(fc.InputError, match=message):
        Function(Wrong())(points)
