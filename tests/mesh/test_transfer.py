"""Fields from another mesh: what is exact, how fast the rest converges, what lies outside, and the record of it."""

import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from orders import fitted_order, linear, quadratic, smooth
from skfem import Basis, ElementLineP1, ElementQuad0, ElementQuad1, ElementTriP0, ElementTriP1, ElementTriP2, MeshTri
from zoo import ELEMENTS, MESHES, full_problem, jittered, middles, renumbered, unit_basis, unit_mesh

import femcert as fc
from femcert.mesh.transfer import Interpolation, nearest_points
from femcert.problem.candidate import check_candidate, plain_copy

PAIRS = [(to, of) for to in ELEMENTS for of in ELEMENTS if to.startswith("line") == of.startswith("line")]


def turned(mesh, angle):
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return type(mesh)(turn @ mesh.p, mesh.t)


@pytest.mark.parametrize(("to", "of"), PAIRS)
def test_linear_functions_are_transferred_exactly_between_any_meshes(to, of):
    target, source = unit_basis(to, 7), unit_basis(of, 5)
    candidate = fc.Candidate.from_basis(
        full_problem(target), source, parameter=linear(source.doflocs), state=-linear(source.doflocs)
    )
    # At most nine shape functions, whose sizes add up to less than 2, times values up to 3; and a place in the unit
    # square that is a few roundings off, times a slope below 3.
    rounding = (9 * 2 * 3 + 8 * 3) * np.finfo(float).eps
    assert np.allclose(candidate.parameter, linear(target.doflocs), rtol=0.0, atol=rounding)
    assert np.allclose(candidate.state, -linear(target.doflocs), rtol=0.0, atol=rounding)
    record = candidate.interpolation
    assert (record.outside, record.beyond, record.unread) == (0, 0.0, 0)
    assert set(record.relative) == {"parameter", "state"}
    assert max(record.relative.values()) < rounding
    gaps = np.linalg.norm(target.doflocs[:, :, None] - source.doflocs[:, None, :], axis=0).min(axis=1)
    assert np.isclose(record.distance, gaps.max(), rtol=1e-12)
    if of in ("line P2", "tri P2", "quad Q2"):
        curved = fc.Candidate.from_basis(full_problem(target), source, parameter=quadratic(source.doflocs))
        assert np.allclose(curved.parameter, quadratic(target.doflocs), rtol=0.0, atol=1e-13)


@pytest.mark.parametrize(
    ("of", "order"), [("tri P1", 2), ("quad Q1", 2), ("bent quad Q1", 2), ("tri P2", 3), ("quad Q2", 3)]
)
def test_smooth_fields_converge_at_the_order_of_the_other_element(of, order):
    target = Basis(jittered(unit_mesh("tri", 23), 0.005), ElementTriP1())
    problem, cells = full_problem(target), np.array([6, 12, 24, 48])
    errors = []
    for n in cells:
        source = unit_basis(of, n)
        candidate = fc.Candidate.from_basis(problem, source, parameter=smooth(source.doflocs))
        errors.append(np.abs(candidate.parameter - smooth(target.doflocs)).max())
    assert order - 0.25 < fitted_order(1.0 / cells, errors) < order + 0.35


def test_the_read_back_difference_converges_with_the_problems_mesh():
    source = unit_basis("tri P1", 40)
    found = []
    for n in (7, 13, 27):
        problem = full_problem(unit_basis("tri P1", n))
        found.append(fc.Candidate.from_basis(problem, source, parameter=smooth(source.doflocs)).interpolation)
    assert 1.6 < fitted_order([1 / 7, 1 / 13, 1 / 27], [record.relative["parameter"] for record in found]) < 2.4
    scale = np.abs(smooth(source.doflocs)).max()
    assert np.isclose(found[0].differences["parameter"], scale * found[0].relative["parameter"])


