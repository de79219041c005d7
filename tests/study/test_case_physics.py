"""Case files about electrodes, time and elasticity: the same as in Python, from the command line to a decision."""

import json

import numpy as np
import pytest
from skfem import Basis, BilinearForm, ElementTriP1, ElementTriP2, ElementVector, MeshTri
from skfem.helpers import ddot, dot, eye, grad, sym_grad, trace

import femcert as fc
from femcert.cli.main import main
from femcert.study.case import read_certify_case

SIDES = {
    "left": lambda x: x[0] == 0.0, "right": lambda x: x[0] == 1.0,
    "bottom": lambda x: x[1] == 0.0, "top": lambda x: x[1] == 1.0,
}  # fmt: skip
POINTS = [[0.3, 0.3], [0.7, 0.3], [0.3, 0.7], [0.7, 0.7], [0.9, 0.5], [0.5, 0.5]]


@pytest.fixture
def mesh(tmp_path):
    made = MeshTri().refined(3).with_boundaries(SIDES)
    made.save(str(tmp_path / "mesh.msh"))
    return fc.load_mesh(tmp_path / "mesh.msh")


def written(folder, text, truth, values, head="value", rows=None):
    """A case with its candidate and its data."""
    np.savez(folder / "candidate.npz", parameter=truth)
    places = [[]] * len(values) if rows is None else rows
    lines = [",".join([*map(str, place), f"{float(v)!r}"]) for place, v in zip(places, values, strict=True)]
    (folder / "data.csv").write_text("\n".join([head, *lines]), encoding="utf-8")
    shared = '[mesh]\nfile = "mesh.msh"\n[candidate]\nfile = "candidate.npz"\n'
    (folder / "case.toml").write_text(shared + text, encoding="utf-8")
    return folder / "case.toml"


def decided(path, *, drawn=True):
    """What the command line says of a case."""
    out = path.parent / "out"
    assert main(["certify", str(path), "--out", str(out), "--quiet"]) == 0
    assert (out / "report.html").exists()
    assert (out / "fields.vtu").exists() == drawn
    return json.loads((out / "selection.json").read_text(encoding="utf-8"))


ELECTRODES = """
[problem]
kind = "electrodes"
degree = 2
electrodes = ["left", "right", "bottom", "top"]
impedances = [0.1, 0.2, 0.1, 0.2]
currents = [[1, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1]]
[class]
kind = "cosine"
modes = 3
[data]
file = "data.csv"
std = 1e-4
[baseline]
kind = "gauss-newton"
weight = 1e-6
[rule]
kind = "residual"
"""


def plate_with_electrodes(mesh):
    basis = Basis(mesh, ElementTriP2())
    currents = np.array([[1, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1]]).T
    return fc.ElectrodeModel(
        basis, electrodes=["left", "right", "bottom", "top"], impedances=[0.1, 0.2, 0.1, 0.2], currents=currents,
        parameters=fc.CosineSpace(basis, 3),
    )  # fmt: skip


def test_electrodes(mesh, tmp_path):
    problem = plate_with_electrodes(mesh)
    truth = problem.parameters.field([0.2, 0.1, -0.1])
    values = problem.predict(None, truth) + 1e-4 * np.random.default_rng(0).standard_normal(9)
    path = written(tmp_path, ELECTRODES, truth, values)
    found = read_certify_case(path).problem
    np.testing.assert_allclose(found.predict(None, truth), problem.predict(None, truth), rtol=1e-12)
    assert decided(path)["status"] in ("accepted", "rejected")


TIME = """
[problem]
kind = "parabolic"
unknown = "source"
conductivity = 0.2
velocity = [1.0, "0.5*x"]
capacity = 2.0
source = "x*y"
source_history = [[0.0, 0.0], [0.4, 1.0]]
initial = 1.0
steps = 20
scheme = "backward-euler"
[boundary.dirichlet]
left = 1.0
[class]
kind = "cosine"
modes = 3
[sensors]
kind = "averages"
radius = 0.1
[data]
file = "data.csv"
std = 1e-4
"""


