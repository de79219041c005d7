"""Candidates from files that others wrote: VTU, XDMF, VTK, Gmsh, CSV and NPZ, whole or damaged."""

import base64
import io
import lzma
import re
import struct
import sys
import zipfile
import zlib
from functools import partial
from importlib.util import find_spec

import meshio
import numpy as np
import pytest
import zoo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from orders import linear, quadratic
from skfem import Basis, ElementTriP1, MeshTri
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


@pytest.mark.parametrize("ending", ["vtu", "vtk", "xdmf"])
def test_formats_of_meshio(ending, tmp_path):
    if ending == "xdmf":
        pytest.importorskip("h5py")
    basis, other = unit_basis("tri P1", 4), unit_basis("quad Q1", 3)
    path = tmp_path / f"net.{ending}"
    theirs = file_mesh(other, {"q": linear(other.doflocs), "u": 2.0 * linear(other.doflocs)})
    meshio.write(path, theirs)
    candidate = fc.Candidate.from_file(full_problem(basis), path, parameter="q", state="u", name="theirs")
    assert candidate.name == "theirs"
    assert np.allclose(candidate.parameter, linear(basis.doflocs), rtol=0.0, atol=1e-13)
    assert np.allclose(candidate.state, 2.0 * linear(basis.doflocs), rtol=0.0, atol=1e-13)
    assert candidate.interpolation.source == "a mesh of 16 nodes and 9 cells"


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
    x = problem.basis.doflocs[0]
    path = tmp_path / "net.vtu"
    states = {"state_0": x, "state_1": 2.0 * x}
    file_mesh(problem.basis, {"parameter": x, **states}).write(path)
    assert np.array_equal(fc.Candidate.from_file(problem, path).state, np.column_stack([x, 2.0 * x]))
    file_mesh(problem.basis, {"parameter": x}).write(path)
    assert np.array_equal(fc.Candidate.from_file(problem, path).state, problem.solve(x))
    file_mesh(problem.basis, {"parameter": x, "state_0": x}).write(path)
    refused(problem, path, r"state has shape \(9,\)")
    assert np.array_equal(fc.Candidate.from_file(heat_problem(0.1), path).state, x)
    file_mesh(problem.basis, {"parameter": x, "state_0": x, "state_2": x}).write(path)
    refused(problem, path, r"fields state_\.\.\. have the numbers \[0, 2\]")
    table = tmp_path / "net.csv"
    table.write_text("x,parameter,state_0,state_1\n" + "\n".join(f"{t!r},{t!r},{t!r},{2 * t!r}" for t in x.tolist()))
    assert np.array_equal(fc.Candidate.from_file(problem, table).state, np.column_stack([x, 2.0 * x]))
    np.savez(tmp_path / "net.npz", parameter=x, **states)
    assert np.array_equal(fc.Candidate.from_file(problem, tmp_path / "net.npz").state, np.column_stack([x, 2.0 * x]))
    np.savez(tmp_path / "net.npz", parameter=x, state_0=x, state_1=x[1:])
    refused(problem, tmp_path / "net.npz", "its arrays state_0, state_1 have different shapes")


