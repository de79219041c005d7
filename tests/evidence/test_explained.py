"""Candidates judged as a whole: distances by hand, noise of every kind, and what is refused."""

import numpy as np
import pytest
import zoo
from scipy.stats import chi2

import femcert as fc
from femcert.linalg import installed_backends


def identity(n=3):
    return fc.ForwardMap(np.eye(n))


def nothing(n=3):
    return fc.Candidate(None, np.zeros(n), name="nothing")


def test_distances_by_hand():
    """Of the misfit (3, 4, 0) in deviations a model error of size 1 along the second axis explains 1: (3, 3, 0)."""
    data = fc.Data.gaussian([0.3, 0.4, 0.0], std=0.1)
    found = fc.explained(identity(), data, nothing())
    assert found.distance == pytest.approx(5.0, rel=1e-12)
    assert found.beyond == pytest.approx(5.0, rel=1e-9)
    assert found.allowed == pytest.approx(np.sqrt(chi2.ppf(0.95, 3)), rel=1e-9)
    assert found.p_value == pytest.approx(chi2.sf(25.0, 3), rel=1e-6)
    assert found.refuted
    assert found.confidence == pytest.approx(0.95)
    with_model = data.with_model_error(matrix=[[0.0], [0.1], [0.0]], size=1.0)
    found = fc.explained(identity(), with_model, nothing())
    assert found.distance == pytest.approx(5.0, rel=1e-12)
    # From below: directions are tried on a grid.
    assert 3.0 * np.sqrt(2.0) * (1.0 - 1e-3) < found.beyond <= 3.0 * np.sqrt(2.0)
    assert found.refuted
    assert "nothing is not the truth" in found.claim
    larger = data.with_model_error(matrix=0.1 * np.eye(3), size=5.0)
    found = fc.explained(identity(), larger, nothing())
    assert found.beyond < 1e-6
    assert not found.refuted
    assert found.claim == "the data do not contradict nothing"


def test_a_noise_level_and_a_missing_reading():
    found = fc.explained(identity(), fc.Data([0.3, 0.0, 0.4], 0.6), nothing())
    assert found.distance == pytest.approx(0.5, rel=1e-12)
    assert (found.refuted, found.p_value, found.confidence) == (False, 1.0, 1.0)
    assert fc.explained(identity(), fc.Data([0.3, 0.0, 0.4], 0.4), nothing()).refuted
    found = fc.explained(identity(), fc.Data.gaussian([0.3, np.nan, 0.4], std=0.1), nothing())
    assert found.distance == pytest.approx(5.0, rel=1e-12)
    assert found.p_value == pytest.approx(chi2.sf(25.0, 2), rel=1e-6)


def test_exact_data_and_the_truth():
    """Rounding refutes nothing."""
    truth = np.random.default_rng(0).standard_normal(40)
    problem = fc.ForwardMap(np.vander(np.linspace(0.0, 1.0, 60), 40))
    data = fc.Data(problem.predict(None, truth), 0.0)
    assert not fc.explained(problem, data, fc.Candidate(None, truth)).refuted


def test_what_is_refused():
    with pytest.raises(fc.InputError):
        fc.explained(identity(), fc.Data([0.0], 1.0), nothing())
    with pytest.raises(fc.InputError):
        fc.explained(identity(), fc.Data.gaussian(np.zeros(3), std=1.0), "nothing")
    unknown = fc.Data.gaussian(np.arange(3.0), std="unknown")
    with pytest.raises(fc.UncertifiedError, match="unknown"):
        fc.explained(identity(), unknown, nothing())


@pytest.mark.skipif("multigrid" not in installed_backends(), reason="needs pyamg")
def test_what_solves_leave_is_no_evidence():
    """An iteration that ends at 1e-4 moves predictions by many deviations of 1e-8; the truth is not refuted for it."""
    basis = zoo.unit_basis("tri P1", 24)
    truth = np.sin(3.0 * basis.doflocs[0]) + basis.doflocs[1]

    def model():
        return zoo.source(basis, parameters=fc.FullSpace(basis).within_ball(1e4))

    data = fc.Data.gaussian(model().simulate(truth).values, std=1e-8)
    with fc.use_backend("multigrid", tolerance=1e-4):
        problem = model()
        found = fc.explained(problem, data, fc.Candidate(problem.solve(truth), truth))
        known = fc.evidence(problem, data).explains(truth)
    assert found.distance > found.allowed
    assert not found.refuted
    assert known


def test_the_p_value_counts_model_errors_that_are_larger_than_those_of_samples():
    """The set holds a further error with 80 %, so that no p-value is below 20 %, and a truth is refuted below 25 %."""
    data = fc.Data.gaussian(np.zeros(2), std=1e-3)
    data = data.with_model_error(np.random.default_rng(0).standard_normal((60, 2)), confidence=0.8)
    found = fc.explained(identity(2), data.with_values([10.0, 0.0]), nothing(2))
    assert found.refuted
    assert found.confidence == pytest.approx(0.75)
    assert found.p_value == pytest.approx(0.2)
