"""Pictures, pages and files of vector fields."""

import meshio
import numpy as np
import pytest
from skfem import Basis, BilinearForm, ElementTriP1, ElementTriP2, ElementVector
from skfem.helpers import ddot, sym_grad
from zoo import square

import femcert as fc


@BilinearForm
def elasticity(u, v, _):
    return ddot(sym_grad(u), sym_grad(v))


def selected(element, space_of):
    basis = Basis(square(2).mesh, ElementVector(element))
    sensors = fc.PointSensors(basis, [[0.3, 0.3], [0.7, 0.4], [0.5, 0.7]])
    problem = fc.LinearProblem(basis, operator=elasticity, parameters=space_of(basis), sensors=sensors, definite=True)
    truth = problem.parameters.field(np.arange(1.0, 1.0 + problem.parameters.dimension))
    data = problem.simulate(truth, noise=0.01, seed=2)
    learned = fc.Candidate(problem.solve(truth), truth)
    baseline = fc.Tikhonov(weight=1e-8)(problem, data)
    found = fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=fc.ExactRadius())
    return problem, baseline, learned, found


def constants(basis):
    return fc.FunctionSpace(
        basis,
        [lambda x: np.array([1.0 + 0.0 * x[0], 0.0 * x[0]]), lambda x: np.array([0.0 * x[0], 1.0 + x[0]])],
    )


def halves(basis):
    return fc.RegionSpace(basis, [np.arange(16), np.arange(16, 32)])


@pytest.mark.parametrize("element", [ElementTriP1(), ElementTriP2()])
@pytest.mark.parametrize("space_of", [constants, halves])
def test_files_and_pictures(element, space_of, tmp_path):
    problem, baseline, learned, found = selected(element, space_of)
    path = fc.write_fields(found, tmp_path / "fields.vtu", problem=problem)
    mesh = meshio.read(path)
    state = mesh.point_data["state"]
    points = mesh.points[:, :2].T
    assert state.shape == (points.shape[1], 3)
    middle = np.flatnonzero(np.linalg.norm(points.T - 0.5, axis=1) < 1e-12)[0]
    by_sensor = fc.PointSensors(problem.basis, [[0.5, 0.5]])(found.state)
    np.testing.assert_allclose(state[middle, :2], by_sensor, atol=1e-12)
    np.testing.assert_array_equal(state[:, 2], 0.0)
    kind = mesh.cell_data if space_of is halves else mesh.point_data
    assert "parameter" in kind
    assert fc.write_fields(found, tmp_path / "fields.xdmf", problem=problem).stat().st_size
    assert fc.plot_selection(found, problem, tmp_path / "fields.png", baseline=baseline, learned=learned).stat().st_size
    page = fc.write_report(found, tmp_path / "page.html", problem=problem)
    assert "Difference" in page.read_text()
