"""Unknowns on a part of the boundary, forms with their own bases: closed forms, adjoints, Taylor tests, coverage."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
import zoo
from orders import about, convergence, taylor_order
from scipy.stats import binom
from skfem import BilinearForm, FacetBasis, LinearForm
from skfem.helpers import dot, grad
from zoo import inside_points, unit_basis

import femcert as fc

WAVE = np.pi


@BilinearForm
def diffusion(u, v, w):
    return dot(grad(u), grad(v))


@BilinearForm
def mass(u, v, w):
    return u * v


def exact(x):
    """Harmonic, zero on the right, at the bottom and on top."""
    return np.sinh(WAVE * (1.0 - x[0])) * np.sin(WAVE * x[1])


def gradient(x):
    s, c = np.sinh(WAVE * (1.0 - x[0])), np.cosh(WAVE * (1.0 - x[0]))
    return [-WAVE * c * np.sin(WAVE * x[1]), WAVE * s * np.cos(WAVE * x[1])]


def flux_of(x):
    """The normal derivative on the left."""
    return WAVE * np.cosh(WAVE) * np.sin(WAVE * x[1])


def side(basis, name="left"):
    return FacetBasis(basis.mesh, basis.elem, facets=name)


ELSEWHERE = dict.fromkeys(("right", "bottom", "top"), 0.0)


def trace_problem(basis, space=None, sensors=5, **options):
    """The flux into the left side is unknown."""
    chosen = {"operator": diffusion, "dirichlet": ELSEWHERE, "definite": True, **options}
    space = fc.TraceSpace(basis, "left") if space is None else space
    points = fc.PointSensors(basis, inside_points(basis, count=sensors))
    return fc.LinearProblem(basis, parameters=space, sensors=points, **chosen)


def nitsche(basis, penalty=40.0):
    """Values on the left side as an unknown, weakly."""

    @BilinearForm
    def operator(u, v, w):
        return penalty / w.h * u * v - dot(grad(u), w.n) * v - u * dot(grad(v), w.n)

    @BilinearForm
    def load(q, v, w):
        return penalty / w.h * q * v - q * dot(grad(v), w.n)

    left = side(basis)
    return trace_problem(basis, operator=[diffusion, (operator, left)], load=(load, left))


def robin(basis):
    """``du/dn + 2 u`` is unknown."""
    return trace_problem(basis, operator=[diffusion, (BilinearForm(lambda u, v, w: 2.0 * u * v), side(basis))])


@pytest.mark.parametrize(
    ("build", "datum"),
    [(trace_problem, flux_of), (nitsche, exact), (robin, lambda x: flux_of(x) + 2.0 * exact(x))],
    ids=["flux", "values", "robin"],
)
@pytest.mark.parametrize(("name", "order"), [("tri P1", 2), ("tri P2", 3), ("quad Q1", 2)])
def test_state_in_closed_form(build, datum, name, order):
    def solved(n):
        problem = build(unit_basis(name, n))
        return problem.basis, problem.solve(datum(problem.parameters.points))

    assert convergence(solved, (8, 16, 32), exact, gradient) == about((order, order - 1), (0.3, 0.3))


def test_norms_on_the_boundary():
    basis = unit_basis("tri P2", 4)
    space = fc.TraceSpace(basis, lambda x: (x[0] == 0.0) | (x[1] == 0.0))
    x, y = space.points
    q = 1.0 + 2.0 * y + x**2
    # On the left 1 + 2 y, at the bottom 1 + x².
    square, slope = (27.0 - 1.0) / 6.0 + 1.0 + 2.0 / 3.0 + 1.0 / 5.0, 4.0 + 4.0 / 3.0
    assert space.norm(q) ** 2 == pytest.approx(square, rel=1e-12)
    assert q @ (space.form("h1-seminorm") @ q) == pytest.approx(slope, rel=1e-12)
    assert space.within_ball(1.0, length=0.5).ball_norm(q) ** 2 == pytest.approx(square + 0.25 * slope, rel=1e-12)
    flux = fc.Flux(basis, lambda x: x[0] == 0.0)
    assert flux.value(space, q) == pytest.approx(2.0, rel=1e-12)
    c, rest = space.project(q)
    assert np.abs(c - q).max() < 1e-12
    assert np.abs(rest).max() < 1e-12


def test_pairs_are_what_boundary_conditions_are():
    basis = unit_basis("quad Q1", 5)
    left = side(basis)
    alpha = BilinearForm(lambda u, v, w: (1.0 + w.x[1]) * u * v)
    given = LinearForm(lambda v, w: np.cos(w.x[1]) * v)
    own = trace_problem(basis, fc.FullSpace(basis), operator=[diffusion, (alpha, left)], source=[(given, left)])
    conditions = {"left": (lambda x: 1.0 + x[1], lambda x: np.cos(x[1]))}
    other = trace_problem(basis, fc.FullSpace(basis), robin=conditions)
    q = np.random.default_rng(0).standard_normal(basis.N)
    assert own.solve(q) == pytest.approx(other.solve(q), rel=1e-3)
    # With the quadrature of the conditions, to rounding.
    fine = FacetBasis(basis.mesh, basis.elem, facets="left", intorder=2 * basis.elem.maxdeg + 1)
    own = trace_problem(basis, fc.FullSpace(basis), operator=[diffusion, (alpha, fine)], source=(given, fine))
    assert own.solve(q) == pytest.approx(other.solve(q), rel=1e-11, abs=1e-13)


def test_a_load_of_a_field_on_facets():
    """A field in the domain whose trace is the flux: that of the class of traces."""
    basis = unit_basis("tri P1", 6)
    traces = trace_problem(basis)
    whole = trace_problem(basis, fc.FullSpace(basis), load=(mass, side(basis)))
    q = np.random.default_rng(1).standard_normal(basis.N)
    assert whole.solve(q) == pytest.approx(traces.solve(traces.parameters.restrict(q)), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("build", [trace_problem, nitsche, robin])
def test_adjoint(build):
    problem = build(unit_basis("tri P2", 5))
    rng = np.random.default_rng(0)
    q, w = rng.standard_normal((problem.parameters.size, 2)), rng.standard_normal((problem.observation_count, 2))
    assert np.sum(problem.forward.apply(q) * w) == pytest.approx(np.sum(q * problem.forward.adjoint(w)), rel=1e-10)
    exact_data = problem.observe(problem.solve(q[:, 0]))
    assert problem.forward.apply(q)[:, 0] + problem.offset == pytest.approx(exact_data, rel=1e-10)


def nonlinear(basis):
    """A source in the domain, a flux on the left, an exchange coefficient on the right: ``-Laplace u + u³ = f``."""
    left, right = side(basis), side(basis, "right")
    space = fc.ProductSpace(
        {
            "source": fc.CosineSpace(basis, 3),
            "flux": fc.TraceSpace(basis, "left"),
            "exchange": fc.TraceSpace(basis, "right", functions=[lambda x: 1.0 + 0.0 * x[0], lambda x: x[1]]),
        }
    )
    return fc.NonlinearProblem(
        basis,
        equation=[
            LinearForm(lambda v, w: dot(grad(w["u"]), grad(v)) + (w["u"] ** 3 - w["source"]) * v),
            (LinearForm(lambda v, w: -w["flux"] * v), left),
            (LinearForm(lambda v, w: w["exchange"] * (w["u"] - 1.0) * v), right),
        ],
        state_derivative=[
            BilinearForm(lambda u, v, w: dot(grad(u), grad(v)) + 3.0 * w["u"] ** 2 * u * v),
            (BilinearForm(lambda u, v, w: w["exchange"] * u * v), right),
        ],
        parameter_derivative={
            "source": BilinearForm(lambda q, v, w: -q * v),
            "flux": (BilinearForm(lambda q, v, w: -q * v), left),
            "exchange": (BilinearForm(lambda q, v, w: q * (w["u"] - 1.0) * v), right),
        },
        parameters=space,
        sensors=fc.PointSensors(basis, inside_points(basis, count=6)),
        dirichlet={},
    )


@pytest.mark.parametrize("name", ["tri P1", "tri P2"])
def test_taylor(name):
    problem = nonlinear(unit_basis(name, 4))
    space, rng = problem.parameters, np.random.default_rng(2)
    at = rng.standard_normal(space.dimension)
    at[space.coordinates_of("exchange")] = [2.0, 0.5]
    data = fc.Data(problem.observe(problem.solve(space.field(0.9 * at))), 0.1)
    for part in ("source", "flux", "exchange"):
        step = np.zeros(space.dimension)
        step[space.coordinates_of(part)] = 0.5

        def readings(t, step=step):
            return problem.observe(problem.solve(space.field(at + t * step)))

        def misfit(t, step=step):
            return 0.5 * data.norm(readings(t, step) - data.values) ** 2

        jacobian = problem.jacobian(space.field(at))
        assert taylor_order(readings, jacobian @ step) == pytest.approx(2.0, abs=0.2)
        slope = problem.misfit_gradient(space.field(at), data) @ step
        assert taylor_order(misfit, slope, (0.05, 0.025, 0.0125)) == pytest.approx(2.0, abs=0.2)
    tangent, w = problem.linearize(space.field(at)), rng.standard_normal((6, 1))
    q = rng.standard_normal((space.size, 1))
    assert np.sum(tangent.apply(q) * w) == pytest.approx(np.sum(q * tangent.adjoint(w)), rel=1e-9)


def test_coverage_of_intervals_and_radii_of_a_flux():
    """Two functions of y as the flux: an interval and a radius, each at 95 % in 200 draws of the noise."""
    basis = unit_basis("tri P1", 6)
    space = fc.TraceSpace(basis, "left", functions=[lambda x: 1.0 + 0.0 * x[0], lambda x: x[1]])
    problem, truth = trace_problem(basis, space, sensors=9), space.field([1.0, -2.0])
    exact_data, std, mean = problem.observe(problem.solve(truth)), 0.01, fc.Flux(basis, "left")
    found = fc.evidence(problem, fc.Data.gaussian(exact_data, std=std))
    least, wrong, rng = binom.ppf(0.005, 200, 0.95), 0, np.random.default_rng(3)
    assert zoo.hits(found, exact_data, std, mean, mean.value(space, truth), seed=3) >= least
    for _ in range(200):
        data = fc.Data.gaussian(exact_data + std * rng.standard_normal(9), std=std)
        # Where the data are inconsistent no claim is made.
        with suppress(fc.InconsistentError):
            baseline = fc.Tikhonov(weight=1e-6)(problem, data)
            wrong += not fc.certify(problem, data, baseline, fc.ExactRadius()).contains(truth)
    assert wrong <= 200 - least


def test_coverage_on_a_ball_of_fluxes():
    basis = unit_basis("tri P1", 6)
    space = fc.TraceSpace(basis, "left").within_ball(2.0, norm="h1", length=0.3)
    problem, mean = trace_problem(basis, space, sensors=9), fc.Flux(basis, "left")
    shape = np.cos(2.0 * space.points[1])
    truth, std = shape * (1.999 / space.ball_norm(shape)), 0.01
    exact_data = problem.observe(problem.solve(truth))
    found = fc.evidence(problem, fc.Data.gaussian(exact_data, std=std))
    worst = found.interval(mean)
    assert worst.limit.value <= worst.half_length <= 1.19 * worst.limit.value
    assert zoo.hits(found, exact_data, std, mean, mean.value(space, truth), seed=4) >= binom.ppf(0.01, 200, 0.95)


def test_refusals():
    basis, quadratic = zoo.square(2), zoo.square(2, 2)
    inside, space = np.flatnonzero(basis.mesh.f2t[1] >= 0)[:2], fc.TraceSpace(basis, "left")
    sensors = fc.PointSensors(basis, np.array([[0.4, 0.6]]))

    def build(**options):
        given = {"operator": diffusion, "parameters": space, "dirichlet": {"right": 0.0}, **options}
        return fc.LinearProblem(basis, sensors=sensors, **given)

    for deed, word in (
        (lambda: fc.TraceSpace(basis, inside), "2 facets of 'boundary' lie inside"),
        (lambda: fc.TraceSpace(basis, "lift"), "did you mean 'left'"),
        (lambda: space.within_ball(1.0, norm="h2"), "expected 'l2', 'h1'"),
        (lambda: fc.TraceSpace(basis, "left", functions=[]), "1 to 5 functions"),
        (lambda: fc.TraceSpace(basis, "left", inner="h1"), "euclidean"),
        (lambda: fc.TraceSpace(unit_basis("line P1"), "left").within_ball(1.0, norm="h1-seminorm"), "points"),
        (lambda: fc.Mean(basis).value(space, np.ones(5)), "expected a Flux"),
        (lambda: fc.Flux(basis, "right").value(space, np.ones(5)), "4 of its facets are not"),
        (lambda: build(dirichlet=None), "u is given on 4 facets of the unknown"),
        (lambda: build(load=(mass, basis)), "expected a pair"),
        (lambda: build(load=(mass, side(basis, "right"))), "expected a pair"),
        (lambda: build(operator=[diffusion, (mass, side(quadratic))]), "another mesh or element"),
        (lambda: build(operator=(diffusion, mass)), "expected a pair"),
        (lambda: build(operator=[]), "empty list"),
        (lambda: fc.EllipticSource(basis, parameters=space, sensors=sensors, mass="lumped"), "use LinearProblem or"),
        (lambda: build(parameters=fc.TraceSpace(unit_basis("tri P1", 3), "left")), "another mesh"),
        (lambda: build(parameters=fc.CoordinateSpace(2)), "expected a matrix"),
    ):
        with pytest.raises(fc.InputError, match=word):
            deed()
