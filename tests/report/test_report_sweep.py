"""Tables, figures and page of a sweep, beside the paper's numbers and without them."""

import csv
import re
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from femcert import InputError
from femcert.report import style, sweep_figures, sweep_heatmaps, write_sweep
from femcert.report.sweep import FIGURES, TABLES, owned_files, page
from femcert.report.sweep_checks import Band, bands, comparable
from femcert.report.sweep_rows import ratio_range, sentence
from femcert.study.sweep import RULES, Grid, Sweep, Verdict, paper, sweep
from femcert.study.sweep.result import record_type

SMALL = Grid(sensors=(12, 30), noise=(0.0, 0.03), perturbation=(0.0, 0.1, 0.3), mismatch=(0.0, 0.01), replications=4)
VOID = {"meta", "img", "link", "br", "hr", "input"}


class Page(HTMLParser):
    """Checks nesting, collects addresses, text and the cells of all tables."""

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.text, self.images, self.rows = [], [], [], 0, []

    def handle_starttag(self, tag, attributes):
        self.images += tag == "img"
        self.addresses += [value for name, value in attributes if name in ("src", "href", "srcset", "action", "data")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data.replace("\xa0", " ")


def parsed(source):
    content = Page()
    content.feed(source)
    content.close()
    assert content.open == []
    return content, " ".join(" ".join(content.text).split())


def table(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def faked(grid=SMALL, *, rules=("operational",), ratio=1.0, accepted=False, baseline=1.0, learned=1.0):
    """A sweep whose numbers are chosen."""
    records = np.empty(grid.trials, record_type(len(rules)))
    records["baseline_error"], records["learned_error"] = baseline, learned
    records["ratio"], records["accepted"] = np.reshape(ratio, (-1, 1)), np.reshape(accepted, (-1, 1))
    return Sweep(grid=grid, seed=1, rules=rules, records=records)


@pytest.fixture(scope="module")
def small():
    return sweep(grid=SMALL)


@pytest.fixture(scope="module")
def full():
    return sweep()


@pytest.fixture(scope="module")
def written(full, tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep") / "new" / "out"
    assert write_sweep(full, out) == out / "report.html"
    return out


@pytest.fixture(scope="module")
def content(written):
    return parsed((written / "report.html").read_text(encoding="utf-8"))


@pytest.fixture
def undrawn(monkeypatch):
    """Pages without pictures, where these do not matter."""
    monkeypatch.setattr("femcert.report.sweep.FIGURES", ())


@pytest.fixture
def blank(monkeypatch):
    """Pictures of the right names with nothing in them."""
    empty = [(name, lambda result: style.new_figure(1, 1), words) for name, _, words in FIGURES]
    monkeypatch.setattr("femcert.report.sweep.FIGURES", empty)


@pytest.fixture
def coarse(monkeypatch):
    """Pictures with few pixels."""
    monkeypatch.setattr(style, "DPI", 30)


# The paper's sweep.


def test_nothing_but_the_results_is_left(written):
    assert files(written) == set(owned_files())
    assert set(TABLES) <= files(written)
    assert not list(written.glob(".draft*"))


@pytest.mark.parametrize("name", [name for name, _, _ in FIGURES])
def test_figures_show_something(written, name):
    image = imread(written / "figures" / f"{name}.png")[::5, ::5, :3]
    inked = np.mean(np.any(image < 0.98, axis=2))
    assert 0.01 < inked < 0.9
    assert len(np.unique((image.reshape(-1, 3) * 255).astype(int), axis=0)) > 30


def test_page_is_self_contained(written, content):
    assert content[0].images == len(FIGURES)
    assert all(address.startswith(("data:image/png;base64,", "#")) for address in content[0].addresses)
    source = (written / "report.html").read_text(encoding="utf-8")
    bare = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", source)
    assert not re.search(r"https?://|//[a-z]|@import|url\(|<script|<link", bare)
    assert 'href="#checks"' in bare
    assert 'id="checks"' in bare


def percent(value, places=2):
    return f"{100.0 * value:.{places}f} %"


def test_page_has_the_aggregates_beside_the_paper_s(full, content):
    found, rows = full.outcome(), {row[0]: row[1:] for row in content[0].rows}
    printed_rate = percent(paper.SELECTED / paper.TRIALS)
    assert rows["trials"] == ["21,000", "21,000", "100.00 %", "100.00 %"]
    assert [f"{found.accepted:,}", "1,235", percent(found.rate("accepted")), printed_rate] in [
        row[1:] for row in content[0].rows if row[0] == "selected"
    ]
    assert rows["unsafe, of the selected"] == [
        str(found.unsafe),
        "14",
        percent(found.unsafe / found.accepted),
        "1.13 %",
    ]
    assert rows["fallback-required regimes"][:2] == [str(full.regimes()[1].regimes), "799"]


def test_page_has_the_mismatch_table_beside_the_paper_s(full, content):
    rows = [row for row in content[0].rows if len(row) == 11]
    assert rows[0][0] == "μ"
    for row, computed, printed in zip(rows[1:], full.mismatches(), paper.MISMATCHES, strict=True):
        assert row[0] == f"{computed.mismatch:g}"
        assert row[1:3] == [percent(computed.accept_rate), percent(printed.accept_rate)]
        shown = [float(cell.replace(",", "")) for cell in row[3:7]]
        pairs = [(r.median_ratio, r.median_error_ratio) for r in (computed, printed)]
        expected = [value for pair in zip(*pairs, strict=True) for value in pair]
        assert shown == pytest.approx(expected, rel=1e-4)
        assert row[9:] == [percent(computed.false_rejection_rate), percent(printed.false_rejection_rate)]


def test_page_has_the_regime_table_beside_the_paper_s(full, content):
    enough, fallback = full.regimes()
    rows = {row[0]: row[1:] for row in content[0].rows}
    assert rows["Regimes"] == [str(enough.regimes), "41", str(fallback.regimes), "799"]
    assert rows["Γ"] == [f"{enough.ratio:.4f}", "0.6425", f"{fallback.ratio:,.1f}", "1,639.0"]
    assert rows["Selected"] == [percent(enough.accept_rate), "88.68 %", percent(fallback.accept_rate), "1.63 %"]


def test_page_has_every_rule_in_all_and_by_noise(full, content):
    cells = [tuple(row) for row in content[0].rows]
    for rule in full.rules:
        for noise in (None, *full.grid.noise):
            found = full.outcome(rule) if noise is None else full.outcome(rule, noise=noise)
            part = percent(found.unsafe / found.accepted, 1) if found.accepted else "–"  # noqa: RUF001
            numbers = (
                f"{found.accepted:,}",
                percent(found.rate("accepted")),
                f"{found.safe:,}",
                f"{found.unsafe:,}",
                percent(found.rate("unsafe")),
                part,
                f"{found.false_rejections:,}",
                percent(found.rate("false_rejections")),
            )
            level = () if noise is None else (f"{noise:g}",)
            assert (rule, *level, *numbers) in cells


def test_page_says_what_the_numbers_are_worth(full, content):
    text = content[1]
    for rule in full.rules:
        assert sentence(full, rule) in text
    quiet, found = full.outcome("dominance", noise=0.0), full.outcome("dominance")
    assert f"{100.0 * quiet.accepted / found.accepted:.0f} % of its acceptances are trials without noise" in text
    assert "share of all trials, not of the accepted ones" in text
    assert "The paper prints no truth" in text
    assert "no independent check" in text


def test_all_checks_pass_and_are_listed(full, content):
    checks = bands(full)
    assert [str(check) for check in checks if not check.passed] == []
    assert f"Passed: all {len(checks)} checks" in content[1]
    assert sum(row[4:5] == ["pass"] for row in content[0].rows) == len(checks)


def test_tables_hold_the_results_beside_the_paper_s(written, full):
    rows = table(written / "mismatch.csv")
    for name in (field.name for field in fields(paper.MISMATCHES[0])):
        assert [float(row[name]) for row in rows] == [getattr(row, name) for row in full.mismatches()]
        if name != "mismatch":
            assert [float(row[f"paper_{name}"]) for row in rows] == [getattr(row, name) for row in paper.MISMATCHES]
    rows = table(written / "regimes.csv")
    assert [row["regime"] for row in rows] == [row.regime for row in full.regimes()]
    assert [float(row["ratio"]) for row in rows] == [row.ratio for row in full.regimes()]
    assert [int(row["paper_regimes"]) for row in rows] == [41, 799]
    rows = table(written / "rules.csv")
    for row in rows:
        where = {} if row["noise"] == "all" else {"noise": float(row["noise"])}
        found = full.outcome(row["rule"], **where)
        assert {name: int(row[name]) for name in found.row() if name != "rule"} == {
            name: value for name, value in found.row().items() if name != "rule"
        }
    assert len(rows) == len(full.rules) * (1 + len(full.grid.noise))
    selected = table(written / "summary.csv")[1]
    assert selected == {
        "quantity": "selected",
        "of": "trials",
        "count": str(full.outcome().accepted),
        "rate": str(full.outcome().rate("accepted")),
        "paper_count": "1235",
        "paper_rate": str(1235 / 21000),
    }


def test_tables_are_the_same_bytes_each_time(full, written, tmp_path, undrawn):
    write_sweep(full, tmp_path)
    for name in TABLES:
        assert (tmp_path / name).read_bytes() == (written / name).read_bytes()


def test_the_last_heatmap_ranges_like_the_paper_s(full):
    found = ratio_range(full)
    assert (found["least"], found["most"]) == pytest.approx(found["printed"], rel=0.08)


# When checks apply, and that they can fail.


def test_checks_belong_to_the_paper_s_grid_and_rule_alone(full, small):
    assert comparable(full)
    assert bands(small) == []
    assert not comparable(small)
    other = replace(full, rules=("mine", *full.rules[1:]))
    assert not comparable(other)
    assert bands(other) == []


def test_other_replications_are_compared_and_not_checked():
    found = sweep(grid=Grid(replications=2))
    assert comparable(found)
    assert bands(found) == []
    _, text = parsed(page(found, []))
    assert "1,235" in text
    assert "they are not checked" in text
    assert "Passed" not in text


def test_another_problem_on_the_paper_s_grid_is_not_compared(full, tmp_path, undrawn):
    _, text = parsed(page(full, [], compare=False))
    assert "1,235" not in text
    assert "checks" not in text
    assert "This is not the paper's sweep" in text
    write_sweep(full, tmp_path, compare=False)
    assert not any("paper" in (tmp_path / name).read_text() for name in TABLES)


def spoiled(result, **columns):
    records = result.records.copy()
    for name, change in columns.items():
        records[name] = change(records[name])
    return replace(result, records=records)


@pytest.mark.parametrize(
    ("columns", "quantity"),
    [
        ({"accepted": np.ones_like}, "selected"),
        ({"accepted": np.ones_like}, "unsafe"),
        ({"accepted": np.ones_like}, "selected at mu = 0.05"),
        ({"accepted": np.ones_like}, "dominance: unsafe, by noise level"),
        ({"accepted": np.ones_like}, "dominance, zeta = 0.05: unsafe, worst noise level"),
        ({"accepted": np.zeros_like}, "dominance: accepted"),
        ({"accepted": np.zeros_like}, "selected at mu = 0"),
        ({"learned_error": np.zeros_like}, "false rejections"),
        ({"ratio": lambda ratio: 1.1 * ratio}, "median Gamma at mu = 0.1"),
        ({"ratio": lambda ratio: 1.4 * ratio}, "certificate-sufficient regimes"),
        ({"ratio": lambda ratio: np.full_like(ratio, np.nan)}, "median Gamma at mu = 0"),
        ({"learned_error": lambda error: 1.2 * error}, "median E at mu = 0.02"),
        ({"learned_error": lambda error: 1.2 * error}, "E of fallback regimes"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_a_wrong_number_fails_its_check(full, columns, quantity):
    checks = {check.quantity: check for check in bands(spoiled(full, **columns))}
    assert not checks[quantity].passed


def test_page_says_what_failed(full, monkeypatch):
    wrong = Band("selected", "<b>9 %</b>", "5.88 %", "within 0.5 points", False, "nothing")
    monkeypatch.setattr("femcert.report.sweep.bands", lambda result: [wrong])
    _, text = parsed(page(full, []))
    assert "Failed: 1 of 1 checks" in text
    assert "selected: <b>9 %</b>, paper 5.88 % (within 0.5 points)" in text


# Other grids and rules.


def test_another_grid_has_no_paper_in_it(small, tmp_path, coarse):
    write_sweep(small, tmp_path)
    assert files(tmp_path) == set(owned_files())
    assert not any("paper" in (tmp_path / name).read_text() for name in TABLES)
    found, text = parsed((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert not any(cell.lower() == "paper" for row in found.rows for cell in row)
    assert "This is not the paper's sweep" in text
    assert "96 random inverse problems: 24 regimes with 4 trials each" in text
    rows = {row[0]: row[1:] for row in found.rows}
    assert rows["trials"] == ["96", "100.00 %"]
    assert rows["Regimes"] == [str(row.regimes) for row in small.regimes()]


def test_names_of_rules_are_escaped(tmp_path, coarse):
    name = "<script>alert(1)</script> & $x^2$"

    def mine(trials):
        return Verdict(np.ones(len(trials.level), dtype=bool))

    found = sweep(grid=SMALL, rules={"operational": RULES["operational"], name: mine})
    source = write_sweep(found, tmp_path).read_text(encoding="utf-8")
    assert "<script" not in source
    _, text = parsed(source)
    assert text.count(name) >= 3
    assert {row["rule"] for row in table(tmp_path / "rules.csv")} == {"operational", name}


def test_a_leading_rule_without_radii_has_no_regimes(tmp_path, coarse):
    found = sweep(grid=SMALL, rules={"dominance": RULES["dominance"]})
    write_sweep(found, tmp_path)
    assert files(tmp_path) == set(owned_files()) - {"figures/boundary.png", "figures/ratios.png"}
    assert table(tmp_path / "regimes.csv") == []
    _, text = parsed((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "compares candidates without radii" in text
    assert not re.search(r"\bnan\b", text)


ONE = Grid(sensors=(12,), noise=(0.01,), perturbation=(0.1,), mismatch=(0.0,), replications=1)


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(faked(ONE), id="one trial"),
        pytest.param(faked(ratio=2.0), id="no sufficient regime, nothing accepted"),
        pytest.param(faked(ratio=0.5, accepted=True), id="no fallback regime"),
        pytest.param(faked(ratio=np.inf), id="no certificate anywhere"),
        pytest.param(faked(ratio=np.where(np.arange(SMALL.trials) % 3, 0.7, np.inf)), id="none in some trials"),
        pytest.param(faked(ratio=np.where(np.arange(SMALL.trials) % 2, 0.7, np.nan)), id="no ratio in some trials"),
        pytest.param(faked(ratio=np.arange(float(SMALL.trials))), id="a ratio of zero"),
        pytest.param(faked(baseline=0.0, learned=0.0), id="both are the truth"),
        pytest.param(faked(baseline=0.0), id="the baseline is the truth"),
        pytest.param(faked(learned=0.0, accepted=True), id="the learned candidate is the truth"),
        pytest.param(faked(learned=np.nan), id="an error that is not a number"),
        pytest.param(faked(rules=tuple("abcdefg"), accepted=True), id="seven rules"),
        pytest.param(faked(ONE, rules=tuple(RULES)), id="known rules that accept nothing"),
        pytest.param(faked(ONE, rules=tuple(RULES), accepted=True, learned=2.0), id="known rules that are unsafe"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_empty_cells_are_shown_as_such(result, tmp_path, coarse):
    write_sweep(result, tmp_path)
    _, text = parsed((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert not re.search(r"\bnan\b", text)
    assert f"{result.grid.trials} random inverse problems" in text


def test_many_settings_are_drawn_without_numbers():
    grid = Grid(
        sensors=tuple(range(10, 40)), noise=tuple(np.linspace(0.0, 0.1, 20)), mismatch=tuple(np.linspace(0.0, 1.0, 10)),
        perturbation=(0.1, 0.2), replications=1,
    )  # fmt: skip
    rng = np.random.default_rng(3)
    found = faked(grid, ratio=10.0 ** rng.normal(size=grid.trials), learned=10.0 ** rng.normal(size=grid.trials))
    figure = sweep_heatmaps.ratios(found)
    assert not figure.axes[0].texts
    assert len(figure.axes[0].get_xticks()) <= 12
    for draw in (sweep_figures.boundary, sweep_heatmaps.acceptance, sweep_figures.rules):
        assert draw(found) is not None


def test_of_very_many_trials_some_are_drawn():
    grid = replace(SMALL, replications=3000)
    rng = np.random.default_rng(3)
    found = faked(grid, ratio=10.0 ** rng.normal(size=grid.trials), learned=10.0 ** rng.normal(size=grid.trials))
    upper, lower = sweep_figures.boundary(found).axes
    assert sum(len(points.get_offsets()) for points in lower.collections) == sweep_figures.MOST_POINTS
    assert "a random sample of 40,000" in " ".join(text.get_text() for text in upper.texts)


def test_heatmaps_hold_the_rates(full):
    cells = full.accepted()[:, :, 2, :, 2].mean(axis=0)
    figure = sweep_heatmaps.acceptance(full)
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert shown == [f"{100 * value:.0f}" for value in cells.T.ravel()]
    assert set(shown) == {"0"}
    free = (~full.accepted() & full.better)[:, :, 2, :, 0].mean(axis=0)
    figure = sweep_heatmaps.false_rejections(full)
    assert [text.get_text() for text in figure.axes[1].texts] == [f"{100 * value:.0f}" for value in free.T.ravel()]


# Files.


def test_an_earlier_run_is_replaced_and_other_files_are_left_alone(small, tmp_path, coarse):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/boundary.png").write_bytes(b"old")
    (tmp_path / "figures/mine.png").write_bytes(b"mine")
    (tmp_path / "trials.npz").write_bytes(b"mine")
    write_sweep(replace(small, records=faked(rules=small.rules, ratio=np.nan).records), tmp_path)
    assert not (tmp_path / "figures/boundary.png").exists()
    assert (tmp_path / "figures/mine.png").read_bytes() == b"mine"
    assert (tmp_path / "trials.npz").read_bytes() == b"mine"


@pytest.mark.parametrize("after", [0, 3, 12])
def test_a_failure_leaves_the_earlier_run(small, tmp_path, monkeypatch, blank, after):
    for name in owned_files():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"old {name}")
    move, count = Path.replace, 0

    def failing(self, goal):
        nonlocal count
        count += 1
        if count == after + 1:
            raise PermissionError(13, "Permission denied")
        return move(self, goal)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(InputError, match="Permission denied"):
        write_sweep(small, tmp_path)
    assert files(tmp_path) == set(owned_files())
    assert all((tmp_path / name).read_text() == f"old {name}" for name in owned_files())


def test_what_cannot_be_written_is_refused(small, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        write_sweep(small, tmp_path / "file")
    with pytest.raises(InputError, match="expected a Sweep"):
        write_sweep({"accepted": 3}, tmp_path)
