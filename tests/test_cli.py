"""The command line: what it prints, what it writes, and its exit codes."""

import subprocess
import sys
from dataclasses import replace

import pytest

from femcert.cli import main
from femcert.study.validation import paper

PART = ["--only", "poisson,stochastic"]


@pytest.fixture
def quick(monkeypatch):
    """Fewer draws for the count of agreements."""
    from femcert.study import validation

    full = validation.validate
    monkeypatch.setattr(validation, "validate", lambda **options: full(**options, robustness_seeds=2))


def run(*arguments):
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return end.value.code


def test_help(capsys):
    assert run("--help") == 0
    assert "validate" in capsys.readouterr().out
    assert run("validate", "--help") == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("--out", "--only", "--quiet", "poisson"))


def test_version(capsys):
    from importlib.metadata import version

    assert run("--version") == 0
    assert capsys.readouterr().out == f"femcert {version('femcert')}\n"


def test_validate_some(quick, tmp_path, capsys):
    assert main(["validate", "--out", str(tmp_path / "new" / "out"), *PART]) == 0
    captured = capsys.readouterr()
    assert "checks passed" in captured.out
    assert captured.err == ""
    assert (tmp_path / "new/out/report.html").exists()
    assert (tmp_path / "new/out/tables/decisions.csv").exists()


def test_quiet_prints_nothing(quick, tmp_path, capfd):
    assert main(["validate", "--quiet", "--out", str(tmp_path), "--only", "stochastic"]) == 0
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_default_directory(quick, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["validate", "--quiet", "--only", "stochastic"]) == 0
    assert (tmp_path / "validation/report.html").exists()


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_value_that_is_off_is_an_error(quick, tmp_path, monkeypatch, capsys, quiet):
    row = paper.STABILITY[0]
    monkeypatch.setattr(paper, "STABILITY", (replace(row, condition="99.56"), *paper.STABILITY[1:]))
    assert main(["validate", "--out", str(tmp_path), *PART, *quiet]) == 1
    assert capsys.readouterr().err.startswith("check failed: Poisson source, condition: 99.546")
    assert "Failed: 1 of" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_decision_that_is_off_is_an_error(quick, tmp_path, monkeypatch, capsys):
    row = paper.DECISIONS[0]
    monkeypatch.setattr(paper, "DECISIONS", (replace(row, decision="reject"), *paper.DECISIONS[1:]))
    assert main(["validate", "--out", str(tmp_path), *PART]) == 1
    assert "Poisson source, learned good, decision: accept, paper reject" in capsys.readouterr().err


@pytest.mark.parametrize("only", ["nonsense", "poisson,nonsense", "", "poisson,,heat", "Poisson"])
def test_unknown_experiment(only, tmp_path, capsys):
    assert main(["validate", "--only", only, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "poisson, heat, tomography, coefficient, stochastic" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_unwritable(where, tmp_path, capsys):
    (tmp_path / "file").write_text("here first")
    assert main(["validate", "--out", str(tmp_path / where)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "cannot write to" in error
    assert (tmp_path / "file").read_text() == "here first"


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("validate", "--nonsense"), ("validate", "--out")])
def test_bad_arguments(arguments, capsys):
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("femcert")


def test_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "femcert.cli", "--version"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("femcert ")


def test_matplotlib_is_not_loaded_for_help():
    code = "import sys; from femcert.cli import build_parser; build_parser(); print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "False"