def test_fields_that_are_missing_or_of_another_kind(tmp_path):
    basis = unit_basis("tri P1", 4)
    problem, q = full_problem(basis), linear(basis.doflocs)
    path = tmp_path / "net.vtu"
    file_mesh(basis, {"q": q, "velocity": np.column_stack([q, q, q])}).write(path)
    refused(problem, path, "it has 'q', 'velocity'")
    refused(problem, path, "it has 'q', 'velocity'", parameter="q", state="u")
    refused(problem, path, r"its field 'velocity' has shape \(25, 3\)", parameter="velocity")
    assert np.array_equal(fc.Candidate.from_file(problem, path, parameter="q").state, problem.solve(q))
    file_mesh(basis).write(path)
    refused(problem, path, "it has no fields")
    file_mesh(basis, {"parameter": np.where(q == q[3], np.nan, q)}).write(path)
    refused(problem, path, "parameter has .* NaN or infinite entries")
    refused(problem, tmp_path / "missing.vtu", "there is no such file")
    (tmp_path / "folder.vtu").mkdir()
    refused(problem, tmp_path / "folder.vtu", "it is a directory")
    (tmp_path / "net.docx").write_text("x")
    refused(problem, tmp_path / "net.docx", r"its ending is '\.docx'")
    # meshio overlooks the node numbers of its fields.
    meshio.write(tmp_path / "net.msh", file_mesh(basis, {"parameter": q}), file_format="gmsh")
    refused(problem, tmp_path / "net.msh", r"its ending is '\.msh'; expected")
    (tmp_path / "net.VTU").write_bytes((tmp_path / "net.vtu").read_bytes())
    refused(problem, tmp_path / "net.VTU", "NaN or infinite")
    (tmp_path / "net.vtu").write_text("<html></html>")
    refused(problem, tmp_path / "net.vtu", "cannot be read")


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
        ("", "it has ''|no fields"),
        ("\n\n", "expected one called 'x'"),
        ("x,y,parameter\n", "cannot be read as a table of numbers with commas"),
        ("x,parameter\n0,1\n", "it has 'parameter', 'x'"),
        ("x,y,parametr\n0,1,2\n", "expected one called 'parameter'"),
        ("x,y,parameter\n0,1,two\n", "could not convert string 'two'"),
        ("x,y,parameter\n0,1\n", "cannot be read as a table"),
        ("x,y,parameter\n0,0,1\n1,0,\n", "cannot be read as a table"),
        ("x,y,parameter\n0,0,1\n1,0,nan\n0,1,1\n", "parameter has 1 NaN"),
        ("x,y,parameter\n0,0,1\n1,inf,1\n0,1,1\n", "coordinates has 1 NaN or infinite"),
        ("x;y;parameter\n0;0;1\n", "expected one called 'x'"),
        ("x,y,parameter,parameter\n0,0,1,2\n1,0,1,2\n0,1,1,2\n", "its header has 'parameter' twice"),
        ("x,y,parameter\n0,0,1\n1,1,1\n", r"points has shape \(2, 2\)"),
        ("x,y,parameter\n0,0,1\n.1,0,1\n0,.1,1\n", "dofs lie outside of 3 scattered points"),
        ("x,y,parameter\n0,0,1\n1,0,1\n0,1,1\n1,1,1\n1,1,2\n", "different values at points 3 and 4"),
        ("\x00\x01\x02", "it has|cannot be read"),
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


def test_files_that_claim_to_be_huge_are_refused(tmp_path):
    basis = unit_basis("tri P1", 4)
    problem, q = full_problem(basis), linear(basis.doflocs)
    path = tmp_path / "net.vtu"
    meshio.write(path, file_mesh(basis, {"parameter": q}), binary=False)
    text = path.read_text()
    path.write_text(text.replace('NumberOfPoints="25"', 'NumberOfPoints="1000000000000"'))
    refused(problem, path, "cannot be read")
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"
    with zipfile.ZipFile(tmp_path / "net.npz", "w") as archive:
        archive.writestr("parameter.npy", header.ljust(127) + b"\n")
    refused(problem, tmp_path / "net.npz", r"cannot be read as an \.npz archive")
    bomb = '<!DOCTYPE a [<!ENTITY a0 "' + 100 * "x" + '">' + "".join(
        f'<!ENTITY a{i} "{10 * f"&a{i - 1};"}">' for i in range(1, 12)
    )
    path.write_text(f'<?xml version="1.0"?>{bomb}]><VTKFile>&a11;</VTKFile>')
    refused(problem, path, "cannot be read")


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


@pytest.fixture(scope="module")
def small_problem():
    return full_problem(unit_basis("tri P1", 2))


@pytest.fixture(scope="module")
def whole_files(tmp_path_factory):
    return {ending: _written(tmp_path_factory.mktemp("whole"), ending).read_bytes() for ending in ENDINGS}


@pytest.mark.parametrize("ending", ENDINGS)
def test_whole_files_are_read(ending, whole_files, small_problem, tmp_path):
    """The ones that are damaged below."""
    path = tmp_path / f"net.{ending.removeprefix('ascii.')}"
    path.write_bytes(whole_files[ending])
    candidate = fc.Candidate.from_file(small_problem, path)
    assert candidate.interpolation is None
    assert np.array_equal(candidate.parameter, linear(small_problem.basis.doflocs))
    assert np.array_equal(candidate.state, candidate.parameter)


