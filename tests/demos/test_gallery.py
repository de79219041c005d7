"""The gallery shows every demo, and what it links to is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEMOS = ROOT / "demos"
GALLERY = (DEMOS / "README.md").read_text(encoding="utf-8")
SOURCES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(DEMOS.glob("ex*.py"))}
ROWS = {Path(link).stem: line for line in GALLERY.splitlines() for link in re.findall(r"\]\((ex\w+\.py)\)", line)}


def test_every_demo_has_one_row():
    assert set(ROWS) == set(SOURCES)
    for name in SOURCES:
        assert GALLERY.count(f"({name}.py)") == 1


@pytest.mark.parametrize("name", SOURCES)
def test_row_shows_the_picture_that_the_demo_writes(name):
    picture = f"{name.split('_', 1)[1]}.png"
    assert f'"{picture}"' in SOURCES[name]
    assert re.findall(r'(?:href|src)="pictures/([^"]+)"', ROWS[name]) == [picture, picture]
    assert re.search(r'alt="[^"]{20,}"', ROWS[name])


@pytest.mark.parametrize("name", SOURCES)
def test_row_names_the_mesh_files_that_the_demo_loads(name):
    loaded = set(re.findall(r"\"(\w+\.msh)\"", SOURCES[name]))
    assert set(re.findall(r"`(\w+\.msh)`", ROWS[name])) == loaded
    assert bool(loaded) == ("load_mesh(" in SOURCES[name])
    assert all((ROOT / "meshes" / mesh).exists() for mesh in loaded)
    assert re.search(r"(seconds|minutes?)\b", ROWS[name], re.I)


def links(text):
    """Targets of Markdown links and of HTML attributes that are files of the project."""
    found = re.findall(r"\]\(([^)#\s]+)\)", text) + re.findall(r'(?:href|src)="([^"#]+)"', text)
    return {target for target in found if "://" not in target}


@pytest.mark.parametrize("target", sorted(links(GALLERY)))
def test_links_lead_somewhere(target):
    assert (DEMOS / target).exists()


def test_every_picture_is_shown():
    pages = {DEMOS: GALLERY, ROOT: (ROOT / "README.md").read_text(encoding="utf-8")}
    shown = {(folder / target).resolve() for folder, text in pages.items() for target in links(text)}
    assert {path.resolve() for path in (DEMOS / "pictures").iterdir()} <= shown


def test_enough_demos_in_two_dimensions_and_from_mesh_files():
    plane = [name for name, text in SOURCES.items() if "ElementTri" in text or "ElementQuad" in text]
    loading = [name for name, text in SOURCES.items() if "fc.load_mesh(" in text]
    assert len(plane) >= 7
    assert len(loading) >= 3
