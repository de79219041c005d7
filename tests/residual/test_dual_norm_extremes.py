"""Where bounds are easily wrong: tapered elements, steep coefficients, large states, fluxes that almost conform."""

import numpy as np
import pytest
import zoo
from plain import any_coefficient, any_heat, any_source
from skfem import Basis, BilinearForm, LinearForm, asm, solve
from skfem.element import ElementDG, ElementQuad1, ElementTriP1, ElementTriP2, ElementTriRT1
from skfem.helpers import dot, grad
from skfem.mesh import MeshQuad, MeshTri

import femcert as fc


def energy(basis, v, a=lambda x: 1.0):
    return np.sqrt(v @ asm(BilinearForm(lambda u, v, w: a(w.x) * dot(grad(u), grad(v))), basis) @ v)


@pytest.mark.parametrize("method", ["equilibrated", "enriched", "riesz"])
def test_lower_bounds_stay_below_on_quadrilaterals_that_are_almost_triangles(method):
    # The quadrature remainder is larger than one there; that must not turn a sign around.
    mesh = MeshQuad(np.array([[0.0, 1.0, 0.505, 0.495], [0.0, 0.0, 1.0, 1.0]]), np.arange(4)[:, None]).refined(1)
    basis = Basis(mesh, ElementQuad1())
    problem = any_source(basis, dirichlet=lambda x: x[0])
    u = basis.doflocs[0].copy()
    u[problem.free] += 1.0
    truth = energy(Basis(mesh, ElementQuad1(), intorder=40), u - basis.doflocs[0])
    result = fc.dual_norm(problem, fc.Candidate(u, np.zeros(basis.N)), method)
    assert result.lower.side == "lower"
    assert result.lower.value <= truth
    assert result.upper is None or result.upper.value >= truth


@pytest.mark.parametrize("steep", [8.0, 20.0, 60.0])
def test_lower_bounds_stay_below_for_steep_exponentials(steep):
    basis = Basis(MeshTri().refined(1), ElementTriP2(), intorder=12)
    q_basis = basis.with_element(ElementTriP1())
    problem = any_coefficient(basis, q_basis, dirichlet=lambda x: x[1])
    u = basis.doflocs[1].copy()
    u[problem.free] += np.random.default_rng(0).standard_normal(len(problem.free))
    fine = Basis(basis.mesh.refined(3), ElementTriP2(), intorder=16)
    truth = energy(fine, basis.probes(fine.doflocs) @ u - fine.doflocs[1], lambda x: np.exp(steep * x[0]))
    result = fc.dual_norm(problem, fc.Candidate(u, steep * q_basis.doflocs[0]))
    assert result.lower.value <= truth <= result.upper.value


@pytest.mark.parametrize("steep", [0.0, 1.0, 4.0])
def test_exponentials_on_rectangles_have_guaranteed_bounds(steep):
    basis = Basis(MeshQuad().refined(2), ElementQuad1(), intorder=12)
    problem = any_coefficient(basis, dirichlet=lambda x: x[1])
    u = basis.doflocs[1].copy()
    u[problem.free] += np.random.default_rng(0).standard_normal(len(problem.free))
    truth = energy(Basis(basis.mesh, ElementQuad1(), intorder=30), u - basis.doflocs[1], lambda x: np.exp(steep * x[0]))
    result = fc.dual_norm(problem, fc.Candidate(u, steep * basis.doflocs[0]))
    assert (result.lower.side, result.upper.side) == ("lower", "upper")
    assert 0.99 * truth <= result.lower.value <= truth <= result.upper.value <= 1.01 * truth


@pytest.mark.filterwarnings("error")
def test_a_conductivity_that_almost_vanishes_in_an_element_gives_a_finite_estimate():
    basis = Basis(MeshTri().refined(1), ElementTriP1(), intorder=6)
    problem = any_source(basis, conductivity=fc.Polynomial(lambda x: 1e-3 + (x[0] - 0.25) ** 2, 2))
    q = np.ones(basis.N)
    for u in (problem.solve(q), np.zeros(basis.N)):
        result = fc.dual_norm(problem, fc.Candidate(u, q))
        assert result.upper.side == "estimate"
        assert np.isfinite(result.upper.value)
        assert result.lower.value <= result.upper.value


def test_rounding_of_a_compatible_load_is_not_called_a_residual():
    # Constants have almost no energy, so that rounding of source against outflow weighs a lot.
    mesh = MeshTri().refined(2).with_defaults()
    basis = Basis(mesh, ElementTriP1())
    outflow = {"left": -1.3, "right": 1.3, "bottom": -0.37, "top": 0.37}
    problem = any_source(basis, reaction=1e-8, dirichlet={}, neumann=outflow)
    u = 1.3 * basis.doflocs[0] + 0.37 * basis.doflocs[1]
    result = fc.dual_norm(problem, fc.Candidate(u, 1e-8 * u))
    assert result.lower.value <= 1e-14


