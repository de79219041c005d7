"""Pictures and pages of studies and selections."""

import base64
import io
import re

import numpy as np
import pytest
from html_page import Page
from matplotlib.image import imread
from skfem import MeshLine, MeshTri

import femcert as fc
from femcert.mesh.refine import refined
from femcert.report import style
from femcert.report.study import holds, study_figure, study_page
from femcert.study import Level


def words(source):
    content = Page(source)
    assert all(address.startswith("data:image/png;base64,") for address in content.addresses)
    bare = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", source)
    # The one script sorts tables; the policy of the page names it by its hash.
    assert bare.count("<script>") == bare.count("script-src 'sha256-") == 1
    assert not re.search(r"https?://|@import|url\(|<script |<link", bare)
    assert "prefers-color-scheme: dark" in source
    return content.text, len(content.addresses)


def study(mesh, levels=5, **columns):
    """A study of made-up numbers: pages and pictures do not care where they come from."""
    meshes = [mesh]
    for _ in range(levels - 1):
        meshes.append(refined(meshes[-1]))
    rows = []
    for i, m in enumerate(meshes):
        n = m.p.shape[1]
        more = {name: function(i, n) for name, function in columns.items()}
        rows.append(Level(level=i + 1, elements=m.nelements, dofs=n, h=0.5**i, seconds=0.1, **{
            "lower": 0.8 * n**-0.5, "upper": 1.1 * n**-0.5, **more,
        }))  # fmt: skip
    rng = np.random.default_rng(0)
    shares = tuple(row.upper * rng.uniform(0.1, 1.0, row.elements) / np.sqrt(row.elements) for row in rows)
    return fc.Study(
        tuple(rows), "levels", False, 0.5, "equilibrated", "energy", tuple(meshes), shares, (None,) * levels
    )


def truth(_, n):
    return n**-0.5


@pytest.fixture(scope="module")
def full():
    return study(
        MeshTri.init_lshaped(), truth=truth, C_stab=lambda i, n: 12.0, radius_baseline=lambda i, n: 0.2,
        radius_learned=lambda i, n: 0.3 / (i + 1), decision=lambda i, n: "accept" if i else "reject",
    )  # fmt: skip


STUDIES = {
    "triangles": study(MeshTri.init_lshaped()),
    "lines": study(MeshLine(np.linspace(0.0, 1.0, 4)), 8),
    "one level": study(MeshTri(), 1, truth=truth),
    "exact": study(MeshTri(), 2, lower=lambda *_: 0.0, upper=lambda *_: 0.0, truth=lambda *_: 0.0),
    "baseline only": study(MeshTri(), 3, radius_baseline=lambda i, n: 10.0**-i),
}


def check_picture(path):
    image = imread(path)[:, :, :3]
    assert image.shape[0] >= 400
    assert image.shape[1] >= 600
    inked = np.mean(np.any(image[::5, ::5] < 0.98, axis=2))
    assert 0.01 < inked < 0.9


@pytest.mark.parametrize("name", STUDIES)
def test_page_of_any_study_with_its_pictures(name, tmp_path):
    path = fc.write_report(STUDIES[name], tmp_path / "report.html")
    source = path.read_text(encoding="utf-8")
    text, pictures = words(source)
    assert pictures == 2
    for image in re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", source):
        check_picture(io.BytesIO(base64.b64decode(image)))
    assert "Refinement study" in text
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_the_picture_shows_slopes_and_panels(full):
    figure = study_figure(full)
    axes = [axes for part in figure.subfigs for axes in part.axes]
    labels = [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert labels == [f"{name}, slope -0.50" for name in ("upper bound", "truth", "lower bound")]
    assert [a.get_title(loc="left") for a in axes[1:]] == ["Effectivity", "Radii"]
    assert "-1/2" in [text.get_text() for text in axes[0].texts]
    assert axes[0].get_xscale() == axes[0].get_yscale() == "log"


def test_the_page_tells_the_numbers(full):
    text, _ = words(study_page(full))
    assert "The truth lies between the bounds on every level" in text
    assert "accepted on 4 of 5 levels" in text
    for cells in full.cells():
        assert " ".join(cells) in text


@pytest.fixture
def blank(monkeypatch):
    """Pages with empty pictures, where only words matter."""
    for name in ("study_figure", "meshes_figure"):
        monkeypatch.setattr(f"femcert.report.study.{name}", lambda _: style.new_figure(1, 1))


@pytest.mark.usefixtures("blank")
def test_a_truth_outside_the_bounds_is_shouted():
    wrong = study(MeshTri(), 3, truth=lambda i, n: 2.0 if i == 1 else n**-0.5)
    text, _ = words(study_page(wrong))
    assert "The truth is not between the bounds" in text
    assert "On level 2." in text
    assert [holds(row) for row in wrong.rows] == [True, False, True]


@pytest.mark.usefixtures("blank")
def test_estimates_are_not_called_bounds():
    guess = study(MeshTri(), 2, estimates=lambda *_: ("upper", "lower"))
    text, _ = words(study_page(guess))
    assert "an estimate, not a bound" in text
    assert "~" in text
