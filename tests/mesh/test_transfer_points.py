"""Values at scattered points: what is exact, what lies outside of their hull, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from orders import fitted_order, linear, smooth
from zoo import full_problem, unit_basis

import femcert as fc


def cloud(count, seed, dimension=2):
    """Random points of the unit square or interval, its corners among them."""
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]) if dimension == 2 else np.array([[0.0], [1.0]])
    return np.vstack([corners, np.random.default_rng(seed).random((count, dimension))])


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(0, 80),
    name=st.sampled_from(["tri P1", "tri P2", "quad Q1", "line P1", "line P2"]),
)
def test_linear_functions_of_any_points_are_exact(seed, count, name):
    basis = unit_basis(name, 5)
    points = cloud(count, seed, basis.mesh.dim())
    values = linear(points.T)
    candidate = fc.Candidate.from_points(full_problem(basis), points, parameter=values, state=3.0 * values)
    assert np.allclose(candidate.parameter, linear(basis.doflocs), rtol=0.0, atol=1e-10)
    assert np.allclose(candidate.state, 3.0 * linear(basis.doflocs), rtol=0.0, atol=3e-10)
    record = candidate.interpolation
    gaps = np.linalg.norm(basis.doflocs[:, :, None] - points.T[:, None, :], axis=0).min(axis=1)
    assert np.isclose(record.distance, gaps.max(), rtol=1e-12)
    assert max(record.relative.values()) < 1e-10
    assert record.beyond < 1e-9
    assert f"{len(points)} scattered points" in str(record)


def test_points_on_a_grid_converge_at_second_order():
    basis, counts = unit_basis("tri P1", 23), np.array([6, 12, 24, 48])
    problem, errors = full_problem(basis), []
    for n in counts:
        points = np.stack(np.meshgrid(np.linspace(0, 1, n + 1), np.linspace(0, 1, n + 1)), axis=-1).reshape(-1, 2)
        candidate = fc.Candidate.from_points(problem, points, parameter=smooth(points.T))
        errors.append(np.abs(candidate.parameter - smooth(basis.doflocs)).max())
    assert 1.75 < fitted_order(1.0 / counts, errors) < 2.35


@pytest.mark.parametrize("name", ["tri P1", "tri P2", "bent quad Q1", "quad Q2", "line P2"])
def test_the_problems_own_nodes_in_any_order_give_the_values_themselves(name):
    basis = unit_basis(name, 5)
    rng = np.random.default_rng(4)
    values, order = rng.standard_normal(basis.N), rng.permutation(basis.N)
    points = basis.doflocs.T[order]
    candidate = fc.Candidate.from_points(full_problem(basis), points, parameter=values[order], state=values[order])
    assert candidate.interpolation is None
    assert np.array_equal(candidate.parameter, values)
    assert np.array_equal(candidate.state, values)
    again = fc.Candidate.from_points(
        full_problem(basis), np.vstack([points, points[:3]]), parameter=np.r_[values[order], values[order[:3]]]
    )
    assert np.array_equal(again.parameter, values)


def test_dofs_outside_of_the_hull_are_refused_or_filled_and_counted():
    basis = unit_basis("tri P1", 10)
    problem, points = full_problem(basis), 0.1 + 0.8 * cloud(200, 3)
    values = linear(points.T)
    outside = int(((basis.doflocs < 0.1 - 1e-9) | (basis.doflocs > 0.9 + 1e-9)).any(axis=0).sum())
    with pytest.raises(fc.InputError, match=rf"{outside} of 121 dofs lie outside of 204 scattered points, the one at"):
        fc.Candidate.from_points(problem, points, parameter=values)
    candidate = fc.Candidate.from_points(problem, points, parameter=values, tolerance=0.15)
    assert np.allclose(candidate.parameter, linear(np.clip(basis.doflocs, 0.1, 0.9)), rtol=0.0, atol=1e-10)
    record = candidate.interpolation
    assert record.outside == outside
    assert np.isclose(record.beyond, 0.1 * np.sqrt(2.0))
    assert f"{outside} dofs outside, by at most 0.141" in repr(candidate)
    with pytest.raises(fc.InputError, match="4 of 121 dofs lie outside"):
        fc.Candidate.from_points(problem, points, parameter=values, tolerance=0.12)


def test_bad_points_and_values():
    problem = full_problem(unit_basis("tri P1", 4))
    points = cloud(10, 0)
    values, on_line = linear(points.T), np.column_stack([np.linspace(0, 1, 9)] * 2)
    for where, numbers, word in (
        (points.T, values, r"expected \(3 or more, 2\)"),
        (points[:2], values[:2], "points has shape"),
        (points * np.nan, values, "points has 28 NaN"),
        ([["a", "b"]] * 14, values, "points has type"),
        (np.ones((5, 2)), np.ones(5), "1 different places"),
        (on_line, np.ones(9), "lie on a line"),
        (on_line + 1e-15 * points[:9], np.ones(9), "lie on a line|too near to others"),
        (points, values[:-1], "parameter has shape"),
        (np.vstack([points, points[5]]), np.r_[values, 99.0], "different values at points 5 and 14"),
    ):
        with pytest.raises(fc.InputError, match=word):
            fc.Candidate.from_points(problem, where, parameter=numbers)
    line = full_problem(unit_basis("line P1", 4))
    with pytest.raises(fc.InputError, match="points has shape"):
        fc.Candidate.from_points(line, points, parameter=values)
    candidate = fc.Candidate.from_points(line, [0.0, 0.4, 1.0], parameter=[1.0, 1.8, 3.0])
    assert np.allclose(candidate.parameter, [1.0, 1.5, 2.0, 2.5, 3.0])


def test_regions_take_the_value_at_the_centre_of_each_cell():
    basis = unit_basis("tri P1", 4)
    problem = full_problem(basis, fc.RegionSpace(basis, [np.arange(16), np.arange(16, 32)]))
    points = cloud(60, 8)
    centres = basis.mesh.p[:, basis.mesh.t].mean(axis=1)
    candidate = fc.Candidate.from_points(problem, points, parameter=linear(points.T))
    assert np.allclose(candidate.parameter, linear(centres))
    exact = fc.Candidate.from_points(problem, centres.T, parameter=np.arange(32.0))
    assert np.array_equal(exact.parameter, np.arange(32.0))
    assert exact.interpolation is None
