"""Whenever a radius calls itself an upper bound, the discrete truth is inside; and it is not needlessly large."""

import dataclasses
from functools import cache

import numpy as np
import pytest
import zoo
from skfem import MeshTri
from zoo import square

import femcert as fc

RULES = [
    fc.ResidualRadius(),
    fc.OperationalRadius(pde=0.05, optimality=0.1),
    fc.OperationalRadius(pde=0.0, bc=0.0),
    fc.StochasticRadius(points=50, seed=1),
]
HIDING = ("truth's state", "best fit, polished")


def line_source(name, n, k=4, m=7, **options):
    return zoo.source(name, n, parameters=k, sensors=m, **options)


def plane_source(basis, space=fc.EigenmodeSpace, k=4, m=9, **options):
    sensors = fc.AverageSensors(basis, zoo.inside_points(basis, m, seed=0), radius=0.08)
    return zoo.source(basis, parameters=(space, k), sensors=sensors, **options)


def blocks(basis, k):
    return fc.RegionSpace(basis, np.array_split(np.arange(basis.mesh.nelements), k))


def coarse(basis, k):
    return fc.CoarseSpace(basis, MeshTri())


MIXED = {"dirichlet": {"left": lambda x: 2.0 + x[-1]}, "neumann": {"right": -1.5}, "conductivity": 0.5, "reaction": 2.0}
ROBIN = {"dirichlet": {"left": 3.0}, "robin": {"right": (2.0, 5.0)}}

PROBLEMS = {
    "line P1 coarse": lambda: line_source("line P1", 6),
    "line P1 lumped": lambda: line_source("line P1", 40, mass="lumped"),
    "line P2 coarse mixed": lambda: line_source("line P2", 4, dirichlet={"left": -4.0}, neumann={"right": 2.0}),
    "line P2 robin": lambda: line_source("line P2", 30, **ROBIN),
    "triangles P1 coarse": lambda: plane_source(square(2)),
    "triangles P1 mixed": lambda: plane_source(square(3), **MIXED),
    "triangles P2": lambda: plane_source(square(2, 2), dirichlet=10.0),
    "triangles regions": lambda: plane_source(square(3), space=blocks),
    "triangles coarse mesh": lambda: plane_source(square(3), space=coarse, **ROBIN),
    "quads Q1": lambda: plane_source(square(3, 1, "quad"), space=fc.SineSpace, **MIXED),
    "quads Q2 coarse": lambda: plane_source(square(1, 2, "quad"), space=fc.SineSpace),
    "heat exact": lambda: heat("exact"),
    "heat steps": lambda: heat("crank-nicolson"),
    "heat euler two times": lambda: heat("backward-euler", times=[0.02, 0.04]),
    "tomography": lambda: zoo.tomography(square(3), parameters=6, angles=[0.0, 35.0, 70.0, 120.0], bins=5),
}


def heat(scheme, times=0.03):
    basis = square(3, 1, "quad")
    return zoo.heat(basis, parameters=4, sensors=7, times=times, diffusivity=0.5, scheme=scheme, steps=6)


@cache
def problem_called(name):
    return PROBLEMS[name]()


def observations(problem, truth, noise, weighted, seed):
    """Noise of norm exactly the noise level, in the norm of Y."""
    rng = np.random.default_rng(seed)
    exact = problem.observe(problem.solve(truth))
    m = exact.size
    covariance = None
    if weighted:
        root = rng.standard_normal((m, m))
        covariance = root @ root.T / m + 0.1 * np.eye(m)
    e = rng.standard_normal(m)
    clean = fc.Data(exact, 0.0, covariance)
    e *= noise * clean.norm(exact) / clean.norm(e)
    return fc.Data(exact + e, clean.norm(e) * (1.0 + 1e-12), covariance)


def fitted_state(problem, data):
    """A state that fits the data perfectly, whatever the parameter: the least change of zero that does."""
    H = problem.sensors.matrix.toarray()
    columns = data.values.reshape(-1, problem.sensors.count).T
    u = np.linalg.lstsq(H, columns, rcond=None)[0]
    return u[:, 0] if columns.shape[1] == 1 else u


