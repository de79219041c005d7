"""What the page says of regions and of several candidates."""

import csv

import numpy as np
import pytest
import zoo
from test_selection_page import in_regions, page, read, selection

import femcert as fc
from femcert.report import write_summary
from femcert.report.selection_page import selection_page


def said(name):
    return " ".join(read(page(name))[1].split())


def test_the_table_of_regions():
    words, claims = said("regions"), selection("regions").regions
    assert "What the data say about regions" in words
    for part in (*(cell for row in claims.rows() for cell in row[:2]), "✗ refuted", "✓ possible"):
        assert part in words
    # What is returned, the baseline, is possible.
    assert "0 of 2 regions in which the data refute what is returned" in words


def test_how_well_the_class_explains_the_data(tmp_path):
    basis = zoo.unit_basis("line P1", 32)
    space = fc.FullSpace(basis).within_ball(2.0, norm="h1", length=0.3)
    problem = zoo.source(basis, parameters=space, sensors=9)
    exact = problem.observe(problem.solve(np.sin(3.0 * basis.doflocs[0])))
    data = fc.Data.gaussian(exact + 1e-3 * np.random.default_rng(0).standard_normal(9), std=1e-3)
    solver, regions = fc.Tikhonov(choose="gcv"), [fc.Mean(basis, lambda x: x[0] < 0.5, name="west")]
    found = fc.no_harm(problem, data, baseline=solver, learned=solver, regions=regions)
    evidence = fc.evidence(problem, data)
    assert found.regions.p_value == pytest.approx(evidence.p_value)
    assert found.regions.least_norm == pytest.approx(evidence.least_norm.value)
    words = " ".join(read(selection_page(found))[1].split())
    assert f"P-value of the class {evidence.p_value:.2g}" in words
    assert f"norm {evidence.least_norm.value:.3g} at least." in words
    found.save(tmp_path / "s.json")
    assert fc.Selection.load(tmp_path / "s.json").regions.fit == found.regions.fit


def test_the_table_of_candidates():
    words, found = said("several"), selection("several")
    assert found.selected == "pinn"
    assert "✓ The learned candidate “pinn” is accepted" in words
    assert "Below, “learned” is “pinn”." in words
    for name, verdict in found.candidates.items():
        assert f"{name} {verdict.status}" in words
        assert " ".join(verdict.reason.split()) in words
    assert "<i>" not in page("several").split("<body>")[1]


def test_where_none_is_accepted():
    found = in_regions({"far": (30.0, 3.0, 30.0), "farther": (60.0, 3.0, 30.0)})
    assert "No learned candidate is accepted, the baseline is kept" in " ".join(read(selection_page(found))[1].split())


def test_a_refuted_baseline_is_called_so():
    problem = selection("regions").case.problem
    off = fc.Candidate.from_coefficients(problem, [30.0, 0.0, 0.0])
    found = in_regions((40.0, 0.0, 0.0), baseline=off)
    words = " ".join(read(selection_page(found))[1].split())
    assert "Undecided, and the baseline is kept: the baseline is refuted" in words
    assert "do not use it" in words


def test_the_summary_has_rows_for_every_candidate(tmp_path):
    write_summary(selection("several"), tmp_path / "s.csv")
    with (tmp_path / "s.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert {(row["candidate"], row["name"], row["selected"]) for row in rows} == {
        ("baseline", "baseline", "no"), ("learned", "pinn", "yes"), ("learned", "<i>", "no"),
    }  # fmt: skip
