"""Selections as VTU and XDMF: what is in the files, that it comes back to the last digit, and that VTK reads it."""

from importlib.util import find_spec

import meshio
import numpy as np
import pytest
import zoo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from skfem import Basis

import femcert as fc
from femcert.mesh.locate import Locator, interpolation_matrix
from femcert.selection.selection import Case

# The type of the cells in VTK.
CELLS = {"line P1": 3, "line P2": 21, "tri P1": 5, "tri P2": 22, "quad Q1": 9, "quad Q2": 28}
# meshio reads XDMF only with h5py.
ENDINGS = ["vtu", *(["xdmf"] if find_spec("h5py") else [])]


def basis_of(name, n=4, seed=None):
    """The unit interval or square; with a seed its inner nodes are moved."""
    plain = zoo.unit_basis(name, n)
    return plain if seed is None else Basis(zoo.jittered(plain.mesh, 0.1 / n, seed), plain.elem)


def select(problem, learned=None, rule=None):
    k = problem.parameters.dimension
    truth = problem.parameters.field(np.linspace(1.0, 0.5, k))
    data = problem.simulate(truth, noise=0.01)
    if learned is None:
        learned = fc.Candidate.from_coefficients(problem, np.linspace(1.01, 0.5, k))
    rule = fc.ResidualRadius() if rule is None else rule
    return fc.no_harm(problem, data, baseline=fc.Tikhonov(weight=1e-8), learned=learned, rule=rule)


def undecided(problem, baseline, learned):
    """A selection without certificates, of candidates that need not make sense."""
    case = Case(problem, fc.Data(np.zeros(6), 1.0), baseline, learned)
    evidence = {"status": "undecided", "reason": "", "baseline": None, "learned": None, "rule": {}, "tolerance": 0.0}
    return fc.Selection.of(baseline, **evidence, versions={}, case=case)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", CELLS)
def test_all_fields_are_in_the_file(name, ending, tmp_path):
    problem = zoo.source(basis_of(name, seed=3))
    selection = select(problem)
    path = fc.write_fields(selection, tmp_path / "new" / f"fields.{ending}")
    case, found = selection.case, meshio.read(path)
    fields = {
        "parameter": selection.parameter,
        "state": selection.state,
        "baseline_parameter": case.baseline.parameter,
        "baseline_state": case.baseline.state,
        "learned_parameter": case.learned.parameter,
        "learned_state": case.learned.state,
        "difference_parameter": case.learned.parameter - case.baseline.parameter,
        "difference_state": case.learned.state - case.baseline.state,
        "weakest_direction": fc.stability(problem).weakest,
    }
    assert set(found.point_data) == set(fields)
    for field, values in fields.items():
        # The sign of a direction is nobody's choice.
        ours = np.abs(values) if field == "weakest_direction" else values
        theirs = np.abs(found.point_data[field]) if field == "weakest_direction" else found.point_data[field]
        assert np.allclose(theirs, ours, rtol=1e-12, atol=1e-14), field
    for role in ("baseline", "learned"):
        indicators = fc.dual_norm(problem, getattr(case, role)).indicators
        assert np.allclose(found.cell_data[f"{role}_indicators"][0], indicators, rtol=1e-9, atol=1e-15)
    assert np.array_equal(found.points[:, : problem.basis.mesh.dim()], problem.basis.doflocs.T)
    assert list(tmp_path.rglob("*.part")) == []


@pytest.mark.parametrize("ending", ENDINGS)
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(CELLS)),
    n=st.integers(2, 6),
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-300, 1e-7, 1.0, 1e12]),
)
def test_a_candidate_comes_back_to_the_last_digit(name, n, seed, scale, ending, tmp_path):
    basis = basis_of(name, n, seed)
    problem = zoo.source(basis, parameters=fc.FullSpace)
    q, u = scale * np.random.default_rng(seed).standard_normal((2, problem.basis.N))
    selection = undecided(problem, fc.Candidate(u, q), fc.Candidate(2.0 * u, -q))
    path = fc.write_fields(selection, tmp_path / f"fields.{ending}")
    for prefix, candidate in (("baseline_", (u, q)), ("learned_", (2.0 * u, -q)), ("", (u, q))):
        names = {"parameter": f"{prefix}parameter", "state": f"{prefix}state"}
        again = fc.Candidate.from_file(problem, path, **names)
        assert again.interpolation is None
        assert np.array_equal(again.state, candidate[0])
        assert np.array_equal(again.parameter, candidate[1])


