"""Several learned candidates: each has its verdict, the smallest radius of the accepted is taken, levels are shared."""

import numpy as np
import pytest
import zoo
from selector_helpers import BASELINE, OwnError, select
from zoo import solved

import femcert as fc


def near(problem, c, **options):
    return fc.Candidate.from_coefficients(problem, c, optimality=0.0, **options)


def raising(problem, data):
    raise OwnError("no weights")


def several(problem, data, truth, rule=None, **options):
    learned = {
        "far": near(problem, [9.0, 9.0, 9.0]),
        "solver": fc.Tikhonov(weight=1e-9),
        "broken": raising,
        "truth": solved(problem, truth),
        **options,
    }
    return select(problem, data, learned, rule=rule or fc.ExactRadius())


def test_every_candidate_has_a_verdict(problem, data, truth):
    found = several(problem, data, truth)
    status = {name: verdict.status for name, verdict in found.candidates.items()}
    assert (status["far"], status["solver"], status["broken"]) == ("rejected", "accepted", "rejected")
    assert list(found.candidates) == ["far", "solver", "broken", "truth"]
    assert found.candidates["broken"].certificate is None
    assert "OwnError: no weights" in found.candidates["broken"].reason
    assert found.candidates["far"].certificate.name == "far"
    accepted = {name: v.radius for name, v in found.candidates.items() if v.status == "accepted"}
    assert found.selected == min(accepted, key=accepted.get)
    assert found.learned.radius.value == min(accepted.values())
    assert found.reason.startswith(f"{found.selected!r}: ")
    assert set(found.case.candidates) == {"far", "solver", "truth"}
    np.testing.assert_array_equal(found.parameter, found.case.candidates[found.selected].parameter)


def test_each_verdict_is_that_of_the_candidate_alone(problem, data, truth):
    for rule in (fc.ExactRadius(), fc.Dominance(), fc.ResidualRadius(), fc.GuaranteedRadius()):
        found = several(problem, data, truth, rule)
        for name in ("far", "truth"):
            alone = select(problem, data, found.case.candidates[name], rule=rule)
            verdict = found.candidates[name]
            assert (verdict.status, verdict.reason) == (alone.status, alone.reason)
            assert verdict.certificate.radius == alone.learned.radius
            (only,) = alone.candidates.values()
            assert only.to_dict() == {**verdict.to_dict(), "certificate": alone.learned.to_dict()}


def test_ties_go_by_order(problem, data):
    first, second = (BASELINE(problem, data) for _ in range(2))
    found = select(problem, data, {"b": first, "a": second}, rule=fc.ExactRadius())
    assert found.accepted
    assert found.selected == "b"
    assert "accepted too, with no smaller radius: 'a'" in found.reason


def test_nothing_accepted_shows_the_smallest_radius(problem, data):
    c = [(9.0, 9.0, 9.0), (5.0, 5.0, 5.0), (7.0, 7.0, 7.0)]
    found = select(problem, data, {str(i): near(problem, each) for i, each in enumerate(c)}, rule=fc.ExactRadius())
    assert found.status == "rejected"
    assert found.selected == "baseline"
    assert found.learned.name == "1"
    assert found.decision == "learned candidates rejected, baseline kept"
    assert all(f"{name!r}: " in found.reason for name in "012")
    np.testing.assert_array_equal(found.case.learned.parameter, found.case.candidates["1"].parameter)


def missing(problem, data):
    raise ImportError("no torch here")


def test_a_candidate_that_cannot_be_made_here_leaves_it_undecided_unless_another_is_accepted(problem, data, truth):
    found = select(problem, data, {"net": missing, "far": near(problem, [9.0] * 3)}, rule=fc.ExactRadius())
    assert found.status == "undecided"
    assert found.candidates["far"].status == "rejected"
    assert "no torch here" in found.reason
    found = select(problem, data, {"net": missing, "least": fc.Tikhonov(weight=1e-9)}, rule=fc.ExactRadius())
    assert found.accepted
    assert found.candidates["net"].status == "undecided"


