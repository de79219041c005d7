"""Heat: orders in time and space against the exponential, adjoint-free consistency, and what is refused."""

import numpy as np
import pytest
import zoo
from orders import about, convergence, fitted_order
from skfem import Basis, ElementLineP1, MeshLine
from zoo import ELEMENTS, inside_points, unit_basis

import femcert as fc
from femcert.linalg import factorization_count

MARCH = {"times": 0.1, "diffusivity": 0.5, "steps": 100}


def heat(at, **options):
    return zoo.heat(at, **{"parameters": fc.FullSpace, "sensors": inside_points, **MARCH, **options})


@pytest.mark.parametrize(("scheme", "order"), [("backward-euler", 1), ("crank-nicolson", 2)])
@pytest.mark.parametrize("mass", ["consistent", "lumped"])
def test_order_in_time(scheme, order, mass):
    """Against the exact exponential of the same semi-discrete problem, at several times."""
    basis = unit_basis("tri P1", 8)
    q = np.prod(np.sin(np.pi * basis.doflocs), axis=0) * (1.0 + basis.doflocs[0])
    times = [0.05, 0.1, 0.2]
    exact = heat(basis, times=times, scheme="exact", mass=mass).solve(q)
    steps = np.array([16, 32, 64])
    found = [heat(basis, times=times, scheme=scheme, steps=n, mass=mass).solve(q) - exact for n in steps]
    for i in range(len(times)):
        assert fitted_order(1.0 / steps, [np.linalg.norm(e[:, i]) for e in found]) == pytest.approx(order, abs=0.15)


@pytest.mark.parametrize("name", ELEMENTS)
def test_order_in_space(name):
    """u = sin(pi x) (sin(pi y)) exp(-kappa pi² dim t), by the exact exponential in time."""
    kind, _, p = ELEMENTS[name]
    kappa, time, dim = 0.3, 0.2, 1 if kind == "line" else 2
    decay = np.exp(-kappa * np.pi**2 * dim * time)

    def exact(x):
        return decay * np.prod(np.sin(np.pi * x), axis=0)

    def gradient(x):
        s, c = np.sin(np.pi * x), np.cos(np.pi * x)
        return [decay * np.pi * c[i] * (s[1 - i] if dim > 1 else 1.0) for i in range(dim)]

    def solved(n):
        basis = unit_basis(name, n)
        scheme = "exact" if basis.N < 1500 else "crank-nicolson"
        problem = heat(basis, times=time, diffusivity=kappa, scheme=scheme, steps=400)
        return basis, problem.solve(exact(basis.doflocs) / decay)

    sizes = (8, 16, 32) if kind == "line" else (4, 8, 12) if p == 2 else (8, 16, 24)
    assert convergence(solved, sizes, exact, gradient) == about((p + 1, p), (0.3, 0.2))


def test_discrete_mode_decays_in_closed_form():
    """An eigenvector of the P1 pencil on a uniform line is a sine; each scheme multiplies it by a known factor."""
    n, kappa, time, steps, j = 16, 0.7, 0.05, 10, 3
    h, dt = 1.0 / n, time / steps
    basis = unit_basis("line P1", n)
    mode = np.sin(j * np.pi * basis.doflocs[0])
    cos = np.cos(j * np.pi * h)
    for mass, weight in (("consistent", (2.0 + cos) / 3.0), ("lumped", 1.0)):
        rate = kappa * 2.0 * (1.0 - cos) / h**2 / weight
        factors = {
            "backward-euler": (1.0 + dt * rate) ** -steps,
            "crank-nicolson": ((1.0 - 0.5 * dt * rate) / (1.0 + 0.5 * dt * rate)) ** steps,
            "exact": np.exp(-rate * time),
        }
        for scheme, factor in factors.items():
            problem = heat(basis, times=time, diffusivity=kappa, steps=steps, scheme=scheme, mass=mass)
            assert np.allclose(problem.solve(mode), factor * mode, rtol=0, atol=1e-11)


