"""Parabolic problems of own forms: closed forms, adjoints, gaps, coverage, memory."""

import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
import zoo
from scipy.sparse import identity
from scipy.stats import binom
from skfem import Basis, BilinearForm, FacetBasis, LinearForm
from skfem.element import ElementLineP0, ElementLineP1, ElementTriP1
from skfem.helpers import dot, grad
from skfem.mesh import MeshLine, MeshTri

import femcert as fc
from femcert.linalg.factor import factorization_count

LINE = zoo.unit_basis("line P1", 32)
MESH = MeshTri().refined(3).with_boundaries({"left": lambda x: x[0] == 0.0, "right": lambda x: x[0] == 1.0})
PLATE = Basis(MESH, ElementTriP1())
diffusion = BilinearForm(lambda u, v, w: dot(grad(u), grad(v)))
wind = BilinearForm(lambda u, v, w: 0.1 * dot(grad(u), grad(v)) + u.grad[0] * v)
exchange = BilinearForm(lambda u, v, w: 2.0 * u * v)
heavy = BilinearForm(lambda u, v, w: (1.0 + w.x[0]) * u * v)
plume = LinearForm(lambda v, w: np.exp(-np.sum((w.x - 0.3) ** 2, axis=0) / 0.02) * v)
POINTS = [[0.2, 0.3], [0.5, 0.5], [0.8, 0.3]]
TIMES = [0.05, 0.1, 0.2]


def plate(**options):
    """Own mass, wind, exchange at the right side, values on the left one."""
    given = {
        "mass": heavy,
        "operator": [wind, (exchange, FacetBasis(MESH, ElementTriP1(), facets="right"))],
        "parameters": fc.FullSpace(PLATE),
        "sensors": fc.AverageSensors(PLATE, POINTS, radius=0.1),
        "times": TIMES,
        "steps": 20,
        "dirichlet": {"left": 0.0},
    }
    return fc.ParabolicProblem(PLATE, **{**given, **options})


def release(**options):
    given = {"unknown": "release", "load": plume, "parameters": fc.CoordinateSpace(5)}
    return plate(**{**given, **options})


def of_time(element=None):
    basis = Basis(MeshLine(np.linspace(0.0, 0.2, 11)), element or ElementLineP1())
    return fc.FullSpace(basis)


def two_releases():
    both = fc.ProductSpace({"first": of_time(), "second": fc.CoordinateSpace(3)})
    side = LinearForm(lambda v, w: w.x[1] * v), FacetBasis(MESH, ElementTriP1(), facets="right")
    return release(parameters=both, load={"first": plume, "second": side})


KINDS = {
    "initial": plate,
    "source": lambda **options: plate(unknown="source", history=lambda t: 1.0 + np.sin(30.0 * t), **options),
    "flux": lambda **options: plate(unknown="source", parameters=fc.TraceSpace(PLATE, "right"), **options),
    "release": release,
    "functions": lambda **options: release(history=[lambda t, j=j: t**j for j in range(5)], **options),
    "time line": lambda **options: release(parameters=of_time(), **options),
    "constant in time": lambda **options: release(parameters=of_time(ElementLineP0()), **options),
}


