"""A new case runs as it is written, for meshes with and without names, and what does not fit is said."""

from pathlib import Path

import numpy as np
import pytest
from skfem import Basis, ElementTriP1, MeshTri

import femcert as fc
from femcert.cli import main


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A mesh and a table of measurements in the working directory."""
    monkeypatch.chdir(tmp_path)
    mesh = MeshTri().refined(3)
    mesh.save("plain.vtk")
    basis = Basis(mesh, ElementTriP1())
    x = np.linspace(0.2, 0.8, 4)
    points = np.array([(a, b) for a in x for b in x])
    sensors = fc.PointSensors(basis, points)
    problem = fc.EllipticSource(basis, parameters=fc.FullSpace(basis), sensors=sensors)
    truth = np.exp(-np.sum((basis.doflocs - 0.4) ** 2, axis=0) / 0.1)
    values = problem.observe(problem.solve(truth)) + 1e-3 * np.random.default_rng(0).standard_normal(16)
    np.savetxt("data.csv", np.c_[points, values], delimiter=",", header="x,y,value", comments="")
    np.savetxt("full.csv", np.c_[points, values, np.full(16, 1e-3)], delimiter=",", header="x,y,value,std", comments="")
    np.savez("answer.npz", parameter=truth)
    return tmp_path


def test_it_runs(files, capsys):
    options = ["--data", "data.csv", "--std", "0.001", "--title", "A source"]
    assert main(["new", "case", "--mesh", "plain.vtk", *options]) == 0
    zero, stand_in, run = capsys.readouterr().out.splitlines()
    assert zero.startswith("boundary values: 0 on the whole boundary")
    assert "candidate.npz" in stand_in
    assert run == "run: femcert certify case/case.toml"
    text = (files / "case" / "case.toml").read_text(encoding="utf-8")
    assert text.startswith("# A source\n")
    assert 'file = "../plain.vtk"' in text
    assert "std = 0.001" in text
    # A start is marked as one, and what was given is not.
    assert "radius = 3  # <-" in text
    assert main(["certify", "case/case.toml", "--out", "out", "--quiet"]) == 0
    found = fc.Selection.load(files / "out" / "selection.json")
    assert found.status in ("accepted", "rejected")


def test_what_was_given_is_in_it(files, capsys):
    options = ["--candidate", "answer.npz", "--radius", "2", "--length", "0.3", "--sensor-radius", "0.05"]
    assert main(["new", "other", "--mesh", "plain.vtk", "--data", "full.csv", *options]) == 0
    text = (files / "other" / "case.toml").read_text(encoding="utf-8")
    for line in ('file = "../answer.npz"', "radius = 2\n", "length = 0.3\n", "radius = 0.05", 'kind = "averages"'):
        assert line in text
    assert "std =" not in text
    assert "column 'std' of full.csv" in capsys.readouterr().out


def test_a_field_with_another_name(files, capsys):
    np.savez("named.npz", source=np.load("answer.npz")["parameter"])
    options = ["--mesh", "plain.vtk", "--data", "full.csv", "--candidate", "named.npz"]
    assert main(["new", "good", *options, "--parameter", "source"]) == 0
    assert main(["certify", "good/case.toml", "--out", "out", "--quiet"]) == 0
    capsys.readouterr()
    # What does not fit is written all the same: one line is to be added.
    assert main(["new", "wrong", *options]) == 2
    assert "wrong/case.toml is written, and is to be edited:" in (said := capsys.readouterr().err)
    assert "'source'; expected one called 'parameter'" in said
    assert [path.name for path in (files / "wrong").iterdir()] == ["case.toml"]


def test_a_column_with_another_name(files, capsys):
    Path("heads.csv").write_text("x,y,head\n0.5,0.5,1.0\n", encoding="utf-8")
    assert main(["new", "case", "--mesh", "plain.vtk", "--data", "heads.csv", "--std", "0.1"]) == 2
    message = "expected one called 'value'; rename yours, or name it in the case file under data.columns"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mesh", "plain.vtk", "--data", "data.csv"], "no column"),
        (["--mesh", "none.msh", "--data", "data.csv"], "none.msh"),
        (["--mesh", "plain.vtk", "--data", "none.csv"], "none.csv"),
        (["--mesh", "plain.vtk", "--data", "full.csv", "--radius", "-1"], "radius is -1"),
        (["--mesh", "plain.vtk", "--data", "data.csv", "--std", "0"], "std is 0"),
        (["--data", "data.csv"], "--mesh is missing"),
    ],
)
def test_refused(files, capsys, arguments, message):
    assert main(["new", "case", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (files / "case").exists()


def test_a_directory_that_is_not_empty(files, capsys):
    assert main(["new", ".", "--mesh", "plain.vtk", "--data", "full.csv"]) == 2
    assert "not empty" in capsys.readouterr().err