@pytest.mark.parametrize("name", CELLS)
def test_vtk_reads_the_files(name, tmp_path):
    pyvista = pytest.importorskip("pyvista")
    vtk = pytest.importorskip("vtkmodules.vtkIOXdmf2")
    basis = basis_of(name, seed=5)
    selection = select(zoo.source(basis))
    grid = pyvista.read(fc.write_fields(selection, tmp_path / "fields.vtu"))
    # pyvista's own reader of XDMF insists on a time, which meshio's refuses; this is ParaView's.
    reader = vtk.vtkXdmfReader()
    reader.SetFileName(str(fc.write_fields(selection, tmp_path / "fields.xdmf")))
    reader.Update()
    places = np.random.default_rng(0).random((30, basis.mesh.dim()))
    cells = Locator(basis.mesh).find(places.T)
    exact = interpolation_matrix(basis, places.T, cells) @ selection.parameter
    for found in (grid, pyvista.wrap(reader.GetOutputDataObject(0))):
        # A line of XDMF is a polyline of two points.
        assert {{4: 3}.get(kind, kind) for kind in found.celltypes} == {CELLS[name]}
        assert found.n_cells == basis.mesh.nelements
        assert np.array_equal(found.point_data["parameter"], selection.parameter)
        assert np.array_equal(found.point_data["state"], selection.state)
        assert {"baseline_indicators", "learned_indicators"} == set(found.cell_data.keys())
        if basis.mesh.dim() == 2:
            # Nodes in the wrong order would give other values between them.
            at = pyvista.PolyData(np.column_stack([places, np.zeros(30)])).sample(found)
            assert np.allclose(at.point_data["parameter"], exact, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("ending", ENDINGS)
def test_piecewise_constant_parameters_are_cell_data(ending, tmp_path):
    problem = zoo.source("tri P2", parameters=zoo.thirds)
    selection = select(problem)
    path = fc.write_fields(selection, tmp_path / f"fields.{ending}")
    found = meshio.read(path)
    assert np.array_equal(found.cell_data["parameter"][0], selection.parameter)
    assert "weakest_direction" in found.cell_data
    again = fc.Candidate.from_file(problem, path)
    assert again.interpolation is None
    assert np.array_equal(again.parameter, selection.parameter)
    assert np.array_equal(again.state, selection.state)


def test_states_at_several_times_are_numbered(tmp_path):
    problem = zoo.heat("line P1", 8, times=[0.05, 0.1], steps=10)
    selection = select(problem)
    path = fc.write_fields(selection, tmp_path / "fields.vtu")
    found = meshio.read(path)
    assert np.array_equal(found.point_data["learned_state_1"], selection.case.learned.state[:, 1])
    assert {"state_0", "state_1", "difference_state_0", "difference_state_1"} <= set(found.point_data)
    assert found.cell_data == {}
    assert np.array_equal(fc.Candidate.from_file(problem, path).state, selection.state)
    # A trajectory cannot be compared with two times.
    q = problem.parameters.field([1.0, 0.5])
    longer = select(problem, learned=fc.Candidate(problem.trajectory(q), q))
    found = meshio.read(fc.write_fields(longer, path))
    assert {"learned_state_0", "learned_state_10", "baseline_state_1"} <= set(found.point_data)
    assert not any(name.startswith("difference_state") for name in found.point_data)


def test_images_have_no_state_and_dominance_has_a_truth(tmp_path):
    found = meshio.read(fc.write_fields(select(zoo.tomography()), tmp_path / "image.vtu"))
    assert not any("state" in name for name in found.point_data)
    assert {"parameter", "baseline_parameter", "learned_parameter", "difference_parameter"} <= set(found.point_data)
    decided = select(zoo.source("tri P1"), rule=fc.Dominance())
    found = meshio.read(fc.write_fields(decided, tmp_path / "decided.vtu"))
    assert np.array_equal(found.point_data["deciding_truth"], decided.comparison.truth)


def test_a_selection_from_a_file_needs_its_problem(tmp_path):
    problem = zoo.source("quad Q1")
    select(problem).save(tmp_path / "selection.json")
    loaded = fc.Selection.load(tmp_path / "selection.json")
    with pytest.raises(fc.InputError, match="has no mesh"):
        fc.write_fields(loaded, tmp_path / "fields.vtu")
    path = fc.write_fields(loaded, tmp_path / "fields.vtu", problem=problem)
    assert np.array_equal(meshio.read(path).point_data["parameter"], loaded.parameter)
    with pytest.raises(fc.InputError, match="parameter has shape"):
        fc.write_fields(loaded, tmp_path / "fields.vtu", problem=zoo.source("quad Q1", 3))
