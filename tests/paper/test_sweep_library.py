"""The batched rules say what the library says of the same trial, built as a problem object."""

import numpy as np
import pytest
from sweep_helpers import RULES as LIBRARY
from sweep_helpers import single

from femcert.paper import RULES, Grid, paper_setting
from femcert.paper.grid import AXES
from femcert.paper.tally import Tally
from femcert.paper.trials import batches

SEED = 7
SETTING = paper_setting()
GRID = Grid()
# One for each of the 840 cells would take long; a step that is prime to all axes meets every value of each of them.
SAMPLE = range(3, 840, 23)


@pytest.fixture(scope="module")
def decisions_of():
    """``{trial: (batch, row, {rule: decision})}`` of the first replication."""
    found = {}
    for rows, trials in batches(SETTING, GRID, SEED, 0, 840):
        said = {name: rule(trials) for name, rule in RULES.items()}
        found |= {int(trial): (trials, i, said) for i, trial in enumerate(rows)}
    return found


def tolerance(trials, i):
    """1e-9, unless the condition number of the forward matrix leaves less of its smallest singular value.

    LAPACK's singular values err by ``p eps`` times the largest one, with the number of rows for p.
    """
    condition = trials.constant[i] * trials.fit.singular[i, 0]
    return max(1e-9, trials.values.shape[-1] * np.finfo(float).eps * condition)


def test_nearly_all_trials_are_compared_to_nine_digits(decisions_of):
    tolerances = np.array([tolerance(*decisions_of[trial][:2]) for trial in SAMPLE])
    assert np.mean(tolerances == 1e-9) > 0.9


@pytest.mark.parametrize("trial", SAMPLE)
def test_a_trial_agrees_with_the_library(decisions_of, trial):
    trials, i, said = decisions_of[trial]
    one = single(SETTING, GRID, SEED, trial)
    np.testing.assert_allclose(trials.values[i], one.data.values, rtol=0.0, atol=1e-12)
    c, _ = one.problem.parameters.project(one.baseline.parameter)
    # In norm: rounding mixes the components, also into those that are small.
    expected = one.problem.parameters.root @ c
    atol = tolerance(trials, i) * np.linalg.norm(expected)
    np.testing.assert_allclose(trials.baseline.x[i], expected, rtol=0.0, atol=atol)
    # Where residuals are rounding errors alone, two ways to compute them agree to that only.
    rounding, rel = trials.constant[i] * 1e-12, tolerance(trials, i)
    for name in LIBRARY:
        selection, decision = one.selection(name), said[name]
        assert selection.accepted == decision.accepted[i], name
        assert (selection.status == "undecided") == decision.undecided[i], name
        if decision.learned is not None:
            assert selection.baseline.radius.value == pytest.approx(decision.baseline[i], rel=rel, abs=rounding), name
            assert selection.learned.radius.value == pytest.approx(decision.learned[i], rel=rel, abs=rounding), name
        else:
            size = one.problem.parameters.norm(one.baseline.parameter) ** 2
            assert selection.comparison.margin == pytest.approx(decision.margin[i], rel=rel, abs=1e-9 * size), name


def test_the_sample_meets_every_setting_and_both_decisions(decisions_of):
    values = GRID.values(np.array(SAMPLE))
    for name in AXES:
        assert set(getattr(values, name).tolist()) == set(getattr(GRID, name))
    for name in RULES:
        decisions = {bool(decisions_of[trial][2][name].accepted[decisions_of[trial][1]]) for trial in SAMPLE}
        assert decisions == {True, False}, name


def test_a_trial_without_certificate_is_undecided_by_both():
    """Ten sensors so badly placed that sigma_min is zero to rounding."""
    grid = Grid(sensors=(10,), noise=(0.0,), perturbation=(0.0,), mismatch=(0.0,), replications=3000)
    bad = [
        (int(row), trials.constant[i], {name: rule(trials) for name, rule in RULES.items()}, i)
        for rows, trials in batches(SETTING, grid, SEED, 0, grid.trials)
        for i, row in enumerate(rows)
        if not np.isfinite(trials.constant[i])
    ][:3]
    assert bad
    for trial, _, said, i in bad:
        one = single(SETTING, grid, SEED, trial)
        for name in ("operational", "residual"):
            assert not said[name].accepted[i]
            assert said[name].ratio[i] == np.inf
            assert said[name].undecided[i]
            selection = one.selection(name)
            assert selection.status == "undecided"
            assert selection.baseline is None


def test_fewer_sensors_than_modes_certify_nothing():
    grid = Grid(sensors=(6,), noise=(0.01,), perturbation=(0.0,), mismatch=(0.0,), replications=4)
    [(_, trials)] = batches(SETTING, grid, SEED, 0, 4)
    for name, rule in RULES.items():
        assert not rule(trials).accepted.any(), name
        assert rule(trials).undecided.all(), name
    # Better candidates that were not judged are no false rejections.
    accepted, undecided, better = np.eye(3, dtype=bool)[0], np.eye(3, dtype=bool)[2], np.ones(3, dtype=bool)
    found = Tally.of("any", accepted, undecided, better, ~better)
    assert (found.trials, found.accepted, found.false_rejections, found.undecided) == (3, 1, 1, 1)