def test_the_probability_of_a_sampling_rule_is_divided(problem, data):
    solvers = {name: fc.Tikhonov(weight=w) for name, w in (("a", 1e-9), ("b", 1e-8), ("c", 1e-7))}
    found = select(problem, data, solvers, rule=fc.StochasticRadius(points=40, zeta=0.06, seed=1))
    assert found.rule["zeta"] == pytest.approx(0.02)
    assert found.confidence.zeta_base == pytest.approx(0.02)
    assert found.confidence.zeta_learn == pytest.approx(0.06)
    assert "hold with probability at least 0.92" in found.reason
    # One alone keeps its level.
    assert select(problem, data, solvers["a"], rule=fc.StochasticRadius(zeta=0.06)).rule["zeta"] == 0.06


def test_the_best_of_many_candidates_made_of_the_same_data_does_no_harm():
    """Least squares and its neighbours, chosen after the fact: none is accepted and worse more often than the level."""
    problem = zoo.source()
    truth = problem.parameters.field([0.5, -0.2, 0.1])
    exact, F, harm, trials = problem.observe(problem.solve(truth)), problem.forward_matrix(), 0, 150
    std = 0.02 * np.abs(exact).max()
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        y = exact + std * rng.standard_normal(len(exact))
        data = fc.Data.gaussian(y, std=std)
        least = np.linalg.lstsq(F, y, rcond=None)[0]
        learned = {str(i): near(problem, least * (1.0 - 0.1 * i)) for i in range(6)}
        found = fc.no_harm(problem, data, baseline=fc.Tikhonov(weight=1e-4), learned=learned)
        far = problem.parameters.norm
        harm += found.accepted and far(found.parameter - truth) > far(found.case.baseline.parameter - truth)
    assert found.rule["name"] == "Dominance"
    # 99.9 % quantile of Binomial(150, 5 %).
    assert harm <= 17


SEEN = []


class Solving(fc.ExactRadius):
    """A rule that looks at the solvers."""

    @property
    def uses_solvers(self):
        return True

    def prepare(self, problem, data, solvers=None):
        SEEN.append(dict(solvers))
        return super().prepare(problem, data, solvers)


def test_a_rule_that_uses_solvers_gets_those_of_each_candidate(problem, data, truth):
    SEEN.clear()
    learned = {"a": near(problem, [1.0] * 3), "b": fc.Tikhonov(weight=1e-9)}
    found = select(problem, data, learned, rule=Solving())
    assert [each["learned"] for each in SEEN] == list(learned.values())
    assert all(each["baseline"] is BASELINE for each in SEEN)
    assert found.accepted


@pytest.mark.parametrize("names", [(), ("",), ("baseline",), (3,), ("a", "baseline")])
def test_names_that_are_none(problem, data, truth, names):
    with pytest.raises(fc.InputError, match="names"):
        select(problem, data, dict.fromkeys(names, solved(problem, truth)))


def test_they_are_saved(problem, data, truth, tmp_path):
    for rule in (fc.ExactRadius(), fc.Dominance(), fc.StochasticRadius(points=20)):
        found = several(problem, data, truth, rule)
        found.save(tmp_path / "s.json")
        again = fc.Selection.load(tmp_path / "s.json")
        assert again.to_dict() == found.to_dict()
        assert again.selected == found.selected
        assert str(again) == str(found)
        assert [v.status for v in again.candidates.values()] == [v.status for v in found.candidates.values()]


def test_one_alone_is_not_saved_twice(problem, data, truth, tmp_path):
    found = select(problem, data, solved(problem, truth))
    assert "candidates" not in found.to_dict()
    found.save(tmp_path / "s.json")
    again = fc.Selection.load(tmp_path / "s.json").candidates
    assert [v.to_dict() for v in again.values()] == [found.candidates["learned"].to_dict()]