@pytest.mark.parametrize("scheme", ["crank-nicolson", "backward-euler"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_adjoint_is_that_of_apply(kind, scheme):
    mask = np.ones((3, 3), dtype=bool)
    mask[1, 2] = mask[2, 0] = False
    problem = KINDS[kind](scheme=scheme, observed=mask)
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((problem.parameters.size, 4)), rng.standard_normal((7, 3))
    Y, Z = problem.apply(X), problem.adjoint(W)
    assert Y.shape == (7, 4)
    np.testing.assert_allclose(W.T @ Y, Z.T @ X, atol=1e-11 * np.linalg.norm(Y) * np.linalg.norm(W))
    # Columns are independent of each other.
    np.testing.assert_allclose(problem.apply(X[:, 1:2])[:, 0], Y[:, 1], atol=1e-13 * np.abs(Y).max())


@pytest.mark.parametrize("kind", [*KINDS, "two"])
def test_taylor(kind):
    """Known loads and boundary values are in the offset: nothing is left after the linear term."""
    known = {"source": plume, "boundary_history": np.cos, "dirichlet": {"left": 1.5}}
    problem = two_releases() if kind == "two" else KINDS[kind](**known)
    rng = np.random.default_rng(1)
    q, d = rng.standard_normal((2, problem.parameters.size))
    y0 = problem.state_sensors(problem.trajectory(q)).T.ravel()
    y1 = problem.state_sensors(problem.trajectory(q + 0.1 * d)).T.ravel()
    np.testing.assert_allclose(problem.predict(None, q), y0, atol=1e-12 * np.abs(y0).max())
    np.testing.assert_allclose(y1 - y0, 0.1 * problem.apply(d[:, None])[:, 0], atol=1e-12 * np.abs(y0).max())
    unknown = problem.parameters.matrix
    np.testing.assert_allclose(problem.matrix, problem.apply(unknown), atol=1e-12 * np.abs(problem.matrix).max())


@pytest.mark.parametrize("scheme", ["crank-nicolson", "backward-euler"])
def test_the_same_as_the_heat_problem(scheme):
    space, sensors = fc.FullSpace(PLATE), fc.AverageSensors(PLATE, POINTS, radius=0.1)
    given = {"parameters": space, "sensors": sensors, "times": TIMES, "steps": 20, "scheme": scheme}
    heat = fc.HeatInitial(PLATE, **given)
    problem = fc.ParabolicProblem(PLATE, operator=diffusion, definite=True, **given)
    scale = np.abs(heat.matrix).max()
    np.testing.assert_allclose(problem.matrix, heat.matrix, atol=1e-13 * scale)
    q = np.random.default_rng(0).standard_normal(PLATE.N)
    np.testing.assert_allclose(problem.trajectory(q), heat.solve(q), atol=1e-12)
    weights = np.eye(9)
    np.testing.assert_allclose(problem.adjoint(weights), heat.adjoint(weights), atol=1e-13 * scale)


# Sines are eigenvectors of linear elements on a uniform grid.
SINE = np.sin(np.pi * LINE.doflocs[0])
RATE = (6.0 * 32**2) * (1.0 - np.cos(np.pi / 32)) / (2.0 + np.cos(np.pi / 32))
END, DECAY = 0.2, 3.0
FORCED = (np.exp(-DECAY * END) - np.exp(-RATE * END)) / (RATE - DECAY)


def on_line(unknown, steps, scheme):
    history, options = (lambda t: np.exp(-DECAY * t)), {"parameters": fc.FullSpace(LINE)}
    if unknown == "source":
        options["history"] = history
    if unknown == "release":
        load = fc.FullSpace(LINE).weight @ SINE
        options = {"parameters": fc.CoordinateSpace(1), "history": [history], "load": load}
    given = {"sensors": fc.PointSensors(LINE, [0.5]), "times": END, "steps": steps, "scheme": scheme}
    return fc.ParabolicProblem(LINE, operator=diffusion, unknown=unknown, **given, **options)


@pytest.mark.parametrize(("scheme", "order"), [("backward-euler", 1), ("crank-nicolson", 2)])
@pytest.mark.parametrize("unknown", ["initial", "source", "release"])
def test_convergence_in_time(unknown, scheme, order):
    exact = np.exp(-RATE * END) if unknown == "initial" else FORCED
    errors = []
    for steps in (20, 40, 80):
        problem = on_line(unknown, steps, scheme)
        q = np.ones(1) if unknown == "release" else SINE
        errors.append(abs(problem.predict(None, q)[0] - exact))
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(rates, order, atol=0.15)
    assert errors[-1] < 0.05 * exact


def test_convergence_in_space_and_time():
    errors = []
    for n in (8, 16, 32):
        basis = zoo.unit_basis("line P1", n)
        given = {"parameters": fc.FullSpace(basis), "sensors": fc.PointSensors(basis, [0.5]), "times": END, "steps": n}
        read = fc.ParabolicProblem(basis, operator=diffusion, **given).predict(None, np.sin(np.pi * basis.doflocs[0]))
        errors.append(abs(read[0] - np.exp(-(np.pi**2) * END)))
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), 2.0, atol=0.2)


