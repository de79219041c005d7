"""Every demo runs, draws its picture, and what it claims is true.

Each is run once, as a script that writes to a directory of its own; the claims are checked on what that run found.
"""

import csv
import importlib.util
import inspect
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse.linalg

import femcert as fc

DEMOS = Path(__file__).parents[2] / "demos"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A function that runs a demo as `python demos/NAME.py DIRECTORY` does, and returns all its names."""
    found = {}

    def script(name):
        if name not in found:
            # One that does not exist yet: the demo makes it.
            directory = tmp_path_factory.mktemp(name) / "a" / "new directory"
            spec = importlib.util.spec_from_file_location("__main__", DEMOS / f"{name}.py")
            found[name] = importlib.util.module_from_spec(spec)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sys, "argv", [str(DEMOS / f"{name}.py"), str(directory)])
                patch.chdir(directory.parents[1])
                # A script finds those beside it.
                patch.syspath_prepend(DEMOS)
                spec.loader.exec_module(found[name])
            pictures = list(directory.iterdir())
            assert [picture.name for picture in pictures] == [f"{name.split('_', 1)[1]}.png"]
            assert pictures[0].stat().st_size > 50_000
            assert [path.name for path in directory.parents[1].iterdir()] == ["a"]
        return found[name]

    return script


def test_every_demo_has_a_test():
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    missing = [path.stem for path in DEMOS.glob("ex*.py") if f'"{path.stem}"' not in tests]
    assert not missing


def test_l_shape_source(run):
    demo = run("ex01_l_shape_source")
    trials = demo.trials
    accepted, better, unsafe = demo.counts(trials["lower"])
    assert len(trials["lower"]) == len(trials["right"]) == 60
    assert accepted >= 54
    assert better >= 54
    assert unsafe <= 3
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


def test_plate_backward_heat(run):
    problem, truth, _, baseline, candidates, (trained, crisp) = run("ex02_plate_backward_heat").results
    assert problem.sensors.count == 71
    assert trained.accepted
    assert trained.learned.error(truth) < trained.baseline.error(truth)
    assert not crisp.accepted
    assert crisp.learned.error(truth) > crisp.baseline.error(truth)
    # The sharpened picture really is the crisper one: it has more detail than the baseline and than the truth.
    roughness = [q @ (problem.operator @ q) for q in (baseline.parameter, truth, candidates[1].parameter)]
    assert roughness[2] > 1.2 * max(roughness[:2])
    assert all(s.learned.contains(truth) and s.baseline.contains(truth) for s in (trained, crisp))


def test_certificate_refines_plate(run):
    demo = run("ex03_certificate_refines_plate")
    results = demo.results
    study, certificates = results.studies["adaptive"], results.certificates["adaptive"]
    for row, certificate in zip(study.rows, certificates, strict=True):
        assert row.upper == pytest.approx(certificate.residuals.pde.value, rel=1e-6)
        assert row.radius_baseline == pytest.approx(certificate.radius.value, rel=1e-6)
    assert certificates[0].radius.value > 3.8 * certificates[-1].radius.value
    assert study.rows[-1].elements < 1.5 * study.rows[0].elements
    # The weight is what the demo says: no state of the mesh has larger averages for its energy.
    problem = demo.build_problem(study.meshes[0])
    H = problem.sensors.matrix[:, problem.free].toarray()
    K = problem.operator[problem.free][:, problem.free]
    response = H @ scipy.sparse.linalg.spsolve(K.tocsc(), H.T)
    assert 1.0 < results.weight / np.sqrt(np.linalg.eigvalsh(response).max()) < 2.0
    assert len(demo.ends_of_cooling(study.meshes[-1])) == 6


def test_what_the_sensors_see(run):
    first = run("ex04_what_the_sensors_see").layouts["first"]
    # sigma_min is what the demo says: the data of the weakest source, which has norm 1 and lives in the dark.
    weakest = first.stability.weakest
    problem = first.problem
    assert problem.parameters.norm(weakest) == pytest.approx(1.0)
    data = problem.observe(problem.solve(weakest))
    assert np.linalg.norm(data) == pytest.approx(first.stability.sigma_min, rel=1e-6)
    right = np.where(problem.basis.doflocs[0] > 0.0, weakest, 0.0)
    assert problem.parameters.norm(right) > 0.9


@pytest.mark.parametrize("kind", ["heat", "tomography"])
@pytest.mark.parametrize("seed", range(31))
def test_hallucinations(run, kind, seed):
    demo = run("ex05_hallucinations")
    case = getattr(demo, kind)(seed)
    demo.check(case, demo.judge(case, case.candidate))
    # What is rejected is the pattern: without it the guaranteed rule takes the same candidate.
    rule = demo.rules(case.problem)["guaranteed"]
    honest = fc.no_harm(case.problem, case.data, baseline=case.baseline, learned=case.honest, rule=rule)
    assert honest.accepted
    assert honest.learned.contains(case.truth)


@pytest.mark.parametrize("kind", ["heat", "tomography"])
def test_hallucinations_are_rejected_for_the_stated_reasons(run, kind):
    demo = run("ex05_hallucinations")
    case, verdicts = demo.results[kind]
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


def test_own_forms_take_25_lines(run):
    demo = run("ex06_your_own_forms")
    assert len(inspect.getsource(demo.own_problem).splitlines()) == 25
    assert "25 lines" in demo.__doc__
    problem = demo.channel.problem
    assert type(problem) is fc.LinearProblem
    assert problem.parameters.dimension == 28
    assert problem.sensors.count == 71
    # The transport goes downstream: a leak is read behind it, and hardly before it.
    state = problem.solve(problem.parameters.field(demo.channel.leaks(np.array([[0.8, 0.8]]))[0]))
    behind, before = (problem.basis.probes(np.array([[x], [0.8]])) @ state for x in (1.15, 0.3))
    assert behind[0] > 10.0 * abs(before[0])


def test_refinement_study(run):
    demo = run("ex07_refinement_study")
    assert demo.results.uniform.rates["upper"] == pytest.approx(-1 / 3, abs=0.02)
    assert demo.final_rate(demo.results.adaptive) == pytest.approx(-1.0, abs=0.1)
    # Near the corner the adaptive mesh is finer than the first one by orders of magnitude, elsewhere not.
    sizes = demo.diameters(demo.results.adaptive.meshes[8])
    assert sizes.min() < 0.01 * sizes.max()
    assert np.median(sizes) > 0.3 * sizes.max()
    # The surrogate's source is the same on all levels; what the levels disagree about is its state.
    errors = [s.learned.error(np.ones_like(s.parameter)) for s in demo.results.frozen.selections]
    assert max(errors) - min(errors) < 1e-3


def test_stability_exponent(run):
    demo = run("ex08_stability_exponent")
    p = {name: law.envelope[1] for name, law in demo.laws.items()}
    assert p["h1"] == pytest.approx(1 / 3, abs=0.02)
    assert p["h2"] == pytest.approx(1 / 2, abs=0.03)
    assert p[0.03] < p[0.01] < p[0.003] < 0.4 * p["h1"]
    # A coarser mesh has the same exponents and, in the range, the same moduli.
    coarse = demo.source(*demo.disc(3), "h1")
    assert coarse.envelope[1] == pytest.approx(p["h1"], abs=0.01)
    for eps in (1e-4, 1e-3, 1e-2):
        assert coarse.modulus(eps).value == pytest.approx(demo.laws["h1"].modulus(eps).value, rel=0.02)


def test_faulted_layers(run):
    demo = run("ex09_faulted_layers")
    section = demo.section
    blocks = demo.blocks(section.problem.basis.mesh)
    assert len(blocks) == section.problem.parameters.dimension == 6
    assert sum(len(cells) for cells in blocks) == section.problem.basis.mesh.nelements
    for one in demo.results["same rock"]:
        # The ore's traces are far below the noise: that is why the data cannot speak of it.
        values = [section.problem.observe(one.candidates[name].state) for name in ("geologist's", "with ore")]
        assert np.linalg.norm(values[0] - values[1]) < 0.5 * one.data.noise_level
        assert one.verdicts["covered", "with ore"].reason.startswith("the learned radius")


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_pinn_on_l_shape(run, torch):
    demo = run("ex10_pinn_on_l_shape")
    assert [len(demo.sensor_grid(per_side)) for per_side, _ in demo.CASES.values()] == [12, 48]
    for trial in demo.trials.values():
        # The candidate is the network: its functions are those that were trained, zero on the boundary.
        mesh = trial.problem.basis.mesh
        assert not trial.candidate.functions.state(mesh.p[:, mesh.boundary_nodes()]).any()
        expected = trial.data.norm(trial.data.values) * trial.record.gradient_norm
        assert trial.candidate.optimality == pytest.approx(expected)
        own, interpolant = demo.physics(trial)
        assert own < interpolant < 0.15


def test_table_of_pinns_over_seeds_says_what_the_demo_says():
    """20 seeds of both cases, as `tests/benchmarks/pinn_seeds.py` wrote them."""
    with (DEMOS / "pinn_seeds.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        for name in ("baseline", "pinn"):
            assert float(row[f"error_{name}"]) <= float(row[f"radius_{name}"])
        assert (row["accepted"] == "True") == (float(row["radius_pinn"]) <= float(row["radius_baseline"]))
    for name, accepted, better in (("few noisy sensors", 20, 19), ("many good sensors", 0, 0)):
        mine = [row for row in rows if row["case"] == name]
        assert [int(row["seed"]) for row in mine] == list(range(20))
        assert sum(row["accepted"] == "True" for row in mine) == accepted
        assert sum(float(row["error_pinn"]) < float(row["error_baseline"]) for row in mine) == better


def test_unfinished_pinn(run, torch):
    demo = run("ex11_unfinished_pinn")
    early, late = demo.results.records.values()
    assert early.steps[-1] == 300
    # What it fits is its own state: that of its source, as the equation gives it, is far from the data.
    problem, candidate, data = demo.results.problem, demo.results.candidates["unfinished PINN"], demo.results.data
    assert data.norm(problem.observe(candidate.state) - data.values) < data.noise_level
    assert data.norm(problem.observe(problem.solve(candidate.parameter)) - data.values) > 3.0 * data.noise_level
    assert late.losses["physics"][-1] < 0.01 * early.losses["physics"][-1]


def test_operator_under_shift(run, torch):
    demo = run("ex12_operator_under_shift")
    assert all(len(tally.errors) == 40 for tally in demo.tallies.values())
    assert len(demo.sensor_rings()) == 36
    # A lost sensor is one that the judging problem does not have, either.
    assert demo.shifted_problem(4).sensors.count == 32
    with (DEMOS / "operator_under_shift.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["shift"] for row in rows] == list(demo.SHIFTS)
    for row in rows:
        assert int(row["trials"]) == 200
        assert int(row["rejected_by_Dominance"]) >= int(row["worse"])
        assert int(row["accepted_although_worse_by_Dominance"]) == 0


def test_evidence_on_l_shape(run):
    demo = run("ex13_evidence_on_l_shape")
    case = demo.case
    # The truth is none of a span, and the learned map differs from it where it is refuted only.
    modes = fc.EigenmodeSpace(case.problem.basis, 12)
    assert modes.norm(modes.project(case.truth)[1]) > 0.05 * modes.norm(case.truth)
    assert case.evidence.scope == "discrete"
    text = demo.words(case)
    assert "learned map claims 0.72 in 'north west'" in text
    assert "unless the norm exceeds" in text
    # Another measurement, the same story.
    demo.check(demo.main(seed=3))


def test_heated_rod(run):
    found = run("ex16_heated_rod").found
    # The script has compared them with the published ones; here is what its first lines say.
    assert found.fitted["flux"] == pytest.approx(18.415, abs=0.002)
    assert found.fitted["exchange"] == pytest.approx(0.0019143, abs=2e-7)
    assert found.linearized["known"]["flux"].half_length == pytest.approx(0.285, abs=0.002)
    assert found.linearized["unknown"]["flux"].half_length == pytest.approx(0.301, abs=0.002)
    assert found.exact["unknown"] == pytest.approx([0.0018841, 0.0019448], abs=3e-7)
    # Published intervals are not certain to hold, but the two agree on what is possible.
    low, high = found.proved["unknown"]
    assert low < found.given["unknown"].lower.value < found.given["unknown"].upper.value < high


def test_exact_claims_of_the_rod_cover(run):
    """Whatever the flux is, the true coefficient passes, and the flux is covered where it is given: 200 draws each."""
    demo = run("ex16_heated_rod")
    rod, exchange = demo.Rod(), 2.3e-3
    at = rod.nonlinear.linearize(rod.both.field([7.0, exchange / demo.UNIT]))
    start = fc.Data.gaussian(at.predicted, std="unknown")
    # The direction of the test does not depend on the flux: that of the demo is the one for a flux of one.
    problems = {"exchange": fc.ForwardMap(at.matrix), "flux": rod.given(exchange)}
    asked = {"exchange": ([0.0, 1.0], 0.0), "flux": (fc.Flux(rod.basis, "heated"), 7.0)}
    rng, passed = np.random.default_rng(0), dict.fromkeys(asked, 0)
    for _ in range(200):
        data = fc.Data.gaussian(start.values + 0.3 * rng.standard_normal(15), std="unknown")
        for name, (functional, value) in asked.items():
            passed[name] += fc.evidence(problems[name], data).interval(functional).contains(value)
    # The 0.5 % quantile of Binomial(200, 0.95).
    assert min(passed.values()) >= 181


def test_release_history(run):
    demo = run("ex18_release_history")
    late = demo.found.refuted["late"].table
    assert late[-1].half_length == pytest.approx(2.378, abs=0.01)
    # The claims do not hang on the draw of the noise.
    for seed in (1, 2):
        demo.check(demo.main(seed))


def test_beam_load(run):
    demo = run("ex19_beam_load")
    answer = demo.answer
    for found, value in zip(answer.intervals, answer.truth, strict=True):
        assert found.lower <= value <= found.upper
    # The moment, the mean, the outer half; then the inner half and the eighths, of which no sign is certain.
    assert answer.half_length(0) == pytest.approx(0.11, abs=0.005)
    assert answer.half_length(3) == pytest.approx(0.72, abs=0.02)
    assert answer.intervals[1].lower.value > 0.0
    assert answer.half_length(1) == pytest.approx(1.1, abs=0.05)
    assert all(found.lower.value < 0.0 < found.upper.value for found in [answer.intervals[2], *answer.intervals[4:]])
    # A finer mesh: the same readings, to a thousandth of the largest one.
    readings = [problem.predict(problem.solve(load), load) for problem, load in (demo.beam(40), demo.beam(80))]
    assert np.abs(readings[0] - readings[1]).max() < 2e-3 * np.abs(readings[1]).max()
