"""Refinement studies, figures and pages with the rules that need no weights."""

from __future__ import annotations

import numpy as np
import pytest
from skfem import Basis, ElementTriP1, MeshTri

import femcert as fc
from femcert.report.selection_figure import radius_parts

POINTS = np.array([[0.3, 0.3], [0.7, 0.3], [0.3, 0.7], [0.7, 0.7], [0.5, 0.5]])
RULES = [
    fc.ExactRadius(),
    fc.ExactRadius(guarantee="continuous"),
    fc.GuaranteedRadius(),
    fc.GuaranteedRadius(state="recomputed"),
    fc.Dominance(),
]


def on_square(mesh, rule):
    basis = Basis(mesh, ElementTriP1())
    space = fc.SineSpace(basis, 2)
    problem = fc.EllipticSource(basis, parameters=space, sensors=fc.AverageSensors(basis, POINTS, radius=0.15))
    # Averages of the exact solution, to a digit that the noise level covers.
    values = 0.02 * np.array([1.0, 1.0, 1.0, 1.0, 1.6])
    learned = fc.Candidate.from_coefficients(problem, [0.4, 0.0])
    return fc.Case(problem, data=fc.Data(values, 0.02), baseline=fc.Tikhonov(weight=1e-4), learned=learned, rule=rule)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: "-".join(str(v) for v in list(r.to_dict().values())[:3]))
def test_coarse_levels_have_no_radius_and_fine_ones_have(rule, tmp_path):
    mesh = MeshTri().refined(2)
    study = fc.refinement_study(lambda m: on_square(m, rule), mesh=mesh, levels=4)
    radii = study.column("radius_baseline")
    assert len(radii) == 4
    assert radii[-1] > 0.0
    continuous = rule.to_dict().get("guarantee") == "continuous"
    assert (radii[0] is None) == continuous
    # Once there is one, a finer mesh has one too.
    known = [radius is not None for radius in radii]
    assert known == sorted(known)
    # Where there is none, nobody is rejected.
    assert [decision != "undecided" for decision in study.column("decision")] == known
    if continuous:
        fc.write_report(study, tmp_path / "study.html")
        assert "is undecided: " in (tmp_path / "study.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("rule", RULES, ids=lambda r: "-".join(str(v) for v in list(r.to_dict().values())[:3]))
def test_parts_of_the_radius_and_pages(rule, tmp_path):
    case = on_square(MeshTri().refined(4), rule)
    problem, data = case.problem, case.data
    baseline = fc.Tikhonov(weight=1e-4)(problem, data)
    q = case.learned.parameter + 0.2 * np.sin(20.0 * problem.basis.doflocs[0])
    learned = fc.Candidate(problem.solve(q), q)
    found = fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=rule)
    for certificate in (found.baseline, found.learned):
        parts = radius_parts(certificate, found.rule)
        assert sum(parts.values()) == pytest.approx(certificate.radius.value, rel=1e-12)
        assert min(parts.values()) >= -1e-12
    outside = found.learned.residuals.admissibility.value
    share = radius_parts(found.learned, found.rule)["admissibility"]
    # On the mesh the parts are orthogonal and add up in squares.
    if found.rule.get("guarantee") == "continuous":
        assert share == pytest.approx(outside)
    else:
        assert share == pytest.approx(outside**2 / found.learned.radius.value)
    fc.plot_selection(found, problem, tmp_path / "s.png", baseline=baseline, learned=learned)
    found.save(tmp_path / "s.json")
    loaded = fc.Selection.load(tmp_path / "s.json")
    assert loaded.reason == found.reason
    # Its page has the words and bars; maps are the same for all rules.
    fc.write_report(loaded, tmp_path / "s.html")
    assert type(rule).__name__ in (tmp_path / "s.html").read_text(encoding="utf-8")
