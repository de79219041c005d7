"""Candidates from files that others wrote: VTU, XDMF, VTK, Gmsh, CSV and NPZ, whole or damaged."""

from importlib.util import find_spec

import meshio
import numpy as np
import pytest
import zoo
from orders import linear, quadratic
from skfem import Basis, ElementTriP1
from zoo import ELEMENTS, full_problem, unit_basis, unit_mesh

import femcert as fc

ENDINGS = ("vtu", "ascii.vtu", "vtk", "csv", "npz", *(["xdmf"] if find_spec("h5py") else []))
KINDS = {2: ("line", "line3"), 3: ("triangle", "triangle6"), 4: ("quad", "quad9")}


def file_mesh(basis, fields=(), cells=(), order=None):
    """What meshio writes of a basis: its dofs are the nodes, in another order if asked for."""
    points = np.zeros((basis.N, 3))
    points[:, : basis.mesh.dim()] = basis.doflocs.T
    order = np.arange(basis.N) if order is None else order
    kind = KINDS[len(basis.mesh.t)][int(basis.mesh.nvertices < basis.N)]
    connect = np.argsort(order)[basis.element_dofs.T]
    point_data = {name: np.asarray(values)[order] for name, values in dict(fields).items()}
    cell_data = {name: [np.asarray(values)] for name, values in dict(cells).items()}
    return meshio.Mesh(points[order], {kind: connect}, point_data=point_data, cell_data=cell_data)


def heat_problem(times):
    return zoo.heat("line P1", 8, parameters=3, sensors=[0.3, 0.6], times=times, steps=10)


