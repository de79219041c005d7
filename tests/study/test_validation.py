"""The validation reproduces the paper from its own computations, and its checks can fail."""

from dataclasses import replace

import numpy as np
import pytest

from femcert import InputError
from femcert.study.validation import EXPERIMENTS, checks, heat, paper, stochastic, validate
from femcert.study.validation.checks import equals_printed
from femcert.study.validation.outcome import draw
from femcert.study.validation.setup import HEAT, POISSON, TOMOGRAPHY, candidate_seed, noise_seed


def rows_by_key(rows, *keys):
    return {tuple(row[key] for key in keys): row for row in rows}


def test_all_checks_pass(result):
    assert [str(check) for check in result.failures] == []
    assert result.passed
    assert len(result.checks) == 95
    assert result.experiments == EXPERIMENTS


@pytest.mark.parametrize("row", paper.DECISIONS, ids=lambda r: f"{r.experiment}-{r.scenario}-{r.candidate}")
def test_decision(result, row):
    rows = rows_by_key(result.decision_rows(), "experiment", "scenario", "candidate")
    computed = rows[row.experiment, row.scenario, row.candidate]
    assert computed["decision"] == row.decision
    assert (computed["radius_learned"] <= computed["radius_baseline"]) == (row.decision == "accept")
    for quantity in ("radius_baseline", "radius_learned"):
        assert 0.5 <= computed[quantity] / float(getattr(row, quantity)) <= 2.0


@pytest.mark.parametrize(
    ("experiment", "scenario", "sigma_min", "condition"),
    [
        ("Poisson source", "default", 0.00054408, 99.546),
        ("Poisson source", "default, consistent mass", 0.00053800, 100.66),
        ("Inverse heat", "T=0.02", 0.57193, 1.0629),
        ("Inverse heat", "T=0.08", 0.49231, 1.2312),
        ("Inverse heat", "T=0.16", 0.40261, 1.5007),
        ("Tomography", "default", 0.46529, 40.924),
    ],
)
def test_constants(result, experiment, scenario, sigma_min, condition):
    row = rows_by_key(result.stability_rows(), "experiment", "scenario")[experiment, scenario]
    assert row["sigma_min"] == pytest.approx(sigma_min, rel=1e-5)
    assert row["condition"] == pytest.approx(condition, rel=1e-4)
    assert row["constant"] == pytest.approx(1.0 / row["sigma_min"], rel=1e-9)


def test_rows_the_paper_does_not_have_are_left_empty(result):
    rows = rows_by_key(result.stability_rows(), "experiment", "scenario")
    for key in (("Poisson source", "default, consistent mass"), ("Tomography", "default, exact rays")):
        assert rows[key]["paper_sigma_min"] == rows[key]["paper_condition"] == ""


def test_shifted_relative_errors_are_norm_of_shift_over_norm_of_truth(result):
    rows = rows_by_key(result.decision_rows(), "experiment", "scenario", "candidate")
    for setup, scenario, candidate in (
        (POISSON, "default", "shifted learned"),
        (HEAT, "T=0.08", "shifted learned"),
        (TOMOGRAPHY, "default", "hallucinated learned"),
    ):
        outcome = next(o for o in result.outcomes if (o.scenario.setup, o.scenario.name) == (setup, scenario))
        expected = np.linalg.norm(setup.shift) / np.linalg.norm(outcome.scenario.truth)
        assert rows[setup.title, scenario, candidate]["relative_error"] == pytest.approx(expected, rel=1e-12)


def test_coverage_says_plainly_which_radii_miss_the_truth(result):
    rows = result.coverage_rows()
    missed = {(row["scenario"], row["candidate"]) for row in rows if not row["covered"]}
    assert missed == {(f"T={t:.2f}", "hallucinated high freq.") for t in (0.02, 0.08, 0.16)}
    for row in rows:
        assert row["covered"] == (row["sharpness"] >= 1.0)
        # What is called an upper bound must be one.
        assert row["covered"] or row["side"] == "estimate"


def test_stochastic_constants_and_sweep(result):
    assert f"{result.sweep.true_msr:.6f}" == "0.225193"
    assert f"{result.sweep.envelope:.6f}" == "3.084186"
    rows = result.stochastic_rows()
    assert [row["points"] for row in rows] == [20, 50, 100, 200, 500, 1000, 2000]
    bounds = [row["upper_bound"] for row in rows]
    assert bounds == sorted(bounds, reverse=True)
    assert all(row["coverage"] >= 0.95 for row in rows)


def test_heat_curve_passes_through_the_constants(result):
    times, constants = result.heat_curve
    single = heat.problem(times[20])
    sigma = np.linalg.svd(single.forward_matrix(), compute_uv=False)[-1]
    assert constants[20] == pytest.approx(1.0 / sigma, rel=1e-10)
    assert np.all(np.diff(constants) > 0.0)


def test_agreements_count_draws(result):
    counts = {(a.experiment, a.scenario, a.candidate): a for a in result.agreements}
    assert len(counts) == 16
    assert all(a.seeds == 10 for a in counts.values())
    # The one decision that depends on the draw; every other one never changes.
    assert counts.pop(("Poisson source", "default", "learned good")).agreement < 10
    assert all(a.agreement == 10 for a in counts.values())


