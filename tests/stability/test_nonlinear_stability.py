"""The validated ball of an unknown conductivity, against sampled Jacobians and states, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import zoo
from scipy.linalg import solve_triangular
from skfem import Basis, MeshTri
from skfem.element import ElementTriP1

import femcert as fc
from femcert import check_kantorovich, validated

INFLOW, LOSS = {"left": 0.7}, {"right": (2.0, 0.5)}


def line(name="line P1", n=24, m=9, k=3, space=fc.CosineSpace, **options):
    points = np.linspace(0.08, 0.92, m)[:, None]
    return zoo.coefficient(name, n, parameters=(space, k), sensors=points, **{"source": 3.0, **options})


def square(level=2, degree=1, kind="tri", space=3, **options):
    basis = zoo.square(level, degree, kind)
    return zoo.coefficient(basis, parameters=space, sensors=12, **{"source": 3.0, **options})


def quarters(basis):
    x, y = basis.mesh.p[:, basis.mesh.t].mean(axis=1)
    return fc.RegionSpace(basis, [np.flatnonzero(((x > 0.5) == i) & ((y > 0.5) == j)) for i in (0, 1) for j in (0, 1)])


def ramp(x):
    return 1.0 + 2.0 * x[0]


CASES = {
    "line P1": lambda **o: line(**o),
    "line P1, Dirichlet ramp without source": lambda **o: line(source=0.0, dirichlet=ramp, space=fc.SineSpace, **o),
    "line P2, Neumann and Robin": lambda **o: line("line P2", n=12, source=None, neumann=INFLOW, robin=LOSS, **o),
    "line P2, Robin, one-sided": lambda **o: line("line P2", n=12, robin=LOSS, dirichlet={"left": 4.0}, **o),
    "triangles P1": lambda **o: square(**o),
    "triangles P1, regions, ramp": lambda **o: square(space=quarters, dirichlet=ramp, source=1.0, **o),
    "triangles P2, Neumann": lambda **o: square(
        1, 2, neumann={"right": 1.0}, dirichlet={"left": 1.0}, **o
    ),
    "quadrilaterals, regions, Robin": lambda **o: square(
        2, 1, "quad", quarters, robin={"right": (1.0, 0.0), "left": (3.0, 2.0)}, **o
    ),
}


def centre_of(problem):
    """A parameter of the class that varies (in a class of sines, plus a constant outside of it)."""
    q = 0.2 * np.random.default_rng(5).standard_normal(problem.parameters.dimension)
    base = 1.5 if problem.transform == "identity" else 0.3
    return base + problem.parameters.field(q / problem.parameters.dimension)


def noisy(problem, covariance):
    if covariance is None:
        return None
    return fc.Data(np.zeros(problem.observation_count), 0.0, weights(problem, covariance))


def weights(problem, covariance):
    """A covariance by its name, or None."""
    m = problem.observation_count
    root = np.random.default_rng(2).standard_normal((m, m))
    return {"variances": np.linspace(0.2, 3.0, m), "matrix": root @ root.T + np.eye(m)}.get(covariance)


def steps(problem, radius, count, seed=0):
    """Differences ``q - q0`` in the ball, half of them on its sphere, and their coordinates in an orthonormal basis."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, problem.parameters.dimension))
    x *= (radius / np.linalg.norm(x, axis=1) * np.where(np.arange(count) % 2, 1.0, rng.uniform(size=count)))[:, None]
    return [problem.parameters.field(solve_triangular(problem.parameters.root, c)) for c in x]


def measured(problem, data, values):
    return values if data is None else data.whiten(values)


def operator_norm(problem, data, J):
    scaled = solve_triangular(problem.parameters.root, measured(problem, data, J).T, trans="T")
    return np.linalg.norm(scaled, 2)


def sampled_quotients(problem, at, data, radius, count):
    near = steps(problem, 1e-3 * radius, count, seed=1)
    for i, (h, far, close) in enumerate(
        zip(steps(problem, radius, count), steps(problem, radius, count, seed=7), near, strict=True)
    ):
        # Pairs across the ball, and close pairs at its rim, where a derivative would be largest.
        other = far if i % 3 else (h + close) * min(1.0, radius / problem.parameters.norm(h + close))
        change = problem.jacobian(at + h) - problem.jacobian(at + other)
        yield operator_norm(problem, data, change) / problem.parameters.norm(h - other)