@pytest.mark.parametrize("name", ["tri P1", "tri P2", "bent quad Q1", "quad Q2", "line P1"])
def test_renumbered_meshes_give_the_values_themselves(name):
    basis = unit_basis(name, 5)
    other = Basis(renumbered(basis.mesh, 3), type(basis.elem)())
    problem = full_problem(basis)
    candidate = fc.Candidate.from_basis(problem, other, parameter=linear(other.doflocs), state=linear(other.doflocs))
    assert candidate.interpolation is None
    assert np.array_equal(candidate.parameter, linear(basis.doflocs))
    same = fc.Candidate.from_basis(problem, unit_basis(name, 5), parameter=linear(basis.doflocs) ** 3)
    assert same.interpolation is None
    assert np.array_equal(same.parameter, linear(basis.doflocs) ** 3)
    assert np.array_equal(same.state, problem.solve(same.parameter))


@pytest.mark.parametrize("flip", [False, True])
def test_discs_of_other_edges(flip):
    """Nodes on the circle lie outside of the other polygon: the nearest edge gives their value, and that is said."""
    coarse, fine = turned(MeshTri.init_circle(3), 0.2), MeshTri.init_circle(4)
    source, target = (fine, coarse) if flip else (coarse, fine)
    source, basis = Basis(source, ElementTriP1()), Basis(target, ElementTriP1())
    zero = 1.0 - (source.doflocs**2).sum(axis=0)
    candidate = fc.Candidate.from_basis(full_problem(basis), source, parameter=linear(source.doflocs), state=zero)
    record, edge = candidate.interpolation, basis.mesh.boundary_nodes()
    assert 0 < record.outside <= len(edge)
    # A circle's edge of length h bulges by h²/8.
    ends = source.mesh.p[:, source.mesh.facets[:, source.mesh.boundary_facets()]]
    sagitta = 1.0 - np.sqrt(1.0 - (np.linalg.norm(ends[:, 1] - ends[:, 0], axis=0).max() / 2.0) ** 2)
    assert 0.05 * sagitta < record.beyond <= sagitta * (1 + 1e-9)
    assert f"{record.outside} dofs outside, by at most" in repr(candidate)
    inner = np.setdiff1d(np.arange(basis.N), edge)
    assert np.allclose(candidate.parameter[inner], linear(basis.doflocs[:, inner]), rtol=0.0, atol=1e-14)
    assert np.abs(candidate.parameter - linear(basis.doflocs)).max() <= np.sqrt(5.0) * record.beyond * (1 + 1e-9)
    # Boundary values are kept.
    assert np.abs(candidate.state[edge]).max() < 1e-14
    with pytest.raises(fc.InputError, match=rf"{record.outside} of {basis.N} dofs lie outside of a mesh of"):
        fc.Candidate.from_basis(full_problem(basis), source, parameter=zero, tolerance=0.0)


def test_files_of_gmsh_meshes_fit_other_meshes_of_the_same_domain():
    """The shipped disc at the dofs of scikit-fem's own, and triangles of the L-shape at the nodes of its quads."""
    shipped, own = fc.load_mesh(MESHES / "disc.msh"), Basis(MeshTri.init_circle(4), ElementTriP1())
    centre = 0.5 * (shipped.p.min(axis=1) + shipped.p.max(axis=1))
    radius = 0.5 * np.ptp(shipped.p[0])
    own = Basis(MeshTri(radius * own.mesh.p + centre[:, None], own.mesh.t), ElementTriP1())
    source = Basis(shipped, ElementTriP1())
    record = fc.Candidate.from_basis(full_problem(own), source, parameter=linear(source.doflocs)).interpolation
    assert record.outside > 0
    assert record.beyond < 0.01 * radius
    triangles = Basis(fc.load_mesh(MESHES / "l_shape.msh"), ElementTriP2())
    quads = Basis(fc.load_mesh(MESHES / "l_shape_quads.msh"), ElementQuad1())
    candidate = fc.Candidate.from_basis(full_problem(quads), triangles, parameter=quadratic(triangles.doflocs))
    assert np.allclose(candidate.parameter, quadratic(quads.doflocs), rtol=0.0, atol=1e-11)
    assert candidate.interpolation.beyond < 1e-9


