"""Case files that say what a user knows: deviations, a ball, bounds, regions, several candidates."""

import json

import numpy as np
import pytest
from test_case_keys import changed, read

import femcert as fc
from femcert.cli import main
from femcert.study.example import write_example

RADIUS = 28  # values in the data of the example


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_example(tmp_path_factory.mktemp("example") / "case").parent


def without_deviations(folder):
    text = (folder / "data.csv").read_text()
    (folder / "plain.csv").write_text(text.replace("deviation", "remark"))
    return "plain.csv"


def made(folder, **sections):
    return read(changed(**sections), folder)


def test_a_column_of_deviations_gives_gaussian_data(folder):
    case = made(folder, data={"confidence": None})
    assert case.data.confidence == 0.95
    assert case.data.law.zeta == pytest.approx(0.05)
    assert made(folder, data={"confidence": 0.9}).data.confidence == pytest.approx(0.9)


def test_std_relative_and_reference(folder):
    plain = without_deviations(folder)
    one = made(folder, data={"file": plain, "std": 0.01}).data
    np.testing.assert_allclose(one.covariance, np.full(RADIUS, 1e-4))
    two = made(folder, data={"file": plain, "std": 0.01, "relative": 0.03, "reference": 2.0}).data
    np.testing.assert_allclose(two.covariance, np.full(RADIUS, 0.06**2 + 1e-4))
    assert two.law.proven
    assert not made(folder, data={"file": plain, "relative": 0.03, "std": 1e-4}).data.law.proven
    # A column may be the floor beside a relative error.
    assert made(folder, data={"relative": 0.03, "reference": 1.0}).data.law.proven


@pytest.mark.parametrize("gap", ["nan,0.001", "NaN,", ","])
def test_a_reading_without_a_value_is_missing(folder, gap):
    head, first, *rest = (folder / "data.csv").read_text().splitlines()
    spoilt = ",".join([*first.split(",")[:2], gap])
    (folder / "gap.csv").write_text("\n".join([head, spoilt, *rest]))
    case, whole = made(folder, data={"file": "gap.csv"}), made(folder)
    assert (case.data.values.size, case.data.count) == (RADIUS, RADIUS - 1)
    np.testing.assert_array_equal(case.data.values[1:], whole.data.values[1:])
    assert case.select().status in ("accepted", "rejected")


def test_a_gap_that_is_refused(folder):
    """A value without a deviation, a place without a coordinate."""
    head, first, *rest = (folder / "data.csv").read_text().splitlines()
    x, y, value, _ = first.split(",")
    for spoilt, words in (([x, y, value, ""], "without its deviation"), ([x, "", value, "1"], "y is ''")):
        (folder / "gap.csv").write_text("\n".join([head, ",".join(spoilt), *rest]))
        with pytest.raises(fc.InputError, match=words):
            made(folder, data={"file": "gap.csv"})


REFUSED = {
    "both names": ({"std": 0.1, "deviation": 0.1}, "data.std and data.deviation are both given"),
    "no number": ({"std": "much"}, "data.std has type"),
    "negative": ({"relative": -0.1}, "data.relative is -0.1; expected a positive"),
    "twice": ({"std": 0.1}, "data.std is given, and a column"),
    "level and relative": ({"confidence": None, "noise_level": 1.0, "relative": 0.1}, "data.noise_level and data.rel"),
    "large": ({"relative": 2.0}, "data.relative is 2"),
}


@pytest.mark.parametrize(("keys", "words"), REFUSED.values(), ids=REFUSED)
def test_noise_that_is_refused(keys, words, folder):
    with pytest.raises(fc.InputError, match=words):
        made(folder, data=keys)


def test_the_ball(folder):
    ball = {"radius": 3.0, "norm": "h1", "length": 0.2, "centre": "0.5*x"}
    space = read(changed() | {"class": {"kind": "full", "ball": ball}}, folder).problem.parameters
    assert (space.ball.radius, space.ball.norm, space.ball.length) == (3.0, "h1", 0.2)
    np.testing.assert_allclose(space.ball.centre, 0.5 * space.basis.doflocs[0])
    plain = read(changed() | {"class": {"kind": "full", "ball": {**ball, "centre": 2}}}, folder).problem.parameters
    np.testing.assert_allclose(plain.ball.centre, 2.0)


def test_remainder_and_bounds(folder):
    more = {"remainder": {"size": 0.3}, "bounds": {"lower": 0, "upper": "2 + x"}}
    space = read(changed(**{"class": more}), folder).problem.parameters
    assert space.remainder.size == 0.3
    np.testing.assert_allclose(space.bounds.lower, 0.0)
    np.testing.assert_allclose(space.bounds.upper, 2.0 + space.basis.doflocs[0])
    whole = read(changed(**{"class": {"remainder": {"size": 5.0, "norm": "h1", "length": 0.5}}}), folder)
    assert 0.0 < whole.problem.parameters.remainder.size < 5.0


