"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest
from written_examples import broken_links, examples

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_readme_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = examples(README)
    example.check("README.md", {})
    assert (tmp_path / "selection.png").stat().st_size > 20_000


def test_it_is_short():
    assert len(README.split()) <= 900


def test_the_two_commands_are_there():
    lines = README.splitlines()
    start = "    python3 -m venv .venv && .venv/bin/pip install -q "
    assert start + ". && .venv/bin/femcert validate" in lines
    assert start + "-e '.[test]' && .venv/bin/pytest" in lines


def test_links_lead_somewhere():
    assert broken_links(ROOT / "README.md") == []


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\bfc\.(\w+)", README))))
def test_names_exist(name):
    import femcert

    assert hasattr(femcert, name)
