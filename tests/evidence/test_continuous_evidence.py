"""Claims about the equation itself: truths and data come from another discretization, with errors far below."""

from __future__ import annotations

import numpy as np
import pytest
from evidence_helpers import fewest
from scipy.sparse import csc_matrix
from skfem import Basis, ElementLineP1, ElementLineP2, ElementTriP1, ElementTriP2, MeshLine, MeshTri
from zoo import discs, l_shape

import femcert as fc

LENGTH = 0.3
GRID = np.linspace(-0.8, 0.8, 6)
POINTS = np.array([(x, y) for x in GRID for y in GRID if not (x > -0.1 and y > -0.1)])


def source_on(basis, radius=1.0, points=POINTS, centre=None, **options):
    space = fc.FullSpace(basis).within_ball(radius, length=LENGTH, centre=centre)
    sensors = fc.AverageSensors(basis, points, radius=0.1)
    return fc.EllipticSource(basis, parameters=space, sensors=sensors, **options)


def finer(basis):
    """P2 on a mesh of a quarter of the size."""
    return Basis(basis.mesh.refined(2), ElementTriP2() if basis.mesh.dim() == 2 else ElementLineP2())


def west(basis):
    return fc.Mean(basis, lambda x: (x[0] < 0.0) & (x[1] < 0.0), name="south-west")


def bump(basis):
    x = basis.doflocs
    return np.exp(-((x[0] + 0.5) ** 2 + (x[1] + 0.5) ** 2) / 0.1)


def made_elsewhere(coarse, **options):
    """The problem on a fine discretization, its data, and a radius of the ball that contains its truth."""
    fine = source_on(finer(coarse), **options)
    truth = bump(fine.basis)
    return fine, truth, fine.observe(fine.solve(truth)), 1.05 * fine.parameters.ball_norm(truth)


def big_square(refined, degree=1):
    mesh = MeshTri().refined(refined)
    return Basis(MeshTri(2.0 * mesh.p - 1.0, mesh.t), (ElementTriP1, ElementTriP2)[degree - 1]())


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize(("domain", "most"), [(l_shape, 4.5), (big_square, 2.5)])
def test_biases_are_those_of_the_equation(domain, degree, most):
    """At least the largest bias on a fine discretization, which that of the own mesh is not; with a cap."""
    basis = domain(3, degree)
    fine = source_on(finer(basis))
    problem = source_on(basis)
    values = np.zeros(len(POINTS))
    data = fc.Data.gaussian(values, std=1e-3)
    asked = [west, lambda b: fc.Value(b, [-0.5, -0.5], radius=0.3)]
    found = fc.evidence(problem, data, guarantee="continuous")
    table = found.table([each(basis) for each in asked])
    ((estimates, limits, _),) = found._made.values()
    true = fc.evidence(fine, data)
    targets, _ = true._known.targets(
        csc_matrix(np.array([each(fine.basis).weights(fine.parameters) for each in asked]).T)
    )
    exact = true._affine._biases(estimates.weights, targets)[0]
    own = fc.evidence(problem, data)
    mine, _ = own._known.targets(csc_matrix(np.array([each(basis).weights(problem.parameters) for each in asked]).T))
    discrete = own._affine._biases(estimates.weights, mine)[0]
    bounds = np.array([row.bias for row in table])
    assert np.all(exact <= bounds)
    assert np.all(bounds <= most * exact)
    assert np.any(discrete < exact)
    assert limits is None
    assert all(row.limit is None for row in table)
    assert "(continuous)" in table.claim


def test_intervals_hold_for_data_that_were_made_elsewhere():
    """A coarse mesh: the discrete claim misses; the continuous one does not, and is not vacuous."""
    basis = l_shape(3)
    fine, truth, exact, radius = made_elsewhere(basis)
    problem, std, missed, covered = source_on(basis, radius), 1e-5 * np.abs(exact).max(), 0, 0
    mean = west(fine.basis).value(fine.parameters, truth)
    data = fc.Data.gaussian(exact, std=std)
    found, own = fc.evidence(problem, data, guarantee="continuous"), fc.evidence(problem, data)
    asked = west(basis)
    for trial in range(60):
        y = exact + std * np.random.default_rng(trial).standard_normal(len(exact))
        covered += found.with_data(data.with_values(y)).interval(asked).contains(mean)
        missed += not own.with_data(data.with_values(y)).explains(bump(basis))
    assert covered >= fewest(60, 0.95)
    assert missed == 60
    assert found.interval(asked).half_length < radius
    assert found.explains(bump(basis))
    assert found.p_value == 1.0
    assert found.least_norm.value <= radius
    assert found.scope == "continuous"
    assert found.confidence == 0.95