def test_other_domains_are_refused():
    problem = full_problem(unit_basis("tri P1", 6))
    far = Basis(unit_mesh("tri", 6).translated((100.0, 0.0)), ElementTriP1())
    with pytest.raises(fc.InputError, match=r"49 of 49 dofs lie outside of .*the one at \(0, .*\) by 100"):
        fc.Candidate.from_basis(problem, far, parameter=np.zeros(far.N))
    # Two meshes side by side share an edge.
    beside = Basis(unit_mesh("tri", 6).translated((1.0, 0.0)), ElementTriP1())
    with pytest.raises(fc.InputError, match=r"dofs lie outside of a mesh of 49 nodes and 72 cells"):
        fc.Candidate.from_basis(problem, beside, parameter=np.zeros(beside.N))
    filled = fc.Candidate.from_basis(problem, beside, parameter=linear(beside.doflocs), tolerance=np.inf)
    assert np.allclose(filled.parameter, linear(np.array([np.ones(49), problem.basis.doflocs[1]])))
    assert (filled.interpolation.outside, filled.interpolation.beyond) == (42, 1.0)
    assert filled.interpolation.unread == 42
    line = unit_basis("line P1", 6)
    with pytest.raises(fc.InputError, match="has dimension 1, the problem 2"):
        fc.Candidate.from_basis(problem, line, parameter=np.zeros(line.N))


def test_piecewise_constants_stay_piecewise_constants():
    basis = unit_basis("tri P1", 6)
    regions = [np.arange(36), np.arange(36, 72)]
    problem = full_problem(basis, fc.RegionSpace(basis, regions))
    values = np.repeat([1.0, 5.0], 36)
    same = Basis(basis.mesh, ElementTriP0())
    candidate = fc.Candidate.from_basis(problem, basis, parameter=values, parameter_basis=same)
    assert candidate.interpolation is None
    assert np.array_equal(candidate.parameter, values)
    check_candidate(problem, candidate)
    quads = Basis(unit_mesh("quad", 6), ElementQuad0())
    other = fc.Candidate.from_basis(problem, basis, parameter=linear(middles(quads)), parameter_basis=quads)
    middle = middles(basis)
    assert np.allclose(other.parameter, linear(np.floor(middle * 6) / 6 + 1 / 12))
    # A continuous field is sampled at the centres.
    nodal = fc.Candidate.from_basis(problem, basis, parameter=linear(basis.doflocs))
    assert np.allclose(nodal.parameter, linear(middle))
    assert nodal.interpolation.differences["parameter"] > 0.1
    with pytest.raises(fc.InputError, match="gives a value to each cell, but the problem takes nodal values"):
        fc.Candidate.from_basis(full_problem(basis), basis, parameter=values, parameter_basis=same)


def test_values_that_do_not_fit_are_refused():
    problem, other = full_problem(unit_basis("tri P1", 4)), unit_basis("tri P1", 3)
    good = linear(other.doflocs)
    twice, nan = np.column_stack([good, good]), np.where(np.arange(other.N) == 2, np.nan, good)
    for options, word in (
        ({"parameter": good[:-1]}, r"expected \(16,\) or \(16, times\)"),
        ({"parameter": good, "state": nan}, "state has 1 NaN"),
        ({"parameter": 1j * good}, "parameter is complex"),
        ({"parameter": good, "state": twice}, r"expected \(25,\)"),
        ({"parameter": twice}, r"expected \(25,\)"),
        ({"parameter": good, "tolerance": np.nan}, "tolerance is nan"),
        ({"parameter": good, "tolerance": "far"}, "tolerance is 'far'"),
        ({"parameter": good, "optimality": "x"}, "optimality has type"),
    ):
        with pytest.raises(fc.InputError, match=word):
            fc.Candidate.from_basis(problem, other, **options)
    for at, of, word in ((problem, other.mesh, r"expected a skfem\.Basis"), (other, other, "problem is a CellBasis")):
        with pytest.raises(fc.InputError, match=word):
            fc.Candidate.from_basis(at, of, parameter=good)


