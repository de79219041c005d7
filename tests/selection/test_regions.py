"""What the data refute in regions: no rule accepts it, and a refuted baseline is not returned as if all were well."""

import json

import numpy as np
import posed as pose
import pytest
from scipy.stats import binom
from selector_helpers import rewritten
from skfem import Basis, ElementTriP1, MeshTri

import femcert as fc
from femcert.selection.regions import Regions

STD = 3e-4
BASIS = Basis(MeshTri().refined(3), ElementTriP1())
SPACE = fc.FullSpace(BASIS).within_ball(1.0, norm="h1", length=0.2)
GRID = np.linspace(0.1, 0.9, 5)
SENSORS = fc.AverageSensors(BASIS, np.array([(x, y) for x in GRID for y in GRID]), radius=0.05)
PROBLEM = fc.EllipticSource(BASIS, parameters=SPACE, sensors=SENSORS)
CORNERS = [
    fc.Mean(BASIS, lambda x, a=a, b=b: (a * (x[0] - 0.5) > 0.0) & (b * (x[1] - 0.5) > 0.0), name=name)
    for name, a, b in (("north-east", 1, 1), ("north-west", -1, 1), ("south-east", 1, -1), ("south-west", -1, -1))
]
RULES = (fc.ResidualRadius(), fc.ExactRadius(), fc.Dominance())


def blob(x=0.3, y=0.3, width=0.05, height=1.0):
    return height * np.exp(-((BASIS.doflocs[0] - x) ** 2 + (BASIS.doflocs[1] - y) ** 2) / width)


def of(field, name="learned"):
    return fc.Candidate(PROBLEM.solve(field), field, 0.0, name)


def noisy(truth, seed=0):
    exact = PROBLEM.observe(PROBLEM.solve(truth))
    return fc.Data.gaussian(exact + STD * np.random.default_rng(seed).standard_normal(exact.size), std=STD)


TRUTH = blob()
DATA = noisy(TRUTH)
HALLUCINATION = TRUTH + blob(0.75, 0.75, height=5.0)
ELSEWHERE = TRUTH + blob(0.75, 0.25, height=-5.0)


def select(learned, baseline=None, data=DATA, rule=RULES[1], regions=CORNERS, **options):
    baseline = fc.Tikhonov(choose="discrepancy") if baseline is None else baseline
    return fc.no_harm(PROBLEM, data, baseline=baseline, learned=learned, rule=rule, regions=regions, **options)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_no_rule_accepts_a_refuted_candidate(rule):
    # Against a baseline that is even worse, the rule alone would take it.
    found = select(of(HALLUCINATION), of(10.0 * ELSEWHERE), rule=rule, tolerance=1e3)
    assert fc.no_harm(
        PROBLEM, DATA, baseline=of(10.0 * ELSEWHERE), learned=of(HALLUCINATION), rule=rule, tolerance=1e3
    ).accepted
    assert not found.accepted
    assert found.candidates["learned"].status == "rejected"
    assert found.candidates["learned"].reason.startswith("the learned candidate claims ")
    assert "in 'north-east'; the data allow " in found.candidates["learned"].reason
    # The baseline is refuted as well.
    assert found.status == "undecided"
    assert found.reason.startswith("the baseline is refuted, and there is nothing else: the baseline claims ")
    assert "in 'south-east'" in found.reason


def test_what_the_data_allow_is_decided_by_the_rule():
    for learned in (of(TRUTH), of(0.9 * TRUTH), of(np.zeros(BASIS.N))):
        with_regions, without = select(learned), select(learned, regions=None)
        if not with_regions.regions.of("learned"):
            assert (with_regions.status, with_regions.reason) == (without.status, without.reason)
    assert without.regions is None


def test_a_refuted_baseline_does_not_matter_where_the_learned_candidate_is_accepted():
    found = select(of(TRUTH), of(ELSEWHERE))
    assert found.accepted
    assert found.regions.of("baseline")
    assert not found.regions.of("learned")


def test_a_refuted_baseline_is_not_returned_as_if_all_were_well():
    def fails(problem, data):
        raise RuntimeError("diverged")

    found = select(fails, of(ELSEWHERE))
    assert found.status == "undecided"
    assert found.candidates["learned"].status == "rejected"
    assert "the baseline is refuted" in found.reason
    assert "diverged" in found.reason
    np.testing.assert_array_equal(found.parameter, ELSEWHERE)


def test_of_several_a_refuted_one_is_left_out():
    learned = {"blob": of(HALLUCINATION), "good": of(TRUTH)}
    found = select(learned, of(2.0 * ELSEWHERE), tolerance=1e3)
    assert found.selected == "good"
    assert found.candidates["blob"].status == "rejected"
    assert found.regions.head == ("region", "the data say", "baseline", "blob", "good")


def test_it_is_saved(tmp_path):
    for learned in (of(HALLUCINATION), {"blob": of(HALLUCINATION), "good": of(TRUTH)}):
        found = select(learned, of(ELSEWHERE))
        found.save(tmp_path / "s.json")
        again = fc.Selection.load(tmp_path / "s.json")
        assert again.to_dict() == found.to_dict()
        assert str(again) == str(found)
        assert again.regions.rows() == found.regions.rows()
        assert json.loads((tmp_path / "s.json").read_text())["regions"]["values"]["baseline"]


