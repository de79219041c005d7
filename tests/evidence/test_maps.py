"""Maps of smoothed values, which hold together; means over parts of the boundary."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from evidence_helpers import data, fewest, noisy
from skfem import Basis, ElementLineP1, MeshLine
from zoo import l_shape, source

import femcert as fc


def problem_of(sensors=24, radius=3.0):
    basis = l_shape()
    return source(basis, parameters=fc.FullSpace(basis).within_ball(radius, norm="h1"), sensors=sensors)


def test_rows_are_those_of_a_table_of_values():
    problem = problem_of()
    found = fc.evidence(problem, data(problem, np.zeros(24), 1e-3))
    drawn = found.map(0.3)
    values = [fc.Value(problem.parameters.basis, point, radius=0.3) for point in drawn.points]
    table = found.table(values)
    assert drawn.points.shape == (len(table), 2)
    np.testing.assert_allclose(drawn.lower, [row.lower.value for row in table], rtol=1e-10)
    np.testing.assert_allclose(drawn.upper, [row.upper.value for row in table], rtol=1e-10)
    assert drawn.confidence == table.confidence
    assert [row.name for row in drawn] == [row.name for row in table]
    together = found.map(0.3, points=drawn.points[:2], simultaneous=True)
    assert together[0].half_length > drawn[0].half_length


def test_signs_are_certain_together():
    """All places at once, in as many of the trials as stated; some are certain of a strong source."""
    problem, std = problem_of(), 1e-3
    x = problem.parameters.basis.doflocs
    truth = np.exp(-((x[0] + 0.5) ** 2 + (x[1] + 0.5) ** 2) / 0.15)
    truth -= 0.7 * np.exp(-((x[0] + 0.5) ** 2 + (x[1] - 0.5) ** 2) / 0.15)
    assert problem.parameters.ball_norm(truth) <= 3.0
    found, right, certain = fc.evidence(problem, data(problem, np.zeros(24), std)), 0, []
    smooth = [fc.Value(problem.parameters.basis, p, radius=0.3).value(problem.parameters, truth)
              for p in found.map(0.3).points]  # fmt: skip
    for trial in range(100):
        drawn = found.with_data(data(problem, noisy(problem, truth, trial, std), std)).map(0.3)
        right += bool(np.all(drawn.lower <= smooth) and np.all(drawn.upper >= smooth))
        certain.append(np.sum(drawn.sign > 0))
        assert np.array_equal(drawn.sign, (drawn.lower > 0.0).astype(int) - (drawn.upper < 0.0))
    assert right >= fewest(100, 0.95)
    assert min(certain) > 0


def test_files(tmp_path):
    problem = problem_of()
    drawn = fc.evidence(problem, data(problem, np.zeros(24), 1e-3)).map(0.5)
    for name in ("map.csv", "map.json", "map.html"):
        drawn.save(tmp_path / name)
    rows = list(csv.DictReader((tmp_path / "map.csv").read_text().splitlines()))
    assert [(float(row["x"]), float(row["y"])) for row in rows] == [tuple(point) for point in drawn.points]
    assert {int(row["sign"]) for row in rows} <= {-1, 0, 1}
    assert json.loads((tmp_path / "map.json").read_text())[0]["upper"] == drawn.upper[0]
    assert "radius 0.5" in repr(drawn)
    assert drawn.estimate.shape == drawn.lower.shape
    assert "<table>" in (tmp_path / "map.html").read_text()


def test_parameters_without_values_are_refused():
    basis = l_shape()
    problem = source(basis, parameters=fc.EigenmodeSpace(basis, 3), sensors=6)
    found = fc.evidence(problem, data(problem, np.zeros(6)))
    with pytest.raises(fc.InputError, match="outside the mesh"):
        found.map(0.2, points=[[0.9, 5.0]])
    matrices = fc.MatrixProblem(operator=np.eye(2), load=np.eye(2), observe=np.eye(2))
    with pytest.raises(fc.InputError, match="a map"):
        fc.evidence(matrices, data(matrices, np.zeros(2))).map(0.1)


def test_a_map_on_a_line():
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, 41)), ElementLineP1())
    problem = source(basis, parameters=fc.FullSpace(basis).within_ball(2.0, norm="h1"), sensors=8)
    drawn = fc.evidence(problem, data(problem, np.zeros(8), 1e-3)).map(0.1)
    assert drawn.points.shape == (11, 1)
    assert set(drawn[0].to_dict()) >= {"x", "sign", "lower"}


@pytest.mark.parametrize("degree", [1, 2])
def test_flux_is_the_mean_of_the_trace(degree):
    basis = l_shape(degree=degree)
    space, x = fc.FullSpace(basis), basis.doflocs
    left = fc.Flux(basis, lambda x: np.isclose(x[0], -1.0), name="left")
    y = basis.mesh.p[1, basis.mesh.facets[:, left.facets]]
    mean = (y.max() + y.min()) / 2.0
    assert left.value(space, 2.0 * x[0] + 3.0 * x[1]) == pytest.approx(-2.0 + 3.0 * mean, rel=1e-12)
    assert fc.Flux(basis, left.facets).value(space, x[1]) == pytest.approx(mean, abs=1e-12)
    assert fc.Flux(basis).value(space, np.ones(basis.N)) == pytest.approx(1.0, rel=1e-12)
    for wrong in (lambda x: x[0] > 9.0, [10**6], lambda x: x, [0.5]):
        with pytest.raises(fc.InputError):
            fc.Flux(basis, wrong)
    with pytest.raises(fc.InputError, match="nowhere"):
        fc.Flux(basis, "nowhere")


def test_an_interval_of_a_flux():
    problem = problem_of()
    basis = problem.parameters.basis
    flux, truth = fc.Flux(basis, lambda x: np.isclose(x[0], -1.0)), np.cos(basis.doflocs[0])
    y = noisy(problem, truth, 0, 1e-3)
    assert fc.evidence(problem, data(problem, y, 1e-3)).interval(flux).contains(flux.value(problem.parameters, truth))
