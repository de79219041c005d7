"""The stochastic radius: bounds and sampling of the rule, importance by element, frozen candidates."""

import numpy as np
import pytest
from function_helpers import population, residual_values
from scipy.stats import chisquare
from skfem import (
    Basis,
    ElementLineP1,
    ElementQuad1,
    ElementQuad2,
    ElementTriP1,
    ElementTriP2,
    MeshLine,
    MeshQuad,
    MeshTri,
)  # fmt: skip
from zoo import heat, judge_of, mass

import femcert as fc
from femcert.certificate.sampling import Plan, element_envelopes

ALL = [(bound, sampling) for bound in ("hoeffding", "bernstein", "betting") for sampling in ("uniform", "importance")]


def uneven(cls):
    mesh = cls().refined(3)
    return cls(np.array([mesh.p[0] ** 2 + 0.1 * mesh.p[0], mesh.p[1] + 0.3 * mesh.p[0] * mesh.p[1]]), mesh.t)


BASES = {
    "line P1": lambda: Basis(MeshLine(np.linspace(0.0, 1.0, 41) ** 2), ElementLineP1()),
    "tri P1": lambda: Basis(uneven(MeshTri), ElementTriP1()),
    "tri P2": lambda: Basis(uneven(MeshTri), ElementTriP2()),
    "quad Q1": lambda: Basis(uneven(MeshQuad), ElementQuad1()),
    "quad Q2": lambda: Basis(uneven(MeshQuad), ElementQuad2()),
}


def source(name="line P1"):
    basis = BASES[name]()
    points = 0.3 + 0.4 * np.random.default_rng(0).random((6, basis.mesh.dim()))
    return fc.EllipticSource(
        basis, parameters=fc.EigenmodeSpace(basis, 2), sensors=fc.AverageSensors(basis, points, radius=0.05)
    )