def test_time(mesh, tmp_path):
    """Known source, initial and boundary values; the times are a column of the data, one reading is missing."""
    basis = Basis(mesh, ElementTriP1())
    problem = fc.ParabolicProblem(
        basis,
        operator=BilinearForm(lambda u, v, w: 0.2 * dot(grad(u), grad(v)) + (u.grad[0] + 0.5 * w.x[0] * u.grad[1]) * v),
        mass=BilinearForm(lambda u, v, w: 2.0 * u * v),
        source=lambda t: min(t / 0.4, 1.0) * basis.project(lambda x: x[0] * x[1]) @ fc_mass(basis),
        initial=1.0, dirichlet={"left": 1.0}, unknown="source", parameters=fc.CosineSpace(basis, 3),
        sensors=fc.AverageSensors(basis, POINTS, radius=0.1), times=[0.2, 0.4], steps=20, scheme="backward-euler",
    )  # fmt: skip
    truth = problem.parameters.field([1.0, 0.5, -0.3])
    exact = problem.predict(None, truth)
    values = exact + 1e-4 * np.random.default_rng(0).standard_normal(12)
    rows = [(*point, t) for t in (0.2, 0.4) for point in POINTS]
    path = written(tmp_path, TIME, truth, values, "x,y,time,value", rows)
    found = read_certify_case(path).problem
    # The quadrature of the known source is exact in both for a product of three polynomials of degree one or less.
    np.testing.assert_allclose(found.predict(None, truth), exact, rtol=1e-4)
    assert decided(path)["status"] in ("accepted", "rejected")
    text = (tmp_path / "data.csv").read_text().splitlines()
    (tmp_path / "data.csv").write_text("\n".join([*text[:-1], ",".join([*text[-1].split(",")[:-1], "nan"])]))
    assert decided(path)["status"] in ("accepted", "rejected")


def fc_mass(basis):
    return BilinearForm(lambda u, v, w: u * v).assemble(basis)


ELASTIC = """
[problem]
kind = "elasticity"
young = 2.0
poisson = 0.3
plane = "stress"
load = [0.0, "-1.0 - x"]
[boundary]
dirichlet = { left = [0.0, "0.0*y"] }
neumann = { right = [0.1, 0.0] }
[class]
kind = "full"
[class.ball]
radius = 5.0
norm = "h1"
[sensors]
kind = "averages"
radius = 0.08
[data]
std = 1e-4
[[experiment]]
sensors.component = 0
data.file = "data.csv"
[[experiment]]
sensors.component = 1
data.file = "other.csv"
"""


def stress(u):
    strain = sym_grad(u)
    return 2.0 / 1.3 * (strain + 0.3 / 0.7 * eye(trace(strain), 2))


