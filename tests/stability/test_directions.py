"""What the sensors see: orthonormal directions, the near-null space, and a map of resolution."""

from __future__ import annotations

import numpy as np
import pytest
import zoo

import femcert as fc


def problem_with(points, k=12):
    basis = zoo.square(4)
    sensors = fc.PointSensors(basis, points)
    return zoo.source(basis, parameters=(fc.SineSpace, k), sensors=sensors)


def test_directions_are_the_singular_vectors():
    problem = problem_with(np.random.default_rng(0).uniform(0.1, 0.9, (30, 2)))
    found = fc.stability(problem)
    fields = found.directions.fields()
    gram = fields.T @ (problem.parameters.weight @ fields)
    assert np.allclose(gram, np.eye(12), atol=1e-10)
    data = np.column_stack([problem.observe(problem.solve(field)) for field in fields.T])
    assert np.linalg.norm(data, axis=0) == pytest.approx(found.singular_values, rel=1e-8)
    least = found.directions.weakest(2)
    assert abs(least[:, 0] @ (problem.parameters.weight @ found.weakest)) == pytest.approx(1.0)
    assert np.linalg.norm(problem.observe(problem.solve(least[:, 1]))) == pytest.approx(found.singular_values[-2])


def test_the_near_null_space_is_not_seen():
    problem = problem_with(np.random.default_rng(0).uniform(0.1, 0.9, (30, 2)))
    found = fc.stability(problem)
    level = float(found.singular_values[7])
    hidden = found.directions.near_null(level)
    assert hidden.shape[1] == 5
    mixed = hidden @ np.random.default_rng(1).standard_normal(5)
    mixed /= problem.parameters.norm(mixed)
    assert np.linalg.norm(problem.observe(problem.solve(mixed))) <= level * (1.0 + 1e-9)
    assert found.directions.near_null(0.0).shape == (problem.basis.N, 0)


def test_resolution_is_high_where_the_sensors_are():
    rng = np.random.default_rng(2)
    points = np.vstack([rng.uniform(0.02, 0.3, (60, 2)), rng.uniform(0.0, 1.0, (8, 2))])
    basis = zoo.square(4)
    column, row = np.floor(4 * basis.mesh.p[:, basis.mesh.t].mean(axis=1)).astype(int)
    regions = [np.flatnonzero((column // 2 == i) & (row // 2 == j)) for i in range(2) for j in range(2)]
    problem = zoo.source(basis, parameters=fc.RegionSpace(basis, regions), sensors=points)
    found = fc.stability(problem)
    level = float(np.sqrt(found.sigma_max * found.sigma_min))
    resolution = found.directions.resolution(level)
    near, far = resolution[regions[0]].mean(), resolution[regions[-1]].mean()
    assert np.all((resolution >= 0.0) & (resolution <= 1.0))
    assert near > far + 0.2
    assert np.all(found.directions.resolution(1e-3 * found.sigma_min) > 0.99)
    assert np.all(found.directions.resolution(1e3 * found.sigma_max) < 0.01)
