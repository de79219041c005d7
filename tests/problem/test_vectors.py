"""Vector fields: linear elasticity with unknown body force, traction or stiffness."""

import numpy as np
import pytest
from orders import taylor_order
from scipy.stats import binom
from skfem import Basis, BilinearForm, FacetBasis, LinearForm, asm
from skfem.element import ElementQuad2, ElementTriP1, ElementTriP2, ElementVector
from skfem.helpers import ddot, dot, eye, sym_grad, trace
from skfem.mesh import MeshQuad, MeshTri
from zoo import SIDES, middles

import femcert as fc
from femcert.mesh.elements import mass_matrix
from femcert.mesh.vectors import dof_components, nodal_vectors

LAME, SHEAR = 1.5, 1.0
POINTS = np.array([[0.3, 0.3], [0.7, 0.3], [0.5, 0.7], [0.25, 0.75], [0.8, 0.8]])


def stress(u):
    strain = sym_grad(u)
    return LAME * eye(trace(strain), 2) + 2.0 * SHEAR * strain


@BilinearForm
def elasticity(u, v, _):
    return ddot(stress(u), sym_grad(v))


def square(refinements=3, element=None):
    mesh = MeshTri().refined(refinements).with_boundaries(SIDES)
    return Basis(mesh, ElementVector(element or ElementTriP1()))


def shapes():
    """Four vector functions of x."""
    return [
        lambda x: np.array([1.0 + 0.0 * x[0], 0.0 * x[0]]),
        lambda x: np.array([0.0 * x[0], 1.0 + 0.0 * x[0]]),
        lambda x: np.array([-(x[1] - 0.5), x[0] - 0.5]),
        lambda x: np.array([np.sin(np.pi * x[0]), np.cos(np.pi * x[1])]),
    ]


def body_force(basis, space=None, **options):
    space = fc.FunctionSpace(basis, shapes()) if space is None else space
    sensors = fc.AverageSensors(basis, POINTS, radius=0.08)
    return fc.LinearProblem(basis, operator=elasticity, parameters=space, sensors=sensors, definite=True, **options)


def soft_part(basis):
    """A stiffness exp(q) of regions, the known load downwards: linear in the state, not in the parameter."""
    x = middles(basis)[0]
    halves = [np.flatnonzero(x < 0.5), np.flatnonzero(x > 0.5)]
    return fc.NonlinearProblem(
        basis,
        equation=LinearForm(lambda v, w: np.exp(w["q"]) * ddot(stress(w["u"]), sym_grad(v)) + v[1]),
        state_derivative=BilinearForm(lambda u, v, w: np.exp(w["q"]) * ddot(stress(u), sym_grad(v))),
        parameter_derivative=BilinearForm(lambda q, v, w: q * np.exp(w["q"]) * ddot(stress(w["u"]), sym_grad(v))),
        parameters=fc.RegionSpace(basis.with_element(ElementTriP1()), halves),
        sensors=fc.AverageSensors(basis, POINTS, radius=0.08),
        dirichlet={"left": 0.0},
        linear_in_state=True,
        definite=True,
    )


# Displacement (s, s) with s = sin(pi x) sin(pi y), zero on the boundary, and its load -div sigma.
def displacement(x):
    s = np.sin(np.pi * x[0]) * np.sin(np.pi * x[1])
    return np.array([s, s])


def load_of_displacement(x):
    s = np.sin(np.pi * x[0]) * np.sin(np.pi * x[1])
    c = np.cos(np.pi * x[0]) * np.cos(np.pi * x[1])
    f = np.pi**2 * ((LAME + 3.0 * SHEAR) * s - (LAME + SHEAR) * c)
    return np.array([f, f])


def slopes(x):
    """The derivatives of s."""
    return np.pi * np.array([np.cos(np.pi * x[i]) * np.sin(np.pi * x[1 - i]) for i in (0, 1)])


def under_force(basis):
    return body_force(basis, fc.FunctionSpace(basis, [load_of_displacement]))


def under_traction(basis):
    """The force is known; the stress on the right side is the unknown."""
    traction = fc.TraceSpace(basis, "right", functions=[on_the_right])
    known = LinearForm(lambda v, w: dot(load_of_displacement(w.x), v))
    return body_force(basis, traction, source=known, dirichlet={"left": 0.0, "bottom": 0.0, "top": 0.0})