CLASSES = {
    "no radius": ({"ball": {"norm": "h1"}}, "class.ball.radius is missing"),
    "samples": ({"ball": {"samples": [1.0]}}, r"class.ball.samples is \[1.0\]; expected the name of a file"),
    "centre": ({"ball": {"radius": 1.0, "centre": "import os"}}, "class.ball.centre"),
    "centre elsewhere": ({"ball": {"radius": 1.0, "centre": "x**3"}}, "class.ball.centre is .* away from the class"),
    "no size": ({"remainder": {}}, "class.remainder.size is missing"),
    "no bounds": ({"bounds": {}}, "class.bounds.lower and class.bounds.upper are both missing"),
    "crossed": ({"bounds": {"lower": 1.0, "upper": 0.0}}, "class.bounds.lower exceeds upper"),
    "no table": ({"ball": 3.0}, "class.ball is 3.0; expected a table"),
}


@pytest.mark.parametrize(("keys", "words"), CLASSES.values(), ids=CLASSES)
def test_classes_that_are_refused(keys, words, folder):
    with pytest.raises(fc.InputError, match=words):
        made(folder, **{"class": keys})


def test_regions(folder):
    asked = {"names": ["top", "middle"], "where": {"east": "x - 1"}, "points": [[0.5, 0.5]], "radius": 0.1}
    case = read(changed() | {"regions": asked}, folder)
    assert [each.name for each in case.regions] == ["top", "middle", "east", "about (0.5, 0.5)"]
    east = case.regions[2]
    mesh = case.problem.mesh
    np.testing.assert_array_equal(east.elements, np.flatnonzero(mesh.p[0, mesh.t].mean(axis=0) > 1.0))
    assert made(folder).regions is None


REGIONS = {
    "empty": ({}, "regions is empty"),
    "no list": ({"names": "top"}, "regions.names is 'top'; expected a list"),
    "unknown name": ({"names": ["roof"]}, r"regions.names\[0\].*roof"),
    "nowhere": ({"where": {"far": "x - 100"}}, "regions.where.far: .*no element"),
    "no formula": ({"where": {"far": "x >"}}, "regions.where.far"),
    "no radius": ({"points": [[0.5, 0.5]]}, "regions.points and regions.radius belong together"),
    "outside": ({"points": [[50.0, 0.5]], "radius": 0.1}, "regions.points"),
    "no points": ({"points": [["a", 0.5]], "radius": 0.1}, "regions.points"),
    "unknown key": ({"name": ["top"]}, "unknown key 'regions.name'"),
}


@pytest.mark.parametrize(("keys", "words"), REGIONS.values(), ids=REGIONS)
def test_regions_that_are_refused(keys, words, folder):
    with pytest.raises(fc.InputError, match=words):
        read(changed() | {"regions": keys}, folder)


def test_several_candidates(folder):
    one = changed()["candidate"]
    record = changed() | {"candidate": {"pinn": one, "operator": {**one, "name": "other"}}}
    case = read(record, folder)
    assert list(case.candidate) == ["pinn", "operator"]
    assert {"candidate.pinn.file", "candidate.operator.file", "data.file", "mesh.file"} == set(case.inputs)
    found = case.select()
    assert found.accepted
    assert found.selected == "pinn"
    assert found.learned.name == "pinn"
    with pytest.raises(fc.InputError, match=r"candidate.pinn.file is missing"):
        read(changed() | {"candidate": {"pinn": {}}}, folder)
    with pytest.raises(fc.InputError, match=r"candidate.file is missing"):
        read(changed() | {"candidate": {}}, folder)


def test_a_baseline_from_a_file(folder):
    one = changed()["candidate"]
    case = read(changed() | {"baseline": {**one, "name": "classical"}}, folder)
    assert case.baseline.name == "classical"
    assert case.inputs["baseline.file"] == case.inputs["candidate.file"]
    found = case.select()
    assert found.baseline.radius == found.learned.radius
    with pytest.raises(fc.InputError, match=r"baseline.file: .*there is no such file"):
        read(changed() | {"baseline": {"file": "none.csv"}}, folder)
    with pytest.raises(fc.InputError, match=r"unknown key 'baseline.choose'"):
        read(changed() | {"baseline": {"file": "none.csv", "choose": "gcv"}}, folder)


def as_lines(record):
    from test_case_keys import as_toml

    return "\n".join(f"{json.dumps(name)} = {as_toml(value)}" for name, value in record.items())


def test_from_a_file_to_a_page_with_regions(folder, tmp_path, capsys):
    path = folder / "regions.toml"
    path.write_text(as_lines(changed() | {"regions": {"names": ["top", "middle", "bottom"]}}))
    assert main(["certify", str(path), "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "the data say" in out
    assert "What the data say about regions" in (tmp_path / "report.html").read_text()
    assert fc.Selection.load(tmp_path / "selection.json").regions.head[-1] == "learned"