def test_large_states_that_hardly_vary():
    mesh = MeshTri().refined(2)
    basis = Basis(mesh, ElementTriP2())
    offset = 2.0**30
    problem = any_source(basis, dirichlet=offset)
    # All values are multiples of 2^-20, so that they, and their differences, are exact.
    bump = np.zeros(basis.N)
    bump[problem.free] = 2.0**-20 * np.random.default_rng(0).integers(-4, 5, len(problem.free))
    truth = energy(basis, bump)
    result = fc.dual_norm(problem, fc.Candidate(offset + bump, np.zeros(basis.N)))
    assert truth * (1 - 1e-9) <= result.lower.value <= truth <= result.upper.value <= truth * (1 + 1e-9)


@pytest.mark.parametrize("size", [1e-11, 1e-12])
def test_a_flux_that_jumps_a_little_pays_for_it(size):
    mesh = MeshTri().refined(2)
    basis = Basis(mesh, ElementTriP1())
    linear = basis.doflocs[0] + 0.3 * basis.doflocs[1]
    problem = any_source(basis, dirichlet=lambda x: x[0] + 0.3 * x[1])
    u = linear.copy()
    u[problem.free] += size * np.random.default_rng(0).standard_normal(len(problem.free))
    broken = Basis(mesh, ElementDG(ElementTriRT1()), intorder=2)
    slope = basis.with_element(ElementTriP1()).interpolate(u).grad[:, :, :1]
    mass = asm(BilinearForm(lambda p, v, w: dot(p, v)), broken)
    p = solve(mass, asm(LinearForm(lambda v, w: slope[0] * v[0] + slope[1] * v[1]), broken))
    found = fc.flux_majorant(problem, fc.Candidate(u, np.zeros(basis.N)), (broken, p))
    assert found.value >= energy(basis, u - linear)


def test_the_best_flux_is_not_below_the_truth_by_rounding():
    mesh = MeshTri().refined(2)
    basis, fluxes = Basis(mesh, ElementTriP1()), Basis(mesh, ElementTriRT1(), intorder=4)
    problem = any_source(basis, dirichlet=lambda x: x[0])
    mass = asm(BilinearForm(lambda p, v, w: dot(p, v)), fluxes)
    best = solve(mass, asm(LinearForm(lambda v, w: v[0]), fluxes))
    for seed in range(10):
        u = basis.doflocs[0].copy()
        u[problem.free] += np.random.default_rng(seed).standard_normal(len(problem.free))
        found = fc.flux_majorant(problem, fc.Candidate(u, np.zeros(basis.N)), (fluxes, best))
        truth = energy(basis, u - basis.doflocs[0])
        assert truth <= found.value <= truth * (1 + 1e-9)


@pytest.mark.parametrize("element", [ElementTriP1, ElementTriP2])
def test_a_boundary_value_that_jumps_has_no_upper_bound(element):
    basis = Basis(MeshTri().refined(2), element())
    problem = any_source(basis, dirichlet=fc.Polynomial(lambda x: 1.0 * (x[0] > 0.5), 0))
    found = fc.boundary_norm(problem, problem.boundary.values)
    assert found.side == "estimate"
    assert "jumps" in found.source


def test_the_lower_bound_of_a_resting_trajectory_is_not_above_its_initial_error():
    basis = zoo.square(1)
    problem = any_heat(basis, times=1.0, steps=2)
    found = fc.space_time_norm(problem, fc.Candidate(np.zeros((basis.N, 3)), np.ones(basis.N)))
    assert found.lower.value <= 1.0 <= found.upper.value


def test_a_mesh_too_thin_for_rounding_names_another_method():
    thin = 1e-8
    turn = np.array([[np.cos(1.0), -np.sin(1.0)], [np.sin(1.0), np.cos(1.0)]])
    p = turn @ np.array([[0.0, 1.0, 0.5, 0.5], [0.0, 0.0, thin, -thin]])
    basis = Basis(MeshTri(p, np.array([[0, 0], [1, 1], [2, 3]])).refined(2), ElementTriP1())
    problem = any_source(basis)
    candidate = fc.Candidate(np.random.default_rng(0).standard_normal(basis.N), np.ones(basis.N))
    with pytest.raises(fc.UncertifiedError, match="'enriched'"):
        fc.dual_norm(problem, candidate)
    assert fc.dual_norm(problem, candidate, "enriched").lower.value > 0.0
