"""The checker of fluxes: mixed solutions of scikit-fem, fluxes that are wrong on purpose, and the estimator's own."""

import numpy as np
import pytest
import zoo
from exact_cases import build
from exact_lines import LineCase
from mixed import flux_of, mixed_flux
from plain import any_source
from skfem import (
    Basis,
    ElementDG,
    ElementLineP0,
    ElementLineP1,
    ElementLineP2,
    ElementTriN1,
    ElementTriP1,
    ElementTriP2,
    ElementTriP3,
    ElementTriRT1,
    ElementTriRT2,
    ElementVector,
    FacetBasis,
    InteriorFacetBasis,
    MeshLine,
    MeshTri,
)  # fmt: skip

import femcert as fc
from femcert.mesh.sample import Sampler, dot
from femcert.residual.equilibrate import equilibrated_flux
from femcert.residual.lower import split
from femcert.residual.majorant import _crude_constant, majorant
from femcert.residual.workspace import workspace_of

BOUNDARIES = ("dirichlet", "two sides", "left", "robin")


def oriented(rng, element, *wishes):
    """A case whose elements scikit-fem's fluxes can live on: no quadrilaterals in clockwise order."""
    while True:
        case = build(rng, element, *wishes)
        if element[0] == "P" or "parallelograms" in case.name:
            return case


@pytest.mark.parametrize("pair", ["RT1", "BDM1", "RT2", "quad RT1"])
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("coefficient", ["constant", "linear", "jump"])
def test_mixed_solutions_prove_upper_bounds(pair, boundary, coefficient):
    rng = np.random.default_rng([len(pair), len(boundary), len(coefficient)])
    over = []
    for kind in ("galerkin", "noise", "other"):
        case = oriented(rng, "Q1" if "quad" in pair else "P1", coefficient, boundary, 0.0)
        state = case.state(kind, rng)
        flux = flux_of(case, pair)
        result = fc.flux_majorant(case.problem, case.candidate(state), flux)
        truth = case.error(state)
        assert result.bound.side == "upper", case.name
        assert result.value >= truth, (case.name, kind)
        assert result.value == result.bound.value
        # The norm H1 knows the same flux.
        assert fc.flux_majorant(case.problem, case.candidate(state), flux, norm="h1").bound.side == "upper"
        over.append(result.value / truth)
    assert np.min(over) <= 12.0, over


@pytest.mark.parametrize("element", ["P1", "P2", "Q1"])
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("reaction", [0.0, 3.0])
def test_a_wrong_flux_still_proves_something_true(element, boundary, reaction):
    rng = np.random.default_rng([len(boundary), int(reaction), *map(ord, element)])
    for kind in ("galerkin", "noise"):
        case = oriented(rng, element, "constant", boundary, reaction)
        state = case.state(kind, rng)
        flux, dofs = flux_of(case, "quad RT1" if element[0] == "Q" else "RT1")
        truth = case.error(state)
        for wrong in (0.0 * dofs, dofs + 0.1 * rng.standard_normal(len(dofs)) * np.abs(dofs).max(), -dofs):
            result = fc.flux_majorant(case.problem, case.candidate(state), (flux, wrong))
            assert result.bound.side == "upper"
            assert result.value >= truth, (case.name, kind)
            assert result.defect > 0.0
            assert np.linalg.norm(result.elements) + result.defect == pytest.approx(result.value)


def test_the_defect_is_the_friedrichs_constant_times_the_missing_balance():
    # Zero flux, zero state, source 1 on the unit square: the bound is C_F ‖1‖ with C_F = 1 / (pi sqrt 2).
    basis = zoo.square(3)
    problem = any_source(basis)
    flux = Basis(basis.mesh, ElementTriRT1())
    result = fc.flux_majorant(problem, fc.Candidate(np.zeros(basis.N), np.ones(basis.N)), (flux, np.zeros(flux.N)))
    assert result.value == pytest.approx(1.0 / (np.pi * np.sqrt(2.0)), rel=1e-6)
    assert result.misfit == 0.0
    # The truth is ‖grad u‖ = (int u)^1/2 of the torsion function, 0.0351443^1/2.
    assert result.value >= np.sqrt(0.0351442)


