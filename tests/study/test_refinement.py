"""Refinement studies: what a row holds, the rates, when they stop, and what they refuse."""

from __future__ import annotations

import csv
import re
from dataclasses import replace

import numpy as np
import pytest
import zoo
from skfem import Basis, ElementLineP1, ElementQuad1, ElementTriP1, ElementTriP2, MeshLine, MeshQuad, MeshTri

import femcert as fc
from femcert.study.study import COLUMNS

# Energy of the solution of -Laplace u = 1, u = 0 on the boundary: ∫ u.
ENERGY = {"square": 0.0351442537, "l-shape": 0.2140758036}
LINE = MeshLine(np.linspace(0.0, 1.0, 5))


def poisson(mesh, element, **options):
    basis = Basis(mesh, element)
    sensors = fc.RegionSensors(basis, [np.arange(mesh.nelements)])
    space = fc.RegionSpace(basis, [np.arange(mesh.nelements)])
    return fc.EllipticSource(basis, parameters=space, sensors=sensors, **options)


def on_line(mesh=LINE):
    """-u'' = 1: the error of the P1 solution is known element by element, ``sum h^3 / 12``."""
    problem = poisson(mesh, ElementLineP1())
    h = np.diff(mesh.p[0])
    return fc.Case(problem, parameter=np.ones(mesh.nelements), truth=float(np.sqrt(np.sum(h**3) / 12.0)))


def in_plane(energy, element=ElementTriP1):
    def build(mesh):
        problem = poisson(mesh, element())

        def truth(problem, candidate):
            # Galerkin: the square of the error is the difference of the energies.
            return np.sqrt(energy - candidate.state @ (problem.load @ candidate.parameter))

        return fc.Case(problem, parameter=np.ones(mesh.nelements), truth=truth)

    return build


def inverse(mesh=LINE, **options):
    """A small inverse problem with a baseline and a learned candidate."""
    problem = zoo.source(Basis(mesh, ElementLineP1()), parameters=2, sensors=5)
    given = {
        "data": zoo.data(problem, noise=0.01),
        "baseline": fc.Tikhonov(weight=1e-4),
        "learned": lambda problem, data: zoo.solved(problem, optimality=None),
        "rule": fc.ResidualRadius(),
    }
    return fc.Case(problem, **{**given, **options})


@pytest.fixture(scope="module")
def line():
    return fc.refinement_study(on_line, levels=5)


def test_a_uniform_study_on_the_line(line):
    assert line.column("level") == [1, 2, 3, 4, 5]
    assert line.column("elements") == [4, 8, 16, 32, 64]
    assert line.column("dofs") == [5, 9, 17, 33, 65]
    np.testing.assert_allclose(line.column("h"), 0.25 * 0.5 ** np.arange(5), rtol=1e-12)
    assert line.stopped == "levels"
    assert all(row.lower <= row.truth * (1 + 1e-9) for row in line.rows)
    assert all(row.truth <= row.upper * (1 + 1e-9) for row in line.rows)
    assert all(1.0 - 1e-9 <= row.effectivity < 1.5 for row in line.rows)
    assert [mesh.nelements for mesh in line.meshes] == line.column("elements")
    for row, indicators in zip(line.rows, line.indicators, strict=True):
        assert indicators.shape == (row.elements,)
        assert np.linalg.norm(indicators) == pytest.approx(row.upper, rel=0.2)
    for name in ("upper", "lower", "truth"):
        assert line.rates[name] == pytest.approx(-1.0, abs=0.05)


def test_uniform_on_the_square():
    mesh = MeshTri.init_sqsymmetric()
    study = fc.refinement_study(in_plane(ENERGY["square"]), mesh=mesh, levels=5)
    assert study.rates["truth"] == pytest.approx(-0.5, abs=0.03)
    assert study.rates["upper"] == pytest.approx(-0.5, abs=0.05)
    assert all(row.lower <= row.truth <= row.upper for row in study.rows)
    assert all(row.effectivity < 2.0 for row in study.rows)


