"""The reason speaks of the data, radii have a scale, and the table shows what decides."""

import json

import numpy as np
import pytest
import zoo
from selector_helpers import rewritten, select

import femcert as fc

RESIDUALS = {"data", "pde", "bc", "optimality", "admissibility"}


def solved(problem, c, **options):
    return fc.Candidate.from_coefficients(problem, c, **options)


def levels(certificate):
    return f"{certificate.residuals.data.value / certificate.noise_level:.3g} noise levels"


# What decided


@pytest.mark.parametrize("rule", [fc.ResidualRadius(), fc.ExactRadius(), fc.Dominance()])
@pytest.mark.parametrize("c", [(1.0, -0.5, 0.25), (1.0, 2.0, 0.25)])
def test_the_misfit_is_said_in_terms_of_the_noise(problem, data, rule, c):
    found = select(problem, data, solved(problem, c), rule=rule, baseline=fc.Tikhonov(weight=1e-3))
    assert f"it misses the measurements by {levels(found.learned)}" in found.reason
    assert f"the baseline by {levels(found.baseline)}" in found.reason
    if found.comparison is None:
        assert all(f"{part.radius.value:.4g}" in found.reason for part in (found.baseline, found.learned))
    else:
        assert f"margin {found.comparison.margin:.4g}" in found.reason


def test_the_physics_that_decides_is_named(problem, data, truth):
    wrong = fc.Candidate(1.02 * problem.solve(truth), truth)
    found = select(problem, data, wrong, rule=fc.ResidualRadius(), baseline=fc.Tikhonov(weight=1e-9))
    assert not found.accepted
    own, theirs = (part.residuals.pde.value for part in (found.learned, found.baseline))
    assert f"misses the equation, physics residual: {own:.3g} against {theirs:.3g} of the baseline" in found.reason
    # And for the other side of it.
    found = select(problem, data, solved(problem, [1.0, -0.5, 0.25]), baseline=wrong, rule=fc.ResidualRadius())
    assert found.accepted
    assert "fits the equation better" in found.reason
    # A rule that does not look at states does not speak of them.
    found = select(problem, data, fc.Candidate(3.0 * wrong.state, truth), rule=fc.ExactRadius())
    assert "equation" not in found.reason
    assert found.learned.residuals.data.value < 2.0 * data.noise_level
    assert "recomputed" in found.learned.residuals.data.source


@pytest.mark.parametrize("rule", [fc.ResidualRadius(pde_norm="equilibrated"), fc.ExactRadius()])
def test_structure_outside_of_the_class_is_named(problem, data, truth, rule):
    q = truth + 3.0 * np.sin(15 * np.pi * problem.basis.doflocs[0])
    found = select(problem, data, fc.Candidate(problem.solve(truth), q), rule=rule)
    assert not found.accepted
    assert "of its radius is structure outside of the admissible class, " in found.reason


def test_a_nearer_centre_with_a_larger_misfit_is_not_called_a_better_fit():
    """A radius is the distance to the farthest consistent parameter, and that is no contest of misfits."""
    points = [[x, y] for x in (0.3, 0.5, 0.7) for y in (0.3, 0.7)]
    problem = zoo.source(zoo.square(3), parameters=4, sensors=zoo.discs(points, radius=0.1))
    rng = np.random.default_rng(0)
    data = problem.simulate(problem.parameters.field([1.0, 0.5, 0.2, 0.1]), noise=0.1)
    seen = 0
    for _ in range(40):
        pair = [solved(problem, np.array([1.0, 0.5, 0.2, 0.1]) + 0.3 * rng.standard_normal(4)) for _ in range(2)]
        found = fc.no_harm(problem, data, baseline=pair[0], learned=pair[1], rule=fc.ExactRadius())
        fits = found.learned.residuals.data.value < found.baseline.residuals.data.value
        nearer = found.learned.radius.value < found.baseline.radius.value
        assert ("though" in found.reason) == (fits != nearer)
        if fits != nearer:
            seen += 1
            assert ("nearer to it" if nearer else "farther from it") in found.reason
    assert seen


