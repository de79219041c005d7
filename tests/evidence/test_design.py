"""Lengths before any data: those of the evidence, over noise levels and sensors."""

from __future__ import annotations

import csv
import json
from itertools import pairwise

import numpy as np
import pytest
from evidence_helpers import data, matrix_problem
from numpy.testing import assert_allclose
from zoo import l_shape, source

import femcert as fc
from femcert.linalg import factorization_count

# Two ways of scaling the same numbers.
CLOSE = 1e-9


def on_l_shape(space, sensors=12):
    return source(l_shape(), parameters=space, sensors=sensors)


def functionals(basis):
    return [fc.Mean(basis), fc.Mean(basis, lambda x: x[0] < 0.0, name="west")]


def part_of(problem, sensors):
    """The same problem with some of its sensors."""
    matrix = problem.sensors.matrix[sensors]
    return fc.EllipticSource(problem.basis, parameters=problem.parameters, sensors=fc.MatrixSensors(matrix))


CLASSES = {
    "ball": lambda b: fc.FullSpace(b).within_ball(1.5, norm="h1", length=0.4),
    "seminorm": lambda b: fc.FullSpace(b).within_ball(1.5, norm="h1-seminorm"),
    "span with remainder": lambda b: fc.CosineSpace(b, 3).with_remainder(0.2),
    "ball and remainder": lambda b: fc.CosineSpace(b, 5).within_ball(2.0, norm="h1").with_remainder(0.1),
}


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("name", CLASSES)
def test_lengths_are_those_of_the_evidence(name, simultaneous):
    problem = on_l_shape(CLASSES[name])
    asked, order = functionals(problem.basis), np.random.default_rng(0).permutation(12)
    levels, counts = (1e-3, 1e-2), (6, 12)
    found = fc.design(problem, asked, std=levels, counts=counts, order=order, simultaneous=simultaneous)
    for i, std in enumerate(levels):
        for j, n in enumerate(counts):
            part, y = part_of(problem, order[:n]), np.random.default_rng(n).standard_normal(n)
            table = fc.evidence(part, data(part, y, std)).table(asked, simultaneous=simultaneous)
            assert_allclose(found.half_lengths[i, j], [row.half_length for row in table], rtol=CLOSE)
            assert_allclose(found.biases[i, j], [row.bias for row in table], rtol=1e-4)
            limits = [np.nan if row.limit is None else row.limit.value for row in table]
            assert_allclose(found.limits[i, j], limits, rtol=CLOSE)
    assert found.confidence == table.confidence


def test_sensors_of_different_quality_and_another_confidence():
    problem = on_l_shape(CLASSES["ball"])
    asked, std = functionals(problem.basis), np.geomspace(1e-3, 1e-1, 12)
    found = fc.design(problem, asked, std=[std, 2.0 * std], confidence=0.8)
    table = fc.evidence(problem, data(problem, np.zeros(12), 2.0 * std, confidence=0.8)).table(asked)
    # Rounding of readings is counted for the best of the sensors instead of each.
    assert_allclose(found.half_lengths[1, -1], [row.half_length for row in table], rtol=1e-7)
    assert found.std[1] == pytest.approx(2.0 * np.sqrt(np.mean(std**2)))
    assert found.confidence == pytest.approx(0.8)


def test_a_span_needs_as_many_sensors_as_it_has_directions():
    problem = on_l_shape(lambda b: fc.CosineSpace(b, 4))
    found = fc.design(problem, [fc.Mean(problem.basis)], std=0.01, counts=[3, 4, 12], order="greedy")
    assert np.isinf(found.half_lengths[0, 0, 0])
    assert np.all(np.isfinite(found.half_lengths[0, 1:]))
    assert found.needed(1e6) == 4
    assert found.records()[0]["half_length"] is None
    assert "inf" in str(found)


@pytest.mark.parametrize("seed", range(4))
def test_more_sensors_and_less_noise_never_make_an_interval_longer(seed):
    problem = matrix_problem(seed, m=9)
    asked = [np.random.default_rng(seed).standard_normal(15) for _ in range(2)]
    found = fc.design(problem, asked, std=[0.3, 0.1, 0.01], counts=range(1, 10), order="greedy")
    assert np.all(np.diff(found.half_lengths, axis=1) <= CLOSE * found.half_lengths[:, 1:])
    assert np.all(np.diff(found.half_lengths, axis=0) <= 0.0)
    assert np.all(found.limits <= found.half_lengths)
    for wanted in np.quantile(found.half_lengths, [0.0, 0.2, 0.5, 0.9, 1.0]):
        for i, std in enumerate(found.std):
            enough = np.flatnonzero(np.all(found.half_lengths[i] <= wanted, axis=1))
            assert found.needed(wanted, std=std) == (int(enough[0]) + 1 if enough.size else None)


def test_the_greedy_order_takes_the_sensor_that_lowers_the_mean_square_error_most():
    problem, std = matrix_problem(1, m=6), 0.2
    psi = np.random.default_rng(1).standard_normal(15)
    found = fc.design(problem, [psi], std=std, order="greedy")
    T, ball = problem.forward_matrix() / std, problem.parameters.ball
    prior = np.linalg.inv(problem.parameters.ball_form.toarray()) * ball.radius**2

    def error(sensors):
        F = T[list(sensors)]
        gain = np.linalg.solve(F @ prior @ F.T + np.eye(len(F)), F @ prior @ psi)
        return psi @ prior @ psi - psi @ prior @ F.T @ gain

    taken: list[int] = []
    for best in found.order:
        rest = [i for i in range(6) if i not in taken]
        assert error([*taken, best]) <= min(error([*taken, i]) for i in rest) * (1.0 + 1e-9)
        taken.append(int(best))
    errors = [error(found.order[:n]) for n in range(1, 7)]
    assert all(b <= a for a, b in pairwise(errors))