@pytest.mark.parametrize("scheme", ["crank-nicolson", "backward-euler"])
@pytest.mark.parametrize("unknown", ["source", "release"])
def test_known_values_of_a_solution_that_is_linear_in_time(unknown, scheme):
    """``u = (1 + x) (1 + t)``: values on the left, flux on the right, a source, an initial value."""
    load = {} if unknown == "source" else {"load": plume, "parameters": fc.CoordinateSpace(2)}
    mass, one = BilinearForm(lambda u, v, w: u * v), LinearForm(lambda v, w: (1.0 + w.x[0]) * v)
    known = {"source": lambda t: one, "initial": lambda x: 1.0 + x[0], "boundary_history": lambda t: 1.0 + t}
    sides = {"dirichlet": {"left": 1.0}, "neumann": {"right": 1.0}}
    problem = plate(mass=mass, operator=diffusion, unknown=unknown, scheme=scheme, **known, **sides, **load)
    exact = np.stack([(1.0 + PLATE.doflocs[0]) * (1.0 + t) for t in TIMES], axis=1)
    np.testing.assert_allclose(problem.trajectory(np.zeros(problem.parameters.size)), exact, atol=1e-11)
    np.testing.assert_allclose(problem.offset, problem.state_sensors(exact).T.ravel(), atol=1e-11)
    data = fc.Data.gaussian(problem.offset, std=0.01)
    assert 0.0 < problem.offset_rounding(data) < 1e-6


def test_a_known_initial_value_is_that_of_the_unknown_one():
    q = np.sin(np.pi * PLATE.doflocs[0])
    known = release(initial=q).offset
    np.testing.assert_allclose(known, plate().predict(None, q), rtol=1e-9)
    constant = release(initial=2.0, dirichlet={}).offset
    np.testing.assert_allclose(constant, release(initial=lambda x: 2.0 + 0.0 * x[0], dirichlet={}).offset, rtol=1e-12)


def test_gaps_as_a_mask_or_as_nan():
    mask = np.random.default_rng(2).random((3, 3)) < 0.6
    whole, some = release(), release(observed=mask)
    np.testing.assert_array_equal(some.matrix, whole.matrix[mask.ravel()])
    q = np.arange(5.0)
    values = whole.predict(None, q) + 1e-3
    space = fc.CoordinateSpace(5).within_ball(10.0, norm=identity(5))
    asked = np.full(5, 0.2)
    missing = fc.Data.gaussian(np.where(mask.ravel(), values, np.nan), std=1e-3)
    one = fc.evidence(release(parameters=space), missing).interval(asked)
    other = fc.evidence(
        release(parameters=space, observed=mask), fc.Data.gaussian(values[mask.ravel()], std=1e-3)
    ).interval(asked)
    assert one.lower.value == pytest.approx(other.lower.value, rel=1e-9)
    assert one.upper.value == pytest.approx(other.upper.value, rel=1e-9)


def test_one_factorization():
    problem = release(source=plume)
    before = factorization_count()
    assert problem.matrix.shape == (9, 5)
    problem.adjoint(np.eye(9))
    assert problem.offset.any()
    assert factorization_count() == before + 1


