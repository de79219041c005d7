"""Sweeps of other grids and rules, results with empty cells, and what is in the way of the files of a report."""

import re

import numpy as np
import pytest
from pages import SMALL, faked, files, parsed, table

from femcert import sweep
from femcert.paper import RULES, BatchDecision, Grid, page
from femcert.paper.page import SWEEP_FIGURES, SWEEP_TABLES, sweep_files, write_sweep


def test_another_grid_has_no_paper_in_it(small, tmp_path, blank):
    write_sweep(small, tmp_path)
    assert files(tmp_path) == set(sweep_files())
    assert not any("paper" in (tmp_path / name).read_text() for name in SWEEP_TABLES)
    found, text = parsed((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert not any(cell.lower() == "paper" for row in found.rows for cell in row)
    assert "This is not the paper's sweep" in text
    assert "96 random inverse problems: 24 regimes with 4 trials each" in text
    rows = {row[0]: row[1:] for row in found.rows}
    assert rows["trials"] == ["96", "100.00 %"]
    assert rows["Regimes"] == [str(row.regimes) for row in small.regimes()]


def test_names_of_rules_are_escaped(tmp_path, coarse, monkeypatch):
    name = "<script>alert(1)</script> & $x^2$"

    def mine(trials):
        return BatchDecision(np.ones(len(trials.level), dtype=bool))

    # The one picture with names of rules in it.
    drawings = [drawing for drawing in SWEEP_FIGURES if drawing[0] == "rules"]
    monkeypatch.setattr(page, "SWEEP_FIGURES", drawings)
    found = sweep(grid=SMALL, rules={"operational": RULES["operational"], name: mine})
    source = write_sweep(found, tmp_path).read_text(encoding="utf-8")
    assert "<script>alert" not in source
    _, text = parsed(source)
    assert text.count(name) >= 3
    assert {row["rule"] for row in table(tmp_path / "rules.csv")} == {"operational", name}


def test_a_leading_rule_without_radii_has_no_regimes(tmp_path, coarse):
    found = sweep(grid=SMALL, rules={"dominance": RULES["dominance"]})
    write_sweep(found, tmp_path)
    # A table with a heading alone would look like a result.
    assert files(tmp_path) == set(sweep_files()) - {"figures/boundary.png", "figures/ratios.png", "regimes.csv"}
    _, text = parsed((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "compares candidates without radii" in text
    assert not re.search(r"\bnan\b", text)


ONE = Grid(sensors=(12,), noise=(0.01,), perturbation=(0.1,), mismatch=(0.0,), replications=1)


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(faked(ONE), id="one trial"),
        pytest.param(faked(ratio=np.inf), id="no certificate anywhere"),
        pytest.param(faked(ratio=np.where(np.arange(SMALL.trials) % 2, 0.7, np.nan)), id="no ratio in some trials"),
        pytest.param(faked(baseline=0.0, learned=0.0), id="both are the truth"),
        pytest.param(faked(learned=np.nan), id="an error that is not a number"),
        pytest.param(faked(ONE, rules=tuple(RULES), accepted=True, learned=2.0), id="known rules that are unsafe"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_empty_cells_are_shown_as_such(result, tmp_path, coarse):
    write_sweep(result, tmp_path)
    _, text = parsed((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert not re.search(r"\bnan\b", text)
    assert f"{result.grid.trials} random inverse problems" in text
