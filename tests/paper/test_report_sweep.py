"""The paper's sweep as files: tables, figures and page, with the paper's numbers beside them."""

from dataclasses import fields

import numpy as np
import pytest
from matplotlib.image import imread
from pages import check_self_contained, files, parsed, table

from femcert.paper import printed as paper
from femcert.paper import sweep_figures
from femcert.paper.checks import sweep_checks
from femcert.paper.page import SWEEP_FIGURES, SWEEP_TABLES, sweep_files, write_sweep


@pytest.fixture(scope="module")
def written(full, tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep") / "new" / "out"
    assert write_sweep(full, out) == out / "report.html"
    return out


@pytest.fixture(scope="module")
def content(written):
    return parsed((written / "report.html").read_text(encoding="utf-8"))


def test_nothing_but_the_results_is_left(written):
    assert files(written) == set(sweep_files())
    assert set(SWEEP_TABLES) <= files(written)
    assert not list(written.rglob(".*"))


@pytest.mark.parametrize("name", [name for name, _, _ in SWEEP_FIGURES])
def test_figures_show_something(written, name):
    image = imread(written / "figures" / f"{name}.png")[::5, ::5, :3]
    inked = np.mean(np.any(image < 0.98, axis=2))
    assert 0.01 < inked < 0.9
    assert len(np.unique((image.reshape(-1, 3) * 255).astype(int), axis=0)) > 30


def test_page_is_self_contained(written, content):
    assert content[0].images == len(SWEEP_FIGURES)
    assert all(address.startswith(("data:image/png;base64,", "#")) for address in content[0].addresses)
    bare = check_self_contained((written / "report.html").read_text(encoding="utf-8"))
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
    first = [row[0] if row else "" for row in content[0].rows].index("μ")
    rows = content[0].rows[first + 1 :][: len(full.grid.mismatch)]
    for row, computed, printed in zip(rows, full.mismatches(), paper.MISMATCHES, strict=True):
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
                f"{found.undecided:,}",
            )
            level = () if noise is None else (f"{noise:g}",)
            assert (rule, *level, *numbers) in cells


def test_all_checks_pass_and_are_listed(full, content):
    checks = sweep_checks(full)
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


def test_heatmaps_hold_the_rates(full):
    cells = full.accepted()[:, :, 2, :, 2].mean(axis=0)
    figure = sweep_figures.acceptance(full)
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert shown == [f"{100 * value:.0f}" for value in cells.T.ravel()]
    assert set(shown) == {"0"}
    free = (~full.accepted() & full.better)[:, :, 2, :, 0].mean(axis=0)
    figure = sweep_figures.false_rejections(full)
    assert [text.get_text() for text in figure.axes[1].texts] == [f"{100 * value:.0f}" for value in free.T.ravel()]