def on_the_right(x):
    along = slopes(x)[0]
    return np.array([(LAME + 2.0 * SHEAR) * along, SHEAR * along])


def of_stiffness(basis):
    """Of the stiffness exp(q), q = x; the known force is ``exp(x) (-div sigma - sigma e_1)``."""

    def force(x):
        sx, sy = slopes(x)
        across = np.array([LAME * (sx + sy) + 2.0 * SHEAR * sx, SHEAR * (sx + sy)])
        return np.exp(x[0]) * (load_of_displacement(x) - across)

    return fc.NonlinearProblem(
        basis,
        equation=LinearForm(
            lambda v, w: np.exp(w["q"]) * ddot(stress(w["u"]), sym_grad(v)) - dot(force(w.x), v)
        ),
        state_derivative=BilinearForm(lambda u, v, w: np.exp(w["q"]) * ddot(stress(u), sym_grad(v))),
        parameter_derivative=BilinearForm(lambda q, v, w: q * np.exp(w["q"]) * ddot(stress(w["u"]), sym_grad(v))),
        parameters=fc.FunctionSpace(basis.with_element(ElementTriP1()), [lambda x: x[0]]),
        sensors=fc.AverageSensors(basis, POINTS, radius=0.08),
        dirichlet=0.0,
        linear_in_state=True,
        definite=True,
    )


@pytest.mark.parametrize("make", [under_force, under_traction, of_stiffness])
@pytest.mark.parametrize(("element", "rate"), [(ElementTriP1(), 2.0), (ElementTriP2(), 3.0)])
def test_displacement_converges_to_the_closed_form(make, element, rate):
    errors = []
    for refinements in (3, 4):
        mesh = MeshTri().refined(refinements).with_boundaries(SIDES)
        basis = Basis(mesh, ElementVector(element), intorder=6)
        problem = make(basis)
        u = problem.solve(problem.parameters.field([1.0]))
        fine = Basis(basis.mesh, basis.elem, intorder=8)
        x = np.asarray(fine.global_coordinates())
        gap = np.asarray(fine.interpolate(u)) - displacement(x)
        errors.append(np.sqrt(np.sum(dot(gap, gap) * fine.dx)))
    assert np.log2(errors[0] / errors[1]) > rate - 0.15


def test_mass_stiffness_and_ball_are_those_of_the_components():
    basis = square(2, ElementTriP2())
    space = fc.FullSpace(basis)
    q = space.basis.project(lambda x: np.array([x[0] ** 2, x[0] * x[1]]))
    # int x^4 + x^2 y^2 = 1/5 + 1/9, and of the gradients 4 x^2 + y^2 + x^2: 2.
    assert space.norm(q) ** 2 == pytest.approx(1 / 5 + 1 / 9, rel=1e-12)
    assert q @ space.form("h1-seminorm") @ q == pytest.approx(2.0, rel=1e-11)
    assert q @ space.form("h1", 0.5) @ q == pytest.approx(1 / 5 + 1 / 9 + 0.5, rel=1e-11)
    assert mass_matrix(basis).shape == (basis.N, basis.N)


def test_sensors_of_components():
    basis = square(3)
    u = basis.project(lambda x: np.array([x[0], 2.0 * x[1]]))
    for make in (
        lambda **k: fc.PointSensors(basis, POINTS, **k),
        lambda **k: fc.AverageSensors(basis, POINTS, radius=0.08, **k),
        lambda **k: fc.BoundarySensors(basis, boundary="right", count=4, **k),
        lambda **k: fc.RegionSensors(basis, [np.arange(10), np.arange(20, 40)], **k),
    ):
        both, first, second = make(), make(component=0), make(component=1)
        np.testing.assert_array_equal(both(u), np.concatenate([first(u), second(u)]))
    points = fc.PointSensors(basis, POINTS)
    np.testing.assert_allclose(points(u), np.concatenate([POINTS[:, 0], 2.0 * POINTS[:, 1]]), atol=1e-12)
    assert points.representers() is None
    with pytest.raises(fc.InputError, match="expected 0 to 1"):
        fc.PointSensors(basis, POINTS, component=2)
    with pytest.raises(fc.InputError, match="are scalar"):
        fc.PointSensors(basis.with_element(ElementTriP1()), POINTS, component=0)


