"""What is left on disk: damage is noticed and computed again, and two sweeps never share a directory."""

import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from femcert.errors import InputError
from femcert.study.sweep import RULES, Grid, Sweep, sweep
from femcert.study.sweep import lock as locks
from femcert.study.sweep.lock import locked

GRID = Grid(sensors=(10,), noise=(0.0, 0.05), perturbation=(0.1,), mismatch=(0.0, 0.02), replications=40)
ONE = {"exact": RULES["exact"]}


@pytest.fixture(scope="module")
def whole():
    return sweep(grid=GRID, rules=ONE).records.tobytes()


def kept(folder):
    return sorted(folder.glob("*-*.chunk"))


def resumed(folder):
    """The records, and how many trials were taken from disk."""
    told = []
    found = sweep(grid=GRID, rules=ONE, store=folder, resume=True, finished=told.append)
    return found.records.tobytes(), told[0]


@pytest.mark.parametrize("seed", range(25))
def test_a_chunk_with_a_flipped_bit_is_computed_again(whole, tmp_path, seed):
    sweep(grid=GRID, rules=ONE, store=tmp_path, chunk=50)
    rng, chunks = np.random.default_rng(seed), kept(tmp_path)
    path = chunks[rng.integers(len(chunks))]
    content = bytearray(path.read_bytes())
    content[rng.integers(len(content))] ^= 1 << rng.integers(8)
    path.write_bytes(content)
    start, stop = map(int, path.stem.split("-"))
    assert resumed(tmp_path) == (whole, GRID.trials - (stop - start))
    assert resumed(tmp_path) == (whole, GRID.trials)


def test_a_chunk_in_the_place_of_another_is_computed_again(whole, tmp_path):
    sweep(grid=GRID, rules=ONE, store=tmp_path, chunk=40)
    first, second = kept(tmp_path)[:2]
    second.write_bytes(first.read_bytes())
    assert resumed(tmp_path) == (whole, GRID.trials - 40)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"\x93NUMPY\x01\x00", b"\x00" * 5000])
def test_what_is_no_chunk_is_computed_again(whole, tmp_path, content):
    sweep(grid=GRID, rules=ONE, store=tmp_path, chunk=50)
    for path in kept(tmp_path):
        path.write_bytes(content)
    (tmp_path / "000000000300-000000000200.chunk").write_bytes(content)
    found = sweep(grid=GRID, rules=ONE, store=tmp_path, resume=True)
    assert found.records.tobytes() == whole


def test_a_directory_in_the_place_of_a_chunk_is_said(tmp_path):
    sweep(grid=GRID, rules=ONE, store=tmp_path, chunk=50)
    path = kept(tmp_path)[0]
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match=r"cannot write .*000000000050\.chunk: Is a directory"):
        sweep(grid=GRID, rules=ONE, store=tmp_path, resume=True, chunk=50)


def test_a_chunk_that_is_damaged_before_the_end_is_said(tmp_path):
    def finished(done):
        if done == GRID.trials:
            kept(tmp_path)[0].write_bytes(b"gone")

    with pytest.raises(InputError, match="was damaged after it was written; resume the sweep"):
        sweep(grid=GRID, rules=ONE, store=tmp_path, chunk=50, finished=finished)


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "3", "\x00", "[]", ""])
def test_a_damaged_manifest_is_said(tmp_path, text):
    sweep(grid=GRID, rules=ONE, store=tmp_path)
    (tmp_path / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"manifest.json is damaged; remove"):
        sweep(grid=GRID, rules=ONE, store=tmp_path, resume=True)