def refused(problem, path, message, **options):
    with pytest.raises(fc.InputError, match=message) as caught:
        fc.Candidate.from_file(problem, path, **options)
    assert str(caught.value).startswith(f"candidate file '{path}': ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize("shuffled", [False, True])
def test_vtu_on_the_problems_own_mesh_gives_the_values_themselves(name, shuffled, tmp_path):
    basis = unit_basis(name, 4)
    rng = np.random.default_rng(7)
    q, u = rng.standard_normal((2, basis.N))
    order = rng.permutation(basis.N) if shuffled else None
    path = tmp_path / "net.vtu"
    file_mesh(basis, {"parameter": q, "state": u}, order=order).write(path)
    candidate = fc.Candidate.from_file(full_problem(basis), path)
    assert candidate.name == "net"
    assert candidate.interpolation is None
    assert np.array_equal(candidate.parameter, q)
    assert np.array_equal(candidate.state, u)


@pytest.mark.parametrize(
    ("to", "of"), [("tri P1", "tri P2"), ("quad Q2", "tri P2"), ("quad Q1", "quad Q2"), ("line P2",) * 2]
)
def test_quadratic_cells_of_another_mesh(to, of, tmp_path):
    basis, other = unit_basis(to, 5), unit_basis(of, 3)
    path = tmp_path / "net.vtu"
    file_mesh(other, {"parameter": quadratic(other.doflocs)}).write(path)
    candidate = fc.Candidate.from_file(full_problem(basis), path)
    assert np.allclose(candidate.parameter, quadratic(basis.doflocs), rtol=0.0, atol=1e-13)


def test_quadratic_cells_with_edges_of_their_own_and_curved_ones(tmp_path):
    """Gmsh writes the edges of the boundary, too; bent edges are not those of our elements."""
    basis = unit_basis("tri P2", 3)
    mesh = file_mesh(basis, {"parameter": quadratic(basis.doflocs)})
    facets = basis.mesh.boundary_facets()
    edges = np.column_stack([basis.mesh.facets[:, facets].T, basis.facet_dofs[0, facets]])
    path = tmp_path / "net.vtu"
    meshio.Mesh(mesh.points, [("line3", edges), *mesh.cells], point_data=mesh.point_data).write(path)
    candidate = fc.Candidate.from_file(full_problem(basis), path)
    assert np.array_equal(candidate.parameter, quadratic(basis.doflocs))
    mesh.points[basis.facet_dofs[0, facets[0]], :2] += 0.03
    mesh.write(path)
    refused(full_problem(basis), path, "its triangle6 cells are curved, the first at .*")


def test_cell_data_goes_to_piecewise_constants_only(tmp_path):
    basis = unit_basis("tri P1", 4)
    regions = full_problem(basis, fc.RegionSpace(basis, [np.arange(16), np.arange(16, 32)]))
    values, nodal = np.repeat([1.0, 5.0], 16), linear(basis.doflocs)
    path = tmp_path / "net.vtu"
    file_mesh(basis, {"state": nodal}, {"parameter": values}).write(path)
    candidate = fc.Candidate.from_file(regions, path)
    assert candidate.interpolation is None
    assert np.array_equal(candidate.parameter, values)
    assert np.array_equal(candidate.state, nodal)
    refused(full_problem(basis), path, "gives a value to each cell, but the problem takes nodal values")
    # Where it is there for both, each takes its own.
    file_mesh(basis, {"parameter": nodal}, {"parameter": values}).write(path)
    assert np.array_equal(fc.Candidate.from_file(regions, path).parameter, values)
    assert np.array_equal(fc.Candidate.from_file(full_problem(basis), path).parameter, nodal)
    file_mesh(basis, {"parameter": nodal}, {"state": values}).write(path)
    refused(full_problem(basis), path, "gives a value to each cell")


def test_a_heat_state_is_a_field_for_each_time(tmp_path):
    problem = heat_problem([0.05, 0.1])
    basis, x = problem.basis, problem.basis.doflocs[0]
    path, table, archive = (tmp_path / f"net.{ending}" for ending in ("vtu", "csv", "npz"))
    states = {"state_0": x, "state_1": 2.0 * x}
    file_mesh(basis, {"parameter": x, **states}).write(path)
    table.write_text("x,parameter,state_0,state_1\n" + "\n".join(f"{t!r},{t!r},{t!r},{2 * t!r}" for t in x.tolist()))
    np.savez(archive, parameter=x, **states)
    for file in (path, table, archive):
        assert np.array_equal(fc.Candidate.from_file(problem, file).state, np.column_stack([x, 2.0 * x]))
    file_mesh(basis, {"parameter": x}).write(path)
    assert np.array_equal(fc.Candidate.from_file(problem, path).state, problem.solve(x))
    file_mesh(basis, {"parameter": x, "state_0": x}).write(path)
    refused(problem, path, r"state has shape \(9,\)")
    assert np.array_equal(fc.Candidate.from_file(heat_problem(0.1), path).state, x)
    file_mesh(basis, {"parameter": x, "state_0": x, "state_2": x}).write(path)
    refused(problem, path, r"the numbers \[0, 2\]")
    np.savez(archive, parameter=x, state_0=x, state_1=x[1:])
    refused(problem, archive, "different shapes")


def test_fields_that_are_missing_or_of_another_kind(tmp_path):
    basis = unit_basis("tri P1", 4)
    problem, q, path = full_problem(basis), linear(basis.doflocs), tmp_path / "net.vtu"
    file_mesh(basis, {"q": q, "velocity": np.column_stack([q, q, q])}).write(path)
    refused(problem, path, "it has 'q', 'velocity'")
    refused(problem, path, "it has 'q', 'velocity'", parameter="q", state="u")
    refused(problem, path, r"'velocity' has shape \(25, 3\)", parameter="velocity")
    assert np.array_equal(fc.Candidate.from_file(problem, path, parameter="q").state, problem.solve(q))
    file_mesh(basis).write(path)
    refused(problem, path, "it has no fields")
    file_mesh(basis, {"parameter": np.where(q == q[3], np.nan, q)}).write(path)
    refused(problem, path, "parameter has .* NaN")
    (tmp_path / "net.VTU").write_bytes(path.read_bytes())
    (tmp_path / "folder.vtu").mkdir()
    (tmp_path / "net.docx").write_text("x")
    (tmp_path / "text.vtu").write_text("<html></html>")
    # meshio overlooks the node numbers of its fields.
    meshio.write(tmp_path / "net.msh", file_mesh(basis, {"parameter": q}), file_format="gmsh")
    for name, word in (
        ("missing.vtu", "no such file"), ("folder.vtu", "a directory"), ("net.docx", r"ending is '\.docx'"),
        ("net.msh", r"ending is '\.msh'"), ("net.VTU", "NaN or infinite"), ("text.vtu", "cannot be read"),
    ):  # fmt: skip
        refused(problem, tmp_path / name, word)


def test_tables_of_points(tmp_path):
    basis = unit_basis("tri P1", 4)
    problem, rng = full_problem(basis), np.random.default_rng(1)
    q, u = rng.standard_normal((2, basis.N))
    x, y = basis.doflocs
    path = tmp_path / "net.csv"
    for header, rows in (
        ("x,y,parameter,state", [(x[i], y[i], q[i], u[i]) for i in rng.permutation(basis.N)]),
        ('"parameter", "state","Points:0","Points:1"', [(q[i], u[i], x[i], y[i]) for i in range(basis.N)]),
        ("id,x,y,z,parameter,state", [(i, x[i], y[i], 0.0, q[i], u[i]) for i in range(basis.N)]),
    ):
        path.write_text("\ufeff" + header + "\r\n" + "\r\n".join(",".join(map(repr, map(float, row))) for row in rows))
        candidate = fc.Candidate.from_file(problem, path)
        assert candidate.interpolation is None
        assert np.array_equal(candidate.parameter, q)
        assert np.array_equal(candidate.state, u)
    # A column of words that nobody asked for does no harm; other names are chosen.
    rows = [f'"a, b",{a!r},{b!r},{1 + a!r}' for a, b in basis.doflocs.T.tolist()]
    path.write_text("\n".join(["where,x,y,k", *rows]))
    assert np.array_equal(fc.Candidate.from_file(problem, path, parameter="k").parameter, 1.0 + x)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y,parameter\n", "cannot be read as a table of numbers with commas"),
        ("x,y,parametr\n0,1,2\n", "expected one called 'parameter'"),
        ("x,y,parameter\n0,1,two\n", "could not convert string 'two'"),
        ("x,y,parameter\n0,0,1\n1,inf,1\n0,1,1\n", "coordinates has 1 NaN or infinite"),
        ("x,y,parameter,parameter\n0,0,1,2\n1,0,1,2\n0,1,1,2\n", "its header has 'parameter' twice"),
        ("x,y,parameter\n0,0,1\n1,1,1\n", r"points has shape \(2, 2\)"),
        ("x,y,parameter\n0,0,1\n.1,0,1\n0,.1,1\n", "dofs lie outside of 3 scattered points"),
        ("x,y,parameter\n0,0,1\n1,0,1\n0,1,1\n1,1,1\n1,1,2\n", "different values at points 3 and 4"),
    ],
)
def test_bad_tables(text, message, tmp_path):
    path = tmp_path / "net.csv"
    path.write_text(text)
    refused(full_problem(unit_basis("tri P1", 4)), path, message)
    path.write_bytes(b"\xff\xfe" + text.encode("utf-16-le"))
    with pytest.raises(fc.InputError):
        fc.Candidate.from_file(full_problem(unit_basis("tri P1", 4)), path)