def test_matrix_sensors_give_what_component_sensors_give():
    basis, found = square(3), []
    by_hand = np.zeros((len(POINTS), basis.N))
    scalar = fc.AverageSensors(basis.with_element(ElementTriP1()), POINTS, radius=0.08)
    by_hand[:, basis.nodal_dofs[1]] = scalar.matrix.toarray()
    space = fc.FunctionSpace(basis, shapes())
    for sensors in (fc.AverageSensors(basis, POINTS, radius=0.08, component=1), fc.MatrixSensors(by_hand)):
        problem = fc.LinearProblem(basis, operator=elasticity, parameters=space, sensors=sensors, definite=True)
        data = problem.simulate(space.field([1.0, -1.0, 0.5, 0.2]), noise=0.01)
        found.append(fc.evidence(problem, data).table([np.eye(4)[0]]).intervals[0])
    assert found[0].lower.value == pytest.approx(found[1].lower.value, rel=1e-12)
    assert found[0].upper.value == pytest.approx(found[1].upper.value, rel=1e-12)


def test_functionals_of_components():
    basis = square(3)
    space = fc.FullSpace(basis)
    q = basis.project(lambda x: np.array([x[0], 2.0 * x[1]]))
    for functional, expected in (
        (fc.Mean(basis, lambda x: x[0] > 0.5, component=0), 0.75),
        (fc.Mean(basis, component=1), 1.0),
        (fc.Moment(basis, lambda x: x[0], component=0), 1 / 3),
        (fc.Value(basis, [0.3, 0.4], radius=0.1, component=1), 0.8),
        (fc.Flux(basis, "right", component=0), 1.0),
    ):
        assert functional.value(space, q) == pytest.approx(expected, abs=1e-12)
        assert functional.representers(space) is None
    assert fc.Mean(basis, component=1).name == "domain, component 1"
    with pytest.raises(fc.InputError, match="expected component=0 to 1"):
        fc.Mean(basis).value(space, q)


def test_regions_of_vectors():
    basis = square(2)
    halves = [np.arange(16), np.arange(16, 32)]
    space = fc.RegionSpace(basis, halves)
    parts = nodal_vectors(space.basis, space.field([1.0, 2.0, 3.0, 4.0]))[1]
    np.testing.assert_array_equal(parts[:, :16], np.outer([1.0, 3.0], np.ones(16)))
    np.testing.assert_array_equal(parts[:, 16:], np.outer([2.0, 4.0], np.ones(16)))
    body_force(basis, space).solve(space.field([1.0, 2.0, 3.0, 4.0]))


def test_traction_and_displacement_given_on_boundaries():
    """A rod under traction s without lateral contraction: u = s x / (lambda + 2 mu)."""
    mesh = square(2).mesh.with_boundaries({"sides": lambda x: (x[1] == 0.0) | (x[1] == 1.0)})
    basis = Basis(mesh, ElementVector(ElementTriP1()))
    exact = lambda x: np.array([0.7 * x[0] / (LAME + 2.0 * SHEAR), 0.0 * x[0]])  # noqa: E731
    problem = body_force(
        basis,
        dirichlet={"left": exact, "sides": exact},
        neumann={"right": lambda x: np.array([0.7 + 0.0 * x[0], 0.0 * x[0]])},
    )
    u = problem.solve(problem.parameters.field(np.zeros(4)))
    np.testing.assert_allclose(u, basis.project(exact), atol=1e-12)
    with pytest.raises(fc.InputError, match="a row for each component"):
        body_force(basis, neumann={"right": lambda x: x[0]})


