"""Rules for solvers: harm is as rare as is said for truths like the samples, and better candidates are accepted."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta, betabinom, binom

import femcert as fc
from femcert.certificate.calibrated import CalibratedJudge

sys.path.insert(0, str(Path(__file__).parents[1] / "evidence"))

from l_shape_truths import blobs, deviation, discs, l_shape_basis, l_shape_problem, readings, shifted
from zoo import coefficient

SAMPLES, TESTS, NOISE = 500, 300, 0.05


def ridge(problem, weight, name):
    """Tikhonov with a fixed weight as one matrix, so that hundreds of trials are quick."""
    F = problem.forward_matrix()
    solve = np.linalg.solve(F.T @ F + weight * np.linalg.norm(F, 2) ** 2 * np.eye(F.shape[1]), F.T)
    return lambda p, data: fc.Candidate.from_coefficients(p, solve @ data.values, name=name)


def trained(problem, truths, std, seed=2):
    """A linear map that was fitted to simulated measurements of truths."""
    y = readings(problem, truths)
    y = y + std * np.random.default_rng(seed).standard_normal(y.shape)
    A, c = np.hstack([y, np.ones((len(y), 1))]), np.array([problem.parameters.project(q)[0] for q in truths])
    W = np.linalg.lstsq(A, c, rcond=None)[0]
    return lambda p, data: fc.Candidate.from_coefficients(p, np.append(data.values, 1.0) @ W, name="map")


@cache
def l_shape():
    """Problem, data, baseline and learned solver, and the rule after its trials."""
    basis = l_shape_basis(3)
    problem = l_shape_problem(lambda b: fc.EigenmodeSpace(b, 12), refined=3)
    truths = blobs(basis, 1000, 1)
    std = deviation(problem, truths, NOISE)
    baseline, learned = ridge(problem, 1e-4, "ridge"), trained(problem, truths, std)
    data = fc.Data.gaussian(measurement(problem, blobs(basis, 1, 7)[0], std, 8), std=std)
    rule = fc.Calibrated(samples=blobs(basis, SAMPLES, 3))
    return problem, data, baseline, learned, rule.calibrated(problem, data, baseline=baseline, learned=learned)


def measurement(problem, truth, std, seed):
    return readings(problem, truth[None])[0] + std * np.random.default_rng(seed).standard_normal(33)


def distances(problem, candidates, truth):
    return [problem.parameters.norm(c.parameter - truth) for c in candidates]


def outcomes(truths, seed):
    """(accepted, better, worse) of the prepared rule for measurements of truths, None where it does not decide."""
    problem, data, baseline, learned, rule = l_shape()
    std = float(np.sqrt(data.covariance[0]))
    found = []
    for i, truth in enumerate(truths):
        new = data.with_values(measurement(problem, truth, std, [seed, i]))
        pair = baseline(problem, new), learned(problem, new)
        base, other = distances(problem, pair, truth)
        try:
            judge = rule.prepare(problem, new, {"baseline": baseline, "learned": learned})
        except fc.UncertifiedError:
            found.append((False, other < base, other > base, False))
            continue
        found.append((judge.compare(*pair).accepts(0.0), other < base, other > base, True))
    return np.array(found)


@cache
def like_the_samples():
    return outcomes(blobs(l_shape_basis(3), TESTS, 11), 12)


def test_harm_is_rare_and_power_is_there():
    accepted, better, worse, _ = like_the_samples().T
    harmed = int(np.sum(accepted & worse))
    # At most 5 % beyond what so many tests may show by chance.
    assert harmed <= binom.ppf(0.99, TESTS, 0.05)
    assert beta.ppf(0.01, max(harmed, 1), TESTS - harmed + 1) <= 0.05
    # Without a rule it would be more.
    assert np.sum(worse) > 0.07 * TESTS
    assert np.sum(accepted & better) >= 0.7 * np.sum(better)
    # What it says of itself is what happens.
    found = l_shape()[4].calibration
    assert abs(np.sum(accepted & better) / np.sum(better) - found.power) < 0.1
    assert found.harm_rate <= found.bound <= 0.05


def test_data_like_those_of_the_samples_are_judged():
    decided = like_the_samples()[:, 3]
    assert np.sum(~decided) <= binom.ppf(0.99, TESTS, 0.02)


def test_visible_shift_is_not_judged():
    *_, decided = outcomes(shifted(l_shape_basis(3), 100, 13), 14).T
    assert np.mean(~decided) > 0.9
    problem, data, baseline, learned, rule = l_shape()
    far = data.with_values(measurement(problem, 3.0 * shifted(l_shape_basis(3), 1, 0)[0], 1e-4, 0))
    selection = fc.no_harm(problem, far, baseline=baseline, learned=learned, rule=rule)
    assert selection.status == "undecided"
    assert "unlike those of the 500 samples (conformal p-value" in selection.reason


def test_a_selection_shows_both_claims(tmp_path):
    problem, data, baseline, learned, rule = l_shape()
    selection = fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=rule)
    found = rule.calibration
    assert selection.accepted
    assert selection.comparison.score >= found.threshold
    for words in ("for truths like the 500 samples", "confidence 95 %", "250 trials", "where no sensor sees it"):
        assert words in selection.reason
    # The radius of the class, and where it is from.
    assert selection.learned.radius.side == "upper"
    assert selection.learned.radius.source == "ExactRadius, for every truth of the class"
    exact = fc.certify(problem, data, learned(problem, data), fc.ExactRadius())
    assert selection.learned.radius.value == exact.radius.value
    selection.save(tmp_path / "selection.json")
    loaded = fc.Selection.load(tmp_path / "selection.json")
    assert loaded.comparison == selection.comparison
    assert str(loaded) == str(selection)
    page = fc.write_report(selection, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "harm rate, at most, for truths like the samples" in page
    fc.write_fields(selection, tmp_path / "fields.vtu")


def test_a_solver_that_is_never_better_is_rejected(tmp_path):
    problem, data, baseline, _, _ = l_shape()

    def wrong(p, d):
        # A blob where none is.
        return fc.Candidate.from_coefficients(p, p.parameters.project(baseline(p, d).parameter + HALLUCINATION)[0])

    rule = fc.Calibrated(samples=blobs(problem.basis, 130, 3))
    selection = fc.no_harm(problem, data, baseline=baseline, learned=wrong, rule=rule)
    assert selection.status == "rejected"
    selection.save(tmp_path / "selection.json")
    assert str(fc.Selection.load(tmp_path / "selection.json")) == str(selection)
    fc.write_report(selection, tmp_path / "page.html")


HALLUCINATION = 0.5 * shifted(l_shape_basis(3), 1, 3)[0]


@cache
def blind():
    """Three coordinates of which the sensors see two; the learned solver knows the third of the samples."""
    observe = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    problem = fc.MatrixProblem(operator=np.eye(3), load=np.eye(3), observe=observe)
    half = np.linalg.pinv(observe)

    def solver(third):
        return lambda p, d: fc.Candidate.from_coefficients(p, half @ d.values + np.array([0.0, 0.0, third]))

    rng = np.random.default_rng(0)
    samples = 0.7 * rng.standard_normal((300, 3)) + np.array([0.0, 0.0, 3.0])
    data = fc.Data.gaussian(observe @ samples[0], std=0.1)
    return problem, data, solver(0.0), solver(3.0), fc.Calibrated(samples=samples[1:])


def test_invisible_shift_is_not_detected_and_the_reason_says_so():
    problem, data, baseline, learned, rule = blind()
    selection = fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=rule)
    # No radius holds for every truth: that of the trials stands there, as an estimate.
    assert selection.learned.radius.side == "estimate"
    assert "for every truth of the class there is no radius" in selection.learned.radius.source
    assert selection.learned.radius.value < selection.baseline.radius.value
    # A truth with the third coordinate zero has the same data; nothing can know.
    assert selection.accepted
    assert "as they do for a truth that differs where no sensor sees it" in selection.reason


@pytest.mark.parametrize("finished", ["baseline", "learned"])
@pytest.mark.parametrize("kind", [fc.Calibrated, fc.ConformalRadius])
def test_finished_candidates_are_not_judged(kind, finished):
    problem, data, baseline, learned, _ = l_shape()
    solvers = {"baseline": baseline, "learned": learned}
    solvers[finished] = solvers[finished](problem, data)
    selection = fc.no_harm(problem, data, **solvers, rule=kind(samples=blobs(problem.basis, 200, 3)))
    assert selection.status == "undecided"
    assert f"expected callables (problem, data) -> Candidate for {finished}" in selection.reason


def test_too_few_samples_and_noise_without_a_law():
    problem, data, baseline, learned, _ = l_shape()
    solvers = {"baseline": baseline, "learned": learned}
    few = fc.Calibrated(samples=blobs(problem.basis, 116, 3))
    with pytest.raises(fc.UncertifiedError, match=r"leave 58 trials .* at least 59 .* expected 117 samples"):
        few.prepare(problem, data, solvers)
    rule = fc.Calibrated(samples=blobs(problem.basis, 130, 3))
    with pytest.raises(fc.UncertifiedError, match="simulated from a law"):
        rule.prepare(problem, fc.Data(data.values, 1.0), solvers)
    assert fc.no_harm(problem, data, **solvers, rule=few).status == "undecided"


def test_a_prepared_rule_is_for_its_solvers_sensors_and_noise():
    problem, data, baseline, learned, rule = l_shape()
    with pytest.raises(fc.InputError, match="other solvers"):
        rule.prepare(problem, data, {"baseline": learned, "learned": baseline})
    other = fc.Data.gaussian(data.values, std=0.1)
    with pytest.raises(fc.InputError, match="another problem or noise"):
        rule.prepare(problem, other, {"baseline": baseline, "learned": learned})


def test_a_sampler_draws_truths_and_the_seed_repeats_them():
    problem, data, baseline, learned, _ = blind()
    options = {"sampler": lambda rng: rng.standard_normal(3) + np.array([0.0, 0.0, 3.0]), "trials": 130}
    first, again, other = (
        fc.Calibrated(**options, seed=seed).calibrated(problem, data, baseline=baseline, learned=learned).calibration
        for seed in (0, 0, 1)
    )
    assert first.to_dict() == again.to_dict()
    assert first.to_dict() != other.to_dict()
    assert first.samples == 130


def test_a_solver_may_fail_in_trials():
    problem, data, baseline, learned, rule = blind()

    def fragile(p, d):
        if d.values[0] < -0.5:
            raise fc.SolveError("no convergence")
        return learned(p, d)

    found = rule.calibrated(problem, data, baseline=baseline, learned=fragile).calibration
    whole = rule.calibrated(problem, data, baseline=baseline, learned=learned).calibration
    # What failed is not accepted, and no quantile is known of its errors.
    assert 0 < found.accepted < whole.accepted
    assert found.radii == {}
    with pytest.raises(fc.UncertifiedError, match="learned solver failed in"):
        fc.ConformalRadius(samples=rule.samples).prepare(problem, data, {"baseline": baseline, "learned": fragile})


def test_a_model_error_enters_the_trials():
    problem, data, baseline, learned, rule = blind()
    wrong = data.with_model_error(matrix=np.eye(3), size=0.5)
    solvers = {"baseline": baseline, "learned": learned}
    with pytest.raises(fc.UncertifiedError, match="the samples none"):
        rule.prepare(problem, wrong, solvers)
    errors = 0.5 * np.ones((len(rule.samples), 3)) / np.sqrt(3.0)
    judge = fc.Calibrated(samples=fc.Samples(rule.samples, errors)).prepare(problem, wrong, solvers)
    assert isinstance(judge, CalibratedJudge)
    assert judge.calibration.radii["learned"] > 0.3


def test_relative_noise_is_that_of_the_true_readings():
    problem, data, baseline, learned, rule = blind()
    relative = fc.Data.gaussian(data.values, relative=0.1, std=0.1, reference=1.0)
    judge = rule.prepare(problem, relative, {"baseline": baseline, "learned": learned})
    samples = fc.Samples(rule.samples)
    readings_ = samples.readings(problem, relative)
    noise = samples.measured(relative, readings_) - readings_
    assert np.std(noise / np.hypot(0.1 * readings_, 0.1)) == pytest.approx(1.0, abs=0.1)
    assert judge.calibration.power > 0.8
    # The law depends on the data, so that trials are not for others.
    with pytest.raises(fc.InputError, match="another problem or noise"):
        judge.rule.prepare(problem, relative.with_values(data.values + 1.0), dict(judge.calibration.solvers))


@pytest.mark.parametrize("kind", [blobs, discs])
def test_a_conformal_radius_covers_truths_like_the_samples(kind):
    problem, data, baseline, learned, _ = l_shape()
    basis, std, n, tests = problem.basis, float(np.sqrt(data.covariance[0])), 200, 300
    rule = fc.ConformalRadius(samples=kind(basis, n, 21))
    selection = fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=rule)
    radii = [selection.baseline.radius.value, selection.learned.radius.value]
    missed = int(np.floor((n + 1) * 0.05 + 1e-9))
    least = betabinom.ppf(0.0025, tests, n + 1 - missed, missed)
    covered = np.zeros(2)
    for i, truth in enumerate(kind(basis, tests, 22)):
        new = data.with_values(measurement(problem, truth, std, [23, i]))
        covered += np.array(distances(problem, (baseline(problem, new), learned(problem, new)), truth)) <= radii
    assert np.all(covered >= least)
    assert np.all(covered < tests)
    # A decision radius, which says so.
    assert selection.accepted == (radii[1] <= radii[0])
    for certificate in (selection.baseline, selection.learned):
        assert (certificate.radius.side, certificate.scope) == ("estimate", "estimate")
        assert "200 samples, a decision radius" in certificate.radius.source
    assert "quantiles of the errors of both solvers" in selection.reason


def test_a_conformal_radius_needs_solvers_and_samples():
    problem, data, baseline, learned, _ = l_shape()
    candidate = learned(problem, data)
    with pytest.raises(fc.UncertifiedError, match="runs both solvers"):
        fc.certify(problem, data, candidate, fc.ConformalRadius(samples=blobs(problem.basis, 30, 0)))
    few = fc.ConformalRadius(samples=blobs(problem.basis, 18, 0))
    with pytest.raises(fc.InputError, match="at least 19"):
        few.prepare(problem, data, {"baseline": baseline, "learned": learned})
    # Nothing says which solver made a candidate: the larger radius.
    judge = fc.ConformalRadius(samples=blobs(problem.basis, 30, 0)).prepare(
        problem, data, {"baseline": baseline, "learned": learned}
    )
    assert judge.certify(candidate).radius.value == max(judge.radii.values())


def test_several_candidates_share_harm_and_confidence():
    problem, data, baseline, learned, _ = l_shape()
    rule = fc.Calibrated(samples=blobs(l_shape_basis(3), SAMPLES, 3))
    several = {"map": learned, "smoother": ridge(problem, 1e-3, "smoother")}
    found = fc.no_harm(problem, data, baseline=baseline, learned=several, rule=rule)
    assert found.status != "undecided"
    for name, verdict in found.candidates.items():
        calibration = verdict.comparison.calibration
        assert calibration["harm"] == pytest.approx(0.025), name
        assert calibration["confidence"] == pytest.approx(0.975)
        # As if it were alone at this level.
        alone = fc.no_harm(
            problem, data, baseline=baseline, learned=several[name],
            rule=fc.Calibrated(samples=rule.samples, harm=0.025, confidence=0.975),
        )  # fmt: skip
        assert verdict.status == alone.status
        assert calibration["threshold"] == alone.comparison.calibration["threshold"]
    with pytest.raises(fc.InputError, match="names"):
        fc.no_harm(problem, data, baseline=baseline, learned={}, rule=rule)
    # Trials that were made for one candidate at the whole level do not serve several.
    assert l_shape()[4].shared_by(2).calibration is None
    assert l_shape()[4].shared_by(1) is l_shape()[4]


def test_on_a_ball_of_the_full_space_the_radius_is_that_of_every_truth():
    basis = l_shape_basis(2)
    problem = l_shape_problem(lambda b: fc.FullSpace(b).within_ball(2.0), sensors=12, refined=2)
    F, m = problem.forward_matrix(), problem.observation_count
    maps = [F.T @ np.linalg.inv(F @ F.T + weight * np.linalg.norm(F, 2) ** 2 * np.eye(m)) for weight in (1e-6, 1e-3)]
    baseline, learned = (
        lambda p, d, map_=map_: fc.Candidate.from_coefficients(p, map_ @ d.values) for map_ in maps
    )
    truth = blobs(basis, 1, 30)[0]
    std = deviation(problem, blobs(basis, 100, 1), NOISE)
    y = problem.forward.apply(truth[:, None])[:, 0] + std * np.random.default_rng(31).standard_normal(m)
    selection = fc.no_harm(
        problem, fc.Data.gaussian(y, std=std), baseline=baseline, learned=learned,
        rule=fc.Calibrated(samples=blobs(basis, 130, 32)),
    )  # fmt: skip
    assert selection.accepted
    for certificate in (selection.baseline, selection.learned):
        assert certificate.radius.side == "upper"
        assert certificate.contains(truth)


def test_a_nonlinear_problem():
    problem = coefficient("line P1", 16)
    truths = 0.3 * np.random.default_rng(0).standard_normal((130, 2)) @ problem.parameters.matrix.T
    exact = problem.predict(problem.solve(truths[0]), truths[0])
    data = fc.Data.gaussian(exact, std=1e-3)

    def constant(c):
        return lambda p, d: fc.Candidate.from_coefficients(p, c)

    rule = fc.Calibrated(samples=truths[1:])
    found = rule.calibrated(problem, data, baseline=constant([3.0, 0.0]), learned=constant([0.0, 0.0])).calibration
    # Always better, whatever the score.
    assert found.power >= 0.9
    assert found.harmed == 0
