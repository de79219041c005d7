"""Every message in the table of the guide is one that femcert gives, and every mistake below is in the table."""

import io
import re
import time
from contextlib import redirect_stderr
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from skfem import Basis, ElementTriMorley, ElementTriP1, ElementTriP2, LinearForm, MeshTri
from skfem.helpers import dot, grad
from skfem.models.poisson import laplace, mass

import femcert as fc
from femcert.cli import main
from femcert.learn import NeuralOperator
from femcert.problem.fingerprint import fingerprint

PAGE = (Path(__file__).parents[2] / "demos" / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(.*?)` \|", PAGE, re.M)

BASIS = Basis(MeshTri().refined(3), ElementTriP1())
OTHER = Basis(MeshTri().refined(2), ElementTriP1())
POINTS = np.stack(np.meshgrid([0.25, 0.5, 0.75], [0.25, 0.5, 0.75]), axis=-1).reshape(-1, 2)
AVERAGES = fc.AverageSensors(BASIS, POINTS, radius=0.1)
SINES = fc.SineSpace(BASIS, 4)


def source(parameters=SINES, sensors=AVERAGES, basis=BASIS, **options):
    return fc.EllipticSource(basis, parameters=parameters, sensors=sensors, **options)


def heat(**options):
    return fc.HeatInitial(BASIS, **{"parameters": SINES, "sensors": AVERAGES, "times": 0.02, "steps": 10, **options})


PROBLEM = source()
C = np.array([1.0, 0.5, -0.5, 0.2])
TRUTH = SINES.field(C)
DATA = PROBLEM.simulate(TRUTH, noise=0.05)
CANDIDATE = fc.Candidate(PROBLEM.solve(TRUTH), TRUTH)
OWN = fc.LinearProblem(BASIS, operator=laplace, parameters=SINES, sensors=AVERAGES)
COEFFICIENT = fc.EllipticCoefficient(BASIS, parameters=SINES, sensors=AVERAGES, source=1.0)


def certify(rule, candidate=CANDIDATE, problem=PROBLEM, data=DATA):
    return fc.certify(problem, data, candidate, rule)


def in_regions(problem, factor, baseline=None):
    """The reason of a selection that is asked for the mean over everything."""
    learned = fc.Candidate.from_coefficients(problem, factor * C)
    baseline = baseline or fc.Tikhonov(weight=1e-6)
    data, mean = problem.simulate(problem.parameters.field(C), noise=0.02), fc.Mean(problem.parameters.basis)
    rule = fc.ResidualRadius()
    return fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=rule, regions=mean).reason


def reason(learned, rule=fc.ResidualRadius(), problem=PROBLEM, baseline=CANDIDATE, **options):  # noqa: B008
    return fc.no_harm(problem, DATA, baseline=baseline, learned=learned, rule=rule, **options).reason


def nonlinear():
    equation = LinearForm(lambda v, w: dot(grad(w.u), grad(v)) + w.u**3 * v - w.q * v)
    forms = {"equation": equation, "state_derivative": laplace, "parameter_derivative": mass}
    problem = fc.NonlinearProblem(BASIS, **forms, parameters=SINES, sensors=AVERAGES, linear_in_state=True)
    problem.solve(100.0 * TRUTH)


def slow(problem, data):
    time.sleep(0.2)


def broken(problem, data):
    raise RuntimeError("out of memory")


def from_file(text, **options):
    Path("answer.csv").write_text(text, encoding="utf-8")
    return fc.Candidate.from_file(PROBLEM, "answer.csv", **options)


def case_file(*change):
    assert main(["certify", "--example", "case", "--quiet"]) == 0
    path = Path("case/case.toml")
    path.write_text(path.read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    assert main(["certify", str(path), "--quiet"]) == 2


def full_directory():
    Path("case").mkdir()
    Path("case/notes.txt").touch()
    assert main(["certify", "--example", "case"]) == 2


def trained_elsewhere():
    operator = NeuralOperator(width=1)
    shapes = {"middle_in": 9, "size_in": 9, "middle_out": 4, "size_out": 4, "bias": 1}
    shapes |= {"linear": (9, 4), "first": (9, 1), "last": (1, 4)}
    operator._arrays = {name: np.ones(shape) for name, shape in shapes.items()}
    sensors = fc.AverageSensors(OTHER, POINTS, radius=0.1)
    operator._made_for = fingerprint(source(fc.SineSpace(OTHER, 4), sensors, OTHER))
    return operator


CORNERS = "x,y,source\n0,0,0\n0,1,0\n1,0,0\n1,1,0\n"
MISTAKES = {
    "sensor outside": lambda: fc.PointSensors(BASIS, [[0.5, 0.5], [1.5, 0.5]]),
    "points transposed": lambda: fc.PointSensors(BASIS, np.zeros((5, 3))),
    "sensors of another basis": lambda: source(basis=Basis(BASIS.mesh, ElementTriP2())),
    "class of another mesh": lambda: source(fc.SineSpace(OTHER, 4)),
    "boundary unknown": lambda: source(dirichlet={"bottum": 0.0}),
    "subdomain unknown": lambda: source(conductivity={"rock": 1.0}),
    "conductivity negative": lambda: source(conductivity=lambda x: x[0] - 0.5),
    "element": lambda: source(basis=Basis(BASIS.mesh, ElementTriMorley())),
    "too many modes": lambda: fc.EigenmodeSpace(BASIS, 50),
    "nothing fixes the state": lambda: source(dirichlet={}).solve(TRUTH),
    "heat with boundary values": lambda: heat(dirichlet=1.0),
    "time off the grid": lambda: heat(times=[0.007, 0.02]),
    "not affine": nonlinear,
    "too few values": lambda: PROBLEM.check_data(fc.Data(np.ones(4), 0.1)),
    "NaN in the data": lambda: fc.Data([1.0, np.nan], 0.1),
    "covariance": lambda: fc.Data(np.ones(2), 0.1, covariance=[[1.0, 2.0], [2.0, 1.0]]),
    "too few sensors": lambda: fc.stability(source(fc.SineSpace(BASIS, 12))),
    "ball with a centre": lambda: fc.Tikhonov(weight=1.0)(source(SINES.within_ball(1.0, centre=TRUTH)), DATA),
    "blind sensors": lambda: fc.stability(source(fc.SineSpace(BASIS, 9))),
    "ball without noise": lambda: fc.stability(source(fc.FullSpace(BASIS).within_ball(5.0, norm="h1"))),
    "nonlinear without a point": lambda: fc.stability(COEFFICIENT),
    "coarse mesh": lambda: fc.stability(
        source(fc.EigenmodeSpace(OTHER, 4), fc.AverageSensors(OTHER, POINTS, radius=0.1), OTHER), guarantee="continuous"
    ),
    "point sensors": lambda: fc.stability(source(sensors=fc.PointSensors(BASIS, POINTS)), guarantee="continuous"),
    "function": lambda: fc.stability(source(conductivity=lambda x: 1.0 + x[0]), guarantee="continuous"),
    "function of the class": lambda: fc.stability(
        source(fc.FunctionSpace(BASIS, [lambda x: 1.0 + x[0]])), guarantee="continuous"
    ),
    "no box": lambda: fc.stability(heat(diffusivity=lambda x: 1.0 + x[0]), guarantee="continuous"),
    "wrong shape": lambda: certify(fc.ResidualRadius(), fc.Candidate(np.zeros(3), np.zeros(3))),
    "no state": lambda: certify(fc.ResidualRadius(), fc.Candidate(None, TRUTH)),
    "candidate of another mesh": lambda: certify(
        fc.ResidualRadius(),
        fc.Candidate.from_coefficients(
            source(fc.SineSpace(OTHER, 4), fc.AverageSensors(OTHER, POINTS, radius=0.1), OTHER), np.ones(4)
        ),
    ),
    "no file": lambda: fc.Candidate.from_file(PROBLEM, "nothing.vtu"),
    "no field": lambda: from_file(CORNERS),
    "file of a part": lambda: from_file("x,y,parameter\n0,0,0\n0,0.5,0\n0.5,0,0\n0.5,0.5,1\n"),
    "it crashes": lambda: reason(broken),
    "it hangs": lambda: reason(slow, time_limit=0.05),
    "it returns an array": lambda: reason(lambda problem, data: TRUTH),
    "nothing certified": lambda: reason(CANDIDATE, fc.GuaranteedRadius(), OWN),
    "baseline not certified": lambda: reason(CANDIDATE, fc.ResidualRadius(pde_norm="equilibrated"), OWN),
    "baseline crashes": lambda: reason(CANDIDATE, baseline=broken),
    "regions of a nonlinear problem": lambda: in_regions(COEFFICIENT, 1.0, baseline=fc.GaussNewton(weight=1.0)),
    "refuted": lambda: in_regions(PROBLEM, 100.0),
    "baseline refuted": lambda: in_regions(PROBLEM, 100.0, baseline=fc.Candidate.from_coefficients(PROBLEM, -50.0 * C)),
    "noise understated": lambda: certify(fc.ExactRadius(), data=fc.Data(DATA.values, 0.01 * DATA.noise_level)),
    "discrepancy with noise understated": lambda: fc.Tikhonov(choose="discrepancy")(
        PROBLEM, fc.Data(DATA.values, 1e-6)
    ),
    "noise larger than the data": lambda: fc.Tikhonov(choose="discrepancy")(PROBLEM, fc.Data(DATA.values, 10.0)),
    "optimality missing": lambda: certify(fc.OperationalRadius(optimality=1.0)),
    "own forms, dual norm": lambda: certify(fc.ResidualRadius(pde_norm="equilibrated"), problem=OWN),
    "own forms, continuous": lambda: certify(fc.GuaranteedRadius(), problem=OWN),
    "certified weights": lambda: fc.OperationalRadius(pde="certified"),
    "zeta without covariance": lambda: certify(fc.Dominance(zeta=0.05)),
    "linear solver": lambda: fc.Tikhonov(weight=1.0)(COEFFICIENT, DATA),
    "few evaluations": lambda: fc.GaussNewton(weight=1e-6, evaluations=1)(COEFFICIENT, COEFFICIENT.simulate(TRUTH)),
    "no weight": fc.Tikhonov,
    "predicted without a state": lambda: str(PROBLEM.predict(None, TRUTH)),
    "untrained": lambda: NeuralOperator()(PROBLEM, DATA),
    "trained elsewhere": lambda: trained_elsewhere()(PROBLEM, DATA),
    "backend": lambda: fc.use_backend("umfpack").__enter__(),
    "case key": partial(case_file, "modes = 8", "mods = 8"),
    "case value": partial(case_file, '"cosine"', '"cosinus"'),
    "formula": partial(case_file, "0.4 + 0.1*x", "0.4 + 0.1*z"),
    "directory": full_directory,
}


def said(mistake):
    """What a user reads: the reason of a selection, the message of an error, or the line on the terminal."""
    terminal = io.StringIO()
    try:
        with redirect_stderr(terminal):
            return mistake() or terminal.getvalue().strip()
    except fc.FemcertError as error:
        return str(error)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """For each mistake its message, and the rows that this fits; an ellipsis in a row stands for anything."""
    patterns = {row: ".*".join(map(re.escape, row.split("…"))) for row in ROWS}
    found = {}
    for name, mistake in MISTAKES.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path_factory.mktemp("mistake"))
            message = said(mistake)
        found[name] = message, [row for row, pattern in patterns.items() if re.fullmatch(pattern, message)]
    return found


@pytest.mark.parametrize("mistake", MISTAKES)
def test_message_has_a_row_of_its_own(mistake, rows):
    message, fitting = rows[mistake]
    assert len(fitting) == 1, message


def test_every_row_is_a_message_of_femcert(rows):
    assert {row for _, fitting in rows.values() for row in fitting} == set(ROWS)
    assert len(ROWS) == len(set(ROWS)) >= 45