@pytest.mark.parametrize(("element", "rate"), [(ElementTriP1, -0.5), (ElementTriP2, -1.0)])
def test_adaptive_refinement_restores_the_rate_on_the_l_shape(element, rate):
    build, mesh = in_plane(ENERGY["l-shape"], element), MeshTri.init_lshaped().refined(1)
    adaptive = fc.refinement_study(build, mesh=mesh, levels=25, adaptive=True, most_dofs=4000)
    uniform = fc.refinement_study(build, mesh=mesh, levels=5)
    # P2 begins a little faster than its rate.
    for name in ("truth", "upper"):
        assert 1.3 * rate < adaptive.rates[name] < 0.93 * rate
    assert uniform.rates["upper"] > 0.9 * rate
    assert all(row.lower <= row.truth <= row.upper for row in (*adaptive.rows, *uniform.rows))
    # The smallest elements are at the inner corner.
    fine = adaptive.meshes[-1]
    smallest = np.argmin(np.ptp(fine.p[0, fine.t], axis=0))
    assert np.linalg.norm(fine.p[:, fine.t[:, smallest]].mean(axis=1)) < 0.1


def test_radii_and_decisions():
    study = fc.refinement_study(inverse, levels=4)
    assert all(row.C_stab > 0.0 and row.radius_baseline > 0.0 and row.radius_learned > 0.0 for row in study.rows)
    for row, selection in zip(study.rows, study.selections, strict=True):
        assert row.radius_baseline == selection.baseline.radius.value
        assert row.radius_learned == selection.learned.radius.value
        assert row.decision == {"accepted": "accept", "rejected": "reject"}[selection.status]
        assert row.relative_baseline == selection.baseline.relative
        assert row.relative_learned == selection.learned.relative
        assert row.C_stab == selection.baseline.stability.constant.value
    assert "decision" in study.table()


def test_what_is_an_estimate_is_marked():
    def build(mesh=LINE):
        problem = zoo.coefficient(Basis(mesh, ElementLineP1()), sensors=3)
        data = zoo.data(problem, noise=0.0)
        return fc.Case(problem, data=data, baseline=zoo.solved(problem), rule=fc.ResidualRadius())

    study = fc.refinement_study(build, levels=2)
    assert all({"C_stab", "radius_baseline"} <= set(row.estimates) for row in study.rows)
    assert "~" in study.table()


def test_stops_by_tolerance(line):
    limit = line.rows[2].upper * 1.01
    study = fc.refinement_study(on_line, levels=9, tolerance=limit)
    assert study.stopped == "tolerance"
    assert len(study.rows) == 3
    assert study.rows[-1].upper <= limit < study.rows[-2].upper


def test_stops_by_dofs():
    study = fc.refinement_study(on_line, levels=9, most_dofs=33)
    assert study.stopped == "dofs"
    assert study.column("dofs") == [5, 9, 17, 33]
    built = []

    def build(count):
        built.append(count)
        return on_line(MeshLine(np.linspace(0.0, 1.0, count + 1)))

    assert fc.refinement_study(build, levels=[4, 40, 80], most_dofs=30).stopped == "dofs"
    assert built == [4, 40]
    with pytest.raises(fc.InputError, match="level 1: it already has 5 dofs"):
        fc.refinement_study(on_line, most_dofs=4)


@pytest.mark.parametrize("element", [ElementTriP1, ElementTriP2])
def test_a_level_with_too_many_dofs_is_not_even_built(element):
    built = []

    def build(mesh):
        built.append(mesh)
        return in_plane(ENERGY["square"], element)(mesh)

    mesh = MeshTri.init_sqsymmetric()
    first = fc.refinement_study(build, mesh=mesh, levels=2).column("dofs")
    built.clear()
    study = fc.refinement_study(build, mesh=mesh, levels=2, most_dofs=first[1] - 1)
    assert (study.stopped, len(built)) == ("dofs", 1)
    assert fc.refinement_study(build, mesh=mesh, levels=2, most_dofs=first[1]).stopped == "levels"