def test_centre_and_boundary_values_count():
    basis = l_shape(3)
    options = {"dirichlet": 0.5}

    def centre(b):
        return 0.8 * bump(b)

    fine, truth, exact, _ = made_elsewhere(basis, **options)
    problem = source_on(basis, 0.5, centre=centre(basis), **options)
    data = fc.Data.gaussian(exact, std=1e-3 * np.abs(exact).max())
    found = fc.evidence(problem, data, guarantee="continuous")
    mean = west(fine.basis).value(fine.parameters, truth)
    interval = found.interval(west(basis))
    assert interval.contains(mean)
    wide = found.interval(west(basis), simultaneous=True)
    assert wide.half_length > interval.half_length
    # What the mesh adds to the data of the centre (up to its interpolant) and of the boundary is counted.
    assert np.all(found._bias.beside(np.eye(len(exact))) > 0.0)
    assert found._bias.beside(np.eye(len(exact))).max() < 0.1 * np.abs(data.whiten(exact)).max()
    fine_data, eta = data.whiten(exact), found._bias.predicted(bump(basis))[1]
    assert np.linalg.norm(fine_data - found._bias.predicted(bump(basis))[0]) <= 1.1 * eta * found._bias.misread
    assert found.explains(bump(basis))
    assert not found.explains(9.0 * bump(basis))


def test_maps_and_refutation_are_continuous_too():
    basis = l_shape(3)
    fine, truth, exact, radius = made_elsewhere(basis)
    problem = source_on(basis, radius)
    found = fc.evidence(problem, fc.Data.gaussian(exact, std=1e-3 * np.abs(exact).max()), guarantee="continuous")
    drawn = found.map(0.4, points=[[-0.5, -0.5], [-0.5, 0.5]])
    smooth = [fc.Value(fine.basis, p, radius=0.4).value(fine.parameters, truth) for p in drawn.points]
    assert np.all(drawn.lower <= smooth)
    assert np.all(drawn.upper >= smooth)
    assert "(continuous)" in drawn.claim
    invented = 9.0 * np.ones(basis.N)
    assert found.refute(fc.Candidate(problem.solve(invented), invented), [west(basis)])
    assert found.breakdown(west(basis), -5.0).value > radius


def test_on_a_line():
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, 33)), ElementLineP1())
    points = np.linspace(0.1, 0.9, 7)
    fine, problem = (source_on(b, 3.0, points) for b in (finer(basis), basis))
    truth = np.sin(np.pi * fine.basis.doflocs[0]) ** 2
    assert fine.parameters.ball_norm(truth) <= 3.0
    exact = fine.observe(fine.solve(truth))
    data = fc.Data.gaussian(exact, std=1e-3 * exact.max())
    mean = fc.Mean(basis, lambda x: x[0] < 0.5)
    one, other = (fc.evidence(problem, data, guarantee=scope).interval(mean) for scope in ("continuous", "discrete"))
    assert one.contains(0.5)
    assert other.half_length < one.half_length < 2.0 * other.half_length


def test_what_is_missing_is_named():
    basis = Basis(MeshTri().refined(2), ElementTriP1())
    points = [[0.3, 0.3], [0.6, 0.7]]
    data = fc.Data.gaussian(np.zeros(2), std=1e-3)

    def asked(space, sensors=None, **options):
        sensors = fc.AverageSensors(basis, points, radius=0.1) if sensors is None else sensors
        problem = fc.EllipticSource(basis, parameters=space, sensors=sensors, **options)
        return fc.evidence(problem, data, guarantee="continuous")

    ball = fc.FullSpace(basis).within_ball(1.0)
    found = asked(ball)
    for name in ("outliers", "without_outliers"):
        with pytest.raises(fc.UncertifiedError, match="discrete"):
            getattr(found, name)
    with pytest.raises(fc.UncertifiedError, match="densities"):
        found.interval(np.ones(basis.N))
    with pytest.raises(fc.UncertifiedError, match="samples"):
        found.interval(fc.Mean(basis), samples=np.ones((50, basis.N)))
    with pytest.raises(fc.UncertifiedError, match="h2 norm"):
        asked(fc.FullSpace(basis).within_ball(1.0, norm="h2"))
    with pytest.raises(fc.UncertifiedError, match="within_ball"):
        asked(fc.EigenmodeSpace(basis, 2))
    with pytest.raises(fc.UncertifiedError, match="remainder"):
        asked(ball.with_remainder(0.1))
    with pytest.raises(fc.UncertifiedError, match="Average"):
        asked(ball, fc.PointSensors(basis, points))
    with pytest.raises(fc.UncertifiedError, match="estimated"):
        asked(ball, conductivity=lambda x: 1.0 + np.sin(x[0]))
    with pytest.raises(fc.InputError, match="'discrete' or 'continuous'"):
        fc.evidence(fc.EllipticSource(basis, parameters=ball, sensors=discs(points)(basis)), data, guarantee="both")
