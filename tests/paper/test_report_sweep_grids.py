"""Sweeps of other grids and rules, results with empty cells, and what is in the way of the files of a report."""

import re
from dataclasses import replace

import numpy as np
import pytest
from pages import SMALL, faked, files, parsed, table

from femcert import InputError, sweep
from femcert.paper import RULES, BatchDecision, Grid, page, sweep_figures
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
    figure = sweep_figures.ratios(found)
    assert not figure.axes[0].texts
    assert len(figure.axes[0].get_xticks()) <= 12
    for draw in (sweep_figures.boundary, sweep_figures.acceptance, sweep_figures.rules):
        assert draw(found) is not None


def test_of_very_many_trials_some_are_drawn():
    grid = replace(SMALL, replications=3000)
    rng = np.random.default_rng(3)
    found = faked(grid, ratio=10.0 ** rng.normal(size=grid.trials), learned=10.0 ** rng.normal(size=grid.trials))
    upper, lower = sweep_figures.boundary(found).axes
    assert sum(len(points.get_offsets()) for points in lower.collections) == sweep_figures.MOST_POINTS
    assert "a random sample of 40,000" in " ".join(text.get_text() for text in upper.texts)


def test_an_earlier_run_is_replaced_and_other_files_are_left_alone(small, tmp_path, blank, monkeypatch):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/boundary.png").write_bytes(b"old")
    (tmp_path / "figures/mine.png").write_bytes(b"mine")
    (tmp_path / "trials.npz").write_bytes(b"mine")
    # No ratios, no boundary: the picture and the table of an earlier run go away.
    (tmp_path / "regimes.csv").write_bytes(b"old")
    figures = page.SWEEP_FIGURES
    drawn = [(name, (lambda result: None) if name == "boundary" else draw, words) for name, draw, words in figures]
    monkeypatch.setattr(page, "SWEEP_FIGURES", drawn)
    write_sweep(replace(small, records=faked(rules=small.rules, ratio=np.nan).records), tmp_path)
    assert not (tmp_path / "regimes.csv").exists()
    assert (tmp_path / "figures/ratios.png").exists()
    assert not (tmp_path / "figures/boundary.png").exists()
    assert (tmp_path / "figures/mine.png").read_bytes() == b"mine"
    assert (tmp_path / "trials.npz").read_bytes() == b"mine"


def test_what_cannot_be_written_is_refused(small, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        write_sweep(small, tmp_path / "file")
    with pytest.raises(InputError, match="expected a Sweep"):
        write_sweep({"accepted": 3}, tmp_path)