@pytest.mark.parametrize("unknown", ["force", "traction", "stiffness"])
def test_elasticity(mesh, tmp_path, unknown):
    """Two experiments, one for each component of the displacement: one stiffness matrix, factorized once."""
    text = ELASTIC.replace('kind = "elasticity"', f'kind = "elasticity"\nunknown = "{unknown}"')
    basis = Basis(mesh, ElementVector(ElementTriP1()))
    if unknown == "force":
        truth = basis.project(lambda x: np.array([0.5 + 0.0 * x[0], x[0]]))
    elif unknown == "traction":
        text = text.replace('neumann = { right = [0.1, 0.0] }', "")
        text = text.replace('"full"', '"trace"\nboundary = "right"').replace('"h1"', '"l2"')
        truth = np.tile([0.1, 0.2], len(basis.get_dofs("right").flatten()) // 2)
    else:
        text = text.replace('[class.ball]\nradius = 5.0\nnorm = "h1"', "").replace('"full"', '"cosine"\nmodes = 3')
        text += '[baseline]\nkind = "gauss-newton"\nweight = 1e-6\n[rule]\nkind = "residual"\n'
        scalar = Basis(mesh, ElementTriP1())
        truth = 0.2 + 0.1 * np.cos(np.pi * scalar.doflocs[0])
    path = written(tmp_path, text, truth, np.zeros(len(POINTS)), "x,y,value", POINTS)
    (tmp_path / "other.csv").write_text((tmp_path / "data.csv").read_text())
    problem = read_certify_case(path).problem
    exact = problem.predict(None, truth)
    if unknown == "force":
        mine = fc.LinearProblem(
            basis, operator=BilinearForm(lambda u, v, w: ddot(stress(u), sym_grad(v))), definite=True,
            parameters=fc.FullSpace(basis), sensors=fc.AverageSensors(basis, POINTS, radius=0.08),
            dirichlet={"left": 0.0}, neumann={"right": lambda x: np.array([0.1 + 0.0 * x[0], 0.0 * x[0]])},
        )  # fmt: skip
        known = basis.project(lambda x: np.array([0.0 * x[0], -1.0 - x[0]]))
        np.testing.assert_allclose(exact, mine.observe(mine.solve(truth + known)), rtol=1e-9)
    noisy = exact + 1e-4 * np.random.default_rng(0).standard_normal(exact.size)
    for name, part in zip(("data.csv", "other.csv"), np.split(noisy, 2), strict=True):
        rows = [f"{x},{y},{float(v)!r}" for (x, y), v in zip(POINTS, part, strict=True)]
        (tmp_path / name).write_text("\n".join(["x,y,value", *rows]), encoding="utf-8")
    # A traction has no values inside.
    assert decided(path, drawn=unknown != "traction")["status"] in ("accepted", "rejected")


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (ELECTRODES, '"top"]', '"lid"]', "problem: boundary 'lid' is not in the mesh"),
        (ELECTRODES, "[0, 0, 1, -1]]", "[0, 0, 1]]", "problem.currents"),
        (ELECTRODES, "[0, 0, 1, -1]]", "[0, 0, 1, 1]]", "currents: pattern 2 does not sum up to zero"),
        (ELECTRODES, "impedances", "impedance", "unknown key 'problem.impedance'.*impedances"),
        (ELECTRODES, "[class]", "[sensors]\nkind = 'points'\n[class]", "sensors is given; a problem of kind"),
        (ELECTRODES, "[class]", "[boundary.dirichlet]\nleft = 0\n[class]", "has no such condition"),
        (TIME, '[1.0, "0.5*x"]', "1.0", "problem.velocity is 1.0; expected a list of 2 numbers or formulas"),
        (TIME, "[0.4, 1.0]]", "[0.0, 1.0]]", "problem.source_history .* increasing times"),
        (TIME, '"source"', '"release"', "problem.unknown is 'release'; expected"),
        (TIME, "steps = 20", "steps = 3", "time 0.2 is not on the grid of 3 steps"),
        (TIME, "[sensors]\nkind = \"averages\"\nradius = 0.1", "", r"section \[sensors\] is missing"),
        (ELASTIC, "0.3", "0.5", "problem.poisson is 0.5"),
        (ELASTIC, "0.3", '0.3\nunknown = "traction"', "problem.unknown is 'traction', which does not fit the class"),
        (ELASTIC, "right = [0.1, 0.0]", "right = [0.1]", "boundary.neumann.right is .0.1.; expected a list of 2"),
        (ELASTIC, '"stress"', '"flat"', "problem.plane is 'flat'"),
        (ELASTIC, "component = 1", "component = 2", "component is 2; expected 0 to 1"),
    ],
)  # fmt: skip
def test_cases_that_are_refused(mesh, tmp_path, text, old, new, message):
    assert old in text
    rows = None if text is ELECTRODES else POINTS if text is ELASTIC else [(*p, t) for t in (0.2, 0.4) for p in POINTS]
    head = "value" if rows is None else "x,y,value" if text is ELASTIC else "x,y,time,value"
    count = 9 if rows is None else len(rows)
    path = written(tmp_path, text.replace(old, new, 1), np.zeros(4), np.zeros(count), head, rows)
    (tmp_path / "other.csv").write_text((tmp_path / "data.csv").read_text())
    with pytest.raises(fc.InputError, match=message) as caught:
        read_certify_case(path)
    assert "\n" not in str(caught.value)
