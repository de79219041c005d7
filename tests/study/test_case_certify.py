"""Cases of ``femcert certify``: what they build is what the same words build in Python."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2
from skfem import Basis, ElementLineP1, ElementTriP1, ElementTriP2

import femcert as fc
from femcert.cli import main
from femcert.study.case import read_certify_case
from femcert.study.measurements import Dataset

MESHES = Path(__file__).parents[2] / "meshes"
END = '[candidate]\nfile = "candidate.npz"\n[rule]\nkind = "{rule}"\n'


@pytest.fixture
def write(tmp_path):
    """Write a case, its candidate and perhaps its data beside it; returns the case as it was read."""

    def written(text, *, candidate=None, data="", rule="residual"):
        (tmp_path / "case.toml").write_text(text + END.format(rule=rule), encoding="utf-8")
        (tmp_path / "data.csv").write_text(data, encoding="utf-8")
        np.savez(tmp_path / "candidate.npz", parameter=candidate)
        return read_certify_case(tmp_path / "case.toml")

    return written


def basis_on(name, element=None):
    mesh = fc.load_mesh(MESHES / f"{name}.msh")
    return Basis(mesh, element or (ElementLineP1() if name == "interval" else ElementTriP1()))


def start(name, problem, rest=""):
    return f'[mesh]\nfile = "{(MESHES / name).as_posix()}.msh"\n[problem]\n{problem}\n{rest}\n'


def check_same(selection, expected):
    """Both radii, the decision and the fields agree."""
    for found, wanted in ((selection.baseline, expected.baseline), (selection.learned, expected.learned)):
        assert found.radius.value == pytest.approx(wanted.radius.value, rel=1e-9)
        assert (found.radius.side, found.scope) == (wanted.radius.side, wanted.scope)
    assert selection.accepted == expected.accepted
    np.testing.assert_allclose(selection.parameter, expected.parameter, rtol=1e-9, atol=1e-12)


def test_heat_from_rows_in_any_order(write):
    basis = basis_on("interval")
    points, times = [0.2, 0.35, 0.5, 0.65, 0.8], [0.01, 0.02]
    problem = fc.HeatInitial(
        basis,
        parameters=fc.SineSpace(basis, 3),
        sensors=fc.PointSensors(basis, points),
        times=times,
        diffusivity=lambda x: 1.0 + x[0],
        steps=20,
        dirichlet={"left": 0.0},
        robin={"right": (2.0, 0.0)},
    )
    truth = problem.parameters.field([1.0, -0.4, 0.2])
    values = problem.simulate(truth, noise=0.02).values.reshape(2, 5)
    rows = [f"{x},{t},{float(values[i, j])!r},0.01" for i, t in enumerate(times) for j, x in enumerate(points)]
    shuffled = "x,time,value,std\n" + "\n".join([rows[0], *reversed(rows[1:])])
    text = start("interval", 'kind = "heat-initial"\ndiffusivity = "1 + x"\nsteps = 20', """
        [boundary]
        dirichlet = { left = 0 }
        robin = { right = [2.0, 0] }
        [class]
        kind = "sine"
        modes = 3
        [sensors]
        kind = "points"
        [data]
        file = "data.csv"
        confidence = 0.9
    """)
    case = write(text, candidate=truth, data=shuffled)
    # The places come in the order of the rows of the first time.
    order = [points.index(x) for x in case.problem.sensors.points[:, 0]]
    assert sorted(order) == list(range(5))
    np.testing.assert_array_equal(case.data.values.reshape(2, 5), values[:, order])
    np.testing.assert_array_equal(case.problem.times, times)
    level = np.sqrt(chi2.ppf(0.9, 10))
    assert case.data.noise_level == pytest.approx(level)
    data = fc.Data(values.ravel(), level, np.full(10, 1e-4))
    learned = fc.Candidate(problem.solve(truth), truth)
    expected = fc.no_harm(
        problem, data, baseline=fc.Tikhonov(choose="discrepancy"), learned=learned, rule=fc.ResidualRadius()
    )
    check_same(case.select(), expected)


def test_tomography_with_values_in_the_case(write):
    basis = basis_on("disc")
    problem = fc.Tomography(basis, parameters=fc.CosineSpace(basis, (2, 3)), angles=[0, 30, 60, 90, 120, 150], bins=7)
    truth = problem.parameters.field([1.0, 0.3, -0.2, 0.4, 0.0, 0.1])
    data = problem.simulate(truth, noise=0.05)
    text = start("disc", 'kind = "tomography"', f"""
        [class]
        kind = "cosine"
        modes = [2, 3]
        [sensors]
        kind = "rays"
        angles = 6
        bins = 7
        [data]
        values = {data.values.tolist()}
        noise_level = {data.noise_level!r}
        [baseline]
        kind = "tikhonov"
        weight = 1e-3
    """)
    case = write(text, candidate=truth, rule="exact")
    expected = fc.no_harm(
        problem, data, baseline=fc.Tikhonov(weight=1e-3), learned=fc.Candidate(None, truth), rule=fc.ExactRadius()
    )
    assert expected.state is None
    check_same(case.select(), expected)


def test_a_coefficient_with_gauss_newton(write):
    basis = basis_on("disc")
    points = [[0.3, 0.2], [-0.4, 0.1], [0.0, -0.5], [0.5, 0.5]]
    problem = fc.EllipticCoefficient(
        basis,
        parameters=fc.RegionSpace(basis, ["inclusion", "background"]),
        sensors=fc.PointSensors(basis, points),
        source={"inclusion": 2.0, "background": lambda x: 1.0 + 0.5 * x[0]},
    )
    truth = problem.parameters.field([0.5, -0.2])
    data = problem.simulate(truth, noise=0.01)
    text = start("disc", 'kind = "elliptic-coefficient"\nsource = { inclusion = 2, background = "1 + 0.5*x" }', f"""
        [class]
        kind = "regions"
        regions = ["inclusion", "background"]
        [sensors]
        kind = "points"
        [data]
        file = "data.csv"
        columns = {{ x = "east", y = "north", value = "head" }}
        noise_level = {data.noise_level!r}
        [baseline]
        kind = "gauss-newton"
        weight = 1e-6
        start = [0.1, 0.1]
        bounds = [-2, [2, 2]]
    """)
    header = "# measured on a Monday\nnorth,remark,east,head\n"
    body = "\n".join(f"{y},fine,{x},{value!r}" for (x, y), value in zip(points, data.values.tolist(), strict=True))
    case = write(text, candidate=truth, data=header + body, rule="operational")
    expected = fc.no_harm(
        problem,
        data,
        baseline=fc.GaussNewton(weight=1e-6, start=[0.1, 0.1], bounds=(-2, [2, 2])),
        learned=fc.Candidate(problem.solve(truth), truth),
        rule=fc.OperationalRadius(),
    )
    check_same(case.select(), expected)


SOURCE = 'kind = "elliptic-source"'
SPACES = {
    "eigenmodes": ('kind = "eigenmodes"\nmodes = 3\nboundary = "neumann"', lambda b: fc.EigenmodeSpace(
        b, 3, boundary="neumann")),
    "sine in a box": ('kind = "sine"\nmodes = 3\nbox = [[-1, 1], [-1, 1]]\ninner = "euclidean"', lambda b: fc.SineSpace(
        b, 3, box=[[-1, 1], [-1, 1]], inner="euclidean")),
    "all regions": ('kind = "regions"', fc.RegionSpace),
    "coarse": (f'kind = "coarse"\nmesh = "{(MESHES / "disc.msh").as_posix()}"\ndegree = 0', lambda b: fc.CoarseSpace(
        b, b.mesh, degree=0)),
    "functions": ('kind = "functions"\nfunctions = ["1", "x*y"]', lambda b: fc.FunctionSpace(
        b, [lambda x: 1.0 + 0.0 * x[0], lambda x: x[0] * x[1]])),
    "full in a ball": ('kind = "full"\nball = { radius = 2.5, norm = "h1" }', lambda b: fc.FullSpace(b).within_ball(
        2.5, norm="h1")),
}  # fmt: skip


@pytest.mark.parametrize(("words", "make"), SPACES.values(), ids=SPACES)
def test_spaces(write, words, make):
    expected = make(basis_on("disc"))
    text = start("disc", SOURCE, f"""
        [class]
        {words}
        [sensors]
        kind = "averages"
        points = [[0.0, 0.0], [0.2, 0.3]]
        radius = 0.1
        [data]
        values = [1.0, 2.0]
        noise_level = 0.1
    """)
    found = write(text, candidate=np.zeros(expected.basis.N)).problem.parameters
    assert abs(found.matrix - expected.matrix).max() == 0.0
    assert (found.inner, found.ball) == (expected.inner, expected.ball)


SENSORS = {
    "regions": ('kind = "regions"', "region,value\nbackground,1\ninclusion,2", lambda b: fc.RegionSensors(
        b, ["background", "inclusion"])),
    "boundary": ('kind = "boundary"\nboundary = "rim"\ncount = 3', "value\n1\n2\n3", lambda b: fc.BoundarySensors(
        b, boundary="rim", count=3)),
    "rays": ('kind = "rays"\nangles = [10, 70]\nbins = 2\nrule = "sampled"', "value\n1\n2\n3\n4", lambda b: (
        fc.RaySensors(b, angles=[10, 70], bins=2, rule="sampled"))),
    "segments": (
        'kind = "segments"\nstarts = [[-2, 0], [0, 0.1]]\nends = [[2, 0.3], [0.5, 0.5]]', "value\n1\n2", lambda b: (
        fc.RaySensors(b, rays=([[-2, 0], [0, 0.1]], [[2, 0.3], [0.5, 0.5]])))),
    "semicolons": ('kind = "averages"\nradius = 0.2', "# a, b\nx; y;value\n0.1;0.2;3\n-0.5;0.5;4\n", lambda b: (
        fc.AverageSensors(b, [[0.1, 0.2], [-0.5, 0.5]], radius=0.2))),
    "averages": ('kind = "averages"\nradius = 0.2', "\ufeffx, y ,value\n0.1,0.2,3\n\n-0.5, 0.5,4\n", lambda b: (
        fc.AverageSensors(b, [[0.1, 0.2], [-0.5, 0.5]], radius=0.2))),
}  # fmt: skip


@pytest.mark.parametrize(("words", "data", "make"), SENSORS.values(), ids=SENSORS)
def test_sensors(write, words, data, make):
    basis = basis_on("disc", ElementTriP2())
    text = start("disc", SOURCE + "\ndegree = 2\nreaction = 1\n[boundary.dirichlet]", f"""
        [class]
        kind = "functions"
        functions = ["1"]
        [sensors]
        {words}
        [data]
        file = "data.csv"
        noise_level = 0.1
    """)
    found = write(text, candidate=np.zeros(basis.N), data=data).problem.sensors
    expected = make(basis).matrix
    assert found.matrix.shape == expected.shape
    assert abs(found.matrix - expected).max() == 0.0


def with_noise(noise, m=3):
    points = [[0.0, 0.0], [0.2, 0.3], [-0.3, 0.1]][:m]
    return start("disc", SOURCE, f"""
        [class]
        kind = "eigenmodes"
        modes = 2
        [sensors]
        kind = "points"
        points = {points}
        [data]
        values = [1.0, 2.0, 3.0]
        {noise}
    """)


def test_noise(write):
    zero = np.zeros(1442)
    data = write(with_noise("noise_level = 0.25"), candidate=zero).data
    assert (data.noise_level, data.covariance) == (0.25, None)
    data = write(with_noise("noise_level = 2.5\ndeviation = [0.1, 0.2, 0.3]"), candidate=zero).data
    assert data.noise_level == 2.5
    np.testing.assert_allclose(data.covariance, [0.01, 0.04, 0.09])
    data = write(with_noise("confidence = 0.99\ndeviation = 0.1"), candidate=zero).data
    np.testing.assert_allclose(data.covariance, 0.01)
    assert data.noise_level == pytest.approx(np.sqrt(chi2.ppf(0.99, 3)), rel=1e-9)
    matrix = [[1.0, 0.2, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 2.0]]
    data = write(with_noise(f"confidence = 0.5\ncovariance = {matrix}"), candidate=zero).data
    np.testing.assert_array_equal(data.covariance, matrix)


def test_noise_stays_below_its_level_as_often_as_it_says():
    draws = np.random.default_rng(0).standard_normal((20000, 12))
    dataset = Dataset(values=np.ones(12), deviation=np.linspace(0.1, 2.0, 12), confidence=0.9)
    data = dataset.data(dataset.read(2, Path()))
    inside = [data.norm(draw * np.linspace(0.1, 2.0, 12)) <= data.noise_level for draw in draws]
    assert np.mean(inside) == pytest.approx(0.9, abs=0.01)


def test_the_candidate_with_names_and_optimality(tmp_path, write):
    basis = basis_on("disc")
    fields = {"q": np.ones(basis.N), "u": np.zeros(basis.N)}
    text = with_noise("noise_level = 0.1")
    write(text, candidate=np.zeros(basis.N))
    np.savez(tmp_path / "other.npz", **fields)
    words = '[candidate]\nfile = "other.npz"\nparameter = "q"\nstate = "u"\nname = "mine"\noptimality = 0.5\n'
    (tmp_path / "case.toml").write_text(text + words + '[rule]\nkind = "residual"\n', encoding="utf-8")
    candidate = read_certify_case(tmp_path / "case.toml").candidate
    assert (candidate.name, candidate.optimality) == ("mine", 0.5)
    np.testing.assert_array_equal(candidate.parameter, 1.0)
    np.testing.assert_array_equal(candidate.state, 0.0)


RULES = {
    'kind = "residual"\npde_norm = "equilibrated"\ncovered = false': fc.ResidualRadius(
        pde_norm="equilibrated", covered=False),
    'kind = "operational"\npde = 0.1\nbc = 2\noptimality = 0.5': fc.OperationalRadius(pde=0.1, bc=2.0, optimality=0.5),
    'kind = "operational"\npde = "certified"\npde_norm = "equilibrated"': fc.OperationalRadius(
        pde="certified", pde_norm="equilibrated"),
    'kind = "stochastic"\npoints = 50\nzeta = 0.1\nseed = 3\nbound = "betting"': fc.StochasticRadius(
        points=50, zeta=0.1, seed=3, bound="betting"),
    'kind = "guaranteed"\nstate = "recomputed"': fc.GuaranteedRadius(state="recomputed"),
    'kind = "exact"\nguarantee = "continuous"': fc.ExactRadius(guarantee="continuous"),
    'kind = "dominance"\nzeta = 0.05': fc.Dominance(zeta=0.05),
}  # fmt: skip


@pytest.mark.parametrize(("words", "expected"), RULES.items(), ids=[str(rule) for rule in RULES.values()])
def test_rules(write, tmp_path, words, expected):
    write(with_noise("noise_level = 0.1"), candidate=np.zeros(1442))
    text = (tmp_path / "case.toml").read_text(encoding="utf-8")
    (tmp_path / "case.toml").write_text(text.replace('kind = "residual"', words + "\ntolerance = 0.25"))
    case = read_certify_case(tmp_path / "case.toml")
    assert case.rule == expected
    assert case.tolerance == 0.25


def test_title_quantity_and_unit_are_on_the_page(tmp_path):
    assert main(["certify", "--example", str(tmp_path / "case"), "--quiet"]) == 0
    path = tmp_path / "case" / "case.toml"
    text = path.read_text(encoding="utf-8")
    labels = '[case]\ntitle = "Leak under <the dam>"\nquantity = "source"\nunit = "W/m2"\n\n'
    path.write_text(labels + text, encoding="utf-8")
    assert main(["certify", str(path), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Leak under &lt;the dam&gt;" in page
    assert "The source in W/m2" in page
    path.write_text(labels.replace("unit", "units") + text, encoding="utf-8")
    with pytest.raises(fc.InputError, match=r"unknown key 'case\.units'"):
        read_certify_case(path)