def test_memory_does_not_grow_with_the_steps():
    basis, peaks = zoo.square(5), []
    given = {"parameters": fc.FullSpace(basis), "sensors": fc.AverageSensors(basis, POINTS, radius=0.1), "times": 0.1}
    for steps in (20, 320):
        problem = fc.ParabolicProblem(
            basis, operator=diffusion, **given, steps=steps, unknown="source", definite=True
        )
        problem.apply(np.ones((basis.N, 1)))
        tracemalloc.start()
        problem.apply(np.ones((basis.N, 1)))
        problem.adjoint(np.ones((3, 1)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # The states of the steps in between would take 300 vectors; a step needs about ten.
    assert peaks[1] - peaks[0] < 10 * 8 * basis.N


def small(space=None):
    basis = zoo.unit_basis("line P1", 16)
    loads = {"load": LinearForm(lambda v, w: v), "source": LinearForm(lambda v, w: w.x[0] * v)}
    space = space or fc.CoordinateSpace(4).within_ball(3.0, norm=identity(4))
    given = {"parameters": space, "sensors": fc.PointSensors(basis, [0.3, 0.7]), "times": np.linspace(0.1, 1.0, 10)}
    return fc.ParabolicProblem(basis, operator=diffusion, unknown="release", steps=10, **loads, **given)


def test_coverage_of_intervals_and_radii():
    problem, n, std = small(), 200, 0.02
    truth, asked = np.array([1.5, -1.0, 2.0, 0.8]), np.full(4, 0.25)
    assert np.linalg.norm(truth) < 3.0
    exact, guess = problem.predict(None, truth), fc.Candidate(None, np.array([1.4, -0.9, 1.8, 0.9]))
    inside = radii = 0
    for seed in range(n):
        noise = std * np.random.default_rng(seed).standard_normal(exact.size)
        data = fc.Data.gaussian(exact + noise, std=std)
        # Refusals count as misses: they are among the cases in which the noise is above its level.
        with suppress(fc.InconsistentError):
            inside += fc.evidence(problem, data).interval(asked).contains(float(asked @ truth))
        with suppress(fc.InconsistentError):
            radii += fc.certify(problem, data, guess, fc.ExactRadius()).contains(truth)
    assert min(inside, radii) >= binom.ppf(1e-4, n, 0.95)


def test_selection_page_baselines_and_experiments(tmp_path):
    problem, truth = small(), np.array([1.5, -1.0, 2.0, 0.8])
    data, baseline = fc.Data.gaussian(problem.predict(None, truth), std=1e-3), fc.Tikhonov(weight=1e-2)
    fit = baseline(problem, data)
    assert fit.state is None
    assert np.linalg.norm(fit.parameter - truth) < 0.2
    for learned, weight, status in ((truth, 10.0, "accepted"), (-truth, 1e-2, "rejected")):
        given = {"baseline": fc.Tikhonov(weight=weight), "learned": fc.Candidate(None, learned)}
        found = fc.no_harm(problem, data, rule=fc.ExactRadius(), **given)
        assert found.status == status, found.reason
    assert "ParabolicProblem" in fc.write_report(found, tmp_path / "page.html").read_text()
    both = fc.Experiments([problem, small(problem.parameters)])
    np.testing.assert_allclose(both.forward.matrix, np.vstack([problem.matrix] * 2), rtol=1e-12)


@pytest.mark.parametrize("kind", ["initial", "source", "flux", "time line", "release"])
def test_fields_and_pages_of_each_kind(kind, tmp_path):
    problem = KINDS[kind]()
    q = np.sin(np.arange(problem.parameters.size) / 9.0)
    guess = fc.Candidate(None, q)
    data = problem.simulate(q, noise=0.01)
    found = fc.no_harm(problem, data, baseline=guess, learned=guess, rule=fc.ResidualRadius())
    assert "ParabolicProblem" in fc.write_report(found, tmp_path / "page.html").read_text()
    if kind != "release":
        assert fc.write_fields(found, tmp_path / "fields.vtu").stat().st_size > 0


def test_states_that_grow_lose_digits():
    grown = release(operator=BilinearForm(lambda u, v, w: 0.1 * dot(grad(u), grad(v)) - 40.0 * u * v), mass=None)
    assert grown.solve_rounding > 1e3 * release(mass=None).solve_rounding


def test_states_that_leave_the_numbers():
    # Each step multiplies by (1 + 0.95) / (1 - 0.95) = 39, 400 times.
    explosive = release(operator=BilinearForm(lambda u, v, w: -3800.0 * u * v), mass=None, steps=400)
    with pytest.raises(fc.SolveError, match="overflowed"):
        explosive.apply(np.ones((5, 1)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scheme": "euler"}, "scheme is 'euler'"),
        ({"unknown": "flux"}, "unknown is 'flux'"),
        ({"times": [0.0, 1.0]}, "increasing positive times"),
        ({"times": [0.0333, 0.2]}, "is not on the grid"),
        ({"history": np.cos}, "history came for an unknown initial value"),
        ({"initial": 1.0}, "initial came"),
        ({"observed": np.ones((3, 2), dtype=bool)}, r"expected bool \(3, 3\)"),
        ({"observed": np.zeros((3, 3), dtype=bool)}, "False everywhere"),
        ({"boundary_history": 2.0}, "boundary_history is a float"),
        ({"unknown": "release"}, "load is missing"),
        ({"unknown": "release", "load": plume}, "mesh of the time line"),
        ({"unknown": "release", "load": plume, "parameters": fc.CoordinateSpace(2), "history": np.cos}, "a list of 2"),
        ({"unknown": "source", "initial": np.ones(3)}, "initial has"),
    ],
)
def test_refusals(options, words):
    with pytest.raises(fc.InputError, match=words):
        plate(**options)


def test_a_time_line_that_is_too_short():
    short = fc.FullSpace(Basis(MeshLine(np.linspace(0.0, 0.1, 5)), ElementLineP1()))
    with pytest.raises(fc.InputError, match=r"time line is 0 to 0\.1; expected 0 to 0\.2"):
        release(parameters=short)