def test_rows_of_the_table_solve_nothing():
    problem = on_l_shape(CLASSES["ball"])
    asked = functionals(problem.basis)
    fc.design(problem, asked, std=0.01, counts=[12])
    before = factorization_count()
    many = fc.design(problem, asked, std=np.geomspace(1e-4, 1.0, 9), counts=range(1, 13), order="greedy")
    # The form of the ball, and nothing for 108 rows and the question.
    assert factorization_count() - before <= 1
    assert many.needed(0.5) is not None
    assert factorization_count() - before <= 1


def test_bounds_leave_half_of_the_level():
    # The data can only make the interval with bounds shorter.
    problem = on_l_shape(lambda b: CLASSES["ball"](b).within_bounds(0.0, None))
    asked = functionals(problem.basis)
    found = fc.design(problem, asked, std=0.01)
    y = problem.observe(problem.solve(np.full(problem.basis.N, 0.3)))
    table = fc.evidence(problem, data(problem, y, 0.01)).table(asked)
    assert all(row.half_length <= h * (1 + CLOSE) for row, h in zip(table, found.half_lengths[0, -1], strict=True))
    assert np.all(np.isnan(found.limits))


def test_tables(tmp_path):
    problem = on_l_shape(CLASSES["ball"])
    found = fc.design(problem, functionals(problem.basis), std=[1e-3, 1e-2], counts=[4, 12])
    assert len(str(found).splitlines()) == 1 + 8 + 1
    assert "west" in str(found)
    assert "H1 norm" in str(found)
    assert "12 sensors" in repr(found)
    assert found._repr_html_().count("<tr>") == 9
    for ending in ("csv", "json", "html"):
        found.save(tmp_path / f"design.{ending}")
    rows = list(csv.DictReader((tmp_path / "design.csv").read_text().splitlines()))
    assert json.loads((tmp_path / "design.json").read_text()) == found.records()
    assert [float(row["half_length"]) for row in rows] == [row["half_length"] for row in found.records()]
    assert [row["sensors"] for row in rows[:4]] == ["4", "12", "4", "12"]
    with pytest.raises(fc.InputError, match=r"\.txt"):
        found.save(tmp_path / "design.txt")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"std": 0.0}, "positive"),
        ({"std": np.ones((2, 3))}, "shape"),
        ({"std": 0.1, "counts": [8]}, "counts"),
        ({"std": 0.1, "counts": [0]}, "counts"),
        ({"std": 0.1, "order": "best"}, "order"),
        ({"std": 0.1, "order": [0, 0, 1, 2, 3, 4, 5]}, "order"),
        ({"std": 0.1, "confidence": 1.0}, "confidence"),
    ],
)
def test_refused(options, said):
    with pytest.raises(fc.InputError, match=said):
        fc.design(matrix_problem(0), [np.ones(15)], **options)


def test_refused_questions():
    found = fc.design(matrix_problem(0), [np.ones(15)], std=[0.1, 0.2])
    with pytest.raises(fc.InputError, match=r"expected one of 0\.1, 0\.2"):
        found.needed(1.0, std=0.3)
    with pytest.raises(fc.InputError, match="half_length"):
        found.needed([1.0, 2.0])


def test_the_best_dimension_has_the_shortest_interval():
    basis = l_shape()

    def build(k):
        return source(basis, parameters=lambda b: fc.CosineSpace(b, k).with_remainder(1.0, norm="h1"), sensors=12)

    west = functionals(basis)[1:]
    lengths = {}
    for k in range(1, 9):
        problem = build(k)
        table = fc.evidence(problem, data(problem, np.zeros(12), 0.003)).table(west)
        lengths[k] = table[0].half_length
    best = fc.best_dimension(build, range(1, 9), west, std=0.003)
    assert lengths[best] == min(lengths.values())
    # More noise asks for fewer columns.
    assert fc.best_dimension(build, range(1, 9), west, std=1.0) < best
    with pytest.raises(fc.InputError, match="empty"):
        fc.best_dimension(build, [], west, std=0.1)
    with pytest.raises(fc.InputError, match="2 noise levels"):
        fc.best_dimension(build, [2], west, std=[0.1, 0.2])


def test_a_prediction_counts_the_noise_of_its_reading():
    problem = matrix_problem(0)
    asked = [fc.Prediction(np.ones(15), std=0.5), np.ones(15)]
    found = fc.design(problem, asked, std=0.05, counts=[7])
    table = fc.evidence(problem, data(problem, np.zeros(7), 0.05)).table(asked)
    assert_allclose(found.half_lengths[0, 0], [row.half_length for row in table], rtol=CLOSE)
    assert_allclose(found.deviations[0, 0], [row.deviation for row in table], rtol=1e-4)
    assert np.isnan(found.limits[0, 0, 0])
    with pytest.raises(fc.InputError, match="simultaneous"):
        fc.design(problem, asked, std=0.05, simultaneous=True)
