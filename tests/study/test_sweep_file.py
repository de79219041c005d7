"""Sweep files: what they may say, and how a wrong one is refused."""

from functools import partial

import numpy as np
import pytest

from femcert.errors import InputError
from femcert.study.sweep import RULES, Grid, paper_setting, sweep
from femcert.study.sweep.file import paper_file, read_sweep
from femcert.study.sweep.rules import dominance, weighted

GRID = """
[grid]
sensors = [5, 12]
noise = [0.0, 0.02]
perturbation = [0.0, 0.1]
mismatch = [0.0]
replications = 6
"""
OWN = """
[mesh]
file = "mesh.vtk"
[problem]
kind = "elliptic-source"
conductivity = 2.0
dirichlet = ["left", "rest"]
[class]
kind = "eigenmodes"
modes = 4
[places]
kind = "averages"
radius = 0.1
most = 20
[truth]
coefficients = [1.0, -0.5, 0.25, 0.1]
[mismatch]
mode = 9
[baseline]
weight = 1e-6
"""


@pytest.fixture
def written(tmp_path):
    from skfem import MeshTri

    mesh = MeshTri.init_tensor(*2 * [np.linspace(0.0, 1.0, 11)])
    mesh = mesh.with_boundaries({"left": lambda x: x[0] == 0.0, "rest": lambda x: x[0] > 0.0})
    mesh = mesh.with_subdomains({"west": lambda x: x[0] < 0.5, "east": lambda x: x[0] > 0.5})
    mesh.save(str(tmp_path / "mesh.vtk"))

    def write(text):
        path = tmp_path / "sweep.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_an_empty_file_is_the_papers_sweep(written):
    for case in (read_sweep(written("")), paper_file()):
        assert (case.grid, case.seed, case.own) == (Grid(), 101, False)
        assert case.rules is RULES
        assert np.array_equal(case.setting.forward, paper_setting().forward)


def test_a_grid_alone(written):
    case = read_sweep(written(GRID + "[sweep]\nseed = 3\nchunk = 10\n"))
    assert case.grid == Grid(sensors=(5, 12), noise=(0, 0.02), perturbation=(0, 0.1), mismatch=(0,), replications=6)
    assert (case.seed, case.chunk) == (3, 10)
    other = case.changed(replications=2, seed=None, chunk=None)
    assert (other.grid.replications, other.grid.sensors, other.seed) == (2, (5, 12), 3)
    assert sweep(**other.options()).records.shape == (16,)


def test_rules(written):
    rules = """[rules]
mine = { kind = "operational", pde = 0.1, optimality = 0.5 }
"quite sure" = { kind = "dominance", zeta = 0.01 }
sure = { kind = "dominance" }
"""
    found = read_sweep(written(rules)).rules
    assert list(found) == ["mine", "quite sure", "sure"]
    assert isinstance(found["mine"], partial)
    assert (found["mine"].func, found["mine"].keywords) == (weighted, {"pde": 0.1, "optimality": 0.5})
    assert found["quite sure"].keywords == {"zeta": 0.01}
    assert found["sure"] is dominance


