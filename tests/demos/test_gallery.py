"""The README shows every demo, and each demo is fit for the gallery of the documentation."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEMOS = ROOT / "demos"
README = (ROOT / "README.md").read_text(encoding="utf-8")
SOURCES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(DEMOS.glob("ex*.py"))}


@pytest.mark.parametrize("name", SOURCES)
def test_the_readme_shows_the_picture_that_the_demo_writes(name):
    picture = f"{name.split('_', 1)[1]}.png"
    assert f'"{picture}"' in SOURCES[name]
    thumbnail = rf'<a href="demos/{name}\.py"><img src="demos/pictures/{picture}" width="\d+" alt="[^"]{{15,}}"></a>'
    assert len(re.findall(thumbnail, README)) == 1


@pytest.mark.parametrize("name", SOURCES)
def test_the_first_line_is_the_message(name):
    title, line = SOURCES[name].splitlines()[1:3]
    assert 20 < len(title) <= 115
    assert line == "=" * len(title)


def test_every_picture_is_shown():
    pages = [ROOT / "README.md", *(DEMOS / "docs").glob("*.md")]
    shown = set()
    for page in pages:
        text = page.read_text(encoding="utf-8")
        links = re.findall(r"\]\(([^)#\s]+)\)", text) + re.findall(r'(?:href|src)="([^"#]+)"', text)
        shown |= {(page.parent / target).resolve() for target in links if "://" not in target}
    assert {path.resolve() for path in (DEMOS / "pictures").iterdir()} <= shown


def test_the_meshes_that_demos_load_are_there():
    loaded = {mesh for source in SOURCES.values() for mesh in re.findall(r"\"(\w+\.msh)\"", source)}
    assert len(loaded) >= 3
    assert all((ROOT / "meshes" / mesh).exists() for mesh in loaded)
