"""The stochastic radius: envelope, uniform points, Hoeffding by hand, coverage."""

import numpy as np
import pytest
import zoo
from function_helpers import population, residual_values
from scipy.stats import chisquare
from skfem import Basis, ElementLineP1, ElementQuad1, ElementTriP1, MeshLine, MeshQuad, MeshTri
from zoo import judge_of

import femcert as fc
from femcert.certificate.confidence import hoeffding
from femcert.certificate.sampling import element_envelopes
from femcert.mesh.sample import uniform_points


def skewed_quads(level=2):
    """Quadrilaterals that are no parallelograms."""
    mesh = MeshQuad().refined(level)
    x, y = mesh.p
    return MeshQuad(np.array([x + 0.35 * x * y * y, y + 0.5 * x * x * (1.0 - 0.5 * y)]), mesh.t)


def uneven_line():
    return MeshLine(np.array([0.0, 0.05, 0.2, 0.6, 1.0]))


def uneven_triangles():
    mesh = MeshTri().refined(2)
    return MeshTri(np.array([mesh.p[0] ** 2 + 0.1 * mesh.p[0], mesh.p[1] + 0.3 * mesh.p[0]]), mesh.t)


def problem_on(name):
    return zoo.source(name, 4, parameters=2)


def reference_grid(dim, triangle, n=60):
    s = np.linspace(0.0, 1.0, n + 1)
    if dim == 1:
        return s[None]
    X = np.array(np.meshgrid(s, s)).reshape(2, -1)
    return X[:, X.sum(axis=0) <= 1.0 + 1e-12] if triangle else X


def largest_value(problem, values):
    return element_envelopes(problem.basis, values[:, None]).max()


@pytest.mark.parametrize("name", zoo.STRAIGHT)
def test_the_envelope_is_a_bound_and_is_attained(name):
    problem = problem_on(name)
    basis = problem.basis
    X = reference_grid(basis.mesh.dim(), "tri" in name)
    shapes = np.array([basis.elem.lbasis(X, i)[0] for i in range(len(basis.element_dofs))])
    for seed in range(20):
        values = np.random.default_rng(seed).choice([-1.0, 1.0], size=basis.N)
        values *= np.random.default_rng(seed).uniform(0.5, 1.0, size=basis.N) ** (seed % 2)
        largest = np.abs(np.einsum("ie,ix->ex", values[basis.element_dofs], shapes)).max()
        assert largest <= largest_value(problem, values) * (1.0 + 1e-12)
    # The worst signs on one element: nothing smaller would do.
    sums = np.abs(shapes).sum(axis=0)
    worst = np.argmax(sums)
    values = np.zeros(basis.N)
    values[basis.element_dofs[:, 0]] = np.sign(shapes[:, worst])
    reached = np.abs(values[basis.element_dofs[:, 0]] @ shapes).max()
    assert reached == pytest.approx(sums.max())
    # The maximum over the grid of 60 x 60 is the true one: the constants are those of the closed forms.
    assert largest_value(problem, values) == pytest.approx(reached, rel=1e-3)


@pytest.mark.parametrize(
    "mesh", [uneven_line(), uneven_triangles(), skewed_quads(), MeshTri().refined(2), MeshQuad().refined(1)]
)
def test_points_are_uniform(mesh):
    count = 40_000
    found = uniform_points(mesh, count, np.random.default_rng(0))
    points, cells = found.x, found.cells
    assert points.shape == (mesh.dim(), count)
    basis = Basis(mesh, {2: ElementLineP1, 3: ElementTriP1, 4: ElementQuad1}[len(mesh.t)]())
    areas = basis.dx.sum(axis=1)
    expected = count * areas / areas.sum()
    seen = np.bincount(cells, minlength=mesh.nelements)
    assert chisquare(seen, expected).pvalue > 1e-4
    # Each point lies in the cell it claims.
    local = basis.mapping.invF(points[:, :, None], tind=cells)
    assert local.min() > -1e-9
    assert local.max() < 1.0 + 1e-9
    # And uniform inside the cells: first and second moments of the whole domain.
    x = np.asarray(basis.global_coordinates())
    for power in (1, 2, 3):
        exact = (x**power * basis.dx).sum(axis=(1, 2)) / areas.sum()
        spread = np.std(points**power, axis=1) / np.sqrt(count)
        assert np.all(np.abs((points**power).mean(axis=1) - exact) < 4.5 * spread + 1e-9)


def test_hoeffding_by_hand():
    squares = np.array([0.0, 1.0, 0.5, 0.5])
    assert hoeffding(squares, 2.0, 0.05) == pytest.approx(0.5 + 2.0 * np.sqrt(np.log(20.0) / 8.0), rel=1e-14)
    assert hoeffding(squares, 1.0, 0.5) == pytest.approx(0.5 + np.sqrt(np.log(2.0) / 8.0), rel=1e-14)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"points": 0}, "points"),
        ({"seed": -1}, "seed"),
        ({"bound": "chebyshev"}, "hoeffding"),
        ({"sampling": "adaptive"}, "importance"),
        *(({"zeta": zeta}, "zeta") for zeta in (0.0, 1.0, -0.5, 2.0)),
        *(({"pde_norm": norm}, "pde_norm") for norm in ("equilibrated", "enriched", "riesz", "indicator")),
    ],
)
def test_bad_options(options, match):
    with pytest.raises(fc.InputError, match=match):
        fc.StochasticRadius(**options)


