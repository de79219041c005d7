"""A picture is of the kind that the name of its file says, and a name that says none is refused before the work."""

import numpy as np
import pytest
from skfem import Basis, ElementLineP1, MeshLine

import femcert as fc
from femcert.report import plot_meshes

BASIS = Basis(MeshLine(np.linspace(0.0, 1.0, 17)), ElementLineP1())
BEGINS = {"png": b"\x89PNG", "PDF": b"%PDF", "svg": b"<?xml"}


def problem_in(space):
    return fc.EllipticSource(BASIS, parameters=space, sensors=fc.PointSensors(BASIS, np.linspace(0.2, 0.8, 4)))


def selection(problem):
    data = problem.simulate(problem.parameters.field([1.0, 0.5]), noise=0.01)
    return fc.no_harm(
        problem,
        data,
        baseline=fc.Tikhonov(weight=1e-6),
        learned=fc.Candidate.from_coefficients(problem, [1.0, 0.4]),
        rule=fc.ResidualRadius(),
    )


def study():
    def build(mesh):
        basis = Basis(mesh, ElementLineP1())
        sensors = fc.PointSensors(basis, [0.4, 0.7])
        problem = fc.EllipticSource(basis, parameters=fc.SineSpace(basis, 2), sensors=sensors)
        return fc.Case(problem, parameter=problem.parameters.field([1.0, 0.5]))

    return fc.refinement_study(build, mesh=MeshLine(np.linspace(0.0, 1.0, 9)), levels=3)


@pytest.fixture(scope="module")
def plots():
    sines, ball = problem_in(fc.SineSpace(BASIS, 2)), problem_in(fc.FullSpace(BASIS).within_ball(5.0, norm="h1"))
    found, chosen, refined = fc.stability(sines), selection(sines), study()
    modulus = fc.stability(ball, levels=(1e-3, 1e-1))
    foreseen = fc.design(ball, [fc.Mean(BASIS)], std=[0.01, 0.1])
    evidence = fc.evidence(ball, fc.Data.gaussian([0.1, 0.2, 0.2, 0.1], std=0.01))
    return {
        "design": lambda path: fc.plot_design(foreseen, path),
        "evidence": lambda path: fc.plot_evidence(evidence, path, radius=0.2),
        "sensitivity": lambda path: fc.plot_sensitivity(evidence, fc.Mean(BASIS), path),
        "stability": lambda path: fc.plot_stability(found, path),
        "selection": lambda path: fc.plot_selection(chosen, sines, path),
        "modulus": lambda path: fc.plot_modulus(modulus, path),
        "study": lambda path: fc.plot_study(refined, path),
        "meshes": lambda path: plot_meshes(refined, path),
    }


NAMES = ("design", "evidence", "sensitivity", "stability", "selection", "modulus", "study", "meshes")


@pytest.mark.parametrize("name", NAMES)
def test_the_ending_says_what_is_written(name, plots, tmp_path):
    for ending, begin in BEGINS.items():
        path = plots[name](tmp_path / f"picture.{ending}")
        assert path.read_bytes().startswith(begin)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("path", ["picture.jpeg", None])
def test_other_endings_are_refused_before_anything_is_drawn(name, path, plots, tmp_path, monkeypatch):
    def draws(*_):
        raise AssertionError("it draws")

    monkeypatch.setattr("femcert.report.style.new_figure", draws)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(fc.InputError, match=r"expected a file name that ends in \.png, \.pdf or \.svg"):
        plots[name](path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["report.pdf", 3])
def test_a_page_is_html(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(fc.InputError, match=r"ends in \.html"):
        fc.write_report(study(), path)
    assert not list(tmp_path.iterdir())
