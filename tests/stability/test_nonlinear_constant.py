"""stability() of a nonlinear problem: proven on a validated ball, or an estimate that says why."""

from __future__ import annotations

import numpy as np
import pytest
import zoo
from skfem import Basis, MeshTri
from skfem.element import ElementTriP1
from test_nonlinear_stability import steps, weights

import femcert as fc
from femcert.report.stability_figure import stability_message


def line(m=12, k=3, **options):
    points = np.linspace(0.08, 0.92, m)[:, None]
    return zoo.coefficient("line P2", 20, parameters=k, sensors=points, source=3.0, **options)


def square(**options):
    return zoo.coefficient(zoo.square(3), parameters=4, sensors=14, source=3.0, **options)


BUILD = {"line": line, "square": square}


def truth_of(problem):
    # The first mode is a constant of norm 1, so a = q stays positive.
    c = np.array([1.5 if problem.transform == "identity" else 0.3, -0.1, 0.05, 0.08])
    return problem.parameters.field(c[: problem.parameters.dimension])


def whitened(problem, truth, noise, covariance, seed=3):
    """Data with that much noise relative to them, in the norm of the covariance; the noise level is what was drawn."""
    exact, given = problem.observe(problem.solve(truth)), weights(problem, covariance)
    error = np.random.default_rng(seed).standard_normal(exact.size)
    error *= noise * np.linalg.norm(exact) / np.linalg.norm(error)
    return fc.Data(exact + error, fc.Data(error, 0.0, given).norm(error), given)


def fitted(problem, data, steps=6):
    c = problem.parameters.project(truth_of(problem))[0]
    for _ in range(steps):
        q = problem.parameters.field(c)
        misfit = data.whiten(data.values - problem.observe(problem.solve(q)))
        c = c + np.linalg.lstsq(data.whiten(problem.jacobian(q)), misfit, rcond=None)[0]
    return problem.parameters.field(c)


@pytest.mark.parametrize("covariance", [None, "variances", "matrix"])
@pytest.mark.parametrize("transform", ["exp", "identity"])
@pytest.mark.parametrize("name", BUILD)
def test_small_noise_gives_a_proven_constant(name, transform, covariance):
    problem = BUILD[name](transform=transform)
    truth = truth_of(problem)
    data = whitened(problem, truth, 1e-5, covariance)
    at = fitted(problem, data)
    found = fc.stability(problem, at=at, data=data)
    assert (found.scope, found.constant.side, found.exponent) == ("discrete", "upper", 1.0)
    ball = found.validity
    assert ball == fc.validated(problem, at, data=data)
    assert found.constant == ball.constant
    assert "every consistent parameter of the ball" in found.reason

    def seen(q):
        return data.norm(problem.observe(problem.solve(q)) - problem.observe(problem.solve(at)))

    norm, C = problem.parameters.norm, found.constant.value
    eps = data.norm(problem.observe(problem.solve(at)) - data.values) + data.noise_level
    error = norm(truth - at)
    assert 0.0 < error <= C * eps <= ball.radius
    assert error <= C * seen(truth)
    weakest = found.weakest * ball.radius
    ratios = [
        norm(h) / seen(at + h)
        for h in [*steps(problem, ball.radius, 60, seed=1), weakest, -weakest, 1e-3 * weakest]
    ]
    assert max(ratios) <= C <= 2.0 * max(ratios)

    # The singular values, and all that belongs to them, are those of the linearization.
    plain = fc.stability(problem, at=at, data=data, validate=False)
    assert np.array_equal(plain.singular_values, found.singular_values)
    assert np.array_equal(plain.weakest, found.weakest)
    assert (plain.scope, plain.constant.side, plain.validity) == ("estimate", "estimate", None)
    assert "was not validated" in plain.reason
    assert plain.constant.value == pytest.approx(1.0 / found.sigma_min, rel=1e-6)
    assert plain.constant.value < C <= 2.0 * plain.constant.value
    # Which would not do: somewhere in the ball less is seen than the linearization says.
    assert max(ratios) > plain.constant.value