def test_numbers_come_from_the_computation_not_from_the_table(result):
    other = validate(only=("poisson", "stochastic"), base_seed=7, robustness_seeds=0)
    mine = rows_by_key(result.decision_rows(), "experiment", "candidate")
    for row in other.decision_rows():
        same = mine[row["experiment"], row["candidate"]]
        assert row["radius_baseline"] != same["radius_baseline"]
        assert row["radius_learned"] != same["radius_learned"]
    assert other.sweep.rows[0].empirical_msr != result.sweep.rows[0].empirical_msr
    again = validate(only=("poisson",), robustness_seeds=0)
    assert again.decision_rows() == [row for row in result.decision_rows() if row["experiment"] == "Poisson source"]


def test_seeds_of_scenarios_are_distinct():
    seeds = [f(base, n) for base in (1, 2, 101) for n in range(7) for f in (noise_seed, candidate_seed)]
    assert len(set(seeds)) == len(seeds)


def test_candidates_are_those_of_the_paper():
    case = heat.scenarios()[1]
    outcome = draw(case, 3)
    good, hallucinated, shifted = (v.candidate for v in outcome.verdicts)
    x = case.problem.basis.doflocs[0]
    assert np.allclose(hallucinated.parameter - good.parameter, 0.15 * np.sin(30 * np.pi * x), atol=1e-14)
    assert np.allclose(hallucinated.state, case.problem.solve(hallucinated.parameter))
    c, remainder = case.problem.parameters.project(shifted.parameter)
    assert np.allclose(c - case.truth, [0, 0, 0.65, -0.5, 0.35, -0.25, 0, 0], atol=1e-12)
    assert np.allclose(remainder, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("value", "printed", "equal"),
    [
        (0.00054408, "0.0005441", True),
        (0.00054404, "0.0005441", False),
        (1837.97, "1838", True),
        (1838.6, "1838", False),
        (23.896, "23.90", True),
        (23.894, "23.90", False),
        (float("nan"), "1.0", False),
        (float("inf"), "1.0", False),
    ],
)
def test_printed_digits(value, printed, equal):
    assert equals_printed(value, printed) is equal


FIELDS = [
    ("DECISIONS", "decision", lambda text: "accept" if text == "reject" else "reject"),
    ("DECISIONS", "radius_baseline", lambda text: str(5 * float(text))),
    ("DECISIONS", "radius_learned", lambda text: str(5 * float(text))),
    ("DECISIONS", "relative_error", lambda text: str(5 * float(text))),
    ("STABILITY", "sigma_min", lambda text: str(1.2 * float(text))),
    ("STABILITY", "constant", lambda text: str(1.2 * float(text))),
    ("STABILITY", "condition", lambda text: str(1.2 * float(text))),
    ("SWEEP", "empirical_msr", lambda text: str(2 * float(text))),
    ("SWEEP", "upper_bound", lambda text: str(2 * float(text))),
]


@pytest.mark.parametrize(("table", "field", "change"), FIELDS, ids=[f"{t}-{f}" for t, f, _ in FIELDS])
def test_every_comparison_with_a_printed_value_can_fail(result, monkeypatch, table, field, change):
    rows = getattr(paper, table)
    for i, row in enumerate(rows):
        tampered = replace(row, **{field: change(getattr(row, field))})
        monkeypatch.setattr(paper, table, (*rows[:i], tampered, *rows[i + 1 :]))
        failed = [check for check in checks.all_checks(result) if not check.passed]
        if field != "radius_baseline" or row.candidate == "learned good":
            assert {check.quantity for check in failed} == {field}


def test_stochastic_constants_and_coverage_can_fail(result, monkeypatch):
    monkeypatch.setattr(paper, "TRUE_MSR", "0.225194")
    monkeypatch.setattr(paper, "ENVELOPE", "3.084187")
    low = tuple(replace(row, coverage=0.94) for row in result.sweep.rows)
    worse = replace(result, sweep=replace(result.sweep, rows=low))
    failed = [check.quantity for check in checks.all_checks(worse) if not check.passed]
    assert sorted(failed) == ["coverage"] * 7 + ["envelope", "true_msr"]


def test_no_checks_is_no_pass(result):
    assert not replace(result, checks=()).passed


def test_only_some(result):
    some = validate(only=("stochastic", "tomography"), robustness_seeds=0)
    assert some.experiments == ("tomography", "stochastic")
    assert some.passed
    assert some.heat_curve is None
    assert {row["experiment"] for row in some.decision_rows()} == {"Tomography"}


@pytest.mark.parametrize("only", [("nonsense",), (), ("poisson", "Heat")])
def test_unknown_experiment(only):
    with pytest.raises(InputError, match="poisson, heat, tomography, coefficient, stochastic"):
        validate(only=only)


def test_residual_field_is_the_papers():
    assert stochastic.residual_field(np.array([0.0]))[0] == pytest.approx(0.0, abs=1e-9)
    assert stochastic.residual_field(np.array([0.72]))[0] == pytest.approx(
        1.5 + 0.3 * np.sin(6 * np.pi * 0.72), abs=1e-9
    )
