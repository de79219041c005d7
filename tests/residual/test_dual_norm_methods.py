"""The methods of `dual_norm`: their sides and their order, what they refuse, and what they must not depend on."""

from dataclasses import replace

import numpy as np
import pytest
import zoo
from plain import any_heat, any_source
from skfem import Basis, BilinearForm
from skfem.helpers import dot, grad
from zoo import CLASSES, ELEMENTS, PLANE, STRAIGHT, one_dof, own_linear

import femcert as fc

METHODS = ("equilibrated", "enriched", "riesz", "indicator")


def a_problem(name, levels=3, **options):
    return any_source(basis_on(name, CLASSES[ELEMENTS[name][0]]().refined(levels)), **options)


def basis_on(name, mesh):
    return Basis(mesh, ELEMENTS[name][1]())


def noisy(problem, seed=0, noise=0.03):
    rng = np.random.default_rng(seed)
    q = rng.standard_normal(problem.parameters.basis.N)
    u = problem.solve(q).copy()
    u[problem.free] += noise * rng.standard_normal(len(problem.free))
    return fc.Candidate(u, q)


@pytest.mark.parametrize("norm", ["energy", "h1"])
@pytest.mark.parametrize("kind", STRAIGHT)
def test_sides_and_order_of_the_methods(kind, norm):
    problem = a_problem(kind, reaction=2.0)
    candidate = noisy(problem)
    by = {method: fc.dual_norm(problem, candidate, method, norm=norm) for method in METHODS}
    riesz, enriched, upper = by["riesz"].lower, by["enriched"].lower, by["equilibrated"].upper
    assert riesz.side == enriched.side == by["equilibrated"].lower.side == "lower"
    assert by["riesz"].upper is None
    assert by["enriched"].upper is None
    assert upper.side == "upper"
    assert by["indicator"].upper.side == "estimate"
    assert by["indicator"].lower is None
    assert 0.0 < riesz.value <= enriched.value * (1.0 + 1e-9)
    assert enriched.value <= upper.value
    assert by["equilibrated"].lower.value >= riesz.value * (1.0 - 1e-9)
    # The estimate knows no constants, but it is no number of another world.
    assert 0.2 * upper.value <= by["indicator"].best.value <= 20.0 * upper.value
    for result in by.values():
        assert result.indicators.shape == (problem.basis.mesh.nelements,)
        assert result.indicators.min() >= 0.0
        assert result.norm == norm


@pytest.mark.parametrize("kind", STRAIGHT)
def test_on_the_trial_space_a_galerkin_solution_has_no_residual(kind):
    problem = a_problem(kind)
    q = np.random.default_rng(0).standard_normal(problem.basis.N)
    galerkin = fc.Candidate(problem.solve(q), q)
    zero = fc.Candidate(0.0 * q, q)
    size = fc.dual_norm(problem, zero, "riesz").lower.value
    assert fc.dual_norm(problem, galerkin, "riesz").lower.value <= 1e-11 * size
    # Beyond the trial space there is one.
    assert fc.dual_norm(problem, galerkin, "enriched").lower.value >= 1e-3 * size


@pytest.mark.parametrize("kind", ["line P1", *PLANE])
def test_indicators_add_up_and_find_a_spike(kind):
    problem = a_problem(kind, levels=4)
    basis = problem.basis
    q = np.ones(basis.N)
    u = problem.solve(q).copy()
    spike = problem.free[np.argmin(np.linalg.norm(basis.doflocs[:, problem.free] - 0.7, axis=0))]
    u[spike] += 0.5
    result = fc.dual_norm(problem, fc.Candidate(u, q))
    assert np.linalg.norm(result.indicators) == pytest.approx(result.upper.value, rel=0.02)
    around = np.any(basis.element_dofs == spike, axis=0)
    assert np.sum(result.indicators[around] ** 2) >= 0.75 * np.sum(result.indicators**2)
    assert around[np.argmax(result.indicators)]


@pytest.mark.parametrize("mass", ["consistent", "lumped"])
@pytest.mark.parametrize("kind", ["line P1", "tri P1"])
def test_a_lumped_problem_is_judged_by_the_true_equation(kind, mass):
    problem = a_problem(kind, mass=mass, reaction=3.0)
    plain = a_problem(kind, reaction=3.0)
    candidate = noisy(problem)
    for method in METHODS:
        ours, theirs = (fc.dual_norm(p, candidate, method).best.value for p in (problem, plain))
        assert ours == pytest.approx(theirs, rel=1e-9)
    lumped = fc.Candidate(problem.solve(candidate.parameter), candidate.parameter)
    residual = fc.dual_norm(problem, lumped, "riesz").lower.value
    assert (residual > 1e-3) == (mass == "lumped")