def test_robin_and_insulated_sides():
    """Insulated at 0, kappa u' + alpha u = 0 at 1: cos(mu x) decays at kappa mu², with kappa mu tan mu = alpha."""
    kappa, time = 0.4, 0.5
    mu = 1.1
    alpha = kappa * mu * np.tan(mu)
    sizes, found = np.array([8, 16, 32]), []
    for n in sizes:
        basis = unit_basis("line P1", n)
        sides = {"dirichlet": {}, "robin": {"right": (alpha, 0.0)}}
        problem = heat(basis, diffusivity=kappa, times=time, scheme="exact", **sides)
        mode = np.cos(mu * basis.doflocs[0])
        found.append(np.abs(problem.solve(mode) - np.exp(-kappa * mu**2 * time) * mode).max())
    assert fitted_order(1.0 / sizes, found) == pytest.approx(2.0, abs=0.15)
    # Insulated all around: the mean is conserved.
    basis = unit_basis("tri P1", 6)
    q = np.exp(basis.doflocs[0])
    problem = heat(basis, dirichlet={}, times=[0.1, 5.0])
    means = np.ones(basis.N) @ problem.mass @ np.column_stack([q, problem.solve(q)])
    assert np.allclose(means, means[0], rtol=1e-12)


@pytest.mark.parametrize(("scheme", "theta"), [("backward-euler", 1.0), ("crank-nicolson", 0.5)])
def test_residual_of_a_trajectory(scheme, theta):
    basis = unit_basis("tri P1", 5)
    problem = heat(basis, times=[0.05, 0.1], steps=8, scheme=scheme)
    q = np.prod(np.sin(np.pi * basis.doflocs), axis=0)
    whole = problem.trajectory(q)
    assert problem.residual(whole, q).shape == (basis.N, 8)
    assert np.abs(problem.residual(whole, q)).max() < 1e-12
    assert problem.boundary_defect(whole, q) < 1e-12
    e = np.zeros(basis.N)
    e[problem.free] = np.random.default_rng(1).standard_normal(len(problem.free))
    off = whole.copy()
    off[:, 3] += e
    found = problem.residual(off, q)
    M, A, dt = problem.mass, problem.operator, problem.time_step
    free = problem.free
    assert np.allclose(found[free, 2], -(M @ e / dt + theta * (A @ e))[free], atol=1e-11)
    assert np.allclose(found[free, 3], (M @ e / dt - (1 - theta) * (A @ e))[free], atol=1e-11)
    assert np.abs(np.delete(found, [2, 3], axis=1)).max() < 1e-11
    # A trajectory of another initial value violates no step, but the initial condition.
    assert problem.boundary_defect(whole, 0.0 * q) == pytest.approx(problem.parameters.norm(whole[:, 0]), rel=1e-10)


def test_boundary_defect_of_one_time():
    basis = unit_basis("tri P1", 5)
    problem = heat(basis, dirichlet={"left": 0.0})
    u = problem.solve(np.ones(basis.N))
    assert problem.boundary_defect(u, np.ones(basis.N)) < 1e-15
    # On the left side the L2 norm of y is 1/sqrt(3).
    assert problem.boundary_defect(basis.doflocs[1], np.ones(basis.N)) == pytest.approx(1 / np.sqrt(3.0))


def test_one_factorization_for_all_steps_and_columns():
    basis = unit_basis("tri P1", 6)
    problem = heat(basis, times=[0.05, 0.1], steps=20)
    before = factorization_count()
    problem.forward_matrix()
    problem.solve(np.ones(basis.N))
    problem.trajectory(np.ones(basis.N))
    problem.adjoint(np.eye(problem.observation_count))
    assert factorization_count() == before + 1


def test_order_of_the_observations():
    """Time after time, sensor after sensor within a time; one time gives a vector."""
    basis = unit_basis("line P1", 10)
    problem = heat(basis, times=[0.05, 0.1])
    q = np.sin(np.pi * basis.doflocs[0])
    states = problem.solve(q)
    assert states.shape == (basis.N, 2)
    assert np.array_equal(problem.observe(states), np.r_[problem.sensors(states[:, 0]), problem.sensors(states[:, 1])])
    assert problem.observation_count == 2 * problem.sensors.count
    assert heat(basis).solve(q).shape == (basis.N,)
    for i, time in enumerate((0.05, 0.1)):
        single = heat(basis, times=time, steps=100).solve(q)
        assert np.allclose(states[:, i], single, rtol=1e-4)


