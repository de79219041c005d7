"""The command ``femcert sweep``: what it writes, and that a kill costs at most the chunks in flight."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from femcert.cli import main
from femcert.report import style
from femcert.report import sweep as report
from femcert.study.sweep import Sweep, sweep
from femcert.study.sweep.lock import locked

GRID = "[grid]\nsensors = [10, 35]\nnoise = [0.0, 0.05]\nmismatch = [0.0, 0.02]\nreplications = {}\n"
TABLES = ["summary.csv", "regimes.csv", "trials.npz", "manifest.json"]


@pytest.fixture(autouse=True)
def quick(request, monkeypatch):
    """No figures: they take most of the time, and are drawn in a test of their own."""
    if "figures" not in request.fixturenames:
        monkeypatch.setattr(report, "FIGURES", ())


@pytest.fixture
def figures(monkeypatch):
    """Asks for them, with few pixels, and labels wherever they fall; those of the paper's sweep are laid out."""
    monkeypatch.setattr(style, "DPI", 30)
    monkeypatch.setattr("matplotlib.figure.Figure.get_layout_engine", lambda figure: None)


@pytest.fixture
def small(tmp_path):
    """48 regimes, five times each."""
    path = tmp_path / "case.toml"
    path.write_text(GRID.format(5), encoding="utf-8")
    return path


def run(*arguments):
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return end.value.code


def contents(folder):
    return {name: (folder / name).read_bytes() for name in TABLES}


def test_help(capsys):
    assert run("--help") == 0
    assert "sweep" in capsys.readouterr().out
    assert run("sweep", "--help") == 0
    text = capsys.readouterr().out
    assert "CASE.toml" in text
    for option in ("out", "replications", "jobs", "scheduler", "resume", "seed", "chunk", "quiet"):
        assert f"--{option}" in text


@pytest.mark.usefixtures("figures")
def test_sweep_writes_its_files(small, tmp_path, capsys):
    out = tmp_path / "new" / "out"
    assert main(["sweep", str(small), "--out", str(out), "--chunk", "100"]) == 0
    captured = capsys.readouterr()
    assert "false rej." in captured.out
    assert f"report: {out / 'report.html'}" in captured.out
    assert captured.err == ""
    assert {path.name for path in out.iterdir()} >= {*TABLES, "report.html", "figures"}
    # Neither chunks nor drafts are left.
    assert not (out / "chunks").exists()
    assert not list(out.glob(".*"))
    found = Sweep.load(out / "trials.npz")
    assert found.grid.trials == 240
    assert found.records.tobytes() == sweep(grid=found.grid).records.tobytes()
    assert str(found) in captured.out
    with (out / "regimes.csv").open(newline="", encoding="utf-8") as stream:
        assert sum(int(row["regimes"]) for row in csv.DictReader(stream)) == found.grid.cells
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["seed"] == 101
    assert manifest["grid"]["sensors"] == [10, 35]
    assert set(manifest["versions"]) >= {"femcert", "numpy", "scipy"}


def test_options_go_before_the_file(small, tmp_path, capfd):
    options = ["--replications", "2", "--seed", "9", "--quiet", "--out", str(tmp_path / "out")]
    assert main(["sweep", str(small), *options]) == 0
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
    found = Sweep.load(tmp_path / "out" / "trials.npz")
    assert (found.grid.replications, found.seed) == (2, 9)


def test_a_finished_sweep(small, tmp_path, capsys):
    arguments = ["sweep", str(small), "--replications", "1", "--out", str(tmp_path / "out")]
    assert main(arguments) == 0
    before = contents(tmp_path / "out")
    capsys.readouterr()
    assert main([*arguments, "--resume"]) == 0
    assert capsys.readouterr().out.startswith("already finished")
    assert main([*arguments, "--resume", "--seed", "4"]) == 2
    assert "another seed: was 101, now 4" in capsys.readouterr().err
    # Without --resume a finished sweep is replaced.
    assert main([*arguments, "--seed", "4", "--quiet"]) == 0
    assert contents(tmp_path / "out") != before


@pytest.mark.parametrize("name", ["trials.npz", "summary.csv", "report.html"])
@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_finished_sweep_with_a_damaged_result_is_computed_again(small, tmp_path, capsys, name, damage):
    arguments = ["sweep", str(small), "--replications", "1", "--out", str(tmp_path / "out")]
    assert main(arguments) == 0
    before = contents(tmp_path / "out")
    path = tmp_path / "out" / name
    good = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    capsys.readouterr()
    assert main([*arguments, "--resume"]) == 0
    assert not capsys.readouterr().out.startswith("already finished")
    assert path.read_bytes() == good
    assert contents(tmp_path / "out") == before


def test_two_sweeps_into_one_directory(small, tmp_path, capsys):
    """The second is told who the first is, and touches nothing."""
    with locked(tmp_path / "out"):
        for options in ([], ["--resume"]):
            assert main(["sweep", str(small), "--out", str(tmp_path / "out"), *options]) == 2
            error = capsys.readouterr().err
            assert error.count("\n") == 1
            assert f"is in use by process {os.getpid()} on " in error
        assert [path.name for path in (tmp_path / "out").iterdir()] == [".lock"]
    assert not (tmp_path / "out").exists()


