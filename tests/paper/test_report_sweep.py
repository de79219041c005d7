"""The paper's sweep as files: tables, figures and page, with the paper's numbers beside them."""

from dataclasses import fields

import numpy as np
import pytest
from matplotlib.image import imread
from pages import check_self_contained, files, parsed, table

from femcert.paper import printed as paper
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