def test_heat_states_have_a_column_for_each_time():
    basis, other = unit_basis("line P1", 8), unit_basis("line P1", 5)
    problem = zoo.heat(basis, parameters=3, times=[0.05, 0.1], steps=10)
    x = other.doflocs[0]
    candidate = fc.Candidate.from_basis(problem, other, parameter=x, state=np.column_stack([x, 2.0 * x]))
    assert np.allclose(candidate.state, np.outer(basis.doflocs[0], [1.0, 2.0]))
    assert fc.Candidate.from_basis(problem, other, parameter=x).state.shape == (9, 2)
    with pytest.raises(fc.InputError, match=r"state has shape \(9, 3\)"):
        fc.Candidate.from_basis(problem, other, parameter=x, state=np.column_stack([x, x, x]))


def test_the_record_is_kept_and_comes_back():
    problem, other = full_problem(unit_basis("tri P1", 4)), unit_basis("tri P1", 3)
    candidate = fc.Candidate.from_basis(problem, other, parameter=smooth(other.doflocs))
    record = candidate.interpolation
    assert plain_copy(candidate).interpolation is record
    assert Interpolation.from_dict(record.to_dict()) == record
    assert "interpolated from a mesh of 16 nodes and 18 cells, at most" in repr(candidate)
    assert fc.Candidate.from_coefficients(problem, np.zeros(25)).interpolation is None
    for changed in ({"distance": -1.0}, {"outside": 1.5}, {"differences": 3}, {"relative": {"state": np.nan}}):
        with pytest.raises(fc.InputError, match=next(iter(changed))):
            Interpolation.from_dict({**record.to_dict(), **changed})
    for record in (None, {}, {"source": "a mesh"}):
        with pytest.raises(fc.InputError, match="expected a mapping with source, distance"):
            Interpolation.from_dict(record)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 9), graded=st.booleans())
def test_nearest_points_are_the_nearest(seed, n, graded):
    """Against the distance to every edge of the boundary."""
    rng = np.random.default_rng(seed)
    mesh = unit_mesh("tri", n)
    mesh = MeshTri(mesh.p ** (3.0 if graded else 1.0), mesh.t)
    angle = rng.random(40) * 2.0 * np.pi
    points = 0.5 + (0.75 + rng.exponential(1.0, 40)) * np.array([np.cos(angle), np.sin(angle)])
    inside = ((points > 0.0) & (points < 1.0)).all(axis=0)
    points = points[:, ~inside]
    near, cells, away = nearest_points(mesh, points, limit=np.inf)
    assert np.allclose(near, np.clip(points, 0.0, 1.0), rtol=0.0, atol=1e-14)
    assert np.allclose(away, np.linalg.norm(near - points, axis=0), rtol=1e-13, atol=1e-15)
    assert np.all((np.abs(near[:, None] - mesh.p[:, mesh.t[:, cells]]) <= 1.0).all())
    basis = Basis(mesh, ElementTriP1())
    problem = full_problem(Basis(mesh.translated((0.3, -0.2)), ElementTriP1()))
    shifted = fc.Candidate.from_basis(problem, basis, parameter=linear(mesh.p), tolerance=1.0)
    there = np.clip(mesh.p + np.array([[0.3], [-0.2]]), 0.0, 1.0)
    assert np.allclose(shifted.parameter, linear(there), rtol=0.0, atol=1e-12)


def test_lines_reach_to_their_ends():
    problem = full_problem(unit_basis("line P1", 4))
    short = Basis(unit_mesh("line", 4).scaled(0.9), ElementLineP1())
    candidate = fc.Candidate.from_basis(problem, short, parameter=linear(short.doflocs), tolerance=0.11)
    assert np.allclose(candidate.parameter, linear(np.minimum(problem.basis.doflocs, 0.9)))
    assert (candidate.interpolation.outside, round(candidate.interpolation.beyond, 12)) == (1, 0.1)
    with pytest.raises(fc.InputError, match=r"1 of 5 dofs lie outside of .*, the one at \(1\) by 0.1; expected"):
        fc.Candidate.from_basis(problem, short, parameter=linear(short.doflocs))