def started(case, out, *options):
    """A sweep in a process of its own, once some chunks are done."""
    command = [sys.executable, "-m", "femcert.cli", "sweep", str(case), "--out", str(out), *options]
    # What a shell starts in the background ignores Ctrl-C, and so would all its children.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
    finally:
        signal.signal(signal.SIGINT, former)
    end = time.monotonic() + 120.0
    while len(list((out / "chunks").glob("*-*.chunk"))) < 3:
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.005)
    return process


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "case.toml").write_text(GRID.format(200), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "FIGURES", ())
        assert main(["sweep", str(folder / "case.toml"), "--quiet", "--out", str(folder / "out")]) == 0
    return folder / "case.toml", contents(folder / "out")


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


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs Linux")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_killed_sweep_is_resumed_to_the_same_bytes(uninterrupted, jobs, tmp_path, capsys):
    case, expected = uninterrupted
    process = started(case, tmp_path, "--chunk", "50", "--jobs", jobs)
    process.kill()
    process.communicate(timeout=60)
    # Workers do not outlive their parent.
    end = time.monotonic() + 30.0
    while alive(process.pid):
        assert time.monotonic() < end
        time.sleep(0.05)
    kept = sorted(path.name for path in (tmp_path / "chunks").glob("*-*.chunk"))
    assert 3 <= len(kept) < 192
    assert not (tmp_path / "report.html").exists()
    stamps = {name: (tmp_path / "chunks" / name).stat().st_mtime_ns for name in kept}

    assert main(["sweep", str(case), "--out", str(tmp_path)]) == 2
    assert "unfinished sweep" in capsys.readouterr().err
    for wrong, word in ((["--seed", "5"], "another seed"), (["--replications", "7"], "another grid")):
        assert main(["sweep", str(case), "--resume", "--out", str(tmp_path), *wrong]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert word in error
    assert {name: (tmp_path / "chunks" / name).stat().st_mtime_ns for name in kept} == stamps

    assert main(["sweep", str(case), "--resume", "--quiet", "--out", str(tmp_path)]) == 0
    assert contents(tmp_path) == expected
    assert not (tmp_path / "chunks").exists()
    assert not [path for path in tmp_path.glob(".*") if not path.name.startswith(".draft")]


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_signals_end_in_one_line_and_keep_the_chunks(uninterrupted, tmp_path, number, code, word):
    process = started(uninterrupted[0], tmp_path, "--chunk", "50", "--jobs", "2" if number == signal.SIGINT else "1")
    # As Ctrl-C does: to the workers, too.
    os.killpg(process.pid, number)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (code, "", f"femcert sweep: {word}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["chunks"]


def test_the_bar_shows_the_time_left(small, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["sweep", str(small), "--out", str(tmp_path / "out"), "--chunk", "20"]) == 0
    shown = capsys.readouterr().err
    assert re.search(r"\d+/240 \[\d\d:\d\d<[\d:?]+", shown)


def test_the_papers_sweep_is_checked(tmp_path, monkeypatch, capsys):
    from dataclasses import replace

    from femcert.report import sweep_checks

    band = sweep_checks.Band("selected", "1", "2", "equal", True, "much")
    for passed, code in ((True, 0), (False, 1)):
        monkeypatch.setattr(sweep_checks, "bands", lambda result, now=passed: [replace(band, passed=now)])
        options = ["--replications", "1", "--quiet", "--out", str(tmp_path / str(code))]
        assert main(["sweep", *options]) == code
        assert capsys.readouterr().err == ("" if passed else "check failed: selected: 1, paper 2 (equal)\n")
        assert (tmp_path / str(code) / "report.html").exists()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (("noise", "nois"), "unknown key 'grid.nois'; expected one of sensors, noise,"),
        (("[10, 35]", "[10, 350]"), "grid.sensors has the entry 350"),
        (("replications = 5", "replications = -5"), "replications is -5"),
        (("[grid]", "[grid"), "TOML"),
        (("[0.0, 0.05]", "[[0.0]]"), "noise is [[0.0]]; expected a sequence of numbers"),
        (("[0.0, 0.05]", "0.0"), "noise is 0.0; expected a sequence of numbers"),
        (("replications = 5", "replications = 1000000000000"), "are more than 10,000,000,000 trials"),
    ],
)
def test_bad_files_end_in_one_line(small, tmp_path, capsys, change, word):
    small.write_text(small.read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    assert main(["sweep", str(small), "--out", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("femcert sweep: sweep file '")
    assert word in captured.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "options",
    [["--jobs", "0"], ["--seed", "-1"], ["--chunk", "x"], ["--replications", "1.5"], ["--out", ""],
     ["--jobs", "2", "--scheduler", "tcp://a:1"], ["--nonsense"], ["a.toml", "b.toml"]],
)  # fmt: skip
def test_bad_options(options, capsys):
    assert run("sweep", *options) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_no_scheduler(small, tmp_path, monkeypatch, capsys):
    pytest.importorskip("distributed")
    from femcert.study.sweep import cluster

    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 0.3)
    assert main(["sweep", str(small), "--scheduler", "tcp://127.0.0.1:1", "--out", str(tmp_path / "o")]) == 2
    error = capsys.readouterr().err
    assert "no Dask scheduler answers at 'tcp://127.0.0.1:1'" in error.splitlines()[-1]
    # Nothing began, so nothing is unfinished.
    assert not (tmp_path / "o").exists()
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["sweep", str(small), "--scheduler", "tcp://127.0.0.1:1", "--out", str(tmp_path / "p")]) == 2
    assert "install femcert[distributed]" in capsys.readouterr().err


def test_a_directory_in_the_way(small, tmp_path, capsys):
    (tmp_path / "out" / "trials.npz").mkdir(parents=True)
    assert main(["sweep", str(small), "--out", str(tmp_path / "out")]) == 2
    assert "it is a directory" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["trials.npz"]


def test_the_trials_need_no_pickle(small, tmp_path):
    assert main(["sweep", str(small), "--quiet", "--out", str(tmp_path / "out")]) == 0
    with np.load(tmp_path / "out" / "trials.npz", allow_pickle=False) as arrays:
        assert {arrays[name].dtype.kind for name in arrays} <= set("fbiU")
