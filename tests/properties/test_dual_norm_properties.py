"""A fixed pair of functions on finer and finer meshes: its dual norm stays, the bounds close in."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posed import MODES, POINTS, mesh_of
from skfem import Basis
from zoo import ELEMENTS, STRAIGHT

import femcert as fc

ROUNDING = 1e-9


def refined_problems(name, levels, **options):
    """The same problem on nested meshes, with maps of dof vectors to the next mesh."""
    mesh = mesh_of(name, 2)
    problems = []
    for _ in range(levels):
        basis = Basis(mesh, ELEMENTS[name][1]())
        space = fc.FunctionSpace(basis, MODES[:2])
        sensors = fc.AverageSensors(basis, POINTS[mesh.dim()], radius=0.08)
        problems.append(fc.EllipticSource(basis, parameters=space, sensors=sensors, **options))
        mesh = mesh.refined()
    return problems


def moved_to(coarse, fine, values):
    """The same finite-element function on a refined mesh."""
    return coarse.probes(fine.doflocs) @ values


@pytest.mark.parametrize("method", ["enriched", "riesz", "equilibrated"])
@pytest.mark.parametrize("name", STRAIGHT)
@settings(deadline=None, max_examples=2, derandomize=True)
@given(seed=st.integers(0, 1000), reaction=st.sampled_from([0.0, 7.0]), norm=st.sampled_from(["energy", "h1"]))
def test_refining_never_decreases_a_lower_bound_nor_crosses_an_upper_one(name, method, seed, reaction, norm):
    problems = refined_problems(name, 3, reaction=reaction)
    rng = np.random.default_rng(seed)
    first = problems[0].basis
    u, q = rng.standard_normal((2, first.N))
    u[problems[0].boundary.prescribed] = 0.0
    lower, upper = [], []
    for problem in problems:
        pair = [moved_to(first, problem.basis, f) for f in (u, q)]
        found = fc.dual_norm(problem, fc.Candidate(*pair), method, norm=norm)
        lower.append(found.lower.value)
        if found.upper is not None:
            upper.append(found.upper.value)
        assert found.lower.side == "lower"
    assert lower[0] > 0.0
    if method != "equilibrated":
        assert all(after >= before * (1.0 - ROUNDING) for before, after in pairwise(lower))
    if upper:
        # All of them bound the same number.
        assert max(lower) <= min(upper)


@pytest.mark.parametrize("name", ["line P1", "tri P1", "quad Q1"])
@settings(deadline=None, max_examples=3, derandomize=True)
@given(seed=st.integers(0, 1000), s=st.floats(-5.0, 5.0).map(lambda power: 10.0**power))
def test_a_residual_times_s_has_bounds_times_s(name, seed, s):
    problem = refined_problems(name, 1)[0]
    u, q = np.random.default_rng(seed).standard_normal((2, problem.basis.N))
    u[problem.boundary.prescribed] = 0.0
    one, other = (fc.dual_norm(problem, fc.Candidate(t * u, t * q)) for t in (1.0, s))
    assert other.upper.value == pytest.approx(s * one.upper.value, rel=1e-7)
    assert other.lower.value == pytest.approx(s * one.lower.value, rel=1e-7)


@pytest.mark.parametrize("name", ["line P2", "tri P1", "quad Q2"])
@settings(deadline=None, max_examples=3, derandomize=True)
@given(seed=st.integers(0, 1000))
def test_the_triangle_inequality(name, seed):
    problem = refined_problems(name, 1)[0]
    u, v, q, p = np.random.default_rng(seed).standard_normal((4, problem.basis.N))
    for state in (u, v):
        state[problem.boundary.prescribed] = 0.0
    first, second, both = (fc.dual_norm(problem, fc.Candidate(*pair)) for pair in ((u, q), (v, p), (u + v, q + p)))
    assert both.lower.value <= first.upper.value + second.upper.value
    assert both.upper.value >= abs(first.lower.value - second.upper.value) or first.lower.value < second.upper.value
