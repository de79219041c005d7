"""The guaranteed radius against truths in closed form on interval and square: sines as functions, constants, points."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from closed_forms import (
    PLANE,
    SIDE,
    Case,
    averages,
    equal,
    heat_case,
    on_line,
    on_square,
    peaks,
    squares,
    with_points,
)
from skfem import (
    Basis,
    ElementLineP1,
    ElementLineP2,
    ElementQuad1,
    ElementQuad2,
    ElementTriP1,
    ElementTriP2,
    MeshQuad,
    MeshTri,
)

import femcert as fc
from femcert.certificate.guaranteed import guaranteed_parts
from femcert.mesh.integrate import disc_averages, disc_matrix, ray_integrals

SQUARES = [
    (8, ElementTriP1), (16, ElementTriP1), (32, ElementTriP1), (4, ElementTriP2), (8, ElementTriP2),
    (16, ElementTriP2), (8, ElementQuad1), (32, ElementQuad1), (4, ElementQuad2), (16, ElementQuad2),
]  # fmt: skip


@pytest.mark.parametrize(("n", "element"), SQUARES)
def test_sines_on_the_square(n, element):
    ratios = on_square(n, element).covered(range(24))
    # On the coarsest mesh sigma_min hardly is positive.
    assert np.median(ratios) <= {4: 5.0, 8: 30.0, 16: 4.0, 32: 1.6}[n]


@pytest.mark.parametrize(("n", "element", "reaction"), [
    (12, ElementLineP1, 0.0), (16, ElementLineP1, 30.0), (64, ElementLineP1, 0.0), (256, ElementLineP1, 30.0),
    (8, ElementLineP2, 0.0), (8, ElementLineP2, 30.0), (32, ElementLineP2, 30.0),
])  # fmt: skip
def test_sines_on_the_interval(n, element, reaction):
    ratios = on_line(n, element, reaction, cells=4 if n == 12 else 8).covered(range(24))
    assert np.median(ratios) <= (1.2 if n >= 64 or element is ElementLineP2 else 12.0)


def test_meshes_that_are_too_coarse_say_so():
    for case in (on_square(4, ElementTriP1, 5), on_square(4, ElementQuad1, 8)):
        _, data, candidate = case.draw(0)
        with pytest.raises(fc.UncertifiedError, match="refine"):
            guaranteed_parts(case.problem, data, candidate)


LINEAR = (fc.Polynomial(lambda x: 1.0 + 2.0 * x[0] - 3.0 * x[1], 1),)
QUADRATIC = (fc.Polynomial(lambda x: 0.5 - x[1] + 2.0 * (x[0] ** 2 - x[1] ** 2), 2),)


@pytest.mark.parametrize(("n", "element", "boundary"), [
    (16, ElementTriP1, LINEAR), (16, ElementQuad1, LINEAR), (8, ElementTriP2, QUADRATIC), (8, ElementQuad2, QUADRATIC),
])  # fmt: skip
def test_boundary_values_that_the_mesh_attains(n, element, boundary):
    assert np.median(on_square(n, element, 3, boundary).covered(range(18))) <= 2.0


def test_boundary_values_that_it_does_not_attain_are_refused():
    case = on_square(16, ElementTriP1, 3, QUADRATIC)
    _, data, candidate = case.draw(0)
    assert case.stability.scope == "continuous"
    with pytest.raises(fc.UncertifiedError, match="attains the Dirichlet value"):
        guaranteed_parts(case.problem, data, candidate, stability=case.stability)


def quadrants(mesh):
    return squares(mesh, 2)


@cache
def exact_quadrants(terms=300):
    """Averages over sixteen squares of the solutions for constants on quadrants: a double sine series."""
    j = np.arange(1, terms + 1)
    halves = np.array([averages(k * np.pi, equal(2)) / 2.0 for k in j])
    parts = np.array([averages(k * np.pi, equal(SIDE)) for k in j])
    weight = 4.0 / (np.pi**2 * (j[:, None] ** 2 + j[None, :] ** 2))
    F = np.einsum("jl,ja,lb,jp,lq->abpq", weight, parts, parts, halves, halves, optimize=True)
    return F.reshape(SIDE**2, 4)


@pytest.mark.parametrize(("n", "element"), [
    (16, ElementTriP1), (8, ElementTriP2), (16, ElementQuad1), (4, ElementQuad2),
])  # fmt: skip
def test_constants_on_quadrants(n, element):
    grid = equal(n)
    mesh = PLANE[element].init_tensor(grid, grid)
    basis = Basis(mesh, element())
    problem = fc.EllipticSource(
        basis, parameters=fc.RegionSpace(basis, quadrants(mesh)), sensors=fc.RegionSensors(basis, squares(mesh))
    )

    def indicators(x):
        return np.array([(x[0] // 0.5 == i) & (x[1] // 0.5 == j) for i in (0, 1) for j in (0, 1)], dtype=float)

    case = Case(problem, exact_quadrants(), truth=indicators)
    # The series is cut after 300 terms: its error is far below the noise of these seeds.
    assert np.abs(exact_quadrants() - exact_quadrants(150)).max() <= 1e-7
    seeds = [seed for seed in range(60) if case.draw(seed)[1].noise_level > 1e-4][:18]
    assert np.median(case.covered(seeds)) <= 4.0


@pytest.mark.parametrize(("element", "n", "values", "robin"), [
    (ElementLineP1, 16, (0.0, 0.0), False), (ElementLineP1, 32, (1.0, -2.0), False),
    (ElementLineP1, 32, (1.0, 3.0), True), (ElementLineP2, 8, (-1.0, 2.0), True),
])  # fmt: skip
def test_points_on_a_line_and_conditions_at_its_ends(element, n, values, robin):
    assert np.median(with_points(element, n, values, robin).covered(range(24))) <= 1.5


def test_near_the_discrete_radius_on_a_fine_mesh():
    squares = [on_square(64, element, 5) for element in (ElementTriP1, ElementQuad1)]
    for case in (*squares, on_line(64, ElementLineP1, 0.0, 5, 16)):
        seeds = [seed for seed in range(60) if case.noisy(case.draw(seed)[1])][:5]
        assert max(case.covered(seeds)) <= 1.5


def test_recomputed_states_leave_an_error_of_second_order_at_most():
    for element, order in ((ElementTriP1, 2.0), (ElementQuad1, 2.0), (ElementTriP2, 4.0)):
        left = []
        for n in (16, 32):
            case = on_square(n, element)
            truth, data, _ = case.draw(0)
            candidate = fc.Candidate.from_coefficients(case.problem, truth)
            parts = guaranteed_parts(case.problem, data, candidate, state="recomputed", stability=case.stability)
            assert parts.bc.value == 0.0
            left.append(parts.pde.value)
        # On regular meshes of triangles what fluxes and test functions both miss is smaller.
        assert -0.3 <= np.log2(left[0] / left[1]) - order <= 1.3


def radius_without(parts, data, name):
    smaller = replace(parts, **{name: fc.Bound(0.0, "upper", "dropped")})
    total = smaller.data.value + smaller.pde.value + smaller.bc.value + data.noise_level
    return smaller.stability.constant.value * total + smaller.admissibility.value


def test_every_part_is_needed():
    """With a part dropped, some candidate is left uncovered: the tests above can fail."""
    case = on_square(16, ElementTriP1)
    problem = case.problem
    truth = np.array([1.0, -0.5, 0.3])
    data = fc.Data(case.F @ truth, 0.0)
    wrong = truth + np.array([0.5, 0.5, -0.5])
    q = problem.parameters.field(wrong)
    good = problem.solve(problem.parameters.field(truth))
    hidden = problem.parameters.field(truth) + np.random.default_rng(0).standard_normal(q.size)
    lift = np.zeros_like(good)
    lift[problem.boundary.prescribed] = 5.0
    harmonic = fc.residual.energy.state_norm(problem, "energy").lift(lift, problem.free)
    candidates = {
        "data": fc.Candidate(problem.solve(q), q),
        "pde": fc.Candidate(good, q),
        "admissibility": fc.Candidate(good, hidden),
    }
    for name, candidate in candidates.items():
        parts = guaranteed_parts(problem, data, candidate, stability=case.stability)
        error = case.error(candidate.parameter, truth)
        assert error <= parts.radius
        assert radius_without(parts, data, name) < error
    # A state that fits the data through its boundary values: they are all that is wrong with it.
    constant = fc.EllipticSource(
        problem.basis, parameters=problem.parameters, sensors=problem.sensors, dirichlet=lambda x: 0.0 * x[0]
    )
    shifted = fc.Candidate(problem.solve(q) + harmonic, q)
    readings = fc.Data(constant.observe(shifted.state), 0.0)
    parts = guaranteed_parts(problem, readings, shifted, stability=case.stability)
    assert parts.data.value <= 1e-9
    assert parts.bc.value == pytest.approx(5.0 * SIDE, rel=1e-3)
    assert radius_without(parts, readings, "bc") < 0.2 * parts.radius


def test_the_worst_noise_on_the_weakest_direction():
    """Nothing is left to spare: a candidate as far from the truth as noise of the level can take it."""
    for case in (on_line(64, ElementLineP1), on_square(16, ElementQuad2), heat_case(ElementLineP1, 8, "points")):
        U, S, Vt = np.linalg.svd(case.F, full_matrices=False)
        truth = np.array([1.0, -0.4, 0.2])
        delta = 0.1 * np.linalg.norm(case.F @ truth)
        data = fc.Data(case.F @ truth + delta * U[:, -1], delta * (1.0 + 1e-12))
        far = fc.Candidate.from_coefficients(case.problem, truth + 2.0 * delta / S[-1] * Vt[-1])
        error = case.error(far.parameter, truth)
        for state in ("given", "recomputed"):
            parts = guaranteed_parts(case.problem, data, far, state=state, stability=case.stability)
            assert error <= parts.radius <= 1.3 * error


def test_the_mesh_alone_claims_too_much():
    """The least-squares fit of the discrete problem explains exact data better than the truth does."""
    case = on_square(8, ElementTriP1)
    problem = case.problem
    uncovered = 0
    for seed in range(10):
        truth = np.random.default_rng(seed).standard_normal(3)
        data = fc.Data(case.F @ truth, 0.0)
        c = np.linalg.lstsq(problem.forward_matrix(), data.values, rcond=None)[0]
        candidate = fc.Candidate.from_coefficients(problem, c)
        error = case.error(candidate.parameter, truth)
        discrete = data.norm(problem.observe(candidate.state) - data.values) / fc.stability(problem).sigma_min
        uncovered += discrete < error
        parts = guaranteed_parts(problem, data, candidate, state="recomputed", stability=case.stability)
        assert error <= parts.radius
    assert uncovered >= 5


def test_covariances():
    case = on_line(32, ElementLineP1)
    rng = np.random.default_rng(1)
    root = np.tril(rng.standard_normal((8, 8)), -1) + np.diag(rng.uniform(0.5, 2.0, 8))
    truth = np.array([1.0, 0.4, -0.3])
    noise = root @ (0.01 * np.eye(8)[3])
    data = fc.Data(case.F @ truth + noise, 0.01 * (1 + 1e-12), root @ root.T)
    candidate = fc.Candidate.from_coefficients(case.problem, truth + 0.1)
    parts = guaranteed_parts(case.problem, data, candidate)
    assert case.error(candidate.parameter, truth) <= parts.radius
    again = guaranteed_parts(case.problem, data, candidate, stability=parts.stability)
    assert again.radius == parts.radius
    # A constant for other weights of the data, or of another problem, proves nothing here.
    with pytest.raises(fc.InputError, match="another problem or covariance"):
        guaranteed_parts(case.problem, data, candidate, stability=case.stability)
    other = on_line(32, ElementLineP1, 30.0)
    with pytest.raises(fc.InputError, match="another problem or covariance"):
        guaranteed_parts(other.problem, data, candidate, stability=parts.stability)


def test_refused():
    case = on_line(16, ElementLineP1, 30.0)
    _, data, candidate = case.draw(0)
    with pytest.raises(fc.UncertifiedError, match="constant is discrete"):
        guaranteed_parts(case.problem, data, candidate, stability=fc.stability(case.problem))
    with pytest.raises(fc.InputError, match="state is 'exact'"):
        guaranteed_parts(case.problem, data, candidate, state="exact")
    basis = Basis(MeshTri().refined(3), ElementTriP1())
    space = fc.SineSpace(basis, 1)
    points = fc.PointSensors(basis, [[0.3, 0.4], [0.5, 0.6]])
    discs = fc.AverageSensors(basis, [[0.3, 0.4], [0.5, 0.6]], radius=0.2)
    two = fc.Data([0.1, 0.1], 0.01)
    heat = {"parameters": space, "times": 0.01, "steps": 4}
    refusals = {
        "known densities": fc.EllipticSource(basis, parameters=space, sensors=points),
        "only estimated": fc.EllipticSource(
            basis, parameters=space, sensors=discs, conductivity=lambda x: 1.5 + np.sin(9.0 * x[0])
        ),
        "not averages": fc.HeatInitial(basis, sensors=points, **heat),
        "diffusivity varies": fc.HeatInitial(basis, sensors=discs, diffusivity=lambda x: 1.0 + x[0], **heat),
        "not u = 0": fc.HeatInitial(basis, sensors=discs, dirichlet={}, **heat),
        "EigenmodeSpace": fc.HeatInitial(
            basis, sensors=discs, **{**heat, "parameters": fc.EigenmodeSpace(basis, 1)}
        ),
        "is not that of the mesh": fc.HeatInitial(
            basis, sensors=discs, **{**heat, "parameters": fc.SineSpace(basis, 1, box=[[0.0, 1.0], [0.0, 2.0]])}
        ),
        "EllipticCoefficient does not": fc.EllipticCoefficient(basis, parameters=space, sensors=discs, source=1.0),
    }
    for reason, problem in refusals.items():
        judged = fc.Candidate.from_coefficients(problem, [0.1])
        with pytest.raises(fc.UncertifiedError, match=reason):
            guaranteed_parts(problem, two, judged)
    bent = MeshQuad.init_tensor(equal(4), equal(4))
    bent = Basis(MeshQuad(bent.p + 0.1 * bent.p[0] * bent.p[1], bent.t), ElementQuad1())
    sensors = fc.AverageSensors(bent, [[0.3, 0.4], [0.5, 0.6]], radius=0.2)
    problem = fc.EllipticSource(bent, parameters=fc.SineSpace(bent, 1), sensors=sensors)
    with pytest.raises(fc.UncertifiedError, match="no parallelograms"):
        guaranteed_parts(problem, two, fc.Candidate.from_coefficients(problem, [0.1]))
    corner = Basis(MeshTri.init_lshaped().refined(2), ElementTriP1())
    sensors = fc.AverageSensors(corner, [[-0.5, 0.5], [-0.5, -0.5]], radius=0.2)
    problem = fc.HeatInitial(corner, parameters=fc.SineSpace(corner, 1), sensors=sensors, times=0.01, steps=4)
    with pytest.raises(fc.UncertifiedError, match="boundary facets lie inside the box"):
        guaranteed_parts(problem, two, fc.Candidate.from_coefficients(problem, [0.1]))


@pytest.mark.parametrize(("element", "n", "sensors", "scheme"), [
    (ElementLineP1, 8, "regions", "crank-nicolson"), (ElementLineP1, 32, "averages", "backward-euler"),
    (ElementLineP2, 8, "points", "exact"), (ElementTriP1, 8, "regions", "crank-nicolson"),
    (ElementQuad2, 4, "regions", "crank-nicolson"),
])  # fmt: skip
def test_heat_with_sines(element, n, sensors, scheme):
    case = heat_case(element, n, sensors, scheme)
    scales = case.problem.parameters.functions_at(peaks(case.problem.parameters.frequencies)).diagonal()
    exact = np.linalg.svd(case.F / (scales * 0.5 ** (len(case.problem.parameters.frequencies) / 2)), compute_uv=False)
    assert case.stability.scope == "continuous"
    assert exact[-1] * (1.0 - 1e-8) <= case.stability.sigma_min <= exact[-1] * (1.0 + 1e-12)
    case.covered(range(24))
    # Exact data of a truth: no state of the mesh explains them, and none is needed.
    truth = np.array([1.0, 0.3, -0.2])
    candidate = fc.Candidate.from_coefficients(case.problem, truth)
    parts = guaranteed_parts(
        case.problem, fc.Data(case.F @ truth, 0.0), candidate, state="recomputed", stability=case.stability
    )
    assert parts.data.value + parts.pde.value <= 1e-7
    assert parts.radius <= 1.01 * case.error(candidate.parameter, truth) + 1e-6


def test_heat_on_discs_of_the_plane():
    """Averages of sines over discs, against the finest of meshes: quadrature on their parts is exact."""
    points = np.random.default_rng(0).uniform(0.05, 0.95, (6, 2))
    found = []
    for mesh in (MeshTri.init_tensor(equal(6), equal(6)), MeshQuad.init_tensor(equal(11), equal(11))):
        basis = Basis(mesh, ElementTriP1() if mesh.t.shape[0] == 3 else ElementQuad1())
        sensors = fc.AverageSensors(basis, points, radius=0.13)
        problem = fc.HeatInitial(basis, parameters=fc.SineSpace(basis, 2), sensors=sensors, times=0.02, steps=4)
        found.append(fc.stability(problem, guarantee="continuous").singular_values)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    fine = Basis(MeshTri.init_tensor(equal(48), equal(48)), ElementTriP2())
    sensors = fc.AverageSensors(fine, points, radius=0.13)
    problem = fc.HeatInitial(fine, parameters=fc.SineSpace(fine, 2), sensors=sensors, times=0.02, steps=40)
    np.testing.assert_allclose(found[0], fc.stability(problem).singular_values, rtol=1e-4)


def test_line_integrals_of_images():
    """The class of finite-element images: nothing but rounding, and what the class misses."""
    basis = Basis(MeshTri.init_tensor(equal(8), equal(8)), ElementTriP1())
    problem = fc.Tomography(basis, parameters=fc.EigenmodeSpace(basis, 5), angles=[0.0, 35.0, 80.0], bins=9)
    space, F = problem.parameters, problem.forward_matrix()
    found = fc.stability(problem, guarantee="continuous")
    np.testing.assert_allclose(found.singular_values, fc.stability(problem).singular_values, rtol=1e-8)
    rng = np.random.default_rng(0)
    for _ in range(10):
        truth = rng.standard_normal(5)
        noise = rng.standard_normal(len(F))
        data = fc.Data(F @ truth + 0.01 * noise / np.linalg.norm(noise), 0.01 * (1 + 1e-12))
        q = space.field(truth + 0.1 * rng.standard_normal(5)) + 0.1 * rng.standard_normal(basis.N)
        radii = [
            guaranteed_parts(problem, data, fc.Candidate(None, q), state=state, stability=found).radius
            for state in ("given", "recomputed")
        ]
        assert space.norm(q - space.field(truth)) <= radii[0] == radii[1]
    sampled = fc.Tomography(
        basis, parameters=fc.EigenmodeSpace(basis, 5), angles=[0.0, 35.0, 80.0], bins=9, rule="sampled"
    )
    with pytest.raises(fc.UncertifiedError, match="no line integral"):
        guaranteed_parts(sampled, data, fc.Candidate(None, q))


@pytest.mark.parametrize("element", [ElementTriP1, ElementQuad2])
def test_line_integrals_of_sines(element):
    """Closed form along vertical and horizontal rays, whatever the mesh."""
    mesh = PLANE[element].init_tensor(equal(7), equal(5))
    basis = Basis(mesh, element())
    space = fc.SineSpace(basis, 3)
    problem = fc.Tomography(basis, parameters=space, angles=[0.0, 90.0], bins=6)
    s = np.linspace(-0.5, 0.5, 6, endpoint=False) + 1.0 / 12.0
    scales = space.functions_at(peaks(space.frequencies)).diagonal()
    columns = []
    for a, (j, l) in zip(scales, space.frequencies.T, strict=True):
        whole = [(1.0 - np.cos(f * np.pi)) / (f * np.pi) for f in (j, l)]
        # At 0 degrees rays run upwards through x = 1/2 + s, at 90 degrees to the left through y = 1/2 + s.
        upwards, across = np.sin(j * np.pi * (0.5 + s)) * whole[1], np.sin(l * np.pi * (0.5 + s)) * whole[0]
        columns.append(a * np.concatenate([upwards, across]))
    case = Case(problem, np.column_stack(columns))
    exact = np.linalg.svd(case.F / scales * 2.0, compute_uv=False)
    assert exact[-1] * (1.0 - 1e-5) <= case.stability.sigma_min <= exact[-1] * (1.0 + 1e-12)
    case.covered(range(18))


@pytest.mark.parametrize("element", [ElementTriP2, ElementQuad1])
def test_functions_on_discs_and_rays_are_integrated_like_fields(element):
    basis = Basis(PLANE[element].init_tensor(equal(5), equal(3)), element())
    u = basis.project(lambda x: 1.0 + x[0] - 2.0 * x[1])

    def function(x):
        return np.array([1.0 + x[0] - 2.0 * x[1], np.ones(x.shape[1])])

    centres = np.random.default_rng(0).uniform(0.0, 1.0, (2, 7))
    averaged = disc_averages(basis.mesh, centres, 0.17, function, 4)
    np.testing.assert_allclose(averaged[0], disc_matrix(basis, centres, 0.17) @ u, atol=1e-12)
    np.testing.assert_allclose(averaged[1], 1.0, atol=1e-12)
    rays = fc.RaySensors(basis, angles=[0.0, 20.0, 135.0], bins=8)
    summed = ray_integrals(basis.mesh, rays.origins, rays.directions, function, 3)
    np.testing.assert_allclose(summed[0], rays(u), atol=1e-12)
    np.testing.assert_allclose(summed[1], rays(np.ones(basis.N)), atol=1e-12)
