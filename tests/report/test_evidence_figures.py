"""Pictures of evidence: what they draw is what was computed, and what cannot be drawn is refused."""

import numpy as np
import pytest
from skfem import Basis, ElementTriP0
from zoo import PLANE, l_shape, source, unit_basis

import femcert as fc
from femcert.report import design_figure, evidence_figure, sensitivity_figure

STD = 1e-3


def ball(basis):
    return fc.FullSpace(basis).within_ball(1.5, norm="h1", length=0.4)


def evidence_of(basis, truth=lambda x: np.sin(np.pi * x[0]), sensors=12):
    problem = source(basis, parameters=ball, sensors=sensors)
    field = truth(problem.parameters.basis.doflocs)
    exact = problem.observe(problem.solve(field))
    noise = STD * np.random.default_rng(0).standard_normal(len(exact))
    return fc.evidence(problem, fc.Data.gaussian(exact + noise, std=STD)), field


def texts(figure):
    found = [figure._suptitle, figure._supxlabel, *figure.findobj(match=lambda a: hasattr(a, "get_text"))]
    return " ".join(each.get_text() for each in found if each is not None)


@pytest.mark.parametrize("basis", [*PLANE, "l-shape"])
def test_map_has_the_ends_of_discs(basis, tmp_path):
    found, truth = evidence_of(l_shape() if basis == "l-shape" else unit_basis(basis))
    space = found.problem.parameters
    points, table, exact = evidence_figure.smoothed_intervals(found, 0.3, False, truth)
    assert len(points) == len(table) == len(exact)
    # No two centres in the same cell of the grid, and none of the mesh far from all of them.
    gaps = np.linalg.norm(space.basis.mesh.p.T[:, None] - points, axis=2).min(axis=1)
    assert gaps.max() <= 0.3 * np.sqrt(2.0)
    i = len(points) // 2
    value = fc.Value(space.basis, points[i], radius=0.3)
    assert exact[i] == pytest.approx(value.value(space, truth), rel=1e-9)
    alone = found.table([value, *[fc.Value(space.basis, p, radius=0.3) for p in np.delete(points, i, axis=0)]])[0]
    assert table[i].lower.value == pytest.approx(alone.lower.value, rel=1e-6)
    assert fc.plot_evidence(found, tmp_path / "map.png", radius=0.3, truth=truth).stat().st_size > 10_000


def test_the_certain_part_is_that_of_the_signs():
    found, _ = evidence_of(unit_basis("tri P1", 12), lambda x: np.full(x.shape[1], 0.8), sensors=40)
    mesh = found.problem.basis.mesh
    points, table, _ = evidence_figure.smoothed_intervals(found, 0.3, False, None)
    figure = evidence_figure._maps(mesh, points, table, None, 0.3)
    names = [axes.get_title(loc="left") for axes in figure.axes[:3]]
    assert names == ["lower end", "upper end", "sign"]
    lower, upper, sign = (axes.collections[0].get_array() for axes in figure.axes[:3])
    assert len(lower) == mesh.nelements
    assert np.array_equal(sign, (lower > 0.0).astype(float) - (upper < 0.0))
    assert 0.0 < np.mean(sign) <= 1.0
    words = texts(figure)
    assert f"certain on {np.mean(sign != 0.0):.0%} of the domain" in words
    assert f"{len(table)} of them together at 95 %" in words.replace("\n", " ")


def test_a_line_has_bars():
    found, truth = evidence_of(unit_basis("line P1", 40))
    points, table, exact = evidence_figure.smoothed_intervals(found, 0.1, False, truth)
    figure = evidence_figure._band(found.problem.basis.mesh, points, table, exact, 0.1)
    bars = [len(each.get_segments()) for each in figure.axes[0].collections]
    assert sum(bars) == len(points)
    assert "certainly positive" in texts(figure)


def test_sensitivity_shows_what_cannot_be_and_the_breakdown():
    found, _ = evidence_of(l_shape(), lambda x: np.full(x.shape[1], 0.5))
    mean = fc.Mean(found.problem.basis, name="all")
    at = found.sensitivity(mean)
    figure = sensitivity_figure.sensitivity_figure(at, (0.8, 0.5))
    words = texts(figure)
    assert "'all' is above 0 unless the norm exceeds" in words
    assert "cannot be: the data need" in words
    assert "nested: for all radii together" in words
    marks = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert [float(mark.get_xdata()[0]) for mark in marks] == [found.breakdown(mean, 0.0).value]
    best = sensitivity_figure.sensitivity_figure(found.sensitivity(mean, weights="best"))
    assert "for one radius, fixed before the data" in texts(best)


def test_design_has_a_line_for_each_noise_level():
    problem = source(l_shape(), parameters=ball, sensors=12)
    asked = [fc.Mean(problem.basis, name="all"), fc.Mean(problem.basis, lambda x: x[0] < 0.0, name="west")]
    found = fc.design(problem, asked, std=[1e-3, 1e-2], counts=[3, 6, 12])
    figure = design_figure.design_figure(found)
    for i, axes in enumerate(figure.axes):
        assert axes.get_title(loc="left") == found.names[i]
        solid, dashed = axes.lines[::2], axes.lines[1::2]
        assert np.array_equal([line.get_ydata() for line in solid], found.half_lengths[:, :, i])
        assert np.array_equal([line.get_ydata() for line in dashed], found.limits[:, :, i])
        assert list(solid[0].get_xdata()) == [3, 6, 12]
    # One number of sensors: over the noise.
    figure = design_figure.design_figure(fc.design(problem, asked[:1], std=[1e-2, 1e-3], counts=[12]))
    assert list(figure.axes[0].lines[0].get_xdata()) == [1e-3, 1e-2]
    # A span that so few sensors do not determine.
    span = source(l_shape(), parameters=(fc.CosineSpace, 5), sensors=8)
    open_ = fc.design(span, [fc.Mean(span.basis)], std=0.1, counts=[2, 3])
    assert "No number of these sensors" in texts(design_figure.design_figure(open_))


def test_refused(tmp_path):
    path = tmp_path / "picture.png"
    found, _ = evidence_of(unit_basis("line P1"))
    for call in (fc.plot_evidence, fc.plot_design):
        with pytest.raises(fc.InputError, match="expected the result of"):
            call("nothing", path)
    with pytest.raises(fc.InputError, match="expected the result of"):
        fc.plot_sensitivity("nothing", fc.Mean(found.problem.basis), path)
    with pytest.raises(fc.InputError, match="radius"):
        fc.plot_evidence(found, path, radius=0.0)
    many = fc.design(found.problem, [fc.Mean(found.problem.basis)] * 13, std=0.1, counts=[12])
    with pytest.raises(fc.InputError, match="13 functionals"):
        fc.plot_design(many, path)
    steps = source(
        "tri P1",
        sensors=6,
        parameters=lambda b: fc.FullSpace(Basis(b.mesh, ElementTriP0())).within_ball(1.0, norm="l2"),
    )
    with pytest.raises(fc.InputError, match="piecewise constants"):
        fc.plot_evidence(fc.evidence(steps, fc.Data.gaussian(np.zeros(6), std=0.1)), path)
    matrices = fc.MatrixProblem(operator=np.eye(3), load=np.eye(3), observe=np.eye(3))
    with pytest.raises(fc.InputError, match="functions on meshes"):
        fc.plot_evidence(fc.evidence(matrices, fc.Data.gaussian(np.zeros(3), std=0.1)), path)
    assert not path.exists()