@pytest.mark.parametrize("ending", ENDINGS)
@settings(deadline=None, max_examples=90, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1), flips=st.integers(0, 4), cut=st.booleans())
def test_damaged_files_give_a_candidate_that_fits_or_an_input_error(
    ending, seed, flips, cut, whole_files, small_problem, tmp_path
):
    problem, basis = small_problem, small_problem.basis
    raw, rng = bytearray(whole_files[ending]), np.random.default_rng(seed)
    for _ in range(flips):
        place = rng.integers(len(raw))
        kind = rng.integers(3)
        if kind == 0:
            raw[place] = rng.integers(256)
        elif kind == 1:
            raw[place] = rng.choice(list(b'0123456789-. \n<>"'))
        else:
            del raw[place : place + rng.integers(1, 30)]
    path = tmp_path / f"net.{ending.removeprefix('ascii.')}"
    path.write_bytes(raw[: rng.integers(len(raw))] if cut else raw)
    try:
        candidate = fc.Candidate.from_file(problem, path)
    except fc.InputError:
        return
    assert candidate.parameter.shape == candidate.state.shape == (basis.N,)
    assert np.isfinite(candidate.parameter).all()
    assert np.isfinite(candidate.state).all()


def test_without_h5py_a_file_of_xdmf_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    path = tmp_path / "net.xdmf"
    item = '<DataItem DataType="Float" Dimensions="1 3" Format="XML" Precision="8">0 0 0</DataItem>'
    grid = f'<Grid Name="Grid"><Geometry GeometryType="XYZ">{item}</Geometry></Grid>'
    path.write_text(f'<Xdmf Version="3.0"><Domain>{grid}</Domain></Xdmf>')
    refused(full_problem(unit_basis("tri P1", 2)), path, "its reader needs the package h5py; pip install it")


def test_a_damaged_field_is_not_left_out_in_silence(tmp_path):
    """meshio skips it with a warning, and the state would be computed instead of read."""
    basis = unit_basis("tri P1", 2)
    q = linear(basis.doflocs)
    path = tmp_path / "net.vtu"
    meshio.write(path, file_mesh(basis, {"parameter": q, "state": np.column_stack([q, q])}), binary=False)
    whole = path.read_text()
    path.write_text(whole.replace('NumberOfComponents="2"', 'NumberOfComponents="4"'))
    refused(full_problem(basis), path, "one of its fields is damaged")


@pytest.mark.parametrize("ending", ["vtu", "csv", "npz"])
def test_nan_from_a_file_is_never_accepted(ending, tmp_path):
    basis = unit_basis("tri P1", 4)
    problem = zoo.source(basis)
    data = problem.simulate(problem.parameters.field([1.0, 0.5, 0.2]), noise=0.01)
    path = tmp_path / f"net.{ending}"
    q = np.where(np.arange(basis.N) == 7, np.nan, 1.0)
    if ending == "vtu":
        file_mesh(basis, {"parameter": q}).write(path)
    elif ending == "npz":
        np.savez(path, parameter=q)
    else:
        rows = [",".join(map(repr, row)) for row in np.column_stack([basis.doflocs.T, q]).tolist()]
        path.write_text("\n".join(["x,y,parameter", *rows]))
    selection = fc.no_harm(
        problem,
        data,
        baseline=fc.Tikhonov(weight=1e-6),
        learned=lambda problem, data: fc.Candidate.from_file(problem, path),
        rule=fc.ResidualRadius(),
    )
    assert not selection.accepted
    assert "NaN" in selection.reason


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


@pytest.mark.parametrize("row", ["0,7,5", "0.5,2,3", "0.5,2,x"])
def test_rows_longer_than_the_header_are_refused(tmp_path, row):
    """A decimal comma would make two entries of one number."""
    (tmp_path / "a.csv").write_text(f"x,parameter\n{row}\n1,9,5\n", encoding="utf-8")
    with pytest.raises(fc.InputError, match="line 2 has 3 entries; the header has 2"):
        fc.Candidate.from_file(full_problem(unit_basis("line P1", 8)), tmp_path / "a.csv")


@pytest.mark.parametrize("name", ["state_00", "state_\u0660", "state_1"])
def test_states_with_other_numbers_are_refused(name, tmp_path):
    basis = unit_basis("tri P1", 4)
    np.savez(tmp_path / "net.npz", parameter=np.zeros(basis.N), **{name: np.zeros(basis.N)})
    refused(full_problem(basis), tmp_path / "net.npz", "its fields state_... .*")