def test_unknown_traction():
    """Of vectors on the right side, without another load; and of its vertical component alone, by a form."""
    basis, clamped = square(3), {"dirichlet": {"left": 0.0}}
    traction = fc.TraceSpace(basis, "right", functions=shapes()[:2])
    problem, truth = body_force(basis, traction, **clamped), traction.field([0.5, -1.0])
    side = FacetBasis(basis.mesh, basis.elem, facets="right", intorder=2)
    load = asm(BilinearForm(lambda q, v, _: dot(q, v)), side)
    given = body_force(basis, fc.FunctionSpace(basis, shapes()[:2]), load=load, **clamped)
    u = problem.solve(truth)
    np.testing.assert_allclose(u, given.solve(given.parameters.field([0.5, -1.0])), rtol=0, atol=1e-12 * abs(u).max())
    fluxes = [fc.Flux(basis, "right", component=i) for i in (0, 1)]
    table = fc.evidence(problem, problem.simulate(truth, noise=0.01, seed=3)).table(fluxes)
    for interval, value in zip(table.intervals, (0.5, -1.0), strict=True):
        assert interval.lower <= value <= interval.upper
        assert interval.upper.value - interval.lower.value < 0.5
    upright = fc.TraceSpace(basis.with_element(ElementTriP1()), "right", functions=[lambda x: 1.0 + 0.0 * x[0]])
    alone = body_force(basis, upright, load=BilinearForm(lambda q, v, _: q * v[1]), **clamped)
    found, expected = alone.solve(upright.field([-1.0])), problem.solve(traction.field([0.0, -1.0]))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_balls_of_tractions():
    """On a slanted side: of q = (s, 2 - s) with the arc length s on a side of length 1, gradients (1, -1)."""
    c, s = np.cos(0.4), np.sin(0.4)
    straight = MeshTri().refined(2)
    basis = Basis(MeshTri(np.array([[c, -s], [s, c]]) @ straight.p, straight.t), ElementVector(ElementTriP2()))
    space = fc.TraceSpace(basis, lambda x: c * x[0] + s * x[1] > 1.0 - 1e-9)
    along = -s * space.points[0] + c * space.points[1]
    q = np.where(dof_components(basis)[space.dofs] == 0, along, 2.0 - along)
    assert space.norm(q) ** 2 == pytest.approx(1 / 3 + 7 / 3, rel=1e-12)
    assert q @ space.form("h1-seminorm", 0.5) @ q == pytest.approx(0.25 * 2.0, rel=1e-11)


@pytest.mark.parametrize("space", ["functions", "full", "regions", "traces"])
def test_adjoint(space):
    basis = square(2)
    spaces = {
        "functions": fc.FunctionSpace(basis, shapes()),
        "full": fc.FullSpace(basis),
        "regions": fc.RegionSpace(basis, [np.arange(16), np.arange(16, 32)]),
        "traces": fc.TraceSpace(basis, "right"),
    }
    problem = body_force(basis, spaces[space], dirichlet={"left": 0.0})
    rng = np.random.default_rng(0)
    q, y = rng.standard_normal(problem.parameters.size), rng.standard_normal(10)
    left = y @ problem.forward.apply(q[:, None])[:, 0]
    right = q @ problem.forward.adjoint(y[:, None])[:, 0]
    assert left == pytest.approx(right, rel=1e-10)


def test_taylor():
    problem = soft_part(square(3))
    data = problem.simulate(problem.parameters.field([0.3, -0.2]), noise=0.01)
    q, direction = problem.parameters.field([0.1, 0.2]), np.array([1.0, -0.5])

    def readings(t):
        return problem.observe(problem.solve(q + problem.parameters.field(t * direction)))

    def misfit(t):
        return 0.5 * data.norm(readings(t) - data.values) ** 2

    steps = (1e-1, 1e-2, 1e-3)
    assert taylor_order(misfit, problem.misfit_gradient(q, data) @ direction, steps) > 1.9
    assert taylor_order(readings, problem.jacobian(q) @ direction, steps[:2]) > 1.9


def test_stiffness_is_found():
    problem = soft_part(square(3))
    truth = problem.parameters.field([0.3, -0.2])
    data = problem.simulate(truth, noise=1e-3)
    found = fc.GaussNewton(weight=1e-8)(problem, data).parameter
    assert problem.parameters.norm(found - truth) < 0.05