@pytest.mark.parametrize("options", [{"reaction": 1e-12}, {"robin": {"left": (1e-12, 0.0)}}], ids=["reaction", "robin"])
@pytest.mark.parametrize("size", [1e-6, 1.0])
def test_the_crude_constant_is_far_above_the_quotient_of_constants(options, size):
    mesh = MeshTri().refined(2).scaled(size).with_boundaries({"left": lambda x: x[0] == 0.0})
    basis = Basis(mesh, ElementTriP1())
    problem = any_source(basis, dirichlet={}, **options)
    tools, equation = workspace_of(problem), problem.strong(np.ones(basis.N))
    energy = 1e-12 * (size**2 if "reaction" in options else size)
    for norm, quotient in (("energy", size / np.sqrt(energy)), ("h1", 1.0)):
        rule = tools.rule(equation, norm)
        r = tools.residual(equation, np.zeros(basis.N), norm, rule)
        assert _crude_constant(r, 1.0, size**2) >= 1000.0 * quotient


@pytest.mark.parametrize("element", ["P1", "P2"])
def test_on_lines_a_continuous_function_is_a_flux(element):
    for seed in range(30):
        case = LineCase(element, seed)
        F = case.a[0] * case.pieces[0].deriv()
        basis = Basis(case.problem.basis.mesh, ElementLineP2())
        candidate = fc.Candidate(case.state, case.parameter)
        result = fc.flux_majorant(case.problem, candidate, (basis, F(basis.doflocs[0])))
        assert result.bound.side == "upper", case.name
        assert result.value >= case.error() * (1.0 - 1e-12), case.name
        wrong = fc.flux_majorant(case.problem, candidate, (basis, F(basis.doflocs[0]) + 0.1 * basis.doflocs[0] ** 2))
        assert wrong.value >= case.error(), case.name


def refused():
    mesh, line = MeshTri().refined(2), MeshLine().refined(3)
    yield "discontinuous RT", Basis(mesh, ElementDG(ElementTriRT1())), fc.UncertifiedError
    yield "Nédélec", Basis(mesh, ElementTriN1()), fc.InputError
    yield "vectors", Basis(mesh, ElementVector(ElementTriP1())), fc.InputError
    yield "scalars", Basis(mesh, ElementTriP1()), fc.InputError
    yield "steps", Basis(line, ElementLineP0()), fc.UncertifiedError
    yield "discontinuous", Basis(line, ElementDG(ElementLineP1())), fc.UncertifiedError
    yield "another mesh", Basis(MeshTri().refined(3), ElementTriRT1()), fc.InputError


@pytest.mark.parametrize(("flux", "error"), [pytest.param(b, e, id=name) for name, b, e in refused()])
def test_what_is_no_conforming_flux_is_refused(flux, error):
    basis = Basis(MeshLine().refined(3), ElementLineP1()) if flux.mesh.dim() == 1 else None
    basis = basis or zoo.square(2)
    problem = any_source(basis)
    candidate = fc.Candidate(np.zeros(basis.N), np.ones(basis.N))
    dofs = np.random.default_rng(0).standard_normal(flux.N)
    with pytest.raises(error):
        fc.flux_majorant(problem, candidate, (flux, dofs))


def cubic_problem(element):
    """``u = x y (1 - x - y)`` on the unit triangle, where the source ``2 (x + y)`` is linear."""
    corner = MeshTri(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.array([[0], [1], [2]])).refined(3)
    basis = Basis(corner, element())
    problem = any_source(basis)
    return problem, 2.0 * basis.doflocs.sum(axis=0)


def exact_slope(x):
    return np.array([x[1] - 2.0 * x[0] * x[1] - x[1] ** 2, x[0] - 2.0 * x[0] * x[1] - x[0] ** 2])


