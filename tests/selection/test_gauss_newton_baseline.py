"""Gauss-Newton: recovery, bounds, references, and agreement with finite-difference least squares."""

import numpy as np
import pytest
import zoo
from scipy.optimize import least_squares

import femcert as fc


def line():
    return zoo.coefficient(cells=30, parameters=(fc.SineSpace, 3), sensors=np.linspace(0.05, 0.95, 12))


def halves(basis):
    left = basis.mesh.p[0, basis.mesh.t].mean(axis=0) < 0.5
    return fc.RegionSpace(basis, [np.flatnonzero(left), np.flatnonzero(~left)])


def test_it_recovers_conductivities_of_regions():
    problem = zoo.coefficient(zoo.square(3), parameters=halves, sensors=8, transform="identity")
    data = problem.simulate(problem.parameters.field([2.0, 0.7]))
    found = fc.GaussNewton(weight=1e-13, start=[1.0, 1.0])(problem, data)
    np.testing.assert_allclose(problem.parameters.project(found.parameter)[0], [2.0, 0.7], rtol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bounds", [None, (-0.1, 0.25)])
@pytest.mark.parametrize("reference", [None, [0.2, 0.1, -0.1]])
def test_against_finite_difference_least_squares(weighted, bounds, reference):
    problem = line()
    data = problem.simulate(problem.parameters.field([0.5, -0.3, 0.2]), noise=0.02, seed=1)
    if weighted:
        data = fc.Data(data.values, data.noise_level, np.linspace(0.5, 2.0, 12))
    weight = 1e-4
    found = fc.GaussNewton(weight=weight, bounds=bounds, reference=reference)(problem, data)
    centre = np.zeros(3) if reference is None else np.array(reference)
    variance = np.linspace(0.5, 2.0, 12) if weighted else np.ones(12)
    G = problem.parameters.gram

    def residuals(c):
        misfit = problem.observe(problem.solve(problem.parameters.field(c))) - data.values
        return np.concatenate([misfit / np.sqrt(variance), np.sqrt(weight) * np.linalg.cholesky(G).T @ (c - centre)])

    low, high = (-np.inf, np.inf) if bounds is None else bounds
    expected = least_squares(
        residuals, np.zeros(3), jac="3-point", bounds=(low, high), xtol=1e-14, ftol=1e-14, gtol=1e-14
    )
    c, _ = problem.parameters.project(found.parameter)
    np.testing.assert_allclose(c, expected.x, atol=1e-5)
    # And not by ignoring what it was told.
    free = fc.GaussNewton(weight=weight)(problem, data)
    if bounds is not None or reference is not None:
        assert np.linalg.norm(free.parameter - found.parameter) > 1e-3


def test_active_bounds_and_the_projected_gradient():
    problem = line()
    data = problem.simulate(problem.parameters.field([0.5, -0.3, 0.2]))
    found = fc.GaussNewton(weight=1e-8, bounds=(-1.0, [0.1, 1.0, 1.0]))(problem, data)
    c, _ = problem.parameters.project(found.parameter)
    assert c[0] == pytest.approx(0.1, abs=1e-6)
    assert c.max() <= 1.0
    plain = fc.reduced_gradient_norm(problem, data, found.parameter, weight=1e-8)
    assert plain > 1e-5
    assert found.optimality < 1e-3 * plain


def test_the_optimality_is_the_gradient_norm_of_its_objective():
    problem = line()
    data = problem.simulate(problem.parameters.field([0.5, -0.3, 0.2]), noise=0.1)
    # Stopped early by a loose tolerance, so that there is a gradient left to compare.
    found = fc.GaussNewton(weight=1e-3, tolerance=1e-2)(problem, data)
    expected = fc.reduced_gradient_norm(problem, data, found.parameter, weight=1e-3)
    assert expected > 1e-12
    assert found.optimality == pytest.approx(expected, rel=1e-6)


def test_no_convergence_is_an_error():
    problem = line()
    data = problem.simulate(problem.parameters.field([1.5, -1.3, 0.8]))
    with pytest.raises(fc.SolveError, match="did not converge in 2 evaluations"):
        fc.GaussNewton(weight=1e-10, evaluations=2)(problem, data)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"weight": 0.0}, "weight"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"evaluations": 0}, "evaluations"),
        *(({"bounds": bounds}, "pair") for bounds in ([0.0, 1.0, 2.0], "ab", 3)),
        ({"bounds": (1.0, 0.0)}, "low < high"),
        ({"bounds": (np.zeros(2), 1.0)}, "low has shape"),
        ({"bounds": (np.nan, 1.0)}, "NaN"),
        *(({"bounds": bounds}, "bounds") for bounds in (("a", "b"), (None, 1.0), (1j, 2.0), (False, True))),
        *(({"bounds": bounds}, "bounds") for bounds in (([0.0, 0.0], ["a", "b"]), ([[0.0], [0.0, 1.0]], 2.0))),
        ({"start": [0.0, 1.0]}, "start has shape"),
        ({"reference": [np.nan, 0.0, 0.0]}, "reference has 1 NaN"),
    ],
)
def test_bad_options(options, match):
    with pytest.raises(fc.InputError, match=match):
        fc.GaussNewton(**{"weight": 1.0, **options})(line(), fc.Data(np.zeros(12), 0.1))