@pytest.mark.parametrize(("transform", "covariance"), [("exp", None), ("identity", "matrix")])
@pytest.mark.parametrize("name", CASES)
def test_the_lipschitz_bound_dominates_and_is_not_absurd(name, transform, covariance):
    problem = CASES[name](transform=transform)
    at, data = centre_of(problem), noisy(problem, covariance)
    bounds = problem.linearize(at).curvature(data)
    for t, cap in ((1e-3, 1.6), (0.05, 8.0), (0.5, 100.0)):
        radius = t / bounds.sup
        L = bounds.lipschitz(radius)
        worst = max(sampled_quotients(problem, at, data, radius, 8))
        assert worst <= L <= cap * worst
        # Without the second derivative at the centre, as for large classes.
        plain = replace(bounds, second=np.inf).lipschitz(radius)
        assert L <= plain <= 100.0 * worst


@pytest.mark.parametrize(("transform", "covariance"), [("exp", "variances"), ("identity", None)])
@pytest.mark.parametrize("name", CASES)
def test_the_constant_holds_on_the_ball(name, transform, covariance):
    problem = CASES[name](transform=transform)
    at, data = centre_of(problem), noisy(problem, covariance)
    found = validated(problem, at, data=data)
    assert found.valid
    exact = fc.stability(problem, at=at, data=data).sigma_min
    sigma, L, rho = found.sigma.value, found.lipschitz.value, found.radius
    assert sigma <= exact <= (1.0 + 1e-6) * sigma
    assert L * rho < sigma
    assert found.constant.value == pytest.approx(1.0 / (sigma - 0.5 * L * rho), rel=1e-8)
    assert (found.lipschitz.side, found.constant.side, found.sigma.side) == ("upper", "upper", "lower")

    def image(h):
        return measured(problem, data, problem.observe(problem.solve(at + h)))

    F0 = image(0.0)
    inside = steps(problem, rho, 12)
    images = [image(h) for h in inside]
    for h, F in zip(inside, images, strict=True):
        size, seen = problem.parameters.norm(h), np.linalg.norm(F - F0)
        assert seen >= (sigma - 0.5 * L * size) * size
        assert size <= found.constant.value * seen
        if check_kantorovich(found, seen)[0]:
            assert size <= found.distance(seen).value <= found.constant.value * seen
    for h, F, g, G in zip(inside, images, inside[1:], images[1:], strict=False):
        assert problem.parameters.norm(h - g) <= found.between.value * np.linalg.norm(F - G)


@pytest.mark.parametrize("transform", ["exp", "identity"])
def test_one_constant_has_a_formula(transform):
    # a = e^q or q, constant: u = u1 / a, so F'' = F for exp and 2 F / q² for a = q; |q| = ‖q‖_Q on the unit interval.
    problem = line(k=1, transform=transform)
    at = np.full(25, 0.7)
    F = np.linalg.norm(problem.observe(problem.solve(at)))
    bounds = problem.linearize(at).curvature(None)
    expected = F if transform == "exp" else 2.0 * F / 0.49
    assert bounds.lipschitz(0.0) == pytest.approx(expected, rel=1e-6)
    assert bounds.lipschitz(0.0) >= expected
    assert bounds.sup == pytest.approx(1.0 if transform == "exp" else 1.0 / 0.7, rel=1e-6)


def test_the_radius_has_the_largest_reach():
    problem, at = line(), centre_of(line())
    best = validated(problem, at)
    for factor in (0.5, 0.8, 0.95, 1.03):
        other = validated(problem, at, radius=factor * best.radius)
        assert other.radius == factor * best.radius
        assert other.reach <= 1.01 * best.reach
    assert validated(problem, at, radius=0.1 * best.radius).constant.value < best.constant.value
    # A tiny ball has the constant of the linearization.
    tiny = validated(problem, at, radius=1e-6 * best.radius)
    assert tiny.constant.value == pytest.approx(fc.stability(problem, at=at).constant.value, rel=1e-5)


