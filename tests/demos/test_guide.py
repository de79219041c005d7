"""What the documentation shows is what happens, and its links lead somewhere."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest
from written_examples import BLOCK, broken_links, examples

import femcert

DIRECTIVE = re.compile(r"^```\{[\w-]+\}.*?^```$", re.S | re.M)
ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "demos" / "docs"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(GUIDE.glob("*.md"))}


@pytest.mark.parametrize("page", [name for name, text in PAGES.items() if examples(text)])
def test_examples_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for example in examples(PAGES[page]):
        example.check(f"{page}.md", names)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_an_example(page):
    # A block that is none of these would not be run, and nobody would notice.
    # Directives of the site have three backticks or colons and a name in braces.
    assert "```" not in DIRECTIVE.sub("", BLOCK.sub("", PAGES[page]))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    # Pages of the gallery are made when the site is built; that is where links to them are checked.
    assert [link for link in broken_links(GUIDE / f"{page}.md") if not link.startswith("gallery/")] == []


def test_contents_list_every_page():
    trees = re.findall(r"```{toctree}\n(.*?)```", PAGES["index"], re.S)
    listed = re.findall(r"^(?!:)([\w-]+)$", "\n".join(trees), re.M)
    assert sorted(listed) == sorted({*PAGES, "reference"} - {"index"})


def test_the_reference_lists_the_public_names():
    sys.path.insert(0, str(GUIDE))
    pages = importlib.import_module("reference_pages")
    assert sorted(pages.names()) == sorted(femcert.__all__)


def test_tables_of_the_reference_can_show_the_first_sentence():
    cut = []
    for name in femcert.__all__:
        first = re.split(r"(?<=\.)\s", inspect.getdoc(getattr(femcert, name)) or "", maxsplit=1)[0]
        cut += [name] if first.count("``") % 2 else []
    assert cut == []


@pytest.mark.parametrize("page", PAGES)
def test_names_exist(page):
    assert all(hasattr(femcert, name) for name in re.findall(r"\bfc\.(\w+)", PAGES[page]))
