"""Pictures of stability: every kind of field is drawn, the words and numbers in them are right, the rest is refused."""

from __future__ import annotations

import numpy as np
import pytest
import zoo
from matplotlib.image import imread

import femcert as fc
from femcert.report.modulus_figure import modulus_figure
from femcert.report.stability_figure import stability_figure
from femcert.stability import Modulus

ONE_SIDE = np.random.default_rng(0).uniform((0.1, 0.1), (0.5, 0.9), (12, 2))


def heat():
    return zoo.heat("line P1", 40, parameters=5, sensors=np.linspace(0.1, 0.5, 7)[:, None], times=0.01, scheme="exact")


def halves(basis):
    left = basis.mesh.p[0, basis.mesh.t].mean(axis=0) < 0.5
    return fc.RegionSpace(basis, [np.flatnonzero(left), np.flatnonzero(~left)])


PROBLEMS = {
    "heat": heat,
    "line P2": lambda: zoo.source("line P2", 40, parameters=6, sensors=np.linspace(0.1, 0.6, 8)[:, None]),
    "line P0": lambda: zoo.source("line P1", 40, parameters=halves, sensors=[[0.2], [0.3], [0.7]]),
    "one direction": lambda: zoo.source("line P1", 40, parameters=1, sensors=[[0.2], [0.7]]),
    "P2": lambda: zoo.source(zoo.square(3, 2), parameters=6, sensors=ONE_SIDE),
    "Q1": lambda: zoo.source(zoo.square(3, 1, "quad"), parameters=6, sensors=ONE_SIDE),
    "L-shape": lambda: zoo.source(zoo.l_shape(3), parameters=(fc.EigenmodeSpace, 8), sensors=ONE_SIDE - 1.0),
}


def ball(norm="h1"):
    basis = zoo.square(3)
    return zoo.source(basis, parameters=fc.FullSpace(basis).within_ball(1.0, norm=norm), sensors=ONE_SIDE)


def check_picture(path):
    image = imread(path)[:, :, :3]
    assert image.shape[0] >= 400
    assert image.shape[1] >= 1000
    assert 0.01 < np.mean(np.any(image[::5, ::5] < 0.98, axis=2)) < 0.9


@pytest.mark.parametrize("name", PROBLEMS)
def test_any_field_is_drawn(name, tmp_path):
    found = fc.stability(PROBLEMS[name]())
    level = float(np.sqrt(found.sigma_max * found.sigma_min)) if "P" in name else None
    path = tmp_path / "new" / "stability.png"
    assert fc.plot_stability(found, str(path), noise_level=level) == path
    check_picture(path)
    assert [p.name for p in path.parent.iterdir()] == ["stability.png"]


def texts(figure):
    return figure.get_suptitle(), figure.get_supxlabel()


def test_the_picture_says_how_much_the_noise_hides():
    found = fc.stability(heat())
    sigma = found.singular_values
    between = float(np.sqrt(sigma[2] * sigma[3]))
    message, detail = texts(stability_figure(found, between))
    assert message == f"The sensors hardly see 2 of 5 directions, C = {found.constant.value:.3g} (upper, discrete)"
    assert "Near-null space: 2 directions" in detail
    message, detail = texts(stability_figure(found, 0.5 * found.sigma_min))
    assert "see all 5 directions above the noise" in message
    assert "near-null space is empty" in detail
    message, _ = texts(stability_figure(found, float(sigma[4])))
    assert "hardly see 1 of 5 directions" in message
    message, _ = texts(stability_figure(found))
    assert f"{found.condition:.3g} times less than another" in message
    assert "see the only direction, C" in texts(stability_figure(fc.stability(PROBLEMS["one direction"]())))[0]


def test_an_estimate_is_called_one():
    problem = zoo.coefficient("line P1", 40, parameters=3, sensors=6)
    found = fc.stability(problem, at=np.zeros(problem.basis.N))
    assert texts(stability_figure(found))[0].endswith("(estimate)")