def test_coverage():
    """Intervals at 90 % and ExactRadius over 200 draws of truth and noise."""
    basis = square(2)
    problem = body_force(basis)
    rng = np.random.default_rng(5)
    outside, beyond, refused = 0, 0, 0
    for seed in range(200):
        truth = problem.parameters.field(rng.standard_normal(4))
        exact = problem.predict(problem.solve(truth), truth)
        std = 0.02 * np.abs(exact).max()
        values = exact + std * rng.standard_normal(exact.size)
        data = fc.Data.gaussian(values, std=std, confidence=0.9)
        functional = fc.Mean(basis, component=seed % 2)
        interval = fc.evidence(problem, data).table([functional]).intervals[0]
        outside += not interval.lower <= functional.value(problem.parameters, truth) <= interval.upper
        candidate = fc.Tikhonov(weight=1e-8)(problem, data)
        try:
            radius = fc.certify(problem, data, candidate, fc.ExactRadius()).radius
        except fc.InconsistentError:
            refused += 1
            continue
        beyond += problem.parameters.norm(candidate.parameter - truth) > radius
    most = binom.ppf(1.0 - 1e-4, 200, 0.1)
    assert outside <= most
    assert beyond + refused <= most


def drawn(problem, size, rng):
    """A truth of the class, its data at 90 %, and the noise's deviation."""
    truth = problem.parameters.field(size * rng.standard_normal(problem.parameters.dimension))
    exact = problem.predict(problem.solve(truth), truth)
    std = 0.02 * np.abs(exact).max()
    return truth, fc.Data.gaussian(exact + std * rng.standard_normal(exact.size), std=std, confidence=0.9)


# A claim at 90 % that holds is missed more often than that, in 200 draws, with probability 1e-4.
MOST_MISSED = binom.ppf(1.0 - 1e-4, 200, 0.1)
RULES = {
    "exact": fc.ExactRadius(),
    "residual": fc.ResidualRadius(),
    "operational": fc.OperationalRadius(pde=0.1, bc=0.1, optimality=0.1),
    "dominance": fc.Dominance(),
}


def test_coverage_of_tractions():
    """Intervals, the radii of all rules that there are for it, and what is handed out, over 200 draws."""
    basis = square(2)
    space = fc.TraceSpace(basis, "right", functions=shapes())
    problem = body_force(basis, space, dirichlet={"left": 0.0})
    rng, missed = np.random.default_rng(6), dict.fromkeys([*RULES, "interval", "worse"], 0)
    for seed in range(200):
        truth, data = drawn(problem, 1.0, rng)
        flux = fc.Flux(basis, "right", component=seed % 2)
        interval = fc.evidence(problem, data).interval(flux)
        missed["interval"] += not interval.contains(flux.value(space, truth))
        baseline = fc.Tikhonov(weight=1e-4)(problem, data)
        other = truth + space.field(0.3 * rng.standard_normal(4))
        learned = fc.Candidate(problem.solve(other), other)
        errors = [space.norm(each.parameter - truth) for each in (baseline, learned)]
        for name, rule in RULES.items():
            try:
                radius = fc.certify(problem, data, baseline, rule).radius
            except fc.InconsistentError:
                missed[name] += 1
                continue
            assert radius.side == "upper"
            missed[name] += errors[0] > radius
        found = fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=fc.Dominance())
        missed["worse"] += found.accepted and errors[1] > errors[0]
    assert max(missed.values()) <= MOST_MISSED, missed
    data = problem.simulate(truth, noise=0.01)
    with pytest.raises(fc.UncertifiedError, match="a LinearProblem does not offer it"):
        fc.certify(problem, data, baseline, fc.GuaranteedRadius())


def test_coverage_of_stiffnesses():
    """Linearized rules give an estimate, which holds as often as it says; the others say what is missing."""
    problem = soft_part(square(2))
    # A candidate that no optimization made reports no optimality.
    rules = {"residual": fc.ResidualRadius(), "operational": fc.OperationalRadius(pde=0.1, bc=0.1, optimality=0.0)}
    rng, missed = np.random.default_rng(7), dict.fromkeys(rules, 0)
    for _ in range(200):
        truth, data = drawn(problem, 0.3, rng)
        near = truth + problem.parameters.field(0.05 * rng.standard_normal(2))
        found = fc.Candidate(problem.solve(near), near)
        for name in missed:
            try:
                radius = fc.certify(problem, data, found, rules[name]).radius
            except fc.InconsistentError:
                missed[name] += 1
                continue
            assert radius.side == "estimate"
            missed[name] += problem.parameters.norm(found.parameter - truth) > radius.value
    assert max(missed.values()) <= MOST_MISSED, missed
    for name in ("exact", "dominance"):
        with pytest.raises(fc.UncertifiedError, match="a nonlinear problem is linearized"):
            fc.certify(problem, data, found, RULES[name])


