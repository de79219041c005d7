"""What the page of a selection says and shows."""

import re
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import zoo
from html_page import Page

import femcert as fc
from femcert.report.selection_page import selection_page, singular_values_picture
from femcert.report.selection_words import (
    LEAST_WIDTH,
    claim_words,
    radius_bars,
)

GRID = [[x, y] for x in (0.3, 0.5, 0.7) for y in (0.3, 0.7)]
EVIL = "<script>alert('x')</script> ]]> \"quoted\" & <b>"


def plane(degree=1, refined=3, kind=zoo.source, **options):
    sensors = partial(fc.AverageSensors, points=GRID, radius=0.1)
    return kind(zoo.square(refined, degree), **{"parameters": 3, "sensors": sensors, **options})


def line():
    return zoo.source("line P2", 20)


def made(problem, learned=(1.0, -0.5, 0.25), rule=None, baseline=None, **options):
    data = problem.simulate(problem.parameters.field([1.0, -0.5, 0.25]), noise=0.02, seed=1)
    candidate = learned
    if isinstance(learned, tuple):
        candidate = fc.Candidate.from_coefficients(problem, learned, optimality=0.0, name="network")
    return fc.no_harm(
        problem, data, learned=candidate, baseline=baseline or fc.Tikhonov(weight=1e-4),
        rule=rule or fc.ResidualRadius(), **options,
    )  # fmt: skip


def crash(problem, data):
    raise RuntimeError(EVIL)


MANY = {"angles": [0.0, 45.0, 90.0, 135.0], "bins": 6}


def in_regions(learned, **options):
    problem = plane(refined=2)
    basis = problem.parameters.basis
    west = fc.Mean(basis, lambda x: x[0] < 0.5, name="west & <b>")
    halves = [west, fc.Mean(basis, lambda x: x[0] > 0.5, name="east")]
    if isinstance(learned, dict):
        learned = {
            name: fc.Candidate.from_coefficients(problem, c) if isinstance(c, tuple) else c
            for name, c in learned.items()
        }
    return made(problem, learned, regions=halves, **options)


MAKE = {
    "accepted": lambda: made(plane(refined=2)),
    "rejected": lambda: made(plane(refined=2), learned=(3.0, 3.0, 3.0), tolerance=0.01),
    "crash": lambda: made(plane(refined=2), learned=crash),
    "heat": lambda: made(plane(refined=2, kind=zoo.heat)),
    "tomography": lambda: made(zoo.tomography(zoo.square(3, 1, "quad"), **MANY)),
    "line": lambda: made(line(), rule=fc.GuaranteedRadius()),
    "dominance": lambda: made(plane(refined=2), rule=fc.Dominance()),
    "dominance on a line": lambda: made(line(), rule=fc.Dominance(), learned=(2.0, 2.0, 2.0)),
    "stochastic": lambda: made(
        plane(2, 2),
        learned=fc.Tikhonov(weight=1e-9),
        rule=fc.StochasticRadius(points=500, zeta=0.02, seed=17, bound="betting"),
    ),
    "estimate": lambda: made(
        plane(refined=2, kind=zoo.coefficient), learned=(0.1, 0.1, 0.1), baseline=fc.GaussNewton(weight=1e-4)
    ),
    "blind": lambda: made(plane(refined=2, sensors=zoo.blind)),
    "regions": lambda: in_regions((30.0, 3.0, 30.0)),
    "several": lambda: in_regions(
        {"pinn": (1.0, -0.5, 0.25), "<i>": (30.0, 3.0, 30.0), "broken": crash}, tolerance=1.0
    ),
}
# The others differ from these in words only, or in a picture that is tested alone.
PAGES = [name for name in MAKE if name != "rejected"]
IN_PLANE = {"accepted": 10, "crash": 5, "heat": 8, "tomography": 5, "dominance": 11, "blind": 3}


@cache
def selection(name):
    return MAKE[name]()


@cache
def page(name):
    return selection_page(selection(name))


VERDICTS = {
    "accepted": "✓ The learned candidate[^:]* is accepted",
    "rejected": "✗ The learned candidate[^:]* is rejected and the baseline kept",
    "undecided": r"\? Undecided, and the baseline is kept",
}


def read(source):
    """Tags and text of a page that is well formed and loads nothing."""
    page = Page(source)
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)|<script |<link", re.sub(r"base64,[^\"]*", "", source))
    return page.tags, page.text


