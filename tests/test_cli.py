"""The command line: what it prints, what it writes, and its exit codes."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from importlib.metadata import version

import pytest
from cli_helpers import leaves

from femcert.cli import main
from femcert.paper import printed as paper
from femcert.paper.validate import EXPERIMENTS

PART = ["--only", "poisson,stochastic"]


@pytest.fixture
def quick(monkeypatch):
    """Fewer draws for the count of agreements."""
    from femcert.paper import validate

    full = validate.validate
    monkeypatch.setattr(validate, "validate", lambda **options: full(**options, robustness_seeds=2))


def test_validate_some(quick, tmp_path, capsys):
    assert main(["validate", "--out", str(tmp_path / "new" / "out"), *PART]) == 0
    captured = capsys.readouterr()
    assert "checks passed" in captured.out
    assert captured.err == ""
    assert (tmp_path / "new/out/report.html").exists()
    assert (tmp_path / "new/out/tables/decisions.csv").exists()


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_value_that_is_off_is_an_error(quick, tmp_path, monkeypatch, capsys, quiet):
    row = paper.STABILITY[0]
    monkeypatch.setattr(paper, "STABILITY", (replace(row, condition="99.56"), *paper.STABILITY[1:]))
    assert main(["validate", "--out", str(tmp_path), *PART, *quiet]) == 1
    assert capsys.readouterr().err.startswith("check failed: Poisson source, condition: 99.546")
    assert "Failed: 1 of" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("only", ["nonsense", "poisson,nonsense", "", ",", " , ", "Poisson"])
def test_unknown_experiment(only, tmp_path, capsys):
    assert main(["validate", "--only", only, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "poisson, heat, tomography, coefficient, stochastic" in error
    assert not (tmp_path / "out").exists()


def test_no_space_left(quick, tmp_path, monkeypatch, capsys):
    from femcert.report import style

    def full(figure, path):
        raise OSError(28, "No space left on device")

    (tmp_path / "report.html").write_text("old")
    monkeypatch.setattr(style, "save", full)
    assert main(["validate", "--only", "stochastic", "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "No space left" in error
    # Tables are whole; no page stands beside them.
    assert not (tmp_path / "report.html").exists()
    assert not list(tmp_path.rglob(".*"))


def started(out):
    """A whole validation in a process of its own, once it has begun."""
    command = [sys.executable, "-m", "femcert.cli", "validate", "--out", str(out)]
    # A shell may have started the tests in the background, where Ctrl-C is ignored.
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heard)
    end = time.monotonic() + 60.0
    while not out.exists():
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    return process


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_signals_end_in_one_line_and_leave_nothing(number, code, word, tmp_path):
    out = tmp_path / "out"
    process = started(out)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (code, "", f"femcert validate: {word}\n")
    assert not out.exists()


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("validate", "--nonsense"), ("validate", "--out")])
def test_bad_arguments(arguments, capsys):
    assert leaves(*arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("femcert")


def test_matplotlib_is_not_loaded_for_help():
    code = "import sys; from femcert.cli import build_parser; build_parser(); print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "False"


OPTIONS = {
    "validate": ("--only", *EXPERIMENTS),
    "sweep": ("--replications", "--jobs", "--scheduler", "--resume", "--seed", "--chunk"),
    "refine": ("CASE.toml", "--levels", "--adaptive"),
    "certify": ("CASE.toml", "--example"),
}


@pytest.mark.parametrize("command", OPTIONS)
def test_help_names_every_option(command, capsys):
    assert leaves("--help") == 0
    assert command in capsys.readouterr().out
    assert leaves(command, "--help") == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("--out", "--verbose", "--quiet", *OPTIONS[command]))


def test_doctor_solves_with_every_backend(capsys):
    from femcert.linalg.backends import installed_backends

    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert f"femcert {version('femcert')}" in said
    assert all(f"{name}: 4,225 unknowns" in said for name in installed_backends())
    assert "femcert[fast]: pypardiso" in said


def test_doctor_names_what_fails(monkeypatch, capsys):
    from femcert.cli import doctor

    monkeypatch.setattr(doctor, "installed_backends", lambda: {"superlu": "1", "cholmod": "none"})
    monkeypatch.setattr("femcert.linalg.backends.is_installed", lambda name: name != "cholmod")
    assert main(["doctor"]) == 1
    assert "cholmod: MissingPackageError" in capsys.readouterr().err


def test_termination_is_left_to_whoever_handles_it(monkeypatch, capsys):
    seen = []
    former = signal.signal(signal.SIGTERM, lambda *_: seen.append("mine"))
    try:
        assert leaves("--version") == 0
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, former)
    assert seen == ["mine"]
