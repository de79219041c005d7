"""A picture is of the kind that the name of its file says, and a name that says none is refused before the work."""

import pytest
import zoo
from skfem import Basis, ElementLineP1

import femcert as fc
from femcert.report import plot_meshes

BEGINS = {"png": b"\x89PNG", "PDF": b"%PDF", "svg": b"<?xml"}


def study():
    def build(mesh):
        problem = zoo.source(Basis(mesh, ElementLineP1()), sensors=2)
        return fc.Case(problem, parameter=zoo.truth(problem))

    return fc.refinement_study(build, mesh=zoo.unit_mesh("line", 8), levels=3)


@pytest.fixture(scope="module")
def plots():
    sines = zoo.source(sensors=4)
    ball = zoo.source(parameters=lambda b: fc.FullSpace(b).within_ball(5.0, norm="h1"), sensors=4)
    data, baseline = zoo.data(sines), fc.Tikhonov(weight=1e-6)
    chosen = fc.no_harm(sines, data, baseline=baseline, learned=zoo.solved(sines), rule=fc.ResidualRadius())
    found, refined, mean = fc.stability(sines), study(), fc.Mean(ball.basis)
    modulus = fc.stability(ball, levels=(1e-3, 1e-1))
    foreseen = fc.design(ball, [mean], std=[0.01, 0.1])
    evidence = fc.evidence(ball, fc.Data.gaussian([0.1, 0.2, 0.2, 0.1], std=0.01))
    return {
        "design": lambda path: fc.plot_design(foreseen, path),
        "evidence": lambda path: fc.plot_evidence(evidence, path, radius=0.2),
        "sensitivity": lambda path: fc.plot_sensitivity(evidence, mean, path),
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
