"""The command ``femcert refine``."""

import csv

import pytest
from cli_helpers import leaves

from femcert.cli import main


@pytest.fixture
def small(tmp_path):
    """A case on a mesh of two dozen triangles."""
    from skfem import MeshTri

    mesh = MeshTri.init_lshaped().refined(1).with_boundaries({"right": lambda x: x[0] == 1.0})
    mesh.save(str(tmp_path / "mesh.vtk"))
    path = tmp_path / "case.toml"
    problem = '[problem]\nkind = "elliptic-source"\nsource = 1.0\n'
    path.write_text(f'[mesh]\nfile = "mesh.vtk"\n{problem}[study]\nlevels = 3\n')
    return path


def rows(folder):
    with (folder / "study.csv").open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_the_case_is_no_place_for_an_output(small, capsys):
    case = small.rename(small.with_name("report.html"))
    kept = case.read_text()
    assert main(["refine", str(case), "--out", str(case.parent)]) == 2
    assert "report.html: it is an input of this run" in capsys.readouterr().err
    assert case.read_text() == kept


def test_refine_writes_its_three_files(small, tmp_path, capsys):
    out = tmp_path / "new" / "out"
    assert main(["refine", str(small), "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert "rates against dofs" in captured.out
    assert f"report: {out / 'report.html'}" in captured.out
    assert captured.err == ""
    assert sorted(path.name for path in out.iterdir()) == ["report.html", "study.csv", "study.png"]
    found = rows(out)
    assert [row["elements"] for row in found] == ["24", "96", "384"]
    assert all(float(row["lower"]) <= float(row["upper"]) for row in found)
    assert "Uniform refinement" in (out / "report.html").read_text(encoding="utf-8")


def test_options_go_before_the_file(small, tmp_path, capfd):
    assert main(["refine", str(small), "--levels", "2", "--adaptive", "--quiet", "--out", str(tmp_path / "out")]) == 0
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
    found = rows(tmp_path / "out")
    assert len(found) == 2
    assert int(found[1]["elements"]) < 96
    assert "Adaptive refinement" in (tmp_path / "out/report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (("source =", "sorce ="), "did you mean 'source'"),
        (("mesh.vtk", "other.vtk"), "no such file"),
        (("levels = 3", "levels = 0"), "study.levels"),
        (("levels = 3", "most_dofs = 3"), "level 1: it already has"),
        (("levels = 3", 'norm = "l7"'), "l7"),
        (("[mesh]", "mesh"), "TOML"),
    ],
)
def test_bad_cases_end_in_one_line(small, tmp_path, capsys, change, word):
    small.write_text(small.read_text().replace(*change))
    assert main(["refine", str(small), "--out", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("femcert refine: ")
    assert word in captured.err
    assert captured.out == ""
    assert not (tmp_path / "out").exists()


def test_a_problem_without_a_solution_fails(small, tmp_path, capsys):
    # Natural conditions everywhere: the state is fixed up to a constant only.
    small.write_text(small.read_text() + "[boundary.dirichlet]\n")
    assert main(["refine", str(small), "--out", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "level 1" in error


@pytest.mark.parametrize("options", [["--levels", "0"], ["--levels", "x"], ["--out", ""], ["--nonsense"]])
def test_bad_options(small, options, capsys):
    assert leaves("refine", str(small), *options) == 2
    assert capsys.readouterr().err.count("\n") == 1
