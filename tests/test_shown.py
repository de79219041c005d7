"""Every object shows itself: one line as repr, at most eight with print, HTML in notebooks, and never an array."""

import numpy as np
import posed as pose
import pytest
from skfem import Basis, ElementTriP1, MeshTri
from zoo import coefficients

import femcert as fc


def solved(mesh):
    """A problem on a mesh, and the solution for the source one."""
    basis = Basis(mesh, ElementTriP1())
    sensors = fc.PointSensors(basis, [[0.5, 0.5]])
    problem = fc.EllipticSource(basis, parameters=fc.FullSpace(basis), sensors=sensors)
    one = np.ones(basis.N)
    return problem, fc.Candidate(problem.solve(one), one)


def objects():
    """One of each kind."""
    basis = Basis(MeshTri().refined(4).with_defaults(), ElementTriP1())
    space = fc.SineSpace(basis, 3).within_ball(4.0)
    sensors = fc.AverageSensors(basis, [(0.3, 0.3), (0.7, 0.4), (0.4, 0.8)], radius=0.1)
    problem = fc.EllipticSource(basis, parameters=space, sensors=sensors, dirichlet={"left": 0.0, "right": 1.0})
    setup = pose.source("tri P2")
    c = coefficients(setup.problem)
    data = setup.data(c)
    selection = fc.no_harm(
        setup.problem, data, baseline=fc.Tikhonov(weight=1e-4), learned=setup.candidate(c), rule=fc.ResidualRadius()
    )
    heat = pose.heat("line P1").problem
    q = heat.parameters.field(np.ones(2))
    study = fc.refinement_study(solved, mesh=MeshTri().refined(1), levels=6)
    return {
        "problem": problem,
        "space": space,
        "sensors": sensors,
        "boundary": problem.boundary,
        "tomography": pose.tomography("tri P1").problem,
        "heat": heat,
        "coefficient": pose.coefficient("quad Q1").problem,
        "data": data,
        "candidate": setup.candidate(c),
        "stability": fc.stability(setup.problem),
        "dual norm": fc.dual_norm(setup.problem, setup.candidate(c, off=0.1)),
        "space-time norm": fc.space_time_norm(heat, fc.Candidate(heat.trajectory(q), q)),
        "certificate": selection.baseline,
        "residuals": selection.baseline.residuals,
        "selection": selection,
        "study": study,
    }


@pytest.fixture(scope="module")
def shown():
    return objects()


@pytest.mark.parametrize("kind", [
    "problem", "space", "sensors", "boundary", "tomography", "heat", "coefficient", "data", "candidate", "stability",
    "dual norm", "space-time norm", "certificate", "residuals", "selection", "study",
])  # fmt: skip
def test_one_line_eight_lines_and_a_table(shown, kind):
    thing = shown[kind]
    line, text, page = repr(thing), str(thing), thing._repr_html_()
    assert type(thing).__name__ in line
    assert "\n" not in line
    assert len(line) < 300
    # A selection shows its evidence, row by row.
    assert len(text.splitlines()) <= 8 or kind == "selection"
    assert "array(" not in line + text + page
    assert page.startswith("<p>")


def test_a_problem_says_what_it_is(shown):
    text = str(shown["problem"])
    assert "289 dofs (TriP1) on 512 cells of a MeshTri1" in text
    assert "SineSpace: dimension 3, L2 norm, H1 norm at most 4" in text
    assert "AverageSensors: 3" in text
    assert "u given on left" in text
