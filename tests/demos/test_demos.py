"""Every demo runs, draws its picture, and what it claims is true."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse.linalg

import femcert as fc

DEMOS = Path(__file__).parents[2] / "demos"
NAMES = [
    "ex01_l_shape_source",
    "ex02_plate_backward_heat",
    "ex03_certificate_refines_plate",
    "ex04_what_the_sensors_see",
    "ex05_hallucinations",
]


def load(name):
    spec = importlib.util.spec_from_file_location(name, DEMOS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_demo_has_a_test():
    names = {path.stem for path in DEMOS.glob("ex*.py")}
    assert names == set(NAMES)


def test_l_shape_source():
    demo = load("ex01_l_shape_source")
    _, trials = demo.main(sources=20)
    accepted, better, unsafe = demo.counts(trials["lower"])
    assert accepted >= 18
    assert better >= 18
    assert unsafe <= 1
    accepted, better, _ = demo.counts(trials["right"])
    assert accepted == 0
    assert better == 0
    for results in trials.values():
        for truth, baseline, candidate, selection in results:
            for certificate in (selection.baseline, selection.learned):
                assert certificate.radius.side == "upper"
                assert certificate.contains(truth)
            chosen = candidate if selection.accepted else baseline
            assert np.array_equal(selection.parameter, chosen.parameter)


def test_plate_backward_heat():
    demo = load("ex02_plate_backward_heat")
    problem, truth, _, baseline, candidates, (trained, crisp) = demo.main()
    assert problem.sensors.count == 71
    assert trained.accepted
    assert trained.learned.error(truth) < trained.baseline.error(truth)
    assert not crisp.accepted
    assert crisp.learned.error(truth) > crisp.baseline.error(truth)
    # The sharpened picture really is the crisper one: it has more detail than the baseline and than the truth.
    roughness = [q @ (problem.operator @ q) for q in (baseline.parameter, truth, candidates[1].parameter)]
    assert roughness[2] > 1.2 * max(roughness[:2])
    assert all(s.learned.contains(truth) and s.baseline.contains(truth) for s in (trained, crisp))


def test_certificate_refines_plate():
    demo = load("ex03_certificate_refines_plate")
    results = demo.main(uniform_levels=2)
    demo.check(results)
    study, certificates = results.studies["adaptive"], results.certificates["adaptive"]
    for row, certificate in zip(study.rows, certificates, strict=True):
        assert row.upper == pytest.approx(certificate.residuals.pde.value, rel=1e-6)
        assert row.radius_baseline == pytest.approx(certificate.radius.value, rel=1e-6)
    assert certificates[0].radius.value > 4.0 * certificates[-1].radius.value
    assert study.rows[-1].elements < 1.5 * study.rows[0].elements
    # The weight is what the demo says: no state of the mesh has larger averages for its energy.
    problem = demo.build_problem(study.meshes[0])
    H = problem.sensors.matrix[:, problem.free].toarray()
    K = problem.operator[problem.free][:, problem.free]
    response = H @ scipy.sparse.linalg.spsolve(K.tocsc(), H.T)
    assert 1.0 < results.weight / np.sqrt(np.linalg.eigvalsh(response).max()) < 2.0
    assert len(demo.ends_of_cooling(study.meshes[-1])) == 6


def test_what_the_sensors_see():
    demo = load("ex04_what_the_sensors_see")
    layouts, errors = demo.main(trials=60)
    demo.check(layouts, errors)
    first = layouts["first"]
    # sigma_min is what the demo says: the data of the weakest source, which has norm 1 and lives in the dark.
    weakest = first.stability.weakest
    problem = first.problem
    assert problem.parameters.norm(weakest) == pytest.approx(1.0)
    data = problem.observe(problem.solve(weakest))
    assert np.linalg.norm(data) == pytest.approx(first.stability.sigma_min, rel=1e-6)
    right = np.where(problem.basis.doflocs[0] > 0.0, weakest, 0.0)
    assert problem.parameters.norm(right) > 0.9


@pytest.fixture(scope="module")
def hallucinations():
    return load("ex05_hallucinations")


@pytest.mark.parametrize("kind", ["heat", "tomography"])
@pytest.mark.parametrize("seed", range(31))
def test_hallucinations(hallucinations, kind, seed):
    demo = hallucinations
    case = getattr(demo, kind)(seed)
    demo.check(case, demo.judge(case, case.candidate))
    # What is rejected is the pattern: without it the guaranteed rule takes the same candidate.
    rule = demo.rules(case.problem)["guaranteed"]
    honest = fc.no_harm(case.problem, case.data, baseline=case.baseline, learned=case.honest, rule=rule)
    assert honest.accepted
    assert honest.learned.contains(case.truth)


@pytest.mark.parametrize("kind", ["heat", "tomography"])
def test_hallucinations_are_rejected_for_the_stated_reasons(hallucinations, kind):
    demo = hallucinations
    case, verdicts = demo.main()[kind]
    assert verdicts["paper"].reason.endswith("it is an estimate, the baseline's is a bound")
    for name in ("guaranteed", "exact"):
        assert verdicts[name].reason.startswith("the learned radius")
        # The radius is not larger than what lies outside of the class and what the honest candidate would have.
        honest = fc.certify(case.problem, case.data, case.honest, demo.rules(case.problem)[name])
        outside = case.problem.parameters.distance(case.candidate.parameter)
        assert outside < verdicts[name].learned.radius.value < 1.05 * (outside + honest.radius.value)
    assert verdicts["dominance"].reason.startswith("with some consistent truth")
    # The margin is what the distances to the named truth say.
    base, other = demo.distances(case, verdicts)["dominance"]
    assert verdicts["dominance"].comparison.margin == pytest.approx(other**2 - base**2, rel=1e-6)
    # About the equation itself instead of its mesh the verdicts are the same, and the radii cover the error, too.
    for rule in (fc.ExactRadius(guarantee="continuous"), fc.Dominance(guarantee="continuous")):
        verdict = fc.no_harm(case.problem, case.data, baseline=case.baseline, learned=case.candidate, rule=rule)
        assert not verdict.accepted
        assert verdict.learned.scope == "continuous"
        assert verdict.learned.contains(case.truth)
        assert verdict.learned.radius.value >= verdicts["exact"].learned.radius.value


@pytest.mark.parametrize("name", NAMES)
def test_demo_scripts_draw_their_picture(name, tmp_path):
    command = [sys.executable, "-W", "error", DEMOS / f"{name}.py", tmp_path]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=300)
    pictures = list(tmp_path.glob("*.png"))
    assert [p.name for p in pictures] == [f"{name.split('_', 1)[1]}.png"]
    assert pictures[0].stat().st_size > 50_000