@pytest.mark.parametrize("name", ["interpolation", "points", "optimality", "parameter", "state"])
def test_members_that_are_no_arrays_are_refused(name, tmp_path):
    basis, path = unit_basis("tri P1", 4), tmp_path / "net.npz"
    np.savez(path, **({} if name == "parameter" else {"parameter": np.zeros(basis.N)}))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, b"{}")
    refused(full_problem(basis), path, f"its member '{name}' is no array")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("member", ["parameter.npy", "parameter"])
def test_two_members_of_one_name_are_refused(member, tmp_path):
    basis, path, other = unit_basis("tri P1", 4), tmp_path / "net.npz", io.BytesIO()
    np.savez(path, parameter=np.zeros(basis.N))
    np.save(other, np.ones(basis.N))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(member, other.getvalue())
    refused(full_problem(basis), path, "it has 'parameter' twice")


def test_a_field_whose_name_is_damaged_is_not_overlooked(tmp_path):
    basis, path = unit_basis("tri P1", 4), tmp_path / "net.npz"
    np.savez(path, parameter=np.ones(basis.N), state=np.ones(basis.N))
    content = path.read_bytes()
    place = content.rindex(b"state.npy")
    path.write_bytes(content[:place] + b"stale.npy" + content[place + 9 :])
    refused(full_problem(basis), path, "cannot be read as an .npz archive of plain arrays")


@pytest.mark.parametrize("size", [1e160, 1e300])
def test_points_too_far_for_distances_are_refused(size, tmp_path):
    basis = unit_basis("tri P1", 4)
    points = size * basis.doflocs.T
    np.savez(tmp_path / "net.npz", parameter=np.zeros(basis.N), points=points)
    refused(full_problem(basis), tmp_path / "net.npz", "points has a coordinate of size")
    table = np.column_stack([points, np.zeros(basis.N)])
    np.savetxt(tmp_path / "net.csv", table, delimiter=",", header="x,y,parameter", comments="")
    refused(full_problem(basis), tmp_path / "net.csv", "points has a coordinate of size")


def piece_of(text):
    return text[text.index("<Piece") : text.index("</Piece>") + len("</Piece>")]


def test_a_vtu_file_in_pieces_is_refused(tmp_path):
    """meshio would read the last one and say nothing."""
    basis, path = unit_basis("tri P1", 4), tmp_path / "net.vtu"
    file_mesh(basis, {"parameter": np.ones(basis.N)}).write(path)
    text = path.read_text()
    path.write_text(text.replace("</Piece>", "</Piece>" + piece_of(text)))
    refused(full_problem(basis), path, "it has 2 pieces")
    with pytest.raises(fc.InputError, match="it has 2 pieces"):
        fc.load_mesh(path)
    # An empty one says nothing.
    empty = '<Piece NumberOfPoints="0" NumberOfCells="0"></Piece>'
    path.write_text(text.replace("<Piece", empty + "<Piece", 1))
    assert np.array_equal(fc.Candidate.from_file(full_problem(basis), path).parameter, np.ones(basis.N))


@pytest.mark.parametrize("ending", ["vtu", *(["xdmf"] if find_spec("h5py") else [])])
def test_two_fields_of_one_name_are_refused(ending, tmp_path):
    basis, path = unit_basis("tri P1", 4), tmp_path / f"net.{ending}"
    file_mesh(basis, {"parameter": np.ones(basis.N)}, {"parameter": np.ones(basis.mesh.nelements)}).write(path)
    assert fc.Candidate.from_file(full_problem(basis), path).parameter.size == basis.N
    tag = "DataArray" if ending == "vtu" else "Attribute"
    found = re.search(rf'<{tag} [^>]*Name="parameter".*?</{tag}>', path.read_text(), re.DOTALL)[0]
    path.write_text(path.read_text().replace(found, found + found, 1))
    refused(full_problem(basis), path, "it has 'parameter' twice")


COMPRESSED = {"zlib": lambda data: zlib.compress(data, 9), "lzma": lzma.compress}


