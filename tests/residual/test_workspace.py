"""What the bounds of one problem share is kept apart where it differs: by boundary conditions, not by order alone."""

from dataclasses import replace

import numpy as np
import pytest
from plain import any_source
from skfem import Basis, ElementLineP1, ElementTriP1, MeshLine, MeshTri

import femcert as fc
from femcert.residual.elliptic import elliptic_bound
from femcert.residual.energy import state_norm
from femcert.residual.line import line_bound
from femcert.residual.workspace import Workspace

SIDES = {"left": lambda x: x[0] < 1e-9, "right": lambda x: x[0] > 1.0 - 1e-9}
CONDITIONS = {
    "neumann 0": {"neumann": {"right": 0.0}},
    "neumann 5": {"neumann": {"right": 5.0}},
    "robin": {"robin": {"right": (2.0, 1.0)}},
    "robin 1e-6": {"robin": {"right": (1e-6, 0.0)}},
    "dirichlet": {},
}


def problems(kind):
    mesh = MeshLine().refined(3) if kind == "line" else MeshTri().refined(2)
    basis = Basis(mesh.with_boundaries(SIDES), (ElementLineP1 if kind == "line" else ElementTriP1)())
    return {name: any_source(basis, **options) for name, options in CONDITIONS.items()}


@pytest.mark.parametrize("kind", ["line", "tri"])
def test_two_boundary_conditions_share_no_entry(kind):
    made = problems(kind)
    shared = Workspace(made["neumann 0"])
    zero = np.zeros(made["robin"].basis.N)
    for problem in made.values():
        equation = problem.strong(np.ones(problem.basis.N))
        own = Workspace(problem)
        found = []
        for workspace in (shared, own):
            rule = workspace.rule(equation, "energy")
            r = workspace.residual(equation, zero, "energy", rule)
            constants = [workspace.friedrichs(r, rule, "energy", sharp) for sharp in (False, True)]
            free = workspace.enriched(r).free if kind == "tri" else r.traces.essential
            found.append((r.natural, r.traces.coefficient, constants, free))
        (g, alpha, constants, free), (own_g, own_alpha, own_constants, own_free) = found
        np.testing.assert_array_equal(g, own_g)
        np.testing.assert_array_equal(alpha, own_alpha)
        np.testing.assert_array_equal(free, own_free)
        assert constants == own_constants


def test_values_of_one_condition_do_not_enter_the_bounds_of_another():
    made = problems("tri")
    first, second = made["neumann 0"], made["neumann 5"]
    q = np.ones(first.basis.N)
    state = second.solve(q)
    shared, factor = Workspace(first), state_norm(first, "energy").factor
    elliptic_bound(shared, first.strong(q), state, "energy", factor)
    truth = fc.dual_norm(second, fc.Candidate(state, q))
    found = elliptic_bound(shared, second.strong(q), state, "energy", factor)
    assert (found.upper, found.lower) == (truth.upper.value, truth.lower.value)
    assert 1.5 * truth.upper.value < fc.dual_norm(first, fc.Candidate(state, q)).lower.value


def test_on_a_line():
    made = problems("line")
    q = np.ones(made["robin"].basis.N)
    shared = Workspace(made["neumann 0"])
    for problem in made.values():
        state = problem.solve(q)
        # Equal conditions in another object are other conditions to the cache, with the same result.
        twin = replace(problem.strong(q), boundary=replace(problem.boundary))
        for equation in (problem.strong(q), twin):
            bound = line_bound(shared, equation, state, "energy")
            assert bound.upper == pytest.approx(fc.dual_norm(problem, fc.Candidate(state, q)).upper.value, rel=1e-12)
