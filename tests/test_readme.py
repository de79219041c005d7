"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest
from written_examples import broken_links, examples

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_examples_print_what_the_readme_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Each goes on from the one before; those without an output are fragments.
    names, complete = {}, [example for example in examples(README) if example.shown is not None]
    assert len(complete) == 4
    for example in complete:
        example.check("README.md", names)
    pictures = ("selection.png", "stability.png", "modulus.png")
    assert all((tmp_path / name).stat().st_size > 20_000 for name in pictures)


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
