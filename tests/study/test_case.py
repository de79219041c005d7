"""Case files: what they say, and what is wrong with them in one line."""

from pathlib import Path

import numpy as np
import pytest

import femcert as fc
from femcert.mesh.refine import refined
from femcert.study.case import read_case

ROOT = Path(__file__).parents[2]
MESHES = ROOT / "meshes"
PLAIN = """
[mesh]
file = "{mesh}"

[problem]
kind = "elliptic-source"
source = 1.0
"""


def case(tmp_path, text, mesh="disc"):
    path = tmp_path / "case.toml"
    path.write_text(text.replace("{mesh}", (MESHES / f"{mesh}.msh").as_posix()), encoding="utf-8")
    return path


def test_the_shortest_case(tmp_path):
    read = read_case(case(tmp_path, PLAIN))
    assert read.study == {}
    built = read.build()
    problem = built.problem
    assert isinstance(problem, fc.EllipticSource)
    assert problem.basis.mesh is read.mesh
    np.testing.assert_array_equal(built.parameter, np.ones(read.mesh.nelements))
    state = problem.solve(built.parameter)
    assert state.max() == pytest.approx(0.25, rel=0.01)  # (1 - r²) / 4 on the disc
    assert np.all(state[problem.basis.get_dofs("rim").flatten()] == 0.0)


def test_everything_at_once(tmp_path):
    text = PLAIN.replace("source = 1.0", "source = { upper = 1, middle = 2.0, basement = 0 }")
    text += """
    degree = 2
    reaction = 0.5
    conductivity = { upper = 1.0, middle = 0.2, basement = 3.0 }
    [boundary]
    dirichlet = { surface = 1.5 }
    neumann = { bottom = 0.05 }
    robin = { sides = [1, 0.25] }
    [study]
    levels = 3
    adaptive = true
    theta = 0.4
    tolerance = 1e-3
    most_dofs = 5000
    norm = "h1"
    """
    read = read_case(case(tmp_path, text, "fault"))
    assert read.study == {
        "levels": 3, "adaptive": True, "theta": 0.4, "tolerance": 1e-3, "most_dofs": 5000, "norm": "h1",
    }  # fmt: skip
    built = read.build()
    problem, mesh = built.problem, read.mesh
    expected = fc.EllipticSource(
        problem.basis, parameters=problem.parameters, sensors=problem.sensors, reaction=0.5,
        conductivity={"upper": 1.0, "middle": 0.2, "basement": 3.0},
        dirichlet={"surface": 1.5}, neumann={"bottom": 0.05}, robin={"sides": (1.0, 0.25)},
    )  # fmt: skip
    assert abs(problem.operator - expected.operator).max() == 0.0
    np.testing.assert_array_equal(problem.source, expected.source)
    for name, value in (("upper", 1.0), ("middle", 2.0), ("basement", 0.0)):
        assert set(built.parameter[mesh.subdomains[name]]) == {value}
    assert type(problem.basis.elem).__name__ == "ElementTriP2"


def test_the_source_is_the_same_on_a_finer_mesh(tmp_path):
    text = PLAIN.replace("source = 1.0", "source = { inclusion = 3.0, background = 1.0 }")
    read = read_case(case(tmp_path, text))
    fine = read.build(refined(read.mesh, [0, 5, 9]))
    assert fine.parameter.sum() == 3.0 * len(fine.problem.basis.mesh.subdomains["inclusion"]) + len(
        fine.problem.basis.mesh.subdomains["background"]
    )


def test_formulas(tmp_path):
    text = PLAIN + """
    conductivity = { inclusion = "exp(x)", background = 2 }
    reaction = "x**2"
    [boundary.dirichlet]
    rim = "x*y"
    """
    read = read_case(case(tmp_path, text))
    for mesh in (read.mesh, refined(read.mesh, np.arange(5))):
        problem = read.build(mesh).problem
        expected = fc.EllipticSource(
            problem.basis,
            parameters=problem.parameters,
            sensors=problem.sensors,
            conductivity={"inclusion": lambda x: np.exp(x[0]), "background": 2.0},
            reaction=lambda x: x[0] ** 2,
            dirichlet={"rim": lambda x: x[0] * x[1]},
        )
        assert abs(problem.operator - expected.operator).max() == 0.0
        np.testing.assert_array_equal(problem.boundary.values, expected.boundary.values)