def test_the_ball_hardly_depends_on_the_mesh():
    radii = [validated(line(n=n), np.full(n + 1, 0.3)).radius for n in (50, 100, 200)]
    assert radii[1] == pytest.approx(radii[2], rel=0.05)


def test_balls_that_are_not_valid():
    problem, at = line(), centre_of(line())
    best = validated(problem, at)
    assert "below sigma_min" in best.reason
    big = validated(problem, at, radius=3.0 * best.radius)
    assert not big.valid
    assert "too big" in big.reason
    assert (big.constant.value, big.between.value, big.reach) == (np.inf, np.inf, 0.0)
    assert check_kantorovich(big, 0.0) == (False, big.reason)
    huge = validated(problem, at, radius=1e6)
    assert (huge.valid, huge.lipschitz.value) == (False, np.inf)
    negative = validated(line(transform="identity"), np.ones(25), radius=5.0)
    assert not negative.valid
    assert "not positive" in negative.reason


def test_too_few_or_blind_sensors():
    few = validated(line(m=2), np.zeros(25))
    assert (few.valid, few.radius, few.sigma.value) == (False, 0.0, 0.0)
    assert "k = 3 coordinates but there are only m = 2" in few.reason
    # Where no heat flows, the conductivity leaves no trace.
    blind = line(
        source=lambda x: 1.0 * (x[0] < 0.5), neumann={"right": 0.0}, dirichlet={"left": 0.0}, k=2,
        space=lambda basis, k: fc.RegionSpace(basis, np.split(np.arange(24), k)),
    )  # fmt: skip
    found = validated(blind, np.zeros(24))
    assert "zero to rounding" in found.reason
    assert check_kantorovich(found, 1e-9) == (False, found.reason)


def test_kantorovich():
    problem = line(n=40, m=12)
    truth = problem.parameters.field([0.3, -0.1, 0.05])
    found = validated(problem, truth)
    ok, reason = check_kantorovich(found, 0.5 * found.reach)
    assert ok
    assert "every consistent parameter" in reason
    assert not check_kantorovich(found, 1.01 * found.reach)[0]
    with pytest.raises(fc.UncertifiedError, match="leaves the validated ball"):
        found.distance(1.01 * found.reach)
    sigma = found.sigma.value
    assert found.distance(1e-6 * found.reach).value == pytest.approx(1e-6 * found.reach / sigma, rel=1e-5)
    assert found.distance(0.0).value == 0.0
    with pytest.raises(fc.InputError, match="eps"):
        check_kantorovich(found, np.nan)
    with pytest.raises(fc.InputError, match="expected the result of validated"):
        check_kantorovich(0.1, 0.1)


def test_a_reconstruction_is_covered():
    problem = line(n=40, m=12)
    truth = problem.parameters.field([0.3, -0.1, 0.05])
    data = problem.simulate(truth, noise=1e-4, seed=3, oracle=True)
    c = np.array([0.3, -0.1, 0.05])
    for _ in range(5):
        q = problem.parameters.field(c)
        misfit = data.values - problem.observe(problem.solve(q))
        c = c + np.linalg.lstsq(problem.jacobian(q), misfit, rcond=None)[0]
    q = problem.parameters.field(c)
    found = validated(problem, q, data=data)
    eps = data.norm(problem.observe(problem.solve(q)) - data.values) + data.noise_level
    assert check_kantorovich(found, eps)[0]
    error = problem.parameters.norm(q - truth)
    assert error <= found.distance(eps).value <= found.radius


def test_refused():
    problem = line()
    source = zoo.source(problem.basis, parameters=problem.parameters, sensors=problem.sensors)
    basis = Basis(MeshTri().refined(2), ElementTriP1(), intorder=3)
    negative = zoo.coefficient(basis, parameters=1, sensors=2)
    for at, options, error, word in (
        (source, {}, fc.UncertifiedError, "does not offer"),
        (problem, {"radius": -1.0}, fc.InputError, "radius"),
        (problem, {"data": fc.Data([0.0, 1.0], 0.0)}, fc.InputError, "2 values"),
        (negative, {}, fc.UncertifiedError, "weights that are not positive"),
    ):
        with pytest.raises(error, match=word):
            validated(at, np.zeros(25), **options)