def test_marks_and_curves_are_the_numbers():
    found = fc.stability(heat())
    level = float(found.singular_values[3])
    values, weakest, resolution = stability_figure(found, level).axes
    assert values.get_yscale() == "log"
    seen, hidden = (marks.get_offsets().data for marks in values.collections)
    assert np.array_equal(np.vstack([seen, hidden])[:, 1], found.singular_values)
    assert len(hidden) == 2
    assert np.array_equal(values.lines[0].get_ydata(), [level, level])
    for line, field in zip(weakest.lines, found.directions.weakest(2).T, strict=False):
        assert line.get_ydata().max() == pytest.approx(np.abs(field).max())
    # Piecewise linear, drawn element by element: each inner node twice.
    drawn = resolution.lines[0].get_ydata()[2:-1:2]
    assert drawn == pytest.approx(found.directions.resolution(level)[1:-1])


def test_the_modulus_and_its_envelope(tmp_path):
    found = fc.stability(ball(), levels=(1e-3, 1e-2))
    check_picture(fc.plot_modulus(found, tmp_path / "modulus.png"))
    axes = modulus_figure(found).axes[0]
    above, below, envelope = (line.get_xydata() for line in axes.lines)
    assert above[[0, -1], 0] == pytest.approx([1e-4, 1e-1])
    assert np.all(below[:, 1] <= above[:, 1] * (1.0 + 1e-9))
    assert np.all(above[:, 1] <= 1.01 * below[:, 1])
    assert envelope[:, 0] == pytest.approx([1e-3, 1e-2])
    assert envelope[:, 1] == pytest.approx([found.radius(1e-3), found.radius(1e-2)])
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert any(f"p = {found.exponent:.3g}" in label for label in labels)
    assert any("0.001 to 0.01" in label for label in labels)
    assert f"leaves {10**-found.exponent:.0%} of the radius" in axes.get_title(loc="left")
    narrow = modulus_figure(found, (2e-3, 5e-2)).axes[0]
    assert narrow.get_xlim() == pytest.approx((2e-3, 5e-2))


def test_a_modulus_alone(tmp_path):
    modulus = fc.stability(ball(), levels=(1e-3, 1e-2)).moduli
    check_picture(fc.plot_modulus(modulus, tmp_path / "modulus.png", levels=(1e-4, 1e-1)))
    envelope = modulus_figure(modulus, (1e-4, 1e-1)).axes[0].lines[2].get_xydata()
    C, p = Modulus(ball()).envelope(1e-4, 1e-1)
    assert envelope[:, 1] == pytest.approx([C * 1e-4**p, C * 1e-1**p], rel=0.01)
    with pytest.raises(fc.InputError, match="no range of its own"):
        fc.plot_modulus(modulus, tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


def test_what_is_not_there_is_not_drawn(tmp_path):
    path = tmp_path / "picture.png"
    found = fc.stability(heat())
    with pytest.raises(fc.UncertifiedError, match="from a file"):
        fc.plot_stability(fc.Stability.from_dict(found.to_dict()), path)
    conditional = fc.stability(ball(), levels=(1e-3, 1e-2))
    with pytest.raises(fc.UncertifiedError, match="plot_modulus"):
        fc.plot_stability(conditional, path)
    for without in (found, fc.Stability.from_dict(conditional.to_dict())):
        with pytest.raises(fc.UncertifiedError, match="no modulus to draw"):
            fc.plot_modulus(without, path)
    for draw in (fc.plot_stability, fc.plot_modulus):
        with pytest.raises(fc.InputError, match="is a dict; expected"):
            draw({}, path)
    for level in (0.0, -1.0, np.nan, "low"):
        with pytest.raises(fc.InputError, match="noise_level"):
            fc.plot_stability(found, path, noise_level=level)
    for levels in (1e-3, (1e-2, 1e-3), (0.0, 1.0), (1.0,)):
        with pytest.raises(fc.InputError, match="levels"):
            fc.plot_modulus(conditional, path, levels=levels)
    assert not list(tmp_path.iterdir())
