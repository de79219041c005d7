"""What is the learned candidate's fault is a rejection; what is the fault of rule, baseline or set-up is undecided."""

import numpy as np
import pytest
import zoo
from selector_helpers import BASELINE, rewritten, select
from zoo import solved

import femcert as fc
from femcert.linalg import backends
from femcert.selection.selection import DECISIONS


def averages(n):
    return zoo.source(cells=n, sensors=zoo.discs([0.2, 0.4, 0.6, 0.8], radius=0.1))


def case_of(problem):
    truth = problem.parameters.field(0.3 / np.arange(1, problem.parameters.dimension + 1))
    return problem.simulate(truth, noise=0.02, seed=1), solved(problem, truth)


def check_undecided(found, *words):
    """Everything that an undecided selection promises."""
    assert found.status == "undecided"
    assert found.accepted is False
    assert found.decision == DECISIONS["undecided"]
    assert str(found).startswith("undecided, baseline kept: ")
    assert "rejected" not in str(found) + found._repr_html_()
    for word in words:
        assert word in found.reason, found.reason
    # No table with nothing in it.
    assert (len(str(found).splitlines()) == 1) == (found.baseline is None)
    assert ("<table" in found._repr_html_()) == (found.baseline is not None)


RULES = (
    fc.ResidualRadius(),
    fc.OperationalRadius(),
    fc.StochasticRadius(),
    fc.GuaranteedRadius(),
    fc.ExactRadius(),
    fc.Dominance(),
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_more_modes_than_sensors(rule, tmp_path):
    problem = zoo.source(cells=120, parameters=80, sensors=33)
    data, learned = case_of(problem)
    found = select(problem, data, learned, rule=rule)
    check_undecided(found, "80", "33", "expected")
    np.testing.assert_array_equal(found.parameter, BASELINE(problem, data).parameter)
    found.save(tmp_path / "s.json")
    assert fc.Selection.load(tmp_path / "s.json").to_dict() == found.to_dict()
    # Before there was a status, the file had none, and no certificate.
    rewritten(found, tmp_path / "old.json", lambda record: record.pop("status"))
    assert fc.Selection.load(tmp_path / "old.json").status == "undecided"


def test_a_mesh_too_coarse_for_the_rule():
    problem = averages(6)
    data, learned = case_of(problem)
    found = select(problem, data, learned, rule=fc.GuaranteedRadius())
    check_undecided(found, "refine")
    problem = averages(200)
    data, learned = case_of(problem)
    assert select(problem, data, learned, rule=fc.GuaranteedRadius()).status != "undecided"


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        (fc.GuaranteedRadius(), "ResidualRadius"),
        (fc.ExactRadius(guarantee="continuous"), "nonlinear"),
        (fc.Dominance(zeta=0.1), "covariance"),
        (fc.OperationalRadius(pde="certified", pde_norm="equilibrated"), "linear"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_rule_that_does_not_apply(rule, word):
    problem = zoo.coefficient(parameters=(fc.SineSpace, 2), sensors=6)
    data, learned = case_of(problem)
    check_undecided(select(problem, data, learned, rule=rule, baseline=fc.GaussNewton(weight=5e-3)), word)


@pytest.fixture
def no_cholmod(monkeypatch):
    monkeypatch.setenv(backends.VARIABLE, "cholmod")
    monkeypatch.setattr(backends, "is_installed", lambda name: name == "superlu")


def test_a_missing_package(no_cholmod, monkeypatch):
    monkeypatch.delenv(backends.VARIABLE)
    problem = zoo.source()
    data, learned = case_of(problem)
    baseline = BASELINE(problem, data)
    # The problem anew: it has factors already, and needs no backend.
    fresh = zoo.source()
    monkeypatch.setenv(backends.VARIABLE, "cholmod")
    check_undecided(select(fresh, data, learned, baseline=baseline, rule=fc.ExactRadius()), "pip install scikit-sparse")
    # Without a baseline there is nothing that could be returned.
    with pytest.raises(fc.InputError, match="scikit-sparse is not installed"):
        select(zoo.source(), data, learned)


def imports(p, d):
    import no_such_package  # noqa: F401


def needs_backend(p, d):
    with backends.use_backend("cholmod"):
        return BASELINE(p, d)


@pytest.mark.parametrize(("learned", "package"), [(imports, "no_such_package"), (needs_backend, "scikit-sparse")])
def test_a_learned_solver_whose_package_is_missing(problem, data, learned, package, monkeypatch):
    monkeypatch.setattr(backends, "is_installed", lambda name: name == "superlu")
    check_undecided(select(problem, data, learned), package)


class Failing(fc.ResidualRadius):
    """A rule that works for the baseline and fails for the learned candidate, or for both."""

    error = None
    fails_for = ("learned",)

    def prepare(self, problem, data, solvers=None):
        judge = super().prepare(problem, data, solvers)
        certify = judge.certify

        def failing(candidate):
            if candidate.name in self.fails_for:
                raise self.error
            return certify(candidate)

        judge.certify = failing
        return judge


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (fc.UncertifiedError("no constant"), "undecided"),
        (fc.CoarseMeshError("refine"), "undecided"),
        (fc.InconsistentError("no parameter explains the data", 0.3), "undecided"),
        (fc.SolveError("no factors"), "undecided"),
        (ImportError("no package"), "undecided"),
        (MemoryError("no memory"), "undecided"),
        (RuntimeError("a slip in the rule"), "undecided"),
        (fc.InputError("the candidate is odd"), "rejected"),
        (fc.errors.CandidateError("the candidate is odd"), "rejected"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whose_fault_it_is_that_the_learned_candidate_has_no_certificate(problem, data, truth, error, status, tmp_path):
    rule = type("Failing", (Failing,), {"error": error})()
    found = select(problem, data, solved(problem, truth), rule=rule)
    assert found.status == status
    assert str(error) in found.reason
    assert found.learned is None
    assert found.baseline is not None
    found.save(tmp_path / "s.json")
    assert fc.Selection.load(tmp_path / "s.json").status == status


@pytest.mark.parametrize("error", [fc.InconsistentError("contradicted", 0.3), fc.SolveError("x"), fc.InputError("x")])
def test_a_rule_or_a_baseline_that_fails(problem, data, truth, error):
    class Refusing(fc.ResidualRadius):
        def prepare(self, problem, data, solvers=None):
            raise error

    unable = type("Unable", (Failing,), {"error": error, "fails_for": ("baseline", "learned")})
    check_undecided(select(problem, data, solved(problem, truth), rule=Refusing()), str(error), "rule")
    check_undecided(select(problem, data, solved(problem, truth), rule=unable()), str(error), "baseline")


def test_functions_that_fail_are_the_candidates_own_fault(problem, data):
    alive = [True]

    def state(x):
        if not alive:
            raise ZeroDivisionError("gone")
        return 0.1 * np.sin(np.pi * x[0])

    learned = fc.Candidate.from_functions(problem, state=state, parameter=lambda x: np.sin(np.pi * x[0]))
    alive.clear()
    found = select(problem, data, learned, rule=fc.StochasticRadius(points=20))
    assert found.status == "rejected"
    assert "gone" in found.reason
