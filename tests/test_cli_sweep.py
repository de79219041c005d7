"""The command ``femcert sweep``: what it writes, and that a kill costs at most the chunks in flight."""

import csv
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import leaves

from femcert.cli import commands, main
from femcert.paper import Grid, Sweep, checks
from femcert.paper import page as report
from femcert.paper.printed import Check
from femcert.paper.sweep import sweep
from femcert.report import style

TABLES = ["summary.csv", "regimes.csv", "mismatch.csv", "rules.csv", "trials.npz"]


@pytest.fixture(autouse=True)
def quick(request, monkeypatch):
    """No figures: they take most of the time, and are drawn in a test of their own."""
    if "figures" not in request.fixturenames:
        monkeypatch.setattr(report, "SWEEP_FIGURES", ())


@pytest.fixture
def figures(monkeypatch):
    """Asks for them, with few pixels, and labels wherever they fall; those of the paper's sweep are laid out."""
    monkeypatch.setattr(style, "DPI", 30)
    monkeypatch.setattr("matplotlib.figure.Figure.get_layout_engine", lambda figure: None)


def once(out, *options):
    """One trial for each regime."""
    return ["sweep", "--replications", "1", "--out", str(out), *options]


def contents(folder):
    return {name: (folder / name).read_bytes() for name in TABLES}


@pytest.mark.usefixtures("figures")
def test_sweep_writes_its_files(tmp_path, capsys):
    out = tmp_path / "new" / "out"
    assert main(once(out, "--chunk", "100")) == 0
    captured = capsys.readouterr()
    assert "false rej." in captured.out
    assert f"report: {out / 'report.html'}" in captured.out
    assert captured.err == ""
    # Chunks are gone.
    assert {path.name for path in out.iterdir()} == {*TABLES, "report.html", "figures"}
    found = Sweep.load(out / "trials.npz")
    assert found.grid == Grid(replications=1)
    assert found.records.tobytes() == sweep(grid=found.grid).records.tobytes()
    assert str(found) in captured.out
    with (out / "regimes.csv").open(newline="", encoding="utf-8") as stream:
        assert sum(int(row["regimes"]) for row in csv.DictReader(stream)) == found.grid.cells
    with np.load(out / "trials.npz", allow_pickle=False) as arrays:
        assert {arrays[name].dtype.kind for name in arrays} <= set("fbiU")


def test_options(tmp_path, capfd):
    assert main(["sweep", "--replications", "2", "--seed", "9", "--quiet", "--out", str(tmp_path / "out")]) == 0
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
    found = Sweep.load(tmp_path / "out" / "trials.npz")
    assert (found.grid.replications, found.seed) == (2, 9)


def test_a_finished_sweep(tmp_path, capsys):
    arguments = once(tmp_path / "out")
    assert main(arguments) == 0
    before = contents(tmp_path / "out")
    capsys.readouterr()
    assert main([*arguments, "--resume"]) == 0
    assert capsys.readouterr().out.startswith("already finished")
    assert main([*arguments, "--resume", "--seed", "4"]) == 2
    assert "other settings, 1 replications and seed 101" in capsys.readouterr().err
    assert contents(tmp_path / "out") == before
    # Without --resume a finished sweep is replaced.
    assert main([*arguments, "--seed", "4", "--quiet"]) == 0
    assert contents(tmp_path / "out") != before


def started(out, *options):
    """A sweep in a process of its own, once some chunks are done."""
    arguments = [sys.executable, "-m", "femcert.cli", "sweep", "--out", str(out), "--chunk", "50", *options]
    # What a shell starts in the background ignores Ctrl-C, and so would all its children.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
    finally:
        signal.signal(signal.SIGINT, former)
    end = time.monotonic() + 120.0
    while len(list((out / "chunks").glob("*.npz"))) < 3:
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.005)
    return process


def alive(group):
    """Processes of a group that still run."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path(f"/proc/{entry}/stat").read_text(encoding="utf-8")
            except OSError:
                continue
            state, _, leader = re.sub(r".*\) ", "", text).split()[:3]
            if int(leader) == group and state != "Z":
                found.append(int(entry))
    return found


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "SWEEP_FIGURES", ())
        assert main(["sweep", "--quiet", "--out", str(out)]) == 0
    return contents(out)


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs Linux")
def test_a_killed_sweep_is_resumed_to_the_same_bytes(uninterrupted, tmp_path, capsys):
    process = started(tmp_path, "--jobs", "2")
    process.kill()
    process.communicate(timeout=60)
    # Workers do not outlive their parent.
    end = time.monotonic() + 30.0
    while alive(process.pid):
        assert time.monotonic() < end
        time.sleep(0.05)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "chunks").glob("*.npz")}
    assert 3 <= len(kept) < 420
    assert not (tmp_path / "report.html").exists()

    again = ["sweep", "--chunk", "50", "--out", str(tmp_path)]
    for wrong, word in (
        ([], "unfinished sweep"),
        (["--resume", "--seed", "5"], "seed was 101"),
        (["--resume", "--replications", "7"], "other settings: grid"),
    ):
        assert main([*again, *wrong]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert word in error
    assert {path: path.stat().st_mtime_ns for path in kept} == kept

    assert main([*again, "--resume", "--quiet"]) == 0
    assert contents(tmp_path) == uninterrupted
    assert not (tmp_path / "chunks").exists()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(("passed", "code"), [(True, 0), (False, 1)])
def test_the_sweep_is_checked(tmp_path, monkeypatch, capsys, passed, code):
    check = Check("", "selected", "1", "2", "equal", True, "much")
    monkeypatch.setattr(checks, "sweep_checks", lambda result: [replace(check, passed=passed)])
    assert main(once(tmp_path, "--quiet")) == code
    assert capsys.readouterr().err == ("" if passed else "check failed: selected: 1, paper 2 (equal)\n")
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    "options",
    [["--jobs", "0"], ["--seed", "-1"], ["--chunk", "x"], ["--replications", "1.5"], ["--out", ""],
     ["--jobs", "2", "--scheduler", "tcp://a:1"], ["--nonsense"], ["a.toml"]],
)  # fmt: skip
def test_bad_options(options, capsys):
    assert leaves("sweep", *options) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler(tmp_path):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(processes=False, protocol="tcp", **options) as cluster:
        address = cluster.scheduler_address
        assert main(once(tmp_path / "out", "--quiet", "--chunk", "100", "--scheduler", address)) == 0
    found = Sweep.load(tmp_path / "out" / "trials.npz")
    assert found.records.tobytes() == sweep(grid=Grid(replications=1)).records.tobytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", ""])
def test_no_scheduler(tmp_path, monkeypatch, capsys, address):
    pytest.importorskip("distributed")
    monkeypatch.setattr(commands, "PATIENCE", 0.3)
    assert main(once(tmp_path / "o", "--scheduler", address)) == 2
    assert f"no Dask scheduler answers at '{address}'" in capsys.readouterr().err.splitlines()[-1]
    # Nothing began, so nothing is unfinished.
    assert not (tmp_path / "o").exists()


def test_without_dask(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(once(tmp_path / "p", "--scheduler", "tcp://127.0.0.1:1")) == 2
    assert "install femcert[distributed]" in capsys.readouterr().err