# Scale


@pytest.mark.parametrize(("inner", "name"), [("l2", "L2 norm"), ("euclidean", "Euclidean norm of the dofs")])
def test_a_radius_has_a_scale(inner, name, tmp_path):
    problem = zoo.source(parameters=lambda basis: fc.SineSpace(basis, 3, inner=inner))
    assert problem.parameters.norm_name == name
    data = problem.simulate(problem.parameters.field([1.0, -0.5, 0.25]), noise=0.02, seed=1)
    learned, baseline = solved(problem, [0.1, 0.0, -0.1]), fc.Tikhonov(weight=1e-9)
    found = select(problem, data, learned, rule=fc.ResidualRadius(), baseline=baseline)
    size = problem.parameters.norm(found.parameter)
    assert found.baseline.size == size
    assert found.baseline.relative == found.baseline.radius.value / size < 1.0
    assert found.baseline.norm == name
    share = f"{100.0 * found.baseline.relative:.3g} %"
    far = f"{100.0 * found.learned.relative:,.0f} %"
    assert found.learned.relative > 1.0
    for text in (str(found), found._repr_html_()):
        assert name in text
        assert share in text
        assert f"{far}: the data do not determine this" in text
        assert text.count("the data do not determine this") == 1
    assert f"{share} of the {name} of the answer" in str(found.baseline)
    assert str(found.learned).endswith(f"{far} of the {name} of the answer: the data do not determine this")
    # On the page, in the tiles and at the bars too.
    fc.write_report(found, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count(f"{share} of the {name} of the answer") >= 3
    assert page.count("the data do not determine this") >= 3
    # In files, and in those that were written before.
    found.save(tmp_path / "s.json")
    assert fc.Selection.load(tmp_path / "s.json").baseline.relative == found.baseline.relative
    assert json.loads((tmp_path / "s.json").read_text())["learned"]["norm"] == name

    def older(record):
        for part in ("baseline", "learned"):
            del record[part]["size"], record[part]["norm"]
        del record["status"], record["rule"]["decides"]

    old = fc.Selection.load(rewritten(found, tmp_path / "old.json", older))
    assert old.baseline.size is old.baseline.relative is None
    assert old.status == found.status
    assert "relative radius" not in str(old)
    assert {row[0] for row in old.rows()} >= RESIDUALS
    fc.write_report(old, tmp_path / "old.html")


# The table


@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        (fc.ResidualRadius(), RESIDUALS - {"optimality"}),
        (fc.ResidualRadius(covered=False), {"data", "pde", "bc"}),
        (fc.OperationalRadius(pde=0.0, bc=0.0), {"data", "admissibility"}),
        (fc.OperationalRadius(optimality=0.1), RESIDUALS),
        (fc.ExactRadius(), {"data", "admissibility"}),
    ],
)
def test_the_table_shows_what_decides(problem, data, rule, shown):
    found = select(problem, data, solved(problem, [1.0, -0.5, 0.25], optimality=0.3), rule=rule)
    assert {row[0] for row in found.rows()} & RESIDUALS == shown
    assert set(found.rule["decides"]) == shown == set(rule.decides)
    assert set(found.to_dict()["learned"]["residuals"]) == RESIDUALS
    for name in shown:
        assert getattr(found.learned.residuals, name).source in str(found)


def test_the_constant_of_a_nonlinear_problem_is_named():
    problem = zoo.coefficient(sensors=6)
    data = problem.simulate(problem.parameters.field([0.3, -0.2]), noise=0.05)
    # Both far off the data in the same way, but where the coefficient is large the sensors see less.
    loose = fc.Data(data.values, 10.0)
    learned, baseline = (solved(problem, [c, -0.2]) for c in (1.5, 0.3))
    found = fc.no_harm(problem, loose, baseline=baseline, learned=learned, rule=fc.ResidualRadius())
    constants = [part.stability.constant.value for part in (found.learned, found.baseline)]
    assert "the stability constant at it is {:.3g}, at the baseline {:.3g}".format(*constants) in found.reason