def spiked(problem, *, noise=0.01, spike=20.0):
    """A candidate whose strong residual is small, but for a spike at one node."""
    rng = np.random.default_rng(4)
    q = problem.parameters.field([1.0, 0.5])
    M = mass.assemble(problem.basis)
    bump = noise * rng.standard_normal(problem.basis.N)
    bump[problem.free[len(problem.free) // 2]] += spike
    load = (M @ bump)[problem.free]
    u = problem.solve(q)
    u[problem.free] += np.linalg.solve(problem.operator[problem.free][:, problem.free].toarray(), load)
    return fc.Candidate(u, q)


def physics(problem, candidate, **options):
    return judge_of(fc.StochasticRadius(**options), problem).physics(candidate, None).value


@pytest.mark.parametrize("name", ["line P1", "tri P2", "quad Q1"])
def test_every_bound_covers_the_population_residual(name):
    problem = source(name)
    candidate = spiked(problem, noise=1.0, spike=4.0)
    truth = population(problem, candidate)
    for bound, sampling in ALL:
        options = {"bound": bound, "sampling": sampling}
        draws = range(40)
        values = np.array([physics(problem, candidate, points=40, seed=seed, zeta=0.2, **options) for seed in draws])
        assert np.mean(values >= truth) >= 0.8, (bound, sampling)
        close = physics(problem, candidate, points=200_000, zeta=1e-6, **options)
        most = 1.35 if (bound, sampling) == ("hoeffding", "uniform") else 1.15
        assert truth <= close <= most * truth, (bound, sampling)


@pytest.mark.parametrize("name", ["line P1", "tri P2", "quad Q1"])
@pytest.mark.parametrize("bound", ["hoeffding", "bernstein", "betting"])
def test_importance_is_tighter_on_a_spike(name, bound):
    problem = source(name)
    candidate = spiked(problem)
    truth = population(problem, candidate)
    # Failures of one in a million are not met here.
    options = {"points": 500, "bound": bound, "seed": 1, "zeta": 1e-6}
    uniform = physics(problem, candidate, **options)
    importance = physics(problem, candidate, sampling="importance", **options)
    assert truth <= importance < uniform
    assert importance - truth <= 0.5 * (uniform - truth)


def test_betting_is_tighter_than_hoeffding_in_the_rule():
    problem = source()
    candidate = spiked(problem)
    truth = population(problem, candidate)
    excess = {}
    for bound in ("hoeffding", "betting"):
        values = [physics(problem, candidate, points=500, bound=bound, seed=seed) for seed in range(20)]
        excess[bound] = np.mean(np.square(values)) - truth**2
    assert 0.0 < excess["betting"] <= 0.5 * excess["hoeffding"]


@pytest.mark.parametrize("name", BASES)
def test_weighted_squares_have_the_right_mean_and_envelope(name):
    problem = source(name)
    mesh = problem.basis.mesh
    values = residual_values(problem, spiked(problem, noise=1.0))[:, None]
    bounds = element_envelopes(problem.basis, values)
    areas = problem.basis.dx.sum(axis=1)
    w = (areas / areas.sum())[:, None]
    squares = (np.asarray(problem.basis.interpolate(values[:, 0])) ** 2 * problem.basis.dx).sum(axis=1) / areas
    for indicators in (None, squares[:, None]):
        plan = Plan.importance(mesh, bounds, indicators)
        assert plan.probability.sum() == pytest.approx(1.0)
        # Exactly: sum_K p_K (w_K / p_K) (mean square on K) is the mean square.
        assert np.allclose(plan.probability * plan.weight, w, rtol=1e-9)
        assert np.all(plan.weight * bounds**2 <= plan.envelope * (1.0 + 1e-12))
        found, columns = plan.draw(mesh, 30_000, np.random.default_rng(0))
        points, cells = found.x, found.cells
        assert not columns.any()
        local = problem.basis.mapping.invF(points[:, :, None], tind=cells)
        assert local.min() > -1e-9
        assert local.max() < 1.0 + 1e-9
        expected = 30_000 * plan.probability[:, 0]
        large = expected > 5.0
        seen = np.bincount(cells, minlength=mesh.nelements)
        counts = np.append(seen[large], seen[~large].sum() + 5.0)
        assert chisquare(counts, np.append(expected[large], expected[~large].sum() + 5.0)).pvalue > 1e-4
    # Of all plans the one by the bounds has the smallest envelope: their mean.
    best = Plan.importance(mesh, bounds).envelope
    assert best == pytest.approx(float((w * bounds**2).sum()), rel=1e-6)
    assert best <= plan.envelope <= 2.0 * bounds.max() ** 2
    assert Plan.uniform(mesh, bounds).envelope == bounds.max() ** 2


def test_importance_over_elements_and_times():
    basis = BASES["line P1"]()
    problem = heat(basis, sensors=3, times=0.1)
    q = problem.parameters.field([1.0, 1.0])
    u = problem.trajectory(q)
    u[problem.free[20], 3] += 0.5
    candidate = fc.Candidate(u, q)
    truth = population(problem, candidate)
    for bound in ("hoeffding", "bernstein", "betting"):
        uniform = physics(problem, candidate, points=1000, bound=bound, zeta=1e-6)
        importance = physics(problem, candidate, points=1000, bound=bound, zeta=1e-6, sampling="importance")
        assert truth <= importance < uniform


# Points of their own


def test_each_candidate_has_points_of_its_own():
    """By the seed and the values of the candidate."""
    problem, rule = source(), fc.StochasticRadius(points=20, seed=3)
    candidate = spiked(problem)
    again = fc.Candidate(candidate.state.copy(), candidate.parameter.copy(), 0.3, "other")
    nudged = candidate.state.copy()
    nudged[3] = np.nextafter(nudged[3], np.inf)
    first = judge_of(rule, problem)._entropy(candidate)
    assert first[0] == 3
    assert first == judge_of(rule, problem)._entropy(again)
    assert first != judge_of(rule, problem)._entropy(fc.Candidate(nudged, candidate.parameter))
    assert first != judge_of(rule, problem)._entropy(fc.Candidate(candidate.parameter, candidate.state))