def candidates(problem, data, truth, seed):
    """Names and candidates, honest ones and cheats."""
    rng = np.random.default_rng(seed)
    space = problem.parameters
    c, _ = space.project(truth)
    weakest = fc.stability(problem, data=data).weakest

    def solved(q, state=None):
        u = None if not problem.states else problem.solve(q) if state is None else state
        return fc.Candidate(u, q, optimality=0.0)

    yield "truth", solved(truth)
    yield "baseline", fc.Tikhonov(weight=1e-4)(problem, data)
    yield "best fit", fc.Tikhonov(weight=1e-16)(problem, data)
    for size in (1e-13, 1e-6, 0.1, 10.0):
        yield f"moved by {size:g}", solved(space.field(c + size * rng.standard_normal(c.size)))
        yield f"weakest {size:g}", solved(truth + size * weakest)
    rough = rng.standard_normal(truth.size)
    yield "out of class", solved(truth + 0.3 * rough)
    yield "rough", solved(rough)
    if problem.states:
        # States that hide the misfit of an unrelated parameter.
        yield "truth's state", solved(truth + 2.0 * weakest, problem.solve(truth))
        yield "fitted state", solved(truth + 2.0 * weakest, fitted_state(problem, data))
        yield "fitted state, rough", solved(rough, fitted_state(problem, data))
        yield "small fitted state", solved(space.field(np.zeros_like(c)), fitted_state(problem, data))
        F, y = data.whiten(problem.forward_matrix()), data.whiten(data.values - problem.offset)
        best = space.field(np.linalg.lstsq(F, y, rcond=None)[0])
        near = problem.solve(best)
        H = problem.sensors.matrix.toarray()
        gap = (data.values - problem.observe(near)).reshape(-1, problem.sensors.count).T
        yield "best fit, polished", solved(best, near + np.linalg.lstsq(H, gap, rcond=None)[0].reshape(near.shape))