def spoiled(problem, seed):
    rng = np.random.default_rng(seed)
    q = problem.parameters.field(rng.standard_normal(problem.parameters.dimension))
    u = problem.solve(q)
    bump = np.zeros(u.shape)
    bump[problem.free] = 0.01 * rng.standard_normal(bump[problem.free].shape)
    return fc.Candidate(u + bump, q)


@pytest.mark.parametrize("name", zoo.STRAIGHT)
def test_the_radius_by_hand(name):
    problem = problem_on(name)
    candidate = spoiled(problem, 0)
    data = fc.Data(np.linspace(0.0, 1.0, 6), 1.5)
    rule = fc.StochasticRadius(points=64, zeta=0.1, seed=5)
    found = fc.certify(problem, data, candidate, rule)
    # Points as documented: drawn from the seed and the values of the candidate.
    entropy = judge_of(rule, problem)._entropy(candidate)
    field = residual_values(problem, candidate)
    points = uniform_points(problem.basis.mesh, 64, np.random.default_rng(entropy)).x
    sampled = problem.basis.probes(points) @ field
    B = {"line P2": 1.25, "tri P2": 5 / 3, "quad Q2": 1.5625}.get(name, 1.0) * np.abs(field).max()
    pde = np.sqrt(np.mean(sampled**2) + B**2 * np.sqrt(np.log(10.0) / 128.0))
    assert found.residuals.pde.value == pytest.approx(pde, rel=1e-9)
    assert found.residuals.pde.side == "upper"
    assert "64 random points" in found.residuals.pde.source
    parts = found.residuals
    assert found.total == pytest.approx(parts.data.value + pde + parts.bc.value, rel=1e-9)
    expected = found.stability.constant.value * (found.total + 1.5)
    assert found.radius.value == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("name", zoo.STRAIGHT)
def test_it_covers_the_population_residual(name):
    problem = problem_on(name)
    candidate = spoiled(problem, 1)
    field, truth = residual_values(problem, candidate), population(problem, candidate)
    zeta, draws = 0.2, 200
    values = [
        judge_of(fc.StochasticRadius(points=8, zeta=zeta, seed=seed), problem).physics(candidate, None).value
        for seed in range(draws)
    ]
    assert np.mean(np.array(values) >= truth) >= 1.0 - zeta
    # With many points it is not far above.
    close = judge_of(fc.StochasticRadius(points=200_000, zeta=zeta, seed=0), problem).physics(candidate, None).value
    assert truth <= close <= 1.1 * truth
    # The mean of the squares is not biased: the samples have the population's mean.
    top = largest_value(problem, field) ** 2 * np.sqrt(np.log(1.0 / zeta) / 16.0)
    squares = np.array(values) ** 2 - top
    assert abs(squares.mean() - truth**2) < 4.5 * squares.std() / np.sqrt(draws)


def test_it_covers_all_times_of_a_heat_problem():
    problem = zoo.heat("line P1", 10, times=0.1)
    rng = np.random.default_rng(0)
    q = problem.parameters.field([1.0, 1.0])
    u = problem.trajectory(q)
    u[problem.free, 3] += 0.1 * rng.standard_normal(len(problem.free))
    candidate = fc.Candidate(u, q)
    truth = population(problem, candidate)
    rules = [fc.StochasticRadius(points=20, zeta=0.2, seed=s) for s in range(100)]
    values = [judge_of(rule, problem).physics(candidate, None).value for rule in rules]
    assert np.mean(np.array(values) >= truth) >= 0.8
    close = judge_of(fc.StochasticRadius(points=300_000, seed=0), problem).physics(candidate, None).value
    assert truth <= close <= 1.1 * truth


def test_points_are_uniform_inside_one_quadrilateral():
    # No parallelogram: the image of uniform reference points would crowd at the short side.
    mesh = MeshQuad(np.array([[0.0, 1.0, 0.6, 0.4], [0.0, 0.0, 1.0, 1.0]]), np.array([[0], [1], [2], [3]]))
    found = uniform_points(mesh, 50_000, np.random.default_rng(1))
    points, cells = found.x, found.cells
    assert not cells.any()
    # The width falls linearly from 1 to 0.2, so the share below y is (y - 0.4 y^2) / 0.6.
    levels = np.linspace(0.0, 1.0, 11)
    share = np.diff((levels - 0.4 * levels**2) / 0.6)
    assert chisquare(np.histogram(points[1], levels)[0], 50_000 * share).pvalue > 1e-4
