"""Rules that ask the evidence: noise of known law, balls on full spaces, remainders, data in two parts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import chdtri
from scipy.stats import binom, norm

import femcert as fc
from femcert.problem.splitting import at_level, thinned

STD = 0.1


def span(m=14, k=6, spread=2.5):
    """Sensors that see the last coordinates badly."""
    rng = np.random.default_rng(0)
    observe = rng.standard_normal((m, k)) * np.logspace(0.0, -spread, k)
    return fc.MatrixProblem(operator=np.eye(k), load=np.eye(k), observe=observe)


def ball(m=8, k=20, radius=3.0):
    problem = span(m, k, 1.0)
    form = csr_matrix(np.diag(np.linspace(1.0, 8.0, k)))
    space = problem.parameters.within_ball(radius, norm=form)
    return fc.MatrixProblem(operator=np.eye(k), load=np.eye(k), observe=problem.forward_matrix(), parameters=space)


def measured(problem, truth, seed, **options):
    e = np.random.default_rng(seed).standard_normal(problem.observation_count)
    return fc.Data.gaussian(problem.forward_matrix() @ truth + STD * e, std=STD, **options)


def in_ball(problem, seed, share=0.9):
    q = np.random.default_rng(seed).standard_normal(problem.parameters.size)
    return q * share * problem.parameters.ball.radius / problem.parameters.ball_norm(q)


def candidate(q, name="learned"):
    return fc.Candidate(None, q, name=name)


def least_squares(problem, data):
    F = problem.forward_matrix()
    return candidate(np.linalg.lstsq(F, data.values, rcond=None)[0])


def select(problem, data, baseline, learned, rule, **options):
    return fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=rule, **options)


def most(trials, level, cells=1):
    return int(binom.ppf(1.0 - 0.01 / cells, trials, level))


def errors(problem, selection, truth):
    return [problem.parameters.norm(c.parameter - truth) for c in (selection.case.baseline, selection.case.learned)]


@pytest.mark.parametrize("make", [span, ball])
def test_radii_of_gaussian_data_are_those_of_the_evidence(make):
    problem = make()
    truth = in_ball(problem, 0) if problem.parameters.ball else np.ones(6)
    missed, refused, trials = 0, 0, 40
    for seed in range(trials):
        data = measured(problem, truth, seed)
        found = fc.evidence(problem, data).centre
        try:
            missed += not fc.certify(problem, data, found, fc.ExactRadius()).contains(truth)
        except fc.InconsistentError:
            refused += 1
    assert missed <= most(trials, 0.05)
    assert refused <= most(trials, 0.05)
    guess, data = candidate(truth * 0.7), measured(problem, truth, 0)
    certificate = fc.certify(problem, data, guess, fc.ExactRadius())
    assert certificate.radius.value == fc.evidence(problem, data).radius(guess.parameter).value
    assert (certificate.radius.side, certificate.radius.probability) == ("upper", pytest.approx(0.95))
    assert certificate.scope == "discrete"


@pytest.mark.parametrize("make", [span, ball])
def test_an_outlier_makes_no_radius_smaller(make):
    problem = make()
    truth = 0.1 * np.ones(problem.parameters.size)
    radii = []
    for outlier in (0.0, 2.0):
        values = measured(problem, truth, 0).values.copy()
        values[2] += outlier * STD
        centre = fc.evidence(problem, fc.Data.gaussian(values, std=STD)).centre
        certificate = fc.certify(problem, fc.Data.gaussian(values, std=STD), centre, fc.ExactRadius())
        radii.append(certificate.radius.value)
    assert radii[1] == pytest.approx(radii[0], rel=1e-6)
    values[2] += 100.0 * STD
    data = fc.Data.gaussian(values, std=STD)
    for rule in (fc.ExactRadius(), fc.Dominance()):
        found = select(problem, data, candidate(truth), candidate(truth), rule)
        assert found.status == "undecided"
        assert "p-value" in found.reason


def test_data_of_a_given_level_are_as_before():
    problem = ball(k=10)
    truth = in_ball(problem, 0)
    level = STD * np.sqrt(chdtri(8, 0.05))
    data = fc.Data(measured(problem, truth, 0).values, level)
    found = fc.certify(problem, data, candidate(0.5 * truth), fc.ExactRadius())
    assert found.radius.probability == 1.0
    assert found.contains(truth)


@pytest.mark.parametrize("make", [span, ball])
def test_an_unknown_deviation_is_estimated_by_the_evidence(make):
    problem, missed, accepted, trials = make(), 0, 0, 20
    truth = in_ball(problem, 0) if problem.parameters.ball else np.ones(6)
    for seed in range(trials):
        data = fc.Data.gaussian(measured(problem, truth, seed).values, std="unknown")
        missed += not fc.certify(problem, data, candidate(truth + 0.1), fc.ExactRadius()).contains(truth)
        found = select(problem, data, candidate(truth + 20.0), candidate(truth + 0.1), fc.Dominance())
        accepted += found.accepted
    assert missed <= most(trials, 0.05)
    assert accepted > 0
    assert 0.2 < found.baseline.noise_level / (STD * np.sqrt(chdtri(problem.observation_count, 0.05))) < 10.0
    assert found.comparison.probability == pytest.approx(0.95)
    scatter = STD * np.random.default_rng(0).standard_normal((40, len(data.values)))
    repeats = fc.Data.repeated(data.values + scatter, std=STD)
    assert fc.certify(problem, repeats, candidate(truth), fc.ExactRadius()).radius.side == "upper"


def test_the_residual_radius_on_a_ball_holds_where_the_evidence_says_so():
    problem = ball()
    truth, guesses = in_ball(problem, 0), (np.zeros(20), in_ball(problem, 1))
    data = measured(problem, truth, 0)
    for q in (truth, *guesses):
        found = fc.certify(problem, data, candidate(q), fc.ResidualRadius())
        asked = fc.evidence(problem, data).radius(q).value
        assert found.radius.side == ("upper" if asked <= found.radius.value else "estimate")
        assert found.radius.value >= problem.parameters.norm(q - truth)
    wrong = fc.Data.gaussian(data.values + 100.0 * STD * (np.arange(8) == 2), std=STD)
    with pytest.raises(fc.InconsistentError, match="p-value"):
        fc.certify(problem, wrong, candidate(truth), fc.ResidualRadius())


def test_a_remainder_counts_in_rules():
    with pytest.raises(fc.UncertifiedError, match="remainder"):
        fc.certify(with_remainder(0.5), fc.Data(np.zeros(14), 1.0), candidate(np.ones(6)), fc.ResidualRadius())
    near, far = (with_remainder(tau) for tau in (0.1, 0.5))
    truth = np.ones(6)
    truth[3:] = 0.0
    data = fc.Data.gaussian(near.forward_matrix_of(truth), std=STD)
    radii = [fc.certify(p, data, candidate(truth), fc.ExactRadius()).radius.value for p in (near, far)]
    assert radii[0] < radii[1]
    rng, harm, accepted, trials = np.random.default_rng(0), 0, 0, 150
    space = far.parameters
    for _ in range(trials):
        w = rng.standard_normal(6)
        w = space.project(w)[1]
        truth = space.field(rng.standard_normal(3)) + 0.5 * w / space.norm(w)
        exact = far.forward_matrix_of(truth)
        data = fc.Data.gaussian(exact + 0.1 * STD * rng.standard_normal(14), std=0.1 * STD)
        one, other = (candidate(truth + s * rng.standard_normal(6)) for s in (3.0, rng.choice([0.05, 3.0])))
        found = select(far, data, one, other, fc.Dominance())
        accepted += found.accepted
        worse = space.norm(other.parameter - truth) > space.norm(one.parameter - truth)
        harm += found.accepted and worse
    assert harm <= most(trials, 0.05)
    assert accepted > 0.2 * trials


def with_remainder(tau):
    class Few(fc.CoordinateSpace):
        def __init__(self):
            super().__init__(6)
            self.matrix = np.eye(6)[:, :3]

    class Whole(fc.MatrixProblem):
        def forward_matrix_of(self, q):
            return self.apply(q[:, None])[:, 0]

    observe = span(spread=0.5).forward_matrix()
    return Whole(operator=np.eye(6), load=np.eye(6), observe=observe, parameters=Few().with_remainder(tau))


RULES = {"simultaneous": fc.Dominance(), "thinning": fc.Dominance(thinning=1.0)}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("zeta", [0.05, 0.3])
def test_least_squares_against_tikhonov_is_harmless(name, zeta):
    """A test with the normal quantile of all data accepts least squares nearly always, though it is worse."""
    problem, trials = span(60, 40, 0.0), 150
    truth = 0.01 * np.random.default_rng(0).standard_normal(40)
    harm = naive = worse = 0
    A = problem.forward_matrix() / STD
    for seed in range(trials):
        data = measured(problem, truth, seed, confidence=1.0 - zeta)
        rule = RULES[name] if name == "simultaneous" else fc.Dominance(thinning=1.0, seed=seed + 10_000)
        found = select(problem, data, fc.Tikhonov(weight=1e6), least_squares, rule)
        if found.status == "undecided":
            continue
        base, learned = errors(problem, found, truth)
        worse += learned > base
        harm += found.accepted and learned > base
        d = found.case.learned.parameter - found.case.baseline.parameter
        x = np.linalg.lstsq(A, data.values / STD, rcond=None)[0]
        sizes = [c.parameter @ c.parameter for c in (found.case.learned, found.case.baseline)]
        width = -norm.ppf(zeta) * np.linalg.norm(np.linalg.pinv(A).T @ d)
        naive += (sizes[0] - sizes[1] - 2.0 * d @ x + 2.0 * width <= 0.0) and learned > base
    assert worse > 0.5 * trials
    assert harm <= most(trials, zeta, 4)
    if name == "simultaneous":
        assert naive > 0.5 * trials
    assert found.comparison.probability == pytest.approx(1.0 - zeta)


@pytest.mark.parametrize("thinning", [None, 0.5])
def test_on_a_ball_dominance_keeps_its_level_and_has_power(thinning):
    problem, trials = ball(), 40
    rng, harm, accepted, better = np.random.default_rng(1), 0, 0, 0
    for seed in range(trials):
        truth = in_ball(problem, seed)
        data = measured(problem, truth, seed)
        off = truth + rng.standard_normal(20)
        share = rng.choice([0.05, 1.3])

        def baseline(problem, data, off=off):
            return candidate(off + 0.05 * data.values[0])

        def learned(problem, data, off=off, truth=truth, share=share):
            return candidate(truth + share * (off - truth) + 0.05 * data.values[1])

        rule = fc.Dominance(thinning=thinning, seed=seed if thinning else None)
        found = select(problem, data, baseline, learned, rule)
        if found.status == "undecided":
            continue
        base, other = errors(problem, found, truth)
        better += other < base
        accepted += found.accepted
        harm += found.accepted and other > base
    assert harm <= most(trials, 0.05, 2)
    assert accepted >= 0.3 * better
    record = found.to_dict()["rule"]
    assert record.get("thinning") == thinning
    assert ("one part of the data" in found.comparison.how) == bool(thinning)
    if thinning:
        assert record["seed"] == trials - 1


def test_the_margin_is_the_worst_case_of_the_simultaneous_interval():
    problem, rng = ball(), np.random.default_rng(0)
    truth = in_ball(problem, 3)
    data = measured(problem, truth, 3)
    one, other = (candidate(rng.standard_normal(20), name) for name in ("baseline", "learned"))
    found = select(problem, data, one, other, fc.Dominance())
    d = other.parameter - one.parameter
    interval = fc.evidence(problem, data).interval(d, simultaneous=True)
    sizes = other.parameter @ other.parameter - one.parameter @ one.parameter
    assert found.comparison.margin == pytest.approx(sizes - 2.0 * interval.lower.value, rel=1e-9)
    # The truth that is shown has that margin.
    shown = [np.sum((c.parameter - found.comparison.truth) ** 2) for c in (other, one)]
    assert shown[0] - shown[1] == pytest.approx(found.comparison.margin, rel=1e-6)
    assert select(problem, data, one, one, fc.Dominance()).comparison.margin == 0.0
    wide = select(problem, data, one, other, fc.Dominance(zeta=0.5))
    assert wide.comparison.margin < found.comparison.margin
    assert wide.comparison.probability == pytest.approx(0.5)


def test_thinning_needs_solvers_and_a_known_law():
    problem = span()
    data = measured(problem, np.ones(6), 0)
    rule, solver = fc.Dominance(thinning=0.5), fc.Tikhonov(weight=1.0)
    for baseline, learned in ((solver, candidate(np.ones(6))), (candidate(np.ones(6)), least_squares)):
        found = select(problem, data, baseline, learned, rule)
        assert found.status == "undecided"
        assert "solvers" in found.reason
    found = select(problem, fc.Data(data.values, 1.0), solver, least_squares, rule)
    assert found.status == "undecided"
    assert "gaussian" in found.reason
    relative = fc.Data.gaussian(data.values, relative=0.1, std=STD, reference=1.0)
    assert "known deviations" in select(problem, relative, solver, least_squares, rule).reason
    with pytest.raises(fc.InputError, match="thinning"):
        fc.Dominance(thinning=0.0)
    with pytest.raises(fc.InputError, match="discrete"):
        fc.Dominance(thinning=1.0, guarantee="continuous")


def test_what_is_handed_out_was_made_from_the_first_part(tmp_path):
    problem, seen = span(), []
    truth = np.array([1.0, -0.5, 0.3, 0.2, 0.1, 0.1])
    data = measured(problem, truth, 0)

    def learned(problem, data):
        seen.append(data.values.copy())
        return candidate(truth)

    data = measured(problem, truth, 1)
    found = select(problem, data, lambda p, d: candidate(50.0 * truth), learned, fc.Dominance(thinning=0.5))
    assert found.accepted
    seed = found.rule["seed"]
    found.save(tmp_path / "s.json")
    loaded = fc.Selection.load(tmp_path / "s.json")
    assert (loaded.comparison.how, loaded.rule["seed"]) == (found.comparison.how, seed)
    first, second = thinned(data, 0.5, seed)
    assert np.array_equal(seen[0], first.values)
    again = select(problem, data, lambda p, d: candidate(50.0 * truth), learned, fc.Dominance(thinning=0.5, seed=seed))
    assert again.comparison.margin == found.comparison.margin
    assert np.allclose(first.values + 0.25 * second.values, 1.25 * data.values)


@pytest.mark.parametrize("form", ["std", "covariance"])
def test_both_parts_are_independent(form):
    rng, n = np.random.default_rng(0), 4000
    root = np.diag([1.0, 2.0, 0.5]) if form == "std" else rng.standard_normal((3, 3)) + 2.0 * np.eye(3)
    C = root @ root.T
    pairs = []
    for seed in range(n):
        y = root @ rng.standard_normal(3)
        data = fc.Data.gaussian(y, covariance=np.diag(C) if form == "std" else C)
        one, other = thinned(data, 0.7, seed)
        pairs.append(np.concatenate([one.values, other.values]))
    found = np.cov(np.array(pairs).T)
    size = np.sqrt(np.outer(np.diag(C), np.diag(C)))
    for block, factor in ((found[:3, :3], 1.49), (found[3:, 3:], 1.0 + 0.7**-2), (found[:3, 3:], 0.0)):
        assert np.all(np.abs(block - factor * C) <= 5.0 * max(factor, 2.1) * np.sqrt(2.0 / n) * size)
    np.testing.assert_allclose(one.covariance, 1.49 * data.covariance)


def test_another_level_of_the_same_data():
    data = fc.Data.gaussian([0.5, 0.6, np.nan], std=0.1)
    assert at_level(data, 0.05 + 1e-18) is data or at_level(data, 0.05).law.zeta == pytest.approx(0.05)
    assert at_level(data, 0.3).noise_level < data.noise_level
    relative = fc.Data.gaussian([0.5, 0.6], relative=0.1, std=0.01, reference=0.5)
    assert at_level(relative, 0.3).law.spent == pytest.approx(0.03)
    shifted = relative.with_model_error(np.random.default_rng(0).standard_normal((60, 2)))
    np.testing.assert_allclose(at_level(shifted, 0.3).values, shifted.values)
