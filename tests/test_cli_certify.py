"""The command ``femcert certify``: what it writes, and what it says of case files that are wrong."""

import csv
import hashlib
import html
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import meshio
import numpy as np
import pytest
from skfem import MeshTri

import femcert as fc
from femcert.cli import main

ROOT = Path(__file__).parents[1]
FILES = ["fields.vtu", "report.html", "selection.json", "summary.csv"]
# Fields and page take most of the time.
FEW = ['files = ["selection.json", "summary.csv", "fields.vtu", "report.html"]', 'files = ["selection.json"]']


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    folder = tmp_path_factory.mktemp("example") / "case"
    assert main(["certify", "--example", str(folder), "--quiet"]) == 0
    return folder


@pytest.fixture
def case(example, tmp_path):
    """A copy of the example that writes its decision only."""
    folder = tmp_path / "case"
    shutil.copytree(example, folder)
    path = folder / "case.toml"
    path.write_text(path.read_text(encoding="utf-8").replace(*FEW), encoding="utf-8")
    return path


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_the_example_runs_as_it_is(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert sorted(path.name for path in example.iterdir()) == ["candidate.vtu", "case.toml", "data.csv", "mesh.msh"]
    assert main(["certify", str(example / "case.toml")]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith("learned candidate accepted")
    out = tmp_path / "certificate"
    assert sorted(path.name for path in out.iterdir()) == FILES
    selection = fc.Selection.load(out / "selection.json")
    assert selection.accepted
    assert selection.learned.name == "network"
    page = html.unescape((out / "report.html").read_text(encoding="utf-8"))
    assert selection.reason in page
    assert "baseline" in page
    assert "certificates" in page  # among the timings
    for name in ("case.toml", "mesh.msh", "data.csv", "candidate.vtu"):
        assert f"{name}, SHA-256 {hashlib.sha256((example / name).read_bytes()).hexdigest()}" in page
    noise = "Gaussian noise with the given deviations stays below it with probability 0.95"
    assert noise in page
    assert f"noise level {selection.baseline.noise_level:.4g}" in page
    fields = meshio.read(out / "fields.vtu")
    assert len(fields.points) == 861
    with (out / "summary.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    radius = {row["candidate"]: float(row["value"]) for row in rows if row["quantity"] == "radius"}
    assert radius == {"baseline": selection.baseline.radius.value, "learned": selection.learned.radius.value}
    assert {row["selected"] for row in rows if row["candidate"] == "learned"} == {"yes"}
    assert {row["quantity"] for row in rows} >= {"data", "pde", "bc", "optimality", "admissibility", "noise level"}
    assert {row["source"] for row in rows if row["quantity"] == "noise level"} == {noise}


def test_verbose_says_what_takes_how_long(case, tmp_path, capsys):
    assert main(["certify", str(case), "--quiet", "--verbose", "--out", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().err.splitlines()
    names = [line.partition(":")[0] for line in lines]
    assert names[:3] == ["mesh", "problem (1,600 elements)", "candidate"]
    assert {"baseline", "certificates", "learned candidate"} <= set(names)
    assert all(line.endswith(" s") for line in lines)
    assert main(["certify", str(case), "--quiet", "-vv", "--out", str(tmp_path / "out")]) == 0
    assert "  factorization (operator of the state equation" in capsys.readouterr().err
    # And quiet again afterwards.
    assert main(["certify", str(case), "--quiet", "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err == ""


def test_a_candidate_that_is_worse_is_rejected_with_success(case, tmp_path, capsys):
    raw = meshio.read(case.parent / "candidate.vtu")
    raw.point_data = {name: 1.5 * values for name, values in raw.point_data.items()}
    raw.write(case.parent / "candidate.vtu")
    assert main(["certify", str(case), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith("learned candidate rejected, baseline kept")
    assert json.loads((tmp_path / "out/selection.json").read_text())["accepted"] is False


def test_the_case_of_the_faulted_layers(tmp_path, capsys):
    path = ROOT / "demos" / "cases" / "fault.toml"
    assert main(["certify", str(path), "--out", str(tmp_path)]) == 0
    assert "learned candidate accepted" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES


def test_the_data_of_the_faulted_layers_are_what_the_script_makes(tmp_path):
    script = ROOT / "demos" / "cases" / "make_fault.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, timeout=120)
    shipped, made = (np.loadtxt(d / "fault_data.csv", delimiter=",", skiprows=1) for d in (script.parent, tmp_path))
    np.testing.assert_allclose(made, shipped, rtol=1e-6)
    shipped, made = (meshio.read(d / "fault_candidate.vtu") for d in (script.parent, tmp_path))
    for name, values in shipped.point_data.items():
        np.testing.assert_allclose(made.point_data[name], values, rtol=1e-6, atol=1e-6 * np.abs(values).max())


GMSH_CASE = """
[mesh]
file = "made.msh"
[problem]
kind = "elliptic-source"
conductivity = { west = 1.0, middle = "0.5 + 0.1*y", east = 2.0 }
[boundary]
dirichlet = { left = 0.0 }
neumann = { right = "0.1*y" }
robin = { rest = [1.0, 0.0] }
[class]
kind = "regions"
[sensors]
kind = "averages"
radius = 0.05
[data]
file = "measured.csv"
confidence = 0.95
[candidate]
file = "network.vtu"
parameter = "q"
[rule]
kind = "exact"
"""


def gmsh_mesh(path):
    gmsh = pytest.importorskip("gmsh", exc_type=ImportError)
    gmsh.initialize(interruptible=False)
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        parts = [gmsh.model.occ.addRectangle(x, 0.0, 0.0, 0.5, 1.0) for x in (0.0, 0.5, 1.0)]
        gmsh.model.occ.fragment([(2, parts[0])], [(2, part) for part in parts[1:]])
        gmsh.model.occ.synchronize()
        for name, part in zip(("west", "middle", "east"), parts, strict=True):
            gmsh.model.addPhysicalGroup(2, [part], name=name)
        edges = {"left": [], "right": [], "rest": []}
        for _, edge in gmsh.model.getEntities(1):
            x, y, _ = gmsh.model.occ.getCenterOfMass(1, edge)
            if y in (0.0, 1.0) or x in (0.0, 1.5):
                edges["left" if x < 1e-9 else "right" if x > 1.5 - 1e-9 else "rest"].append(edge)
        for name, members in edges.items():
            gmsh.model.addPhysicalGroup(1, members, name=name)
        gmsh.option.setNumber("Mesh.MeshSizeMax", 0.1)
        gmsh.model.mesh.generate(2)
        gmsh.write(str(path))
    finally:
        gmsh.finalize()


def test_from_a_mesh_by_gmsh_to_a_report(tmp_path, capsys):
    """Three subdomains, three kinds of boundary conditions, a candidate as VTU on a mesh of its own."""
    gmsh_mesh(tmp_path / "made.msh")
    (tmp_path / "case.toml").write_text(GMSH_CASE)
    grid = [(x, y) for x in (0.15, 0.4, 0.65, 0.9, 1.15, 1.4) for y in (0.25, 0.75)]
    rows = "\n".join(f"{x},{y},{0.1 * x:.6f},0.01" for x, y in grid)
    (tmp_path / "measured.csv").write_text("x,y,value,std\n" + rows + "\n")
    own = MeshTri.init_tensor(np.linspace(0.0, 1.5, 31), np.linspace(0.0, 1.0, 11))
    flat = np.column_stack([own.p.T, np.zeros(own.nvertices)])
    meshio.Mesh(flat, {"triangle": own.t.T}, point_data={"q": 0.2 * own.p[0]}).write(tmp_path / "network.vtu")
    assert main(["certify", str(tmp_path / "case.toml"), "--out", str(tmp_path / "out")]) == 0
    assert "learned candidate" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES


def sub(old, new):
    return lambda case: change(case, old, new)


def in_file(name, old, new):
    return lambda case: change(case.parent / name, old, new)


def both(first, second):
    def spoil(case):
        first(case)
        second(case)

    return spoil


def spell(case, write):
    path = case.parent / "data.csv"
    path.write_text(write(path.read_text(encoding="utf-8")), encoding="utf-8")


DATA_KEY = 'file = "data.csv"'
MISTAKES = {
    "not TOML": (sub("[mesh]", "[mesh"), "is not valid TOML"),
    "unknown key": (sub("degree = 1", "degre = 1"), "unknown key 'problem.degre'; .* did you mean 'degree'?"),
    "weight and choice": (sub('choose = "discrepancy"', 'choose = "gcv"\nweight = 1.0'), "baseline: give either"),
    "unknown subdomain": (sub("middle =", "midle ="), "problem.conductivity: region 'midle' .* mean 'middle'?"),
    "unknown boundary": (sub("ground =", "grund ="), "boundary.dirichlet.grund: .* did you mean 'ground'?"),
    "boundary twice": (sub("ground = 0.0", "ground = 0.0\nsides = 0.0"), "problem: boundary conditions .*sides"),
    "conductivity that is negative": (sub("top = 1.0", "top = -1.0"), "problem.conductivity takes the value -1"),
    "functions that are dependent": (
        both(sub("modes = 8", 'functions = ["1", "x", "2*x + 3"]'), sub('kind = "cosine"', 'kind = "functions"')),
        "class.functions: the columns .* linearly dependent",
    ),
    "nothing of the noise": (in_file("data.csv", ",deviation", ",remark"), "nothing is said of the noise"),
    "no data": (sub(DATA_KEY, ""), "data.file and data.values are both missing"),
    "data that are no numbers": (in_file("data.csv", "0.15,0.15,", "0.15,0.15,n/a,"), "data.csv, line 2,"),
    "data with decimal commas": (
        lambda case: spell(case, lambda text: text.replace(",", ";").replace(".", ",")),
        "line 2: x is '0,15'; expected a finite number, with a decimal point",
    ),
    "sensor outside": (in_file("data.csv", "\n0.15,0.15", "\n5.0,0.15"), "sensors: sensor 0 at .* outside the mesh"),
    "mesh file missing": (sub('"mesh.msh"', '"mush.msh"'), "mesh.file: .*mush.msh.*no such file"),
    "unknown field": (sub('parameter = "source"', 'parameter = "sauce"'), "candidate.file: .*'sauce'"),
    "rule that contradicts itself": (
        sub('kind = "exact" ', 'kind = "operational"\npde = "certified"'), "rule: pde='certified' goes with",
    ),
    "times without heat": (
        both(sub("confidence = 0.95", "noise_level = 1"), in_file("data.csv", "deviation", "time")),
        "data.file has a column of times; a problem of kind 'elliptic-source' has none",
    ),
    "heat without times": (
        both(lambda case: without_a_state(case, "heat-initial"), sub("[class]", "[boundary]\n[class]")),
        "problem.times is missing",
    ),
    "covariance of another size": (
        both(in_file("data.csv", "deviation", "remark"), sub("[baseline]", "covariance = [[1]]\n[baseline]")),
        "data.covariance has shape",
    ),
}  # fmt: skip


def without_a_state(case, kind="tomography", more=""):
    """Make it a problem of another kind, without coefficients and boundary conditions."""
    text = case.read_text(encoding="utf-8")
    begin, end = text.index("[problem]"), text.index("[class]")
    case.write_text(f'{text[:begin]}[problem]\nkind = "{kind}"\n{more}\n{text[end:]}', encoding="utf-8")


@pytest.mark.parametrize(("spoil", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_said_in_one_line_and_nothing_is_written(case, tmp_path, capfd, spoil, words):
    spoil(case)
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.html").write_text("old")
    assert main(["certify", str(case), "--out", str(out)]) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("femcert certify: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    assert re.search(words, captured.err), captured.err
    assert [(path.name, path.read_text()) for path in out.iterdir()] == [("report.html", "old")]


def undecided(case, out, capsys):
    """The selection of a run that ends undecided, and what was printed."""
    assert main(["certify", str(case), "--out", str(out)]) == 3
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith("undecided, baseline kept: ")
    assert "rejected" not in captured.out
    found = fc.Selection.load(out / "selection.json")
    assert found.status == json.loads((out / "selection.json").read_text())["status"] == "undecided"
    assert found.reason in captured.out
    return found


def test_more_modes_than_sensors_is_undecided(case, tmp_path, capsys):
    change(case, "modes = 8", "modes = 80")
    assert "80" in undecided(case, tmp_path / "out", capsys).reason


def test_a_rule_that_cannot_be_applied_has_a_page(case, tmp_path, capsys):
    change(case, FEW[1], FEW[0])
    change(case, 'kind = "exact"', 'kind = "guaranteed"')
    change(case, "modes = 8", "modes = 24")
    found = undecided(case, tmp_path / "out", capsys)
    assert "cannot be applied" in found.reason
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    page = html.unescape((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert "ndecided" in page
    assert "ejected" not in page
    assert found.reason in page


def test_a_mark_of_byte_order_is_no_mistake(case, tmp_path):
    case.write_bytes(b"\xef\xbb\xbf" + case.read_bytes())
    assert main(["certify", str(case), "--quiet", "--out", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize("arguments", [[], ["case.toml", "--example", "here"]])
def test_a_case_or_an_example(arguments, capsys):
    assert main(["certify", *arguments]) == 2
    assert "expected either a CASE.toml or --example DIR" in capsys.readouterr().err


def test_an_example_needs_a_place_of_its_own(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name, word in (("mine", "is not empty"), ("file", "is a file"), ("file/below", "cannot write to")):
        assert main(["certify", "--example", str(tmp_path / name)]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert word in error
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "mine", "notes.txt"]


def test_an_unsolvable_problem_fails_in_one_line(case, tmp_path, capsys):
    change(case, "ground = 0.0", "")
    change(case, "surface = [0.5,", "surface = [0.0,")
    assert main(["certify", str(case), "--out", str(tmp_path / "out")]) == 3
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "singular" in error
    assert [path.name for path in tmp_path.iterdir()] == ["case"]