def test_a_sweep_that_never_began_leaves_nothing(tmp_path):
    def broken(trials):
        raise ZeroDivisionError

    with pytest.raises(InputError, match="the rule 'broken' raised"):
        sweep(grid=GRID, rules={"broken": broken}, store=tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("seed", range(40))
def test_damaged_results_are_refused_or_the_same(whole, tmp_path, seed):
    path, rng = tmp_path / "trials.npz", np.random.default_rng(seed)
    sweep(grid=GRID, rules=ONE).save(path)
    content = bytearray(path.read_bytes())
    if seed % 4 == 0:
        content = content[: rng.integers(len(content))]
    else:
        # Headers and the directory at the end are short: all of them get their share.
        where = [int(rng.integers(300)), -int(rng.integers(1, 1200)), int(rng.integers(len(content)))][seed % 3]
        content[where] ^= 1 << rng.integers(8)
    path.write_bytes(content)
    # A bit of a date, say, that nobody reads; all others are noticed.
    with suppress(InputError):
        found = Sweep.load(path)
        assert (found.records.tobytes(), found.grid, found.rules) == (whole, GRID, ("exact",))


@pytest.mark.parametrize(
    "change",
    [
        {"accepted": np.array(True)}, {"rules": np.zeros(0)}, {"seed": np.arange(3)}, {"noise": np.array([["x"]])},
        {"sensors": np.array([1.5])}, {"ratio": np.zeros((40, 1))}, {"accepted": np.ones((40, 1, 2, 1, 2, 1))},
        {"baseline_error": np.array(["x"] * 160)}, {"noise": np.array([np.nan, 1.0])},
    ],
)  # fmt: skip
def test_archives_of_something_else_are_refused(tmp_path, change):
    sweep(grid=GRID, rules=ONE).save(tmp_path / "trials.npz")
    with np.load(tmp_path / "trials.npz") as arrays:
        parts = {**arrays, **change}
    np.savez(tmp_path / "other.npz", **parts)
    with pytest.raises(InputError, match=r"other.npz'"):
        Sweep.load(tmp_path / "other.npz")


# The lock


WAITING = """
import sys, time
from pathlib import Path
from femcert.study.sweep.lock import locked
with locked(Path(sys.argv[1])):
    print("here", flush=True)
    time.sleep(120)
"""


@pytest.fixture
def owner(tmp_path):
    """A process that holds the lock of a directory."""
    process = subprocess.Popen([sys.executable, "-c", WAITING, tmp_path / "s"], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "here\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux")
def test_two_sweeps_in_one_directory(owner, tmp_path, whole):
    started = f"is in use by process {owner.pid} on {platform.node()}; wait for it, or remove"
    for resume in (False, True):
        with pytest.raises(InputError, match=started):
            sweep(grid=GRID, rules=ONE, store=tmp_path / "s", resume=resume)
    # Killed, and not even buried yet: its lock is taken over.
    owner.send_signal(signal.SIGKILL)
    end = time.monotonic() + 30.0
    while locks._start(owner.pid):
        assert time.monotonic() < end
    assert (tmp_path / "s" / ".lock").exists()
    found = sweep(grid=GRID, rules=ONE, store=tmp_path / "s")
    assert found.records.tobytes() == whole
    assert not list((tmp_path / "s").glob(".*"))


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX limits")
def test_a_full_disk_leaves_no_lock(tmp_path):
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with pytest.raises(InputError, match="cannot write to"), locked(tmp_path):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


def test_the_same_process_twice(tmp_path):
    with locked(tmp_path), pytest.raises(InputError, match=f"in use by process {os.getpid()}"):
        sweep(grid=GRID, rules=ONE, store=tmp_path)


@pytest.mark.parametrize(
    ("owner", "message"),
    [
        ({"host": "elsewhere", "process": 1, "start": ""}, "in use by process 1 on elsewhere"),
        ({"host": platform.node(), "process": "x"}, "in use by process x"),
        ("", "in use by somebody"),
        ("[" * 100_000, "in use by somebody"),
    ],
)
def test_locks_that_nobody_can_judge_are_kept(tmp_path, owner, message):
    (tmp_path / ".lock").write_text(owner if isinstance(owner, str) else json.dumps(owner), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        sweep(grid=GRID, rules=ONE, store=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux")
def test_a_number_that_was_given_again_is_another_process(tmp_path):
    """As in containers, where the first process always has the same."""
    owner = {"host": platform.node(), "process": os.getpid(), "start": "1 of another boot"}
    (tmp_path / ".lock").write_text(json.dumps(owner), encoding="utf-8")
    sweep(grid=GRID, rules=ONE, store=tmp_path)
    assert not (tmp_path / ".lock").exists()


@pytest.mark.parametrize("attempt", range(20))
def test_one_of_many_that_take_over_gets_the_lock(tmp_path, attempt):
    """Eight find the lock of a dead process at the same time; each that gets in is alone there."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    stale = json.dumps({"host": platform.node(), "process": dead.pid, "start": ""})
    (tmp_path / ".lock").write_text(stale, encoding="utf-8")
    gate, said = threading.Barrier(8), []

    def come():
        gate.wait()
        try:
            with locked(tmp_path):
                (tmp_path / "inside").mkdir()
                time.sleep(0.01)
                (tmp_path / "inside").rmdir()
                said.append("in")
        except InputError:
            said.append("out")

    many = [threading.Thread(target=come) for _ in range(8)]
    for thread in many:
        thread.start()
    for thread in many:
        thread.join(60.0)
    assert len(said) == 8
    assert "in" in said
    assert not list(tmp_path.iterdir())


def test_results_in_a_pipe_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "trials.npz")
    with pytest.raises(InputError, match=r"trials.npz': it is a pipe or a device"):
        Sweep.load(tmp_path / "trials.npz")