def test_region_initial_value():
    """The indicator of the left half: its L2 projection, then the Fourier series of the exact solution."""
    mesh = MeshLine(np.linspace(0.0, 1.0, 129)).with_subdomains({"west": lambda x: x[0] < 0.5})
    basis = Basis(mesh, ElementLineP1())
    space = fc.RegionSpace(basis, ["west"])
    time, kappa = 0.05, 0.5
    j = np.arange(1, 60)
    points = np.array([0.25, 0.5, 0.8])
    amplitude = 2.0 / (j * np.pi) * (1.0 - np.cos(j * np.pi / 2)) * np.exp(-kappa * (j * np.pi) ** 2 * time)
    expected = np.sin(np.pi * points[:, None] * j) @ amplitude
    for mass in ("consistent", "lumped"):
        options = {"times": time, "diffusivity": kappa, "scheme": "exact", "mass": mass}
        problem = heat(basis, parameters=space, sensors=points, **options)
        assert problem.observe(problem.solve(space.field([1.0]))) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"times": 0.0}, r"times is 0\.0"),
        ({"times": [0.2, 0.1]}, "expected increasing positive times"),
        ({"times": np.nan}, "times has 1 NaN"),
        ({"times": [1e-13, 0.1], "steps": 10}, r"observation time 1e-13 is not on the grid"),
        ({"times": [0.05, 0.05 + 1e-11, 0.1], "steps": 10}, r"observation time 0\.05000000001 is not on the grid"),
        ({"steps": 0}, "steps is 0"),
        ({"scheme": "euler"}, "scheme is 'euler'"),
        ({"mass": "diagonal"}, "mass is 'diagonal'"),
        ({"diffusivity": -1.0}, "diffusivity takes the value -1"),
        ({"dirichlet": 1.0}, "homogeneous boundary conditions; a non-zero value came"),
        ({"robin": {"left": (1.0, 2.0)}}, "homogeneous boundary conditions"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(fc.InputError, match=message):
        heat(unit_basis("line P1", 10), **options)


def test_bad_states():
    basis = unit_basis("line P1", 10)
    exact = heat(basis, scheme="exact", steps=20)
    for deed, word in (
        (lambda: heat(basis, times=[0.05, 0.1], steps=20).observe(np.ones(11)), r"state has shape \(11,\)"),
        (lambda: heat(basis).observe(np.ones((11, 2))), r"expected \(11, 1\) or \(11,\) or \(11, 101\)"),
        (lambda: exact.observe(np.ones((11, 21))), r"state has shape \(11, 21\)"),
        (lambda: exact.trajectory(np.ones(11)), "no time levels"),
        (lambda: heat(unit_basis("line P1", 1600), scheme="exact"), "at most 1500 free dofs"),
        (lambda: heat(unit_basis("tri P2", 3), mass="lumped"), "not positive"),
    ):
        with pytest.raises(fc.InputError, match=word):
            deed()


@pytest.mark.parametrize("mass", ["consistent", "lumped"])
@pytest.mark.parametrize("smallest", [1e-8, 1e-12])
def test_the_exponential_on_graded_lines(smallest, mass):
    """Cells from 1e-12 to 0.4: against many Crank-Nicolson steps, and the truth is within the radius."""
    basis = Basis(MeshLine(np.r_[0.0, np.geomspace(smallest, 1.0, 60)]), ElementLineP1())
    options = {"parameters": 3, "sensors": [0.2, 0.5, 0.8], "mass": mass}
    exact = heat(basis, times=[0.02, 0.05], scheme="exact", **options)
    steps = heat(basis, times=[0.02, 0.05], steps=4000, **options)
    q = basis.doflocs[0] * (1.0 - basis.doflocs[0])
    assert np.abs(steps.solve(q)).max() > 0.1
    assert np.allclose(exact.solve(q), steps.solve(q), rtol=0, atol=1e-6)
    assert np.allclose(exact.forward_matrix(), steps.forward_matrix(), rtol=0, atol=1e-6)
    truth = exact.parameters.field([1.0, -0.5, 0.25])
    data = exact.simulate(truth, noise=0.01, seed=3, oracle=True)
    found = fc.certify(exact, data, fc.Tikhonov(weight=1e-8)(exact, data), fc.ResidualRadius())
    assert found.radius.side == "upper"
    assert found.contains(truth)
    assert found.sharpness(truth) < 5.0