@pytest.mark.parametrize("transform", ["exp", "identity"])
def test_much_noise_or_a_wrong_candidate_is_an_estimate(transform):
    problem = line(transform=transform)
    truth = truth_of(problem)
    noisy = whitened(problem, truth, 0.3, None)
    clean = whitened(problem, truth, 0.0, None)
    away = truth + problem.parameters.field([0.5, 0.2, 0.0])
    for data, at in ((noisy, truth), (clean, away)):
        found = fc.stability(problem, at=at, data=data)
        assert (found.scope, found.constant.side, found.validity) == ("estimate", "estimate", None)
        assert "leaves the validated ball" in found.reason
        assert found.constant.value == pytest.approx(1.0 / found.sigma_min, rel=1e-6)
    assert fc.stability(problem, at=truth, data=clean).scope == "discrete"


def test_the_check_decides_at_the_reach():
    problem = line()
    truth = truth_of(problem)
    values = problem.observe(problem.solve(truth))
    reach = fc.validated(problem, truth).reach
    inside = fc.stability(problem, at=truth, data=fc.Data(values, 0.999 * reach))
    outside = fc.stability(problem, at=truth, data=fc.Data(values, 1.001 * reach))
    assert (inside.scope, outside.scope) == ("discrete", "estimate")
    assert "(upper, on a ball)" in stability_message(inside, None)[0]
    assert "(estimate)" in stability_message(outside, None)[0]
    # Misfit and noise level add up.
    shifted = values + 0.6 * reach * np.eye(len(values))[0]
    assert fc.stability(problem, at=truth, data=fc.Data(shifted, 0.3 * reach)).scope == "discrete"
    assert fc.stability(problem, at=truth, data=fc.Data(shifted, 0.5 * reach)).scope == "estimate"


def own_forms():
    known, forms = line(), zoo.conductivity_forms(3.0)
    return fc.NonlinearProblem(known.basis, **forms, parameters=known.parameters, sensors=known.sensors, dirichlet=0.0)


def test_estimates_say_why():
    problem = line()
    truth = truth_of(problem)
    data = whitened(problem, truth, 1e-5, None)
    assert "no data are given" in fc.stability(problem, at=truth).reason
    assert "NonlinearProblem does not offer" in fc.stability(own_forms(), at=truth, data=data).reason
    huge = fc.Data(np.full(data.values.size, 1e308), 0.0)
    assert "too large" in fc.stability(problem, at=truth, data=huge).reason
    basis = Basis(MeshTri().refined(2), ElementTriP1(), intorder=3)
    sensors = fc.PointSensors(basis, [[0.3, 0.4], [0.6, 0.7]])
    negative = zoo.coefficient(basis, parameters=1, sensors=sensors, source=1.0)
    found = fc.stability(negative, at=np.zeros(basis.N), data=negative.simulate(np.zeros(basis.N)))
    assert "weights that are not positive" in found.reason
    assert (found.scope, found.constant.side) == ("estimate", "estimate")
    linear = fc.EllipticSource(problem.basis, parameters=problem.parameters, sensors=problem.sensors)
    plain = fc.stability(linear)
    assert (plain.reason, plain.validity, plain.scope) == ("", None, "discrete")


def test_radii_stay_estimates_with_the_same_formula_for_all():
    # The baseline validates, the other candidate does not: both radii are 1 / sigma_min times misfit and noise.
    problem = line()
    truth = truth_of(problem)
    data = whitened(problem, truth, 1e-5, None)
    near = fc.Candidate(problem.solve(truth), truth)
    away = truth + problem.parameters.field([0.5, 0.2, 0.0])
    far = fc.Candidate(problem.solve(away), away)
    assert fc.stability(problem, at=truth, data=data).scope == "discrete"
    for candidate in (near, far):
        certificate = fc.certify(problem, data, candidate, fc.ResidualRadius())
        assert (certificate.scope, certificate.radius.side) == ("estimate", "estimate")
        assert certificate.stability.constant.value * certificate.stability.sigma_min == pytest.approx(1.0, rel=1e-6)
        assert "was not validated" in certificate.stability.reason
    # Nor does a constant that is proven at one candidate prove anything for others, even if it is handed over.
    given = fc.ResidualRadius(stability=fc.stability(problem, at=truth, data=data))
    selection = fc.no_harm(problem, data, baseline=near, learned=far, rule=given)
    assert not selection.accepted
    for certificate in (selection.baseline, selection.learned):
        assert (certificate.scope, certificate.radius.side) == ("estimate", "estimate")
        assert certificate.stability.validity is not None