@pytest.mark.parametrize("name", PAGES)
def test_the_page_says_the_decision_first_and_shows_all_the_evidence(name):
    found = selection(name)
    tags, text = read(page(name))
    assert re.match(rf"\w+ . femcert selection femcert selection {VERDICTS[found.status]}:", text)
    verdict = next(attributes["class"] for tag, attributes in tags if "verdict" in attributes.get("class", ""))
    assert verdict.split()[1] == {"accepted": "good", "rejected": "bad", "undecided": "open"}[found.status]
    assert " ".join(found.reason.split()) in text
    assert claim_words(found) in text
    if found.baseline is not None:
        assert text.index(claim_words(found)) < text.index("radius of the baseline")
    for row in found.rows():
        assert " ".join(" ".join(row).split()) in text
    assert {tag for tag, _ in tags} >= {"h1", "main"}
    # Tables are whole without the script, which adds the buttons.
    assert not any(tag == "button" for tag, _ in tags)
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:url\(#|href="#)([^)"]*)', page(name))
    assert set(used) <= set(ids)


@pytest.mark.parametrize("name", PAGES)
def test_pictures_have_words_and_are_drawn_in_the_colours_of_the_page(name):
    source = page(name)
    drawings = re.findall(r"<svg.*?</svg>", source, re.DOTALL)
    if name in IN_PLANE:
        assert len(drawings) == IN_PLANE[name]
    assert drawings
    for drawing in drawings:
        assert re.match(r'<svg viewBox="[^"]*" role="img" aria-label="[^"]+"', drawing)
        assert "<text" in drawing
        assert "currentColor" in drawing
        assert "<style" not in drawing
        assert "<metadata" not in drawing


def test_names_reasons_and_steps_of_a_user_are_escaped():
    problem = zoo.tomography(zoo.square(3, 1, "quad"), **MANY)
    candidate = fc.Candidate.from_coefficients(problem, [1.0, -0.5, 0.25], name=EVIL)
    accepted = made(problem, learned=candidate, rule=fc.OperationalRadius(pde=0.25))
    assert accepted.learned.name == EVIL
    for source in (selection_page(accepted, timings={EVIL: 1.0}), page("crash")):
        tags, text = read(source)
        assert EVIL in text
        assert sum(tag == "script" for tag, _ in tags) == 1
        assert "alert(" not in re.search(r"<script>.*?</script>", source, re.DOTALL)[0]


@pytest.mark.parametrize("name", ["accepted", "rejected", "dominance", "line", "heat", "stochastic", "estimate"])
def test_the_parts_of_the_bars_sum_to_the_radii(name):
    found = selection(name)
    bars = radius_bars(found)
    for bar, certificate in zip(bars.bars, (found.baseline, found.learned), strict=True):
        assert sum(value for _, value, _ in bar.parts) == pytest.approx(certificate.radius.value, rel=8 * LEAST_WIDTH)
        assert bar.proven == (certificate.radius.side == "upper")
    widths = [sum(width for _, _, width in bar.parts) for bar in bars.bars]
    assert max([*widths, bars.limit or 0.0]) == pytest.approx(100.0, abs=1.0)
    assert widths[1] / widths[0] == pytest.approx(found.ratio, rel=0.02)
    for column, certificate in ((3, found.baseline), (4, found.learned)):
        assert sum(row[column] for row in bars.rows) == pytest.approx(certificate.radius.value)
    if found.comparison is None:
        end = 100.0 * (found.baseline.radius.value + found.tolerance)
        assert bars.limit == pytest.approx(end / max(end / 100.0, found.learned.radius.value))
    else:
        assert bars.limit is None


def test_an_estimate_is_not_called_proven():
    _, text = read(page("estimate"))
    assert "is an estimate: nothing is proven" in text
    assert "striped: an estimate" in text
    assert "is proven:" not in text
    _, proven = read(page("accepted"))
    assert "is proven: every parameter of the admissible class" in proven
    assert "striped" not in proven
    assert "Nothing is claimed" in read(page("blind"))[1]


def test_confidence_is_shown_where_a_rule_samples():
    _, text = read(page("stochastic"))
    assert "the baseline's radius holds 98 %" in text
    assert "both hold 96 %" in text
    assert "is proven, with probability 96 % at least" in text
    assert "seed of the rule 17" in text
    assert "Confidence" not in read(page("accepted"))[1]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("heat", "Left out: the state of a HeatInitial has a residual at every time"),
        ("tomography", "This problem has no state"),
        ("tomography", "Left out: dual_norm needs one state equation"),
        ("crash", "There is no learned candidate to draw."),
        ("blind", "Left out: sigma_min"),
        ("blind", "The learned candidate was not looked at, because the baseline has no certificate."),
    ],
)
def test_what_is_missing_is_said(name, words):
    found = read(page(name))[1]
    assert words in found, re.findall("Left out[^.]*", found)


@pytest.mark.parametrize(
    ("values", "level", "words"),
    [
        ([4.0, 2.0, 1.0], 0.5, ["seen (3)", "noise level"]),
        ([4.0, 2.0, 1.0], 2.0, ["seen (1)", "below the noise (2)", "noise level"]),
        ([4.0, 2.0, 0.0], 0.0, ["seen (2)", "below the noise (1)"]),
    ],
)
def test_singular_values_are_told_from_the_noise(values, level, words):
    found = replace(selection("accepted").baseline.stability, singular_values=np.array(values))
    drawn = singular_values_picture(found, level)
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", str(drawn.svg))
    assert [text for text in shown if re.match("seen|below|noise", text)] == words
    assert ("not seen at all" in drawn.caption) == (values[-1] == 0.0)


@pytest.mark.parametrize("name", ["crash", "line", "dominance", ])
def test_a_loaded_selection_has_a_page_and_with_its_problem_maps(name, tmp_path):
    found = selection(name)
    found.save(tmp_path / "s.json")
    again = fc.Selection.load(tmp_path / "s.json")
    _, text = read(fc.write_report(again, tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "write_report(..., problem=...)" in text
    assert " ".join(found.reason.split()) in text
    source = fc.write_report(again, tmp_path / "page.html", problem=found.case.problem).read_text(encoding="utf-8")
    _, text = read(source)
    assert "Only the selected reconstruction is in the file." in text
    assert len(re.findall("<svg", source)) >= 1
    other = line() if name != "line" else zoo.tomography()
    with pytest.raises(fc.InputError, match="parameter has shape"):
        fc.write_report(again, tmp_path / "other.html", problem=other)
    assert not (tmp_path / "other.html").exists()
