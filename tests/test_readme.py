"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_examples_print_what_the_readme_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(.*?)```", README, re.S).group(1)
    shown = re.search(r"```text\n(.*?)```", README, re.S).group(1)
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    # Residuals at rounding level differ between machines; everything else is the same to the printed digits.
    hide = re.compile(r"\S*e-1\d\b")
    assert hide.sub("~0", printed).split() == hide.sub("~0", shown).split()
    assert (tmp_path / "selection.png").stat().st_size > 20_000
    # The example about physics goes on from there.
    code, shown = re.search(r"## How wrong.*?```python\n(.*?)```\n\n```text\n(.*?)```", README, re.S).groups()
    exec(compile(code, "README.md", "exec"), names)
    assert capsys.readouterr().out == shown
    # And so does the one about stability.
    code, shown = re.search(r"## What can.*?```python\n(.*?)```\n\n```text\n(.*?)```", README, re.S).groups()
    exec(compile(code, "README.md", "exec"), names)
    assert capsys.readouterr().out == shown
    assert all((tmp_path / name).stat().st_size > 20_000 for name in ("stability.png", "modulus.png"))
    # And the one about what nobody sees.
    code, shown = re.search(r"## What the sensors.*?```python\n(.*?)```\n\n```text\n(.*?)```", README, re.S).groups()
    exec(compile(code, "README.md", "exec"), names)
    assert capsys.readouterr().out == shown


def test_the_two_commands_are_there():
    lines = README.splitlines()
    start = "    python3 -m venv .venv && .venv/bin/pip install -q "
    assert start + ". && .venv/bin/femcert validate" in lines
    assert start + "-e '.[test]' && .venv/bin/pytest" in lines


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\((?!http)([^)#]+)\)", README))))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\bfc\.(\w+)", README))))
def test_names_exist(name):
    import femcert

    assert hasattr(femcert, name)