def test_the_mesh_is_beside_the_case_file(tmp_path, monkeypatch):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "my.msh").write_bytes((MESHES / "interval.msh").read_bytes())
    path = tmp_path / "below" / "case.toml"
    path.write_text(PLAIN.replace("{mesh}", "my.msh"))
    monkeypatch.chdir(tmp_path)
    assert read_case("below/case.toml").mesh.nelements == 200


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("[problem]", "[problm]", "unknown key 'problm'; expected one of mesh, problem, boundary, study; did you mean"),
        ("source = 1.0", "", "problem.source is missing"),
        ('file = "{mesh}"', "", "mesh.file is missing"),
        ('file = "{mesh}"', "file = 3", "mesh.file is 3; expected a text"),
        ("{mesh}", "nowhere.msh", "no such file"),
        ("source = 1.0", 'source = "one"', "problem.source"),
        ("source = 1.0", 'source = "x"', "problem.source is 'x'; expected a number or a table of numbers by subdomain"),
        ("source = 1.0", 'source = 1.0\nreaction = "sqr(x)"', "problem.reaction is 'sqr.x.': .* mean 'sqrt'"),
        ("source = 1.0", "source = nan", "problem.source"),
        ("source = 1.0", "source = { inclusio = 1.0 }", "problem.source: region 'inclusio'.*did you mean 'inclusion'"),
        ("source = 1.0", "source = { inclusion = 1.0 }", "problem.source leaves out"),
        ("source = 1.0", "source = 1\nconductivity = { inclusion = 'z', background = 1 }", "conductivity.inclusion"),
        ("source = 1.0", "source = 1.0\ndegree = 3", "problem.degree is 3; expected 1 or 2"),
        ("[problem]", "[study]\nlevels = 0\n[problem]", "study.levels is 0"),
        ("[problem]", "[study]\nadaptive = 1\n[problem]", "study.adaptive is 1; expected true or false"),
        ("[problem]", "[study]\nnorm = 'l2'\n[problem]", "study.norm is 'l2'; expected 'energy' or 'h1'"),
        ("[problem]", "[boundary.dirichlet]\nrm = 0\n[problem]", "boundary.dirichlet.rm: .*did you mean 'rim'"),
        ("[problem]", "[boundary.dirichlet]\nrim = 'a'\n[problem]", "boundary.dirichlet.rim"),
        ("[problem]", "[boundary.neuman]\nrim = 0\n[problem]", "unknown key 'boundary.neuman'.*did you mean"),
        ("[problem]", "[boundary]\nneumann = 1.0\n[problem]", "boundary.neumann is 1.0; expected a table"),
        ("[problem]", "[boundary.robin]\nrim = 1.0\n[problem]", "boundary.robin.rim is 1.0; expected a pair"),
        ("[problem]", "[boundary.robin]\nrim = [-1.0, 0.0]\n[problem]", "boundary.robin.rim.0"),
        ("[problem]", "problem", "is not valid TOML"),
        ("[mesh]", "mesh = 1\n[messh]", "unknown key|mesh is 1"),
    ],
)
def test_refused_in_one_line(tmp_path, old, new, word):
    path = case(tmp_path, PLAIN.replace(old, new, 1))
    with pytest.raises(fc.InputError, match=word) as caught:
        read_case(path)
    assert str(caught.value).startswith(f"case file '{path}': ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_files_that_cannot_be_read(tmp_path, content):
    path = tmp_path / "case.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(fc.InputError, match="case file"):
        read_case(path)
    with pytest.raises(fc.InputError, match="case file"):
        read_case(tmp_path)
    with pytest.raises(fc.InputError, match="expected a file name"):
        read_case(3)
