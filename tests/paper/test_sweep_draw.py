"""A trial's numbers do not depend on chunks or replications; grids and inputs are checked."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import kstest
from zoo import coefficient

from femcert import InputError, sweep
from femcert.paper import Grid, Setting, paper_setting
from femcert.paper.sweep import decide
from femcert.paper.trials import draw

SMALL = Grid(replications=2)


@pytest.fixture(scope="module")
def whole():
    return sweep(grid=SMALL, chunk=SMALL.trials)


@pytest.mark.parametrize("chunk", [1, 840, 1003, ])
def test_chunks_do_not_change_a_byte(whole, chunk):
    grid = SMALL if chunk > 1 else Grid(sensors=(10, 70), noise=(0.02,), replications=2)
    one = whole if chunk > 1 else sweep(grid=grid)
    assert sweep(grid=grid, chunk=chunk).records.tobytes() == one.records.tobytes()


def test_any_trial_alone_is_the_same(whole):
    setting = paper_setting()
    for trial in (0, 1, 839, 840, 1234, 1679):
        alone = decide(setting, SMALL, whole.seed, trial, trial + 1)
        assert alone.tobytes() == whole.records[trial : trial + 1].tobytes()


def test_more_replications_change_no_trial(whole):
    more = sweep(grid=Grid(replications=3))
    assert more.records[: SMALL.trials].tobytes() == whole.records.tobytes()


def test_draws_are_what_they_should_be():
    draws = draw(5, 0, 4000, sites=120, dimension=10)
    rows = np.arange(4000)
    sites = draws.chosen(rows, 10)
    assert np.all(np.diff(sites, axis=1) > 0)
    counts = np.bincount(sites.ravel(), minlength=120)
    # Binomial with mean 333 and standard deviation 17.5.
    assert np.all(np.abs(counts - 4000 / 12) < 5 * 17.5)
    for normals in (draws.noise_normals(rows, 10), draws.perturbation_normals(rows)):
        assert kstest(normals.ravel(), "norm").pvalue > 1e-3
    assert np.all((draws.noise > 0.0) & (draws.noise < 1.0))
    assert abs(np.corrcoef(draws.noise[:, 0], draws.perturbation[:, 0])[0, 1]) < 0.1


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"sensors": ()}, "sensors is empty"), ({"sensors": (0,)}, "at least 1"),
        ({"sensors": (10, 10)}, "once"), ({"noise": (-0.1,)}, "below zero"),

        ({"replications": 10**18}, "100,000,000 trials"),
        ({"nois": (0.1,)}, "'noise'"),
    ],
)  # fmt: skip


def test_bad_grids_are_refused(options, word):
    with pytest.raises(InputError, match=word):
        sweep(grid=options)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"seed": -1}, "seed is -1"),
        ({"chunk": 2_000_000, "grid": {"replications": 10_000}}, "chunk is 2,000,000"),
        ({"rules": {}}, "rules is {}"), ({"rules": {"r": 3}}, "callables"),

        ({"grid": Grid(sensors=(121,))}, "121 sensors"),
        ({"jobs": 2, "client": ThreadPoolExecutor(1)}, "jobs and a client"),
        ({"client": "tcp://x:1"}, "submit"), ({"resume": True}, "resume is set without out"),
    ],
)  # fmt: skip


def test_bad_sweeps_are_refused(options, word):
    with pytest.raises(InputError, match=word):
        sweep(**options)


def test_a_setting_needs_a_linear_problem():
    with pytest.raises(InputError, match="problem is a NoneType"):
        Setting.of(None, truth=[1.0], mismatch=[0.0], weight=1.0)
    nonlinear = coefficient("line P1", parameters=1)
    with pytest.raises(InputError, match="expects a linear one"):
        Setting.of(nonlinear, truth=[1.0], mismatch=np.zeros(nonlinear.basis.N), weight=1.0)