def test_not_for_linear_problems_nor_huge_classes():
    linear = zoo.source(sensors=2)
    with pytest.raises(fc.InputError, match="use Tikhonov"):
        fc.GaussNewton(weight=1.0)(linear, fc.Data([0.0, 0.0], 0.1))
    full = zoo.coefficient(cells=2100, parameters=fc.FullSpace, sensors=2)
    with pytest.raises(fc.InputError, match="at most 2000"):
        fc.GaussNewton(weight=1.0)(full, fc.Data([0.0, 0.0], 0.1))


def test_a_step_into_negative_conductivity_is_shortened():
    """a = q from a start far above the truth: a full Gauss-Newton step overshoots below zero."""
    problem = zoo.coefficient(cells=40, parameters=halves, sensors=9, transform="identity")
    truth = problem.parameters.field([0.05, 2.0])
    data = problem.simulate(truth)
    start = [5.0, 5.0]
    q = problem.parameters.field(start)
    step = np.linalg.lstsq(problem.jacobian(q), data.values - problem.observe(problem.solve(q)), rcond=None)[0]
    assert np.min(start + step) < 0.0
    found = fc.GaussNewton(weight=1e-14, start=start)(problem, data)
    assert np.allclose(found.parameter, truth, rtol=1e-4)
    with pytest.raises(fc.InputError, match="expected positive"):
        fc.GaussNewton(weight=1e-14)(problem, data)


TRUTH = np.array([1.0, 0.2, -0.1, 0.2])


def conductivity(source=1.0, transform="identity"):
    points = np.linspace(0.05, 0.95, 15)
    return zoo.coefficient(cells=40, parameters=4, sensors=points, source=source, transform=transform)


@pytest.mark.parametrize("bounds", [None, (-50.0, 50.0)])
@pytest.mark.parametrize("source", [1e-9, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("start", [[5.0, 0.0, 0.0, 0.0], [20.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
def test_it_never_returns_a_point_that_is_not_stationary(start, source, bounds):
    """From far away the steps may become short at the edge of the positive conductivities: that is no minimum."""
    problem = conductivity(source)
    data = problem.simulate(problem.parameters.field(TRUTH), noise=0.01, seed=1)
    weight = 1e-6 * source**2
    solver = fc.GaussNewton(weight=weight, start=start, bounds=bounds)
    try:
        found = solver(problem, data)
    except fc.SolveError:
        # To give up is honest, but not from next to the truth.
        assert start[0] > 1.0
        return
    c, _ = problem.parameters.project(found.parameter)
    assert np.linalg.norm(c - TRUTH) < 0.2
    gradient = fc.reduced_gradient_norm(problem, data, found.parameter, weight=weight)
    misfit = data.norm(problem.observe(found.state) - data.values)
    assert gradient <= 1e-4 * np.linalg.norm(problem.jacobian(found.parameter)) * misfit
    assert found.optimality == pytest.approx(gradient, rel=0.1)


@pytest.mark.parametrize(("transform", "start"), [("exp", None), ("identity", [1.0, 0.0, 0.0, 0.0])])
def test_units_of_the_source_do_not_matter(transform, start):
    coefficients = []
    for source in (1.0, 1e-3, 1e-6, 1e6):
        problem = conductivity(source, transform)
        data = problem.simulate(problem.parameters.field(TRUTH), noise=0.01, seed=1)
        found = fc.GaussNewton(weight=1e-10 * source**2, start=start)(problem, data)
        coefficients.append(problem.parameters.project(found.parameter)[0])
    assert np.linalg.norm(coefficients[0] - TRUTH) < 0.05
    for c in coefficients[1:]:
        np.testing.assert_allclose(c, coefficients[0], atol=1e-7)


def test_an_impossible_start_says_what_to_do():
    problem = conductivity()
    data = problem.simulate(problem.parameters.field(TRUTH))
    with pytest.raises(fc.InputError, match=r"start \[0.0, 0.0, 0.0, 0.0\] is not possible, give start=.*positive"):
        fc.GaussNewton(weight=1e-6)(problem, data)
    with pytest.raises(fc.InputError, match="give start="):
        fc.GaussNewton(weight=1e-6, start=-TRUTH)(problem, data)
