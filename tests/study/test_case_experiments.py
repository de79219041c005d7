"""Tables ``[[experiment]]`` of a case: the same as `Experiments` in Python, and messages that name the experiment."""

from pathlib import Path

import numpy as np
import pytest
from skfem import Basis, ElementTriP1

import femcert as fc
from femcert.cli.main import main
from femcert.study.case import read_certify_case

MESH = Path(__file__).parents[2] / "meshes" / "disc.msh"
POINTS = [[[0.1, 0.2], [-0.4, 0.3], [0.5, -0.5]], [[0.0, 0.0], [0.3, 0.6], [-0.6, -0.2], [0.2, -0.7]]]
CONDUCTIVITIES = 1.0, 2.5


def posed():
    """A source seen twice, at two conductivities of the plate."""
    basis = Basis(fc.load_mesh(MESH), ElementTriP1())
    space = fc.EigenmodeSpace(basis, 3)
    problems = [
        fc.EllipticSource(
            basis, parameters=space, sensors=fc.AverageSensors(basis, points, radius=0.1), conductivity=a
        )
        for points, a in zip(POINTS, CONDUCTIVITIES, strict=True)
    ]
    return fc.Experiments(problems, parameters=space)


@pytest.fixture
def case(tmp_path):
    """The case, its two tables of data, the truth as candidate, and what it should be."""
    problem = posed()
    truth = problem.parameters.field([1.0, -0.5, 0.3])
    values = problem.predict(None, truth) + 0.003 * np.random.default_rng(0).standard_normal(7)
    for i, part in enumerate(np.split(values, [3])):
        rows = [f"{x},{y},{float(v)!r},0.003" for (x, y), v in zip(POINTS[i], part, strict=True)]
        (tmp_path / f"data{i}.csv").write_text("\n".join(["x,y,value,std", *rows]), encoding="utf-8")
    np.savez(tmp_path / "candidate.npz", parameter=truth)
    text = f"""
        [mesh]
        file = "{MESH.as_posix()}"
        [problem]
        kind = "elliptic-source"
        [class]
        kind = "eigenmodes"
        modes = 3
        [sensors]
        kind = "averages"
        radius = 0.1
        [data]
        confidence = 0.95
        [[experiment]]
        data = {{ file = "data0.csv" }}
        [[experiment]]
        problem.conductivity = 2.5
        data.file = "data1.csv"
        [candidate]
        file = "candidate.npz"
        [rule]
        kind = "exact"
    """
    path = tmp_path / "case.toml"
    path.write_text(text, encoding="utf-8")
    return path, problem, fc.Data.gaussian(values, std=0.003), truth


def test_experiments_in_a_case(case):
    path, problem, data, truth = case
    found = read_certify_case(path)
    np.testing.assert_allclose(found.problem.forward.matrix, problem.forward.matrix, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(found.data.values, data.values)
    assert found.data.noise_level == pytest.approx(data.noise_level)
    np.testing.assert_allclose(found.data.covariance, data.covariance)
    learned = fc.Candidate(None, truth)
    baseline = fc.Tikhonov(choose="discrepancy")
    expected = fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=fc.ExactRadius())
    selection = found.select()
    assert selection.status == expected.status
    assert selection.learned.radius.value == pytest.approx(expected.learned.radius.value, rel=1e-9)
    assert sorted(found.inputs) == ["candidate.file", "experiment 1: data.file", "experiment 2: data.file", "mesh.file"]


def test_the_command_writes_a_page_with_both(case, tmp_path):
    path, *_ = case
    assert main(["certify", str(path), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<h2>The experiments</h2>" in page
    assert "2: EllipticSource" in page
    assert (tmp_path / "out" / "fields.vtu").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('data.file = "data1.csv"', 'data.file = "missing.csv"', "experiment 2: data.file: .* cannot be read"),
        ("problem.conductivity = 2.5", "problem.conductivty = 2.5", "experiment 2: unknown key 'problem.conductivty'"),
        ("problem.conductivity = 2.5", "problem.degree = 2", "problem.degree differs between the experiments"),
        ("problem.conductivity = 2.5", "rule.kind = 'exact'", "unknown key 'experiment 2.rule'"),
        ('data.file = "data1.csv"', "data.values = [1.0, 2.0]", "experiment 2: data: nothing is said of the noise"),
        ("[[experiment]]", "[experiment]", "is not valid TOML"),
        ('data = { file = "data0.csv" }', "", "experiment 1: data.file and data.values are both missing"),
        ('data.file = "data1.csv"', 'data = { file = "data1.csv", confidence = 0.9 }', "differ in data.confidence"),
    ],
)
def test_cases_that_are_refused(case, old, new, message):
    path, *_ = case
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(fc.InputError, match=message) as caught:
        read_certify_case(path)
    assert "\n" not in str(caught.value)
