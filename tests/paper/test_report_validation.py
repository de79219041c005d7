"""Tables, figures and page of a validation, and the drawing helpers behind them."""

import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imread
from matplotlib.text import Text
from pages import parsed
from skfem import (
    Basis,
    ElementLineP0,
    ElementLineP1,
    ElementLineP2,
    ElementQuad1,
    ElementQuad2,
    ElementTriP0,
    ElementTriP1,
    ElementTriP2,
    MeshLine,
    MeshQuad,
    MeshTri,
)

import femcert as fc
from femcert.paper.page import VALIDATION_FIGURES, validation_files, validation_page, write_validation
from femcert.report.fields import draw_line, triangulated
from femcert.report.selection_figure import radius_parts
from femcert.report.style import axes_of


@pytest.fixture(scope="session")
def written(result, tmp_path_factory):
    out = tmp_path_factory.mktemp("validation") / "out"
    write_validation(result, out)
    return out


def test_nothing_but_the_results_is_left(written):
    files = {str(path.relative_to(written)) for path in written.rglob("*") if path.is_file()}
    assert files == set(validation_files())
    assert not list(written.rglob(".*"))


@pytest.mark.parametrize("name", [name for name, _, _ in VALIDATION_FIGURES])
def test_figures_show_something(written, name):
    image = imread(written / "figures" / f"{name}.png")[:, :, :3]
    coarse = image[::5, ::5]
    assert image.shape[0] >= 400
    assert image.shape[1] >= 1000
    inked = np.mean(np.any(coarse < 0.98, axis=2))
    assert 0.01 < inked < 0.9
    assert len(np.unique((coarse.reshape(-1, 3) * 255).astype(int), axis=0)) > 30


def test_page_is_self_contained(written):
    content, _ = parsed((written / "report.html").read_text(encoding="utf-8"))
    assert content.images == len(VALIDATION_FIGURES)
    assert content.addresses
    assert all(address.startswith(("data:image/png;base64,", "#")) for address in content.addresses)
    source = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", (written / "report.html").read_text(encoding="utf-8"))
    assert not re.search(r"https?://|//[a-z]|@import|url\(|<script|<link", source)
    assert 'name="viewport"' in source
    assert "prefers-color-scheme: dark" in source


def test_page_says_what_came_out(written, result):
    _, text = parsed((written / "report.html").read_text(encoding="utf-8"))
    assert f"Passed: all {len(result.checks)} checks" in text
    for words in ("unfinished PINN", "hallucinated high freq.", "reject", "accept", "9045", "1838", "base seed 101"):
        assert words in text
    assert "3 of 22 radii are smaller than the true error" in text


def test_page_says_what_failed(result):
    wrong = replace(result.checks[0], passed=False, computed="<b>reject</b>")
    failed = replace(result, checks=(wrong, *result.checks[1:]))
    _, text = parsed(validation_page(failed, []))
    assert f"Failed: 1 of {len(result.checks)} checks" in text
    # Escaped, so it is text and not a tag.
    assert "<b>reject</b>" in text


@pytest.mark.parametrize("element", [ElementLineP0(), ElementLineP1(), ElementLineP2()])
def test_lines_are_exact_and_run_from_left_to_right(element):
    # Refined line meshes are not sorted.
    basis = Basis(MeshLine(np.array([0.0, 0.1, 0.5, 1.0])).refined(1), element)
    values = (
        basis.doflocs[0] ** 2 if not isinstance(element, ElementLineP0) else basis.mesh.p[0, basis.mesh.t].mean(axis=0)
    )
    _, axes = axes_of()
    draw_line(axes, basis, values)
    x, y = axes.lines[0].get_data()
    assert np.all(np.diff(x) >= -1e-9)
    assert (x[0], x[-1]) == pytest.approx((0.0, 1.0), abs=1e-9)
    if isinstance(element, ElementLineP2):
        assert y == pytest.approx(x**2, abs=1e-9)


@pytest.mark.parametrize(
    ("mesh", "element"),
    [
        (MeshTri().refined(2), ElementTriP0()),
        (MeshTri().refined(2), ElementTriP1()),
        (MeshTri().refined(2), ElementTriP2()),
        (MeshQuad().refined(2), ElementQuad1()),
        (MeshQuad().refined(2), ElementQuad2()),
    ],
)
def test_triangles_cover_the_domain(mesh, element):
    basis = Basis(mesh, element)
    values = np.ones(basis.N)
    triangles, z = triangulated(basis, values)
    p = np.array([triangles.x, triangles.y])[:, triangles.triangles]
    edge, other = p[:, :, 1] - p[:, :, 0], p[:, :, 2] - p[:, :, 0]
    area = 0.5 * np.abs(edge[0] * other[1] - edge[1] * other[0]).sum()
    assert area == pytest.approx(1.0, abs=1e-6)
    assert z == pytest.approx(1.0, abs=1e-9)


def test_parts_of_a_radius_add_up(result):
    for outcome in result.scenarios:
        for found in outcome.candidates:
            for certificate in (found.selection.baseline, found.selection.learned):
                parts = radius_parts(certificate, found.selection.rule)
                assert min(parts.values()) >= -1e-12 * certificate.radius.value
                assert sum(parts.values()) == pytest.approx(certificate.radius.value, rel=1e-12)
                assert parts["other"] <= 1e-6 * certificate.radius.value
    unfinished = result.scenarios[0].candidates[2].selection
    parts = radius_parts(unfinished.learned, unfinished.rule)
    assert parts["pde"] > 0.9 * unfinished.learned.radius.value


LONG = [("a" * 400, 1.0), ("$x_{", 1e12), ("line\none \\frac{", 1e-12), ("\u65e5\u672c\u8a9e" * 30, 1.0)]


@pytest.mark.parametrize(("candidate", "factor"), LONG, ids=range(len(LONG)))
@pytest.mark.parametrize("name", ["poisson", "tomography"])
def test_any_name_and_size_fits_in_the_picture(result, name, candidate, factor, tmp_path, monkeypatch):
    outcome = next(o for o in result.scenarios if o.scenario.experiment.name == name)
    selection = outcome.candidates[-1].selection
    radius = replace(selection.learned.radius, value=factor * selection.learned.radius.value, side="estimate")
    selection = replace(selection, learned=replace(selection.learned, name=candidate, radius=radius))
    drawn, draw = [], Text.draw

    def watched(self, renderer):
        draw(self, renderer)
        if self.get_visible() and self.get_text().strip():
            drawn.append((self.get_text(), self.get_window_extent(renderer), renderer))

    monkeypatch.setattr(Text, "draw", watched)
    # With the fewest panels the picture is narrowest. Warnings are errors.
    fc.plot_selection(selection, outcome.scenario.problem, tmp_path / "long.png")
    assert any("estimate" in text for text, _, _ in drawn)
    for text, box, picture in drawn:
        assert min(box.x0, box.y0) >= 0.0, text
        assert box.x1 <= picture.width, text
        assert box.y1 <= picture.height, text