@pytest.mark.parametrize(("noise", "weighted"), [(0.0, False), (0.02, True), (0.5, False)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_an_upper_radius_contains_the_truth(name, weighted, noise):
    problem = problem_called(name)
    seed = int(100 * noise) + 7 * len(name)
    truth = problem.parameters.field(np.random.default_rng(seed).standard_normal(problem.parameters.dimension))
    data = observations(problem, truth, noise, weighted, seed)
    for kind, candidate in candidates(problem, data, truth, seed):
        for rule in RULES:
            found = fc.certify(problem, data, candidate, rule)
            assert (found.radius.side == "upper") == (found.scope == "discrete")
            assert found.radius.side != "lower"
            if found.radius.side == "upper":
                assert found.contains(truth), (kind, rule, found.radius, found.error(truth))
            # A test of nothing but estimates would pass: consistent candidates of the class do get their bound.
            if kind.startswith(("truth", "baseline", "best fit", "moved", "weakest")) and kind not in HIDING:
                assert found.radius.side == "upper", (kind, rule, found.radius)


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_consistent_parameter_is_inside(name):
    # Not only the truth that made the data: all parameters of the class within the noise level.
    problem = problem_called(name)
    space = problem.parameters
    rng = np.random.default_rng(3)
    truth = space.field(rng.standard_normal(space.dimension))
    data = observations(problem, truth, 0.1, True, 3)
    baseline = fc.Tikhonov(weight=1e-3)(problem, data)
    found = fc.certify(problem, data, baseline, fc.ResidualRadius())
    assert found.radius.side == "upper"
    c, _ = space.project(truth)
    F = data.whiten(problem.forward_matrix())
    y = data.whiten(data.values - problem.offset)
    for _ in range(50):
        d = np.linalg.solve(F.T @ F, rng.standard_normal(space.dimension))
        # As far along d as the noise level allows.
        a, b, e = F @ d @ (F @ d), F @ d @ (F @ c - y), (F @ c - y) @ (F @ c - y) - data.noise_level**2
        step = (-b + np.sqrt(max(b * b - a * e, 0.0))) / a
        other = space.field(c + 0.999999 * step * d)
        assert found.contains(other)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("weighted", [False, True], ids=["euclidean", "covariance"])
def test_the_radius_is_tight_along_the_weakest_direction(name, weighted):
    problem = problem_called(name)
    rng = np.random.default_rng(1)
    truth = problem.parameters.field(rng.standard_normal(problem.parameters.dimension))
    data = observations(problem, truth, 0.0, weighted, 1)
    found = fc.stability(problem, data=data)
    q = truth + 3.0 * found.weakest
    candidate = fc.Candidate(problem.solve(q) if problem.states else None, q)
    certificate = fc.certify(problem, data, candidate, fc.OperationalRadius(pde=0.0, bc=0.0))
    assert certificate.radius.side == "upper"
    assert 1.0 <= certificate.sharpness(truth) <= 1.0 + 1e-6


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_radius_is_at_most_the_condition_number_times_the_error(name):
    # Without noise: C ‖F e‖ <= (sigma_max / sigma_min) ‖e‖ for any error in the class.
    problem = problem_called(name)
    space = problem.parameters
    condition = fc.stability(problem).condition
    for seed in range(5):
        c, e = np.random.default_rng(seed).standard_normal((2, space.dimension))
        truth = space.field(c)
        data = observations(problem, truth, 0.0, False, seed)
        candidate = fc.Candidate.from_coefficients(problem, c + e)
        certificate = fc.certify(problem, data, candidate, fc.ResidualRadius())
        assert certificate.radius.side == "upper"
        assert 1.0 <= certificate.sharpness(truth) <= condition * (1.0 + 1e-6)


def test_noise_adds_no_more_than_itself():
    problem = problem_called("triangles P1 mixed")
    truth = problem.parameters.field([1.0, -1.0, 0.5, 0.25])
    data = observations(problem, truth, 0.05, False, 0)
    candidate = fc.Candidate(problem.solve(truth), truth)
    certificate = fc.certify(problem, data, candidate, fc.ResidualRadius())
    constant = fc.stability(problem).constant.value
    # The truth's own misfit is the noise: twice delta in all.
    assert certificate.radius.value == pytest.approx(2.0 * constant * data.noise_level, rel=1e-6)


def test_a_borrowed_constant_proves_nothing():
    # The constant of better sensors, or of another norm of Y, is too small here: the radius may be used, not believed.
    problem = line_source("line P1", 30, k=4, m=7)
    better = line_source("line P1", 30, k=4, m=25)
    truth = problem.parameters.field([1.0, 0.5, -0.5, 1.0])
    data = observations(problem, truth, 0.0, False, 0)
    own, borrowed = fc.stability(problem), fc.stability(better)
    assert borrowed.constant.value < 0.9 * own.constant.value
    q = truth + own.weakest
    candidate = fc.Candidate(problem.solve(q), q)
    certificate = fc.certify(problem, data, candidate, fc.ResidualRadius(stability=borrowed))
    assert not certificate.contains(truth)
    assert (certificate.radius.side, certificate.scope) == ("estimate", "estimate")
    # Its own constant, computed beforehand, is as good as computed on the way.
    fixed = fc.certify(problem, data, candidate, fc.ResidualRadius(stability=own))
    assert fixed.radius.side == "upper"
    assert fixed.contains(truth)


def test_the_euclidean_constant_proves_nothing_for_weighted_data():
    problem = line_source("line P1", 30)
    truth = problem.parameters.field([1.0, 0.5, -0.5, 1.0])
    exact = problem.observe(problem.solve(truth))
    data = fc.Data(exact, 0.0, np.full(7, 100.0))
    weakest = fc.stability(problem, data=data).weakest
    candidate = fc.Candidate(problem.solve(truth + weakest), truth + weakest)
    certificate = fc.certify(problem, data, candidate, fc.ResidualRadius(stability=fc.stability(problem)))
    assert not certificate.contains(truth)
    assert certificate.radius.side == "estimate"


def test_a_constant_by_hand_proves_nothing():
    problem = line_source("line P1", 30, k=4, m=7)
    truth = problem.parameters.field([1.0, 0.5, -0.5, 1.0])
    data = observations(problem, truth, 0.0, False, 0)
    claimed = dataclasses.replace(fc.stability(problem), constant=fc.Bound(1e-6, "upper", "trust me"))
    candidate = fc.Candidate.from_coefficients(problem, np.zeros(4))
    certificate = fc.certify(problem, data, candidate, fc.ResidualRadius(stability=claimed))
    assert certificate.radius.side == "estimate"
    # Nor does one where none exists: more coordinates than sensors.
    wide = line_source("line P1", 30, k=9, m=7)
    data = fc.Data(np.zeros(7), 0.0)
    zero = fc.Candidate.from_coefficients(wide, np.zeros(9))
    assert fc.certify(wide, data, zero, fc.ResidualRadius(stability=claimed)).radius.side == "estimate"


def test_the_paper_s_hallucination_gets_no_bound():
    # Structure that the sensors do not see, in a state that they like: a small radius, and no claim.
    problem = line_source("line P1", 40)
    truth = problem.parameters.field([1.0, 0.5, 0.25, 0.1])
    data = observations(problem, truth, 0.0, False, 0)
    x = problem.basis.doflocs[0]
    q = truth + 5.0 * np.sin(20 * np.pi * x)
    candidate = fc.Candidate(problem.solve(truth), q)
    certificate = fc.certify(problem, data, candidate, fc.OperationalRadius(pde=0.0, covered=False))
    assert certificate.error(truth) > 1.0
    assert certificate.radius.value < 0.01
    assert (certificate.radius.side, certificate.scope) == ("estimate", "estimate")
    assert certificate.residuals.admissibility.value == pytest.approx(certificate.error(truth), rel=1e-6)
    # What lies outside of the class, counted as what it may be wrong by, makes it a bound.
    covered = fc.certify(problem, data, candidate, fc.OperationalRadius(pde=0.0))
    assert (covered.radius.side, covered.contains(truth)) == ("upper", True)


def test_nonlinear_radii_are_estimates():
    problem = zoo.coefficient(parameters=(fc.SineSpace, 2), sensors=7)
    data = problem.simulate(problem.parameters.field([0.2, 0.1]), noise=0.5)
    found = fc.certify(problem, data, fc.Candidate.from_coefficients(problem, [0.0, 0.0]), fc.ResidualRadius())
    assert (found.radius.side, found.scope, found.stability.scope) == ("estimate",) * 3


@pytest.mark.parametrize("degree", [8, 9, 10])
def test_an_ill_conditioned_basis_of_the_class(degree):
    space = fc.FunctionSpace(zoo.unit_basis("line P2", 100), [lambda x, j=j: x[0] ** j for j in range(degree)])
    problem = zoo.source(space.basis, parameters=space, sensors=np.linspace(0.02, 0.98, 30))
    truth = space.field(np.random.default_rng(0).standard_normal(degree))
    data = observations(problem, truth, 0.0, False, 0)
    q = truth + fc.stability(problem).weakest
    found = fc.certify(problem, data, fc.Candidate(problem.solve(q), q), fc.ResidualRadius())
    assert found.contains(truth)


def certificates(problem, data, coefficients):
    """Of the best fit and of the truth itself, whose misfits are nothing but rounding or noise."""
    scale = float(np.linalg.norm(problem.forward_matrix())) ** 2
    best = fc.Tikhonov(weight=1e-14 * scale)(problem, data)
    own = fc.Candidate.from_coefficients(problem, coefficients)
    # The second rule has no other residual in which rounding errors could hide.
    for rule in (fc.ResidualRadius(), fc.OperationalRadius(pde=0.0, bc=0.0)):
        for candidate in (best, own):
            yield fc.certify(problem, data, candidate, rule)


def insulated(basis, c):
    """-Laplace u + c u = q with insulated ends: q = 1 has the state u = 1 / c, whatever the mesh."""
    points = np.random.default_rng(0).uniform(0.1, 0.9, (5, basis.mesh.dim()))
    constant = fc.FunctionSpace(basis, [lambda x: 1.0])
    return zoo.source(basis, parameters=constant, sensors=points, reaction=c, dirichlet={})


def line(cells):
    return zoo.unit_basis("line P1", cells)


INSULATED = {
    "51 nodes": (line(50), 1e-3),
    "501 nodes": (line(500), 1e-6),
    "5001 nodes": (line(5000), 1e-3),
    "triangles": (square(4), 1e-6),
}


@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-8, 1e-3])
@pytest.mark.parametrize("case", INSULATED)
def test_rounding_of_a_nearly_singular_operator(case, noise):
    """The state loses as many digits as the condition number has; the data here are exact."""
    basis, c = INSULATED[case]
    problem = insulated(basis, c)
    error = np.random.default_rng(1).standard_normal(5)
    error *= noise / c / np.linalg.norm(error)
    data = fc.Data(1.0 / c + error, float(np.linalg.norm(error)))
    for found in certificates(problem, data, [1.0]):
        assert found.radius.side != "upper" or found.contains(np.ones(basis.N))
        # A few digits are left in all of these, and the radius shows it.
        assert found.radius.value < 0.05