def test_ball_of_all_directions():
    basis = square(2)
    problem = body_force(basis, fc.FullSpace(basis).within_ball(3.0, norm="h1"))
    truth = basis.project(lambda x: np.array([1.0 + 0.0 * x[0], x[0]]))
    data = problem.simulate(truth, noise=0.01)
    table = fc.evidence(problem, data).table([fc.Mean(basis, component=i) for i in (0, 1)])
    for interval, value in zip(table.intervals, (1.0, 0.5), strict=True):
        assert interval.lower <= value <= interval.upper


def test_what_stays_scalar_is_refused():
    basis = square(2)
    problem, sensors, space = body_force(basis), fc.PointSensors(basis, POINTS), fc.FullSpace(basis)
    data = problem.simulate(problem.parameters.field(np.ones(4)), noise=0.01)
    for attempt in (
        lambda: fc.EigenmodeSpace(basis, 3),
        lambda: fc.SineSpace(basis, 3),
        lambda: fc.CoarseSpace(basis, MeshTri().refined(1)),
        lambda: fc.EllipticSource(basis, parameters=space, sensors=sensors),
        lambda: fc.evidence(problem, data).map(radius=0.1),
    ):
        with pytest.raises(fc.InputError, match="for scalar ones only"):
            attempt()
    candidate = fc.Tikhonov(choose="discrepancy")(problem, data)
    with pytest.raises(fc.UncertifiedError):
        fc.certify(problem, data, candidate, fc.GuaranteedRadius())


def test_candidates_of_vectors(tmp_path):
    problem = body_force(square(2))
    basis = problem.basis
    candidate = fc.Candidate.from_functions(problem, parameter=shapes()[2], state=displacement)
    np.testing.assert_allclose(candidate.parameter, basis.project(shapes()[2]), atol=1e-12)
    assert nodal_vectors(basis, candidate.state)[1][0] == pytest.approx(displacement(basis.doflocs[:, ::2])[0])
    candidate.save(tmp_path / "net.npz")
    again = fc.Candidate.from_file(problem, tmp_path / "net.npz")
    np.testing.assert_array_equal(again.state, candidate.state)
    with pytest.raises(fc.InputError, match=r"expected \(2, 50\)"):
        fc.Candidate.from_functions(problem, parameter=lambda x: x[0])
    data = problem.simulate(problem.parameters.field(np.ones(4)), noise=0.01)
    found = fc.no_harm(problem, data, baseline=fc.Tikhonov(weight=1e-8), learned=candidate, rule=fc.ExactRadius())
    path = fc.write_fields(found, tmp_path / "fields.vtu", problem=problem)
    with pytest.raises(fc.InputError, match="expected one number for each"):
        fc.Candidate.from_file(problem, path)


@pytest.mark.parametrize("dim", [2, 3])
def test_quadrilaterals_and_three_components(dim):
    basis = Basis(MeshQuad().refined(2), ElementVector(ElementQuad2(), dim))
    q = np.sum([(i + 1.0) * (dof_components(basis) == i) for i in range(dim)], axis=0) * basis.doflocs[0]
    space = fc.FullSpace(basis)
    squares = sum((i + 1.0) ** 2 for i in range(dim))
    assert space.norm(q) ** 2 == pytest.approx(squares / 3, rel=1e-12)
    assert q @ space.form("h1-seminorm") @ q == pytest.approx(squares, rel=1e-11)
    expected = np.concatenate([(i + 1.0) * POINTS[:, 0] for i in range(dim)])
    np.testing.assert_allclose(fc.PointSensors(basis, POINTS)(q), expected, atol=1e-12)