def test_archives_of_points_and_of_what_was_interpolated(tmp_path):
    basis = unit_basis("tri P1", 4)
    problem, path = full_problem(basis), tmp_path / "net.npz"
    inside = 0.1 + 0.8 * np.random.default_rng(0).random((40, 2))
    points = np.vstack([basis.mesh.p[:, basis.mesh.boundary_nodes()].T, inside])
    arrays = {"points": points, "parameter": linear(points.T), "state": -linear(points.T)}
    # Of older files, whose training points are left out.
    np.savez(path, **arrays, optimality=0.5, training_points=points.T)
    candidate = fc.Candidate.from_file(problem, path)
    assert np.allclose(candidate.parameter, linear(basis.doflocs), rtol=0.0, atol=1e-12)
    assert np.allclose(candidate.state, -linear(basis.doflocs), rtol=0.0, atol=1e-12)
    assert candidate.optimality == 0.5
    assert candidate.interpolation.source == "56 scattered points"
    # On the problem's own dofs from here on, but the record stays.
    candidate.save(path)
    again = fc.Candidate.from_file(problem, path)
    assert again.interpolation == candidate.interpolation
    assert np.array_equal(again.parameter, candidate.parameter)
    for text in ("{", "[]", '{"source": "a mesh"}', "[" * 100_000):
        np.savez(path, parameter=candidate.parameter, interpolation=np.array(text))
        refused(problem, path, "interpolation")
    np.savez(path, **{**arrays, "parameter": linear(points.T)[1:]})
    refused(problem, path, "a value per point")
    np.savez(path, **{**arrays, "points": points * np.nan})
    refused(problem, path, "points has .* NaN")


def _written(folder, ending):
    """A small candidate file of each kind, whole."""
    basis = unit_basis("tri P1", 2)
    q = linear(basis.doflocs)
    path = folder / f"net.{ending.removeprefix('ascii.')}"
    if ending == "csv":
        rows = [",".join(map(repr, row)) for row in np.column_stack([basis.doflocs.T, q, q]).tolist()]
        path.write_text("\n".join(["x,y,parameter,state", *rows]))
    elif ending == "npz":
        np.savez(path, points=basis.doflocs.T, parameter=q, state=q)
    elif ending == "ascii.vtu":
        meshio.write(path, file_mesh(basis, {"parameter": q, "state": q}), binary=False)
    else:
        options = {"data_format": "XML"} if ending == "xdmf" else {}
        meshio.write(path, file_mesh(basis, {"parameter": q, "state": q}), **options)
    return path


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_of_every_kind_are_read(ending, tmp_path):
    problem = full_problem(unit_basis("tri P1", 2))
    candidate = fc.Candidate.from_file(problem, _written(tmp_path, ending))
    assert candidate.interpolation is None
    assert np.array_equal(candidate.parameter, linear(problem.basis.doflocs))
    assert np.array_equal(candidate.state, candidate.parameter)


def test_a_file_of_a_renumbered_mesh_with_unused_nodes(tmp_path):
    """Nodes of no cell, as Gmsh leaves them at centres of circles, are no values."""
    mesh = unit_mesh("tri", 3)
    basis = Basis(mesh, ElementTriP1())
    whole = file_mesh(basis, {"parameter": linear(basis.doflocs)}, order=np.random.default_rng(2).permutation(basis.N))
    points = np.vstack([[[9.0, 9.0, 0.0]], whole.points])
    values = np.r_[1e9, whole.point_data["parameter"]]
    path = tmp_path / "net.vtu"
    meshio.Mesh(points, {"triangle": whole.cells[0].data + 1}, point_data={"parameter": values}).write(path)
    candidate = fc.Candidate.from_file(full_problem(basis), path)
    assert np.array_equal(candidate.parameter, linear(basis.doflocs))