def compressed_vtu(path, layout, compression, values):
    """A VTU file of two triangles with a compressed field, its array inside of the XML or appended."""
    arrays = {
        "points": np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], dtype="<f8"),
        "connectivity": np.array([0, 1, 2, 1, 3, 2], dtype="<i8"),
        "offsets": np.array([3, 6], dtype="<i8"), "types": np.array([5, 5], dtype="<i8"),
        "parameter": values,
    }  # fmt: skip
    texts, appended = {}, b""
    for name, array in arrays.items():
        data = COMPRESSED[compression](array.tobytes())
        parts = struct.pack("<4I", 1, array.nbytes, 0, len(data)), data
        content = b"".join(parts if layout == "raw" else map(base64.b64encode, parts))
        kind, more = ("Float64", ' NumberOfComponents="3"' if name == "points" else "")
        kind = kind if name in ("points", "parameter") else "Int64"
        head = f'<DataArray type="{kind}" Name="{name}"{more} '
        place = f'format="appended" offset="{len(appended)}"/>'
        texts[name] = head + (f'format="binary">{content.decode()}</DataArray>' if layout == "inside" else place)
        appended += content
    compressor = {"zlib": "vtkZLibDataCompressor", "lzma": "vtkLZMADataCompressor"}[compression]
    encoding = "raw" if layout == "raw" else "base64"
    tail = b"" if layout == "inside" else f'<AppendedData encoding="{encoding}">_'.encode() + appended
    path.write_bytes(
        f'<VTKFile type="UnstructuredGrid" version="0.1" byte_order="LittleEndian" compressor="{compressor}">'
        '<UnstructuredGrid><Piece NumberOfPoints="4" NumberOfCells="2">'
        f"<PointData>{texts.pop('parameter')}</PointData><Points>{texts.pop('points')}</Points>"
        f"<Cells>{''.join(texts.values())}</Cells></Piece></UnstructuredGrid>".encode()
        + tail + (b"\n</AppendedData>" if tail else b"") + b"</VTKFile>\n"
    )  # fmt: skip


@pytest.mark.parametrize("compression", COMPRESSED)
@pytest.mark.parametrize("layout", ["inside", "base64", "raw"])
def test_a_compressed_vtu_file(layout, compression, tmp_path):
    basis, path = Basis(MeshTri().refined(2), ElementTriP1()), tmp_path / "net.vtu"
    compressed_vtu(path, layout, compression, np.array([0.0, 1.0, 2.0, 3.0]))
    found = fc.Candidate.from_file(full_problem(basis), path).parameter
    assert found == pytest.approx(basis.doflocs[0] + 2.0 * basis.doflocs[1])


def test_reading_a_file_leaves_meshio_as_it_is(tmp_path):
    """Other threads read files at the same time: nothing of meshio is replaced, not even for a moment."""
    basis, path = unit_basis("tri P1", 4), tmp_path / "net.vtu"
    file_mesh(basis, {"parameter": np.ones(basis.N)}).write(path)
    before, seen = dict(vars(meshio.vtu._vtu)), []

    def watch(*_):
        seen.append({name for name, value in vars(meshio.vtu._vtu).items() if before.get(name) is not value})

    sys.setprofile(watch)
    try:
        fc.Candidate.from_file(full_problem(basis), path)
    finally:
        sys.setprofile(None)
    assert len(seen) > 100
    assert not set().union(*seen)


@pytest.mark.parametrize("raised", [MemoryError, partial(MemoryError, "Unable to allocate 9 GiB")])
def test_too_little_memory_is_said_in_a_line(raised, tmp_path, monkeypatch):
    basis, path = unit_basis("tri P1", 4), tmp_path / "net.vtu"
    file_mesh(basis, {"parameter": np.ones(basis.N)}).write(path)

    def full(*_):
        raise raised()

    monkeypatch.setattr("femcert.problem.candidate_meshes.checked_mesh", full)
    refused(full_problem(basis), path, "there is not enough memory for what it holds")


def test_a_candidate_is_saved_to_a_new_directory(tmp_path):
    problem, path = full_problem(unit_basis("tri P1", 4)), tmp_path / "a" / "new" / "answer.npz"
    ones = np.ones(problem.basis.N)
    fc.Candidate(problem.solve(ones), ones).save(path)
    assert np.array_equal(fc.Candidate.from_file(problem, path).parameter, ones)