@BilinearForm
def helmholtz(u, v, w):
    return dot(grad(u), grad(v)) + 3.0 * u * v


def test_problems_with_own_forms_have_the_riesz_method_only():
    basis = zoo.square(3)
    own = own_linear(basis, operator=helmholtz, parameters=fc.FullSpace, sensors=one_dof, definite=True)
    known = any_source(basis, reaction=3.0)
    candidate = noisy(known)
    for norm in ("energy", "h1"):
        ours, theirs = (fc.dual_norm(p, candidate, "riesz", norm=norm).lower for p in (own, known))
        # A form is a function of x, of which assembly knows samples.
        assert (ours.side, theirs.side) == ("estimate", "lower")
        assert ours.value == pytest.approx(theirs.value, rel=1e-9)
    for method in ("equilibrated", "enriched", "indicator"):
        with pytest.raises(fc.UncertifiedError, match="'riesz'"):
            fc.dual_norm(own, candidate, method)


def test_problems_without_a_static_state_are_sent_elsewhere():
    basis = zoo.square(2)
    heat = any_heat(basis, times=[0.1], steps=2)
    q = np.random.default_rng(0).standard_normal(basis.N)
    with pytest.raises(fc.UncertifiedError, match="space_time_norm"):
        fc.dual_norm(heat, fc.Candidate(heat.solve(q), q))
    scan = fc.Tomography(basis, parameters=fc.FullSpace(basis), angles=[0.0, 45.0], bins=8)
    with pytest.raises(fc.UncertifiedError, match="state equation"):
        fc.dual_norm(scan, fc.Candidate(None, q))


def test_wrong_input_is_refused():
    problem = a_problem("tri P1", levels=2)
    good = noisy(problem)
    nan = fc.Candidate(np.where(np.arange(problem.basis.N) == 3, np.nan, good.state), good.parameter)
    for candidate, options, word in (
        (good, {"method": "Riesz"}, "method is 'Riesz'; expected one of 'equilibrated'"),
        (good, {"norm": "l2"}, "norm is 'l2'"),
        (good, {"steps": -1}, "steps is"),
        (good, {"steps": "many"}, "steps is"),
        (nan, {}, "NaN or infinite"),
        (fc.Candidate(good.state[1:], good.parameter), {}, "shape"),
        (good.state, {}, r"expected a femcert\.Candidate"),
    ):
        with pytest.raises(fc.InputError, match=word):
            fc.dual_norm(problem, candidate, **options)
    with pytest.raises(fc.InputError, match="problem is a"):
        fc.dual_norm(good, problem)


def match(old, new):
    distance = np.linalg.norm(old[:, :, None] - new[:, None, :], axis=0)
    assert distance.min(axis=0).max() < 1e-9
    return distance.argmin(axis=0)


def folded(name):
    mesh = CLASSES[ELEMENTS[name][0]]().refined(2)
    p = mesh.p.copy()
    p[:, mesh.interior_nodes()[0]] += 0.9
    return replace(mesh, doflocs=p)


@pytest.mark.parametrize("norm", ["energy", "h1"])
@pytest.mark.parametrize("name", PLANE)
def test_a_mesh_that_folds_over_itself_gets_no_bound(name, norm):
    problem = any_source(basis_on(name, folded(name)))
    with pytest.raises(fc.FemcertError, match=r"fold|convex"):
        fc.dual_norm(problem, noisy(problem), norm=norm)


@pytest.mark.parametrize("name", PLANE)
def test_two_domains_that_touch_in_a_vertex_add_up(name):
    one = CLASSES[ELEMENTS[name][0]]().refined(2)
    two = one.translated((1.0, 1.0)).scaled((1.3, 1.0)).translated((-0.3, 0.0))
    both = basis_on(name, one + two)
    assert both.mesh.nvertices == 2 * one.nvertices - 1
    candidate = noisy(any_source(both), seed=4)
    parts = []
    for half in (one, two):
        basis = basis_on(name, half)
        here = match(both.doflocs, basis.doflocs)
        part = fc.Candidate(candidate.state[here], candidate.parameter[here])
        parts.append(fc.dual_norm(any_source(basis), part))
    whole = fc.dual_norm(any_source(both), candidate)
    assert whole.upper.value == pytest.approx(np.hypot(*(p.upper.value for p in parts)), rel=3e-3)
    assert whole.lower.value == pytest.approx(np.hypot(*(p.lower.value for p in parts)), rel=3e-3)