def test_an_exact_solution_needs_no_refinement():
    def build(mesh=LINE):
        problem = poisson(mesh, ElementLineP1())
        return fc.Case(problem, parameter=np.zeros(mesh.nelements), truth=0.0)

    study = fc.refinement_study(build, levels=4, adaptive=True, tolerance=1e-12)
    assert (study.stopped, len(study.rows)) == ("tolerance", 1)
    assert study.rows[0].effectivity is None
    assert study.rates == {}


def test_quadrilaterals_are_refined_as_a_whole():
    def build(mesh):
        return fc.Case(poisson(mesh, ElementQuad1()), parameter=np.ones(mesh.nelements))

    with pytest.raises(fc.InputError, match=r"level 1: .*use triangles"):
        fc.refinement_study(build, mesh=MeshQuad().refined(2), adaptive=True)


def test_a_baseline_that_cannot_be_certified_is_an_error():
    rule = fc.OperationalRadius(pde=1.0, optimality=1.0)
    candidate = fc.Candidate(np.zeros(5), np.zeros(5))  # reports no optimality
    # With a learned candidate there is a selection that says so; nobody is rejected.
    study = fc.refinement_study(lambda mesh=LINE: inverse(mesh, baseline=candidate, rule=rule), levels=1)
    assert study.column("decision") == ["undecided"]
    assert study.column("radius_baseline") == [None]
    assert re.search(r"level 1 is undecided: .*optimality", study.table())
    with pytest.raises(fc.UncertifiedError, match=r"level 1: .*optimality"):
        fc.refinement_study(lambda mesh=LINE: inverse(mesh, baseline=candidate, rule=rule, learned=None))


def bad_truth(mesh=LINE):
    return replace(on_line(mesh), truth=float("nan"))


@pytest.mark.parametrize(
    ("build", "options", "word"),
    [
        (on_line, {"levels": 0}, "levels is 0"),
        (on_line, {"levels": [LINE], "adaptive": True}, "sequence"),
        (on_line, {"levels": [LINE], "mesh": LINE}, "sequence"),
        (on_line, {"theta": 0.0}, "theta"),
        (on_line, {"most_dofs": 0}, "most_dofs"),
        (in_plane(1.0), {}, "build needs a mesh"),
        (lambda mesh=LINE: None, {}, "level 1: build returned a NoneType"),
        (lambda mesh=LINE: on_line(LINE), {"levels": 2}, "level 2: .*another mesh"),
        (bad_truth, {}, "level 1: truth"),
        (on_line, {"method": "enriched"}, "level 1: .*from both sides"),
    ],
)
def test_refused(build, options, word):
    with pytest.raises(fc.InputError, match=word):
        fc.refinement_study(build, **options)


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"baseline": None}, "without a baseline"),
        ({"data": None}, "without data"),
        ({"baseline": None, "learned": None}, "without a baseline to certify"),
        ({"baseline": None, "learned": None, "rule": None}, "nothing to bound"),
    ],
)
def test_cases_that_do_not_fit_together(fields, word):
    case = inverse()
    with pytest.raises(fc.InputError, match=word):
        replace(case, **fields)


def test_csv_has_all_digits(line, tmp_path):
    path = tmp_path / "new" / "study.csv"
    line.save(path)
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert tuple(rows[0]) == COLUMNS
    assert [float(row["upper"]) for row in rows] == line.column("upper")
    assert [int(row["dofs"]) for row in rows] == line.column("dofs")
    assert all(row["decision"] == row["C_stab"] == "" for row in rows)
    assert list(path.parent.iterdir()) == [path]


def test_a_build_of_numbers_gets_the_numbers_of_the_levels():
    seen = []

    def build(level):
        seen.append(level)
        return on_line(MeshLine(np.linspace(0.0, 1.0, 2 ** (level + 2) + 1)))

    study = fc.refinement_study(build, levels=3)
    assert seen == [0, 1, 2]
    assert [row.elements for row in study.rows] == [4, 8, 16]
    with pytest.raises(fc.InputError, match="build needs a mesh"):
        fc.refinement_study(build, levels=3, adaptive=True)