def test_a_problem_in_the_plane(written):
    case = read_sweep(written(GRID + OWN))
    assert case.own
    assert (case.setting.places, case.setting.dimension) == (20, 4)
    # The ninth mode is no state of a source in the class.
    assert case.setting.pde > 1.0
    found = sweep(**case.options())
    assert found.outcome("dominance").unsafe == 0
    assert found.outcome("dominance", noise=0.0, sensors=12).accepted > 0


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        ('kind = "averages"\nradius = 0.1\nmost = 20', 'kind = "points"', 81),
        ("most = 20", "at = [[0.25, 0.25], [0.5, 0.3], [0.7, 0.7], [0.2, 0.9], [0.4, 0.8], [0.9, 0.1]]", 6),
        ('kind = "eigenmodes"', 'kind = "sine"', 20),
        ('kind = "eigenmodes"\nmodes = 4', 'kind = "regions"\nregions = ["west", "east"]', 20),
        ("conductivity = 2.0", "conductivity = { west = 1.0, east = 3.0 }\ndegree = 2", 20),
    ],
)
def test_other_classes_and_places(written, old, new, places):
    text = GRID.replace("12", "6") + OWN
    assert old in text
    text = text.replace(old, new)
    if "regions" in new:
        text = text.replace("[1.0, -0.5, 0.25, 0.1]", "[1.0, -0.5]")
    case = read_sweep(written(text))
    assert case.setting.places == places
    assert np.all(np.isfinite(sweep(**case.options()).records["baseline_error"]))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("noise", "niose", "unknown key 'grid.niose'; .* did you mean 'noise'"),
        ("[grid]", "[gird]", "unknown key 'gird'; .* did you mean 'grid'"),
        ("replications = 6", "replications = 0", "grid: replications is 0"),
        ("[0.0, 0.02]", "[0.0, -0.02]", "grid: noise has the entry -0.02"),
        ("[0.0, 0.02]", '"0.02"', "grid: noise is '0.02'"),
        ("[5, 12]", "[5, 21]", "grid.sensors has the entry 21; there are 20 places"),
        ("[mesh]", "[sweep]\nseed = -1\n[mesh]", "sweep.seed is -1"),
        ("[mesh]", "[sweep]\nsede = 1\n[mesh]", "did you mean 'seed'"),
        ("[mesh]", "sweep = 3\n[mesh]", "unknown key 'grid.sweep'"),
        ("[mesh]", "[rules]\n[mesh]", "rules is empty"),
        ("[mesh]", "[rules]\na = 3\n[mesh]", "rules.a is 3; expected a table"),
        ("[mesh]", '[rules.a]\nkind = "dominanse"\n[mesh]', "rules.a.kind is 'dominanse'; .* did you mean 'dominance'"),
        ("[mesh]", '[rules.a]\nkind = "dominance"\nzetta = 1\n[mesh]', "'rules.a.zetta'; .* did you mean 'zeta'"),
        ("[mesh]", '[rules.a]\nkind = "dominance"\nzeta = 1\n[mesh]', "rules.a.zeta is 1; expected a number between"),
        ("[mesh]", '[rules.a]\nkind = "operational"\npde = "x"\n[mesh]', "rules.a.pde has type"),
        ("[mesh]", "[rules.a]\npde = 1\n[mesh]", "rules.a.kind is missing"),
        ("mesh.vtk", "other.vtk", "no such file"),
        ("[baseline]\nweight = 1e-6", "", r"section \[baseline\] is missing"),
        ("weight = 1e-6", "weight = 0", "baseline.weight is 0"),
        ("weight", "wait", "did you mean 'weight'|unknown key 'baseline.wait'"),
        ("elliptic-source", "eliptic-source", "did you mean 'elliptic-source'"),
        ("conductivity = 2.0", "conductivty = 2.0", "did you mean 'conductivity'"),
        ("conductivity = 2.0", "conductivity = { west = 1.0, eats = 1.0 }", "problem.conductivity"),
        ("conductivity = 2.0", "degree = 3", "problem.degree is 3"),
        ('["left", "rest"]', '["lefty", "rest"]', "problem.dirichlet: .*lefty"),
        ('["left", "rest"]', '"left"', "problem.dirichlet is 'left'; expected a list"),
        ("eigenmodes", "eigenmode", "class.kind is 'eigenmode'; .* did you mean 'eigenmodes'"),
        ("modes = 4", "modes = 4000", "class.modes: k is 4000"),
        ("modes = 4", "modes = 5", r"truth.coefficients has shape \(4,\); the class expects \(5,\)"),
        ('kind = "eigenmodes"\nmodes = 4', 'kind = "regions"\nregions = ["wset"]', "class.regions: .*wset"),
        ("averages", "average", "did you mean 'averages'"),
        ("radius = 0.1", "", "places.radius is missing"),
        ("radius = 0.1", "radius = -1", "places.radius is -1"),
        ("most = 20", 'at = "node"', "places.at is 'node'"),
        ("most = 20", "at = [[3.0, 3.0]]", "places: "),
        ("mode = 9", "mode = 0.5", "mismatch.mode is 0.5"),
        ("[mesh]", "[mesh", "TOML"),
    ],
)
def test_wrong_files_say_where(written, old, new, message):
    text = GRID + OWN
    assert old in text
    with pytest.raises(InputError, match=message) as refused:
        read_sweep(written(text.replace(old, new, 1)))
    assert str(refused.value).startswith("sweep file '")


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_sweep(tmp_path / "nothing.toml")