@pytest.mark.parametrize(
    "change",
    [
        lambda claims: claims.update(intervals=[]),
        lambda claims: claims["values"].update(baseline=[1.0]),
        lambda claims: claims["values"].update(baseline=["much"] * 4),
        lambda claims: claims["intervals"][0].update(side="inner"),
        lambda claims: claims["intervals"][0].pop("lower"),
    ],
)
def test_damaged_regions_are_refused(change, tmp_path):
    path = rewritten(select(of(TRUTH)), tmp_path / "s.json", lambda record: change(record["regions"]))
    with pytest.raises(fc.InputError, match="damaged"):
        fc.Selection.load(path)


@pytest.mark.parametrize("regions", ["nowhere", [], [np.array([10**6])], [3.0]])
def test_regions_that_are_none(regions):
    with pytest.raises(fc.InputError):
        select(of(TRUTH), regions=regions)


def test_names_of_subdomains():
    mesh = MeshTri().refined(3).with_subdomains({"east": lambda x: x[0] > 0.5})
    basis = Basis(mesh, ElementTriP1())
    problem = fc.EllipticSource(
        basis, parameters=fc.SineSpace(basis, 2), sensors=fc.PointSensors(basis, [[0.3, 0.3], [0.7, 0.6], [0.5, 0.5]])
    )
    data = problem.simulate(problem.parameters.field([1.0, 0.5]), noise=0.01, seed=0)
    learned = fc.Candidate.from_coefficients(problem, [1.0, 0.5])
    found = fc.no_harm(problem, data, baseline=fc.Tikhonov(weight=1e-6), learned=learned, regions="east")
    assert found.regions.table["east"].contains(fc.Mean(basis, "east").value(problem.parameters, learned.parameter))


def test_where_the_data_say_nothing_nothing_is_decided():
    problem = fc.EllipticSource(BASIS, parameters=fc.FullSpace(BASIS), sensors=SENSORS)
    found = fc.no_harm(
        problem, DATA, baseline=of(TRUTH), learned=of(TRUTH), rule=fc.ResidualRadius(), regions=CORNERS
    )
    assert found.status == "undecided"


def test_a_class_that_the_data_do_not_determine_says_so():
    # Eight modes from three sensors: rules on a class without a ball refuse as well, so ask for the regions alone.
    sensors = fc.PointSensors(BASIS, [[0.3, 0.3], [0.7, 0.6], [0.5, 0.5]])
    problem = fc.EllipticSource(BASIS, parameters=fc.SineSpace(BASIS, 8), sensors=sensors)
    regions = Regions(problem, fc.Data.gaussian(np.ones(3), std=0.1), CORNERS[0])
    assert regions.table is None
    assert regions.failure.startswith("the regions cannot be judged: the class has 8 coordinates, which 3 data do not")


def test_a_nonlinear_problem_is_undecided():
    setup = pose.coefficient("tri P1")
    c = np.full(setup.problem.parameters.dimension, 0.1)
    basis = setup.problem.parameters.basis
    found = fc.no_harm(
        setup.problem, setup.data(c), baseline=fc.GaussNewton(weight=1e-4), learned=setup.candidate(c),
        rule=fc.ResidualRadius(), regions=fc.Mean(basis),
    )  # fmt: skip
    assert found.status == "undecided"
    assert found.reason.startswith("the regions cannot be judged: ")
    assert found.baseline is not None
    assert found.candidates["learned"].status == "undecided"


def test_weights_of_measured_values_give_an_estimate():
    data = fc.Data.gaussian(DATA.values, relative=0.02, std=STD)
    found = select(of(TRUTH), data=data, rule=fc.ResidualRadius())
    assert "as an estimate" in found.regions.words
    again = fc.RegionClaims.from_dict(found.regions.to_dict())
    assert again.table[0].lower.side == "estimate"


def test_a_truth_is_refuted_no_more_often_than_the_level():
    trials, rng = 400, np.random.default_rng(0)
    refuted = undecided = 0
    for seed in range(trials):
        truth = blob(*rng.uniform(0.2, 0.8, 2), rng.uniform(0.02, 0.2), rng.uniform(-1.0, 1.0))
        assert SPACE.ball_norm(truth) <= 1.0
        claims = Regions(PROBLEM, noisy(truth, seed), CORNERS).claims({"truth": of(truth)})
        refuted += claims is not None and bool(claims.of("truth"))
        undecided += claims is None
    assert refuted <= binom.ppf(0.999, trials, 0.05)
    assert undecided <= binom.ppf(0.999, trials, 0.05)


def test_a_truth_without_noise_is_not_refuted():
    """Where the interval is a point but for rounding."""
    space = fc.SineSpace(BASIS, 3)
    problem = fc.EllipticSource(BASIS, parameters=space, sensors=SENSORS)
    truth = space.field([1.0, -2.0, 0.5])
    data = fc.Data(problem.observe(problem.solve(truth)), 0.0)
    candidate = fc.Candidate(problem.solve(truth), truth)
    found = fc.no_harm(problem, data, baseline=candidate, learned=candidate, rule=fc.ResidualRadius(), regions=CORNERS)
    assert found.accepted
    assert not found.regions.of("learned")


def test_data_that_the_class_does_not_explain_refute_nobody():
    off = fc.Data.gaussian(DATA.values + 0.1 * np.sign(np.arange(25) - 12.0), std=STD)
    found = select(of(TRUTH), of(TRUTH), data=off, rule=fc.ResidualRadius())
    assert found.status == "undecided"
    assert found.regions is None
