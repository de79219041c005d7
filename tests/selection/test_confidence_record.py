"""Both certificates of a selection from random points hold with the union bound's probability; the record says so."""

import numpy as np
import pytest
import zoo
from selector_helpers import select

import femcert as fc
from femcert.mesh.elements import mass_matrix
from femcert.residual.residuals import strong_field
from femcert.selection.reason import Confidence

RULE = fc.StochasticRadius(points=40, zeta=0.03, seed=2)


def selected(learned=None, rule=RULE):
    problem = zoo.source()
    data = problem.simulate(problem.parameters.field([1.0, 0.5, 0.2]), noise=0.02, seed=1)
    return select(problem, data, learned or fc.Tikhonov(weight=1e-9), rule=rule)


@pytest.mark.parametrize(
    ("learned", "accepted", "confidence", "words"),
    [
        (None, True, Confidence(0.03, 0.03), "both radii hold with probability at least 0.94"),
        (
            lambda p, d: fc.Candidate.from_coefficients(p, [9.0, 9.0, 9.0]),
            False,
            Confidence(0.03, 0.03),
            "the baseline's radius holds with probability at least 0.97",
        ),
        # An unusable one has no certificate that could fail.
        (
            lambda p, d: None,
            False,
            Confidence(0.03, None),
            "the baseline's radius holds with probability at least 0.97",
        ),
    ],
    ids=["accepted", "rejected", "unusable"],
)
def test_what_must_hold(learned, accepted, confidence, words, tmp_path):
    found = selected(learned)
    assert found.accepted is accepted
    assert found.confidence == confidence
    assert f"; {words} over the draw of the points" in found.reason
    found.save(tmp_path / "s.json")
    assert fc.Selection.load(tmp_path / "s.json").confidence == confidence


def test_rules_that_do_not_sample_leave_nothing_to_chance():
    for rule in (fc.ResidualRadius(), fc.ExactRadius(), fc.Dominance()):
        found = selected(rule=rule)
        assert rule.failure_probability is None
        assert found.confidence is None
        assert "confidence" not in found.to_dict()
        assert "probability" not in found.reason


def test_both_hold_as_often_as_promised():
    """Over many seeds: both physics bounds hold at least as often as the union bound says."""
    problem = zoo.source()
    rng = np.random.default_rng(0)
    held = []
    for seed in range(200):
        q = problem.parameters.field(rng.standard_normal(3))
        u = problem.solve(q)
        u[problem.free] += 0.01 * rng.standard_normal(len(problem.free))
        pair = [fc.Candidate(u, q), fc.Candidate(u + 0.1 * problem.solve(q), q)]
        rule = fc.StochasticRadius(points=30, zeta=0.1, seed=seed, bound="betting")
        judge = rule.judge(problem, fc.Data(problem.observe(u), 0.1))
        held.append(all(judge.physics(c, None).value >= population(problem, c) for c in pair))
    assert np.mean(held) >= 0.8


def population(problem, candidate):
    field = np.zeros(problem.basis.N)
    field[problem.free] = strong_field(problem, candidate.state, candidate.parameter)
    return np.sqrt(field @ mass_matrix(problem.basis) @ field)
