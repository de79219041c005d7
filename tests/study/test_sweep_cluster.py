"""The sweep on a Dask cluster: two workers in processes of their own, one of them killed at work."""

import os
import signal
import sys
import time
import warnings

import pytest

from femcert.errors import InputError, SolveError
from femcert.study.sweep import RULES, Grid, Verdict, sweep

distributed = pytest.importorskip("distributed")
# Dask's own event loops and deprecations are not ours.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")]

GRID = Grid(sensors=(10, 35), noise=(0.0, 0.05), perturbation=(0.0, 0.1), mismatch=(0.0, 0.02), replications=200)


@pytest.fixture(scope="module")
def cluster():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster:
            yield cluster


def slow_exact(trials):
    time.sleep(0.05)
    return RULES["exact"](trials)


def processes(cluster):
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
        return set(client.run(os.getpid).values())


def test_a_worker_killed_at_work_changes_nothing(cluster, tmp_path):
    before, told = processes(cluster), []
    assert len(before) == 2

    def finished(done):
        told.append(done)
        if len(told) == 3:
            os.kill(min(before), signal.SIGKILL)

    found = sweep(
        grid=GRID, scheduler=cluster.scheduler_address, chunk=100, store=tmp_path, rules={"exact": slow_exact},
        finished=finished,
    )  # fmt: skip
    assert found.records.tobytes() == sweep(grid=GRID, rules={"exact": RULES["exact"]}).records.tobytes()
    assert told[-1] == GRID.trials
    assert len(told) == GRID.trials // 100
    assert processes(cluster) != before


def test_rules_of_this_process_go_along(cluster):
    # Functions within functions can be sent to a cluster.
    rules = {"never": lambda trials: Verdict(trials.level < 0.0), **RULES}
    found = sweep(grid=GRID, scheduler=cluster.scheduler_address, rules=rules)
    assert found.records.tobytes() == sweep(grid=GRID, rules=rules).records.tobytes()


def test_an_error_of_a_rule_comes_through(cluster):
    def broken(trials):
        raise ZeroDivisionError("mine")

    with pytest.raises(InputError, match="the rule 'broken' raised ZeroDivisionError: mine"):
        sweep(grid=GRID, scheduler=cluster.scheduler_address, rules={"broken": broken})


def test_a_worker_with_other_versions_is_refused(cluster, monkeypatch):
    from femcert.study.sweep import cluster as module

    monkeypatch.setattr(module, "package_versions", lambda: {"numpy": "1.0"})
    with pytest.raises(InputError, match="make them equal"):
        sweep(grid=GRID, scheduler=cluster.scheduler_address)


def test_a_lost_scheduler_is_said_in_a_line(cluster, monkeypatch, tmp_path):
    from femcert.study.sweep import cluster as module

    threads = module._threads

    def lost(done):
        def closed(client):
            raise distributed.comm.CommClosedError("gone")

        monkeypatch.setattr(module, "_threads", closed)

    options = {"grid": GRID, "scheduler": cluster.scheduler_address, "store": tmp_path, "chunk": 100}
    with pytest.raises(SolveError, match="was lost; finished chunks are kept"):
        sweep(**options, finished=lost)
    monkeypatch.setattr(module, "_threads", threads)
    told = []
    found = sweep(**options, resume=True, finished=told.append)
    assert told[0] == 100
    assert found.records.tobytes() == sweep(grid=GRID).records.tobytes()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense", "", "nonsense://x:1"])
def test_nobody_answers(address, monkeypatch):
    from femcert.study.sweep import cluster as module

    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.5)
    with pytest.raises(InputError, match="no Dask scheduler answers at"):
        sweep(grid=GRID, scheduler=address)


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"install femcert\[distributed\]"):
        sweep(grid=GRID, scheduler="tcp://127.0.0.1:1")