@pytest.mark.parametrize("element", [ElementTriP1, ElementTriP2])
def test_the_identity_of_prager_and_synge(element):
    problem, q = cubic_problem(element)
    mesh, basis = problem.basis.mesh, problem.basis
    rng = np.random.default_rng(1)
    flux = mixed_flux(
        "RT2", mesh, lambda x: 1.0, lambda x: 2.0 * (x[0] + x[1]), [(mesh.boundary_facets(), lambda x: 0.0 * x[0])], []
    )
    sampler = Sampler(mesh, 8)
    p = np.asarray(Basis(mesh, ElementTriRT2(), quadrature=(sampler.X, sampler.W)).interpolate(flux[1]))
    off = p - exact_slope(sampler.x)
    distance = sampler.integral(dot(off, off)).sum()
    for noise in (0.0, 0.02):
        u = problem.solve(q).copy()
        u[problem.free] += noise * rng.standard_normal(len(problem.free))
        slope = exact_slope(sampler.x) - sampler.gradients(basis, u)
        error = sampler.integral(dot(slope, slope)).sum()
        result = fc.flux_majorant(problem, fc.Candidate(u, q), flux)
        assert result.value**2 == pytest.approx(error + distance, rel=1e-7)
        assert result.defect + result.oscillation <= 1e-5 * result.value


@pytest.mark.parametrize("element", ["P1", "P2"])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_the_estimators_flux_seen_by_scikit_fem(element, boundary):
    """Misfit, divergence, jumps and boundary values of the internal flux, all evaluated by other code."""
    rng = np.random.default_rng(len(boundary))
    case = build(rng, element, "constant", boundary, 0.0)
    problem, mesh = case.problem, case.problem.basis.mesh
    tools, equation = workspace_of(problem), problem.strong(case.parameter)
    rule = tools.rule(equation, "energy")
    state = case.state("noise", rng)
    r = tools.residual(equation, state, "energy", rule)
    parts = split(r, problem.factor, problem.free)
    flux = equilibrated_flux(tools.equilibration, parts.rest, steps=10)
    checked = majorant(parts.rest, flux, rule, lambda sharp: None, tools.facets)
    # The rest of the residual is that of the state plus w. Cubic fields on every element contain the flux.
    state = state + parts.representative
    broken = ElementVector(ElementDG(ElementTriP3()))
    inside = Basis(mesh, broken, intorder=8)
    values, divergence = flux.at(Sampler(mesh, 8))
    dofs = inside.project(np.broadcast_to(values, (2, *inside.dx.shape)))
    p = inside.interpolate(dofs)
    size = float(np.abs(values).max())
    assert np.abs(np.asarray(p) - values).max() <= 1e-10 * size
    div = np.einsum("iikq->kq", p.grad)
    assert np.abs(div - divergence).max() <= 1e-7 * np.abs(div).max()
    # In balance on every element: the mean of div p is that of -f.
    f = case.source(np.asarray(inside.global_coordinates()))
    lacking = np.sum((div + f) * inside.dx, axis=1)
    assert np.abs(lacking).max() <= 1e-10 * np.sum(np.abs(div) * inside.dx, axis=1).max()
    one, two = (InteriorFacetBasis(mesh, broken, side=side, intorder=8) for side in (0, 1))
    jump = np.sum((np.asarray(one.interpolate(dofs)) - np.asarray(two.interpolate(dofs))) * one.normals, axis=0)
    assert np.abs(jump).max() <= 1e-9 * size
    slope = Basis(mesh, problem.basis.elem, intorder=8).interpolate(state).grad
    misfit = np.sqrt(np.sum((np.asarray(p) - case.a * slope) ** 2 / case.a * inside.dx))
    assert misfit == pytest.approx(checked.misfit, rel=1e-8)
    for part in problem.boundary.natural:
        side, trace = (FacetBasis(mesh, e, facets=part.facets, intorder=8) for e in (broken, problem.basis.elem))
        y = np.asarray(side.global_coordinates())
        outflow = np.sum(np.asarray(side.interpolate(dofs)) * side.normals, axis=0)
        alpha = part.coefficient(y) if callable(part.coefficient) else part.coefficient
        gap = np.sum((part.value(y) - alpha * np.asarray(trace.interpolate(state)) - outflow) * side.dx, axis=1)
        assert np.abs(gap).max() <= 1e-9 * size * side.dx.sum(axis=1).max()