def test_an_operator_without_digits_is_singular():
    problem = insulated(line(500), 1e-9)
    with pytest.raises(fc.SolveError, match=r"singular to rounding .*no Dirichlet condition is given"):
        problem.solve(np.ones(501))


def sine_data(n, nodes, k):
    """Forward matrix of P1 on a uniform line, in closed form: sines are eigenvectors of stiffness and mass."""
    j = np.arange(1, k + 1)
    square = np.sin(0.5 * j * np.pi / n) ** 2
    value = 12.0 * n**2 * square / (3.0 - 2.0 * square)
    unit = np.sqrt((3.0 - 2.0 * square) / 6.0)
    return np.sin(np.pi * np.outer(nodes, j) / n) / unit / value


@pytest.mark.parametrize("n", [1000, 100_000])
def test_rounding_on_a_fine_line(n):
    """Exact data in closed form, no noise at all: what is left of the radius is the rounding of the solves."""
    nodes = np.array([n // 5, n // 2, (4 * n) // 5])
    problem = zoo.source(line(n), sensors=line(n).mesh.p[0, nodes])
    F = sine_data(n, nodes, 3)
    assert np.allclose(problem.forward_matrix(), F, rtol=0, atol=problem.rounding * np.abs(F).max())
    for c in ([1.0, -0.5, 0.25], [0.0, 1e-3, 1.0]):
        truth = problem.parameters.field(c)
        for found in certificates(problem, fc.Data(F @ c, 0.0), c):
            assert found.radius.side != "upper" or found.contains(truth)
            assert found.radius.value < 1e-3


def test_rounding_grows_with_the_condition():
    sizes = [10, 1000, 100_000]
    found = [line_source("line P1", n, k=1, m=1).rounding for n in sizes]
    assert found[0] >= 1e-12
    # The condition number of a line is about 0.4 n².
    assert np.diff(found).min() > 0.0
    assert found[2] == pytest.approx(1e4 * found[1], rel=0.1)
    # Rays are read off the image: no solve, no loss.
    assert zoo.tomography().rounding == 1e-12


@pytest.mark.parametrize("level", [1.0, 1e6, 1e9])
@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_cancellation_against_the_boundary_values(level, size):
    """u = level at both ends: the data are nearly all offset, and what is left of them has few digits."""
    n = 1999
    nodes = np.array([n // 2])
    problem = zoo.source(line(n), parameters=1, sensors=line(n).mesh.p[0, nodes], dirichlet=level)
    data = fc.Data(level + size * sine_data(n, nodes, 1)[:, 0], 0.0)
    truth = problem.parameters.field([size])
    for found in certificates(problem, data, [size]):
        assert found.radius.side != "upper" or found.contains(truth)
        assert found.radius.value < 1e-7 * level
